//! [`Words`]: every sentence of the web pages, in each language. One table, so that a sentence cannot be
//! missing in one of them. Words that programs compare (states, reasons, codes) are never in here.

use std::collections::BTreeMap;

/// A language of the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lang {
    En,
    Id,
}

impl Lang {
    pub(crate) const ALL: [Self; 2] = [Self::En, Self::Id];

    /// Its code, as in `<html lang>`.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Id => "id",
        }
    }

    pub(crate) fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lang| lang.code() == code)
    }

    pub(crate) fn words(self) -> &'static Words {
        match self {
            Self::En => &EN,
            Self::Id => &ID,
        }
    }
}

macro_rules! words {
    ($($name:ident: $en:literal, $id:literal;)+) => {
        /// The sentences of the pages in one language.
        #[derive(Debug)]
        pub(crate) struct Words { $(pub(crate) $name: &'static str,)+ }

        static EN: Words = Words { $($name: $en,)+ };
        static ID: Words = Words { $($name: $id,)+ };

        #[cfg(test)]
        const PAIRS: &[(&str, &str, &str)] = &[$((stringify!($name), $en, $id),)+];
    };
}

words! {
    skip_link: "Skip to content", "Langsung ke isi";
    nav_search: "Search", "Cari";
    nav_crawls: "Crawls", "Penjelajahan";
    nav_explain: "Explain", "Jelaskan";
    nav_system: "System", "Sistem";
    nav_main: "Main", "Utama";
    scheme_dark: "Dark", "Gelap";
    scheme_light: "Light", "Terang";
    scheme_auto: "Automatic", "Otomatis";
    look: "Language and colours", "Bahasa dan warna";
    footer: "Telusur crawls and searches on your own machine.", "Telusur menjelajah dan mencari di mesin Anda sendiri.";
    api: "API", "API";

    search_title: "Search what you crawled", "Cari di halaman terjelajah";
    search_label: "Words to find", "Kata yang dicari";
    search_button: "Search", "Cari";
    search_hint: "\"phrase\" · -without · site:example.org · lang:id · filetype:pdf", "\"frasa\" · -tanpa · site:example.org · lang:id · filetype:pdf";
    key_hint: "Press / to type", "Tekan / untuk mengetik";
    totals: "{pages} pages in {crawls} crawls, {indexed} of them can be found", "{pages} halaman dalam {crawls} penjelajahan, {indexed} dapat dicari";
    nothing_yet: "Nothing is crawled yet.", "Belum ada yang dijelajahi.";
    nothing_yet_hint: "Start with a site of yours, or run telusur demo in a terminal: it needs no internet.", "Mulailah dengan situs Anda, atau jalankan telusur demo di terminal: tidak perlu internet.";
    running_now: "Running now", "Sedang berjalan";
    start_box: "Start a crawl", "Mulai penjelajahan";
    start_box_label: "Address to start from", "Alamat awal";
    next_step: "Continue", "Lanjut";
    found: "{total} results in {took} ms", "{total} hasil dalam {took} md";
    found_page: "Results {first} to {last}", "Hasil {first} sampai {last}";
    found_none: "No page has all of these words.", "Tidak ada halaman dengan semua kata ini.";
    found_none_hint: "Use fewer words, check their spelling, or remove a filter.", "Kurangi kata, periksa ejaannya, atau lepaskan saringan.";
    did_you_mean: "Did you mean", "Mungkin maksud Anda";
    ignored: "Left out of the query:", "Bagian yang diabaikan:";
    more_from: "{n} more from {site}", "{n} lagi dari {site}";
    similar: "{n} pages say nearly the same", "{n} halaman hampir sama isinya";
    stored: "Stored page", "Halaman tersimpan";
    why_here: "Why here?", "Mengapa di sini?";
    why_hide: "Hide reasons", "Sembunyikan alasan";
    filters: "Narrow down", "Persempit";
    filters_active: "Filters", "Saringan";
    filter_remove: "Remove", "Lepaskan";
    facet_site: "Site", "Situs";
    facet_lang: "Language", "Bahasa";
    facet_type: "Type", "Jenis";
    facet_year: "Year", "Tahun";
    facet_crawl: "Crawl", "Penjelajahan";
    sort: "Order", "Urutan";
    sort_relevance: "Best first", "Terbaik dahulu";
    sort_newest: "Newest first", "Terbaru dahulu";
    sort_url: "By address", "Menurut alamat";
    previous: "Previous", "Sebelumnya";
    next: "Next", "Berikutnya";
    paging: "Pages of results", "Halaman hasil";
    first_part: "From the beginning", "Dari awal";

    crawls_title: "Crawls", "Penjelajahan";
    new_crawl: "New crawl", "Penjelajahan baru";
    crawls_none: "There is no crawl yet.", "Belum ada penjelajahan.";
    col_name: "Name", "Nama";
    col_state: "State", "Keadaan";
    col_pages: "Pages", "Halaman";
    col_queued: "Queue", "Antrean";
    col_errors: "Errors", "Galat";
    col_speed: "Pages/s", "Halaman/dtk";
    col_started: "Started", "Mulai";
    col_url: "Address", "Alamat";
    col_status: "Status", "Status";
    col_title: "Title", "Judul";
    col_depth: "Depth", "Kedalaman";
    col_size: "Size", "Ukuran";
    col_time: "Time", "Waktu";
    col_when: "When", "Kapan";
    col_reason: "Reason", "Alasan";
    col_rule: "Rule", "Aturan";
    col_from: "Found on", "Ditemukan di";
    col_attempts: "Attempts", "Percobaan";
    col_host: "Host", "Host";
    col_delay: "Delay", "Jeda";
    col_requests: "Requests", "Permintaan";
    col_gap: "Shortest gap", "Jarak terpendek";
    col_count: "Count", "Jumlah";
    col_scopes: "Allows", "Izin";
    col_ends: "Ends", "Berakhir";
    none: "none", "tidak ada";
    no_limit: "no limit", "tanpa batas";
    yes: "yes", "ya";
    no: "no", "tidak";

    state_queued: "waiting", "menunggu";
    state_running: "running", "berjalan";
    state_paused: "paused", "dijeda";
    state_stopped: "stopped", "dihentikan";
    state_completed: "done", "selesai";
    state_failed: "failed", "gagal";
    state_slowed: "slowed down", "diperlambat";
    state_parked: "parked", "diparkir";
    state_ok: "ok", "baik";

    form_kind: "What to crawl", "Yang dijelajahi";
    form_links: "Along links", "Mengikuti tautan";
    form_linear: "Numbered pages", "Halaman bernomor";
    form_urls: "Start addresses, one per line", "Alamat awal, satu per baris";
    form_template: "Template with {id}", "Pola dengan {id}";
    form_from: "First number", "Nomor pertama";
    form_to: "Last number", "Nomor terakhir";
    form_start: "Start at number", "Mulai dari nomor";
    form_margin: "Stop after so many missing in a row", "Berhenti setelah sekian nomor kosong berturut-turut";
    form_name: "Name", "Nama";
    form_scope: "Which links", "Tautan yang diikuti";
    scope_page: "only these pages", "hanya halaman ini";
    scope_prefix: "below the start address", "di bawah alamat awal";
    scope_host: "same host", "host yang sama";
    scope_domain: "same domain", "domain yang sama";
    scope_any: "everywhere", "ke mana pun";
    form_max_pages: "Pages at most", "Paling banyak halaman";
    form_depth: "Links away at most", "Paling jauh tautan";
    form_delay: "Milliseconds between requests to one host", "Milidetik antarpermintaan ke satu host";
    form_workers: "Requests at once", "Permintaan sekaligus";
    form_exclude: "Leave out addresses that match, one pattern per line", "Abaikan alamat yang cocok, satu pola per baris";
    form_keep: "Keep of each page", "Yang disimpan dari tiap halaman";
    keep_html: "the page", "halamannya";
    keep_text: "only its text", "hanya teksnya";
    keep_raw: "everything as it came", "semua apa adanya";
    keep_none: "nothing", "tidak ada";
    form_more: "More settings", "Setelan lain";
    form_preview: "Preview", "Pratinjau";
    form_start_now: "Start crawl", "Mulai menjelajah";
    form_default: "as usual", "seperti biasa";
    preview_title: "What would be done", "Yang akan dilakukan";
    preview_command: "The same as a command", "Perintah yang setara";
    preview_time: "At this delay, one host takes at least {time}", "Dengan jeda ini, satu host perlu setidaknya {time}";
    preview_warning: "Worth a second look", "Perlu dilihat lagi";
    preview_robots: "robots.txt", "robots.txt";

    index_behind: "Indexing is behind by {pages} pages since {when} and is tried again by itself:", "Pengindeksan tertinggal {pages} halaman sejak {when} dan dicoba lagi dengan sendirinya:";
    follower_behind: "{name} is behind by {pages} pages since {when} and is tried again by itself:", "{name} tertinggal {pages} halaman sejak {when} dan dicoba lagi dengan sendirinya:";
    tab_overview: "Overview", "Ringkasan";
    tab_pages: "Pages", "Halaman";
    tab_queue: "Queue", "Antrean";
    tab_hosts: "Hosts", "Host";
    tab_errors: "Errors", "Galat";
    tab_skipped: "Skipped", "Dilewati";
    tab_coverage: "Coverage", "Cakupan";
    tab_settings: "Settings", "Setelan";
    tabs: "Parts of this crawl", "Bagian penjelajahan ini";
    since: "since {when}", "sejak {when}";
    count_fetched: "Fetched", "Terunduh";
    count_queue: "Queue", "Antrean";
    count_errors: "Errors", "Galat";
    count_skipped: "Skipped", "Dilewati";
    count_bytes: "Received", "Diterima";
    count_speed: "Pages/s", "Halaman/dtk";
    time_left: "about {time} left", "sekitar {time} lagi";
    counters: "Counters", "Penghitung";
    throughput: "Pages per second", "Halaman per detik";
    throughput_text: "Drawn while this page is open; the counters say the same in numbers.", "Digambar selama halaman ini terbuka; penghitung menyatakannya dalam angka.";
    statuses: "Status codes", "Kode status";
    site_shares: "Share of each site", "Bagian tiap situs";
    fairness: "Fairness index {n} (1 is perfectly even)", "Indeks keadilan {n} (1 berarti merata)";
    depths: "Distance from the start", "Jarak dari awal";
    queue_next: "Next in the queue", "Antrean berikutnya";
    queue_empty: "Nothing waits.", "Tidak ada yang menunggu.";
    failures: "Why there was no answer", "Mengapa tidak ada jawaban";
    left_out: "{n} URLs were left out ({reason}). To fetch them, raise the limit and resume: telusur resume ID {flag} N.", "{n} URL tidak diambil ({reason}). Untuk mengambilnya, naikkan batasnya lalu lanjutkan: telusur resume ID {flag} N.";
    left_out_trap: "{n} URLs were left out ({reason}). To fetch them, start a new crawl with {flag} PATTERN.", "{n} URL tidak diambil ({reason}). Untuk mengambilnya, mulai crawl baru dengan {flag} POLA.";
    retry_after: "Every host that is left asks us to wait (Retry-After): nothing can be fetched for {time}.", "Semua host yang tersisa meminta menunggu (Retry-After): tidak ada yang dapat diambil selama {time}.";
    network_down: "Nothing answers on any host: the network of this machine may be down.", "Tidak ada host yang menjawab: jaringan mesin ini mungkin putus.";
    do_pause: "Pause", "Jeda";
    do_resume: "Resume", "Lanjutkan";
    do_stop: "Stop", "Hentikan";
    do_cancel: "Cancel and delete", "Batalkan dan hapus";
    do_delete: "Delete", "Hapus";
    do_retry: "Retry what failed", "Coba ulang yang gagal";
    do_export: "Export", "Ekspor";
    sure_title: "Delete this crawl?", "Hapus penjelajahan ini?";
    sure_text: "{n} pages are thrown away. This cannot be undone.", "{n} halaman dibuang. Ini tidak dapat dibatalkan.";
    sure_back: "Keep it", "Biarkan";
    exclude_title: "Exclusions", "Pengecualian";
    exclude_label: "Leave out addresses that match (regular expression)", "Abaikan alamat yang cocok (ekspresi reguler)";
    exclude_preview: "Show matches in the queue", "Lihat yang cocok di antrean";
    exclude_add: "Add exclusion", "Tambah pengecualian";
    exclude_matches: "{n} of the first {of} waiting addresses match", "{n} dari {of} alamat pertama di antrean cocok";
    change_title: "Speed", "Kecepatan";
    change_apply: "Apply", "Terapkan";
    reason: "Why it ended:", "Mengapa berakhir:";
    pause_reason: "Why it waits:", "Mengapa menunggu:";
    list_empty: "There is nothing here.", "Tidak ada apa-apa di sini.";
    list_total: "{n} in all", "{n} seluruhnya";
    list_part: "Parts of this list", "Bagian daftar ini";
    reasons_all: "All reasons", "Semua alasan";
    reason_filter: "Show only", "Tampilkan hanya";

    coverage_title: "Coverage", "Cakupan";
    coverage_strip: "Numbers {first} to {last}", "Nomor {first} sampai {last}";
    run_content: "content", "isi";
    run_missing: "does not exist", "tidak ada";
    missing_by_look: "{n} of them said that they exist, and looked like the page for ids that do not", "{n} di antaranya mengaku ada, tetapi tampak seperti halaman untuk nomor yang tidak ada";
    run_hole: "hole", "celah";
    run_waiting: "to be retried", "akan dicoba ulang";
    run_unknown: "unknown", "belum diketahui";
    zoom_in: "Zoom in", "Perbesar";
    zoom_out: "Zoom out", "Perkecil";
    zoom_left: "Lower", "Lebih rendah";
    zoom_right: "Higher", "Lebih tinggi";
    zoom_all: "Everything", "Semua";
    zoom: "Part of the strip", "Bagian pita";
    holes: "Holes", "Celah";
    holes_none: "There are no holes.", "Tidak ada celah.";
    col_numbers: "Numbers", "Nomor";
    col_direction: "Direction", "Arah";
    col_next: "Next", "Berikutnya";
    col_misses: "Missing in a row", "Kosong berturut-turut";
    directions: "Directions", "Arah";
    too_many_runs: "Only the first {n} pieces are drawn; the API has all of them.", "Hanya {n} potong pertama digambar; API memuat semuanya.";

    page_tabs: "Kinds of content", "Jenis isi";
    tab_text: "Text", "Teks";
    tab_markdown: "Markdown", "Markdown";
    tab_meta: "Meta", "Meta";
    tab_links: "Links", "Tautan";
    tab_images: "Images", "Gambar";
    tab_tables: "Tables", "Tabel";
    tab_lists: "Lists", "Daftar";
    tab_forms: "Forms", "Formulir";
    tab_scripts: "Scripts", "Skrip";
    tab_styles: "Styles", "Gaya";
    tab_headers: "Headers", "Header";
    tab_raw: "Raw", "Mentah";
    tab_preview: "Preview", "Pratinjau";
    page_untitled: "Without a title", "Tanpa judul";
    page_truncated: "The page was cut at the size limit.", "Halaman dipotong pada batas ukuran.";
    page_nothing: "Nothing of this kind was kept.", "Tidak ada isi jenis ini yang disimpan.";
    page_cut: "Only the beginning is shown.", "Hanya bagian awal yang ditampilkan.";
    page_images_note: "Images are listed, never loaded from their site.", "Gambar hanya didaftar, tidak pernah dimuat dari situsnya.";
    page_preview_note: "Without scripts, images or anything else from its site.", "Tanpa skrip, gambar, atau apa pun dari situsnya.";
    page_original: "Original", "Asli";
    page_explain: "Why was it crawled?", "Mengapa dijelajahi?";
    col_text: "Text", "Teks";
    col_value: "Value", "Nilai";
    col_kind: "Kind", "Jenis";
    table_number: "Table {n}", "Tabel {n}";
    list_number: "List {n}", "Daftar {n}";
    form_number: "Form {n}", "Formulir {n}";

    explain_title: "Why was this address crawled, or not?", "Mengapa alamat ini dijelajahi, atau tidak?";
    explain_label: "Address", "Alamat";
    explain_button: "Explain", "Jelaskan";
    explain_none: "No crawl knows this address.", "Tidak ada penjelajahan yang mengenal alamat ini.";
    explain_normal: "Known as", "Dikenal sebagai";
    explain_admitted: "Would be followed", "Akan diikuti";
    explain_robots: "robots.txt", "robots.txt";
    explain_id: "Its number", "Nomornya";
    explain_details: "Everything that is known", "Semua yang diketahui";
    allowed: "allowed", "diizinkan";
    forbidden: "forbidden", "dilarang";

    system_title: "System", "Sistem";
    sys_version: "Version", "Versi";
    sys_uptime: "Runs for", "Berjalan selama";
    sys_pages: "Pages stored", "Halaman tersimpan";
    sys_indexed: "Pages that can be found", "Halaman yang dapat dicari";
    sys_queue: "Addresses that wait", "Alamat yang menunggu";
    sys_index: "Search index", "Indeks pencarian";
    sys_free: "Free on disk", "Sisa ruang disk";
    sys_speed: "Pages/s, all crawls", "Halaman/dtk, semua penjelajahan";
    sys_listen: "Listens on", "Mendengarkan di";
    sys_damaged: "Damage found", "Kerusakan ditemukan";
    sys_read_only: "Only reads", "Hanya baca";
    sys_crawls: "Crawls by state", "Penjelajahan menurut keadaan";
    sys_keys: "Keys", "Kunci";
    sys_keys_none: "There are no keys: only this machine can reach the service.", "Tidak ada kunci: hanya mesin ini yang dapat mengakses layanan.";
    sys_metrics: "Metrics for Prometheus", "Metrik untuk Prometheus";
    sys_user_agent: "Names itself", "Menamakan diri";

    api_title: "API", "API";
    api_intro: "Everything that these pages do, programs can do, too.", "Semua yang dapat dilakukan di halaman-halaman ini juga dapat dilakukan oleh program. Penjelasannya berbahasa Inggris.";
    api_json: "The same as an OpenAPI document", "Deskripsi yang sama sebagai dokumen OpenAPI";
    api_operations: "Operations", "Operasi";
    api_parameters: "Parameters", "Parameter";
    api_required: "required", "wajib";
    api_body: "Request body", "Isi permintaan";
    api_example: "Example", "Contoh";
    api_replies: "Responses", "Jawaban";
    api_problems: "Errors", "Galat";
    api_types: "Types", "Tipe";

    problem_title: "This did not work", "Ini tidak berhasil";
    not_found_title: "There is nothing here", "Tidak ada apa-apa di sini";
    not_found_text: "The address may be misspelt, or what was here is gone. Perhaps a search finds it.", "Alamatnya mungkin salah ketik, atau isinya sudah tidak ada. Barangkali pencarian menemukannya.";
    problem_back: "Back to search", "Kembali ke pencarian";
    key_title: "A key is needed", "Perlu kunci";
    key_text: "Whoever runs this service can make one: telusur key create.", "Pengelola layanan ini dapat membuatnya: telusur key create.";
    key_label: "Key", "Kunci";
    key_button: "Continue", "Lanjut";
    key_wrong: "This key is not known, or does not allow this.", "Kunci ini tidak dikenal, atau tidak mengizinkan ini.";
}

/// The word of a state in the language of a reader; unknown ones as they are.
pub(crate) fn state_word<'a>(words: &'static Words, state: &'a str) -> &'a str {
    match state {
        "queued" => words.state_queued,
        "running" => words.state_running,
        "paused" => words.state_paused,
        "stopped" => words.state_stopped,
        "completed" => words.state_completed,
        "failed" => words.state_failed,
        "slowed" => words.state_slowed,
        "parked" => words.state_parked,
        "ok" => words.state_ok,
        other => other,
    }
}

/// Fills the places `{name}` of a sentence. Values are not looked at again: a `{site}` inside of one
/// stays what it is.
pub(crate) fn fill(sentence: &str, values: &[(&str, &str)]) -> String {
    let by_name: BTreeMap<&str, &str> = values.iter().copied().collect();
    let mut filled = String::with_capacity(sentence.len() + 16);
    let mut rest = sentence;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        match after.split_once('}') {
            Some((name, tail)) if by_name.contains_key(name) => {
                filled.push_str(by_name[name]);
                rest = tail;
            }
            _ => {
                filled.push('{');
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    filled
}

/// The language that a list like `id,en;q=0.8` prefers among ours.
pub(crate) fn preferred(accepted: &str) -> Option<Lang> {
    let mut wanted: Vec<(f32, Lang)> = Vec::new();
    for part in accepted.split(',') {
        let mut pieces = part.split(';');
        let code = pieces.next().unwrap_or_default().trim().to_ascii_lowercase();
        let weight = pieces.find_map(|piece| piece.trim().strip_prefix("q=")?.parse().ok());
        let base = code.split('-').next().unwrap_or_default();
        // `in` is what Indonesian was called before 1989, and some programs still send it.
        let base = if base == "in" { "id" } else { base };
        wanted.extend(Lang::from_code(base).map(|lang| (weight.unwrap_or(1.0), lang)));
    }
    let best = wanted.iter().filter(|(weight, _)| *weight > 0.0);
    // Of equal ones the first counts.
    best.fold(None::<(f32, Lang)>, |best, it| match best {
        Some(best) if best.0 >= it.0 => Some(best),
        _ => Some(*it),
    })
    .map(|(_, lang)| lang)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(sentence: &str) -> Vec<&str> {
        let mut places: Vec<&str> =
            sentence.split('{').skip(1).filter_map(|it| Some(it.split_once('}')?.0)).collect();
        places.sort_unstable();
        places
    }

    #[test]
    fn both_languages_have_the_same_places() {
        for (name, en, id) in PAIRS {
            assert_eq!(places(en), places(id), "{name}");
            assert!(!en.is_empty() && !id.is_empty(), "{name}");
        }
    }

    #[test]
    fn values_are_filled_in_once() {
        assert_eq!(fill("{n} from {site}", &[("n", "{site}"), ("site", "a")]), "{site} from a");
        assert_eq!(fill("Template with {id}", &[]), "Template with {id}");
        assert_eq!(fill("open { end", &[]), "open { end");
    }

    #[test]
    fn the_reader_chooses_the_language() {
        for (accepted, expect) in [
            ("id", Some(Lang::Id)),
            ("id-ID,en;q=0.5", Some(Lang::Id)),
            ("en;q=0.4,id;q=0.9", Some(Lang::Id)),
            ("de,en", Some(Lang::En)),
            ("en,id", Some(Lang::En)),
            ("in", Some(Lang::Id)),
            ("id;q=0", None),
            ("fr", None),
            ("", None),
        ] {
            assert_eq!(preferred(accepted), expect, "{accepted}");
        }
    }
}
