//! [`TextCounts`]: what a text is made of, counted in one pass that also turns its words into
//! numbers. Later steps compare these numbers, and never look at the text again.

use crate::main_content::blocks::mix;

/// What a text is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextCounts {
    pub words: u32,
    pub sentence_ends: u32,
    pub commas: u32,
    pub digits: u32,
    pub capitals: u32,
    pub currency_signs: u32,
    /// The same for the same words, with anything between them.
    pub hash: u64,
}

/// What a byte is to a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// No part of any.
    Gap,
    /// A letter, or a part of one.
    Letter,
    Capital,
    Digit,
    /// Begins a letter of a script that puts no spaces between words: Chinese, Japanese, Korean.
    Wide,
}

static CLASSES: [Class; 256] = {
    let mut classes = [Class::Gap; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'_' => Class::Letter,
            b'A'..=b'Z' => Class::Capital,
            b'0'..=b'9' => Class::Digit,
            0xe3..=0xed => Class::Wide,
            0x80.. => Class::Letter,
            _ => Class::Gap,
        };
        byte += 1;
    }
    classes
};

impl TextCounts {
    /// Counts what is in a text, and puts a hash of every word behind `words`: the same for small
    /// and capital letters of the Latin alphabet.
    pub(crate) fn of(text: &str, words: &mut Vec<u32>) -> Self {
        let mut counts = Self::default();
        let mut wide_letters = 0;
        let mut last = 0;
        let mut bytes = text.bytes();
        while let Some(mut byte) = bytes.next() {
            if CLASSES[usize::from(byte)] != Class::Gap {
                let mut hash = FNV_BASIS;
                loop {
                    match CLASSES[usize::from(byte)] {
                        Class::Gap => break,
                        Class::Letter => {}
                        Class::Capital => counts.capitals += 1,
                        Class::Digit => counts.digits += 1,
                        Class::Wide => wide_letters += 1,
                    }
                    // Sets the bit that tells small letters from capital ones.
                    hash = (hash ^ u32::from(byte | 0x20)).wrapping_mul(FNV_PRIME);
                    last = byte;
                    let Some(next) = bytes.next() else { break };
                    byte = next;
                }
                // The full stop and the comma of Chinese and Japanese end in this byte.
                last = if last == 0x82 { b'.' } else { last };
                counts.words += 1;
                counts.hash = mix(counts.hash, u64::from(hash));
                words.push(hash);
                if CLASSES[usize::from(byte)] != Class::Gap {
                    break;
                }
            }
            match byte {
                b',' => counts.commas += 1,
                b'$' => counts.currency_signs += 1,
                b' ' | b'\n' => counts.sentence_ends += u32::from(ends_sentence(last)),
                _ => {}
            }
            last = byte;
        }
        // Two of these letters make a word on average.
        counts.words += wide_letters / 2;
        counts.sentence_ends += u32::from(ends_sentence(last));
        counts.currency_signs += currency_signs(text);
        counts
    }
}

/// The hash of Fowler, Noll and Vo, which needs two instructions for a byte.
const FNV_BASIS: u32 = 0x811c_9dc5;
const FNV_PRIME: u32 = 0x0100_0193;

/// The hash of words in a row.
pub(crate) fn run_hash(words: &[u32]) -> u64 {
    words.iter().fold(0, |hash, word| mix(hash, u64::from(*word)))
}

fn ends_sentence(byte: u8) -> bool {
    matches!(byte, b'.' | b'!' | b'?')
}

/// Pounds, yen, euros, rupees and their like, which are more than one byte long.
fn currency_signs(text: &str) -> u32 {
    memchr::memchr2_iter(0xa3, 0x82, text.as_bytes())
        .filter(|at| {
            let before = |bytes: usize| text.as_bytes().get(at.wrapping_sub(bytes)).copied();
            before(1) == Some(0xc2) || before(1) == Some(0xe2)
        })
        .count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: TextCounts) {
        let counts = TextCounts::of(text, &mut Vec::new());
        assert_eq!(TextCounts { hash: 0, ..counts }, expect, "{text}");
    }

    #[test]
    fn letters_and_signs_are_counted() {
        let nothing = TextCounts::default();
        check("", nothing);
        check(" -- ", nothing);
        check("one", TextCounts { words: 1, ..nothing });
        check("A b, C", TextCounts { words: 3, commas: 1, capitals: 2, ..nothing });
        check("$5 or £60", TextCounts { words: 3, digits: 3, currency_signs: 2, ..nothing });
        check("Yes. No?", TextCounts { words: 2, capitals: 2, sentence_ends: 2, ..nothing });
        check("1.5 m", TextCounts { words: 3, digits: 2, ..nothing });
        // One word, and three for the seven letters.
        check("東京は大都市。", TextCounts { words: 4, sentence_ends: 1, ..nothing });
    }

    #[test]
    fn words_are_known_by_their_letters() {
        let words = |text: &str| {
            let mut words = Vec::new();
            TextCounts::of(text, &mut words);
            words
        };
        assert_eq!(words("One two, (one)").len(), 3);
        assert_eq!(words("One two"), words("one -- TWO"));
        assert_ne!(words("one"), words("two"));
        let hash = |text: &str| TextCounts::of(text, &mut Vec::new()).hash;
        assert_eq!(hash("One, two"), hash("one two."));
        assert_ne!(hash("one two"), hash("two one"));
    }
}
