//! The decision itself: of all that may be done now, what is done next.

use std::net::IpAddr;

use telusur_model::{CrawlNo, Door, Lane, Moment, Purpose, QueuePlace, Visit};

use crate::crawl::Turn;
use crate::decision::Next;
use crate::frontier::{Frontier, Timer};
use crate::host::{HostId, InFlight, Lookup};
use crate::rules::Leave;
use crate::standing::Spot;

/// Name lookups under way at once: what a home router's resolver bears.
const LOOKUPS_MAX: usize = 64;
/// Reads of the store under way at once for one crawl.
const READS_MAX: usize = 64;
/// Visits by which a new crawl goes before the others.
const HEAD_START: u64 = 100;

impl Frontier {
    /// What to do now. Call it again until it says [`Next::Wait`].
    pub fn next(&mut self, now: Moment) -> Next {
        self.advance(now);
        self.fire_timers();
        for crawl in self.crawls.values_mut() {
            crawl.flights.advance(&crawl.politeness, now);
        }
        if let Some(visit) = self.next_visit() {
            return visit;
        }
        if let Some(robots) = self.next_robots() {
            return robots;
        }
        if let Some(lookup) = self.next_lookup() {
            return lookup;
        }
        if let Some(read) = self.next_read() {
            return read;
        }
        if let Some(finish) = self.next_finish() {
            return finish;
        }
        let by_timer = self.timers.first().map(|&(moment, _)| moment);
        let by_site = self.sites.next_release();
        // A crawl that failed waits for the next trial, if there is one to come.
        let trial_at = self.suspicion.next_at().unwrap_or(Moment(0));
        let by_crawl = self.crawls.values().filter_map(|crawl| {
            let opens_at = crawl.opens_at()?;
            Some(if crawl.failing_since.is_some() { opens_at.max(trial_at) } else { opens_at })
        });
        Next::Wait(by_timer.into_iter().chain(by_site).chain(by_crawl).min())
    }

    fn fire_timers(&mut self) {
        self.end_parks();
        while let Some(&(moment, timer)) = self.timers.first()
            && moment <= self.now
        {
            match timer {
                Timer::Queue(crawl, host) => self.refresh(crawl, host),
                Timer::Address(address) => self.refresh_address(address),
            }
        }
    }

    /// The least served host of the least served crawl.
    fn next_visit(&mut self) -> Option<Next> {
        if let Some((no, host)) = self.witness_ready() {
            self.suspicion.called_witness();
            return self.hand_out(no, host);
        }
        let must_wait = self.suspicion.next_at().is_some_and(|moment| moment > self.now);
        loop {
            let open = self
                .crawls
                .values()
                .filter(|crawl| !must_wait || crawl.failing_since.is_none())
                .filter_map(|crawl| Some((crawl.service, crawl.no, crawl.turn(self.now)?)));
            let (_, no, turn) = open.min_by_key(|&(service, no, _)| (service, no))?;
            match turn {
                Turn::Queue(host) => {
                    // Its address may have closed since it stepped into line.
                    self.refresh(no, host);
                    let spot = self.crawl(no).queue(host).standing.spot;
                    if matches!(spot, Spot::Ready { is_id: false, .. }) {
                        return self.hand_out(no, host);
                    }
                }
                Turn::Id => {
                    if let Some(visit) = self.hand_out_id(no) {
                        return Some(visit);
                    }
                }
            }
        }
    }

    /// The id whose turn it is in a linear crawl.
    fn hand_out_id(&mut self, no: CrawlNo) -> Option<Next> {
        let now = self.now;
        let mut ids = self.crawls.get_mut(&no)?.ids.take()?;
        let ask = ids.next(now, |host, door| self.may_pass(no, host, door));
        let asked = ask.map(|ask| (ask.host, ids.visit(no, ask)));
        let ready: Vec<HostId> = match asked {
            Some(_) => Vec::new(),
            None => ids.ready.iter().copied().collect(),
        };
        let crawl = self.crawls.get_mut(&no)?;
        crawl.ids = Some(ids);
        if let Some((host, visit)) = asked {
            crawl.queue_mut(host).begin_flight(visit.place, now);
            return Some(self.launch(no, host, visit));
        }
        // Addresses have closed or rules have expired since these hosts stepped into line.
        for host in ready {
            self.refresh(no, host);
        }
        None
    }

    /// Whether an origin that is in line may be asked at this very moment.
    fn may_pass(&self, no: CrawlNo, host: HostId, door: Door) -> bool {
        let crawl = self.crawl(no);
        let is_ruled =
            !crawl.obeys_robots() || crawl.queue(host).robots.leave(door, self.now) == Leave::Given;
        let address = self.hosts.get(host).known_address();
        is_ruled && address.is_none_or(|address| self.address_opening(address).is_open(self.now))
    }

    /// While we suspect ourselves: a prerequisite to a host that answered lately goes before everything.
    fn witness_ready(&self) -> Option<(CrawlNo, HostId)> {
        if !self.suspicion.may_call_witness(self.now) {
            return None;
        }
        let is_prerequisite = |visit: &Visit| visit.purpose == Purpose::Robots;
        self.suspicion.witnesses().find_map(|host| {
            let crawl = self.crawls.values().find(|crawl| {
                !crawl.paused
                    && crawl.queues.get(&host).is_some_and(|queue| {
                        matches!(queue.standing.spot, Spot::Ready { is_id: false, .. })
                            && queue.first(self.now).is_some_and(|it| is_prerequisite(&it.visit))
                    })
            })?;
            Some((crawl.no, host))
        })
    }

    fn hand_out(&mut self, no: CrawlNo, host: HostId) -> Option<Next> {
        let crawl = self.crawls.get_mut(&no)?;
        let visit = crawl.queue_mut(host).hand_out(self.now)?;
        if let Some(ids) = &mut crawl.ids
            && !matches!(visit.place.lane, Lane::Prerequisite | Lane::Linear)
        {
            ids.link_had_turn();
        }
        Some(self.launch(no, host, visit))
    }

    /// Sends out a visit that has left its queue.
    fn launch(&mut self, no: CrawlNo, host: HostId, visit: Visit) -> Next {
        let now = self.now;
        let trust = self.hosts.get(host).pace.trust();
        let crawl = self.crawls.get_mut(&no).expect("its visit was just taken from it");
        let site = crawl.queue(host).site;
        let is_trial = crawl.failing_since.is_some();
        crawl.flights.begin(visit.place, trust, now);
        crawl.serve(site, now);
        // Start-time fair queueing: a crawl that comes late, or had nothing to do for a while,
        // starts where the others are and does not make up for it at their expense. A little it
        // may: so a small crawl is soon over.
        let start = crawl.service.max(self.level.saturating_sub(HEAD_START));
        crawl.service = start + 1;
        self.level = self.level.max(start);
        self.suspicion.asked(now, is_trial);
        self.enter_gates(no, host, visit.place);
        Next::Visit(visit)
    }

    fn enter_gates(&mut self, crawl: CrawlNo, host: HostId, place: QueuePlace) {
        let handed_at = self.now;
        let state = self.hosts.get_mut(host);
        let address = state.known_address();
        state.in_flight.push(InFlight { crawl, place, handed_at, started: false, address });
        state.gate.enter();
        if let Some(address) = address {
            self.addresses.entry(address).or_default().gate.enter();
        }
        self.refresh_host_and_address(host, address);
    }

    pub(crate) fn refresh_host_and_address(&mut self, host: HostId, address: Option<IpAddr>) {
        self.refresh_host(host);
        if let Some(address) = address {
            self.refresh_address(address);
        }
    }

    fn next_robots(&mut self) -> Option<Next> {
        let mut crawls = self.crawls.values().filter(|crawl| !crawl.paused);
        let (no, host) = crawls.find_map(|crawl| {
            let &(_, host) = crawl.unruled.first()?;
            Some((crawl.no, host))
        })?;
        let now = self.now;
        let crawl = self.crawls.get_mut(&no)?;
        let url = crawl.first(host, now)?.url().clone();
        crawl.queue_mut(host).robots.ask(Door::of(&url), now);
        self.refresh(no, host);
        Some(Next::NeedRobots { crawl: no, url })
    }

    fn next_lookup(&mut self) -> Option<Next> {
        if self.lookups >= LOOKUPS_MAX {
            return None;
        }
        let mut crawls = self.crawls.values().filter(|crawl| !crawl.paused);
        let (no, host) = crawls.find_map(|crawl| {
            let &(_, host) = crawl.unresolved.first()?;
            Some((crawl.no, host))
        })?;
        let url = self.crawl(no).first(host, self.now)?.url().clone();
        self.lookups += 1;
        self.hosts.get_mut(host).address = Lookup::UnderWay { crawl: no, since: self.now };
        self.refresh_host(host);
        Some(Next::NeedAddress { crawl: no, url })
    }

    fn next_read(&mut self) -> Option<Next> {
        let crawl = self.crawls.values_mut().find(|crawl| {
            !crawl.paused && crawl.reads < READS_MAX && !crawl.reads_wanted.is_empty()
        })?;
        let (host, region) = crawl.reads_wanted.pop_front()?;
        crawl.reads += 1;
        let head_max = crawl.head_max();
        let head = crawl.queue_mut(host).head(region);
        let max = head.room(head_max);
        let after = head.begin_read();
        let crawl = crawl.no;
        let host = self.hosts.get(host).host.clone();
        Some(Next::NeedUrls { crawl, host, region, after, max })
    }

    fn next_finish(&mut self) -> Option<Next> {
        let (crawl, why) =
            self.crawls.values_mut().find_map(|crawl| crawl.end().map(|why| (crawl, why)))?;
        crawl.told = true;
        Some(Next::Finished { crawl: crawl.no, why })
    }
}
