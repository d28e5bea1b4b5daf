//! [`PatternSet`]: the regular expressions of a user, compiled as one set within one budget. The budget is
//! for all of them together: ninety small patterns must not cost ninety times what one may.

mod positions;

use std::sync::Arc;

use regex::{RegexSet, RegexSetBuilder};
use regex_syntax::ast::{self, Ast, ClassSetItem, Flag, Flags};
use regex_syntax::hir::translate::Translator;

use crate::ScopeError;
use positions::positions;

/// Source text of one pattern.
pub(crate) const SOURCE_BYTES_MAX: usize = 64 << 10;
/// Source text of all patterns of a set: parsed, each byte takes some hundred, and a microsecond where case
/// is ignored.
const SOURCES_BYTES_MAX: usize = 64 << 10;
/// Large character classes (`\w`, `\p{L}`, `[^a]`) of a set. Each is some 6 KB before anything is
/// compiled, and no pattern for addresses needs more than a few.
const CLASSES_MAX: usize = 1000;
/// What one of them counts for where case is ignored and every character of it is looked up: half a
/// millisecond.
const FOLDED_CLASS_COST: usize = 10;
/// What a class of up to all characters, `[\x{0}-\x{10FFFF}]`, counts for there: seven milliseconds.
const FOLDED_WIDE_COST: usize = 200;
/// A range of more characters than this is a large class, one of ten times as many a wide one.
const RANGE_CHARS_MAX: u32 = 1000;

/// Positions times bytes that one request may match: about 0.2 s.
const MATCH_WORK_MAX: usize = 4 << 20;
/// Bytes of plain text in patterns that cost as much as a position: few of them are matched at once.
const LITERAL_BYTES_PER_POSITION: usize = 16;

/// What a set of patterns may cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PatternLimits {
    /// Compiled size of all patterns together.
    pub(crate) bytes_max: usize,
    /// Places that the patterns can be at in a text, all at once, when repetitions are written out: `[a-z]{9}`
    /// has nine. Each may cost some 3 ns for every byte that is matched, where no cache of a DFA holds them
    /// all.
    pub(crate) positions_max: usize,
}

/// Regular expressions, compiled together.
#[derive(Clone, Debug)]
pub(crate) struct PatternSet {
    set: Arc<RegexSet>,
    /// What a byte costs that is matched, in positions.
    byte_cost: usize,
}

/// Why patterns cannot be used together.
#[derive(Clone, Debug)]
pub(crate) enum PatternError {
    /// This one cannot be used at all.
    One {
        /// Its place in the list.
        at: usize,
        /// What is wrong with it.
        why: String,
    },
    /// All of them together are too much.
    Sum {
        /// What is too much.
        why: String,
    },
}

impl PatternError {
    /// The same as an error of a scope.
    pub(crate) fn of_scope(self, patterns: &[&str]) -> ScopeError {
        match (self, patterns) {
            (Self::One { at, why }, _) => {
                let pattern = shorten(patterns.get(at).copied().unwrap_or_default());
                ScopeError { pattern, at: Some(at), why }
            }
            (Self::Sum { why }, [only]) => ScopeError { pattern: shorten(only), at: Some(0), why },
            (Self::Sum { why }, _) => ScopeError {
                pattern: format!("{} patterns", patterns.len()),
                at: None,
                why: format!("together: {why}"),
            },
        }
    }
}

impl PatternSet {
    /// Compiles patterns within limits for all of them together. Nothing is done for those after the first
    /// that is too much.
    pub(crate) fn new(patterns: &[&str], limits: PatternLimits) -> Result<Self, PatternError> {
        let mut budget = Budget::default();
        for (at, pattern) in patterns.iter().enumerate() {
            budget.spend(pattern, limits.positions_max).map_err(|fault| match fault {
                Fault::Pattern(why) => PatternError::One { at, why },
                Fault::Sum(why) => PatternError::Sum { why },
            })?;
        }
        let set = RegexSetBuilder::new(patterns).size_limit(limits.bytes_max).build();
        let set = set.map_err(|error| PatternError::Sum { why: one_line(&error) })?;
        Ok(Self { set: Arc::new(set), byte_cost: budget.byte_cost() })
    }

    /// The first pattern that matches on each side of `middle`, by their places in the list. One look at the
    /// text finds both.
    pub(crate) fn first_matches(
        &self,
        middle: usize,
        text: &str,
    ) -> (Option<usize>, Option<usize>) {
        if self.set.is_empty() {
            return (None, None);
        }
        let found = self.set.matches(text);
        let first = found.iter().next().filter(|at| *at < middle);
        (first, found.iter().find(|at| *at >= middle))
    }

    /// Whether both are the same set, compiled once.
    pub(crate) fn is_shared(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.set, &other.set)
    }

    /// Whether any pattern matches.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        !self.set.is_empty() && self.set.is_match(text)
    }

    /// Bytes of text that may be matched on behalf of one request.
    pub(crate) fn match_bytes_max(&self) -> usize {
        MATCH_WORK_MAX / self.byte_cost
    }

    /// The patterns as they were given.
    pub(crate) fn texts(&self) -> &[String] {
        self.set.patterns()
    }
}

/// What the patterns of a set cost so far.
#[derive(Debug, Default)]
struct Budget {
    source_bytes: usize,
    classes: usize,
    positions: usize,
}

enum Fault {
    Pattern(String),
    Sum(String),
}

impl Budget {
    /// Reads a pattern and charges for it. What is large is refused before it is made.
    fn spend(&mut self, pattern: &str, positions_max: usize) -> Result<(), Fault> {
        if pattern.len() > SOURCE_BYTES_MAX {
            return Err(Fault::Pattern(format!("longer than {SOURCE_BYTES_MAX} bytes")));
        }
        self.source_bytes += pattern.len();
        if self.source_bytes > SOURCES_BYTES_MAX {
            return Err(Fault::Sum(format!("longer than {SOURCES_BYTES_MAX} bytes")));
        }
        let ast = ast::parse::Parser::new().parse(pattern);
        let ast = ast.map_err(|error| Fault::Pattern(error.kind().to_string()))?;
        self.classes += class_cost(&ast);
        if self.classes > CLASSES_MAX {
            let why = format!(
                "more than {CLASSES_MAX} large character classes such as \\w, or {} where case is ignored",
                CLASSES_MAX / FOLDED_CLASS_COST
            );
            return Err(Fault::Sum(why));
        }
        let meant = Translator::new().translate(pattern, &ast);
        let meant = meant.map_err(|error| Fault::Pattern(error.kind().to_string()))?;
        self.positions = self.positions.saturating_add(positions(&meant));
        if self.positions > positions_max {
            let why = format!(
                "more than {positions_max} characters are left open when repetitions such as \\w{{9}} are \
                 written out; every text would take long to match"
            );
            return Err(Fault::Sum(why));
        }
        Ok(())
    }

    fn byte_cost(&self) -> usize {
        1 + self.positions + self.source_bytes / LITERAL_BYTES_PER_POSITION
    }
}

/// What the large character classes of a pattern cost.
fn class_cost(ast: &Ast) -> usize {
    let mut classes = Classes::default();
    let Ok(()) = ast::visit(ast, &mut classes);
    match classes.ignores_case {
        true => classes.large * FOLDED_CLASS_COST + classes.wide * FOLDED_WIDE_COST,
        false => classes.large + classes.wide,
    }
}

#[derive(Default)]
struct Classes {
    large: usize,
    wide: usize,
    ignores_case: bool,
}

impl Classes {
    fn see_flags(&mut self, flags: &Flags) {
        self.ignores_case |= flags.flag_state(Flag::CaseInsensitive) == Some(true);
    }
}

impl ast::Visitor for &mut Classes {
    type Output = ();
    type Err = std::convert::Infallible;

    fn finish(self) -> Result<(), Self::Err> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Self::Err> {
        match ast {
            Ast::ClassUnicode(_) | Ast::ClassPerl(_) => self.large += 1,
            Ast::ClassBracketed(class) => self.large += usize::from(class.negated),
            Ast::Flags(set) => self.see_flags(&set.flags),
            Ast::Group(group) => {
                if let Some(flags) = group.flags() {
                    self.see_flags(flags);
                }
            }
            Ast::Empty(_)
            | Ast::Literal(_)
            | Ast::Dot(_)
            | Ast::Assertion(_)
            | Ast::Repetition(_)
            | Ast::Alternation(_)
            | Ast::Concat(_) => {}
        }
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), Self::Err> {
        match item {
            ClassSetItem::Unicode(_) | ClassSetItem::Perl(_) => self.large += 1,
            ClassSetItem::Ascii(class) => self.large += usize::from(class.negated),
            // It may be negated, and is looked at again with the class around it.
            ClassSetItem::Bracketed(_) => self.wide += 1,
            ClassSetItem::Range(range) => {
                let chars = u32::from(range.end.c) - u32::from(range.start.c);
                self.large += usize::from(chars > RANGE_CHARS_MAX);
                self.wide += usize::from(chars > 10 * RANGE_CHARS_MAX);
            }
            ClassSetItem::Empty(_) | ClassSetItem::Literal(_) | ClassSetItem::Union(_) => {}
        }
        Ok(())
    }
}

/// The regex crate draws a picture over several lines; its last line says what is wrong.
fn one_line(error: &regex::Error) -> String {
    let text = error.to_string();
    text.lines().last().unwrap_or(&text).trim_start_matches("error: ").to_owned()
}

fn shorten(pattern: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 80;
    pattern.chars().take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: PatternLimits = PatternLimits { bytes_max: 4 << 20, positions_max: 600 };

    /// Plain text that does not repeat itself.
    fn words(bytes: usize) -> String {
        let words = (0..).flat_map(|word: u32| format!("/{word:x}").into_bytes());
        words.take(bytes).map(char::from).collect()
    }

    #[track_caller]
    fn check_sum(pattern: &str, count: usize, is_usable: bool) {
        let patterns = vec![pattern; count];
        let made = PatternSet::new(&patterns, LIMITS);
        assert_eq!(made.is_ok(), is_usable, "{count} times {pattern:.40}: {:?}", made.err());
    }

    #[test]
    fn the_budget_is_for_all_patterns_together() {
        check_sum(r"\w{50}", 1, true);
        check_sum(r"\w{200}", 90, false);
        check_sum(r"/archive/\d{4}/", 100, true);
        check_sum(&words(8000), 1, true);
        check_sum(&words(8000), 9, false);
        check_sum("(a{1000}){1000}", 1, false);
    }

    #[test]
    fn large_classes_are_counted_before_they_are_made() {
        for pattern in [r"\w", r"\pL", r"\PN", r"[^a]", r"[\x{0}-\x{FFFF}]", r"[[^a]&&\w]", r"[\D]"]
        {
            let ast = ast::parse::Parser::new().parse(pattern).unwrap();
            assert!(class_cost(&ast) >= 1, "{pattern}");
            let folded = format!("(?i){pattern}");
            let ast = ast::parse::Parser::new().parse(&folded).unwrap();
            assert!(class_cost(&ast) >= FOLDED_CLASS_COST, "{folded}");
        }
        check_sum(&r"\w".repeat(CLASSES_MAX + 1), 1, false);
        check_sum(&r"\w".repeat(SOURCE_BYTES_MAX / 2), 1, false);
        check_sum(&format!("(?i){}", r"[\w]".repeat(CLASSES_MAX / 2)), 1, false);
        check_sum(&format!("(?i){}", r"[\x{0}-\x{10FFFE}]".repeat(20)), 1, false);
        check_sum("(?i)[a-z0-9]+[^/]", 100, true);
    }

    #[test]
    fn what_every_byte_would_cost_is_bounded() {
        check_sum("[!-~]{99}a", 5, true);
        check_sum("[!-~]{99}a", 6, false);
        check_sum("(?:[ab]*a[ab]{99}c|x)", 10, false);
        check_sum("(?:ab?){999}", 1, false);
        check_sum(&"[ab]".repeat(LIMITS.positions_max + 1), 1, false);
        check_sum("(?:(?:a{999}){999}){999}", 1, false);
        check_sum(&format!("{}[bc]", "a".repeat(8000)), 1, false);
        check_sum(&format!("(?i){}", "a".repeat(700)), 1, false);
        let cost = |pattern: &str| PatternSet::new(&[pattern], LIMITS).unwrap().match_bytes_max();
        assert!(cost(r"\.(pdf|zip)$") > 500_000, "all starts of a crawl can be tried");
        assert!(cost("[!-~]{500}a") < 9000);
    }

    #[test]
    fn usual_lists_are_within_the_budget() {
        let words: Vec<String> = (0..5000).map(|word| format!("word{}", word * 7919)).collect();
        PatternSet::new(&[&words.join("|")], LIMITS).unwrap();
        let usual = (0..200).map(|number| match number % 5 {
            0 => format!(r"\.(pdf|zip|jpe?g|png|gif{number})$"),
            1 => format!(r"/archive{number}/\d{{4}}/"),
            2 => format!("[?&](sort|order|sid{number})="),
            3 => format!("^https?://[^/]+/private{number}/.*"),
            _ => format!(r"(?i)/login{number}\b"),
        });
        let usual: Vec<String> = usual.collect();
        let usual: Vec<&str> = usual.iter().map(String::as_str).collect();
        PatternSet::new(&usual, LIMITS).unwrap();
    }

    #[test]
    fn nothing_is_done_for_patterns_behind_the_first_that_is_too_much() {
        let costly = format!("(?i){}", r"\w".repeat(CLASSES_MAX / FOLDED_CLASS_COST));
        let mut patterns = vec![costly.as_str(); 2];
        patterns.push("(");
        let error = PatternSet::new(&patterns, LIMITS).unwrap_err();
        assert!(
            matches!(error, PatternError::Sum { .. }),
            "the mistake was not reached: {error:?}"
        );
    }

    #[test]
    fn mistakes_name_their_pattern() {
        for bad in ["(", r"\p{Nothing}", "[z-a]"] {
            let error = PatternSet::new(&["ok", bad], LIMITS).unwrap_err();
            assert!(matches!(error, PatternError::One { at: 1, .. }), "{bad}: {error:?}");
            assert!(!error.of_scope(&["ok", bad]).why.contains('\n'));
        }
    }

    #[test]
    fn one_look_finds_the_first_match_on_both_sides() {
        let set = PatternSet::new(&["a", "b", "ab"], LIMITS).unwrap();
        assert_eq!(set.first_matches(1, "xab"), (Some(0), Some(1)));
        assert_eq!(set.first_matches(2, "xb"), (Some(1), None));
        assert_eq!(set.first_matches(1, "xb"), (None, Some(1)));
        assert_eq!(set.first_matches(0, "xa"), (None, Some(0)));
        assert_eq!(set.first_matches(1, "x"), (None, None));
        assert_eq!(PatternSet::new(&[], LIMITS).unwrap().first_matches(0, "x"), (None, None));
    }
}
