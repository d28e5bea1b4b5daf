//! Pages that say they exist and do not. A host is asked for an address that nobody made; what it
//! answers with status 200 is how its missing pages look.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use telusur_model::{NotFoundLook, PageUrl, ParsedPage, RawPage};
use xxhash_rust::xxh3::xxh3_64;

/// Bits in which the fingerprints of two texts may differ. A page that repeats the address it was
/// asked for differs in a few words.
const BITS_MAX: u32 = 3;
/// Words that are hashed together: single words do not tell two pages of one site apart.
const SHINGLE_WORDS: usize = 3;

/// How the missing pages of origins look, as far as they hide it.
#[derive(Debug, Default)]
pub(crate) struct SoftNotFound {
    /// Read for every page and written once per origin.
    looks: RwLock<HashMap<String, NotFoundLook>>,
}

impl SoftNotFound {
    pub(crate) fn learn(&self, origin: String, look: NotFoundLook) {
        if look != NotFoundLook::Honest {
            self.looks.write().unwrap_or_else(PoisonError::into_inner).insert(origin, look);
        }
    }

    /// Whether it is known how the missing pages of this origin look, so that each must be compared.
    pub(crate) fn is_known(&self, url: &PageUrl) -> bool {
        let looks = self.looks.read().unwrap_or_else(PoisonError::into_inner);
        !looks.is_empty() && looks.contains_key(&url.origin())
    }

    /// Whether a page looks like the missing pages of its origin.
    pub(crate) fn is_one(&self, page: &RawPage, parsed: &ParsedPage) -> bool {
        let looks = self.looks.read().unwrap_or_else(PoisonError::into_inner);
        if looks.is_empty() || !(200..300).contains(&page.status) {
            return false;
        }
        // What is not read as text, such as JSON, has no look.
        if parsed.visible_text.is_empty() && parsed.title.is_none() {
            return false;
        }
        match looks.get(&page.url.origin()) {
            Some(NotFoundLook::Soft { fingerprint, title_hash }) => {
                *title_hash == hash_title(parsed)
                    && (fingerprint ^ simhash(&parsed.visible_text)).count_ones() <= BITS_MAX
            }
            Some(NotFoundLook::Honest) | None => false,
        }
    }
}

/// How an origin looks that answered so for an address that nobody made. A server that is in trouble
/// or asks us to slow down has not said how.
pub(crate) fn look_of(page: &RawPage, parsed: &ParsedPage) -> Option<NotFoundLook> {
    match page.status {
        200..300 => Some(NotFoundLook::Soft {
            fingerprint: simhash(&parsed.visible_text),
            title_hash: hash_title(parsed),
        }),
        408 | 425 | 429 | 500.. => None,
        _ => Some(NotFoundLook::Honest),
    }
}

fn hash_title(parsed: &ParsedPage) -> u64 {
    xxh3_64(parsed.title.as_deref().unwrap_or_default().as_bytes())
}

/// Charikar's hash: texts that share most of their shingles differ in few bits.
pub(crate) fn simhash(text: &str) -> u64 {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut sums = [0_i32; 64];
    for shingle in words.windows(SHINGLE_WORDS.min(words.len()).max(1)) {
        let hash = xxh3_64(shingle.join(" ").as_bytes());
        for (bit, sum) in sums.iter_mut().enumerate() {
            *sum += if hash >> bit & 1 == 1 { 1 } else { -1 };
        }
    }
    let bits = sums.iter().enumerate().filter(|(_, sum)| **sum > 0);
    bits.fold(0, |hash, (bit, _)| hash | 1 << bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str, title: &str) -> (RawPage, ParsedPage) {
        let raw = RawPage {
            url: PageUrl::parse("http://a.org/x").unwrap(),
            status: 200,
            headers: Vec::new(),
            body: Default::default(),
            truncated: false,
            wire_bytes: 0,
        };
        let parsed = ParsedPage {
            title: Some(title.to_owned()),
            visible_text: text.to_owned(),
            ..Default::default()
        };
        (raw, parsed)
    }

    const MENU: &str = "home news shop about us contact privacy terms jobs press blog help \
        downloads partners events forum wiki status support team history imprint newsletter";

    #[test]
    fn pages_for_what_does_not_exist_are_told_from_those_that_do() {
        let (raw, missing) = page(&format!("{MENU} we could not find /a1b2c3 here"), "Oops");
        let known = SoftNotFound::default();
        assert!(!known.is_one(&raw, &missing));
        known.learn("http://a.org".to_owned(), look_of(&raw, &missing).unwrap());
        assert!(known.is_one(&raw, &missing));
        let (raw, real) = page(&format!("{MENU} our new coffee is here since monday"), "Coffee");
        assert!(!known.is_one(&raw, &real));
    }

    #[test]
    fn what_is_not_read_as_text_looks_like_nothing() {
        let (raw, _) = page("", "");
        let parsed = ParsedPage::default();
        let known = SoftNotFound::default();
        known.learn("http://a.org".to_owned(), look_of(&raw, &parsed).unwrap());
        assert!(!known.is_one(&raw, &parsed));
    }

    #[test]
    fn an_honest_host_is_believed() {
        let (raw, parsed) = page(MENU, "Not found");
        let raw = RawPage { status: 404, ..raw };
        assert_eq!(look_of(&raw, &parsed), Some(NotFoundLook::Honest));
        let busy = RawPage { status: 503, ..raw };
        assert_eq!(look_of(&busy, &parsed), None);
    }
}
