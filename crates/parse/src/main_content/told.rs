//! [`Told`]: what a page tells machines about its content, in its descriptions and its structured
//! data. A block that says the same is most likely part of that content.

use crate::main_content::quick_hash::QuickMap;
use crate::main_content::words::{TextCounts, run_hash};
use crate::text::cut;

/// Words of a run: two texts that share a run of three are seldom strangers to each other.
const RUN_WORDS: usize = 3;
/// Text of one page that is taken in: more than the longest article of 993 real pages.
const BYTES_MAX: usize = 512 << 10;

/// What a text that machines are told is about.
#[derive(Clone, Copy)]
pub(crate) enum Telling {
    /// The content in short.
    Description = 1,
    /// The content itself.
    Body = 2,
}

/// What a page tells machines, as runs of words.
#[derive(Default)]
pub(crate) struct Told {
    /// For every run, the bits of the tellings that it stands in.
    runs: QuickMap<u64, u8>,
    /// The bits of all tellings.
    tellings: u8,
    words: Vec<u32>,
    bytes: usize,
    pub body_words: u32,
}

impl Told {
    /// Takes a text in.
    pub(crate) fn tell(&mut self, telling: Telling, text: &str) {
        let text = cut(text, BYTES_MAX - self.bytes);
        self.bytes += text.len();
        self.words.clear();
        let counts = TextCounts::of(text, &mut self.words);
        for run in self.words.windows(RUN_WORDS) {
            *self.runs.entry(run_hash(run)).or_default() |= telling as u8;
            self.tellings |= telling as u8;
        }
        if let Telling::Body = telling {
            self.body_words += counts.words;
        }
    }

    /// The share of the runs of a block that stand in a description and in a body; -1 where there
    /// is none.
    pub(crate) fn shares(&self, words: &[u32]) -> [f32; 2] {
        let mut found = [0u32; 2];
        if self.tellings != 0 {
            for run in words.windows(RUN_WORDS) {
                let tellings = self.runs.get(&run_hash(run)).copied().unwrap_or_default();
                found[0] += u32::from(tellings & Telling::Description as u8 != 0);
                found[1] += u32::from(tellings & Telling::Body as u8 != 0);
            }
        }
        let runs = words.len().saturating_sub(RUN_WORDS - 1).max(1) as f32;
        let share = |telling: Telling, found: u32| {
            if self.tellings & telling as u8 == 0 { -1.0 } else { found as f32 / runs }
        };
        [share(Telling::Description, found[0]), share(Telling::Body, found[1])]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(told: &Told, text: &str, expect: [f32; 2]) {
        let mut words = Vec::new();
        TextCounts::of(text, &mut words);
        assert_eq!(told.shares(&words), expect, "{text}");
    }

    #[test]
    fn what_was_told_is_found_again() {
        let mut told = Told::default();
        check(&told, "one two three", [-1.0, -1.0]);
        told.tell(Telling::Description, "One, two, three.");
        check(&told, "one two three four", [0.5, -1.0]);
        told.tell(Telling::Body, "two three four");
        check(&told, "one two three four", [0.5, 0.5]);
        check(&told, "one two", [0.0, 0.0]);
        assert_eq!(told.body_words, 3);
    }

    #[test]
    fn no_more_than_the_limit_is_taken_in() {
        let mut told = Told::default();
        told.tell(Telling::Body, &"one two three ".repeat(BYTES_MAX / 10));
        let words = told.body_words;
        told.tell(Telling::Body, "four five six");
        assert_eq!(told.body_words, words);
    }
}
