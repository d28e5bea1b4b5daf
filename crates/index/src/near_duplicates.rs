//! Finds pages that say the same. A [`Sketch`] is 64 bits of a text: the share of bits that two
//! sketches have in common estimates how many of their three-word runs they share.
//!
//! One-permutation MinHash keeping one bit per bin (Li, König: b-Bit Minwise Hashing, 2010; Li, Owen,
//! Zhang: One Permutation Hashing, 2012). Runs of words, because single words call all news of one
//! topic the same.

use xxhash_rust::xxh3::xxh3_64;

use crate::analysis::{Language, Words, lower};

/// Bins, each of which gives one bit.
const BINS: usize = 64;
/// Fewest words of a text that is compared at all: short pages share their frame, not their content.
const WORDS_MIN: usize = 30;
/// Bits that two sketches must share. Unrelated texts share 32 of 64 with a standard deviation of 4;
/// texts that share nine of ten runs share 61.
const SAME_BITS_MIN: u32 = 54;

/// A text's sketch, as a number; 0 for a text that is too short to be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sketch(pub u64);

impl Sketch {
    /// Sketches a text.
    pub fn of(text: &str) -> Self {
        Profile::of(text, None).sketch
    }

    /// Whether two texts are nearly the same.
    pub fn is_near(self, other: Self) -> bool {
        self.0 != 0 && other.0 != 0 && (self.0 ^ other.0).count_zeros() >= SAME_BITS_MIN
    }
}

/// What one reading of a text tells about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Profile {
    /// Its sketch.
    pub(crate) sketch: Sketch,
    /// How many of its words say what it is about. Function words, single characters and numbers
    /// make a text longer, not richer.
    pub(crate) content_words: usize,
}

impl Profile {
    /// Reads a text.
    pub(crate) fn of(text: &str, language: Option<Language>) -> Self {
        let mut least = [u64::MAX; BINS];
        let mut run = [0_u64; 3];
        let (mut words, mut content_words) = (0, 0);
        let mut lowered = String::new();
        let stop_words = language.map(Language::stop_words).unwrap_or_default();
        for word in Words::of(text) {
            lower(&text[word.from..word.to], &mut lowered);
            let says_little = lowered.len() == 1
                || lowered.bytes().all(|byte| byte.is_ascii_digit())
                || stop_words.has(&lowered);
            content_words += usize::from(!says_little);
            run = [run[1], run[2], xxh3_64(lowered.as_bytes())];
            words += 1;
            if words >= 3 {
                let mixed = mix(run[0] ^ run[1].rotate_left(21) ^ run[2].rotate_left(42));
                let bin = usize::try_from(mixed >> 58).expect("six bits");
                least[bin] = least[bin].min(mixed << 6);
            }
        }
        let sketch = Sketch(if words < WORDS_MIN { 0 } else { bits_of(least) });
        Self { sketch, content_words }
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
