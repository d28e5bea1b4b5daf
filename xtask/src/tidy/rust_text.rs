//! Rust source, as far as the rules need it: each line as code and comment, the lines of inline tests, and
//! `mod` declarations. Not a parser: it knows comments, literals and braces.

/// One file of Rust.
pub(super) struct RustText {
    /// In order, the first line first.
    pub(super) lines: Vec<Line>,
    /// `mod name;` at the top level of the file, in order.
    pub(super) modules: Vec<Module>,
}

/// One line.
pub(super) struct Line {
    /// As it is in the file.
    pub(super) text: String,
    /// Without comments; the insides of literals are blank.
    pub(super) code: String,
    /// Part of an item behind `#[cfg(test)]`.
    pub(super) is_test: bool,
    /// Braces that are open where it begins.
    pub(super) depth: usize,
}

/// `mod name;`
pub(super) struct Module {
    pub(super) name: String,
    /// From 1.
    pub(super) line: usize,
    /// Behind `#[cfg(test)]`.
    pub(super) is_test: bool,
}

impl RustText {
    pub(super) fn new(text: &str) -> Self {
        let blanked = blank(text);
        let mut lines: Vec<Line> = Vec::new();
        let mut depth = 0usize;
        for (text, code) in text.lines().zip(blanked.lines()) {
            let (text, code) = (text.to_owned(), code.trim_end().to_owned());
            let line = Line { text, code, is_test: false, depth };
            depth += line.code.matches('{').count();
            depth = depth.saturating_sub(line.code.matches('}').count());
            lines.push(line);
        }
        mark_tests(&mut lines);
        let modules = modules(&lines);
        Self { lines, modules }
    }

    /// Lines with their numbers, without those of tests.
    pub(super) fn program_lines(&self) -> impl Iterator<Item = (usize, &Line)> {
        (1..).zip(&self.lines).filter(|(_, line)| !line.is_test)
    }
}

/// Marks items behind `#[cfg(test)]`, from the attribute to the brace or semicolon that ends them.
fn mark_tests(lines: &mut [Line]) {
    let mut index = 0;
    while index < lines.len() {
        if lines[index].code.trim() != "#[cfg(test)]" {
            index += 1;
            continue;
        }
        let outside = lines[index].depth;
        let mut is_open = false;
        while index < lines.len() {
            lines[index].is_test = true;
            is_open |= lines[index].code.contains('{');
            let next_depth = lines.get(index + 1).map_or(0, |next| next.depth);
            let code = lines[index].code.trim_end();
            let ends = if is_open { next_depth <= outside } else { code.ends_with(';') };
            index += 1;
            if ends {
                break;
            }
        }
    }
}

fn modules(lines: &[Line]) -> Vec<Module> {
    let mut modules = Vec::new();
    for (number, line) in (1..).zip(lines).filter(|(_, line)| line.depth == 0) {
        let code = line.code.trim();
        let code = code.strip_prefix("pub ").or(code.strip_prefix("pub(crate) ")).unwrap_or(code);
        if let Some(name) = code.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
            modules.push(Module { name: name.into(), line: number, is_test: line.is_test });
        }
    }
    modules
}

/// The same text with comments and the insides of literals replaced by spaces. Line breaks stay.
fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let is_name_before = at > 0 && is_name_char(chars[at - 1]);
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => line_end(&chars, at),
            '/' if chars.get(at + 1) == Some(&'*') => comment_end(&chars, at),
            'r' if !is_name_before || chars[at - 1] == 'b' || chars[at - 1] == 'c' => {
                raw_end(&chars, at)
            }
            '"' => string_end(&chars, at),
            '\'' => char_end(&chars, at),
            _ => at,
        };
        if end == at {
            out.push(chars[at]);
            at += 1;
            continue;
        }
        out.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
        // A literal stays visible: a line of one is code.
        if chars[at] != '/' {
            out.pop();
            out.push('"');
        }
        at = end;
    }
    out
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn line_end(chars: &[char], at: usize) -> usize {
    chars[at..].iter().position(|c| *c == '\n').map_or(chars.len(), |length| at + length)
}

/// Block comments nest.
fn comment_end(chars: &[char], mut at: usize) -> usize {
    let mut depth = 0;
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => {
                depth += 1;
                at += 2;
            }
            ('*', Some('/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    chars.len()
}

/// The end of `r"..."` or `r#"..."#`; `at` itself if it is something else.
fn raw_end(chars: &[char], at: usize) -> usize {
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    if chars.get(at + 1 + hashes) != Some(&'"') {
        return at;
    }
    let mut end = at + 2 + hashes;
    while end < chars.len() {
        let closes = chars[end] == '"'
            && chars[end + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes;
        if closes {
            return end + 1 + hashes;
        }
        end += 1;
    }
    chars.len()
}

fn string_end(chars: &[char], at: usize) -> usize {
    let mut end = at + 1;
    while end < chars.len() {
        match chars[end] {
            '\\' => end += 2,
            '"' => return end + 1,
            _ => end += 1,
        }
    }
    chars.len()
}

/// The end of a character; `at` itself for a lifetime.
fn char_end(chars: &[char], at: usize) -> usize {
    match (chars.get(at + 1), chars.get(at + 2)) {
        (Some('\\'), _) => {
            let mut rest = chars.iter().skip(at + 3);
            rest.position(|c| *c == '\'').map_or(at, |length| at + 4 + length)
        }
        (Some(_), Some('\'')) => at + 3,
        _ => at,
    }
}
