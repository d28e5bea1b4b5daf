//! [`RobotsWatch`]: for which origins of a host the rules are known. What the rules say is not its
//! business: it only holds visits back until they have been read.

use telusur_model::{Door, Moment};

use crate::decision::RobotsKnown;

/// What is known about the robots.txt files of one host, for one crawl. A host rarely has more than
/// two origins.
#[derive(Clone, Debug, Default)]
pub(crate) struct RobotsWatch {
    doors: Vec<(Door, Reading)>,
}

#[derive(Clone, Copy, Debug)]
enum Reading {
    UnderWay { since: Moment },
    Done(RobotsKnown),
}

/// Whether a visit may go through a door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// The rules are known.
    Given,
    /// They are being read.
    Awaited { since: Moment },
    /// They were not requested, or have expired.
    Unasked,
}

impl RobotsWatch {
    pub(crate) fn leave(&self, door: Door, now: Moment) -> Leave {
        match self.doors.iter().find(|(known, _)| *known == door) {
            Some((_, Reading::Done(known))) if now < known.until => Leave::Given,
            Some((_, Reading::UnderWay { since })) => Leave::Awaited { since: *since },
            Some((_, Reading::Done(_))) | None => Leave::Unasked,
        }
    }

    pub(crate) fn ask(&mut self, door: Door, now: Moment) {
        self.set(door, Reading::UnderWay { since: now });
    }

    pub(crate) fn answer(&mut self, door: Door, known: RobotsKnown) {
        self.set(door, Reading::Done(known));
    }

    pub(crate) fn forget(&mut self, door: Door) {
        self.doors.retain(|(known, _)| *known != door);
    }

    /// The longest delay that any origin of the host asks for.
    pub(crate) fn crawl_delay_ms(&self) -> u64 {
        let asked = self.doors.iter().filter_map(|(_, reading)| match reading {
            Reading::Done(known) => known.crawl_delay_ms,
            Reading::UnderWay { .. } => None,
        });
        asked.max().unwrap_or(0)
    }

    fn set(&mut self, door: Door, reading: Reading) {
        match self.doors.iter_mut().find(|(known, _)| *known == door) {
            Some((_, old)) => *old = reading,
            None => self.doors.push((door, reading)),
        }
    }
}
