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
/// Numbers of a page that are kept, those with the smallest hashes: a sample that two pages with the
/// same numbers share. A look takes some 300 bytes.
const NUMBERS_KEPT: usize = 32;

/// How a page looks, apart from what it repeats of its own address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageLook {
    title: u64,
    words: u64,
    numbers: Numbers,
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
        let (words, numbers) = (simhash(&words.join(" ")), Numbers::of(numbers));
        Self { title: title_key(url, title), words, numbers, has_text }
    }

    /// Whether the page says anything at all, be it its own address.
    pub(crate) fn has_text(&self) -> bool {
        self.has_text
    }

    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.title == other.title
            && (self.words ^ other.words).count_ones() <= BITS_MAX
            && self.numbers.is_like(&other.numbers)
    }
}

/// The numbers that a page says, as a sample of their hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Numbers {
    /// Sorted.
    kept: Box<[u64]>,
    count: usize,
}

impl Numbers {
    fn of(all: HashSet<u64>) -> Self {
        let count = all.len();
        let mut kept: Vec<u64> = all.into_iter().collect();
        kept.sort_unstable();
        kept.truncate(NUMBERS_KEPT);
        Self { kept: kept.into_boxed_slice(), count }
    }

    fn is_like(&self, other: &Self) -> bool {
        // Up to here both samples hold all that their pages have.
        let end = self.end().min(other.end());
        let differ_max = |one: &Self| (NUMBERS_MAX * one.kept.len()).div_ceil(one.count.max(1));
        let lacks = |one: &Self, two: &Self| {
            let common = one.kept.iter().take_while(|hash| **hash <= end);
            common.filter(|hash| two.kept.binary_search(hash).is_err()).count()
        };
        self.count.abs_diff(other.count) <= NUMBERS_MAX
            && lacks(self, other) <= differ_max(self)
            && lacks(other, self) <= differ_max(other)
    }

    /// The greatest hash up to which every number of the page is in the sample.
    fn end(&self) -> u64 {
        match self.kept.last() {
            Some(last) if self.count > self.kept.len() => *last,
            Some(_) | None => u64::MAX,
        }
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

    /// A page of two thousand numbers costs no more than one of some dozens.
    #[test]
    fn many_numbers_are_compared_by_a_sample() {
        let table = |first: u32, last: u32| {
            let numbers: Vec<String> = (first..last).map(|n| n.to_string()).collect();
            look("/v", "Values", &format!("{TEXT} {}", numbers.join(" ")))
        };
        assert_eq!(table(10_000, 11_900).numbers.kept.len(), NUMBERS_KEPT);
        assert!(table(10_000, 11_900).is_like(&table(10_000, 11_900)));
        assert!(table(10_000, 10_033).is_like(&table(10_001, 10_034)));
        assert!(!table(10_000, 11_900).is_like(&table(20_000, 21_900)));
        assert!(!table(10_000, 11_900).is_like(&table(10_000, 10_100)));
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
