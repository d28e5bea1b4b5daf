//! Patterns and files that were made to be slow. Steps are counted, not seconds.

use proptest::prelude::*;
use telusur_model::PageUrl;

use super::pattern::{NormalPath, Pattern, matches};
use super::{BYTES_MAX, Rules};

/// Tries every way to match. Exponential, and plainly what RFC 9309, 2.2.3 says.
fn matches_naively(pattern: &[u8], path: &[u8]) -> bool {
    match pattern {
        [] => true,
        [b'$'] => path.is_empty(),
        [b'*', rest @ ..] => {
            (0..=path.len()).any(|skipped| matches_naively(rest, &path[skipped..]))
        }
        [first, rest @ ..] => path.first() == Some(first) && matches_naively(rest, &path[1..]),
    }
}

/// Whether a pattern matches, and how many bytes were handed to the search: each costs one step of a
/// search that is linear in both of its texts.
fn matches_counting(pattern: &str, path: &[u8]) -> (bool, usize) {
    let mut steps = pattern.len() + path.len();
    let is_match = matches(pattern.as_bytes(), path, |haystack, needle| {
        let found = memchr::memmem::find(haystack, needle);
        steps += found.unwrap_or(haystack.len()) + needle.len();
        found
    });
    (is_match, steps)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn matching_agrees_with_trying_everything(pattern in "/[ab*]{0,8}\\$?", path in "/[ab]{0,10}") {
        let (is_match, _) = matches_counting(&pattern, path.as_bytes());
        prop_assert_eq!(is_match, matches_naively(pattern.as_bytes(), path.as_bytes()));
    }

    #[test]
    fn matching_is_linear(pattern in "/[ab*]{0,200}\\$?", path in "/[ab]{0,2000}") {
        let (_, steps) = matches_counting(&pattern, path.as_bytes());
        prop_assert!(steps <= 2 * (pattern.len() + path.len()), "{steps} steps");
    }

    #[test]
    fn any_spelling_of_a_path_matches_itself(
        octets in proptest::collection::vec((1_u8..=255, any::<bool>(), any::<bool>()), 0..20),
    ) {
        let mut path = String::from("/");
        let mut encoded = String::from("/");
        for (octet, bare, lower) in octets {
            let is_bare = octet.is_ascii_alphanumeric() && bare;
            path.push_str(&if is_bare { char::from(octet).to_string() } else { format!("%{octet:02X}") });
            encoded.push_str(&if lower { format!("%{octet:02x}") } else { format!("%{octet:02X}") });
        }
        let pattern = Pattern::parse(format!("{encoded}$").as_bytes()).unwrap();
        prop_assert!(pattern.matches(&NormalPath::new(&path)), "{pattern} and {path}");
    }

    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let rules = Rules::parse(&bytes, "Telusur");
        let _ = rules.verdict(&PageUrl::parse("https://a.org/").unwrap());
    }

    #[test]
    fn any_lines_are_read(text in "(User-agent: ?\\*?|Disallow:|/a|\\*|\\$|%|%4|#| |\r|\n){0,60}") {
        let rules = Rules::parse(text.as_bytes(), "Telusur");
        let _ = rules.verdict(&PageUrl::parse("https://a.org/a%4").unwrap());
    }
}

#[test]
fn ten_thousand_hostile_patterns_cost_no_more_than_reading_them() {
    // 2 kB that nearly match again and again, each time to no avail.
    let path = format!("/{}", "a".repeat(2000));
    let patterns = (0..10_000).map(|number| match number % 4 {
        0 => format!("/{}b", "*a".repeat(1 + number % 100)),
        1 => format!("/*{}b", "a".repeat(1 + number % 200)),
        2 => format!("/{}$", "a*".repeat(1 + number % 100)),
        _ => format!("/{}*b$", "*aa".repeat(1 + number % 100)),
    });
    for pattern in patterns {
        let (is_match, steps) = matches_counting(&pattern, path.as_bytes());
        assert_eq!(is_match, pattern.ends_with("a*$"), "{pattern}");
        assert!(steps <= 2 * (pattern.len() + path.len()), "{steps} steps for {pattern}");
    }
}

#[test]
fn our_group_is_found_behind_twenty_thousand_others() {
    let mut text = String::from("User-agent: *\nDisallow: /\n");
    for number in 0..20_000 {
        text.push_str(&format!("User-agent:b{number}\nAllow:/\n"));
    }
    text.push_str("User-agent: Telusur\nDisallow: /ours\n");
    assert!(text.len() < BYTES_MAX);
    let rules = Rules::parse(text.as_bytes(), "Telusur");
    assert_eq!(rules.rules_count(), 1);
    assert!(!rules.verdict(&PageUrl::parse("https://a.org/ours").unwrap()).allowed);
}

#[test]
fn a_pattern_that_no_url_can_match_is_not_kept() {
    assert!(Pattern::parse(format!("/{}", "a*".repeat(13_000)).as_bytes()).is_none());
    let stars = format!("/{}a", "*".repeat(100_000));
    assert_eq!(Pattern::parse(stars.as_bytes()).unwrap().to_string(), "/*a");
}
