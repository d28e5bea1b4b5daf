//! [`PageLook`]: how a page looks, so that pages that say the same under many addresses are told
//! from pages that say something. Pure.

use std::collections::HashSet;

use telusur_model::PageUrl;
use xxhash_rust::xxh3::xxh3_64;

use crate::soft_404::simhash;

/// Bits in which the fingerprints of two look-alikes may differ.
const BITS_MAX: u32 = 3;
/// Words of a page that are looked at: what it repeats stands at its beginning.
const WORDS_MAX: usize = 2000;
/// Numbers by which two look-alikes may differ, their own addresses' apart: the next page, the page
/// before, a time. Pages of data differ in more.
const NUMBERS_MAX: usize = 3;

/// How a page looks, apart from what it repeats of its own address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageLook {
    title: u64,
    words: u64,
    numbers: HashSet<u64>,
    has_text: bool,
}

impl PageLook {
    pub(crate) fn of(url: &PageUrl, title: &str, text: &str) -> Self {
        let own = own_words(url);
        let (mut words, mut numbers) = (Vec::new(), HashSet::new());
        for word in split(text).filter(|word| !own.contains(*word)).take(WORDS_MAX) {
            if has_digit(word) {
                numbers.insert(xxh3_64(word.as_bytes()));
            } else {
                words.push(word);
            }
        }
        let has_text = split(title).chain(split(text)).next().is_some();
        let words = simhash(&words.join(" "));
        Self { title: title_key(url, title), words, numbers, has_text }
    }

    /// Whether the page says anything at all, be it its own address.
    pub(crate) fn has_text(&self) -> bool {
        self.has_text
    }

    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.title == other.title
            && (self.words ^ other.words).count_ones() <= BITS_MAX
            && self.numbers.difference(&other.numbers).count() <= NUMBERS_MAX
            && other.numbers.difference(&self.numbers).count() <= NUMBERS_MAX
    }
}

/// A title without its numbers and what it repeats of the address: cheap to compare.
pub(crate) fn title_key(url: &PageUrl, title: &str) -> u64 {
    let own = own_words(url);
    let words = split(title).filter(|word| !own.contains(*word) && !has_digit(word));
    xxh3_64(words.collect::<Vec<_>>().join(" ").as_bytes())
}

/// The words of an address that a page at it may repeat.
fn own_words(url: &PageUrl) -> HashSet<&str> {
    split(url.path()).chain(split(url.query().unwrap_or_default())).collect()
}

fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty())
}

fn has_digit(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(path: &str, title: &str, text: &str) -> PageLook {
        let url = PageUrl::parse(&format!("http://a.org{path}")).unwrap();
        PageLook::of(&url, title, text)
    }

    const TEXT: &str =
        "you have come to a room with many doors all of which look the same choose one";

    #[test]
    fn pages_that_only_repeat_their_address_look_alike() {
        let room = |n: u32| {
            let text = format!("{TEXT}: door {} or {}. This is room {n}", n + 1, n - 1);
            look(&format!("/room/{n}"), &format!("Room {n}"), &text)
        };
        assert!(room(7).is_like(&room(8)));
        let maze = |word: &str| look(&format!("/m/{word}"), word, &format!("{TEXT} {word}"));
        assert!(maze("xkq").is_like(&maze("zzy")));
    }

    #[test]
    fn pages_that_say_something_do_not() {
        let one = look("/item/1", "Lamp", &format!("{TEXT} a lamp of brass"));
        assert!(!one.is_like(&look("/item/2", "Chair", &format!("{TEXT} a lamp of brass"))));
        let table = |path: &str, numbers: &str| look(path, "Values", &format!("{TEXT} {numbers}"));
        assert!(!table("/v/1", "3 17 21 88").is_like(&table("/v/2", "5 19 30 77")));
        let words = "nothing of what stands here stands on any other page of this small site";
        assert!(!one.is_like(&look("/item/2", "Lamp", words)));
    }
}
