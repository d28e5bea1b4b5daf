//! The text of descriptions: paragraphs with `code` and **strong** words, the part of Markdown that they use.

/// A piece of a paragraph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Span {
    Plain(String),
    Code(String),
    Strong(String),
}

/// Paragraphs, which empty lines part.
pub(super) fn paragraphs(text: &str) -> Vec<Vec<Span>> {
    text.split("\n\n").map(spans).filter(|spans| !spans.is_empty()).collect()
}

/// The pieces of one paragraph. A mark that is never closed stands for itself.
pub(super) fn spans(text: &str) -> Vec<Span> {
    let mut found = Vec::new();
    let mut plain = String::new();
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next() {
        let mark = ["`", "**"].into_iter().find(|mark| rest.starts_with(mark));
        let marked = mark.and_then(|mark| Some((mark, rest[mark.len()..].split_once(mark)?)));
        let Some((mark, (inside, after))) = marked else {
            plain.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        if !plain.is_empty() {
            found.push(Span::Plain(std::mem::take(&mut plain)));
        }
        let inside = inside.to_owned();
        found.push(if mark == "`" { Span::Code(inside) } else { Span::Strong(inside) });
        rest = after;
    }
    if !plain.is_empty() {
        found.push(Span::Plain(plain));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &[Span]) {
        assert_eq!(spans(text), expect, "{text}");
    }

    fn plain(text: &str) -> Span {
        Span::Plain(text.to_owned())
    }

    fn code(text: &str) -> Span {
        Span::Code(text.to_owned())
    }

    #[test]
    fn marks_part_a_paragraph() {
        check("", &[]);
        check("a é", &[plain("a é")]);
        check("`a`, or `b`", &[code("a"), plain(", or "), code("b")]);
        check(
            "**Keys.** `*` is",
            &[Span::Strong("Keys.".to_owned()), plain(" "), code("*"), plain(" is")],
        );
        check("a ` b ** c", &[plain("a ` b ** c")]);
    }

    #[test]
    fn empty_lines_part_paragraphs() {
        assert_eq!(paragraphs("a\nb\n\nc\n\n").len(), 2);
        assert_eq!(paragraphs(""), Vec::<Vec<Span>>::new());
    }
}
