//! Crawls that wait for the machine: for space on the disk, or for a network. They are paused when
//! it is short, stay here, and go on by themselves when it is back.

use std::collections::{BTreeMap, VecDeque};

use telusur_model::{CrawlNo, CrawlState, Host, Moment, PageUrl, PauseReason};

use super::{CrawlTask, Goal};
use crate::commit_stage::CommitWork;
use crate::error::EngineError;

/// Longest that a crawl waits for its very first answer when nobody answers at all, or for one that
/// says whether the network is back.
const CUT_OFF_MS_MIN: u64 = 30_000;
/// The same for a crawl that had answers, if nothing but its one silent host speaks for an outage.
const CUT_OFF_MS_LONE: u64 = 600_000;
/// The same if more speaks for it: routers restart, cables are put back.
const CUT_OFF_MS_MAX: u64 = 3_600_000;
/// How often the free space is looked at while crawls wait for it.
const SPACE_MS: u64 = 1_000;
/// With all crawls waiting for a network, one of them tries again after this time; each time twice
/// as long.
const RETRY_MS_MIN: u64 = 30_000;
const RETRY_MS_MAX: u64 = 300_000;
const RETRY_DOUBLINGS_MAX: u32 = 4;
/// Longer than a crawl in doubt waits between two trials: if no visit has gone out for so long, nobody
/// finds out whether there is a network, even if a crawl runs. It may wait for `Retry-After`.
const ASKED_LATELY_MS: u64 = 60_000;
/// Longest that no crawl is started because of a doubt. Then one is, as a trial: if the network works,
/// its first answer clears the doubt up.
const HELD_BACK_MS_MAX: u64 = 30_000;
/// Hosts that are remembered because they answered: one may be down itself.
const WITNESSES_MAX: usize = 3;

/// What crawls wait for, and whom to ask.
#[derive(Default)]
pub(crate) struct Waits {
    /// Less space is left than the limit.
    space_is_low: bool,
    /// When the free space was last asked for.
    space_asked: Option<Moment>,
    /// When a crawl last tried whether there is a network, and how many have done so since somebody
    /// answered.
    network_tried: Option<Moment>,
    network_tries: u32,
    /// The crawl that tries, until somebody answers.
    trying: Option<CrawlNo>,
    /// When each crawl that has no network was cut off. Its state is written later, when its visits
    /// under way have ended: somebody may have answered in between.
    cut_off_at: BTreeMap<CrawlNo, Moment>,
    /// When a crawl was last started.
    begun_at: Option<Moment>,
    /// URLs of the hosts that answered last, the latest first: they can bear witness that the network
    /// works.
    witnesses: VecDeque<(CrawlNo, Host, PageUrl)>,
    /// When the last witnesses were called.
    witness_called: Option<Moment>,
}

impl Waits {
    /// A host has answered.
    pub(super) fn answered(&mut self, crawl: CrawlNo, host: &Host, url: &PageUrl) {
        if self.witnesses.front().is_some_and(|(no, known, _)| *no == crawl && known == host) {
            return;
        }
        self.witnesses.retain(|(_, known, _)| known != host);
        self.witnesses.push_front((crawl, host.clone(), url.clone()));
        self.witnesses.truncate(WITNESSES_MAX);
    }
}

impl CrawlTask {
    /// Pauses and wakes what waits for the machine.
    pub(super) fn watch_machine(&mut self, now: Moment) -> Result<(), EngineError> {
        self.call_witnesses(now);
        self.wake_online(now);
        self.set_holding_back(now);
        let asked = self.waits.space_asked;
        if self.waits.space_is_low && asked.is_none_or(|at| now.ms_since(at) >= SPACE_MS) {
            self.waits.space_asked = Some(now);
            self.write(CommitWork::Space)?;
        }
        if !self.waits.space_is_low {
            // Also those that had not paused yet when there was space again.
            for crawl in self.paused_for(PauseReason::DiskFull) {
                self.go_on(crawl);
            }
        }
        Ok(())
    }

    /// A crawl has started: if there is a doubt, the next one waits for what this one finds out.
    pub(super) fn has_begun(&mut self, now: Moment) {
        self.waits.begun_at = Some(now);
        self.set_holding_back(now);
    }

    fn set_holding_back(&self, now: Moment) {
        let is_recent =
            |at: Option<Moment>| at.is_some_and(|at| now.ms_since(at) < HELD_BACK_MS_MAX);
        let doubted_since = self.frontier.suspects_network_since();
        // A trial of a crawl that was cut off before is no new doubt.
        let is_new = self.waits.trying.is_none() && is_recent(doubted_since);
        let is_held_back = doubted_since.is_some() && (is_new || is_recent(self.waits.begun_at));
        self.holding_back.set(match () {
            () if self.waits.space_is_low => Some(PauseReason::DiskFull),
            () if is_held_back => Some(PauseReason::NoNetwork),
            () => None,
        });
    }

    /// The writer has looked at the free space.
    pub(super) fn space_seen(&mut self, free_bytes: u64, is_low: bool) {
        let was_low = std::mem::replace(&mut self.waits.space_is_low, is_low);
        if is_low {
            if !was_low {
                tracing::warn!(free_bytes, "little space is left on the disk");
            }
            for crawl in self.running() {
                self.end(crawl, Goal::Pause(PauseReason::DiskFull), None);
            }
        } else if was_low {
            tracing::info!(free_bytes, "there is space on the disk again");
        }
    }

    /// Whether a crawl waits for a network in vain: by its own failures, whatever others have heard.
    /// One that had answers waits longer, and longest if more than its one host is silent.
    pub(super) fn is_cut_off(&self, crawl: CrawlNo, now: Moment) -> bool {
        let Some(since) = self.frontier.cut_off_since(crawl) else { return false };
        let Some(running) = self.crawls.get(&crawl) else { return false };
        let is_new = running.stats.statuses.is_empty();
        let patience_ms = match () {
            () if is_new || self.waits.trying == Some(crawl) => CUT_OFF_MS_MIN,
            () if self.frontier.is_outage_likely() => CUT_OFF_MS_MAX,
            () => CUT_OFF_MS_LONE,
        };
        running.is_running() && now.ms_since(since) >= patience_ms
    }

    /// A crawl waits for a network from now on.
    pub(super) fn cut_off(&mut self, crawl: CrawlNo, now: Moment) {
        self.waits.cut_off_at.insert(crawl, now);
        self.end(crawl, Goal::Pause(PauseReason::NoNetwork), None);
    }

    /// When nobody answers any more, the hosts that answered last are asked again.
    fn call_witnesses(&mut self, now: Moment) {
        let Some(since) = self.frontier.suspects_network_since() else { return };
        if self.waits.witness_called.is_some_and(|called| called >= since) {
            return;
        }
        self.waits.witness_called = Some(now);
        tracing::warn!("nobody answers any more: the network here may be down");
        for (crawl, _, url) in self.waits.witnesses.clone() {
            if self.crawls.get(&crawl).is_some_and(|running| running.is_running()) {
                self.call_witness(crawl, &url);
            }
        }
    }

    /// Crawls that were cut off go on as soon as somebody answers, whoever it is. If nobody is left who
    /// could ask, one of them tries.
    fn wake_online(&mut self, now: Moment) {
        let answered_at = self.frontier.answered_at();
        if self.frontier.suspects_network_since().is_none() {
            self.waits.trying = None;
        }
        if answered_at > self.waits.network_tried {
            (self.waits.network_tried, self.waits.network_tries) = (None, 0);
        }
        let paused = self.paused_for(PauseReason::NoNetwork);
        if paused.is_empty() {
            return;
        }
        let Self { waits, crawls, .. } = self;
        waits.cut_off_at.retain(|crawl, _| crawls.contains_key(crawl));
        let paused_at = |task: &Self, crawl: &CrawlNo| task.waits.cut_off_at.get(crawl).copied();
        let (online, offline): (Vec<_>, Vec<_>) =
            paused.into_iter().partition(|crawl| answered_at > paused_at(self, crawl));
        for crawl in online {
            self.go_on(crawl);
        }
        let tried = *self.waits.network_tried.get_or_insert(now);
        let doublings = self.waits.network_tries.min(RETRY_DOUBLINGS_MAX);
        let retry_ms = (RETRY_MS_MIN << doublings).min(RETRY_MS_MAX);
        let longest = offline.into_iter().min_by_key(|crawl| paused_at(self, crawl));
        if let Some(crawl) = longest
            && now.ms_since(tried) >= retry_ms
            && self.frontier.asked_at().is_none_or(|at| now.ms_since(at) >= ASKED_LATELY_MS)
        {
            self.waits.network_tried = Some(now);
            self.waits.network_tries += 1;
            self.waits.trying = Some(crawl);
            self.go_on(crawl);
            self.frontier.resume_in_doubt(crawl, now);
        }
    }

    fn go_on(&mut self, crawl: CrawlNo) {
        tracing::info!(%crawl, "crawl goes on by itself");
        if let Err(error) = self.resume(crawl) {
            tracing::warn!(%crawl, %error, "crawl cannot go on");
        }
    }

    fn running(&self) -> Vec<CrawlNo> {
        let running = self.crawls.iter().filter(|(_, running)| running.is_running());
        running.map(|(crawl, _)| *crawl).collect()
    }

    fn paused_for(&self, why: PauseReason) -> Vec<CrawlNo> {
        if self.is_shutting_down {
            return Vec::new();
        }
        let state = CrawlState::Paused { why };
        let paused = self.crawls.iter();
        let paused =
            paused.filter(|(_, running)| running.ending.is_none() && running.state == state);
        paused.map(|(crawl, _)| *crawl).collect()
    }
}
