//! URLs of a crawl by what became of them: errors, skipped ones, and changes since the crawl before.

use serde::{Deserialize, Serialize};
use telusur_ledger::{UrlRecord, UrlState};
use telusur_model::{Change, PageRecord, Reason};

use super::handle::Control;
use super::operation::{Each, Length, Operation, OperationKind};
use crate::error::RequestError;
use crate::stored_page::each_page;

/// The URLs of a crawl that failed or answered with an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListErrors {
    /// Which crawl.
    pub crawl: String,
}

/// The URLs of a crawl that were never asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListSkipped {
    /// Which crawl.
    pub crawl: String,
    /// Only those with this reason.
    pub reason: Option<String>,
}

/// The pages of a crawl that are not as they were in the crawl that it repeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListChanges {
    /// Which crawl.
    pub crawl: String,
}

/// An error of a crawl.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorItem {
    /// A page that answered with an error status.
    Page(Box<PageRecord>),
    /// A URL that gave no page.
    Url(Box<UrlRecord>),
}

/// A page that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedPage {
    /// Its URL.
    pub url: String,
    /// `new`, `changed` or `gone`.
    pub what: String,
}

impl Operation for ListErrors {
    const KIND: OperationKind = OperationKind::ListErrors;
    const LENGTH: Length = Length::Long;
    type Item = ErrorItem;
    type Reply = ();

    fn run(&self, control: &Control, each: Each<'_, ErrorItem>) -> Result<(), RequestError> {
        let crawl = control.find(&self.crawl)?.crawl.no;
        let goes_on = each_page(control.store.as_ref(), crawl, |page| {
            Ok(!page.is_error() || each(ErrorItem::Page(Box::new(page))))
        })?;
        if !goes_on {
            return Ok(());
        }
        Ok(control.store.settled_urls(crawl, &mut |url| {
            !matches!(url.state, UrlState::Failed { .. }) || each(ErrorItem::Url(Box::new(url)))
        })?)
    }
}

impl Operation for ListSkipped {
    const KIND: OperationKind = OperationKind::ListSkipped;
    const LENGTH: Length = Length::Long;
    type Item = UrlRecord;
    type Reply = ();

    fn run(&self, control: &Control, each: Each<'_, UrlRecord>) -> Result<(), RequestError> {
        let crawl = control.find(&self.crawl)?.crawl.no;
        let wanted = self.reason.as_deref().map(reason).transpose()?;
        Ok(control.store.settled_urls(crawl, &mut |url| {
            let is_wanted = matches!(url.state, UrlState::Skipped { reason, .. }
                if wanted.is_none_or(|wanted| wanted == reason));
            !is_wanted || each(url)
        })?)
    }
}

fn reason(word: &str) -> Result<Reason, RequestError> {
    let none = || RequestError::BadArgument(format!("there is no skip reason {word:?}"));
    Reason::from_word(word).ok_or_else(none)
}

impl Operation for ListChanges {
    const KIND: OperationKind = OperationKind::ListChanges;
    const LENGTH: Length = Length::Long;
    type Item = ChangedPage;
    type Reply = ();

    fn run(&self, control: &Control, each: Each<'_, ChangedPage>) -> Result<(), RequestError> {
        let crawl = control.find(&self.crawl)?.crawl;
        let Some(base) = crawl.recrawl_of else {
            let what = format!("{} repeats no other crawl; see: telusur recrawl", crawl.no);
            return Err(RequestError::WrongState(what));
        };
        let store = control.store.as_ref();
        let mut tell =
            |page: &PageRecord, what: String| each(ChangedPage { url: page.url.to_string(), what });
        let goes_on = each_page(store, crawl.no, |page| {
            let what = page.change.filter(|it| matches!(it, Change::New | Change::Changed));
            let what = what.filter(|_| page.is_ok());
            Ok(what.is_none_or(|what| tell(&page, what.to_string())))
        })?;
        if !goes_on {
            return Ok(());
        }
        each_page(store, base, |page| {
            let now = store.page_of(crawl.no, &page.url)?;
            let is_gone = page.is_ok() && !now.is_some_and(|now| now.is_ok());
            Ok(!is_gone || tell(&page, "gone".to_owned()))
        })?;
        Ok(())
    }
}
