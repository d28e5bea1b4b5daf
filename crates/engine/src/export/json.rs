//! JSON that is harmless on a terminal: characters from pages that could command it, or reorder what
//! is read, are written as escapes. It means the same to whoever reads it as JSON.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

use telusur_model::is_treacherous;

/// Writes a value as one line.
pub fn write_json_line(output: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(&mut *output, Harmless))?;
    output.write_all(b"\n")
}

/// Like the compact form, but for the strings.
struct Harmless;

impl Formatter for Harmless {
    /// Only ever called with a part of a string in which JSON itself escapes nothing.
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        output: &mut W,
        mut rest: &str,
    ) -> io::Result<()> {
        while let Some((at, found)) = rest.char_indices().find(|(_, c)| is_treacherous(*c)) {
            CompactFormatter.write_string_fragment(output, &rest[..at])?;
            for unit in found.encode_utf16(&mut [0; 2]) {
                write!(output, "\\u{unit:04x}")?;
            }
            rest = &rest[at + found.len_utf8()..];
        }
        CompactFormatter.write_string_fragment(output, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let mut output = Vec::new();
        write_json_line(&mut output, &text).unwrap();
        let line = String::from_utf8(output).unwrap();
        assert_eq!(line, format!("\"{expect}\"\n"));
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text, "it means the same");
    }

    #[test]
    fn treacherous_characters_are_escaped() {
        check("plain \u{fc} 日本 🦀", "plain \u{fc} 日本 🦀");
        check("a\nb\t\"c\" \\", "a\\nb\\t\\\"c\\\" \\\\");
        check("\x1b[2J", "\\u001b[2J");
        check("a\u{9b}31mb", "a\\u009b31mb");
        check("\u{202e}gpj.exe\u{2066}", "\\u202egpj.exe\\u2066");
        check("\u{2028}\u{2029}\u{7f}", "\\u2028\\u2029\\u007f");
        check("\u{e0041}", "\\udb40\\udc41");
    }
}
