//! Finds pages that say the same. A [`Sketch`] is 64 bits of a text: the share of bits that two
//! sketches have in common estimates how many of their three-word runs they share.
//!
//! One-permutation MinHash keeping one bit per bin (Li, König: b-Bit Minwise Hashing, 2010; Li, Owen,
//! Zhang: One Permutation Hashing, 2012). Runs of words, because single words call all news of one
//! topic the same.

use xxhash_rust::xxh3::xxh3_64;

use crate::analysis::{Words, lower};

/// Bins, each of which gives one bit.
const BINS: usize = 64;
/// Fewest words of a text that is compared at all: short pages share their frame, not their content.
const WORDS_MIN: usize = 30;
/// Bits that two sketches must share. Unrelated texts share 32 of 64 with a standard deviation of 4;
/// texts that share nine of ten runs share 61.
const SAME_BITS_MIN: u32 = 54;

/// A text's sketch, as a number; 0 for a text that is too short to be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sketch(pub u64);

impl Sketch {
    /// Sketches a text.
    pub fn of(text: &str) -> Self {
        let mut sketcher = Sketcher::default();
        let mut lowered = String::new();
        for word in Words::of(text) {
            lower(&text[word.from..word.to], &mut lowered);
            sketcher.push(xxh3_64(lowered.as_bytes()));
        }
        sketcher.finish()
    }

    /// Whether two texts are nearly the same.
    pub fn is_near(self, other: Self) -> bool {
        self.0 != 0 && other.0 != 0 && (self.0 ^ other.0).count_zeros() >= SAME_BITS_MIN
    }
}

/// Sketches a text word by word.
pub(crate) struct Sketcher {
    /// The least hash that fell into each bin.
    least: [u64; BINS],
    /// The last three words.
    run: [u64; 3],
    words: usize,
}

impl Default for Sketcher {
    fn default() -> Self {
        Self { least: [u64::MAX; BINS], run: [0; 3], words: 0 }
    }
}

impl Sketcher {
    /// Takes the hash of the next word.
    pub(crate) fn push(&mut self, word: u64) {
        self.run = [self.run[1], self.run[2], word];
        self.words += 1;
        if self.words >= 3 {
            let [first, second, third] = self.run;
            let mixed = mix(first ^ second.rotate_left(21) ^ third.rotate_left(42));
            let bin = usize::try_from(mixed >> 58).expect("six bits");
            self.least[bin] = self.least[bin].min(mixed << 6);
        }
    }

    /// The sketch of all words so far.
    pub(crate) fn finish(self) -> Sketch {
        Sketch(if self.words < WORDS_MIN { 0 } else { bits_of(self.least) })
    }
}

/// One bit per bin. An empty bin borrows from the next full one, in a way that depends on the
/// distance, so that two texts that lack the same bins still agree on them.
fn bits_of(least: [u64; BINS]) -> u64 {
    let mut bits = 0;
    for bin in 0..BINS {
        let full = (0..BINS).find(|distance| least[(bin + distance) % BINS] != u64::MAX);
        let Some(distance) = full else { return 0 };
        let salt =
            u64::try_from(distance).expect("less than 64").wrapping_mul(0x9E37_79B9_7F4A_7C15);
        bits |= (mix(least[(bin + distance) % BINS] ^ salt) & 1) << bin;
    }
    // Zero means "not compared".
    bits.max(1)
}

/// The finaliser of SplitMix64: every bit of the input reaches every bit of the output.
fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(words: std::ops::Range<u32>) -> String {
        words.map(|number| format!("word{} ", number * 7919 % 1009)).collect()
    }

    #[test]
    fn a_changed_ending_is_still_the_same_text() {
        let one = Sketch::of(&text(0..400));
        assert!(one.is_near(Sketch::of(&text(0..410))));
        assert!(one.is_near(Sketch::of(&text(0..400).to_uppercase())));
        assert!(!one.is_near(Sketch::of(&text(500..900))));
    }

    #[test]
    fn the_order_of_words_matters() {
        let words = text(0..400);
        let backward: Vec<&str> = words.split(' ').rev().collect();
        assert!(!Sketch::of(&words).is_near(Sketch::of(&backward.join(" "))));
    }

    #[test]
    fn short_texts_are_not_compared() {
        assert_eq!(Sketch::of("a few words only"), Sketch(0));
        assert!(!Sketch(0).is_near(Sketch(0)));
    }
}
