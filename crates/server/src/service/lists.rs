//! What a crawl holds, in pages that stay in step while it runs: pages, errors, skipped URLs, hosts, the
//! queue, the ids of a linear crawl. A cursor names the last thing that was shown, never a count.

use data_encoding::BASE64URL_NOPAD;
use telusur_engine::control::{
    ListChanges, ListErrors, ListHosts, ListPages, ListQueue, ListSkipped, Operation, ReadCoverage,
};
use telusur_model::CrawlNo;

use super::Service;
use crate::json::{
    ChangedView, CoverageView, ErrorView, HostView, ListEnd, PageView, Paged, QueuedView,
    SkippedView,
};
use crate::problem::{Code, Problem};

/// Where a list goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(String);

impl Cursor {
    /// Reads a cursor as a client sends it back.
    pub fn read(text: &str) -> Result<Self, Problem> {
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok();
        let cursor = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).map(Self);
        cursor.ok_or_else(Self::unusable)
    }

    /// The cursor as a client gets it.
    pub fn text(&self) -> String {
        BASE64URL_NOPAD.encode(self.0.as_bytes())
    }

    /// The place that it stands for.
    pub(super) fn raw(self) -> String {
        self.0
    }

    fn unusable() -> Problem {
        Problem::new(Code::InvalidField, "this is no cursor of this list").at("cursor")
    }
}

impl Service {
    /// A part of a list: what an operation gives. Blocks.
    pub(super) fn list<O>(&self, operation: &O) -> Result<Paged<O::Item>, Problem>
    where
        O: Operation<Reply = ListEnd>,
    {
        let (items, end) = self.inner().control.collect(operation)?;
        let next_cursor = end.next.map(|next| Cursor(next).text());
        Ok(Paged { items, next_cursor, total: end.total })
    }

    /// The pages of a crawl, oldest first.
    pub async fn pages(
        &self,
        no: CrawlNo,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Paged<PageView>, Problem> {
        let (crawl, after) = (no.to_string(), cursor.map(Cursor::raw));
        let operation = ListPages { crawl, after, limit: Some(limit) };
        self.read(move |service| service.list(&operation)).await
    }

    /// The URLs of a crawl that answered with an error, then those that did not answer.
    pub async fn errors(
        &self,
        no: CrawlNo,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Paged<ErrorView>, Problem> {
        let (crawl, after) = (no.to_string(), cursor.map(Cursor::raw));
        let operation = ListErrors { crawl, after, limit: Some(limit) };
        self.read(move |service| service.list(&operation)).await
    }

    /// The URLs of a crawl that were never asked for; those with one reason, if one is named.
    pub async fn skipped(
        &self,
        no: CrawlNo,
        reason: Option<String>,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Paged<SkippedView>, Problem> {
        let (crawl, after) = (no.to_string(), cursor.map(Cursor::raw));
        let operation = ListSkipped { crawl, reason, after, limit: Some(limit) };
        self.read(move |service| service.list(&operation)).await
    }

    /// What is new, changed or gone since the crawl that this one repeats.
    pub async fn changes(
        &self,
        no: CrawlNo,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Paged<ChangedView>, Problem> {
        let (crawl, after) = (no.to_string(), cursor.map(Cursor::raw));
        let operation = ListChanges { crawl, after, limit: Some(limit) };
        self.read(move |service| service.list(&operation)).await
    }

    /// The hosts of a crawl, by name.
    pub async fn hosts(
        &self,
        no: CrawlNo,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Paged<HostView>, Problem> {
        let (crawl, after) = (no.to_string(), cursor.map(Cursor::raw));
        let operation = ListHosts { crawl, after, limit: Some(limit) };
        self.read(move |service| service.list(&operation)).await
    }

    /// The URLs that wait, host by host, each in the order of its queue.
    pub async fn frontier(
        &self,
        no: CrawlNo,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Paged<QueuedView>, Problem> {
        let (crawl, after) = (no.to_string(), cursor.map(Cursor::raw));
        let operation = ListQueue { crawl, after, limit: Some(limit) };
        self.read(move |service| service.list(&operation)).await
    }

    /// What is known of the ids of a linear crawl: its templates, each with some of its runs.
    pub async fn coverage(
        &self,
        no: CrawlNo,
        limit: usize,
        cursor: Option<Cursor>,
    ) -> Result<Paged<CoverageView>, Problem> {
        let (crawl, after) = (no.to_string(), cursor.map(Cursor::raw));
        let operation = ReadCoverage { crawl, after, limit: Some(limit) };
        self.read(move |service| {
            let covered = service.list(&operation)?;
            let mut items = Vec::new();
            covered.items.into_iter().for_each(|item| CoverageView::join(&mut items, item));
            Ok(Paged { items, next_cursor: covered.next_cursor, total: None })
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_come_back_as_they_went() {
        let cursor = Cursor("host.test 2.17.99".to_owned());
        assert_eq!(Cursor::read(&cursor.text()).unwrap(), cursor);
        assert!(Cursor::read("%%%").is_err());
    }
}
