//! Makes text from the web harmless to look at: no control characters, nothing that turns the
//! direction of the text around it, nothing invisible that could hide or command.

/// A text on one line, cut after `chars_max` characters, with everything dangerous taken out.
pub fn inert(text: &str, chars_max: usize) -> String {
    let mut clean = String::new();
    let mut chars = 0;
    for c in text.chars() {
        if chars >= chars_max {
            clean.push('…');
            break;
        }
        chars += usize::from(push_inert(&mut clean, c));
    }
    clean.truncate(clean.trim_end().len());
    clean
}

/// A text with the characters that mean something in HTML escaped, for element content and for
/// attributes in either kind of quotes.
pub fn escape_html(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
}

/// Appends a character if it is harmless, white space as one space; says whether it did.
pub(crate) fn push_inert(clean: &mut String, c: char) -> bool {
    if c.is_whitespace() {
        let is_first = clean.is_empty() || clean.ends_with(' ');
        if !is_first {
            clean.push(' ');
        }
        return !is_first;
    }
    if is_dangerous(c) {
        return false;
    }
    clean.push(c);
    true
}

/// Controls, marks of direction, invisible characters, and code points that are no characters. The
/// two joiners stay: Persian, Hindi and many emoji cannot be written without them.
pub(crate) fn is_dangerous(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'
            | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fdd0}'..='\u{fdef}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
            | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{10ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn terminals_and_directions_are_safe() {
        assert_eq!(inert("a\u{1b}[31mred\u{7}\r\nb", 99), "a[31mred b");
        assert_eq!(inert("abc\u{202e}fdp.exe\u{2066}", 99), "abcfdp.exe");
        assert_eq!(inert("  spread \t out\u{a0}\u{3000}text ", 99), "spread out text");
    }

    #[test]
    fn joiners_stay() {
        assert_eq!(inert("می\u{200c}روم", 99), "می\u{200c}روم");
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(inert("abcdef", 3), "abc…");
        assert_eq!(inert("abc", 3), "abc");
    }

    proptest! {
        #[test]
        fn nothing_dangerous_comes_out(text in any::<String>(), max in 0_usize..50) {
            let clean = inert(&text, max);
            prop_assert!(!clean.chars().any(is_dangerous));
            prop_assert!(!clean.contains(['\n', '\r', '\t']));
            prop_assert!(clean.chars().count() <= max + 1);
        }

        #[test]
        fn escaped_text_has_no_markup(text in any::<String>()) {
            let mut out = String::new();
            escape_html(&text, &mut out);
            prop_assert!(!out.contains(['<', '>', '"', '\'']));
        }
    }
}
