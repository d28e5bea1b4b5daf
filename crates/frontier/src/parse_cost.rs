//! [`ParseCost`]: what a host's pages cost to parse, and what the host pays for it. Network time is
//! the host's, parse time is ours: a host that answers with little and makes us work for long is asked
//! less often, one whose pages kill the parser is parked.
//!
//! The rule: a page that takes [`COSTLY_PARSE_MS`] of CPU or more silences its host for
//! [`QUIET_FACTOR`] times as long, from when it was parsed, and until it is committed nothing else of
//! the host is asked for. So a host never uses more than a twentieth of one core. After
//! [`KILLS_BEFORE_PARK`] pages in a row that kill a parser, the host is parked for a minute, and then
//! four times as long after each page that kills again; after [`PARKS_MAX`] of these it is given up,
//! and the rest of its URLs fail with that reason.

use std::collections::BTreeSet;

use telusur_model::Moment;

use crate::host::HostId;

/// CPU time of a page from which on it is costly. Of honest pages of up to 1 MiB hardly any takes a
/// tenth of it.
pub const COSTLY_PARSE_MS: u64 = 50;
/// How many times longer than its page took to parse a host is left alone.
const QUIET_FACTOR: u64 = 20;
/// Pages in a row that kill the parser, after which their host is parked.
const KILLS_BEFORE_PARK: u32 = 3;
/// Hosts of a site whose pages kill the parser, with no readable page of the site in between, after
/// which the whole site is parked: names of hosts cost nothing where a wildcard stands for them.
const HOSTS_BEFORE_PARK: usize = 5;
const PARK_MS_MIN: u64 = 60_000;
/// Parks after which a host is given up: 21 minutes together, as for one that cannot be reached.
const PARKS_MAX: u32 = 3;

/// What a page cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCost {
    /// CPU time of the parser, all attempts together.
    pub cpu_ms: u64,
    /// Whether it killed a parser.
    pub has_killed: bool,
}

/// What becomes of a host because of what its pages cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseCharge {
    /// Nothing.
    None,
    /// It is left alone for a while.
    Quiet {
        /// From now on.
        ms: u64,
    },
    /// Its pages keep killing the parser: it is left alone for long.
    Parked {
        /// From now on.
        ms: u64,
        /// Pages in a row that killed.
        kills: u32,
    },
    /// Its pages have killed the parser after every park: nothing more of it is asked for.
    GivenUp {
        /// Pages in a row that killed.
        kills: u32,
    },
    /// Pages of many hosts of its site keep killing the parser: the whole site is left alone.
    SiteParked {
        /// From now on; `None`: nothing more of the site is asked for.
        ms: Option<u64>,
        /// Pages in a row that killed.
        kills: u32,
    },
}

/// A host that is not asked because its pages keep killing the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parked {
    /// Time until it is tried again; `None`: it is not, in this run.
    pub left_ms: Option<u64>,
    /// Pages in a row that killed the parser.
    pub kills: u32,
}

/// What the latest pages of a host cost.
#[derive(Clone, Debug, Default)]
pub(crate) struct ParseCost {
    is_costly: bool,
    quiet_until: Moment,
    /// Pages in a row that killed a parser.
    kills: u32,
    parking: Parking,
}

/// Parks, each four times as long as the one before, and what comes after the last.
#[derive(Clone, Copy, Debug, Default)]
struct Parking {
    parks: u32,
    until: Moment,
}

impl Parking {
    /// Begins the next park. Gives its length; `None`: there were enough of them.
    fn begin(&mut self, now: Moment) -> Option<u64> {
        let ms = PARK_MS_MIN << (2 * self.parks.min(PARKS_MAX));
        self.parks = (self.parks + 1).min(PARKS_MAX + 1);
        if self.is_given_up() {
            self.until = now;
            return None;
        }
        self.until = now.plus_ms(ms);
        Some(ms)
    }

    fn is_given_up(&self) -> bool {
        self.parks > PARKS_MAX
    }

    fn parked(&self, kills: u32, now: Moment) -> Option<Parked> {
        if self.is_given_up() {
            return Some(Parked { left_ms: None, kills });
        }
        let left_ms = self.until.ms_since(now);
        (left_ms > 0).then_some(Parked { left_ms: Some(left_ms), kills })
    }
}

/// Pages of a site that killed the parser, since the last one that could be read.
#[derive(Clone, Debug, Default)]
pub(crate) struct SiteKills {
    /// Whose pages they were; no more than count.
    hosts: BTreeSet<HostId>,
    kills: u32,
    parking: Parking,
}

impl SiteKills {
    pub(crate) fn killed(&mut self, host: HostId, now: Moment) -> ParseCharge {
        self.kills = self.kills.saturating_add(1);
        if self.hosts.len() < HOSTS_BEFORE_PARK {
            self.hosts.insert(host);
        }
        // Pages that were under way when the site was parked say nothing new.
        if self.hosts.len() < HOSTS_BEFORE_PARK || self.parked(now).is_some() {
            return ParseCharge::None;
        }
        ParseCharge::SiteParked { ms: self.parking.begin(now), kills: self.kills }
    }

    pub(crate) fn parked(&self, now: Moment) -> Option<Parked> {
        self.parking.parked(self.kills, now)
    }

    /// As for a host: it is tried again, once.
    pub(crate) fn forgive(&mut self) {
        self.parking = Parking::default();
    }
}

impl ParseCost {
    /// Takes note of a page. The host must be quiet until [`quiet_until`](Self::quiet_until).
    pub(crate) fn note(&mut self, cost: PageCost, now: Moment) -> ParseCharge {
        self.is_costly = cost.has_killed || cost.cpu_ms >= COSTLY_PARSE_MS;
        if !cost.has_killed {
            (self.kills, self.parking.parks) = (0, 0);
        }
        if !self.is_costly {
            return ParseCharge::None;
        }
        // Pages that came at the same time add up.
        let quiet_ms = cost.cpu_ms.saturating_mul(QUIET_FACTOR);
        self.quiet_until = self.quiet_until.max(now).plus_ms(quiet_ms);
        if cost.has_killed {
            self.kills = self.kills.saturating_add(1);
            return self.killed(now);
        }
        ParseCharge::Quiet { ms: self.quiet_until.ms_since(now) }
    }

    fn killed(&mut self, now: Moment) -> ParseCharge {
        let kills = self.kills;
        if kills < KILLS_BEFORE_PARK || now < self.parking.until {
            // Pages that were under way when the host was parked say nothing new.
            return ParseCharge::Quiet { ms: self.quiet_until.ms_since(now) };
        }
        if self.is_given_up() {
            return ParseCharge::GivenUp { kills };
        }
        let Some(ms) = self.parking.begin(now) else {
            // The remaining pages of the host are refused, which costs nothing and need not wait.
            self.quiet_until = now;
            return ParseCharge::GivenUp { kills };
        };
        self.quiet_until = self.quiet_until.max(self.parking.until);
        ParseCharge::Parked { ms, kills }
    }

    /// The host must not be asked before.
    pub(crate) fn quiet_until(&self) -> Moment {
        self.quiet_until
    }

    /// Whether nothing is asked of the host while one of its pages is on its way to the store.
    pub(crate) fn holds_back(&self) -> bool {
        self.is_costly && !self.is_given_up()
    }

    /// Whether a cheap page would change anything: then it is reported too.
    pub(crate) fn is_watched(&self) -> bool {
        self.is_costly || self.kills > 0
    }

    fn is_given_up(&self) -> bool {
        self.parking.is_given_up()
    }

    /// Whether the host is left alone because its pages kill.
    pub(crate) fn parked(&self, now: Moment) -> Option<Parked> {
        self.parking.parked(self.kills, now)
    }

    /// A crawl begins, or goes on: what killed the parser is tried again, once.
    pub(crate) fn forgive(&mut self) {
        self.parking = Parking::default();
        self.kills = self.kills.min(KILLS_BEFORE_PARK - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn killed() -> PageCost {
        PageCost { cpu_ms: 100, has_killed: true }
    }

    #[test]
    fn a_cheap_page_is_free() {
        let mut cost = ParseCost::default();
        let cheap = PageCost { cpu_ms: COSTLY_PARSE_MS - 1, has_killed: false };
        assert_eq!(cost.note(cheap, Moment(1_000)), ParseCharge::None);
        assert!(cost.quiet_until() <= Moment(1_000) && !cost.holds_back());
    }

    #[test]
    fn a_host_never_uses_more_than_its_share() {
        let mut cost = ParseCost::default();
        let page = PageCost { cpu_ms: 150, has_killed: false };
        assert_eq!(cost.note(page, Moment(1_000)), ParseCharge::Quiet { ms: 3_000 });
        // A second one that was under way.
        assert_eq!(cost.note(page, Moment(2_000)), ParseCharge::Quiet { ms: 5_000 });
        assert_eq!(cost.quiet_until(), Moment(7_000));
        assert!(cost.holds_back());
        // A cheap page, and it is a host like any other.
        cost.note(PageCost { cpu_ms: 1, has_killed: false }, Moment(8_000));
        assert!(!cost.holds_back() && cost.quiet_until() <= Moment(8_000));
    }

    #[test]
    fn pages_that_kill_park_their_host_for_longer_each_time_until_it_is_given_up() {
        let mut cost = ParseCost::default();
        let mut now = Moment(0);
        let mut charges = Vec::new();
        for _ in 0..6 {
            charges.push(cost.note(killed(), now));
            now = cost.quiet_until().max(now);
        }
        let parked = |ms, kills| ParseCharge::Parked { ms, kills };
        assert_eq!(
            charges,
            [
                ParseCharge::Quiet { ms: 2_000 },
                ParseCharge::Quiet { ms: 2_000 },
                parked(60_000, 3),
                parked(240_000, 4),
                parked(960_000, 5),
                ParseCharge::GivenUp { kills: 6 },
            ]
        );
        assert_eq!(cost.parked(now), Some(Parked { left_ms: None, kills: 6 }));
        assert!(!cost.holds_back());
        // The next crawl tries it once more.
        cost.forgive();
        assert_eq!(cost.parked(now), None);
        assert_eq!(cost.note(killed(), now), parked(60_000, 3));
    }

    #[test]
    fn a_page_that_can_be_read_ends_all_that() {
        let mut cost = ParseCost::default();
        for at in 0..3 {
            cost.note(killed(), Moment(at * 10_000));
        }
        assert!(cost.parked(Moment(20_001)).is_some());
        cost.note(PageCost { cpu_ms: 1, has_killed: false }, Moment(90_000));
        assert_eq!(cost.parked(Moment(90_000)), None);
        assert_eq!(cost.note(killed(), Moment(90_000)), ParseCharge::Quiet { ms: 2_000 });
    }
}
