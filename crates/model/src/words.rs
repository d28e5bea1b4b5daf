//! The words of enums: each variant has one, in every interface.

/// Gives an enum without fields its words: `WORDS`, `word()` and `from_word()`.
macro_rules! words {
    ($type:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $type {
            /// All words, in the order of the variants.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// Its word.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Reads the word.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

pub(crate) use words;

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use serde::Serialize;

    use crate::{
        Change, Direction, Fairness, FinishReason, HttpVersion, Keep, LegState, PauseReason,
        Resume, RobotsRules, ScopeKind, Via,
    };

    /// What is stored and what is shown is one word, and it leads back.
    #[track_caller]
    fn check<T: Copy + Debug + Serialize>(
        words: &[&str],
        word: fn(T) -> &'static str,
        from_word: fn(&str) -> Option<T>,
    ) {
        for text in words {
            let one = from_word(text).unwrap();
            assert_eq!((word(one), serde_json::to_value(one).unwrap()), (*text, (*text).into()));
        }
        assert!(from_word("").is_none() && from_word("EQUAL").is_none());
    }

    #[test]
    fn words_are_those_that_are_stored_and_lead_back() {
        check(Change::WORDS, Change::word, Change::from_word);
        check(Direction::WORDS, Direction::word, Direction::from_word);
        check(Fairness::WORDS, Fairness::word, Fairness::from_word);
        check(FinishReason::WORDS, FinishReason::word, FinishReason::from_word);
        check(HttpVersion::WORDS, HttpVersion::word, HttpVersion::from_word);
        check(Keep::WORDS, Keep::word, Keep::from_word);
        check(LegState::WORDS, LegState::word, LegState::from_word);
        check(PauseReason::WORDS, PauseReason::word, PauseReason::from_word);
        check(Resume::WORDS, Resume::word, Resume::from_word);
        check(RobotsRules::WORDS, RobotsRules::word, RobotsRules::from_word);
        check(ScopeKind::WORDS, ScopeKind::word, ScopeKind::from_word);
        check(Via::WORDS, Via::word, Via::from_word);
    }
}
