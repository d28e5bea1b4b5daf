//! The lists of a page. A list inside another one is part of it, its items one level deeper.

use html5ever::local_name;
use telusur_model::{List, ListItem, PageContent};

use crate::ContentLimits;
use crate::content::push_bounded;
use crate::text::TextWriter;
use crate::tree::ElementRef;

pub(super) struct ListCollector<'t> {
    limits: &'t ContentLimits,
    lists: Vec<List>,
    dropped: u32,
    list: List,
    lists_open: u32,
    /// The text of the item that was begun last. Text behind a list inside an item goes to the
    /// last item of that list; pages that do this are rare.
    item: Option<TextWriter>,
    level: u32,
}

impl<'t> ListCollector<'t> {
    pub(super) fn new(limits: &'t ContentLimits) -> Self {
        let (lists, list) = Default::default();
        Self { limits, lists, dropped: 0, list, lists_open: 0, item: None, level: 0 }
    }

    pub(super) fn open(&mut self, element: ElementRef<'t>) {
        match element.name.local {
            local_name!("ul") | local_name!("ol") | local_name!("menu") => {
                self.end_item();
                self.lists_open += 1;
                if self.lists_open == 1 {
                    self.list.ordered = element.name.local == local_name!("ol");
                }
            }
            local_name!("li") if self.lists_open > 0 => {
                self.end_item();
                self.level = self.lists_open - 1;
                self.item = Some(TextWriter::new(self.limits.item_bytes_max));
            }
            _ => {}
        }
    }

    pub(super) fn text(&mut self, text: &str) {
        if let Some(item) = &mut self.item {
            item.flowing(text);
        }
    }

    pub(super) fn close(&mut self, element: ElementRef<'t>) {
        match element.name.local {
            local_name!("ul") | local_name!("ol") | local_name!("menu") => {
                self.end_item();
                self.lists_open = self.lists_open.saturating_sub(1);
                if self.lists_open == 0 {
                    self.end_list();
                }
            }
            local_name!("li") => self.end_item(),
            _ => {}
        }
    }

    fn end_item(&mut self) {
        let Some(text) = self.item.take() else { return };
        let is_wanted = !text.as_str().is_empty() && self.list.items.len() < self.limits.items_max;
        if is_wanted {
            let text = text.into_string();
            self.list.items.push(ListItem { level: self.level, text });
        }
    }

    fn end_list(&mut self) {
        let list = std::mem::take(&mut self.list);
        if !list.items.is_empty() {
            push_bounded(&mut self.lists, list, self.limits.lists_max, &mut self.dropped);
        }
    }

    pub(super) fn finish(self, content: &mut PageContent) {
        content.lists = self.lists;
        content.dropped.lists = self.dropped;
    }
}
