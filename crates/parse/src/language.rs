//! The language of a text, by its letters and by what the page declares. Detection is `whatlang`'s;
//! what it does not tell apart, Indonesian and Malay, is told apart here.

use whatlang::Lang;

use crate::text::cut;

/// Bytes of text that are looked at. Trigrams are counted, and more of them make nothing better;
/// on the sentences that were measured (100 bytes on average), every second one is sure already.
const SAMPLE_BYTES: usize = 640;
/// Fewer letters than this are a name or a number, in any language.
const SAMPLE_BYTES_MIN: usize = 20;
/// Below this confidence the page knows better than the detector.
const CONFIDENCE_MIN: f64 = 0.5;

/// The words that a text in a language cannot do without. Of the page's own language they make up a
/// fifth of all words, of others hardly any; this is much cheaper to see than trigrams. Afrikaans
/// and Catalan are here to be told from their neighbours.
#[rustfmt::skip]
const FREQUENT_WORDS: [(&str, [&str; 12]); 10] = [
    ("en", ["the", "of", "and", "to", "is", "that", "for", "with", "this", "you", "are", "it"]),
    ("de", ["der", "die", "und", "das", "ist", "nicht", "mit", "den", "von", "zu", "ein", "auf"]),
    ("fr", ["les", "des", "est", "et", "dans", "une", "pour", "du", "qui", "sur", "pas", "le"]),
    ("es", ["el", "los", "las", "una", "por", "con", "del", "y", "es", "su", "para", "como"]),
    ("pt", ["não", "uma", "com", "os", "do", "da", "em", "um", "dos", "ao", "mais", "você"]),
    ("it", ["il", "di", "che", "della", "per", "una", "sono", "con", "gli", "del", "è", "nel"]),
    ("nl", ["het", "een", "van", "niet", "dat", "zijn", "voor", "met", "op", "aan", "ook", "er"]),
    ("id", ["yang", "dan", "di", "dengan", "untuk", "ini", "dari", "tidak", "itu", "pada", "akan", "ke"]),
    ("af", ["die", "van", "nie", "het", "en", "sy", "hulle", "wat", "om", "vir", "hy", "dit"]),
    ("ca", ["els", "amb", "és", "les", "per", "una", "més", "seva", "dels", "també", "aquest", "el"]),
];
/// Words that make a sample, and the share of frequent ones, one in so many, that settles it.
const SAMPLE_WORDS_MIN: usize = 20;
const FREQUENT_ONE_IN: usize = 7;

/// Words that are much more common in Indonesian than in Malay, and the other way round, each list in
/// the order of the alphabet. Grammar and most words are the same, but spelling and loans (from
/// Dutch here, from English there) differ.
#[rustfmt::skip]
const INDONESIAN_WORDS: [&str; 109] = [
    "agar", "agustus", "antar", "apotek", "bagian", "bahwa", "bandara", "banget", "baru",
    "beberapa", "beda", "begitu", "belum", "berbagai", "berbeda", "berhasil", "bilang", "bioskop",
    "bisa", "butuh", "coba", "cuma", "dolar", "dosen", "gak", "gratis", "hal", "harus",
    "informasi", "inggris", "istri", "jakarta", "jaksa", "juli", "jumat", "juni", "kabupaten",
    "kamis", "kantor", "kapan", "karena", "karyawan", "kasus", "kecamatan", "kesempatan", "klub",
    "koran", "korban", "kota", "kuliah", "lainnya", "laki", "lewat", "maret", "masyarakat",
    "maupun", "membantu", "memiliki", "mencoba", "mengatakan", "menurut", "merupakan", "miliar",
    "mobil", "mulai", "nggak", "pabrik", "pasar", "pelatih", "pemerintah", "pemilu", "pengadilan",
    "persen", "pertandingan", "perusahaan", "pihaknya", "polisi", "ponsel", "prancis", "pria",
    "produksi", "provinsi", "rabu", "resmi", "rp", "rupiah", "saat", "saja", "sebuah", "sedangkan",
    "sehari", "sekitar", "seluruh", "senin", "setelah", "siswa", "sudah", "tapi", "telepon",
    "televisi", "terjadi", "tim", "tiongkok", "uang", "ujar", "ujarnya", "waktu", "warga", "yaitu",
];
#[rustfmt::skip]
const MALAY_WORDS: [&str; 90] = [
    "agensi", "apabila", "awak", "bahagian", "baharu", "bahawa", "bandar", "basikal", "berbanding",
    "berikutan", "berjaya", "beza", "bilion", "boleh", "cakap", "cuba", "daripada", "datuk",
    "dipercayai", "doktor", "encik", "farmasi", "hospital", "iaitu", "ialah", "isnin", "isteri",
    "jawatankuasa", "julai", "jumaat", "jun", "jurulatih", "jururawat", "kakitangan", "kasut",
    "kelab", "kementerian", "kempen", "kerajaan", "kerana", "kereta", "kes", "khamis", "kilang",
    "kuala", "lebuh", "lelaki", "lori", "lumpur", "mac", "mahkamah", "mahu", "mahupun", "maklumat",
    "manakala", "mangsa", "memberitahu", "menerusi", "mengikut", "mesti", "mesyuarat", "negeri",
    "ogos", "pasaran", "pasukan", "pawagam", "pejabat", "pelajar", "pensyarah", "peratus",
    "percuma", "perlawanan", "polis", "ramai", "rasmi", "ringgit", "rm", "sahaja", "sekiranya",
    "selepas", "semasa", "setiausaha", "sila", "syarikat", "teksi", "telefon", "televisyen",
    "tiada", "tuala", "wang",
];

/// What is known about the language of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Language {
    /// By its letters, as an ISO 639-1 code, or 639-3 where there is no shorter one.
    pub detected: Option<&'static str>,
    /// The detected one, or the declared one where that knows better.
    pub decided: Option<String>,
}

/// Finds the language of a text on a page that declares one, or none.
pub(crate) fn language_of(text: &str, declared: Option<&str>) -> Language {
    let declared = declared.and_then(primary_subtag);
    let sample = cut(text, SAMPLE_BYTES);
    if let Some(evident) = evident_language(sample, declared.as_deref()) {
        return Language { detected: Some(evident), decided: Some(evident.to_owned()) };
    }
    let info = if sample.len() < SAMPLE_BYTES_MIN { None } else { whatlang::detect(sample) };
    let Some(info) = info else { return Language { detected: None, decided: declared } };
    let detected = match info.lang() {
        Lang::Ind if is_malay(sample, declared.as_deref()) => "ms",
        lang => code_of(lang),
    };
    let page_knows_better = match &declared {
        None => false,
        // The detector finds the nearest of the languages that it knows.
        Some(declared) if !is_detectable(declared) => true,
        Some(_) => info.confidence() < CONFIDENCE_MIN,
    };
    let decided = if page_knows_better { declared } else { Some(detected.to_owned()) };
    Language { detected: Some(detected), decided }
}

/// The language that a look at the most frequent words leaves no doubt about.
fn evident_language(sample: &str, declared: Option<&str>) -> Option<&'static str> {
    let mut found = [0; FREQUENT_WORDS.len()];
    let mut words = 0;
    for word in sample.split(|letter: char| !letter.is_alphanumeric()) {
        words += usize::from(!word.is_empty());
        for (count, (_, frequent)) in found.iter_mut().zip(&FREQUENT_WORDS) {
            *count += usize::from(frequent.contains(&word));
        }
    }
    let (best, most) = found.iter().enumerate().max_by_key(|(_, count)| **count)?;
    let has_rival = found.iter().enumerate().any(|(at, count)| at != best && count * 2 > *most);
    if words < SAMPLE_WORDS_MIN || most * FREQUENT_ONE_IN < words || has_rival {
        return None;
    }
    let (code, _) = FREQUENT_WORDS[best];
    Some(if code == "id" && is_malay(sample, declared) { "ms" } else { code })
}

/// `en` of `en-GB`, in lower case; `None` if it is no language tag.
fn primary_subtag(tag: &str) -> Option<String> {
    let primary = tag.split(['-', '_']).next()?.trim_ascii().to_ascii_lowercase();
    let is_tag =
        (2..=3).contains(&primary.len()) && primary.bytes().all(|b| b.is_ascii_lowercase());
    match primary.as_str() {
        // Old codes that are still written.
        "in" => Some("id".to_owned()),
        "iw" => Some("he".to_owned()),
        "no" => Some("nb".to_owned()),
        _ => is_tag.then_some(primary),
    }
}

fn is_detectable(code: &str) -> bool {
    code == "ms" || Lang::all().iter().any(|lang| code_of(*lang) == code || lang.code() == code)
}

/// Whether a text that is Indonesian or Malay is Malay. Without a single telling word, the page's
/// word counts; without that, Indonesian has ten times the speakers.
fn is_malay(text: &str, declared: Option<&str>) -> bool {
    let mut balance = 0;
    for word in text.split(|letter: char| !letter.is_alphanumeric()) {
        let word = word.to_ascii_lowercase();
        let word = word.as_str();
        balance += i32::from(MALAY_WORDS.binary_search(&word).is_ok() || is_english_loan(word));
        balance -= i32::from(INDONESIAN_WORDS.binary_search(&word).is_ok() || is_dutch_loan(word));
    }
    balance > 0 || (balance == 0 && declared == Some("ms"))
}

/// `kualiti`, `universiti`: `-ity` in Malay.
fn is_english_loan(word: &str) -> bool {
    word.len() > 6 && word.ends_with("iti")
}

/// `kualitas`, `universitas`: `-iteit` in Indonesian.
fn is_dutch_loan(word: &str) -> bool {
    word.len() > 6 && word.ends_with("itas")
}

/// The ISO 639-1 code, or the 639-3 code of a language that has no shorter one.
fn code_of(lang: Lang) -> &'static str {
    match lang {
        Lang::Epo => "eo",
        Lang::Eng => "en",
        Lang::Rus => "ru",
        Lang::Cmn => "zh",
        Lang::Spa => "es",
        Lang::Por => "pt",
        Lang::Ita => "it",
        Lang::Ben => "bn",
        Lang::Fra => "fr",
        Lang::Deu => "de",
        Lang::Ukr => "uk",
        Lang::Kat => "ka",
        Lang::Ara => "ar",
        Lang::Hin => "hi",
        Lang::Jpn => "ja",
        Lang::Heb => "he",
        Lang::Yid => "yi",
        Lang::Pol => "pl",
        Lang::Amh => "am",
        Lang::Jav => "jv",
        Lang::Kor => "ko",
        Lang::Nob => "nb",
        Lang::Dan => "da",
        Lang::Swe => "sv",
        Lang::Fin => "fi",
        Lang::Tur => "tr",
        Lang::Nld => "nl",
        Lang::Hun => "hu",
        Lang::Ces => "cs",
        Lang::Ell => "el",
        Lang::Bul => "bg",
        Lang::Bel => "be",
        Lang::Mar => "mr",
        Lang::Kan => "kn",
        Lang::Ron => "ro",
        Lang::Slv => "sl",
        Lang::Hrv => "hr",
        Lang::Srp => "sr",
        Lang::Mkd => "mk",
        Lang::Lit => "lt",
        Lang::Lav => "lv",
        Lang::Est => "et",
        Lang::Tam => "ta",
        Lang::Vie => "vi",
        Lang::Urd => "ur",
        Lang::Tha => "th",
        Lang::Guj => "gu",
        Lang::Uzb => "uz",
        Lang::Pan => "pa",
        Lang::Aze => "az",
        Lang::Ind => "id",
        Lang::Tel => "te",
        Lang::Pes => "fa",
        Lang::Mal => "ml",
        Lang::Ori => "or",
        Lang::Mya => "my",
        Lang::Nep => "ne",
        Lang::Sin => "si",
        Lang::Khm => "km",
        Lang::Tuk => "tk",
        Lang::Aka => "ak",
        Lang::Zul => "zu",
        Lang::Sna => "sn",
        Lang::Afr => "af",
        Lang::Lat => "la",
        Lang::Slk => "sk",
        Lang::Cat => "ca",
        Lang::Tgl => "tl",
        Lang::Hye => "hy",
        Lang::Cym => "cy",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, declared: Option<&str>, expect: &str) {
        assert_eq!(language_of(text, declared).decided.unwrap_or_default(), expect, "{text}");
    }

    #[test]
    fn by_letters() {
        check("The quick brown fox jumps over the lazy dog and runs away.", None, "en");
        check("Der schnelle braune Fuchs springt über den faulen Hund.", None, "de");
        check("Съешь же ещё этих мягких французских булок, да выпей чаю", None, "ru");
        check("いろはにほへと ちりぬるを わかよたれそ つねならむ", None, "ja");
    }

    #[test]
    fn indonesian_and_malay() {
        check("Pemerintah mengatakan bahwa perusahaan itu bisa membuka kantor baru.", None, "id");
        check("Kerajaan berkata bahawa syarikat itu boleh membuka pejabat baharu.", None, "ms");
        check("Universitas itu meningkatkan kualitas pendidikan untuk semua orang.", None, "id");
        check("Universiti itu meningkatkan kualiti pendidikan untuk semua orang.", None, "ms");
        check(
            "Semua orang dilahirkan merdeka dan mempunyai martabat yang sama.",
            Some("ms-MY"),
            "ms",
        );
        check("Semua orang dilahirkan merdeka dan mempunyai martabat yang sama.", Some("id"), "id");
    }

    #[test]
    fn frequent_words_leave_no_doubt() {
        let english = "It is the end of the day and you are on the way to the sea. ".repeat(5);
        assert_eq!(evident_language(&english, None), Some("en"));
        assert_eq!(evident_language("the end", Some("en")), None);
        assert_eq!(evident_language(&"Hauptstadt Frankfurt ".repeat(30), Some("de")), None);
        let malay = "Kerajaan berkata bahawa syarikat itu boleh membuka pejabat ini dengan dan \
                     untuk yang di pada dari. ";
        assert_eq!(evident_language(&malay.repeat(4), None), Some("ms"));
    }

    #[test]
    fn the_lists_are_in_order() {
        assert!(INDONESIAN_WORDS.is_sorted() && MALAY_WORDS.is_sorted());
    }

    #[test]
    fn what_the_page_declares() {
        check("", Some("en-GB"), "en");
        check("42", Some("in"), "id");
        check("42", Some("nonsense"), "");
        // Icelandic is not among the languages that can be detected.
        check(
            "Allir menn eru bornir frjálsir og jafnir öðrum að virðingu og réttindum.",
            Some("is"),
            "is",
        );
        check(
            "The page says one thing and the text says another, as often happens.",
            Some("de"),
            "en",
        );
    }
}
