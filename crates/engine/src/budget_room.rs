//! Whether the budgets of a crawl that is over let it ask for more: what `resume` goes by, on the
//! command line and in the service.

use std::collections::BTreeMap;

use telusur_ledger::{Store, StoreError};
use telusur_model::{Crawl, Host, LinearSeeds};

use crate::id_visits::refused_ids;
use crate::linear_run::StoredWalk;

/// Whether the budgets of a crawl, as they are given here, have room for a link or an id that was
/// left out.
pub(crate) fn has_budget_room(store: &dyn Store, crawl: &Crawl) -> Result<bool, StoreError> {
    if let (Some(seeds), Some(max)) = (crawl.seeds.linear(), crawl.limits.ids_per_host_max)
        && have_ids_room(store, crawl, seeds, max)?
    {
        return Ok(true);
    }
    store.has_room_for_left_out(crawl)
}

/// What the walks of one host have asked, and whether they have ids left.
#[derive(Default)]
struct HostIds {
    asked: u64,
    is_unfinished: bool,
}

/// Judged host by host: one may be through while another has used up its budget.
fn have_ids_room(
    store: &dyn Store,
    crawl: &Crawl,
    seeds: &LinearSeeds,
    max: u64,
) -> Result<bool, StoreError> {
    let mut hosts: BTreeMap<Host, HostIds> = BTreeMap::new();
    for (number, walk) in (0..).zip(&seeds.walks) {
        let stored = StoredWalk::read(store, crawl.no, number, walk, seeds)?;
        let counts = stored.state.coverage().counts;
        let known = counts.content + counts.missing + counts.holes + counts.waiting;
        let host = hosts.entry(walk.rules().template.url_of(0).host()).or_default();
        host.asked += known.saturating_sub(refused_ids(stored.runs()));
        host.is_unfinished |= !stored.state.is_finished();
    }
    Ok(hosts.values().any(|host| host.is_unfinished && host.asked < max))
}
