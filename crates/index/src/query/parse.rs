//! Reads the query language. Nothing is an error: what cannot be understood is searched literally,
//! and what is left out is said.

use telusur_model::PageUrl;
use telusur_model::units::read_date;

use super::Filter;

/// Longest query that is read. Real ones are below 1 KB; the rest is an experiment on us.
const QUERY_BYTES_MAX: usize = 8 * 1024;
/// Most words and phrases of a query that are searched for.
const ATOMS_MAX: usize = 128;
/// From this many words on, a query is prose. People who demand a phrase type few other words.
const PROSE_WORDS_MIN: usize = 10;
/// Most notes about what was left out.
const IGNORED_MAX: usize = 8;

/// What a query says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parsed {
    /// Words that a page may have: the more, the better.
    pub(crate) wanted: Vec<Atom>,
    /// Of each group, a page has at least one.
    pub(crate) required: Vec<Vec<Atom>>,
    /// What a page must not have.
    pub(crate) excluded: Vec<Atom>,
    /// Conditions.
    pub(crate) filters: Vec<Filter>,
    /// What was left out, in words for the person who typed it.
    pub(crate) ignored: Vec<String>,
}

impl Parsed {
    /// Whether this is prose, in which quotation marks emphasise and do not demand.
    pub(crate) fn is_prose(&self) -> bool {
        self.wanted.len() >= PROSE_WORDS_MIN
    }

    /// The same query with everything that was required merely wanted.
    pub(crate) fn relaxed(mut self) -> Self {
        self.wanted.extend(self.required.drain(..).flatten());
        self
    }
}

/// A word, or a phrase, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Atom {
    Word(String),
    /// A word of which only the beginning is given.
    Prefix(String),
    Phrase(String),
}

/// How a piece of a query stands to the rest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    None,
    Plus,
    Minus,
}

/// Reads a query.
pub(crate) fn parse(text: &str) -> Parsed {
    let mut reader = QueryParser { parsed: Parsed::default(), atoms: 0, joined: None };
    let kept = cut(text);
    if kept.len() < text.len() {
        reader.ignore(format!("everything after the first {QUERY_BYTES_MAX} bytes"));
    }
    let mut rest = kept;
    while let Some((piece, after)) = next_piece(rest) {
        rest = after;
        reader.take(piece);
    }
    reader.parsed
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(QUERY_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A piece of a query: `-site:example.org`, `"two words"`, `OR` …
struct Piece<'t> {
    sign: Sign,
    field: Option<&'t str>,
    value: &'t str,
    quoted: bool,
}

/// The next piece, and what follows it. Parentheses separate like spaces: nesting them means nothing
/// where every word is optional, and then no query can be nested too deeply.
fn next_piece(text: &str) -> Option<(Piece<'_>, &str)> {
    let text = text.trim_start_matches(is_space);
    if text.is_empty() {
        return None;
    }
    let (sign, text) = match text.as_bytes()[0] {
        b'-' => (Sign::Minus, &text[1..]),
        b'+' => (Sign::Plus, &text[1..]),
        _ => (Sign::None, text),
    };
    let (field, text) = split_field(text);
    if let Some(quoted) = text.strip_prefix(is_quote) {
        // Without a closing quote the phrase goes on to the end.
        let end = quoted.find(is_quote).unwrap_or(quoted.len());
        let after = quoted[end..].trim_start_matches(is_quote);
        return Some((Piece { sign, field, value: &quoted[..end], quoted: true }, after));
    }
    let end = text.find(|c| is_space(c) || is_quote(c)).unwrap_or(text.len());
    Some((Piece { sign, field, value: &text[..end], quoted: false }, &text[end..]))
}

fn is_space(c: char) -> bool {
    c.is_whitespace() || c.is_control() || matches!(c, '(' | ')')
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\u{201c}' | '\u{201d}' | '\u{201e}' | '«' | '»')
}

const FIELDS: &[&str] = &[
    "site", "intitle", "title", "inurl", "url", "lang", "language", "filetype", "format", "type",
    "before", "after", "year", "has", "crawl", "status", "link", "rights",
];

fn split_field(text: &str) -> (Option<&str>, &str) {
    match text.split_once(':') {
        Some((field, rest)) if FIELDS.iter().any(|known| field.eq_ignore_ascii_case(known)) => {
            (Some(field), rest)
        }
        _ => (None, text),
    }
}

struct QueryParser {
    parsed: Parsed,
    atoms: usize,
    /// Whether the last piece was `OR` or `AND`.
    joined: Option<Join>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Join {
    Or,
    And,
}

impl QueryParser {
    fn take(&mut self, piece: Piece<'_>) {
        if let Some(field) = piece.field {
            self.joined = None;
            return self.take_field(&field.to_ascii_lowercase(), &piece);
        }
        if piece.sign == Sign::None && !piece.quoted {
            match piece.value {
                "OR" | "|" | "||" => return self.joined = Some(Join::Or),
                "AND" | "&&" => return self.joined = Some(Join::And),
                _ => {}
            }
        }
        let join = self.joined.take();
        let Some(atom) = atom(&piece) else {
            if !piece.value.is_empty() {
                self.ignore(format!("{:?}: no word to search for", short(piece.value)));
            }
            return;
        };
        if self.atoms >= ATOMS_MAX {
            return self.ignore(format!("words after the first {ATOMS_MAX}"));
        }
        self.atoms += 1;
        self.place(atom, piece.sign, join);
    }

    fn place(&mut self, atom: Atom, sign: Sign, join: Option<Join>) {
        let Parsed { wanted, required, excluded, .. } = &mut self.parsed;
        match (sign, join) {
            (Sign::Minus, _) => excluded.push(atom),
            (_, Some(Join::Or)) => {
                // The piece before joins the group of this one.
                if let Some(Atom::Word(_) | Atom::Prefix(_)) = wanted.last() {
                    required.push(wanted.pop().into_iter().collect());
                }
                match required.last_mut() {
                    Some(group) => group.push(atom),
                    None => wanted.push(atom),
                }
            }
            (_, Some(Join::And)) => {
                required.extend(wanted.pop().map(|before| vec![before]));
                required.push(vec![atom]);
            }
            (Sign::Plus, None) => required.push(vec![atom]),
            (Sign::None, None) if matches!(atom, Atom::Phrase(_)) => required.push(vec![atom]),
            (Sign::None, None) => wanted.push(atom),
        }
    }

    fn take_field(&mut self, field: &str, piece: &Piece<'_>) {
        let value = piece.value.trim();
        let Some(filter) = filter(field, value) else {
            self.ignore(format!("{field}:{}", short(value)));
            // A word that was meant as a condition is still a word.
            let literal = Piece { field: None, sign: Sign::None, ..*piece };
            if let Some(atom) = atom(&literal).filter(|_| piece.sign != Sign::Minus) {
                self.parsed.wanted.push(atom);
            }
            return;
        };
        let negated = piece.sign == Sign::Minus;
        if self.parsed.filters.len() >= ATOMS_MAX {
            return self.ignore(format!("conditions after the first {ATOMS_MAX}"));
        }
        self.parsed.filters.push(if negated { Filter::Not(Box::new(filter)) } else { filter });
    }

    fn ignore(&mut self, what: String) {
        let ignored = &mut self.parsed.ignored;
        if ignored.len() < IGNORED_MAX && !ignored.contains(&what) {
            ignored.push(what);
        }
    }
}

fn atom(piece: &Piece<'_>) -> Option<Atom> {
    let value = piece.value;
    if !value.chars().any(char::is_alphanumeric) {
        return None;
    }
    Some(match value.strip_suffix('*') {
        _ if piece.quoted => Atom::Phrase(value.to_owned()),
        Some(prefix) if prefix.chars().all(char::is_alphanumeric) => {
            Atom::Prefix(prefix.to_owned())
        }
        _ => Atom::Word(value.to_owned()),
    })
}

pub(super) fn filter(field: &str, value: &str) -> Option<Filter> {
    if value.is_empty() {
        return None;
    }
    let lower = value.to_lowercase();
    Some(match field {
        "site" => Filter::Site(site_of(&lower)?),
        "intitle" | "title" => Filter::TitleWords(value.to_owned()),
        "inurl" | "url" => Filter::UrlWords(value.to_owned()),
        "lang" | "language" => Filter::Language(lower.split(['-', '_']).next()?.to_owned()),
        "filetype" | "format" | "type" => Filter::Kind(lower.trim_start_matches('.').to_owned()),
        "after" => Filter::From(read_date(value)?),
        "before" => Filter::Until(read_date(value)?),
        "year" => Filter::Year(value.parse().ok()?),
        "has" => Filter::Has(lower.trim_end_matches('s').to_owned()),
        "crawl" => Filter::Crawl(lower.strip_prefix("crawl_").unwrap_or(&lower).parse().ok()?),
        "status" => status_filter(&lower)?,
        "link" => Filter::Link(address(value)),
        "rights" => Filter::Rights(lower),
        _ => return None,
    })
}

/// An address as links are written in the index, if it is one.
fn address(value: &str) -> String {
    PageUrl::parse(value).map_or_else(|_| value.to_owned(), |url| url.to_string())
}

fn site_of(value: &str) -> Option<String> {
    let rest = value.split_once("://").map_or(value, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#', ':']).next()?;
    let host = host.trim_start_matches("*.").trim_matches('.');
    (!host.is_empty()).then(|| host.to_owned())
}

/// `404`, or a class such as `4xx`.
fn status_filter(value: &str) -> Option<Filter> {
    if let Some(class) = value.strip_suffix("xx") {
        let class: u16 = class.parse().ok().filter(|class| (1..=9).contains(class))?;
        return Some(Filter::Status(class * 100, class * 100 + 99));
    }
    let status = value.parse().ok()?;
    Some(Filter::Status(status, status))
}

/// Enough of a text to recognise it in a message.
fn short(text: &str) -> String {
    let mut short: String = text.chars().filter(|c| !c.is_control()).take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A query in one line: wanted; +required|or; -excluded; ?conditions; !ignored.
    fn line(text: &str) -> String {
        let parsed = parse(text);
        let atom = |atom: &Atom| match atom {
            Atom::Word(word) => word.clone(),
            Atom::Prefix(word) => format!("{word}*"),
            Atom::Phrase(words) => format!("\"{words}\""),
        };
        let mut parts: Vec<String> = parsed.wanted.iter().map(atom).collect();
        for group in &parsed.required {
            let group: Vec<_> = group.iter().map(atom).collect();
            parts.push(format!("+{}", group.join("|")));
        }
        parts.extend(parsed.excluded.iter().map(|it| format!("-{}", atom(it))));
        parts.extend(parsed.filters.iter().map(|filter| format!("?{filter:?}")));
        parts.extend(parsed.ignored.iter().map(|what| format!("!{what}")));
        parts.join(" ")
    }

    #[track_caller]
    fn check(text: &str, expect: &str) {
        assert_eq!(line(text), expect);
    }

    #[test]
    fn words_phrases_and_signs() {
        check("cats dogs", "cats dogs");
        check("\"big cats\" dogs -birds +fish", "dogs +\"big cats\" +fish -birds");
        check("-\"small birds\"", "-\"small birds\"");
        check("e-mail C++ comput*", "e-mail C++ comput*");
    }

    #[test]
    fn or_and_and() {
        check("cats OR dogs food", "food +cats|dogs");
        check("a OR b OR c", "+a|b|c");
        check("\"x y\" OR z", "+\"x y\"|z");
        check("cats AND dogs", "+cats +dogs");
        check("OR cats", "cats");
        check("cats OR", "cats");
    }

    #[test]
    fn conditions() {
        check("x site:www.Example.org/a", "x ?Site(\"www.example.org\")");
        check("site:*.go.id", "?Site(\"go.id\")");
        check("-lang:en-US", "?Not(Language(\"en\"))");
        check("filetype:.PDF", "?Kind(\"pdf\")");
        check("intitle:\"two words\"", "?TitleWords(\"two words\")");
        check("status:4xx", "?Status(400, 499)");
        check("crawl:crawl_7", "?Crawl(7)");
        check("has:tables rights:ai-train=no", "?Has(\"table\") ?Rights(\"ai-train=no\")");
        check("link:https://a.org/x", "?Link(\"https://a.org/x\")");
        check("after:1970-01-02", "?From(Timestamp(86400000))");
    }

    #[test]
    fn what_makes_no_sense_is_searched_literally() {
        check("before:yesterday", "yesterday !before:yesterday");
        check("status:teapot x", "teapot x !status:teapot");
        check("site:", "!site:");
        check("foo:bar http://a.org/", "foo:bar http://a.org/");
        check("\"unclosed phrase", "+\"unclosed phrase\"");
        check("((a) b))", "a b");
        check("*** ?! -", "!\"***\": no word to search for !\"?!\": no word to search for");
    }

    #[test]
    fn hostile_queries_are_bounded() {
        assert_eq!(line(&"(".repeat(10_000)), "!everything after the first 8192 bytes");
        let many = parse(&"x ".repeat(4000));
        assert_eq!(many.wanted.len(), ATOMS_MAX);
        assert_eq!(many.ignored.len(), 1);
        assert_eq!(parse(&"* ".repeat(1000)).wanted, []);
        assert!(parse(&"é\"".repeat(50_000)).required.len() <= ATOMS_MAX);
        assert!(parse(&"site:a ".repeat(4000)).filters.len() <= ATOMS_MAX);
    }

    proptest! {
        #[test]
        fn no_text_is_an_error(text in "[a-z\"()*:+\\- |\\PC]{0,60}") {
            let parsed = parse(&text);
            prop_assert!(parsed.ignored.len() <= IGNORED_MAX);
        }
    }
}
