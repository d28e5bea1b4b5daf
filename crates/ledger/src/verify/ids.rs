//! Checks what is known of the ids of linear crawls: runs in order, and a page for every content.

use telusur_model::{Crawl, CrawlNo, IdCounts, IdState, PageRecord, PageUrl, Walk};

use crate::storage::Storage;
use crate::{Check, KeptRun, Ledger, StoreError, fold};

/// The ids of one crawl, counted against its pages.
pub(crate) struct IdsCheck {
    walks: Vec<WalkCheck>,
}

struct WalkCheck {
    walk: Walk,
    runs: Vec<KeptRun>,
    /// Pages whose id is known to be content.
    pages: u64,
}

impl IdsCheck {
    pub(crate) fn load(store: &Ledger<impl Storage>, crawl: &Crawl) -> Result<Self, StoreError> {
        let walks = (0..).zip(crawl.seeds.walks()).map(|(number, walk)| {
            let runs = fold::read_runs(store.rows(), crawl.no, number)?;
            Ok(WalkCheck { walk: walk.clone(), runs, pages: 0 })
        });
        Ok(Self { walks: walks.collect::<Result<_, StoreError>>()? })
    }

    /// Looks at a stored page.
    pub(crate) fn page(&mut self, crawl: CrawlNo, page: &PageRecord, check: &mut Check) {
        let first = page.redirects.first().and_then(|url| PageUrl::parse(url).ok());
        let first = first.as_ref().unwrap_or(&page.url);
        let mut walks = self.walks.iter_mut();
        let is_of_walk = page.via == telusur_model::Via::Linear;
        let content = walks.find(|walk| walk.state_of(first) == Some(IdState::Content));
        check.look(content.is_some() || !is_of_walk, || {
            format!("{crawl}: {first} is stored, and its id is not known to be content")
        });
        if let Some(walk) = content {
            walk.pages += 1;
        }
    }

    /// Looks at the runs themselves, and counts the ids.
    pub(crate) fn finish(self, crawl: CrawlNo, check: &mut Check) -> IdCounts {
        let mut counts = IdCounts::default();
        for WalkCheck { walk, runs, pages } in self.walks {
            let template = &walk.rules().template;
            for pair in runs.windows(2) {
                let is_apart = pair[0].last < pair[1].first
                    && (!pair[0].touches(&pair[1]) || pair[0].state != pair[1].state);
                check.look(pair[0].first <= pair[0].last && is_apart, || {
                    let (one, other) = (pair[0].first, pair[1].first);
                    format!("{crawl}: {template}: the runs at {one} and {other} overlap or adjoin")
                });
            }
            let mut content = 0;
            for run in &runs {
                let ids = (run.last - run.first).saturating_add(1);
                *counts.of(run.state.state) += ids;
                content += if run.state.state == IdState::Content { ids } else { 0 };
            }
            check.look(content == pages, || {
                format!("{crawl}: {template}: {content} ids are content, {pages} pages are stored")
            });
        }
        counts
    }
}

impl WalkCheck {
    fn state_of(&self, url: &PageUrl) -> Option<IdState> {
        let id = self.walk.rules().template.id_of(url)?;
        let position = self.walk.position_of(id)?;
        let after = self.runs.partition_point(|run| run.first <= position);
        let run = self.runs.get(after.checked_sub(1)?)?;
        (run.last >= position).then_some(run.state.state)
    }
}
