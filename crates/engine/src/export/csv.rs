//! CSV (RFC 4180) of what strangers wrote, for people who open it in a spreadsheet.

use std::borrow::Cow;
use std::io::{self, Write};

use telusur_model::printable_lines;

/// Writes one line.
pub fn write_row<'a>(
    output: &mut dyn Write,
    fields: impl IntoIterator<Item = impl Into<Cow<'a, str>>>,
) -> io::Result<()> {
    for (index, field) in fields.into_iter().enumerate() {
        if index > 0 {
            output.write_all(b",")?;
        }
        output.write_all(field_of(&field.into()).as_bytes())?;
    }
    output.write_all(b"\n")
}

/// A field that is data in a spreadsheet and nothing else. A cell that would be taken for a formula
/// gets an apostrophe in front, which spreadsheets read as "this is text".
fn field_of(text: &str) -> String {
    let text = printable_lines(text);
    let is_formula = is_formula(&text);
    let needs_quotes = is_formula
        || text.contains(['"', ',', ';', '\n', '\t'])
        || text.starts_with(' ')
        || text.ends_with(' ');
    if !needs_quotes {
        return text;
    }
    let mark = if is_formula { "'" } else { "" };
    format!("\"{mark}{}\"", text.replace('"', "\"\""))
}

/// Whether a spreadsheet may take the text for a formula. Some pass over white space in front of it,
/// and some take the wide signs of East Asian keyboards for the plain ones.
fn is_formula(text: &str) -> bool {
    let first = text.trim_start().chars().next();
    text.starts_with('\t')
        || first
            .is_some_and(|first| matches!(first, '=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        assert_eq!(field_of(text), expect, "{text:?}");
    }

    #[test]
    fn quoting() {
        check("", "");
        check("plain", "plain");
        check("a,b", "\"a,b\"");
        check("a;b", "\"a;b\"");
        check("say \"hi\"", "\"say \"\"hi\"\"\"");
        check("two\nlines", "\"two\nlines\"");
        check(" padded ", "\" padded \"");
        check("日本, 🦀", "\"日本, 🦀\"");
    }

    #[test]
    fn formulas_are_text() {
        check("=1+1", "\"'=1+1\"");
        check("=HYPERLINK(\"http://a\",\"b\")", "\"'=HYPERLINK(\"\"http://a\"\",\"\"b\"\")\"");
        check("+1", "\"'+1\"");
        check("-1", "\"'-1\"");
        check("@SUM(A1)", "\"'@SUM(A1)\"");
        check("\t=1", "\"'\t=1\"");
        check("\r=1", "\"'\n=1\"");
        check("  =1", "\"'  =1\"");
        check("\tx", "\"'\tx\"");
        check("＝1", "\"'＝1\"");
        check("1=1", "1=1");
    }

    #[test]
    fn controls_are_harmless() {
        check("a\x1b[2Jb", "a\u{fffd}[2Jb");
        check("a\u{9b}b\u{202e}c\0", "a\u{fffd}b\u{fffd}c\u{fffd}");
        check("a\r\nb\rc", "\"a\nb\nc\"");
    }

    #[test]
    fn a_row_ends_with_its_line() {
        let mut output = Vec::new();
        write_row(&mut output, ["a", "", "b,c"]).unwrap();
        assert_eq!(output, b"a,,\"b,c\"\n");
    }
}
