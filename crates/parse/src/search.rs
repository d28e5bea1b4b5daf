//! What a search goes by, taken out of pages that a crawl reads at the same time.

use telusur_model::{Findings, PageContent, ParsedPage, RawPage, SearchPage};

use crate::charset::Decoded;
use crate::tokens::Syntax;
use crate::{ContentLimits, HtmlPage, language, parsed_page};

/// What is in a page of HTML.
pub(crate) fn html(
    decoded: &Decoded<'_>,
    page: &RawPage,
    syntax: Syntax,
    limits: &ContentLimits,
) -> SearchPage {
    let HtmlPage { parsed, mut content } = HtmlPage::read(decoded, page, syntax, limits);
    content.description = parsed.description.clone().or(content.description);
    let mut findings = findings_of(content);
    findings.has_code = has_preformatted(decoded.text.as_bytes());
    if findings.text.is_empty() {
        findings.text.clone_from(&parsed.visible_text);
    }
    SearchPage { parsed, findings }
}

/// What is in a feed.
pub(crate) fn feed(mut content: PageContent) -> SearchPage {
    let links = std::mem::take(&mut content.links);
    let findings = findings_of(content.clone());
    SearchPage { parsed: parsed_page(PageContent { links, ..content }), findings }
}

/// What is in a plain text.
pub(crate) fn plain_text(parsed: ParsedPage) -> SearchPage {
    let text = parsed.visible_text.clone();
    let language = language::language_of(&text, None).decided;
    SearchPage { parsed, findings: Findings { text, language, ..Findings::default() } }
}

fn findings_of(content: PageContent) -> Findings {
    Findings {
        description: content.description,
        headings: content.headings.into_iter().map(|heading| heading.text).collect(),
        text: content.text,
        language: content.language,
        published: content.published,
        has_table: !content.tables.is_empty(),
        has_form: !content.forms.is_empty(),
        has_image: !content.images.is_empty(),
        has_code: false,
    }
}

/// Whether there is a `<pre>`.
fn has_preformatted(html: &[u8]) -> bool {
    memchr::memchr_iter(b'<', html).any(|at| {
        let tag = html.get(at..at + 5).unwrap_or_default();
        tag.len() == 5 && tag[..4].eq_ignore_ascii_case(b"<pre") && !tag[4].is_ascii_alphanumeric()
    })
}
