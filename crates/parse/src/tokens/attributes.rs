//! The inside of a tag behind its name. Only attributes that the parser uses are kept; the others
//! are skipped at the speed of a search for the closing quote.

use std::sync::LazyLock;

use html5ever::interface::Attribute;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::TagKind;
use html5ever::{LocalName, QualName, local_name, ns};

use crate::markdown::language_in;
use crate::tokens::char_refs::Place;
use crate::tokens::{Sink, Tokenizer, is_tag_end, is_white};

/// What stood behind the name of a tag.
pub(super) struct TagRest {
    pub kept: Vec<Attribute>,
    pub self_closing: bool,
}

/// Where an attribute stands in the page.
struct Span {
    name_start: usize,
    name_end: usize,
    value_start: usize,
    value_end: usize,
}

impl<S: Sink> Tokenizer<'_, S> {
    /// Reads to the end of the tag; `None` if the page ends before it.
    pub(super) fn attributes(&mut self, kind: TagKind, element: &LocalName) -> Option<TagRest> {
        let wanted = match kind {
            TagKind::StartTag => attributes_of(element, self.detail),
            TagKind::EndTag => &[],
        };
        let mut kept: Vec<Attribute> = Vec::new();
        let mut seen = 0;
        loop {
            self.skip_white();
            match self.bytes.get(self.at)? {
                b'>' => {
                    self.at += 1;
                    return Some(TagRest { kept, self_closing: false });
                }
                b'/' if *self.bytes.get(self.at + 1)? == b'>' => {
                    self.at += 2;
                    return Some(TagRest { kept, self_closing: true });
                }
                b'/' => self.at += 1,
                _ => {
                    let span = self.attribute()?;
                    seen += 1;
                    if seen > self.attributes_max {
                        self.too_many_attributes = true;
                    } else if !wanted.is_empty() {
                        self.keep_wanted(element, &span, wanted, &mut kept);
                    }
                }
            }
        }
    }

    fn attribute(&mut self) -> Option<Span> {
        let name_start = self.at;
        // An equals sign is part of the name if it comes first.
        let behind_first = name_start + 1;
        let name_end = self.find(behind_first, |b| is_white(b) || is_tag_end(b) || b == b'=')?;
        self.at = name_end;
        self.skip_white();
        let mut span = Span { name_start, name_end, value_start: name_end, value_end: name_end };
        if *self.bytes.get(self.at)? != b'=' {
            return Some(span);
        }
        self.at += 1;
        self.skip_white();
        span.value_start = self.at;
        match *self.bytes.get(self.at)? {
            quote @ (b'"' | b'\'') => {
                span.value_start += 1;
                let length = memchr::memchr(quote, &self.bytes[span.value_start..])?;
                span.value_end = span.value_start + length;
                self.at = span.value_end + 1;
            }
            _ => {
                span.value_end = self.find(self.at, |byte| is_white(byte) || byte == b'>')?;
                self.at = span.value_end;
            }
        }
        Some(span)
    }

    fn keep_wanted(
        &self,
        element: &LocalName,
        span: &Span,
        wanted: &[LocalName],
        kept: &mut Vec<Attribute>,
    ) {
        let written = &self.bytes[span.name_start..span.name_end];
        let Some(name) = wanted.iter().find(|name| written.eq_ignore_ascii_case(name.as_bytes()))
        else {
            return;
        };
        // The first one counts, as in browsers.
        if kept.iter().any(|attribute| attribute.name.local == *name) {
            return;
        }
        if let Some(value) = self.value(element, span, name) {
            kept.push(Attribute { name: QualName::new(None, ns!(), name.clone()), value });
        }
    }

    /// The value as far as it is kept. Different values would make different formatting elements,
    /// without any bound: those of `<font>` are emptied, and of `<code>` only the name of a known
    /// language is kept.
    fn value(&self, element: &LocalName, span: &Span, name: &LocalName) -> Option<StrTendril> {
        if is_of_font(name) && *element == local_name!("font") {
            return Some(StrTendril::new());
        }
        if *element == local_name!("code") {
            let class = &self.text[span.value_start..span.value_end];
            return language_in(class).map(|language| format!("language-{language}").into());
        }
        Some(self.decoded(span.value_start, span.value_end, Place::Attribute))
    }
}

/// Where pages put the addresses of images that are loaded late.
pub(crate) struct LazyNames {
    pub data_src: LocalName,
    pub data_srcset: LocalName,
}

/// The names, made once: they are not among those that html5ever knows beforehand.
pub(crate) fn lazy_names() -> &'static LazyNames {
    static NAMES: LazyLock<LazyNames> = LazyLock::new(|| LazyNames {
        data_src: LocalName::from("data-src"),
        data_srcset: LocalName::from("data-srcset"),
    });
    &NAMES
}

/// How much of a page is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// What a crawl needs: links and what the page says about itself.
    Crawl,
    /// Everything, so that elements keep their names, images their sizes, forms their fields.
    Everything,
}

/// The attributes that are read, and a few that the tree builder needs.
pub(super) fn attributes_of(element: &LocalName, detail: Detail) -> &'static [LocalName] {
    match detail {
        Detail::Crawl => attributes_for_crawl(element),
        Detail::Everything => attributes_for_everything(element),
    }
}

fn attributes_for_crawl(element: &LocalName) -> &'static [LocalName] {
    static LINK: [LocalName; 3] =
        [local_name!("href"), local_name!("rel"), local_name!("xlink:href")];
    static FRAME: [LocalName; 1] = [local_name!("src")];
    static META: [LocalName; 3] =
        [local_name!("name"), local_name!("content"), local_name!("http-equiv")];
    static HTML: [LocalName; 2] = [local_name!("lang"), local_name!("xml:lang")];
    static INPUT: [LocalName; 1] = [local_name!("type")];
    static FONT: [LocalName; 3] = [local_name!("color"), local_name!("face"), local_name!("size")];
    static ANNOTATION: [LocalName; 1] = [local_name!("encoding")];
    match *element {
        local_name!("a") | local_name!("area") | local_name!("base") | local_name!("link") => &LINK,
        local_name!("frame") | local_name!("iframe") => &FRAME,
        local_name!("meta") => &META,
        local_name!("html") => &HTML,
        local_name!("input") => &INPUT,
        local_name!("font") => &FONT,
        local_name!("annotation-xml") => &ANNOTATION,
        _ => &[],
    }
}

/// Names say what an element is for; the rest is what its kind of content is made of. Formatting
/// elements get none but for `<code>`: attributes would make them different from each other.
fn attributes_for_everything(element: &LocalName) -> &'static [LocalName] {
    const CLASS: LocalName = local_name!("class");
    const ID: LocalName = local_name!("id");
    const ROLE: LocalName = local_name!("role");
    const HIDDEN: LocalName = local_name!("hidden");
    const ARIA_HIDDEN: LocalName = local_name!("aria-hidden");
    const STYLE: LocalName = local_name!("style");
    const HREF: LocalName = local_name!("href");
    const REL: LocalName = local_name!("rel");
    const SRC: LocalName = local_name!("src");
    const TYPE: LocalName = local_name!("type");
    const NAME: LocalName = local_name!("name");
    const ITEMPROP: LocalName = local_name!("itemprop");
    static ANY: [LocalName; 8] =
        [CLASS, ID, ROLE, HIDDEN, ARIA_HIDDEN, STYLE, local_name!("itemtype"), ITEMPROP];
    static CODE: [LocalName; 1] = [CLASS];
    static STYLE_SHEET: [LocalName; 1] = [local_name!("media")];
    static INLINE: [LocalName; 2] = [CLASS, ITEMPROP];
    static ANCHOR: [LocalName; 5] = [HREF, REL, local_name!("xlink:href"), CLASS, ITEMPROP];
    static LINK: [LocalName; 7] = [
        HREF,
        REL,
        TYPE,
        local_name!("hreflang"),
        local_name!("media"),
        local_name!("title"),
        local_name!("xlink:href"),
    ];
    static META: [LocalName; 5] = [
        NAME,
        local_name!("content"),
        local_name!("http-equiv"),
        local_name!("property"),
        ITEMPROP,
    ];
    static SCRIPT: [LocalName; 2] = [SRC, TYPE];
    // The last two are no names of the standard, so that they are made when first needed.
    static IMAGE: LazyLock<[LocalName; 8]> = LazyLock::new(|| {
        [
            SRC,
            local_name!("srcset"),
            local_name!("alt"),
            local_name!("width"),
            local_name!("height"),
            TYPE,
            lazy_names().data_src.clone(),
            lazy_names().data_srcset.clone(),
        ]
    });
    static CELL: [LocalName; 9] = [
        local_name!("colspan"),
        local_name!("rowspan"),
        CLASS,
        ID,
        ROLE,
        HIDDEN,
        ARIA_HIDDEN,
        STYLE,
        ITEMPROP,
    ];
    static FORM: [LocalName; 8] =
        [local_name!("action"), local_name!("method"), NAME, CLASS, ID, ROLE, HIDDEN, STYLE];
    static FIELD: [LocalName; 6] = [
        TYPE,
        NAME,
        local_name!("value"),
        local_name!("placeholder"),
        CLASS,
        local_name!("required"),
    ];
    static TIME: [LocalName; 3] = [local_name!("datetime"), CLASS, ITEMPROP];
    static LIST: [LocalName; 8] =
        [local_name!("start"), CLASS, ID, ROLE, HIDDEN, ARIA_HIDDEN, STYLE, ITEMPROP];
    match *element {
        local_name!("a") | local_name!("area") => &ANCHOR,
        local_name!("link") => &LINK,
        local_name!("meta") => &META,
        local_name!("script") => &SCRIPT,
        local_name!("img") | local_name!("source") => &*IMAGE,
        local_name!("td") | local_name!("th") => &CELL,
        local_name!("form") => &FORM,
        local_name!("input")
        | local_name!("select")
        | local_name!("textarea")
        | local_name!("button") => &FIELD,
        local_name!("time") => &TIME,
        local_name!("ol") => &LIST,
        local_name!("span") => &INLINE,
        local_name!("base")
        | local_name!("frame")
        | local_name!("iframe")
        | local_name!("html")
        | local_name!("font")
        | local_name!("annotation-xml") => attributes_for_crawl(element),
        local_name!("code") => &CODE,
        local_name!("style") => &STYLE_SHEET,
        local_name!("b")
        | local_name!("big")
        | local_name!("em")
        | local_name!("i")
        | local_name!("nobr")
        | local_name!("s")
        | local_name!("small")
        | local_name!("strike")
        | local_name!("strong")
        | local_name!("tt")
        | local_name!("u")
        | local_name!("br")
        | local_name!("path")
        | local_name!("svg") => &[],
        _ => &ANY,
    }
}

/// Whether the tree builder only asks if the attribute is there: `<font color>` ends SVG.
pub(super) fn is_of_font(name: &LocalName) -> bool {
    matches!(*name, local_name!("color") | local_name!("face") | local_name!("size"))
}
