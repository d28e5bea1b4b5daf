//! One kind of content in every page of a crawl.

use serde::{Deserialize, Serialize};
use telusur_ledger::StoreError;
use telusur_model::{ContentKind, PageContent};

use super::export::DamagedPage;
use super::handle::Control;
use super::operation::{Each, Length, Operation, OperationKind};
use crate::error::RequestError;
use crate::stored_page::{Stored, each_page, parse_failed};

/// The content of one kind, page by page, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportContent {
    /// Which crawl.
    pub crawl: String,
    /// Which kind.
    pub kind: ContentKind,
}

/// What is known of one page of an [`ExportContent`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentItem {
    /// Its content.
    Found(Box<FoundContent>),
    /// It cannot be read.
    Damaged(DamagedPage),
}

/// What a page has of one kind of content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundContent {
    /// The crawl's id.
    pub crawl: String,
    /// The page's URL.
    pub page: String,
    /// The content, of the kind that was asked for.
    pub content: PageContent,
}

impl Operation for ExportContent {
    const KIND: OperationKind = OperationKind::ExportContent;
    const LENGTH: Length = Length::Long;
    type Item = ContentItem;
    type Reply = ();

    fn run(&self, control: &Control, each: Each<'_, ContentItem>) -> Result<(), RequestError> {
        let crawl = control.find(&self.crawl)?.crawl;
        each_page(control.store.as_ref(), crawl.no, |page| {
            let item = match control.pages.content(&page) {
                Ok(Stored::NotKept) => return Ok(true),
                Ok(Stored::Failed { why }) => ContentItem::Damaged(DamagedPage {
                    url: page.url.to_string(),
                    what: parse_failed(&why),
                }),
                Ok(Stored::Read(content)) => ContentItem::Found(Box::new(FoundContent {
                    crawl: crawl.id.to_string(),
                    page: page.url.to_string(),
                    content: content.only(self.kind),
                })),
                // One damaged page costs one page.
                Err(StoreError::Damaged(what)) => {
                    ContentItem::Damaged(DamagedPage { url: page.url.to_string(), what })
                }
                Err(error) => return Err(error),
            };
            Ok(each(item))
        })?;
        Ok(())
    }
}
