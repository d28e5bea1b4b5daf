//! [`MissingRules`]: which answers mean that a page does not exist. A page that failed is another
//! thing: it may exist, so it is retried.

use serde::{Deserialize, Serialize};

use crate::pattern::{PatternLimits, PatternSet};
use crate::{FetchOutcome, IdOutcome, PageUrl, RawPage, Retry, ScopeError};

/// Rules in one list. There are 500 statuses, of which a handful means anything, and few other rules.
const RULES_MAX: usize = 100;
/// Text of one list: every template of a crawl has its own copy.
const RULES_BYTES_MAX: usize = 4096;
/// What all patterns may cost together; see the scope's, which has the rest of what a crawl may use. They are
/// matched against texts, which are longer than addresses: at most 20 ms a page.
const PATTERN_LIMITS: PatternLimits = PatternLimits { bytes_max: 1 << 20, positions_max: 100 };
/// Text of a page that is looked at for the patterns. A page says at its beginning that it does not exist.
pub const MISSING_TEXT_BYTES_MAX: usize = 64 << 10;

/// Which answers mean "does not exist", as the user gave them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingRules {
    /// These statuses.
    pub statuses: Vec<u16>,
    /// A successful answer with nothing in it but white space.
    pub empty: bool,
    /// A successful answer whose text matches one of these patterns, in its first
    /// [`MISSING_TEXT_BYTES_MAX`] bytes.
    pub patterns: Vec<String>,
    /// A redirect to one of these places: a whole URL, or a path.
    pub redirects: Vec<String>,
}

impl Default for MissingRules {
    /// Not found, and gone for good.
    fn default() -> Self {
        Self { statuses: vec![404, 410], empty: false, patterns: Vec::new(), redirects: Vec::new() }
    }
}

/// A rule that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MissingError {
    /// Not a kind of rule.
    #[error("{0:?} is not an answer that can mean \"does not exist\"")]
    Unknown(String),
    /// A quotation mark without its partner.
    #[error("{0:?} has a quotation mark without its partner")]
    Unclosed(String),
    /// More rules than anybody needs.
    #[error("the list has more than {RULES_MAX} rules, or is longer than {RULES_BYTES_MAX} bytes")]
    TooMany,
    /// A pattern that does not compile.
    #[error(transparent)]
    Pattern(#[from] ScopeError),
}

impl MissingError {
    /// The way out, for people.
    pub fn hint(&self) -> &'static str {
        "Write a list such as 404,410,empty,redirect:/not-found,RX:\"no such page\""
    }
}

impl MissingRules {
    /// Reads `404,410,empty,redirect:/not-found,RX:"no such page"`. What is not in the list does
    /// not count: a list without 404 makes 404 a failure.
    pub fn parse(text: &str) -> Result<Self, MissingError> {
        let mut rules = Self {
            statuses: Vec::new(),
            empty: false,
            patterns: Vec::new(),
            redirects: Vec::new(),
        };
        if text.len() > RULES_BYTES_MAX {
            return Err(MissingError::TooMany);
        }
        let list = split(text)?;
        if list.len() > RULES_MAX {
            return Err(MissingError::TooMany);
        }
        for rule in list {
            let unknown = || MissingError::Unknown(rule.clone());
            if rule == "empty" {
                rules.empty = true;
            } else if let Some(pattern) = rule.strip_prefix("RX:") {
                rules.patterns.push(pattern.to_owned());
            } else if let Some(place) = rule.strip_prefix("redirect:") {
                if !place.starts_with('/') && PageUrl::parse(place).is_err() {
                    return Err(unknown());
                }
                rules.redirects.push(place.to_owned());
            } else {
                let status = rule.parse().ok().filter(|status| (100..=599).contains(status));
                rules.statuses.push(status.ok_or_else(unknown)?);
            }
        }
        // All patterns together: that is what they cost.
        MissingPages::new(&rules)?;
        Ok(rules)
    }
}

/// Splits at commas, but not within quotation marks, which are taken away.
fn split(text: &str) -> Result<Vec<String>, MissingError> {
    let mut rules = vec![String::new()];
    let mut quoted = false;
    for char in text.chars() {
        match char {
            '"' => quoted = !quoted,
            ',' if !quoted => rules.push(String::new()),
            _ => rules.last_mut().expect("begins with one").push(char),
        }
    }
    if quoted {
        return Err(MissingError::Unclosed(text.to_owned()));
    }
    let trimmed = rules.into_iter().map(|rule| rule.trim().to_owned());
    Ok(trimmed.filter(|rule| !rule.is_empty()).collect())
}

/// Compiled rules: judges answers.
#[derive(Clone, Debug)]
pub struct MissingPages {
    rules: MissingRules,
    patterns: PatternSet,
}

impl MissingPages {
    /// Compiles the rules.
    pub fn new(rules: &MissingRules) -> Result<Self, MissingError> {
        let patterns: Vec<&str> = rules.patterns.iter().map(String::as_str).collect();
        let patterns = PatternSet::new(&patterns, PATTERN_LIMITS)
            .map_err(|error| MissingError::Pattern(error.of_scope(&patterns)))?;
        Ok(Self { rules: rules.clone(), patterns })
    }

    /// What an outcome says about its id; `None`: the redirect is to be followed, and its end says
    /// it. `text` is that of the page, where there is one.
    pub fn judge(&self, outcome: &FetchOutcome, text: &str) -> Option<IdOutcome> {
        match outcome {
            FetchOutcome::Page(page) => Some(self.judge_page(page, text)),
            FetchOutcome::NotModified => Some(IdOutcome::Content),
            FetchOutcome::Redirected { status, to } => {
                let is_missing = self.rules.statuses.contains(status) || self.is_named(to);
                is_missing.then_some(IdOutcome::Missing)
            }
            FetchOutcome::Refused { .. } => Some(IdOutcome::Failed(Retry::Never)),
            FetchOutcome::Failed { retry, .. } => Some(IdOutcome::Failed(*retry)),
        }
    }

    fn judge_page(&self, page: &RawPage, text: &str) -> IdOutcome {
        if self.rules.statuses.contains(&page.status) {
            return IdOutcome::Missing;
        }
        if !(200..300).contains(&page.status) {
            // 403 and its like are failures too: they do not tell whether the page exists.
            return IdOutcome::Failed(Retry::Later);
        }
        let is_empty = self.rules.empty && page.body.trim_ascii().is_empty();
        if is_empty || self.patterns.is_match(beginning(text)) {
            return IdOutcome::Missing;
        }
        IdOutcome::Content
    }

    fn is_named(&self, to: &PageUrl) -> bool {
        self.rules.redirects.iter().any(|place| match place.strip_prefix('/') {
            Some(_) => to.path() == place,
            None => PageUrl::parse(place).is_ok_and(|place| place == *to),
        })
    }
}

/// As much of a text as is looked at.
fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(MISSING_TEXT_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::Reason;

    fn page(status: u16, body: &str) -> FetchOutcome {
        FetchOutcome::Page(RawPage {
            url: PageUrl::parse("https://a.org/1").unwrap(),
            status,
            headers: Vec::new(),
            body: Bytes::copy_from_slice(body.as_bytes()),
            truncated: false,
            wire_bytes: 0,
        })
    }

    fn redirect(to: &str) -> FetchOutcome {
        FetchOutcome::Redirected { status: 302, to: PageUrl::parse(to).unwrap() }
    }

    #[track_caller]
    fn check(rules: &str, outcome: &FetchOutcome, expect: impl Into<Option<IdOutcome>>) {
        let rules = MissingRules::parse(rules).unwrap();
        let text = match outcome {
            FetchOutcome::Page(page) => String::from_utf8_lossy(&page.body).into_owned(),
            _ => String::new(),
        };
        assert_eq!(MissingPages::new(&rules).unwrap().judge(outcome, &text), expect.into());
    }

    #[test]
    fn the_list_is_read() {
        let rules =
            MissingRules::parse(r#"404, 410,empty,RX:"a, b\d",redirect:/none,RX:x,"#).unwrap();
        assert_eq!(
            rules,
            MissingRules {
                statuses: vec![404, 410],
                empty: true,
                patterns: vec![r"a, b\d".into(), "x".into()],
                redirects: vec!["/none".into()],
            }
        );
        assert_eq!(MissingRules::parse("404,410").unwrap(), MissingRules::default());
    }

    #[test]
    fn lists_that_are_refused() {
        for text in ["40", "4040", "void", "redirect:x", "404;410", "-404"] {
            assert_eq!(MissingRules::parse(text), Err(MissingError::Unknown(text.into())));
        }
        let error = MissingRules::parse("RX:\"a").unwrap_err();
        assert_eq!(error, MissingError::Unclosed("RX:\"a".into()));
        let many = vec!["404"; RULES_MAX + 1].join(",");
        assert_eq!(MissingRules::parse(&many), Err(MissingError::TooMany));
        let long = format!("RX:{}", "a".repeat(RULES_BYTES_MAX));
        assert_eq!(MissingRules::parse(&long), Err(MissingError::TooMany));
        let costly = vec![r"RX:\w{9}"; 20].join(",");
        let error = MissingRules::parse(&costly).unwrap_err();
        assert!(matches!(error, MissingError::Pattern(_)), "the budget is for all of them");
        MissingRules::parse(r"RX:\w{9}").unwrap();
        let error = MissingRules::parse("RX:(").unwrap_err();
        assert!(matches!(error, MissingError::Pattern(_)));
    }

    #[test]
    fn not_found_and_gone_are_missing() {
        check("404,410", &page(404, "x"), IdOutcome::Missing);
        check("404,410", &page(410, ""), IdOutcome::Missing);
        check("404,410", &page(200, ""), IdOutcome::Content);
        check("404,410", &FetchOutcome::NotModified, IdOutcome::Content);
    }

    #[test]
    fn errors_are_failures() {
        for status in [400, 401, 403, 408, 429, 500, 502, 503, 504] {
            check("404,410", &page(status, "x"), IdOutcome::Failed(Retry::Later));
        }
        check("410", &page(404, "x"), IdOutcome::Failed(Retry::Later));
        for retry in [Retry::Never, Retry::Later, Retry::NotCounted] {
            let why = Reason::TimeoutBody;
            let outcome = FetchOutcome::Failed { why, detail: String::new(), retry };
            check("404", &outcome, IdOutcome::Failed(retry));
        }
        let outcome = FetchOutcome::Refused { why: Reason::BlockedPort, detail: String::new() };
        check("404", &outcome, IdOutcome::Failed(Retry::Never));
    }

    #[test]
    fn an_empty_page_can_be_missing() {
        check("empty", &page(200, " \r\n"), IdOutcome::Missing);
        check("empty", &page(200, "x"), IdOutcome::Content);
    }

    #[test]
    fn a_text_can_say_that_a_page_is_missing() {
        let rules = r#"404,RX:"Data (tidak|not) ditemukan""#;
        check(rules, &page(200, "<p>Data tidak ditemukan</p>"), IdOutcome::Missing);
        check(rules, &page(200, "<p>Data ditemukan</p>"), IdOutcome::Content);
        check(rules, &page(500, "Data tidak ditemukan"), IdOutcome::Failed(Retry::Later));
    }

    #[test]
    fn only_the_beginning_of_a_text_is_looked_at() {
        let after = |bytes: usize| page(200, &format!("{}tidak ada", "é".repeat(bytes / 2)));
        check("RX:tidak", &after(MISSING_TEXT_BYTES_MAX - 10), IdOutcome::Missing);
        check("RX:tidak", &after(MISSING_TEXT_BYTES_MAX - 2), IdOutcome::Content);
        check(
            "RX:^",
            &page(200, &format!("a{}", "é".repeat(MISSING_TEXT_BYTES_MAX))),
            IdOutcome::Missing,
        );
        let error = MissingRules::parse("RX:[a-z]{100}").unwrap_err();
        assert!(matches!(error, MissingError::Pattern(_)), "every page would take long");
    }

    #[test]
    fn a_redirect_to_a_named_place_is_missing() {
        check("redirect:/none", &redirect("https://b.org/none"), IdOutcome::Missing);
        check("redirect:https://b.org/", &redirect("https://b.org/"), IdOutcome::Missing);
        check("302", &redirect("https://b.org/x"), IdOutcome::Missing);
    }

    #[test]
    fn other_redirects_are_followed() {
        check("redirect:/none", &redirect("https://b.org/none/1"), None);
        check("redirect:https://b.org/", &redirect("https://c.org/"), None);
    }
}
