//! What belongs to one crawl: its queues, one per host, and the service its sites had. It knows
//! nothing of gates and delays.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use telusur_model::{
    CrawlNo, Fairness, FinishReason, Lane, Moment, PageUrl, Politeness, Purpose, QueuePlace,
    RobotsRules, Site, Visit,
};

use crate::decision::{CrawlStart, Region};
use crate::flights::Flights;
use crate::head::{Head, Waiting};
use crate::host::HostId;
use crate::ids::Ids;
use crate::rules::RobotsWatch;
use crate::site_queue::{First, SiteQueue};
use crate::site_shares::SiteShares;
use crate::standing::Standing;

/// A site's number in its crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SiteId(u32);

/// Visits that are held in memory for one crawl, over all its hosts: about 30 MB.
const HEADS_TOTAL: usize = 65_536;
/// Visits held for one host and region at least, when many hosts share [`HEADS_TOTAL`].
const HEAD_MIN: usize = 8;
/// Visits that a site may lead before it waits, with any service so far.
const LEAD_MIN: u64 = 8;
/// Visits in a row that brought no page (redirects, retries) and are not counted as service. With
/// no bound a site of ten thousand redirects would go first, and hold up all others, until its end.
const FRUITLESS_MAX: u32 = 8;
const US_PER_MS: u64 = 1000;

/// A crawl that runs.
#[derive(Clone, Debug)]
pub(crate) struct CrawlState {
    pub(crate) no: CrawlNo,
    pub(crate) politeness: Politeness,
    pub(crate) pages_max: Option<u64>,
    pages_done: u64,
    quiet_until: Moment,
    pub(crate) paused: bool,
    /// Its pages take up its share of the pipeline: nothing of it is handed out.
    pub(crate) is_blocked: bool,
    /// Since when its visits have failed, without an answer to any in between.
    pub(crate) failing_since: Option<Moment>,
    /// The end has been announced.
    pub(crate) told: bool,
    head_max: usize,

    pub(crate) queues: BTreeMap<HostId, HostQueue>,
    pub(crate) sites: Vec<SiteState>,
    pub(crate) site_ids: BTreeMap<Site, SiteId>,
    pub(crate) shares: SiteShares,
    /// Sites of which nothing is handed out.
    pub(crate) blocked: BTreeSet<SiteId>,
    /// Hosts that may be asked now and that answer in time.
    ready: SiteQueue,
    /// Hosts that may be asked now and that may keep us waiting.
    ready_doubtful: SiteQueue,
    /// Sites that others wait for, by service.
    holding: BTreeSet<(u64, SiteId)>,
    /// Hosts that could be asked if their address were known, in the order of tickets.
    pub(crate) unresolved: BTreeSet<(u64, HostId)>,
    /// Hosts that could be asked if their robots.txt were known, in the order of tickets.
    pub(crate) unruled: BTreeSet<(u64, HostId)>,
    /// The ids of a linear crawl.
    pub(crate) ids: Option<Ids>,
    /// Heads that want a read.
    pub(crate) reads_wanted: VecDeque<(HostId, Region)>,
    /// Reads of the store under way.
    pub(crate) reads: usize,

    /// Visits handed out that have not ended.
    pub(crate) flights: Flights,
    /// Visits handed out that are not committed: each may still become a page.
    pub(crate) outstanding: u64,
    /// Queues that hold anything, in memory or in the store.
    pub(crate) queues_busy: usize,
    /// Service so far, among all crawls.
    pub(crate) service: u64,
    /// Service at which sites were served lately.
    level: u64,
    /// The next visit may start then, by the crawl's rate. In microseconds, because a rate is
    /// rarely a whole number of milliseconds.
    rate_next_us: u64,
}

/// A site within a crawl.
#[derive(Clone, Debug)]
pub(crate) struct SiteState {
    pub(crate) site: Site,
    /// Pages stored.
    pub(crate) pages: u64,
    /// Service for comparing: visits handed out, and a start that makes up for coming late.
    pub(crate) served: u64,
    /// Its queues that are able to be served soon.
    queues_holding: u32,
    /// Visits in a row whose service was given back.
    fruitless: u32,
}

/// What a host would be asked for first.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FirstInLine<'a> {
    /// A visit of its queue.
    Visit(&'a Visit),
    /// An id of a walk, to which this page belongs.
    Id(&'a PageUrl),
}

impl FirstInLine<'_> {
    pub(crate) fn url(&self) -> &PageUrl {
        match self {
            Self::Visit(visit) => &visit.url,
            Self::Id(url) => url,
        }
    }

    pub(crate) fn purpose(&self) -> Purpose {
        match self {
            Self::Visit(visit) => visit.purpose,
            Self::Id(_) => Purpose::Page,
        }
    }

    /// Whether it is a prerequisite, or the next hop of an id that was redirected: in no queue of the
    /// store, and owed no turn.
    pub(crate) fn is_unqueued(&self) -> bool {
        matches!(self, Self::Visit(visit)
            if matches!(visit.place.lane, Lane::Prerequisite | Lane::Linear))
    }
}

/// Where the next visit of a crawl comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turn {
    /// The queue of this host.
    Queue(HostId),
    /// The id whose turn it is.
    Id,
}

/// A host's queue within a crawl.
#[derive(Clone, Debug)]
pub(crate) struct HostQueue {
    pub(crate) site: SiteId,
    pub(crate) fresh: Head,
    pub(crate) later: Head,
    /// Prerequisites of the engine: they go first.
    prerequisites: Vec<Waiting>,
    /// Which of the host's origins have been read the rules of.
    pub(crate) robots: RobotsWatch,
    /// Handed out and not committed; `true` while in flight.
    outstanding: BTreeMap<QueuePlace, (Moment, bool)>,
    /// The same by age.
    outstanding_by_age: BTreeSet<(Moment, QueuePlace)>,
    pub(crate) standing: Standing,
}

impl HostQueue {
    pub(crate) fn head(&mut self, region: Region) -> &mut Head {
        match region {
            Region::Fresh => &mut self.fresh,
            Region::Later => &mut self.later,
        }
    }

    /// The visit that would be handed out: what must be known first, then a page that is due again,
    /// then a probe, which serves the fresh ones that come after it.
    pub(crate) fn first(&self, now: Moment) -> Option<&Waiting> {
        let is_due = |waiting: &&Waiting| waiting.due.is_none_or(|due| due <= now);
        let is_probe = |waiting: &&Waiting| waiting.visit.purpose == Purpose::Probe;
        let mut due = self.prerequisites.iter().filter(is_due);
        let prerequisite = due.clone().find(|waiting| !is_probe(waiting));
        let first = prerequisite.or_else(|| self.later.first().filter(is_due));
        first.or_else(|| due.find(is_probe)).or_else(|| self.fresh.first())
    }

    /// When time alone brings a visit.
    pub(crate) fn next_due(&self) -> Option<Moment> {
        let prerequisites = self.prerequisites.iter().filter_map(|prerequisite| prerequisite.due);
        prerequisites.chain(self.later.first().and_then(|first| first.due)).min()
    }

    pub(crate) fn add_prerequisite(&mut self, prerequisite: Waiting) {
        self.prerequisites.push(prerequisite);
    }

    pub(crate) fn drop_prerequisites(&mut self) {
        self.prerequisites.clear();
    }

    pub(crate) fn hand_out(&mut self, now: Moment) -> Option<Visit> {
        let place = self.first(now)?.visit.place;
        let visit = match self
            .prerequisites
            .iter()
            .position(|prerequisite| prerequisite.visit.place == place)
        {
            Some(index) => self.prerequisites.remove(index).visit,
            None => self.head(Region::of(place.lane)).take_first()?,
        };
        self.begin_flight(visit.place, now);
        Some(visit)
    }

    pub(crate) fn begin_flight(&mut self, place: QueuePlace, now: Moment) {
        self.outstanding.insert(place, (now, true));
        self.outstanding_by_age.insert((now, place));
    }

    /// The fetch ended. Says whether it was under way.
    pub(crate) fn end_flight(&mut self, place: QueuePlace) -> bool {
        let outstanding = self.outstanding.get_mut(&place);
        outstanding.is_some_and(|(_, in_flight)| std::mem::replace(in_flight, false))
    }

    /// The store has removed the row, or a prerequisite is done. Says whether the visit was outstanding.
    pub(crate) fn commit(&mut self, place: QueuePlace) -> bool {
        if !matches!(place.lane, Lane::Prerequisite | Lane::Linear) {
            self.head(Region::of(place.lane)).committed(place);
        }
        let Some((handed_at, _)) = self.outstanding.remove(&place) else { return false };
        self.outstanding_by_age.remove(&(handed_at, place))
    }

    /// A visit that was handed out stays in the queue. Says whether it was outstanding.
    pub(crate) fn take_back(&mut self, visit: Visit, max: usize) -> bool {
        let place = visit.place;
        let Some((handed_at, _)) = self.outstanding.remove(&place) else { return false };
        self.outstanding_by_age.remove(&(handed_at, place));
        // If it had a due time, that has passed.
        let waiting = Waiting { visit, due: None };
        match place.lane {
            Lane::Prerequisite | Lane::Linear => self.prerequisites.push(waiting),
            Lane::Hot | Lane::Plain | Lane::Later => {
                self.head(Region::of(place.lane)).discovered(waiting, max);
            }
        }
        true
    }

    pub(crate) fn discovered(&mut self, waiting: Waiting, max: usize) {
        let place = waiting.visit.place;
        // A read may have brought it before the event that announces it.
        if !self.outstanding.contains_key(&place) {
            self.head(Region::of(place.lane)).discovered(waiting, max);
        }
    }

    pub(crate) fn refill(
        &mut self,
        region: Region,
        answer: Vec<Waiting>,
        exhausted: bool,
        max: usize,
    ) -> bool {
        let outstanding = &self.outstanding;
        let head = match region {
            Region::Fresh => &mut self.fresh,
            Region::Later => &mut self.later,
        };
        head.refill(answer, exhausted, max, |place| outstanding.contains_key(place))
    }

    pub(crate) fn oldest_outstanding(&self) -> Option<Moment> {
        self.outstanding_by_age.first().map(|&(handed_at, _)| handed_at)
    }

    pub(crate) fn is_busy(&self) -> bool {
        !self.fresh.is_drained() || !self.later.is_drained() || !self.prerequisites.is_empty()
    }
}

impl CrawlState {
    pub(crate) fn new(start: &CrawlStart, head_max: usize) -> Self {
        Self {
            no: start.crawl,
            politeness: start.politeness.clone(),
            pages_max: start.pages_max,
            pages_done: start.pages_done,
            quiet_until: start.quiet_until,
            paused: false,
            is_blocked: false,
            failing_since: None,
            told: false,
            head_max,
            queues: BTreeMap::new(),
            sites: Vec::new(),
            site_ids: BTreeMap::new(),
            shares: SiteShares::default(),
            blocked: BTreeSet::new(),
            ready: SiteQueue::default(),
            ready_doubtful: SiteQueue::default(),
            holding: BTreeSet::new(),
            unresolved: BTreeSet::new(),
            unruled: BTreeSet::new(),
            ids: None,
            reads_wanted: VecDeque::new(),
            reads: 0,
            flights: Flights::default(),
            outstanding: 0,
            queues_busy: 0,
            service: 0,
            level: 0,
            rate_next_us: 0,
        }
    }

    /// Whether nothing is asked of an origin before its robots.txt was read.
    pub(crate) fn obeys_robots(&self) -> bool {
        self.politeness.robots != RobotsRules::Ignore
    }

    /// Visits held in memory for one host and region.
    pub(crate) fn head_max(&self) -> usize {
        (HEADS_TOTAL / self.queues.len().max(1)).max(HEAD_MIN).min(self.head_max)
    }

    pub(crate) fn queue(&self, host: HostId) -> &HostQueue {
        self.queues.get(&host).expect("asked only for hosts of this crawl")
    }

    pub(crate) fn queue_mut(&mut self, host: HostId) -> &mut HostQueue {
        self.queues.get_mut(&host).expect("asked only for hosts of this crawl")
    }

    /// What a host would be asked for first: prerequisites, then queued visits and ids in turn.
    pub(crate) fn first(&self, host: HostId, now: Moment) -> Option<FirstInLine<'_>> {
        let queue = self.queue(host);
        let queued = queue.first(now).map(|waiting| FirstInLine::Visit(&waiting.visit));
        let Some(ids) = &self.ids else { return queued };
        let goes_first = |first: &FirstInLine<'_>| first.is_unqueued() || !ids.go_first();
        let robots = Some(&queue.robots).filter(|_| self.obeys_robots());
        let id = || ids.first(host, robots, now).map(FirstInLine::Id);
        match queued {
            Some(first) if goes_first(&first) => Some(first),
            queued => id().or(queued),
        }
    }

    /// When time alone brings a visit of a host.
    pub(crate) fn next_due(&self, host: HostId) -> Option<Moment> {
        let id = self.ids.as_ref().and_then(|ids| ids.next_due(host));
        self.queue(host).next_due().into_iter().chain(id).min()
    }

    /// Whether anything is left to ask of a host, in memory or in the store.
    pub(crate) fn is_busy(&self, host: HostId) -> bool {
        self.queue(host).is_busy() || self.ids.as_ref().is_some_and(|ids| ids.is_busy(host))
    }

    /// Opens a queue for a host. `more`: the store may hold URLs of it.
    pub(crate) fn open_queue(&mut self, host: HostId, site: Site, more: bool) -> SiteId {
        let site = self.site_id(site);
        let queue = HostQueue {
            site,
            fresh: Head::new(more),
            later: Head::new(more),
            prerequisites: Vec::new(),
            robots: RobotsWatch::default(),
            outstanding: BTreeMap::new(),
            outstanding_by_age: BTreeSet::new(),
            standing: Standing::default(),
        };
        self.queues.insert(host, queue);
        site
    }

    fn site_id(&mut self, site: Site) -> SiteId {
        if let Some(&id) = self.site_ids.get(&site) {
            return id;
        }
        let id = SiteId(u32::try_from(self.sites.len()).expect("fewer sites than hosts"));
        // A site that is met late is owed nothing for the time before.
        let served = self.least_service();
        self.site_ids.insert(site.clone(), id);
        self.sites.push(SiteState { site, pages: 0, served, queues_holding: 0, fruitless: 0 });
        self.shares.join(id, &self.sites);
        id
    }

    pub(crate) fn site(&self, site: SiteId) -> &SiteState {
        &self.sites[site.index()]
    }

    /// Adds pages of an earlier run.
    pub(crate) fn credit_pages(&mut self, site: SiteId, pages: u64) {
        self.add_pages(site, pages);
        let state = &mut self.sites[site.index()];
        state.served = state.pages;
    }

    /// Brings sites that are far behind the middle of an earlier run up to it: they were late or
    /// slow then, and the others must not wait while they catch up.
    pub(crate) fn forgive_lags(&mut self) {
        let mut served: Vec<u64> = self.sites.iter().map(|site| site.served).collect();
        let middle = served.len() / 2;
        if served.is_empty() {
            return;
        }
        let (_, &mut median, _) = served.select_nth_unstable(middle);
        for site in &mut self.sites {
            site.served = site.served.max(median.saturating_sub(lead_max(median)));
        }
    }

    // ---- service ----

    /// What a site's place among others goes by.
    pub(crate) fn rank(&self, site: SiteId) -> u64 {
        match self.politeness.fairness {
            Fairness::None => 0,
            Fairness::Weighted | Fairness::Equal => self.site(site).served,
        }
    }

    /// The least service among the sites that count now.
    fn least_service(&self) -> u64 {
        let ready = || {
            let lines = [&self.ready, &self.ready_doubtful];
            let first = lines.into_iter().filter_map(|line| line.first(&self.blocked));
            first.map(|first| self.site(first.site).served).min()
        };
        self.least_holding().or_else(ready).unwrap_or(self.level)
    }

    /// The least service among the sites that others wait for. No site waits for one that is blocked.
    fn least_holding(&self) -> Option<u64> {
        let mut holding = self.holding.iter().filter(|(_, site)| !self.blocked.contains(site));
        holding.next().map(|&(served, _)| served)
    }

    /// Whether a site that is first in its line must wait for a less served one. All others in that
    /// line had more service than the first.
    fn is_held_back(&self, first: First) -> bool {
        match self.least_holding() {
            Some(least) if self.politeness.fairness == Fairness::Equal => {
                first.rank >= least.saturating_add(lead_max(least))
            }
            _ => false,
        }
    }

    /// The line of hosts that may be asked now, by what is expected of them.
    pub(crate) fn ready_line(&mut self, is_doubtful: bool) -> &mut SiteQueue {
        if is_doubtful { &mut self.ready_doubtful } else { &mut self.ready }
    }

    /// Where the next visit comes from, of all that is ready. Rates decide between ids, so no site
    /// makes them wait.
    pub(crate) fn turn(&self, now: Moment) -> Option<Turn> {
        let queue = || self.next_ready(now).map(Turn::Queue);
        let ids = self.ids.as_ref();
        match ids.filter(|_| self.ids_open_at().is_some_and(|moment| moment <= now)) {
            Some(ids) => {
                let queue = if ids.go_first() { None } else { queue() };
                Some(queue.unwrap_or(Turn::Id))
            }
            None => queue(),
        }
    }

    /// Counts a visit that is handed out.
    pub(crate) fn serve(&mut self, site: SiteId, now: Moment) {
        let served = self.site(site).served;
        self.level = self.level.max(served);
        self.set_served(site, served + 1);
        self.outstanding += 1;
        if let Some(spacing_us) = self.rate_spacing_us() {
            // Time comes in whole milliseconds; what a visit started late by up to one of them is
            // not added to the next.
            let now_us = now.0.saturating_mul(US_PER_MS);
            let due_us = self.rate_next_us.max(now_us.saturating_sub(US_PER_MS));
            self.rate_next_us = due_us.saturating_add(spacing_us);
        }
    }

    /// Takes back the service of a visit that brought nothing.
    pub(crate) fn give_back(&mut self, site: SiteId) {
        let state = &mut self.sites[site.index()];
        if state.fruitless < FRUITLESS_MAX {
            state.fruitless += 1;
            let served = state.served.saturating_sub(1);
            self.set_served(site, served);
        }
    }

    /// A visit brought what it was sent for.
    pub(crate) fn bore_fruit(&mut self, site: SiteId) {
        self.sites[site.index()].fruitless = 0;
    }

    fn set_served(&mut self, site: SiteId, served: u64) {
        let state = &mut self.sites[site.index()];
        let before = std::mem::replace(&mut state.served, served);
        if state.queues_holding > 0 {
            self.holding.remove(&(before, site));
            self.holding.insert((served, site));
        }
        let rank = self.rank(site);
        self.ready.set_rank(site, rank);
        self.ready_doubtful.set_rank(site, rank);
    }

    /// One more queue of the site is able to be served soon.
    pub(crate) fn begin_holding(&mut self, site: SiteId) {
        if self.site(site).queues_holding == 0 {
            self.forgive_lag(site);
            self.holding.insert((self.site(site).served, site));
        }
        self.sites[site.index()].queues_holding += 1;
    }

    /// What a site missed while it could not be served is forgiven, down to the lead that others may
    /// have anyway: else they would stand still until it has caught up.
    pub(crate) fn forgive_lag(&mut self, site: SiteId) {
        let least = self.least_service();
        let served = self.site(site).served.max(least.saturating_sub(lead_max(least)));
        self.set_served(site, served);
    }

    /// One queue less.
    pub(crate) fn end_holding(&mut self, site: SiteId) {
        let state = &mut self.sites[site.index()];
        state.queues_holding -= 1;
        if state.queues_holding == 0 {
            self.holding.remove(&(state.served, site));
        }
    }

    // ---- limits ----

    /// Counts a visit that is settled or queued again.
    pub(crate) fn settle(&mut self, site: SiteId, stored_page: bool) {
        self.outstanding -= 1;
        if stored_page {
            self.pages_done += 1;
            self.add_pages(site, 1);
        }
    }

    fn add_pages(&mut self, site: SiteId, pages: u64) {
        let state = &mut self.sites[site.index()];
        let before = state.pages;
        state.pages += pages;
        self.shares.grow(site, before, &self.sites);
    }

    /// When another visit may be handed out, apart from hosts and addresses; `None` if only an
    /// event can allow it.
    pub(crate) fn opens_at(&self) -> Option<Moment> {
        self.openings().map(|(moment, _)| moment).chain(self.ids_open_at()).min()
    }

    /// The host that goes next, if a visit may be handed out now.
    pub(crate) fn next_ready(&self, now: Moment) -> Option<HostId> {
        let open = self.openings().filter(|(moment, _)| *moment <= now);
        open.map(|(_, first)| first)
            .min_by_key(|first| (first.rank, first.ticket))
            .map(|it| it.host)
    }

    /// The first of each line, and when it may go.
    fn openings(&self) -> impl Iterator<Item = (Moment, First)> {
        let not_before = self.not_before();
        let trusted =
            || Some((self.flights.opens_at(&self.politeness)?, self.ready.first(&self.blocked)?));
        let doubtful = || {
            let opens_at = self.flights.opens_to_doubtful_at(&self.politeness)?;
            Some((opens_at, self.ready_doubtful.first(&self.blocked)?))
        };
        let lines = if not_before.is_some() { [trusted(), doubtful()] } else { [None, None] };
        let not_before = not_before.unwrap_or(Moment(0));
        let lines = lines.into_iter().flatten();
        lines
            .filter(|(_, first)| !self.is_held_back(*first))
            .map(move |(worker_at, first)| (worker_at.max(not_before), first))
    }

    /// When an id may be asked for, if one is ready.
    fn ids_open_at(&self) -> Option<Moment> {
        self.ids.as_ref().filter(|ids| !ids.ready.is_empty())?;
        let not_before = self.not_before()?;
        Some(self.flights.opens_at(&self.politeness)?.max(not_before))
    }

    /// When the crawl as a whole may begin another visit; `None`: only an event can allow it.
    pub(crate) fn not_before(&self) -> Option<Moment> {
        // Each outstanding visit may become a page, so it counts as one until it is known.
        let is_at_limit =
            self.pages_max.is_some_and(|max| self.pages_done + self.outstanding >= max);
        if self.paused || self.is_blocked || is_at_limit {
            return None;
        }
        let rate_at = match self.rate_spacing_us() {
            Some(_) => Moment(self.rate_next_us.div_ceil(US_PER_MS)),
            None => Moment(0),
        };
        Some(rate_at.max(self.quiet_until))
    }

    /// Why the crawl is over, if it is and this was not said yet.
    pub(crate) fn end(&self) -> Option<FinishReason> {
        if self.paused || self.told || self.outstanding > 0 {
            return None;
        }
        if self.queues_busy == 0 {
            return Some(FinishReason::Drained);
        }
        let limit_reached = self.pages_max.is_some_and(|max| self.pages_done >= max);
        limit_reached.then_some(FinishReason::MaxPages)
    }

    /// Microseconds between two starts, by the crawl's rate.
    fn rate_spacing_us(&self) -> Option<u64> {
        const HOUR_US: f64 = 3.6e9;
        let rate = self.politeness.rate_per_second.filter(|rate| *rate > 0.0)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
        let spacing_us = (1e6 / rate).ceil().clamp(0.0, HOUR_US) as u64;
        Some(spacing_us)
    }
}

impl SiteId {
    pub(crate) fn index(self) -> usize {
        usize::try_from(self.0).expect("a u32 fits")
    }
}

/// Visits that a site may lead a site with this service.
fn lead_max(least: u64) -> u64 {
    LEAD_MIN + least / 20
}
