//! Text from strangers, made harmless to terminals and to readers.

/// The text with everything replaced that could command a terminal or reorder what is read.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if is_treacherous(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Text of several lines, made harmless in the same way; its line breaks and tabs stay. Marks that
/// honest texts of many languages hold, and that are invisible, are left out.
pub fn printable_lines(text: &str) -> String {
    let harmless = |c| match c {
        '\n' | '\t' => Some(c),
        '\r' => Some('\n'),
        '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{FEFF}' => None,
        c if is_treacherous(c) => Some(char::REPLACEMENT_CHARACTER),
        c => Some(c),
    };
    text.replace("\r\n", "\n").chars().filter_map(harmless).collect()
}

/// Whether a character could command a terminal, or reorder or hide what is read.
pub fn is_treacherous(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{061C}' | '\u{200E}' | '\u{200F}' // marks that turn the direction
            | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' // embeddings, overrides, isolates
            | '\u{2028}' | '\u{2029}' // line breaks that are no control characters
            | '\u{FEFF}' | '\u{E0000}'..='\u{E007F}') // invisible
}
