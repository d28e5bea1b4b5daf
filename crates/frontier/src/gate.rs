//! [`Gate`]: keeps requests to one host, or to one address, apart. It counts and measures; who may
//! pass next is not its business.

use telusur_model::Moment;

/// The spacing of requests to one host or address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate {
    /// Visits that went through and have not left.
    in_flight: u32,
    /// Those of them whose request has not been sent yet, as far as we know.
    unstarted: u32,
    /// When the latest request was sent.
    last_start: Option<Moment>,
}

/// What a gate demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Least time between the starts of two requests.
    pub(crate) delay_ms: u64,
    /// Most visits in flight.
    pub(crate) at_once: u32,
}

/// When a gate opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// At this moment; open if it has passed.
    At(Moment),
    /// Not before something ends or starts.
    OnEvent,
}

impl Opening {
    pub(crate) fn is_open(self, now: Moment) -> bool {
        matches!(self, Self::At(moment) if moment <= now)
    }
}

impl Gate {
    pub(crate) fn opening(&self, terms: Terms) -> Opening {
        if self.in_flight >= terms.at_once {
            return Opening::OnEvent;
        }
        if terms.delay_ms == 0 {
            return Opening::At(Moment(0));
        }
        // The delay counts from the real start of the request: a slow connect between hand-out
        // and request would otherwise let the next request follow too closely.
        if self.unstarted > 0 {
            return Opening::OnEvent;
        }
        Opening::At(self.last_start.map_or(Moment(0), |start| start.plus_ms(terms.delay_ms)))
    }

    pub(crate) fn enter(&mut self) {
        self.in_flight += 1;
        self.unstarted += 1;
    }

    /// The request of a visit inside was sent.
    pub(crate) fn start(&mut self, at: Moment) {
        self.unstarted = self.unstarted.saturating_sub(1);
        self.note_start(at);
    }

    /// A request was sent, by a visit that is accounted for elsewhere.
    pub(crate) fn note_start(&mut self, at: Moment) {
        self.last_start = self.last_start.max(Some(at));
    }

    /// A visit left. `started`: its request had been reported.
    pub(crate) fn leave(&mut self, started: bool) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if !started {
            self.unstarted = self.unstarted.saturating_sub(1);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.in_flight == 0
    }

    pub(crate) fn last_start(&self) -> Option<Moment> {
        self.last_start
    }
}
