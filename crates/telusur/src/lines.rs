//! Reading lines that a stranger wrote: of any length and number, in bounded memory.

use std::io::{self, BufRead, Read};

/// Reads a line, with its end, into `line`; false at the end of the input. Of a line longer than
/// `bytes_max` only the beginning is kept and the rest is passed over.
pub fn read_line(
    mut input: impl BufRead,
    line: &mut Vec<u8>,
    bytes_max: usize,
) -> io::Result<bool> {
    line.clear();
    if input.by_ref().take(bytes_max as u64).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if !line.ends_with(b"\n") && line.len() == bytes_max {
        input.skip_until(b'\n')?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &[&str]) {
        let mut input = text.as_bytes();
        let mut line = Vec::new();
        let mut lines = Vec::new();
        while read_line(&mut input, &mut line, 4).unwrap() {
            lines.push(String::from_utf8(line.clone()).unwrap());
        }
        assert_eq!(lines, expect, "{text:?}");
    }

    #[test]
    fn lines_have_ends_and_bounds() {
        check("", &[]);
        check("ab\n\nc", &["ab\n", "\n", "c"]);
        check("abc\nd", &["abc\n", "d"]);
        check("abcd\ne", &["abcd", "e"]);
        check("abcdefgh\ni", &["abcd", "i"]);
        check("abcdefgh", &["abcd"]);
    }
}
