//! The piece of a page's text that shows best why it was found.

use std::collections::VecDeque;

use serde::Serialize;

use crate::analysis::{Language, Stems, Words};
use crate::inert::{escape_html, is_dangerous, push_inert};

/// Words of a snippet.
const SNIPPET_WORDS: usize = 40;
/// Words shown before the first word that was found.
const WORDS_BEFORE: usize = 6;
/// How much of a text is looked at; in longer ones the best piece is nearly always this early.
const LOOKED_AT_BYTES_MAX: usize = 64 * 1024;
/// A word that occurs again in the same piece adds this share of its weight.
const AGAIN_SHARE: f32 = 0.1;
/// Longest snippet: words can be long, and some scripts write a page as one word.
const SNIPPET_CHARS_MAX: usize = 400;

/// A piece of text, harmless to show, with the words that were found in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Snippet {
    /// The text, on one line.
    pub text: String,
    /// Where the words that were found begin and end in `text`, in bytes.
    pub marks: Vec<(usize, usize)>,
}

impl Snippet {
    /// As HTML: escaped, with `<mark>` around the words that were found.
    pub fn html(&self) -> String {
        let mut html = String::with_capacity(self.text.len() + self.marks.len() * 13);
        let mut at = 0;
        for &(from, to) in &self.marks {
            escape_html(&self.text[at..from], &mut html);
            html.push_str("<mark>");
            escape_html(&self.text[from..to], &mut html);
            html.push_str("</mark>");
            at = to;
        }
        escape_html(&self.text[at..], &mut html);
        html
    }
}

/// A word that snippets look for.
pub(crate) struct Sought {
    /// Its forms, as stems.
    pub(crate) stems: Vec<String>,
    /// How telling it is.
    pub(crate) weight: f32,
}

/// The best piece of a text.
pub(crate) fn snippet(
    text: &str,
    language: Option<Language>,
    sought: &[Sought],
    stems: &mut Stems,
) -> Snippet {
    let text = looked_at(text);
    let words: Vec<Found> = find(text, language, sought, stems);
    let start = best_start(&words, sought);
    let end = (start + SNIPPET_WORDS).min(words.len());
    show(text, &words, start, end)
}

fn looked_at(text: &str) -> &str {
    let mut end = text.len().min(LOOKED_AT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A word of the text, and which of the sought words it is.
struct Found {
    from: usize,
    to: usize,
    sought: Option<usize>,
}

fn find(
    text: &str,
    language: Option<Language>,
    sought: &[Sought],
    stems: &mut Stems,
) -> Vec<Found> {
    let mut stem = String::new();
    let first_bytes = first_bytes(language, sought);
    Words::of(text)
        .map(|word| {
            let written = &text[word.from..word.to];
            let mut found = None;
            if first_bytes[usize::from(written.as_bytes()[0].to_ascii_lowercase())] {
                stems.stem(written, language, &mut stem);
                found = sought.iter().position(|sought| sought.stems.contains(&stem));
            }
            Found { from: word.from, to: word.to, sought: found }
        })
        .collect()
}

/// With which bytes words begin that can have a sought stem: stemming a whole text takes longer than
/// all else. Most languages change the ends of words only; Malay ones their beginnings too.
fn first_bytes(language: Option<Language>, sought: &[Sought]) -> [bool; 256] {
    if matches!(language.map(Language::code), Some("id" | "ms")) {
        return [true; 256];
    }
    let mut first_bytes = [false; 256];
    // Letters with accents may be folded to others.
    first_bytes[0x80..].fill(true);
    for stem in sought.iter().flat_map(|sought| &sought.stems) {
        if let Some(&first) = stem.as_bytes().first() {
            first_bytes[usize::from(first)] = true;
        }
    }
    first_bytes
}

/// The first word of the piece that has most of the sought words in it; the earliest of equal ones.
fn best_start(words: &[Found], sought: &[Sought]) -> usize {
    let mut counts = vec![0_u32; sought.len()];
    let mut window: VecDeque<(usize, usize)> = VecDeque::new();
    let mut best = (0.0, 0);
    let hits = words.iter().enumerate().filter_map(|(at, word)| Some((at, word.sought?)));
    for (at, which) in hits {
        window.push_back((at, which));
        counts[which] += 1;
        while let Some(&(first, gone)) = window.front() {
            if at - first < SNIPPET_WORDS - WORDS_BEFORE {
                break;
            }
            window.pop_front();
            counts[gone] -= 1;
        }
        let worth: f32 = counts
            .iter()
            .zip(sought)
            .filter(|(count, _)| **count > 0)
            .map(|(count, sought)| sought.weight * (1.0 + AGAIN_SHARE * (*count - 1) as f32))
            .sum();
        if worth > best.0 * 1.001 {
            best = (worth, window.front().map_or(at, |(first, _)| *first));
        }
    }
    best.1.saturating_sub(WORDS_BEFORE)
}

/// Writes the words from `start` to `end` with what stands between them.
fn show(text: &str, words: &[Found], start: usize, end: usize) -> Snippet {
    let mut snippet = Snippet::default();
    let out = &mut snippet.text;
    let Some(first) = words.get(start) else { return snippet };
    if start > 0 {
        out.push_str("… ");
    }
    let mut at = first.from;
    let mut is_cut = end < words.len();
    for word in &words[start..end] {
        if out.chars().count() > SNIPPET_CHARS_MAX {
            is_cut = true;
            break;
        }
        // Pairs of characters overlap: each begins where the last one is half over.
        let from = word.from.max(at);
        text[at..from].chars().for_each(|c| _ = push_inert(out, c));
        let mark_start = out.len();
        out.extend(text[from..word.to.max(from)].chars().filter(|&c| !is_dangerous(c)));
        at = word.to.max(at);
        if word.sought.is_some() && out.len() > mark_start {
            push_mark(&mut snippet.marks, mark_start, out.len());
        }
    }
    if is_cut {
        out.push_str(" …");
    } else {
        text[at..].chars().take(SNIPPET_CHARS_MAX).for_each(|c| _ = push_inert(out, c));
        let len = out.trim_end().len();
        out.truncate(len);
    }
    snippet
}

/// Adds a mark, joined to the one before if they touch.
fn push_mark(marks: &mut Vec<(usize, usize)>, from: usize, to: usize) {
    match marks.last_mut() {
        Some(last) if last.1 == from => last.1 = to,
        _ => marks.push((from, to)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sought(stems: &[&str]) -> Vec<Sought> {
        stems.iter().map(|stem| Sought { stems: vec![(*stem).to_owned()], weight: 1.0 }).collect()
    }

    #[track_caller]
    fn check(text: &str, stems: &[&str], expect: &str) {
        let english = Language::from_code("en");
        assert_eq!(snippet(text, english, &sought(stems), &mut Stems::default()).html(), expect);
    }

    #[test]
    fn found_words_are_marked_whatever_their_form() {
        check("A page runs, and ran.", &["run"], "A page <mark>runs</mark>, and ran.");
    }

    #[test]
    fn markup_is_text() {
        check(
            "<script>run('&')</script>",
            &["run"],
            "script&gt;<mark>run</mark>(&#39;&amp;&#39;)&lt;/script&gt;",
        );
    }

    #[test]
    fn the_best_piece_of_a_long_text_is_shown() {
        let text = format!(
            "{}alpha {}alpha beta end. {}",
            "x ".repeat(100),
            "y ".repeat(100),
            "z ".repeat(100)
        );
        let html = snippet(&text, None, &sought(&["alpha", "beta"]), &mut Stems::default()).html();
        assert!(
            html.starts_with("… y y y y y y <mark>alpha</mark> <mark>beta</mark> end. z"),
            "{html}"
        );
        assert!(html.ends_with(" …"), "{html}");
    }

    #[test]
    fn pairs_of_characters_are_marked_as_one() {
        check("東京都の天気", &["東京", "京都"], "<mark>東京都</mark>の天気");
    }

    #[test]
    fn without_found_words_the_beginning_is_shown() {
        check("Some text.", &["other"], "Some text.");
        check("", &["other"], "");
    }

    proptest! {
        #[test]
        fn snippets_are_inert(text in any::<String>(), words in "[a-z<>&\u{202e}\u{1b} ]{0,80}") {
            let text = format!("{text} {words} a b {text}");
            let snippet = snippet(&text, None, &sought(&["a", "b", "x"]), &mut Stems::default());
            prop_assert!(!snippet.text.chars().any(is_dangerous));
            let without_marks = snippet.html().replace("<mark>", "").replace("</mark>", "");
            prop_assert!(!without_marks.contains(['<', '>', '"', '\'']));
            for (from, to) in snippet.marks {
                prop_assert!(from < to && snippet.text.get(from..to).is_some());
            }
        }
    }
}
