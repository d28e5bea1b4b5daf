//! How often letters, and three of them in a row, occur in each language. A text is in the language
//! in which its letters are the most to be expected.
//!
//! `data/README.md` says where the table comes from, and `examples/learn_languages.rs` made it.

/// The code of a language, padded with zeros.
type Code = [u8; 3];
/// One to three letters of two bytes each, padded with zeros.
type Letters = [u8; 6];
/// Where the weights of letters begin.
type Start = [u8; 4];
/// The number of a language, and how much more than never the letters are seen in it.
type Weight = [u8; 2];

static TABLE: &[u8] = include_bytes!("../../data/languages.bin");
/// Steps of a weight per factor of e.
const STEPS: u32 = 24;
/// A lead of a factor of e to the power of this is certain.
const CERTAIN: u32 = 40 * STEPS;
/// Letters that are read at least before one language can have won.
const LETTERS_MIN: u32 = 30;

/// The parts of the table. All are sorted by letters.
struct Table {
    codes: &'static [Code],
    letters: &'static [Letters],
    starts: &'static [Start],
    weights: &'static [Weight],
}

impl Table {
    fn get() -> Self {
        let (&languages, rest) = TABLE.split_first().expect("a table is built in");
        let (codes, rest) = rest.split_at(usize::from(languages) * size_of::<Code>());
        let (letters, rest) = rest.split_at(size_of::<Start>());
        let letters = number(letters.as_chunks().0[0]);
        let (letters, rest) = rest.split_at(letters * size_of::<Letters>());
        let letters: &[Letters] = letters.as_chunks().0;
        let (starts, weights) = rest.split_at((letters.len() + 1) * size_of::<Start>());
        Self {
            codes: codes.as_chunks().0,
            letters,
            starts: starts.as_chunks().0,
            weights: weights.as_chunks().0,
        }
    }

    fn weights_of(&self, letters: &Letters) -> &'static [Weight] {
        let Ok(at) = self.letters.binary_search(letters) else { return &[] };
        &self.weights[number(self.starts[at])..number(self.starts[at + 1])]
    }

    fn code(&self, language: usize) -> &'static str {
        let code = &self.codes[language];
        let end = code.iter().position(|byte| *byte == 0).unwrap_or(code.len());
        std::str::from_utf8(&code[..end]).expect("codes are letters")
    }
}

fn number(bytes: Start) -> usize {
    u32::from_le_bytes(bytes) as usize
}

/// What the letters of a text say.
pub(super) struct Spelling {
    table: Table,
    /// How much each language is to be expected.
    scores: Vec<u32>,
}

impl Spelling {
    /// Reads a text until one language has won. `None` if it has no letters of any language.
    pub(super) fn of(text: &str) -> Option<Self> {
        let table = Table::get();
        let mut spelling = Self { scores: vec![0; table.codes.len()], table };
        let (mut word_letters, mut letters) = (0, 0);
        let mut last_three = [0; 3];
        for letter in text.chars().flat_map(char::to_lowercase) {
            let Some(letter) = plain(letter) else {
                let is_word_end = std::mem::take(&mut word_letters) > 0;
                if is_word_end && letters >= LETTERS_MIN && spelling.has_winner() {
                    break;
                }
                continue;
            };
            letters += 1;
            word_letters += 1;
            spelling.add(&[letter]);
            last_three = [last_three[1], last_three[2], letter];
            if word_letters >= 3 {
                spelling.add(&last_three);
            }
        }
        spelling.scores.iter().any(|score| *score > 0).then_some(spelling)
    }

    fn add(&mut self, letters: &[u16]) {
        for [language, weight] in self.table.weights_of(&packed(letters)) {
            self.scores[usize::from(*language)] += u32::from(*weight);
        }
    }

    /// Whether the best is beyond reach of the second best.
    fn has_winner(&self) -> bool {
        let (mut best, mut second) = (0, 0);
        for &score in &self.scores {
            if score > best {
                (best, second) = (score, best);
            } else {
                second = second.max(score);
            }
        }
        best - second >= CERTAIN
    }

    /// The code of the language that is to be expected the most.
    pub(super) fn best(&self) -> &'static str {
        let best = (0..self.scores.len()).max_by_key(|language| self.scores[*language]);
        best.map_or("", |language| self.table.code(language))
    }

    /// Whether the text may just as well be in this language. `None` if nothing is known about it.
    pub(super) fn may_be(&self, code: &str) -> Option<bool> {
        let other = (0..self.scores.len()).find(|language| self.table.code(*language) == code)?;
        let best = self.scores.iter().max()?;
        Some(best - self.scores[other] < CERTAIN)
    }
}

/// Letters of two bytes; nearly all that are written are.
fn plain(letter: char) -> Option<u16> {
    u16::try_from(u32::from(letter)).ok().filter(|_| letter.is_alphabetic())
}

fn packed(letters: &[u16]) -> Letters {
    let mut packed = Letters::default();
    for (bytes, letter) in packed.as_chunks_mut().0.iter_mut().zip(letters) {
        *bytes = letter.to_be_bytes();
    }
    packed
}
