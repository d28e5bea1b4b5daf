//! The file `.env`: `NAME=value` lines for the environment, in the form that most tools share.
//! Quoted values may span lines; nothing is expanded.

use crate::message::{Code, Message, shown};

/// A variable of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DotEnvVariable {
    pub(super) name: String,
    pub(super) value: String,
    /// Counting from 1.
    pub(super) line: usize,
}

/// Reads the whole file.
pub(super) fn parse(text: &str) -> Result<Vec<DotEnvVariable>, Message> {
    let mut reader = DotEnvParser { rest: text.trim_start_matches('\u{feff}'), line: 1 };
    let mut variables = Vec::new();
    while !reader.rest.is_empty() {
        variables.extend(reader.variable()?);
    }
    Ok(variables)
}

struct DotEnvParser<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> DotEnvParser<'a> {
    /// The variable that begins at this line; `None` for an empty line or a comment.
    fn variable(&mut self) -> Result<Option<DotEnvVariable>, Message> {
        let line = self.line;
        let first = self.rest.lines().next().unwrap_or_default().trim();
        if first.is_empty() || first.starts_with('#') {
            self.take_line();
            return Ok(None);
        }
        let (name, _) =
            first.split_once('=').ok_or_else(|| complaint(line, first, "is not NAME=value"))?;
        let name = name.trim_end();
        let name = name.strip_prefix("export ").map_or(name, str::trim_start);
        if !is_name(name) {
            return Err(complaint(line, name, "is not the name of a variable"));
        }
        let equals = self.rest.find('=').expect("the first line has one");
        self.rest = self.rest[equals + 1..].trim_start_matches([' ', '\t']);
        let value = match self.rest.chars().next() {
            Some(quote @ ('"' | '\'')) => self.quoted(quote, line)?,
            _ => without_comment(self.take_line()).trim().to_owned(),
        };
        Ok(Some(DotEnvVariable { name: name.to_owned(), value, line }))
    }

    /// A value in quotes, and the rest of its last line, which may only be a comment.
    fn quoted(&mut self, quote: char, line: usize) -> Result<String, Message> {
        let mut value = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                _ if c == quote => {
                    self.line += self.rest[..at].matches('\n').count();
                    self.rest = &self.rest[at + 1..];
                    let after = self.take_line();
                    if !without_comment(after).trim().is_empty() {
                        return Err(complaint(line, after.trim(), "stands behind a closing quote"));
                    }
                    return Ok(value);
                }
                '\\' if quote == '"' => match chars.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, 't')) => value.push('\t'),
                    Some((_, escaped)) => value.push(escaped),
                    None => break,
                },
                _ => value.push(c),
            }
        }
        Err(complaint(line, &quote.to_string(), "opens a quote that is never closed"))
    }

    /// The rest of the current line, without its end.
    fn take_line(&mut self) -> &'a str {
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        self.line += 1;
        line
    }
}

fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    name.bytes().all(is_part) && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}

/// A comment begins with a # at the start or behind white space: `a#b` is a value.
fn without_comment(text: &str) -> &str {
    let starts = text.match_indices('#').map(|(at, _)| at);
    let is_start = |at: &usize| text[..*at].chars().next_back().is_none_or(char::is_whitespace);
    starts.into_iter().find(is_start).map_or(text, |at| &text[..at])
}

fn complaint(line: usize, text: &str, problem: &str) -> Message {
    Message::new(Code::DotEnvSyntax, format!("./.env:{line}: \"{}\" {problem}", shown(text)))
        .hint("Write NAME=value, or skip the file with --no-config")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &[(&str, &str, usize)]) {
        let variables = parse(text).unwrap();
        let found: Vec<_> =
            variables.iter().map(|v| (v.name.as_str(), v.value.as_str(), v.line)).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn plain_lines() {
        check(
            "A=1\nB = two words \r\n\n# c\nC=",
            &[("A", "1", 1), ("B", "two words", 2), ("C", "", 5)],
        );
        check("\u{feff}A=1", &[("A", "1", 1)]);
        check("export A=1\nexport  B=2", &[("A", "1", 1), ("B", "2", 2)]);
    }

    #[test]
    fn comments_begin_behind_a_space() {
        check("A=1 # one\nB=a#b\nC=#x", &[("A", "1", 1), ("B", "a#b", 2), ("C", "", 3)]);
    }

    #[test]
    fn quotes() {
        check(r#"A="x # y" # z"#, &[("A", "x # y", 1)]);
        check(r#"A="a\n\"b\"\\""#, &[("A", "a\n\"b\"\\", 1)]);
        check(r"A='a\n'", &[("A", r"a\n", 1)]);
        check("A=\"1\n2\"\nB=3", &[("A", "1\n2", 1), ("B", "3", 3)]);
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, start) in [
            ("A=1\nhello", "./.env:2: \"hello\" is not NAME=value"),
            ("\n\n1A=2", "./.env:3: \"1A\" is not the name"),
            ("=x", "./.env:1: \"\" is not the name"),
            ("A=\"x\nB=2", "./.env:1: \"\"\" opens a quote"),
            ("A='x' y", "./.env:1: \"y\" stands behind"),
        ] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.starts_with(start), "{message}");
        }
    }
}
