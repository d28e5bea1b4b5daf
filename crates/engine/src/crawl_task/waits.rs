//! Crawls that wait for the machine: for space on the disk, or for a network. They are paused when
//! it is short, stay here, and go on by themselves when it is back.

use std::collections::VecDeque;

use telusur_model::{CrawlNo, CrawlState, Host, Moment, PageUrl, PauseReason};

use super::{CrawlTask, Goal};
use crate::commit_stage::CommitWork;
use crate::error::EngineError;

/// Longest that a crawl waits for its very first answer when nobody answers at all.
const CUT_OFF_MS_MIN: u64 = 30_000;
/// The same for a crawl that had answers: routers restart, cables are put back.
const CUT_OFF_MS_MAX: u64 = 3_600_000;
/// How often the free space is looked at while crawls wait for it.
const SPACE_MS: u64 = 1_000;
/// With all crawls waiting for a network, one of them tries again after this time; each time twice
/// as long.
const RETRY_MS_MIN: u64 = 30_000;
const RETRY_MS_MAX: u64 = 300_000;
/// Hosts that are remembered because they answered: one may be down itself.
const WITNESSES_MAX: usize = 3;

/// What crawls wait for, and whom to ask.
#[derive(Default)]
pub(crate) struct Waits {
    /// Less space is left than the limit.
    space_is_low: bool,
    /// When the free space was last asked for.
    space_asked: Option<Moment>,
    /// When a crawl last tried whether there is a network, and how long the next one waits.
    network_tried: Option<Moment>,
    retry_ms: u64,
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
        let is_in_doubt = self.frontier.suspects_network_since().is_some();
        self.holding_back.set(match () {
            () if self.waits.space_is_low => Some(PauseReason::DiskFull),
            () if is_in_doubt => Some(PauseReason::NoNetwork),
            () => None,
        });
        let asked = self.waits.space_asked;
        if self.waits.space_is_low && asked.is_none_or(|at| now.ms_since(at) >= SPACE_MS) {
            self.waits.space_asked = Some(now);
            self.write(CommitWork::Space)?;
        }
        Ok(())
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
            for crawl in self.paused_for(PauseReason::DiskFull) {
                self.go_on(crawl);
            }
        }
    }

    /// Whether a crawl waits for a network in vain: by its own failures, whatever others have heard.
    /// One that had answers waits longer: it goes on by itself when the network is back.
    pub(super) fn is_cut_off(&self, crawl: CrawlNo, now: Moment) -> bool {
        let Some(since) = self.frontier.cut_off_since(crawl) else { return false };
        let Some(running) = self.crawls.get(&crawl) else { return false };
        let is_new = running.stats.statuses.is_empty();
        let patience_ms = if is_new { CUT_OFF_MS_MIN } else { CUT_OFF_MS_MAX };
        running.is_running() && now.ms_since(since) >= patience_ms
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
        let paused = self.paused_for(PauseReason::NoNetwork);
        if paused.is_empty() {
            self.waits.network_tried = None;
            self.waits.retry_ms = RETRY_MS_MIN;
            return;
        }
        let answered_at = self.frontier.answered_at();
        let paused_at =
            |task: &Self, crawl: &CrawlNo| task.crawls.get(crawl).map(|it| it.state_since);
        let (online, offline): (Vec<_>, Vec<_>) =
            paused.into_iter().partition(|crawl| answered_at > paused_at(self, crawl));
        for crawl in online {
            self.go_on(crawl);
        }
        let tried = *self.waits.network_tried.get_or_insert(now);
        let longest = offline.into_iter().min_by_key(|crawl| paused_at(self, crawl));
        if let Some(crawl) = longest
            && now.ms_since(tried) >= self.waits.retry_ms
            && self.running().is_empty()
        {
            self.waits.network_tried = Some(now);
            self.waits.retry_ms = (2 * self.waits.retry_ms).min(RETRY_MS_MAX);
            self.go_on(crawl);
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
