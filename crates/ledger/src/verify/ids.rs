//! Checks what is known of the ids of linear crawls: runs in order, and a page for every content.

use telusur_model::{Crawl, CrawlNo, IdCounts, IdState, PageRecord, PageUrl, Walk};

use super::View;
use crate::storage::{Rows, Storage, Table};
use crate::{Check, KeptRun, StoreError, layout};

/// The ids of one crawl, counted against its pages.
pub(super) struct IdsCheck {
    walks: Vec<WalkCheck>,
}

struct WalkCheck {
    number: u32,
    walk: Walk,
    /// Pages whose id is known to be content.
    pages: u64,
}

impl IdsCheck {
    pub(super) fn new(crawl: &Crawl) -> Self {
        let walks = (0..).zip(crawl.seeds.walks());
        let walks = walks.map(|(number, walk)| WalkCheck { number, walk: walk.clone(), pages: 0 });
        Self { walks: walks.collect() }
    }

    /// Looks at a stored page.
    pub(super) fn page<S: Storage>(
        &mut self,
        view: &View<'_, S>,
        page: &PageRecord,
        check: &mut Check,
    ) -> Result<(), StoreError> {
        let first = page.redirects.first().and_then(|url| PageUrl::parse(url).ok());
        let first = first.as_ref().unwrap_or(&page.url);
        let is_of_walk = page.via == telusur_model::Via::Linear;
        let mut is_content = false;
        for walk in &mut self.walks {
            if walk.state_of(view, page.crawl, first)? == Some(IdState::Content) {
                walk.pages += 1;
                is_content = true;
                break;
            }
        }
        check.look(is_content || !is_of_walk, || {
            format!("{}: {first} is stored, and its id is not known to be content", page.crawl)
        });
        Ok(())
    }

    /// Looks at the runs themselves, and counts the ids.
    pub(super) fn finish<S: Storage>(
        self,
        view: &View<'_, S>,
        crawl: CrawlNo,
        check: &mut Check,
    ) -> Result<IdCounts, StoreError> {
        let mut counts = IdCounts::default();
        for WalkCheck { number, walk, pages } in &self.walks {
            let template = &walk.rules().template;
            let mut before: Option<KeptRun> = None;
            let mut content = 0;
            for row in view.rows.prefix(Table::Runs, layout::walk_key(crawl, *number)) {
                let (key, value) = row?;
                let run = layout::run_of(&key, &value)?;
                let is_apart = before.is_none_or(|before| {
                    before.last < run.first && (!before.touches(&run) || before.state != run.state)
                });
                check.look(run.first <= run.last && is_apart, || {
                    let other = before.map_or(run.last, |before| before.first);
                    let first = run.first;
                    format!(
                        "{crawl}: {template}: the runs at {other} and {first} overlap or adjoin"
                    )
                });
                let ids = run.last.saturating_sub(run.first).saturating_add(1);
                *counts.of(run.state.state) += ids;
                content += if run.state.state == IdState::Content { ids } else { 0 };
                before = Some(run);
            }
            check.look(content == *pages, || {
                format!("{crawl}: {template}: {content} ids are content, {pages} pages are stored")
            });
        }
        let walks = u32::try_from(self.walks.len()).unwrap_or(u32::MAX);
        let behind = layout::walk_key(crawl, walks).to_vec();
        let end = layout::after_crawl(crawl).map(Vec::from);
        let stray = view.rows.range(Table::Runs, behind, end).next().transpose()?;
        check.look(stray.is_none(), || {
            format!("{crawl}: runs of ids are kept for more than its {walks} walks")
        });
        Ok(counts)
    }
}

impl WalkCheck {
    /// What the last run that begins at the URL's id or before it says of it.
    fn state_of<S: Storage>(
        &self,
        view: &View<'_, S>,
        crawl: CrawlNo,
        url: &PageUrl,
    ) -> Result<Option<IdState>, StoreError> {
        let id = self.walk.rules().template.id_of(url);
        let position = id.and_then(|id| self.walk.position_of(id));
        let Some(position) = position else { return Ok(None) };
        let first = layout::walk_key(crawl, self.number).to_vec();
        // The smallest key behind that of a run at this position.
        let mut end = layout::run_key(crawl, self.number, position).to_vec();
        end.push(0);
        let Some(row) = view.rows.range(Table::Runs, first, Some(end)).next_back() else {
            return Ok(None);
        };
        let (key, value) = row?;
        let run = layout::run_of(&key, &value)?;
        Ok((run.last >= position).then_some(run.state.state))
    }
}
