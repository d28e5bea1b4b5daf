//! What must be known about an origin before it is asked for pages. The frontier says when; this
//! part of the crawl task looks into the store, sends prerequisites for robots.txt, remembers the rules
//! and judges every visit by them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use telusur_fetch::robots::Rules;
use telusur_frontier::RobotsKnown;
use telusur_ledger::{Event as LedgerEvent, LinkSource, VisitOutcome};
use telusur_model::{
    CrawlNo, Door, Host, Lane, OriginRow, PageUrl, Purpose, QueuePlace, Reason, RobotsAnswer,
    RobotsRules, Timestamp, UrlKey, Via, Visit,
};

use crate::commit_stage::CommitWork;
use crate::context::CrawlContext;
use crate::crawl_task::CrawlTask;
use crate::error::EngineError;
use crate::learned::forbidding_rule;
use crate::robots_reading::{PrerequisiteEnd, RobotsEnd};
use crate::single_fetch::Singles;
use crate::sitemap_reading::discovery;

/// Longest that rules are relied on (RFC 9309, 2.4).
const RULES_MS_MAX: u64 = 24 * 60 * 60 * 1000;
/// How long an origin whose robots.txt cannot be read is left alone, before it is tried again.
const UNREACHABLE_MS: u64 = 60 * 60 * 1000;
/// Pages of an origin after which it is asked for one that cannot exist. Fewer pages are not worth
/// the request.
const PROBE_AFTER_PAGES: u8 = 10;
/// Rules held in memory, counted in lines: about 100 bytes each.
const RULE_LINES_MAX: usize = 500_000;

/// An origin as one crawl sees it.
type Key = (CrawlNo, Host, Door);

/// The rules that are known, and the prerequisites that are under way for more.
#[derive(Default)]
pub(crate) struct Prerequisites {
    /// Numbers the prerequisites.
    seq: u64,
    under_way: HashSet<Key>,
    /// Pages seen of origins that were not probed yet; `None`: no need to.
    pages_seen: HashMap<Key, Option<u8>>,
    origins: HashMap<Key, Standing>,
    rule_lines: usize,
    /// Grows with every look-up: who was looked up last.
    ticks: u64,
}

struct Standing {
    rules: Known,
    looked_up: u64,
}

enum Known {
    Rules(Arc<Rules>),
    /// Nobody knows the rules: nothing is asked. `due`: they are asked for again then.
    Barred {
        why: Reason,
        detail: String,
        due: Option<Timestamp>,
    },
}

impl Prerequisites {
    /// What becomes of a visit by the rules of its origin; `None`: it may go out.
    pub(crate) fn judge(&mut self, visit: &Visit) -> Option<VisitOutcome> {
        self.ticks += 1;
        let key = key_of(visit.crawl, &visit.url);
        let Some(standing) = self.origins.get_mut(&key) else {
            let detail = "robots.txt is not known yet".to_owned();
            return Some(later(visit.found_at, Reason::RobotsUnreachable, detail));
        };
        standing.looked_up = self.ticks;
        match &standing.rules {
            Known::Rules(rules) => {
                let rule = forbidding_rule(rules, &visit.url)?;
                Some(VisitOutcome::Skipped { reason: Reason::RobotsDisallowed, rule })
            }
            Known::Barred { why, detail, due: Some(due) } => {
                Some(later(*due, *why, detail.clone()))
            }
            Known::Barred { why, detail, due: None } => {
                Some(VisitOutcome::Failed { reason: *why, detail: detail.clone() })
            }
        }
    }

    /// The prerequisites of a host were dropped: its rules are asked for again when they are needed.
    pub(crate) fn dropped(&mut self, crawl: CrawlNo, host: &Host) {
        self.under_way.retain(|key| key.0 != crawl || key.1 != *host);
    }

    /// Forgets what belongs to a crawl that is over.
    pub(crate) fn forget(&mut self, crawl: CrawlNo) {
        self.under_way.retain(|key| key.0 != crawl);
        self.pages_seen.retain(|key, _| key.0 != crawl);
        self.origins.retain(|key, _| key.0 != crawl);
        self.rule_lines = self.origins.values().map(Standing::weight).sum();
    }

    /// Whether another single fetch has asked for the rules of a URL's origin, and has no answer yet.
    pub(crate) fn is_read_by_other(&self, crawl: CrawlNo, url: &PageUrl) -> bool {
        let (_, host, door) = key_of(crawl, url);
        let mut others = self.under_way.iter().filter(|key| key.0 != crawl);
        others.any(|key| Singles::is_single(key.0) && key.1 == host && key.2 == door)
    }

    fn remember(&mut self, key: Key, rules: Known) {
        self.ticks += 1;
        let standing = Standing { rules, looked_up: self.ticks };
        self.rule_lines += standing.weight();
        if let Some(before) = self.origins.insert(key, standing) {
            self.rule_lines -= before.weight();
        }
    }

    /// The origins that were not looked up for longest, if there are too many rules in memory.
    fn crowd_out(&mut self) -> Vec<Key> {
        if self.rule_lines <= RULE_LINES_MAX {
            return Vec::new();
        }
        let mut by_age: Vec<(u64, Key)> =
            self.origins.iter().map(|(key, standing)| (standing.looked_up, key.clone())).collect();
        by_age.sort_by_key(|(looked_up, _)| *looked_up);
        by_age.truncate(by_age.len() / 2);
        let out: Vec<Key> = by_age.into_iter().map(|(_, key)| key).collect();
        for key in &out {
            if let Some(standing) = self.origins.remove(key) {
                self.rule_lines -= standing.weight();
            }
        }
        out
    }

    /// The rules of an origin, if they are known.
    fn rules_of(&self, key: &Key) -> Option<Arc<Rules>> {
        match &self.origins.get(key)?.rules {
            Known::Rules(rules) => Some(Arc::clone(rules)),
            Known::Barred { .. } => None,
        }
    }

    /// Whether a prerequisite that brought nothing was sent to see who answers: nobody waits for it, and the
    /// rules of its origin are known.
    fn has_failed_as_witness(&self, key: &Key, end: &RobotsEnd) -> bool {
        let has_failed = match end {
            RobotsEnd::Later { .. } | RobotsEnd::Unreachable { .. } => true,
            RobotsEnd::Known { .. } | RobotsEnd::Redirected { .. } => false,
        };
        has_failed && !self.under_way.contains(key)
    }

    /// A visit that sees how a site answers for a page that does not exist.
    pub(crate) fn probe(&mut self, crawl: CrawlNo, url: PageUrl, found_at: Timestamp) -> Visit {
        let place = self.next_place();
        prerequisite(crawl, Purpose::Probe, url, place, found_at)
    }

    fn next_place(&mut self) -> QueuePlace {
        QueuePlace { lane: Lane::Prerequisite, order: 0, seq: self.next_seq() }
    }

    /// A number that no visit has that is in no queue of the store.
    pub(crate) fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }
}

impl Standing {
    fn weight(&self) -> usize {
        match &self.rules {
            Known::Rules(rules) => 1 + rules.rules_count(),
            Known::Barred { .. } => 1,
        }
    }
}

/// What the store knows of an origin's robots.txt, read and compiled.
pub(crate) struct StoredRobots {
    pub(crate) row: OriginRow,
    pub(crate) rules: Arc<Rules>,
}

impl StoredRobots {
    /// The rules in a row, if it has any.
    pub(crate) fn of(row: OriginRow, product_token: &str) -> Option<Self> {
        let rules = match &row.robots {
            RobotsAnswer::Text { text } => Rules::parse(text, product_token),
            RobotsAnswer::Missing { .. } => Rules::default(),
            RobotsAnswer::Unreachable { .. } => return None,
        };
        Some(Self { row, rules: Arc::new(rules) })
    }
}

impl CrawlTask {
    /// The frontier waits for the rules of an origin: the store may know them.
    pub(crate) fn need_robots(&mut self, crawl: CrawlNo, url: &PageUrl) -> Result<(), EngineError> {
        let key = key_of(crawl, url);
        let Some(context) = self.context_of(crawl) else { return Ok(()) };
        let product_token = context.product_token.clone();
        if self.waits_for_robots_of_other(crawl, url) || !self.prerequisites.under_way.insert(key) {
            return Ok(());
        }
        self.write(CommitWork::Robots { crawl, url: url.clone(), product_token })
    }

    /// The store's answer: rules, or nothing that can be relied on.
    pub(crate) fn robots_stored(
        &mut self,
        crawl: CrawlNo,
        url: &PageUrl,
        stored: Option<StoredRobots>,
    ) -> Result<(), EngineError> {
        let now = self.clock.wall();
        match stored.filter(|stored| is_fresh(stored.row.asked_at, now)) {
            Some(StoredRobots { row, rules }) => self.robots_known(crawl, url, &row, rules),
            None => {
                self.send_for_robots(crawl, url);
                Ok(())
            }
        }
    }

    /// Asks an origin whose rules are known once more, to see whether it answers. If somebody waits for
    /// its rules, it is being asked already.
    pub(crate) fn call_witness(&mut self, crawl: CrawlNo, url: &PageUrl) {
        if !self.prerequisites.under_way.contains(&key_of(crawl, url)) {
            self.send_for_robots(crawl, url);
        }
    }

    /// Sends a prerequisite for the robots.txt of a URL's origin.
    fn send_for_robots(&mut self, crawl: CrawlNo, url: &PageUrl) {
        let file = url.join("/robots.txt").expect("an origin with a short path is a URL");
        let place = self.prerequisites.next_place();
        let found_at = self.clock.wall();
        self.frontier
            .prerequisite(prerequisite(crawl, Purpose::Robots, file, place, found_at), None);
    }

    /// A page of an origin came. After some of them the origin is asked for one that cannot exist,
    /// to learn how it answers then.
    pub(crate) fn page_seen(&mut self, crawl: CrawlNo, url: &PageUrl) {
        let seen = self.prerequisites.pages_seen.entry(key_of(crawl, url)).or_insert(Some(0));
        let Some(count) = seen else { return };
        *count += 1;
        if *count < PROBE_AFTER_PAGES {
            return;
        }
        *seen = None;
        let Some(running) = self.crawls.get(&crawl) else { return };
        // The key is made with a secret seed: nobody has put a page there.
        let name = format!("/{}", running.context.keyer.key(url));
        let probe = url.join(&name).expect("an origin with a short path is a URL");
        let visit = self.prerequisites.probe(crawl, probe, self.clock.wall());
        self.frontier.prerequisite(visit, None);
    }

    /// A probe may not go out, by the rules of its origin: nothing is learned. It has no row in the
    /// store, so it ends as a prerequisite and not as a visit.
    pub(crate) fn prerequisite_refused(&mut self, visit: Visit) -> Result<(), EngineError> {
        self.frontier.skipped(&visit, self.clock.now());
        if visit.via == Via::Linear
            && let Some(running) = self.crawls.get(&visit.crawl)
        {
            running.context.walk_not_probed(visit.place.order);
        }
        let (visit, end) = (Box::new(visit), Box::new(PrerequisiteEnd::Probe(None)));
        self.write(CommitWork::Prerequisite { visit, requested_at: None, body_bytes: 0, end })
    }

    /// A prerequisite has ended, and what it brought is durable.
    pub(crate) fn prerequisite_ended(
        &mut self,
        visit: Visit,
        end: PrerequisiteEnd,
    ) -> Result<(), EngineError> {
        let crawl = visit.crawl;
        self.frontier.committed(crawl, &visit.url.host(), visit.place, false);
        let Some(context) = self.context_of(crawl) else { return Ok(()) };
        match end {
            PrerequisiteEnd::Robots(end) => self.robots_ended(visit, end),
            PrerequisiteEnd::Probe(look) => {
                if let Some(look) = look {
                    context.soft_404.learn(visit.url.origin(), look);
                }
                Ok(())
            }
        }
    }

    fn robots_ended(&mut self, visit: Visit, end: RobotsEnd) -> Result<(), EngineError> {
        let crawl = visit.crawl;
        let origin = visit.first_url();
        if self.prerequisites.has_failed_as_witness(&key_of(crawl, &origin), &end) {
            return Ok(());
        }
        match end {
            RobotsEnd::Known { row, rules } => self.robots_known(crawl, &origin, &row, rules),
            RobotsEnd::Redirected { to } => {
                let mut hop = Visit { place: self.prerequisites.next_place(), attempt: 1, ..visit };
                let from = std::mem::replace(&mut hop.url, to);
                hop.redirects.push(from.to_string());
                self.frontier.prerequisite(hop, None);
                Ok(())
            }
            RobotsEnd::Later { after_ms, counted, why, detail } => {
                let due = self.clock.now().plus_ms(after_ms);
                let attempt = visit.attempt.saturating_add(u8::from(counted));
                let again = Visit { place: self.prerequisites.next_place(), attempt, ..visit };
                self.frontier.prerequisite(again, Some(due));
                let due_wall = Timestamp(self.clock.wall().0.saturating_add(after_ms));
                let barred = Known::Barred { why, detail, due: Some(due_wall) };
                self.remember(key_of(crawl, &origin), barred);
                // URLs that wait are put off, with the reason. Ids are without number: they wait
                // until the rules are known, or are known to be out of reach.
                let is_linear =
                    |context: &Arc<CrawlContext>| context.crawl.seeds.linear().is_some();
                if !self.context_of(crawl).is_some_and(is_linear) {
                    let known = RobotsKnown { until: due, crawl_delay_ms: None };
                    self.tell_robots(crawl, &origin, known);
                }
                Ok(())
            }
            RobotsEnd::Unreachable { row, why, detail } => {
                let allows = self.context_of(crawl).is_some_and(|context| {
                    let robots = context.crawl.politeness.robots;
                    robots == RobotsRules::UnreachableAllows && why == Reason::RobotsUnreachable
                });
                if allows {
                    return self.robots_known(crawl, &origin, &row, Arc::default());
                }
                tracing::info!(origin = %row.origin, %why, detail, "robots.txt cannot be read");
                self.prerequisites.under_way.remove(&key_of(crawl, &origin));
                let barred = Known::Barred { why, detail, due: None };
                self.remember(key_of(crawl, &origin), barred);
                let until = self.clock.now().plus_ms(UNREACHABLE_MS);
                self.tell_robots(crawl, &origin, RobotsKnown { until, crawl_delay_ms: None });
                Ok(())
            }
        }
    }

    /// The rules of an origin are known: its visits may go out, and its sitemaps are read.
    fn robots_known(
        &mut self,
        crawl: CrawlNo,
        url: &PageUrl,
        row: &OriginRow,
        rules: Arc<Rules>,
    ) -> Result<(), EngineError> {
        let key = key_of(crawl, url);
        self.prerequisites.under_way.remove(&key);
        let Some(context) = self.context_of(crawl).map(Arc::clone) else { return Ok(()) };
        if let Some(look) = row.not_found {
            context.soft_404.learn(row.origin.clone(), look);
            self.prerequisites.pages_seen.insert(key.clone(), None);
        }
        let age_ms = self.clock.wall().0.saturating_sub(row.asked_at.0);
        let known = RobotsKnown {
            until: self.clock.now().plus_ms(RULES_MS_MAX.saturating_sub(age_ms).max(1)),
            crawl_delay_ms: rules.crawl_delay_ms(),
        };
        let found = sitemaps_of(url, &rules, &context, self.clock.wall());
        self.remember(key, Known::Rules(rules));
        for key in self.prerequisites.crowd_out() {
            self.show_rules(&key);
            let (crawl, host, door) = key;
            self.frontier.forget_robots(crawl, &host, door);
        }
        self.tell_robots(crawl, url, known);
        match found {
            Some(found) => self.write(CommitWork::Events(found)),
            None => Ok(()),
        }
    }

    fn remember(&mut self, key: Key, rules: Known) {
        self.prerequisites.remember(key.clone(), rules);
        self.show_rules(&key);
    }

    /// Lets new links be judged by the rules of an origin, as far as they are known.
    fn show_rules(&self, key: &Key) {
        let Some(context) = self.context_of(key.0) else { return };
        let rules = self.prerequisites.rules_of(key);
        context.learned.set_rules(key.1.clone(), key.2, rules);
    }

    fn tell_robots(&mut self, crawl: CrawlNo, url: &PageUrl, known: RobotsKnown) {
        let host = url.host();
        let delay_before = self.frontier.host_delay_ms(crawl, &host);
        self.frontier.robots(crawl, &host, Door::of(url), known);
        if self.frontier.host_delay_ms(crawl, &host) != delay_before {
            self.note_delay(crawl, host);
        }
    }
}

/// The sitemaps that an origin's robots.txt names, or the one where they usually lie.
fn sitemaps_of(
    url: &PageUrl,
    rules: &Rules,
    context: &CrawlContext,
    at: Timestamp,
) -> Option<Vec<LedgerEvent>> {
    if !context.crawl.sitemaps.discover || !context.scope.wants_sitemaps_of(url) {
        return None;
    }
    let file = url.join("/robots.txt").ok()?;
    let mut urls: Vec<PageUrl> = rules.sitemaps().filter_map(|loc| file.join(loc).ok()).collect();
    if urls.is_empty() {
        urls.push(url.join("/sitemap.xml").ok()?);
    }
    let purpose = Purpose::Sitemap { nesting: 0 };
    let links =
        urls.into_iter().map(|url| discovery(url, purpose, Via::Sitemap, context)).collect();
    let source = LinkSource {
        crawl: context.crawl.no,
        at,
        depth: 0,
        hops_outside: 0,
        url: file.to_string(),
        referrer: None,
        redirects: Vec::new(),
    };
    Some(source.judge_to_events(links, &context.scope))
}

/// Whether rules that were read then still hold. A time to come is no age: the clock was wrong then or
/// is wrong now, and rules that seem fresh for years would never be read again.
pub(crate) fn is_fresh(asked_at: Timestamp, now: Timestamp) -> bool {
    now.0.checked_sub(asked_at.0).is_some_and(|age_ms| age_ms < RULES_MS_MAX)
}

fn prerequisite(
    crawl: CrawlNo,
    purpose: Purpose,
    url: PageUrl,
    place: QueuePlace,
    found_at: Timestamp,
) -> Visit {
    Visit {
        crawl,
        purpose,
        url,
        key: UrlKey(0),
        place,
        depth: 0,
        hops_outside: 0,
        via: Via::Link,
        found_at,
        referrer: None,
        redirects: Vec::new(),
        lastmod: None,
        attempt: 1,
    }
}

fn later(due: Timestamp, reason: Reason, detail: String) -> VisitOutcome {
    VisitOutcome::Later { due, counted: false, reason, status: None, detail }
}

fn key_of(crawl: CrawlNo, url: &PageUrl) -> Key {
    (crawl, url.host(), Door::of(url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_whose_prerequisite_was_dropped_are_asked_for_again() {
        let key = |url: &str| key_of(CrawlNo(1), &PageUrl::parse(url).unwrap());
        let mut prerequisites = Prerequisites::default();
        for url in ["http://a.org/", "https://a.org:81/", "http://b.org/"] {
            assert!(prerequisites.under_way.insert(key(url)));
        }
        prerequisites.dropped(CrawlNo(2), &key("http://a.org/").1);
        assert_eq!(prerequisites.under_way.len(), 3);
        prerequisites.dropped(CrawlNo(1), &key("http://a.org/").1);
        assert_eq!(prerequisites.under_way, HashSet::from([key("http://b.org/")]));
    }

    #[test]
    fn rules_read_under_a_clock_in_the_future_are_old() {
        let now = Timestamp(RULES_MS_MAX * 1000);
        assert!(is_fresh(now, now));
        assert!(is_fresh(Timestamp(now.0 - RULES_MS_MAX + 1), now));
        assert!(!is_fresh(Timestamp(now.0 - RULES_MS_MAX), now));
        assert!(!is_fresh(Timestamp(now.0 + 1), now));
    }
}
