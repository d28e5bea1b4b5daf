//! [`Template`]: a URL with a place for the id, `https://host/item/{id}`. Parsed once; then every
//! id has exactly one URL, and every such URL exactly one id.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Host, PageUrl, UrlError};

/// Widest padding, `{id:064}`: longer than any number that people write into an address.
const WIDTH_MAX: usize = 64;
/// Digits of the largest id.
const DIGITS_MAX: usize = 20;

/// A URL with a place for the id.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Template {
    /// As the user wrote it.
    text: String,
    /// Of the URL in its normal spelling: what comes before the id.
    before: String,
    /// And what comes after.
    after: String,
    /// Least number of digits; filled up with zeros.
    width: usize,
    host: Host,
}

/// A template that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault}: {template:?}")]
pub struct TemplateError {
    /// The template as given.
    pub template: String,
    /// The byte at which the fault begins.
    pub at: usize,
    /// What is wrong with it.
    pub fault: TemplateFault,
}

/// What is wrong with a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateFault {
    /// There is no place for the id.
    #[error("template has no {{id}}")]
    NoId,
    /// There is more than one.
    #[error("template has more than one {{id}}")]
    TwoIds,
    /// A brace without its partner.
    #[error("template has a brace without its partner")]
    Unclosed,
    /// Braces around something else.
    #[error("template has {{{0}}}, which is not known")]
    Unknown(String),
    /// Padding that is not `0` and a width.
    #[error("template has the padding {0:?}, which is not a zero and a width")]
    Padding(String),
    /// The id would change who is asked.
    #[error("template has {{id}} before its path")]
    InHost,
    /// The id would never be sent: in a fragment, or in a part of the path that is left out.
    #[error("template has {{id}} where it is not sent")]
    NotSent,
    /// Not a URL that can be asked for.
    #[error("template is not a usable URL ({0})")]
    Url(UrlError),
}

impl TemplateError {
    /// The way out, for people.
    pub fn hint(&self) -> String {
        const QUOTES: &str = "quotes keep the shell from touching braces";
        match &self.fault {
            TemplateFault::NoId => {
                format!("Write it like '{}' ({QUOTES})", with_id(&self.template))
            }
            TemplateFault::TwoIds => "Leave one of them; the others must be fixed numbers".into(),
            TemplateFault::Unclosed => {
                format!(
                    "Write the place of the id as '{{id}}' ({QUOTES}); a plain brace is %7B or %7D"
                )
            }
            TemplateFault::Unknown(name) if name.eq_ignore_ascii_case("id") => {
                "Write it in lower case: {id}".into()
            }
            TemplateFault::Unknown(_) => "Write the place of the id as {id}".into(),
            TemplateFault::Padding(_) => {
                format!("Write {{id:08}} for eight digits; up to {WIDTH_MAX} are possible")
            }
            TemplateFault::InHost => {
                "The id may stand in the path or in the query; give each host its own template"
                    .into()
            }
            TemplateFault::NotSent => "Move it into the path or into the query".into(),
            TemplateFault::Url(_) => "Write it like 'https://host/item/{id}'".into(),
        }
    }
}

/// The template that was probably meant: the last number of the address is the id, or it is missing
/// at its end.
fn with_id(text: &str) -> String {
    let path = authority_end(text);
    let last_digit = text.rfind(|char: char| char.is_ascii_digit()).filter(|&at| at >= path);
    let Some(last_digit) = last_digit else {
        let slash = if text.ends_with(['/', '=']) { "" } else { "/" };
        return format!("{text}{slash}{{id}}");
    };
    let digits = text[..=last_digit].bytes().rev().take_while(u8::is_ascii_digit).count();
    format!("{}{{id}}{}", &text[..last_digit + 1 - digits], &text[last_digit + 1..])
}

impl Template {
    /// Reads a template.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let error = |at, fault| TemplateError { template: text.to_owned(), at, fault };
        let place = Place::find(text).map_err(|(at, fault)| error(at, fault))?;
        if place.first < authority_end(text) {
            return Err(error(place.first, TemplateFault::InHost));
        }
        // Two ids that differ in every digit show where the id stands in the normal spelling of the
        // URL, and that nothing else depends on it.
        let digits_max = place.width.max(DIGITS_MAX);
        let spelled = |digit: &str| {
            let id = digit.repeat(digits_max);
            PageUrl::parse(&format!("{}{id}{}", &text[..place.first], &text[place.end..]))
                .map_err(|why| error(0, TemplateFault::Url(why)))
        };
        let (zeros, ones) = (spelled("0")?, spelled("1")?);
        let bytes = zeros.as_str().bytes().zip(ones.as_str().bytes());
        let Some(id_first) = bytes.clone().position(|(zero, one)| zero != one) else {
            return Err(error(place.first, TemplateFault::NotSent));
        };
        let path_first = zeros.as_str().len() - zeros.target().len();
        let id_end = id_first + digits_max;
        let differing = bytes.filter(|(zero, one)| zero != one).count();
        if id_first < path_first
            || differing != digits_max
            || zeros.as_str().get(id_end..) != ones.as_str().get(id_end..)
        {
            return Err(error(place.first, TemplateFault::InHost));
        }
        Ok(Self {
            text: text.to_owned(),
            before: zeros.as_str()[..id_first].to_owned(),
            after: zeros.as_str()[id_end..].to_owned(),
            width: place.width,
            host: zeros.host(),
        })
    }

    /// The page with this id.
    pub fn url_of(&self, id: u64) -> PageUrl {
        PageUrl::parse(&self.spell(id)).expect("it was parsed with the longest id")
    }

    /// The id of a page, if it is one of this template.
    pub fn id_of(&self, url: &PageUrl) -> Option<u64> {
        let digits = url.as_str().strip_prefix(&self.before)?.strip_suffix(&self.after)?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let id = digits.parse().ok()?;
        // `007` is another page than `7`.
        (self.spell(id) == url.as_str()).then_some(id)
    }

    /// The host that is asked, the same for all ids.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The template as the user wrote it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn spell(&self, id: u64) -> String {
        format!("{}{id:0width$}{}", self.before, self.after, width = self.width)
    }
}

/// Where `{id}` stands in the text.
struct Place {
    first: usize,
    end: usize,
    width: usize,
}

impl Place {
    fn find(text: &str) -> Result<Self, (usize, TemplateFault)> {
        let mut found: Option<Self> = None;
        let mut at = 0;
        while let Some(brace) = text[at..].find(['{', '}']).map(|offset| at + offset) {
            if text.as_bytes()[brace] == b'}' {
                return Err((brace, TemplateFault::Unclosed));
            }
            let inside = &text[brace + 1..];
            let inside = match inside.find(['{', '}']) {
                Some(close) if inside.as_bytes()[close] == b'}' => &inside[..close],
                _ => return Err((brace, TemplateFault::Unclosed)),
            };
            let width = width_of(inside).map_err(|fault| (brace, fault))?;
            if found.is_some() {
                return Err((brace, TemplateFault::TwoIds));
            }
            at = brace + inside.len() + 2;
            found = Some(Self { first: brace, end: at, width });
        }
        found.ok_or((text.len(), TemplateFault::NoId))
    }
}

/// The padding that stands between the braces: `id` has none, `id:08` has eight digits.
fn width_of(inside: &str) -> Result<usize, TemplateFault> {
    let (name, padding) = match inside.split_once(':') {
        Some((name, padding)) => (name, Some(padding)),
        None => (inside, None),
    };
    if name != "id" {
        return Err(TemplateFault::Unknown(inside.to_owned()));
    }
    let Some(padding) = padding else { return Ok(0) };
    let digits = padding.strip_prefix('0').filter(|rest| rest.bytes().all(|b| b.is_ascii_digit()));
    let width = digits.and_then(|digits| digits.parse().ok());
    width
        .filter(|width| (1..=WIDTH_MAX).contains(width))
        .ok_or_else(|| TemplateFault::Padding(padding.to_owned()))
}

/// Where scheme, host and port end and the path begins.
fn authority_end(text: &str) -> usize {
    let authority = text.find("://").map_or(0, |at| at + 3);
    text[authority..].find(['/', '?', '#', '\\']).map_or(text.len(), |at| authority + at)
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Template({})", self.text)
    }
}

impl TryFrom<String> for Template {
    type Error = TemplateError;

    fn try_from(text: String) -> Result<Self, TemplateError> {
        Self::parse(&text)
    }
}

impl From<Template> for String {
    fn from(template: Template) -> Self {
        template.text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(template: &str, id: u64, expect: &str) {
        let template = Template::parse(template).unwrap();
        let url = template.url_of(id);
        assert_eq!(url.as_str(), expect);
        assert_eq!(template.id_of(&url), Some(id));
    }

    #[track_caller]
    fn refused(template: &str, at: usize, fault: TemplateFault) {
        let error = Template::parse(template).unwrap_err();
        assert_eq!((error.at, error.fault), (at, fault));
    }

    #[test]
    fn ids_in_path_and_query() {
        check("https://a.org/item/{id}", 7, "https://a.org/item/7");
        check("https://a.org/{id}.html", 0, "https://a.org/0.html");
        check("https://a.org/?id={id}&x=1", 38_401_264, "https://a.org/?id=38401264&x=1");
        check("https://a.org?id={id}", 1, "https://a.org/?id=1");
    }

    #[test]
    fn padding() {
        check("https://a.org/{id:08}", 7, "https://a.org/00000007");
        check("https://a.org/{id:02}", 12_345, "https://a.org/12345");
        check("https://a.org/{id:01}", 0, "https://a.org/0");
    }

    #[test]
    fn the_last_id_has_a_url() {
        check("https://a.org/{id}", u64::MAX, "https://a.org/18446744073709551615");
        check("https://a.org/{id:064}", u64::MAX, &format!("https://a.org/{:064}", u64::MAX));
    }

    #[test]
    fn the_url_is_spelled_as_the_standard_does() {
        check("HTTPS://A.org:443/x/../y z/{id}", 5, "https://a.org/y%20z/5");
        check("https://me:secret@a.org/{id}#top", 5, "https://a.org/5");
    }

    #[test]
    fn digits_around_the_id_do_not_confuse() {
        check("https://a.org/1111/11{id}11/000", 11, "https://a.org/1111/111111/000");
    }

    #[test]
    fn pages_of_other_templates_have_no_id() {
        let template = Template::parse("https://a.org/item/{id}.html").unwrap();
        for text in [
            "https://a.org/item/007.html",
            "https://a.org/item/.html",
            "https://a.org/item/+7.html",
            "https://a.org/item/7",
            "https://a.org/item/18446744073709551616.html",
            "https://a.org/item/7.html?x",
            "https://b.org/item/7.html",
        ] {
            assert_eq!(template.id_of(&PageUrl::parse(text).unwrap()), None, "{text}");
        }
    }

    #[test]
    fn places_that_are_refused() {
        refused("https://x/1", 11, TemplateFault::NoId);
        refused("https://x/{id}/{id}", 15, TemplateFault::TwoIds);
        refused("https://x/{id", 10, TemplateFault::Unclosed);
        refused("https://x/id}", 12, TemplateFault::Unclosed);
        refused("https://x/{{id}}", 10, TemplateFault::Unclosed);
        refused("https://x/{ID}", 10, TemplateFault::Unknown("ID".into()));
        refused("https://x/{}", 10, TemplateFault::Unknown(String::new()));
        refused("https://x/{page}/{id}", 10, TemplateFault::Unknown("page".into()));
    }

    #[test]
    fn the_id_must_not_choose_the_host() {
        for (template, at) in [
            ("https://{id}.x/", 8),
            ("https://x:{id}/", 10),
            ("https://u{id}@x/", 9),
            ("{id}://x/", 0),
            ("https://{id}", 8),
        ] {
            refused(template, at, TemplateFault::InHost);
        }
    }

    #[test]
    fn an_id_that_would_not_be_sent_is_refused() {
        refused("https://x/#{id}", 11, TemplateFault::NotSent);
        refused("https://x/{id}/..", 10, TemplateFault::NotSent);
    }

    #[test]
    fn paddings_that_are_refused() {
        for padding in ["8", "0", "00", "065", "0x8", "-1", "", "08 "] {
            let template = format!("https://x/{{id:{padding}}}");
            refused(&template, 10, TemplateFault::Padding(padding.into()));
        }
    }

    #[test]
    fn urls_that_are_refused() {
        for template in ["x/{id}", "ftp://x/{id}", "https:///{id}", "https://[x/{id}"] {
            let error = Template::parse(template).unwrap_err();
            assert!(matches!(error.fault, TemplateFault::Url(_)), "{template}: {error}");
        }
        let long = format!("https://x/{}{{id}}", "x".repeat(crate::URL_BYTES_MAX - 20));
        let error = Template::parse(&long).unwrap_err();
        assert!(matches!(error.fault, TemplateFault::Url(UrlError::TooLong(_))), "{error}");
    }

    #[test]
    fn the_message_shows_the_way_out() {
        let error = Template::parse("https://x/1").unwrap_err();
        assert_eq!(error.to_string(), r#"template has no {id}: "https://x/1""#);
        let hint = "Write it like 'https://x/{id}' (quotes keep the shell from touching braces)";
        assert_eq!(error.hint(), hint);
    }

    #[test]
    fn the_hint_guesses_the_place() {
        assert_eq!(with_id("https://x1/a/22.html"), "https://x1/a/{id}.html");
        assert_eq!(with_id("https://x1/a"), "https://x1/a/{id}");
        assert_eq!(with_id("https://x1/?p="), "https://x1/?p={id}");
        assert_eq!(with_id("https://x1"), "https://x1/{id}");
        assert_eq!(with_id("/7"), "/{id}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(https?://)?[a-z{}:@/?#%.0-9 é]{0,40}", id: u64) {
            match Template::parse(&text) {
                Ok(template) => {
                    let url = template.url_of(id);
                    prop_assert_eq!(template.id_of(&url), Some(id));
                    prop_assert_eq!(&url.host(), template.host());
                    prop_assert_ne!(url, template.url_of(id.wrapping_add(1)));
                }
                Err(error) => {
                    prop_assert!(text.is_char_boundary(error.at));
                    prop_assert!(!error.hint().is_empty());
                }
            }
        }

        #[test]
        fn ids_come_back(before in "[a-z0-9/%]{0,12}", after in "[a-z0-9/?&=.]{0,12}", width in 0_usize..9, id: u64) {
            let padding = if width == 0 { String::new() } else { format!(":0{width}") };
            let text = format!("https://a.org/{before}{{id{padding}}}{after}");
            let template = Template::parse(&text).unwrap();
            prop_assert_eq!(template.id_of(&template.url_of(id)), Some(id));
        }
    }
}
