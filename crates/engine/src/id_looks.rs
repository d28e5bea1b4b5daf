//! Numbered pages that say they exist and do not. When ids of a walk look alike, the template is
//! asked once for an id that cannot exist; pages like that answer count as missing.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use telusur_ledger::KeptRun;
use telusur_model::{
    CrawlNo, Digest, FetchOutcome, Fetched, IdOutcome, MissingPages, PageUrl, ParsedPage, Reason,
    Via, Walk,
};
use xxhash_rust::xxh3::xxh3_64;

use crate::context::CrawlContext;
use crate::crawl_task::CrawlTask;
use crate::page_look::PageLook;

/// Ids that look alike before the template is probed. Fewer may be pages that were left blank.
const ALIKE_MAX: u32 = 10;
/// Looks that are told apart at a time: a site has few pages for what does not exist.
const KINDS_MAX: usize = 8;
/// Where ids that nobody has given out lie: beyond what counters reach, below what a 32-bit column
/// holds, so that the site answers as it does for any id that is not there.
const IMPOSSIBLE_IDS: std::ops::Range<u64> = 2_000_000_000..2_140_000_000;

/// How the ids of a walk look. Shared by the visits of a crawl.
#[derive(Debug, Default)]
pub(crate) struct IdLooks {
    state: Mutex<Looks>,
    /// Ids that count as missing because of their look.
    missing: AtomicU64,
}

/// Pure: told what was answered.
#[derive(Debug, Default)]
struct Looks {
    kinds: Vec<Kind>,
    probe: Probe,
}

#[derive(Debug)]
struct Kind {
    look: PageLook,
    digest: Digest,
    /// Ids that look so.
    alike: u32,
    /// Those whose body is the very same.
    equal: u32,
    meaning: Meaning,
}

/// What a look means for the ids that have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Undecided,
    Content,
    /// Whatever looks so does not exist.
    Missing,
    /// Whatever has this very body does not exist.
    MissingIfEqual,
}

/// What is known of the answer to an id that cannot exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Probe {
    #[default]
    Unasked,
    UnderWay,
    /// It says that there is no such page: what it says about others is believed.
    Honest,
    /// It answers as if there were one.
    Soft(PageLook),
    /// Nobody knows.
    Unknown,
}

/// What the look of an id says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdVerdict {
    pub(crate) is_missing: bool,
    /// The template is to be probed.
    pub(crate) wants_probe: bool,
}

impl Looks {
    fn judge(&mut self, look: PageLook, digest: Digest) -> IdVerdict {
        let probe = &mut self.probe;
        // Without any text all pages look alike: only the very same bodies are of one kind then.
        let is_one = |kind: &&mut Kind| {
            kind.look.is_like(&look) && (look.has_text() || kind.digest == digest)
        };
        let Some(kind) = self.kinds.iter_mut().find(is_one) else {
            if self.kinds.len() >= KINDS_MAX {
                // One that was decided is kept: the site will send it again.
                let place = self.kinds.iter().position(|it| it.meaning == Meaning::Undecided);
                self.kinds.remove(place.unwrap_or(0));
            }
            let meaning = Meaning::Undecided;
            self.kinds.push(Kind { look, digest, alike: 1, equal: 1, meaning });
            return IdVerdict { is_missing: false, wants_probe: false };
        };
        kind.alike = kind.alike.saturating_add(1);
        kind.equal = kind.equal.saturating_add(u32::from(kind.digest == digest));
        let mut wants_probe = false;
        // Whatever the site said of other ids: deleted items may say 404 where numbers that were
        // never given out do not.
        if kind.meaning == Meaning::Undecided && kind.alike >= ALIKE_MAX {
            wants_probe = *probe == Probe::Unasked;
            if wants_probe {
                *probe = Probe::UnderWay;
            }
            kind.meaning = kind.meaning_by(probe);
        }
        let is_missing = match kind.meaning {
            Meaning::Undecided | Meaning::Content => false,
            Meaning::Missing => true,
            Meaning::MissingIfEqual => kind.digest == digest,
        };
        IdVerdict { is_missing, wants_probe }
    }
}

impl Kind {
    fn meaning_by(&self, probe: &Probe) -> Meaning {
        match probe {
            Probe::Unasked | Probe::UnderWay => Meaning::Undecided,
            Probe::Honest => Meaning::Content,
            Probe::Soft(look) if look.has_text() && look.is_like(&self.look) => Meaning::Missing,
            Probe::Soft(_) | Probe::Unknown if self.equal >= ALIKE_MAX => Meaning::MissingIfEqual,
            Probe::Soft(_) | Probe::Unknown => Meaning::Undecided,
        }
    }
}

impl IdLooks {
    /// What the look of a successful answer says about its id.
    /// `text`: that of [`text_of`].
    pub(crate) fn judge(
        &self,
        url: &PageUrl,
        parsed: &ParsedPage,
        text: &str,
        digest: Digest,
    ) -> IdVerdict {
        let look = look_of(url, parsed, text);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let verdict = state.judge(look, digest);
        self.missing.fetch_add(u64::from(verdict.is_missing), Ordering::Relaxed);
        verdict
    }

    /// An id that cannot exist was asked for.
    pub(crate) fn probed(
        &self,
        fetched: &Fetched,
        parsed: Option<&ParsedPage>,
        missing: &MissingPages,
    ) {
        let probe = match (&fetched.outcome, parsed) {
            (FetchOutcome::Page(page), Some(parsed)) if (200..300).contains(&page.status) => {
                let text = text_of(&page.body, Some(parsed));
                match missing.judge(&fetched.outcome, &text) {
                    Some(IdOutcome::Missing) => Probe::Honest,
                    Some(IdOutcome::Content | IdOutcome::Failed(_)) | None => {
                        Probe::Soft(look_of(&page.url, parsed, &text))
                    }
                }
            }
            (outcome, _) if missing.judge(outcome, "") == Some(IdOutcome::Missing) => Probe::Honest,
            _ => Probe::Unknown,
        };
        self.state.lock().unwrap_or_else(PoisonError::into_inner).probe = probe;
    }

    /// No id that cannot exist can be asked for: nobody will know how such ids look.
    fn not_probed(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).probe = Probe::Unknown;
    }

    /// Ids that count as missing because of their look.
    pub(crate) fn missing(&self) -> u64 {
        self.missing.load(Ordering::Relaxed)
    }

    /// The walk goes on with what the store keeps of it.
    pub(crate) fn go_on(&self, runs: &[KeptRun]) {
        self.missing.store(missing_by_look(runs), Ordering::Relaxed);
    }
}

/// Ids of a walk that count as missing because of their look.
pub(crate) fn missing_by_look(runs: &[KeptRun]) -> u64 {
    let by_look = runs.iter().filter(|run| run.state.why == Some(Reason::SoftNotFound));
    by_look.map(|run| (run.last - run.first).saturating_add(1)).sum()
}

fn look_of(url: &PageUrl, parsed: &ParsedPage, text: &str) -> PageLook {
    PageLook::of(url, parsed.title.as_deref().unwrap_or_default(), text)
}

/// The text by which the answer for an id is judged: what people see of it or, where nobody reads it
/// as text, as with JSON, its body.
pub(crate) fn text_of<'a>(body: &'a [u8], parsed: Option<&'a ParsedPage>) -> Cow<'a, str> {
    match parsed.map(|parsed| parsed.visible_text.as_str()) {
        Some(text) if !text.is_empty() => Cow::Borrowed(text),
        Some(_) | None => String::from_utf8_lossy(body),
    }
}

/// A page of a walk that cannot exist; `None` if the walk goes wherever one could be looked for.
fn impossible_page(walk: &Walk, seed: u64) -> Option<PageUrl> {
    let rules = walk.rules();
    let span = IMPOSSIBLE_IDS.end - IMPOSSIBLE_IDS.start;
    let hash = xxh3_64(format!("{seed} {}", rules.template).as_bytes());
    let id = IMPOSSIBLE_IDS.start + hash % span;
    let highest = [rules.min, rules.max, rules.start].into_iter().flatten().max().unwrap_or(0);
    // A walk that comes near counts in other numbers: far beyond them lies nothing either.
    let id =
        if highest < id / 2 { id } else { highest.checked_mul(1000)?.checked_add(hash % 997)? };
    Some(rules.template.url_of(id))
}

impl CrawlContext {
    /// Takes note of how a template answered for an id that cannot exist.
    pub(crate) fn walk_probed(&self, walk: u64, fetched: &Fetched, parsed: Option<&ParsedPage>) {
        let walk = usize::try_from(walk).ok().and_then(|walk| self.walks.get(walk));
        if let Some(walk) = walk {
            walk.looks.probed(fetched, parsed, &walk.missing);
        }
    }

    /// A probe of a template may not go out.
    pub(crate) fn walk_not_probed(&self, walk: u64) {
        let walk = usize::try_from(walk).ok().and_then(|walk| self.walks.get(walk));
        if let Some(walk) = walk {
            walk.looks.not_probed();
        }
    }
}

impl CrawlTask {
    /// Asks a template for an id that cannot exist. A prerequisite: it teaches, and nothing else.
    pub(crate) fn probe_walk(&mut self, crawl: CrawlNo, walk: usize) {
        let Some(running) = self.crawls.get(&crawl) else { return };
        let context = &running.context;
        let Some(probed) = context.walks.get(walk) else { return };
        let Some(url) = impossible_page(&probed.walk, context.keyer.seed) else {
            return probed.looks.not_probed();
        };
        let mut visit = self.prerequisites.probe(crawl, url, self.clock.wall());
        visit.via = Via::Linear;
        visit.place.order = walk as u64;
        self.frontier.prerequisite(visit, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(id: u32, text: &str) -> PageLook {
        let url = PageUrl::parse(&format!("http://a.org/{id}")).unwrap();
        PageLook::of(&url, "Item", &format!("{text} {id}"))
    }

    const BLANK: &str = "there is no item with this number in our catalogue please try another one";

    /// The verdicts on twenty blank pages with these bodies.
    fn judge(looks: &mut Looks, body: impl Fn(u32) -> u8) -> Vec<bool> {
        (0..20).map(|id| looks.judge(look(id, BLANK), Digest([body(id); 32])).is_missing).collect()
    }

    #[test]
    fn the_tenth_look_alike_asks_for_a_probe() {
        let mut looks = Looks::default();
        let mut wants = |id| looks.judge(look(id, BLANK), Digest([1; 32])).wants_probe;
        assert_eq!((0..20).filter(|id| wants(*id)).collect::<Vec<_>>(), [9]);
        assert_eq!(looks.probe, Probe::UnderWay);
    }

    #[test]
    fn look_alikes_of_the_probe_are_missing() {
        let mut looks = Looks { probe: Probe::Soft(look(99, BLANK)), ..Looks::default() };
        let verdicts = judge(&mut looks, |id| u8::try_from(id).unwrap());
        assert_eq!(verdicts.iter().filter(|is_missing| **is_missing).count(), 11);
        let real = "a chair of oak with four legs and a high back made in the north by hand";
        assert!(!looks.judge(look(50, real), Digest([9; 32])).is_missing);
    }

    #[test]
    fn an_honest_site_is_believed() {
        let mut looks = Looks { probe: Probe::Honest, ..Looks::default() };
        assert!(!judge(&mut looks, |_| 7).contains(&true));
    }

    /// Bodies without any text all look alike: that says nothing about them.
    #[test]
    fn without_text_only_equal_bodies_are_missing() {
        let silent = |id: u32| {
            let url = PageUrl::parse(&format!("http://a.org/{id}")).unwrap();
            PageLook::of(&url, "", "\u{fffd}{}")
        };
        let probe = || Looks { probe: Probe::Soft(silent(99)), ..Looks::default() };
        let verdicts = |looks: &mut Looks, body: fn(u32) -> u8| {
            let judge = |id| looks.judge(silent(id), Digest([body(id); 32])).is_missing;
            (0..20).map(judge).filter(|is_missing| *is_missing).count()
        };
        assert_eq!(verdicts(&mut probe(), |id| u8::try_from(id).unwrap()), 0);
        assert_eq!(verdicts(&mut probe(), |_| 7), 11);
    }

    #[test]
    fn where_the_probe_says_nothing_equal_bodies_are_missing() {
        let mut looks = Looks { probe: Probe::Unknown, ..Looks::default() };
        assert_eq!(judge(&mut looks, |_| 7).iter().filter(|it| **it).count(), 11);
        let mut looks = Looks { probe: Probe::Unknown, ..Looks::default() };
        assert!(!judge(&mut looks, |id| u8::try_from(id).unwrap()).contains(&true));
    }
}
