//! Crawls: all of them in short or in full, and one with everything that is known of it.

use serde::{Deserialize, Serialize};
use telusur_ledger::{CrawlRecord, UrlState};
use telusur_model::{CrawlNo, PageUrl, Scope, Verdict};

use super::handle::Control;
use super::operation::{Each, NoItem, Operation, OperationKind};
use super::part::Part;
use crate::error::RequestError;
use crate::json::{CrawlLineView, CrawlView, FollowerView, ListEnd, MovedSeedView};

/// All crawls, oldest first, with as much of each as a list shows: there may be thousands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListCrawls {}

/// Crawls, youngest first, with everything but their hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadCrawls {
    /// Only those in this state.
    pub state: Option<String>,
    /// Only those with this label: `name`, or `name=value`.
    pub label: Option<String>,
    /// Only those behind this place of the list.
    pub after: Option<String>,
    /// How many, at most.
    pub limit: Option<usize>,
}

/// One crawl, with its hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadCrawl {
    /// An id, an alias `crawl_N`, a name, or `last`.
    pub crawl: String,
}

impl Operation for ListCrawls {
    const KIND: OperationKind = OperationKind::ListCrawls;
    type Item = CrawlLineView;
    /// What is derived from pages and fails. It is the same for all crawls.
    type Reply = Vec<FollowerView>;

    fn run(
        &self,
        control: &Control,
        each: Each<'_, CrawlLineView>,
    ) -> Result<Vec<FollowerView>, RequestError> {
        for record in control.store.crawls()? {
            if !each(control.crawl_line(record)) {
                break;
            }
        }
        Ok(control.behind().into_iter().map(FollowerView::from).collect())
    }
}

impl Operation for ReadCrawls {
    const KIND: OperationKind = OperationKind::ReadCrawls;
    type Item = CrawlView;
    type Reply = ListEnd;

    fn run(&self, control: &Control, each: Each<'_, CrawlView>) -> Result<ListEnd, RequestError> {
        let mut part = Part::new(self.limit, each);
        let first = match &self.after {
            Some(after) => part.cursor(after.parse::<u32>())?,
            None => match control.store.find("last")? {
                Some(last) => last.crawl.no.0.saturating_add(1),
                None => return Ok(part.end(Some(0))),
            },
        };
        for no in (1..first).rev() {
            let Some(record) = control.store.crawl(CrawlNo(no))? else { continue };
            let view = control.crawl_view(&record, &[]);
            if self.wants(&view) && !part.give(view, || no.to_string()) {
                break;
            }
        }
        Ok(part.end(None))
    }
}

impl ReadCrawls {
    fn wants(&self, view: &CrawlView) -> bool {
        self.state.as_ref().is_none_or(|state| *state == view.state)
            && self.label.as_ref().is_none_or(|label| has_label(view, label))
    }
}

fn has_label(view: &CrawlView, label: &str) -> bool {
    match label.split_once('=') {
        Some((name, value)) => view.labels.get(name).is_some_and(|other| other == value),
        None => view.labels.contains_key(label),
    }
}

impl Operation for ReadCrawl {
    const KIND: OperationKind = OperationKind::ReadCrawl;
    type Item = NoItem;
    type Reply = CrawlView;

    fn run(&self, control: &Control, _: Each<'_, NoItem>) -> Result<CrawlView, RequestError> {
        control.whole_crawl(&control.find(&self.crawl)?)
    }
}

impl Control {
    /// A crawl with everything that is shown of it. Blocks.
    pub fn whole_crawl(&self, record: &CrawlRecord) -> Result<CrawlView, RequestError> {
        // Why a crawl with damaged rows is set aside can be seen all the same.
        let hosts = match self.store.hosts(record.crawl.no) {
            Err(error) if error.is_of_rows() => {
                tracing::error!(crawl = %record.crawl.no, %error, "the hosts of a crawl cannot be read");
                Vec::new()
            }
            hosts => hosts?,
        };
        let moved_seeds = match moved_seeds(self, record) {
            Err(RequestError::Store(error)) if error.is_of_rows() => Vec::new(),
            moved_seeds => moved_seeds?,
        };
        Ok(CrawlView { moved_seeds, ..self.crawl_view(record, &hosts) })
    }
}

/// Start URLs that redirect out of the scope: an empty crawl must say why it is empty.
pub(super) fn moved_seeds(
    control: &Control,
    record: &CrawlRecord,
) -> Result<Vec<MovedSeedView>, RequestError> {
    let crawl = &record.crawl;
    // Why a crawl with unusable patterns is set aside is said with its state.
    let Ok(scope) = Scope::of(crawl) else { return Ok(Vec::new()) };
    let mut moved = Vec::new();
    for seed in crawl.seeds.urls() {
        let Some(known) = control.store.url(crawl.no, seed)? else { continue };
        let UrlState::Redirected { to, .. } = known.state else { continue };
        let leads_out =
            PageUrl::parse(&to).is_ok_and(|url| scope.judge(&url, 0, 0).verdict != Verdict::Admit);
        if leads_out {
            moved.push(MovedSeedView { url: seed.to_string(), to });
        }
    }
    Ok(moved)
}
