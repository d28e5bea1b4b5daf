//! The scripts and style sheets of a page, whether in it or elsewhere. Nothing here runs any.

use html5ever::local_name;
use telusur_model::{PageContent, Script, Style};

use crate::ContentLimits;
use crate::content::{Base, push_bounded, short};
use crate::meta::has_rel;
use crate::text::cut;
use crate::tree::ElementRef;

pub(super) struct CodeCollector<'t> {
    base: Base<'t>,
    limits: &'t ContentLimits,
    scripts: Vec<Script>,
    scripts_dropped: u32,
    styles: Vec<Style>,
    styles_dropped: u32,
    /// Bytes that scripts and styles may still take together.
    bytes_left: usize,
}

impl<'t> CodeCollector<'t> {
    pub(super) fn new(base: Base<'t>, limits: &'t ContentLimits) -> Self {
        Self {
            base,
            limits,
            scripts: Vec::new(),
            scripts_dropped: 0,
            styles: Vec::new(),
            styles_dropped: 0,
            bytes_left: limits.code_bytes_max,
        }
    }

    pub(super) fn take_script<'s>(
        &mut self,
        element: ElementRef<'t>,
        kind: Option<&str>,
        text: impl Iterator<Item = &'s str>,
    ) {
        let src = element.attribute(&local_name!("src"));
        let (text, bytes) = self.inline(text);
        let script =
            Script { url: src.and_then(|src| self.base.join(src)), kind: short(kind), text, bytes };
        let max = self.limits.scripts_max;
        push_bounded(&mut self.scripts, script, max, &mut self.scripts_dropped);
    }

    pub(super) fn take_style<'s>(
        &mut self,
        element: ElementRef<'t>,
        text: impl Iterator<Item = &'s str>,
    ) {
        let (text, bytes) = self.inline(text);
        let media = short(element.attribute(&local_name!("media")));
        self.push_style(Style { url: None, media, text, bytes });
    }

    /// `<link rel=stylesheet>`.
    pub(super) fn take_link(&mut self, element: ElementRef<'t>) {
        let rel = element.attribute(&local_name!("rel")).unwrap_or_default();
        let href = element.attribute(&local_name!("href"));
        if let Some(href) = href.filter(|_| has_rel(rel, &["stylesheet"])) {
            let media = short(element.attribute(&local_name!("media")));
            let url = self.base.join(href);
            self.push_style(Style { url, media, ..Style::default() });
        }
    }

    fn push_style(&mut self, style: Style) {
        let max = self.limits.styles_max;
        push_bounded(&mut self.styles, style, max, &mut self.styles_dropped);
    }

    /// The code as far as it is kept, and its whole length.
    fn inline<'s>(&mut self, text: impl Iterator<Item = &'s str>) -> (String, u64) {
        let (mut kept, mut bytes) = (String::new(), 0);
        for piece in text {
            bytes += piece.len() as u64;
            let piece = cut(piece, self.bytes_left);
            self.bytes_left -= piece.len();
            kept.push_str(piece);
        }
        (kept, bytes)
    }

    pub(super) fn finish(self, content: &mut PageContent) {
        content.scripts = self.scripts;
        content.dropped.scripts = self.scripts_dropped;
        content.styles = self.styles;
        content.dropped.styles = self.styles_dropped;
    }
}
