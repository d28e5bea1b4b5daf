//! [`positions`]: how many places a pattern can be at in a text, all at once, for any text. It bounds
//! what a byte costs that is matched.

use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

/// Places that a pattern can be at in a text, all at once.
pub(super) fn positions(hir: &Hir) -> usize {
    // Its beginning is tried at every byte.
    positions_of(hir, false).saturating_add(1)
}

fn positions_of(hir: &Hir, is_repeated: bool) -> usize {
    match hir.kind() {
        HirKind::Empty => 0,
        HirKind::Look(Look::Start | Look::End | Look::StartLF | Look::EndLF) => 0,
        HirKind::Look(_) => 1,
        HirKind::Literal(text) if is_repeated => text.0.len(),
        HirKind::Literal(_) | HirKind::Class(_) => sequence(std::slice::from_ref(hir)),
        HirKind::Repetition(repetition) => repeated(repetition, is_repeated),
        HirKind::Capture(capture) => {
            // Plain text in brackets is not taken together with the text around it.
            let is_text = matches!(capture.sub.kind(), HirKind::Literal(_));
            positions_of(&capture.sub, is_repeated).saturating_add(usize::from(is_text))
        }
        HirKind::Concat(parts) if is_repeated => sum(parts),
        HirKind::Concat(parts) => sequence(parts),
        HirKind::Alternation(parts) => {
            let sum = parts.iter().map(|part| positions_of(part, is_repeated));
            let sum = sum.fold(0, usize::saturating_add);
            let most = longest_word(parts).filter(|_| !is_repeated).unwrap_or(usize::MAX);
            sum.min(most).saturating_add(1)
        }
    }
}

/// The length of the longest of some words, if they are nothing else: they are compiled as a trie, which a text
/// is in at most once for each character of a word.
fn longest_word(parts: &[Hir]) -> Option<usize> {
    let lengths = parts.iter().map(|part| match part.kind() {
        HirKind::Literal(word) => Some(word.0.len()),
        _ => None,
    });
    lengths.collect::<Option<Vec<usize>>>()?.into_iter().max()
}

fn repeated(repetition: &Repetition, is_repeated: bool) -> usize {
    let Repetition { min, max, sub, .. } = repetition;
    let times = max.unwrap_or(*min).max(1);
    let each = match sub.kind() {
        HirKind::Class(_) => 1,
        _ => positions_of(sub, is_repeated || times > 1),
    };
    each.saturating_mul(usize::try_from(times).unwrap_or(usize::MAX)).saturating_add(1)
}

/// Parts that are repeated: any of their characters may be reached again.
fn sum(parts: &[Hir]) -> usize {
    let each = parts.iter().map(|part| match part.kind() {
        HirKind::Class(_) => 1,
        _ => positions_of(part, true),
    });
    each.fold(0, usize::saturating_add)
}

/// Parts that follow each other once. Plain text, in upper or lower case, costs what it overlaps itself.
fn sequence(parts: &[Hir]) -> usize {
    let mut cost: usize = 0;
    let mut text = Vec::new();
    let mut before = None;
    for part in parts {
        if let Some(chars) = plain_text(part) {
            text.extend(chars);
        } else {
            cost = cost.saturating_add(overlaps(&text));
            text.clear();
            let own = match part.kind() {
                HirKind::Class(_) => 1,
                HirKind::Repetition(repetition) if is_entered_once(before, repetition) => 1,
                _ => positions_of(part, false),
            };
            cost = cost.saturating_add(own);
        }
        before = Some(part);
    }
    cost.saturating_add(overlaps(&text))
}

/// The characters of a literal, or the one that a class means in upper and lower case.
fn plain_text(part: &Hir) -> Option<Vec<char>> {
    match part.kind() {
        HirKind::Literal(literal) => {
            let text = str::from_utf8(&literal.0).ok();
            Some(text.map_or_else(
                || literal.0.iter().copied().map(char::from).collect(),
                |text| text.chars().map(folded).collect(),
            ))
        }
        HirKind::Class(Class::Unicode(class)) => {
            let ranges = class.ranges();
            let first = folded(ranges.first()?.start());
            let is_one = |char| folded(char) == first;
            let is_case = ranges.iter().all(|it| it.start() == it.end() && is_one(it.start()));
            is_case.then(|| vec![first])
        }
        HirKind::Class(Class::Bytes(_))
        | HirKind::Empty
        | HirKind::Look(_)
        | HirKind::Repetition(_)
        | HirKind::Capture(_)
        | HirKind::Concat(_)
        | HirKind::Alternation(_) => None,
    }
}

/// One character for all its cases, where a single one stands for them.
fn folded(char: char) -> char {
    let lower = char.to_lowercase().next().unwrap_or(char);
    lower.to_uppercase().next().unwrap_or(lower)
}

/// Whether a class is repeated, as in `/\d{4}`, behind a character that is not in it: it is not begun a second
/// time before it has ended.
fn is_entered_once(before: Option<&Hir>, repetition: &Repetition) -> bool {
    let Some(HirKind::Literal(before)) = before.map(Hir::kind) else { return false };
    let last = before.0.last().copied().filter(u8::is_ascii).map(char::from);
    let (Some(last), HirKind::Class(class)) = (last, repetition.sub.kind()) else { return false };
    match class {
        Class::Unicode(class) => {
            !class.ranges().iter().any(|it| (it.start()..=it.end()).contains(&last))
        }
        Class::Bytes(class) => {
            !class.ranges().iter().any(|it| (it.start()..=it.end()).contains(&(last as u8)))
        }
    }
}

/// How often a text can have begun within itself, not counting once, as `/login/` has: `aaaa` twice, `abcd`
/// never. By the failure function of Knuth, Morris and Pratt: the beginnings of a text that it ends with.
fn overlaps(text: &[char]) -> usize {
    let mut border = vec![0; text.len()];
    let mut depth = vec![0_usize; text.len() + 1];
    let mut most = 0;
    for at in 1..text.len() {
        let mut length = border[at - 1];
        while length > 0 && text[length] != text[at] {
            length = border[length - 1];
        }
        length += usize::from(text[length] == text[at]);
        border[at] = length;
        depth[at + 1] = if length > 0 { depth[length] + 1 } else { 0 };
        most = most.max(depth[at + 1]);
    }
    most.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, expect: usize) {
        assert_eq!(positions(&regex_syntax::parse(pattern).unwrap()), 1 + expect, "{pattern}");
    }

    #[test]
    fn plain_text_costs_what_it_overlaps_itself() {
        check("login", 0);
        check("(?i)/login/tasks", 0);
        check("ababab", 1);
        check("aaaa", 2);
        check("(?i)aAaA", 2);
        check("(a)(a)(a)(a)", 4);
        check(r"a\Ba\Ba", 2);
        check("^abc$", 0);
    }

    #[test]
    fn what_is_left_open_is_counted() {
        check("[ab]", 1);
        check("[ab][ab]", 2);
        check("[ab]{9}", 10);
        check(r"(?:ab){9}", 19);
        check(r"(?:a[bc]){9}", 19);
        check("a*", 1);
        check(".*", 2);
        check("(pdf|zip)", 1);
    }

    #[test]
    fn a_class_behind_another_character_is_entered_once() {
        check(r"/\d{4}/", 1);
        check("=[^=]+", 1);
        check("a[ab]{9}", 10);
        check(r"(?:/\d{4}){9}", 55);
    }
}
