//! Function words per language: words that a question is full of and that no page is about. They
//! are indexed like all words; queries leave them out while other words remain.
//!
//! The lists are short on purpose: a word that is missing costs little, a word too many cannot be
//! searched beside others. The lists of English and Indonesian also hold the words of questions.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::RandomState;

/// The longest function word of all lists, in bytes.
const WORD_BYTES_MAX: usize = 18;

/// Lists by language code, each in the order of bytes.
#[rustfmt::skip]
pub(super) const STOP_WORDS: &[(&str, &[&str])] = &[
    ("en", &[
        "a", "about", "above", "after", "again", "against", "all", "also", "am", "an", "and",
        "any", "are", "aren", "as", "at", "be", "because", "been", "before", "being", "below",
        "between", "both", "but", "by", "can", "cannot", "could", "couldn", "d", "did", "didn",
        "do", "does", "doesn", "doing", "don", "done", "down", "during", "each", "either", "else",
        "ever", "every", "few", "for", "from", "further", "get", "gets", "give", "given", "had",
        "hadn", "has", "hasn", "have", "haven", "having", "he", "her", "here", "hers", "herself",
        "him", "himself", "his", "how", "however", "i", "if", "in", "into", "is", "isn", "it",
        "its", "itself", "just", "let", "ll", "m", "make", "many", "may", "me", "might", "more",
        "most", "much", "must", "my", "myself", "neither", "no", "nor", "not", "now", "of", "off",
        "on", "once", "one", "only", "or", "other", "others", "our", "ours", "ourselves", "out",
        "over", "own", "per", "please", "possible", "re", "really", "s", "same", "shall", "she",
        "should", "shouldn", "since", "so", "some", "such", "t", "than", "that", "the", "their",
        "theirs", "them", "themselves", "then", "there", "these", "they", "this", "those",
        "through", "thus", "to", "too", "under", "until", "up", "upon", "us", "use", "used",
        "using", "ve", "very", "via", "was", "wasn", "we", "were", "weren", "what", "when",
        "where", "whether", "which", "while", "who", "whom", "whose", "why", "will", "with",
        "within", "without", "won", "would", "wouldn", "yes", "yet", "you", "your", "yours",
        "yourself", "yourselves",
    ]),
    ("id", &[
        "ada", "adalah", "adapun", "agar", "akan", "akankah", "aku", "anda", "antara", "apa",
        "apabila", "apakah", "apalagi", "atas", "atau", "bagaimana", "bagaimanakah", "bagi",
        "bahwa", "banyak", "banyaknya", "begitu", "beliau", "berapa", "berapakah", "berapalah",
        "berbagai", "berikut", "bila", "bilakah", "bisa", "bisakah", "boleh", "buat", "bukan",
        "bukankah", "dalam", "dan", "dapat", "dapatkah", "dari", "daripada", "demi", "demikian",
        "dengan", "di", "dia", "dimana", "dimanakah", "disebut", "guna", "hal", "hanya", "harus",
        "hingga", "ialah", "ini", "itu", "itulah", "jadi", "jika", "juga", "kah", "kalau", "kami",
        "kamu", "kapan", "kapankah", "karena", "ke", "kenapa", "kepada", "ketika", "kini", "kita",
        "lagi", "lah", "lain", "lalu", "lebih", "maka", "mana", "manakah", "mari", "masih",
        "melalui", "memang", "mengapa", "mengapakah", "menjadi", "menurut", "mereka", "merupakan",
        "milik", "misalnya", "mungkin", "namun", "nya", "oleh", "pada", "paling", "para", "per",
        "pernah", "pernahkah", "pula", "pun", "saat", "saja", "sambil", "sampai", "sang", "sangat",
        "saya", "sebab", "sebagai", "sebelum", "sebuah", "secara", "sedang", "sedangkan",
        "sehingga", "sejak", "sekarang", "selain", "selama", "seluruh", "semua", "seorang",
        "seperti", "sering", "serta", "sesudah", "setelah", "setiap", "siapa", "siapakah",
        "siapalah", "sih", "suatu", "sudah", "supaya", "tanpa", "telah", "tentang", "tentu",
        "terhadap", "tersebut", "tetapi", "tiap", "tidak", "untuk", "walaupun", "yaitu", "yakni",
        "yang",
    ]),
    ("de", &[
        "aber", "alle", "als", "also", "am", "an", "auch", "auf", "aus", "bei", "beim", "bin",
        "bis", "bist", "da", "damit", "dann", "das", "dass", "daß", "dein", "dem", "den", "denn",
        "der", "des", "deshalb", "die", "dies", "diese", "dieser", "dieses", "doch", "dort", "du",
        "durch", "ein", "eine", "einem", "einen", "einer", "eines", "er", "es", "etwas", "euer",
        "für", "gegen", "hab", "habe", "haben", "hat", "hatte", "hatten", "hier", "hinter", "ich",
        "ihm", "ihn", "ihr", "ihre", "im", "in", "ins", "ist", "ja", "jede", "jeder", "jedes",
        "kann", "kein", "keine", "können", "könnte", "man", "mehr", "mein", "mich", "mir", "mit",
        "muss", "nach", "nicht", "noch", "nun", "nur", "ob", "oder", "ohne", "sehr", "sein",
        "seine", "sich", "sie", "sind", "so", "soll", "sondern", "um", "und", "uns", "unser",
        "unter", "vom", "von", "vor", "wann", "war", "waren", "warum", "was", "weil", "welche",
        "welcher", "welches", "wenn", "wer", "werden", "wie", "wieder", "wir", "wird", "wo",
        "wurde", "wurden", "zu", "zum", "zur", "zwischen", "über",
    ]),
    ("fr", &[
        "ai", "as", "au", "aux", "avec", "avez", "avons", "c", "ce", "ces", "cet", "cette",
        "comment", "d", "dans", "de", "des", "du", "elle", "elles", "en", "est", "et", "eu", "eux",
        "furent", "fut", "il", "ils", "j", "je", "l", "la", "le", "les", "leur", "leurs", "lui",
        "m", "ma", "mais", "me", "mes", "moi", "mon", "même", "n", "ne", "nos", "notre", "nous",
        "on", "ont", "ou", "où", "par", "pas", "plus", "pour", "pourquoi", "qu", "quand", "que",
        "quel", "quelle", "quelles", "quels", "qui", "quoi", "s", "sa", "sans", "se", "sera",
        "ses", "si", "son", "sont", "sous", "sur", "t", "ta", "te", "tes", "toi", "ton", "tu",
        "un", "une", "vos", "votre", "vous", "y", "à", "étaient", "était", "été", "être",
    ]),
    ("es", &[
        "a", "al", "algo", "antes", "como", "con", "cual", "cuando", "cuál", "cuándo", "cómo",
        "de", "del", "desde", "donde", "dos", "dónde", "el", "ella", "ellas", "ellos", "en",
        "entre", "era", "eran", "es", "esa", "ese", "eso", "esta", "estaba", "este", "esto",
        "está", "están", "fue", "fueron", "ha", "han", "hasta", "hay", "la", "las", "le", "les",
        "lo", "los", "me", "mi", "mientras", "muy", "más", "ni", "no", "nos", "o", "otra", "otro",
        "para", "pero", "por", "porque", "que", "quien", "quién", "qué", "se", "ser", "si", "sin",
        "sobre", "son", "su", "sus", "sí", "también", "tiene", "tienen", "todo", "todos", "un",
        "una", "uno", "unos", "y", "ya", "yo",
    ]),
    ("pt", &[
        "a", "ao", "aos", "as", "até", "com", "como", "da", "das", "de", "dela", "dele", "do",
        "dos", "e", "ela", "elas", "ele", "eles", "em", "entre", "era", "essa", "esse", "esta",
        "este", "eu", "foi", "foram", "há", "isso", "isto", "já", "mais", "mas", "me", "mesmo",
        "muito", "na", "nas", "nem", "no", "nos", "não", "nós", "o", "onde", "os", "ou", "para",
        "pela", "pelas", "pelo", "pelos", "por", "porque", "qual", "quando", "que", "quem", "se",
        "sem", "ser", "será", "seu", "seus", "sobre", "sua", "suas", "são", "só", "também", "tem",
        "têm", "um", "uma", "umas", "uns", "você", "vocês", "à", "às", "é",
    ]),
    ("it", &[
        "a", "ad", "agli", "ai", "al", "alla", "alle", "anche", "c", "che", "chi", "ci", "come",
        "con", "cosa", "cui", "da", "dagli", "dai", "dal", "dalla", "dalle", "degli", "dei", "del",
        "della", "delle", "di", "dove", "e", "ed", "era", "erano", "essere", "fra", "gli", "ha",
        "hanno", "i", "il", "in", "io", "l", "la", "le", "lei", "li", "lo", "loro", "lui", "ma",
        "mi", "ne", "negli", "nei", "nel", "nella", "nelle", "no", "noi", "non", "o", "ogni",
        "per", "perché", "però", "più", "quale", "quali", "quando", "quanto", "quella", "quelle",
        "quelli", "quello", "questa", "queste", "questi", "questo", "se", "senza", "si", "sia",
        "sono", "sua", "sue", "sugli", "sui", "sul", "sulla", "sulle", "suo", "suoi", "tra", "tu",
        "un", "una", "uno", "vi", "voi", "è",
    ]),
    ("nl", &[
        "aan", "al", "als", "altijd", "bij", "dan", "dat", "de", "deze", "die", "dit", "doch",
        "doen", "door", "dus", "een", "en", "er", "ge", "geen", "had", "heb", "hebben", "heeft",
        "het", "hier", "hij", "hoe", "hun", "ik", "in", "is", "ja", "je", "kan", "kon", "maar",
        "meer", "men", "met", "mij", "mijn", "na", "naar", "niet", "nog", "nu", "of", "om",
        "omdat", "onder", "ons", "ook", "op", "over", "te", "tegen", "toch", "toen", "tot", "u",
        "uit", "van", "veel", "voor", "waar", "waarom", "wanneer", "want", "waren", "was", "wat",
        "welke", "werd", "wie", "wij", "wil", "worden", "wordt", "zal", "ze", "zelf", "zich",
        "zij", "zijn", "zo", "zou",
    ]),
    ("sv", &[
        "alla", "att", "av", "bara", "blev", "bli", "blir", "de", "dem", "den", "denna", "deras",
        "dess", "dessa", "det", "detta", "dig", "din", "du", "där", "efter", "ej", "eller", "en",
        "er", "ett", "från", "för", "ha", "hade", "han", "har", "henne", "hennes", "hon", "honom",
        "hur", "här", "i", "icke", "ingen", "inte", "jag", "ju", "kan", "kunde", "man", "med",
        "mellan", "men", "mig", "min", "mot", "mycket", "ni", "nu", "när", "och", "om", "oss",
        "på", "samma", "sedan", "sig", "sin", "sina", "skulle", "som", "så", "till", "under",
        "upp", "ut", "utan", "vad", "var", "vara", "varför", "vem", "vi", "vid", "vilken", "än",
        "är", "åt", "över",
    ]),
    ("no", &[
        "alle", "at", "av", "bare", "ble", "blei", "bli", "blir", "da", "de", "deg", "den",
        "denne", "der", "dere", "det", "dette", "disse", "du", "eg", "ein", "eit", "eller", "en",
        "enn", "er", "et", "etter", "for", "fra", "få", "før", "ha", "hadde", "han", "hans", "har",
        "hun", "hva", "hvem", "hvilken", "hvis", "hvor", "hvordan", "hvorfor", "i", "ikke",
        "ingen", "inn", "ja", "jeg", "kan", "kunne", "man", "med", "meg", "mellom", "men", "mer",
        "min", "mot", "mye", "må", "ned", "noe", "noen", "nå", "når", "og", "også", "om", "opp",
        "oss", "over", "på", "samme", "seg", "selv", "sin", "sitt", "skal", "skulle", "slik",
        "som", "så", "til", "um", "under", "ut", "var", "ved", "vi", "vil", "ville", "være",
        "vært", "å",
    ]),
    ("da", &[
        "ad", "af", "alle", "alt", "anden", "at", "blev", "blive", "bliver", "da", "de", "dem",
        "den", "denne", "der", "deres", "det", "dette", "dig", "din", "disse", "dog", "du",
        "efter", "eller", "en", "end", "er", "et", "for", "fra", "få", "ham", "han", "hans", "har",
        "havde", "hende", "hendes", "her", "hos", "hun", "hvad", "hvem", "hvis", "hvor", "hvordan",
        "hvorfor", "i", "ikke", "ind", "jeg", "jer", "kan", "kunne", "man", "mange", "med",
        "meget", "men", "mig", "min", "mod", "ned", "noget", "nogle", "nu", "når", "og", "også",
        "om", "op", "os", "over", "på", "selv", "sig", "sin", "skal", "skulle", "som", "sådan",
        "thi", "til", "ud", "under", "var", "ved", "vi", "vil", "ville", "vor", "være", "været",
    ]),
    ("fi", &[
        "ei", "eivät", "ennen", "että", "he", "heidän", "hän", "hänen", "ja", "jo", "joka",
        "jonka", "jos", "joten", "jotka", "kaikki", "kanssa", "kuin", "kun", "kuten", "me", "mikä",
        "missä", "mitä", "mukaan", "mutta", "myös", "ne", "niiden", "niin", "nyt", "ole", "oli",
        "olivat", "olla", "on", "ovat", "se", "sekä", "sen", "siitä", "sillä", "sitä", "tai",
        "tämä", "tämän", "vaan", "vai", "vain", "voi",
    ]),
    ("hu", &[
        "a", "abban", "ahhoz", "aki", "akkor", "amely", "ami", "amit", "annak", "az", "azok",
        "azt", "azért", "be", "benne", "csak", "de", "e", "egy", "egyik", "el", "ennek", "ez",
        "ezek", "ezt", "fel", "ha", "hanem", "hogy", "hogyan", "is", "itt", "jó", "kell", "ki",
        "két", "le", "lehet", "lesz", "lett", "maga", "majd", "meg", "mely", "melyek", "mert",
        "mi", "mint", "miért", "most", "ne", "nekem", "nem", "nincs", "olyan", "pedig", "s", "sem",
        "szerint", "több", "utolsó", "után", "vagy", "van", "vannak", "volt", "és", "így", "úgy",
        "ő",
    ]),
    ("ro", &[
        "a", "aceasta", "acest", "aceste", "acum", "ai", "al", "ale", "am", "ar", "are", "asta",
        "au", "ca", "care", "ce", "cel", "cele", "cu", "cum", "când", "de", "deci", "decât",
        "despre", "din", "după", "ea", "ei", "el", "este", "eu", "fi", "fie", "fost", "iar", "la",
        "le", "lor", "lui", "mai", "ne", "ni", "nici", "nu", "o", "ori", "pe", "pentru", "prin",
        "sa", "sau", "se", "si", "sunt", "să", "un", "unde", "unei", "unui", "va", "în", "între",
        "și",
    ]),
    ("pl", &[
        "a", "ale", "am", "ani", "bardzo", "bez", "bo", "by", "być", "był", "była", "było", "były",
        "będzie", "co", "czy", "dla", "do", "gdy", "gdzie", "go", "i", "ich", "ile", "im", "ja",
        "jak", "jako", "je", "jego", "jej", "jest", "już", "kiedy", "kto", "która", "które",
        "który", "lub", "ma", "mi", "mnie", "może", "na", "nad", "nie", "niej", "nim", "o", "od",
        "oraz", "po", "pod", "przez", "przy", "się", "są", "tak", "tam", "te", "tego", "tej",
        "ten", "to", "tu", "tylko", "tym", "u", "w", "we", "wszystko", "z", "za", "ze", "że",
    ]),
    ("cs", &[
        "a", "aby", "ale", "ani", "až", "bez", "bude", "by", "byl", "byla", "byli", "bylo", "být",
        "co", "do", "ho", "i", "je", "jeho", "jejich", "její", "jen", "jsem", "jsou", "k", "kde",
        "kdo", "kdy", "kdyby", "když", "která", "které", "který", "ma", "mezi", "mi", "má", "na",
        "nad", "ne", "nebo", "není", "o", "od", "po", "pod", "podle", "pokud", "pro", "proto",
        "proč", "před", "při", "s", "se", "si", "své", "ta", "tak", "také", "tato", "ten", "tento",
        "to", "toho", "tom", "tu", "ty", "tím", "u", "už", "v", "ve", "však", "z", "za", "ze",
        "že",
    ]),
    ("tr", &[
        "ama", "ancak", "bazı", "ben", "bir", "biri", "biz", "bu", "bunu", "bunun", "da", "daha",
        "de", "değil", "diye", "en", "gibi", "göre", "hem", "her", "ile", "ise", "için", "kadar",
        "ki", "kim", "mi", "mu", "mı", "nasıl", "ne", "neden", "nerede", "o", "olan", "olarak",
        "oldu", "olduğu", "olur", "onun", "sonra", "tarafından", "ve", "veya", "ya", "çok",
        "çünkü", "şu",
    ]),
    ("ru", &[
        "а", "бы", "был", "была", "были", "было", "быть", "в", "вам", "вас", "весь", "во", "вот",
        "все", "всё", "вы", "где", "да", "для", "до", "его", "ее", "если", "есть", "еще", "ещё",
        "её", "ж", "же", "за", "и", "из", "или", "им", "их", "к", "как", "какая", "какие", "какой",
        "ко", "когда", "кто", "ли", "меня", "мне", "мы", "на", "над", "не", "него", "нее", "нет",
        "ни", "них", "но", "ну", "о", "об", "он", "она", "они", "оно", "от", "по", "под", "при",
        "с", "со", "так", "там", "то", "тоже", "только", "том", "ты", "у", "уже", "чего", "чем",
        "что", "чтобы", "эта", "эти", "это", "этого", "этой", "этом", "этот", "я",
    ]),
    ("uk", &[
        "а", "або", "але", "б", "був", "була", "були", "було", "бути", "в", "вже", "ви", "вона",
        "вони", "воно", "від", "він", "де", "для", "до", "же", "з", "за", "зі", "й", "його",
        "кого", "коли", "ми", "на", "над", "не", "ні", "о", "об", "по", "про", "під", "та", "так",
        "також", "там", "те", "ти", "то", "того", "той", "тому", "тільки", "у", "це", "цей", "ця",
        "що", "щоб", "як", "яка", "яке", "який", "які", "є", "і", "із", "їх", "її",
    ]),
    ("ar", &[
        "أن", "أو", "إلى", "إن", "التي", "الذي", "الذين", "بعد", "بين", "ثم", "حتى", "حيث", "ذلك",
        "على", "عن", "عند", "غير", "في", "قال", "قبل", "قد", "كان", "كانت", "كل", "كما", "لا",
        "لكن", "لم", "لن", "ما", "مع", "من", "منذ", "هذا", "هذه", "هل", "هم", "هو", "هي", "و",
        "يكون",
    ]),
    ("hi", &[
        "एक", "और", "कर", "करने", "का", "कि", "किया", "की", "के", "को", "कोई", "क्या", "गया", "जो",
        "तक", "तथा", "तो", "था", "थी", "थे", "दिया", "द्वारा", "नहीं", "ने", "पर", "बाद", "भी",
        "में", "यह", "या", "ये", "वह", "वे", "साथ", "से", "हम", "ही", "हुआ", "हुई", "हुए", "है",
        "हैं", "हो", "होता", "होती",
    ]),
];

/// A set of languages: the bit at a language's place in [`STOP_WORDS`] is set.
pub(super) type Languages = u32;

/// The languages in which a word, in lower case, is a function word.
pub(super) fn languages_of(word: &str) -> Languages {
    static TABLE: LazyLock<HashMap<&'static str, Languages, RandomState>> = LazyLock::new(|| {
        let mut table = HashMap::default();
        for (at, (_, list)) in STOP_WORDS.iter().enumerate() {
            for word in *list {
                *table.entry(*word).or_default() |= 1 << at;
            }
        }
        table
    });
    // Most words are longer than all function words; they need no look-up.
    if word.len() > WORD_BYTES_MAX { 0 } else { TABLE.get(word).copied().unwrap_or(0) }
}

/// The set with one language in it; empty if the language has no list.
pub(super) fn language(code: &str) -> Languages {
    let code = match code {
        "ms" => "id",
        "nb" => "no",
        _ => code,
    };
    STOP_WORDS.iter().position(|(known, _)| *known == code).map_or(0, |at| 1 << at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_fit_the_table() {
        assert!(STOP_WORDS.len() <= Languages::BITS as usize);
        for (code, list) in STOP_WORDS {
            assert!(list.is_sorted_by(|a, b| a < b), "{code}");
            assert!(list.iter().all(|word| word.len() <= WORD_BYTES_MAX), "{code}");
        }
    }

    #[test]
    fn a_word_can_belong_to_several_languages() {
        assert_eq!(languages_of("die"), language("de") | language("nl"));
        assert_eq!(languages_of("walrus"), 0);
        assert_eq!(language("ms"), language("id"));
    }
}
