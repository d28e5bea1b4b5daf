//! Checks the links that wait for a budget, and how many of each host are said to wait.

use std::cell::RefCell;

use telusur_model::{Crawl, HostRow};

use super::by_host::{count_by_host, join};
use super::{Checks, View, readable};
use crate::held::{HeldCount, HeldRow};
use crate::layout::{self, UrlRow, decode};
use crate::storage::{Rows, Storage, Table};
use crate::{StoreError, UrlState};

impl Checks {
    pub(super) fn held<S: Storage>(
        &mut self,
        view: &View<'_, S>,
        crawl: &Crawl,
    ) -> Result<(), StoreError> {
        let no = crawl.no;
        let counts_key = layout::held_counts_key(no);
        let first = layout::crawl_key(no).to_vec();
        let mut furthest = 0;
        // Both sides of the join report to it, one after the other.
        let check = RefCell::new(&mut self.held);
        let links = view.rows.range(Table::Held, first, Some(counts_key.to_vec()));
        let links = links.filter_map(|row| {
            let look = || {
                let (key, value) = row?;
                let check = &mut **check.borrow_mut();
                let Some(host) = layout::host_of_held_key(&key) else {
                    check.look(false, || format!("{no}: a key of held links is cut"));
                    return Ok(None);
                };
                furthest = furthest.max(layout::seq_of(&key)?);
                let held = readable::<HeldRow>(check, no, &value, "held");
                let Some(held) = held else { return Ok(Some(host)) };
                let url = view.rows.get(Table::Urls, layout::url_key(no, held.key))?;
                let url = url.and_then(|row| decode::<UrlRow>(&row, "urls").ok());
                check.look(url.is_some_and(|url| may_be_held(crawl, &url)), || {
                    format!("{no}: a link of {host} waits for a budget, and is not marked so")
                });
                Ok(Some(host))
            };
            look().transpose()
        });
        let counts = view.rows.prefix(Table::Held, counts_key).filter_map(|row| {
            let look = || {
                let (key, value) = row?;
                let Some(host) = layout::host_of_count_key(&key) else { return Ok(None) };
                let count: HeldCount = decode(&value, "held")?;
                Ok(Some((host, count.held)))
            };
            look().transpose()
        });
        join(count_by_host(links), counts, |host, waiting, told| {
            let waiting = waiting.unwrap_or(0);
            // Earlier versions wrote no counts: the links of hosts that refused some are counted when
            // the crawl is read in.
            let is_counted = match told {
                Some(told) => waiting == told,
                None => {
                    let row = view.rows.get(Table::Hosts, layout::host_key(no, &host))?;
                    let row: Option<HostRow> = row.map(|row| decode(&row, "hosts")).transpose()?;
                    row.is_some_and(|row| row.refused > 0)
                }
            };
            check.borrow_mut().look(is_counted, || {
                let told = told.unwrap_or(0);
                format!("{no}: host {host} counts {told} held links, {waiting} are held")
            });
            Ok(())
        })?;
        self.place(view, no, furthest);
        Ok(())
    }
}

/// Whether a URL in this state may have a link that waits: it was left out by a budget, or has become
/// the page of an id since.
fn may_be_held(crawl: &Crawl, url: &UrlRow) -> bool {
    match url {
        UrlRow::Queued { .. } => false,
        UrlRow::Page { .. } => !crawl.seeds.walks().is_empty(),
        UrlRow::Settled(record) => match &record.state {
            UrlState::Skipped { reason, .. } => reason.budget_flag().is_some(),
            UrlState::Queued { .. }
            | UrlState::Page { .. }
            | UrlState::Sitemap { .. }
            | UrlState::Redirected { .. }
            | UrlState::Failed { .. } => false,
        },
    }
}
