//! The headings of a page: level and text.

use telusur_model::{Heading, PageContent};

use crate::ContentLimits;
use crate::content::push_bounded;
use crate::text::TextWriter;

pub(super) struct HeadingCollector<'t> {
    limits: &'t ContentLimits,
    headings: Vec<Heading>,
    dropped: u32,
    /// The level of the open heading. HTML has no heading inside another one.
    open: Option<u8>,
    text: TextWriter,
}

impl<'t> HeadingCollector<'t> {
    pub(super) fn new(limits: &'t ContentLimits) -> Self {
        let text = TextWriter::new(limits.heading_bytes_max);
        Self { limits, headings: Vec::new(), dropped: 0, open: None, text }
    }

    pub(super) fn open(&mut self, level: u8) {
        self.close();
        self.open = Some(level);
    }

    pub(super) fn text(&mut self, text: &str) {
        if self.open.is_some() {
            self.text.flowing(text);
        }
    }

    pub(super) fn close(&mut self) {
        if let Some(level) = self.open.take().filter(|_| !self.text.as_str().is_empty()) {
            let heading = Heading { level, text: self.text.as_str().to_owned() };
            let max = self.limits.headings_max;
            push_bounded(&mut self.headings, heading, max, &mut self.dropped);
        }
        self.text.clear();
    }

    pub(super) fn finish(self, content: &mut PageContent) {
        content.headings = self.headings;
        content.dropped.headings = self.dropped;
    }
}
