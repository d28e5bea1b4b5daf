//! What is fetched next, and when: politeness, fairness, retries.
//!
//! [`Frontier`] is a pure state machine. Events go in (a URL was discovered, a visit finished),
//! decisions come out ([`Next`]). It is told the time and never reads a clock, draws no random
//! numbers, does no I/O and never sleeps, so hours of crawling run in a test in seconds.
//!
//! Only the heads of the queues live in memory; the rest stays in the store and is asked for with
//! [`Next::NeedUrls`]. A decision costs O(log hosts), memory is O(hosts), independent of the
//! number of URLs.
//!
//! Read in the order of the modules: `frontier` takes the events, `schedule` makes the decisions,
//! `standing` says for one host whether it may be asked. The others are their parts.

mod decision;
mod frontier;
mod retry_after;
mod schedule;
mod standing;

mod crawl;
mod head;
mod site_queue;
mod site_shares;

mod ids;
mod linear;

mod back_pressure;
mod charges;
mod flights;
mod gate;
mod host;
mod pace;
mod parse_cost;
mod passage;
mod retry;
mod rules;
mod suspicion;

#[cfg(test)]
mod tests;

pub use crate::decision::{
    AskedEarlier, CrawlStart, Disposition, HostStart, IdEnd, Next, Region, RobotsKnown,
};
pub use crate::frontier::Frontier;
pub use crate::linear::{Linear, LinearNext, Opened, Opening, ResumeNote, WalkState};
pub use crate::parse_cost::{COSTLY_PARSE_MS, PageCost, Parked, ParseCharge};
pub use crate::retry_after::RetryAfterWait;
pub use crate::site_shares::SharesShown;
