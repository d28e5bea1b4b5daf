//! Any bytes are a robots.txt, the ends of its lines do not matter, and a pattern matches just when
//! trying every way to match it does.
//!
//! `cargo +nightly fuzz run robots`. What comes before the first zero byte is the file, what comes
//! after it the path.

#![no_main]

use libfuzzer_sys::fuzz_target;
use telusur_fetch::robots::Rules;
use telusur_model::PageUrl;

/// Longest pattern and path for which every way to match is tried.
const TRIED_BYTES_MAX: usize = 24;

fuzz_target!(|data: &[u8]| {
    let split = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (file, path) = (&data[..split], &data[(split + 1).min(data.len())..]);
    let path: String = path.iter().map(|byte| char::from(b'a' + byte % 3)).collect();
    let url = PageUrl::parse(&format!("http://a.org/{path}")).expect("a plain URL");

    let rules = Rules::parse(file, "telusur");
    let verdict = rules.verdict(&url);
    assert!(verdict.allowed || verdict.rule.is_some(), "what is forbidden is forbidden by a rule");
    let lines_of_windows = file.split(|byte| *byte == b'\n').collect::<Vec<_>>().join(&b"\r\n"[..]);
    if !file.contains(&b'\r') {
        let same = Rules::parse(&lines_of_windows, "telusur");
        assert_eq!(same.verdict(&url).allowed, verdict.allowed);
    }

    let pattern: Vec<u8> = file.iter().map(|byte| b"abc**/"[usize::from(byte % 6)]).collect();
    if pattern.len() <= TRIED_BYTES_MAX && path.len() <= TRIED_BYTES_MAX {
        let mut one = b"User-agent: *\nDisallow: /".to_vec();
        one.extend_from_slice(&pattern);
        let is_match = matches_some_way(&pattern, path.as_bytes());
        assert_eq!(!Rules::parse(&one, "telusur").verdict(&url).allowed, is_match);
    }
});

/// Walks the table of all ends of the pattern against all ends of the path.
fn matches_some_way(pattern: &[u8], path: &[u8]) -> bool {
    let mut rest_matches = vec![true; path.len() + 1];
    for wanted in pattern.iter().rev() {
        rest_matches = (0..=path.len())
            .map(|at| match wanted {
                b'*' => rest_matches[at..].contains(&true),
                byte => path.get(at) == Some(byte) && rest_matches[at + 1],
            })
            .collect();
    }
    rest_matches[0]
}
