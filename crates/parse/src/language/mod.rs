//! The language of a text, by its letters and by what the page declares (`docs/decisions/0012`).

mod letters;
mod malay;

use self::letters::Spelling;
use self::malay::told_apart;
use crate::text::cut;

/// Bytes of text that are looked at; most texts need less.
const SAMPLE_BYTES: usize = 640;
/// Fewer letters than this are a name or a number, in any language.
const SAMPLE_BYTES_MIN: usize = 20;

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
    let spelling = if sample.len() < SAMPLE_BYTES_MIN { None } else { Spelling::of(sample) };
    let Some(spelling) = spelling else { return Language { detected: None, decided: declared } };
    let best = spelling.best();
    let told = if is_malayan(best) { told_apart(sample) } else { None };
    let detected = told.unwrap_or(best);
    let page_knows_better = declared.as_deref().is_some_and(|declared| match told {
        Some(_) if is_malayan(declared) => false,
        // Neighbours are easily confused; and what the table lacks, the page alone can know.
        _ => spelling.may_be(declared).unwrap_or(true),
    });
    let decided = if page_knows_better { declared } else { Some(detected.to_owned()) };
    Language { detected: Some(detected), decided }
}

/// Whether this is one of the two that differ by a few words.
fn is_malayan(code: &str) -> bool {
    matches!(code, "id" | "ms")
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
    fn what_the_page_declares() {
        check("", Some("en-GB"), "en");
        check("42", Some("in"), "id");
        check("42", Some("nonsense"), "");
        // Breton is not among the languages that can be detected.
        check(
            "Dieub ha par en o dellezegezh hag o gwirioù eo ganet an holl dud.",
            Some("br"),
            "br",
        );
        check(
            "The page says one thing and the text says another, as often happens.",
            Some("de"),
            "en",
        );
    }
}
