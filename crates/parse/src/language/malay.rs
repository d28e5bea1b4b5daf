//! Tells Malay from Indonesian.

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

/// The code of a text that is Indonesian or Malay; `None` without words that tell.
pub(super) fn told_apart(text: &str) -> Option<&'static str> {
    let mut balance = 0;
    for word in text.split(|letter: char| !letter.is_alphanumeric()) {
        let word = word.to_ascii_lowercase();
        let word = word.as_str();
        balance += i32::from(MALAY_WORDS.binary_search(&word).is_ok() || is_english_loan(word));
        balance -= i32::from(INDONESIAN_WORDS.binary_search(&word).is_ok() || is_dutch_loan(word));
    }
    match balance {
        0 => None,
        ..0 => Some("id"),
        1.. => Some("ms"),
    }
}

/// `kualiti`, `universiti`: `-ity` in Malay.
fn is_english_loan(word: &str) -> bool {
    word.len() > 6 && word.ends_with("iti")
}

/// `kualitas`, `universitas`: `-iteit` in Indonesian.
fn is_dutch_loan(word: &str) -> bool {
    word.len() > 6 && word.ends_with("itas")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_in_order() {
        assert!(INDONESIAN_WORDS.is_sorted() && MALAY_WORDS.is_sorted());
    }
}
