//! Whether a crawl has anything left to do, and what would give it more: what `resume` goes by, in every
//! interface.

use telusur_ledger::{CrawlRecord, Store};
use telusur_model::{CrawlState, FinishReason, LeftOut, Reason};

use crate::budget_room::has_budget_room;
use crate::error::RequestError;

/// Refuses to resume a crawl that would end at once, and says the way out.
pub fn check_can_resume(store: &dyn Store, record: &CrawlRecord) -> Result<(), RequestError> {
    let CrawlRecord { crawl, state, stats, .. } = record;
    let (no, limits) = (crawl.no, &crawl.limits);
    let refuse = |what: String, hint: String| Err(RequestError::CannotResume { what, hint });
    if crawl.is_import() {
        let what = match matches!(state, CrawlState::Finished { .. }) {
            true => format!("{no} is an import: there is nothing to fetch"),
            false => format!("{no} is an import that did not come to its end"),
        };
        let hint = "Import again, what is there already is replaced: telusur import FILE";
        return refuse(what, hint.to_owned());
    }
    if limits.pages_max.is_some_and(|max| stats.pages >= max) {
        return refuse(
            format!("{no} has reached its limit of {} pages", stats.pages),
            format!("Give it a higher one (max_pages): telusur resume {no} -n {}", stats.pages * 2),
        );
    }
    if let Some(max) = limits.duration_ms_max.filter(|max| stats.active_ms >= *max) {
        return refuse(
            format!("{no} has used up its time of {} s", max / 1000),
            format!(
                "Give it more (max_duration_s): telusur resume {no} -t {}s",
                (max * 2).div_ceil(1000)
            ),
        );
    }
    if limits.bytes_max.is_some_and(|max| stats.wire_bytes >= max) {
        return refuse(
            format!("{no} has reached its limit of bytes"),
            format!("Give it a higher one (max_bytes): telusur resume {no} --max-bytes SIZE"),
        );
    }
    let is_complete = match state {
        CrawlState::Running | CrawlState::Paused { .. } => false,
        CrawlState::Finished { why } => {
            matches!(why, FinishReason::Drained | FinishReason::NoStart | FinishReason::Budget)
        }
    };
    if !is_complete || stats.queued > 0 {
        return Ok(());
    }
    let left_out = crawl.left_out(*state, stats);
    if left_out.is_empty() {
        let may_have_failed = crawl.seeds.linear().is_some() || stats.failed > 0;
        let hint = match may_have_failed {
            true => format!("To ask again for what failed: telusur retry {no}"),
            false => "Start a new crawl: telusur crawl URL".to_owned(),
        };
        return refuse(format!("{no} is complete: nothing is left to fetch"), hint);
    }
    match has_budget_room(store, crawl)? {
        true => Ok(()),
        false => Err(budget_spent(record, &left_out)),
    }
}

/// No budget of a crawl has room for what it left out. `left_out`: the largest first.
fn budget_spent(record: &CrawlRecord, left_out: &[LeftOut]) -> RequestError {
    let (no, limits) = (record.crawl.no, &record.crawl.limits);
    let has_ids = record.crawl.has_ids_left_out(record.state, &record.stats);
    // A limit that can be raised is a way out; a trap needs the user's word, and a new crawl.
    let raised = left_out.iter().find_map(|row| match row.reason {
        Reason::HostBudget if has_ids => {
            Some((row, limits.ids_per_host_max.unwrap_or(limits.urls_per_host_max)))
        }
        Reason::HostBudget => Some((row, limits.urls_per_host_max)),
        Reason::SiteBudget => Some((row, limits.urls_per_site_max)),
        _ => None,
    });
    let what = match (raised, left_out.first()) {
        (Some((_, max)), _) if has_ids => {
            format!("{no} has asked its hosts for up to {max} ids, as many as it may")
        }
        (Some((row, _)), _) | (None, Some(row)) => {
            format!("{no} is complete except for {} links that a budget left out", row.urls)
        }
        (None, None) => format!("{no} is complete"),
    };
    let hint = match raised {
        Some((row, max)) => {
            let max = max.saturating_mul(2);
            let field = row.reason.budget_limit().unwrap_or("its limit");
            format!("Raise {field}: telusur resume {no} {} {max}", row.flag)
        }
        None => "Start a new crawl that follows them: telusur crawl URL --new --include PATTERN"
            .to_owned(),
    };
    RequestError::CannotResume { what, hint }
}
