//! Judges URLs by robots.txt files, to compare with what others decide.
//!
//! Reads lines of `{"id", "robots", "agent", "url"}` from standard input and writes lines of
//! `{"id", "allowed", "line", "rule"}`. A URL that is none has `allowed: null`.

use std::io::{BufRead, Write};

use serde_json::{Value, json};
use telusur_fetch::robots::Rules;
use telusur_model::PageUrl;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let case: Value = serde_json::from_str(&line?)?;
        let text = |name: &str| case[name].as_str().unwrap_or_default();
        let rules = Rules::parse(text("robots").as_bytes(), text("agent"));
        let answer = match PageUrl::parse(text("url")) {
            Ok(url) => {
                let verdict = rules.verdict(&url);
                json!({
                    "id": case["id"],
                    "allowed": verdict.allowed,
                    "line": verdict.rule.map(|rule| rule.line()),
                    "rule": verdict.rule.map(ToString::to_string),
                })
            }
            Err(error) => json!({ "id": case["id"], "allowed": null, "error": error.to_string() }),
        };
        writeln!(out, "{answer}")?;
    }
    Ok(())
}
