//! Ids of linear crawls.

use telusur_model::{
    CrawlNo, IdCounts, IdState, LinearSeeds, PageUrl, QueuePlace, Reason, Resume, Seeds, Template,
    Timestamp, Via, Visit, Walk, WalkRules,
};

use super::{Bench, Ended, assert_verified, crawl, ended, first, step, step_of, url};
use crate::{
    CrawlRecord, Ending, Event, IdEnding, KeptRun, KeptState, NewCrawl, Step, Store, UrlState,
    VisitOutcome,
};

const HOLE: KeptState = KeptState { state: IdState::Hole, why: Some(Reason::TimeoutBody) };
const MISSING: KeptState = KeptState { state: IdState::Missing, why: None };
const CONTENT: KeptState = KeptState { state: IdState::Content, why: None };

pub(super) fn keeps_runs(bench: &dyn Bench) {
    let runs = {
        let store = bench.open();
        let record = create(&*store);
        // In any order, and all in one step.
        let states = [(3, CONTENT), (1, CONTENT), (4, MISSING), (2, CONTENT), (6, HOLE), (5, HOLE)];
        let endings = states.map(|(id, state)| id_ended(&*store, &record, id, state));
        let committed = store.commit(step_of(endings)).unwrap();
        let stats = &committed.stats[0].1;
        assert_eq!(stats.ids, IdCounts { content: 3, missing: 1, holes: 2, waiting: 0 });
        assert_eq!((stats.discovered, stats.pages, stats.queued), (3, 3, 0));
        assert_eq!(stats.failures[&Reason::TimeoutBody], 2);
        let states: Vec<_> = committed.dequeued.iter().map(|gone| gone.id_state).collect();
        assert_eq!(states[..3], [IdState::Content, IdState::Content, IdState::Missing].map(Some));
        // An id without a page is no URL of the crawl.
        assert!(store.url(CrawlNo(1), &url("http://a.test/4")).unwrap().is_none());
        let known = store.url(CrawlNo(1), &url("http://a.test/3")).unwrap().unwrap();
        assert!(matches!(known.state, UrlState::Page { .. }));
        assert_verified(&*store);
        store.runs(CrawlNo(1), 0).unwrap()
    };
    assert_eq!(runs, [run(1, 3, CONTENT), run(4, 4, MISSING), run(5, 6, HOLE)]);
    let store = bench.open();
    assert_eq!(store.runs(CrawlNo(1), 0).unwrap(), runs);
    // Holes are asked again.
    let waiting = KeptState { state: IdState::Waiting { attempts: 0 }, why: None };
    let site = url("http://a.test/").host().site();
    let marked = Event::IdsMarked { crawl: CrawlNo(1), site, walk: 0, run: run(5, 6, waiting) };
    store.commit(Step::of(marked)).unwrap();
    let runs = store.runs(CrawlNo(1), 0).unwrap();
    assert_eq!(runs, [run(1, 3, CONTENT), run(4, 4, MISSING), run(5, 6, waiting)]);
    assert_verified(&*store);
    store.remove(CrawlNo(1)).unwrap();
    assert!(store.runs(CrawlNo(1), 0).unwrap().is_empty());
}

pub(super) fn counts_an_id_once(bench: &dyn Bench) {
    let store = bench.open();
    let record = create(&*store);
    let content = || id_ended(&*store, &record, 7, CONTENT);
    store.commit(step_of([content(), content()])).unwrap();
    let committed = store.commit(step_of([content()])).unwrap();
    // The frontier waits for the id and is told all the same.
    assert_eq!(committed.dequeued.len(), 1);
    store.commit(step_of([id_ended(&*store, &record, 7, HOLE)])).unwrap();
    let stats = store.crawl(record.crawl.no).unwrap().unwrap().stats;
    assert_eq!((stats.pages, stats.ids.content, stats.ids.holes), (1, 1, 0));
    assert_verified(&*store);
}

pub(super) fn makes_way_for_ids(bench: &dyn Bench) {
    let store = bench.open();
    let record = create(&*store);
    let mut with_links = id_ended(&*store, &record, 1, CONTENT);
    // As if an earlier run had other bounds: ids of the walk are not followed as links.
    let visit = with_links.ending.visit.clone();
    let links = ["http://a.test/2", "http://a.test/3"];
    with_links.links = ended(&*store, &record, visit, 200, &links).links;
    store.commit(step_of([with_links])).unwrap();
    let link = first(&*store, &record, "a.test");
    assert_eq!(link.url, url("http://a.test/2"));
    store.commit(step(&*store, &record, link, 200, &[])).unwrap();
    let endings = [2, 3].map(|id| id_ended(&*store, &record, id, CONTENT));
    store.commit(step_of(endings)).unwrap();
    let stats = store.crawl(record.crawl.no).unwrap().unwrap().stats;
    assert_eq!((stats.pages, stats.ids.content, stats.queued, stats.discovered), (3, 3, 0, 3));
    assert_verified(&*store);
}

/// A sitemap or a redirect may name the URL of an id: its page was stored twice, or its mark was lost, if
/// both came in one step.
pub(super) fn takes_links_to_ids_in_their_step(bench: &dyn Bench) {
    let store = bench.open();
    let record = create(&*store);
    let with_link = |id, link| {
        let mut ended_id = id_ended(&*store, &record, id, CONTENT);
        let visit = ended_id.ending.visit.clone();
        ended_id.links = ended(&*store, &record, visit, 200, &[link]).links;
        ended_id
    };
    let of_id = |id| id_ended(&*store, &record, id, CONTENT);
    // The link before its id, and behind it.
    store.commit(step_of([with_link(1, "http://a.test/2"), of_id(2)])).unwrap();
    store.commit(step_of([of_id(3), with_link(4, "http://a.test/3")])).unwrap();
    let stats = store.crawl(record.crawl.no).unwrap().unwrap().stats;
    assert_eq!((stats.pages, stats.ids.content, stats.queued, stats.discovered), (4, 4, 0, 4));
    for id in 1..=4 {
        let known = store.url(record.crawl.no, &url(&format!("http://a.test/{id}"))).unwrap();
        assert!(matches!(known.unwrap().state, UrlState::Page { .. }));
    }
    assert!(super::queued(&*store, &record, "a.test").is_empty());
    assert_verified(&*store);
}

pub(super) fn finds_redirected_ids_where_they_ended(bench: &dyn Bench) {
    let end = url("http://a.test/by-name");
    let (no, other) = {
        let store = bench.open();
        let (record, other) = (create(&*store), create(&*store));
        let mut redirected = id_ended(&*store, &record, 2, CONTENT);
        redirect(&mut redirected.ending, end.clone());
        let endings = [id_ended(&*store, &record, 1, CONTENT), redirected];
        store.commit(step_of(endings)).unwrap();
        assert!(holds(&*store));
        (record.crawl.no, other.crawl.no)
    };
    let store = bench.open();
    let page = store.page_of(no, &end).unwrap().unwrap();
    assert_eq!(page.redirects, ["http://a.test/2"]);
    assert_eq!(store.page_of(no, &url("http://a.test/2")).unwrap().as_ref(), Some(&page));
    let known = store.url(no, &end).unwrap().unwrap();
    assert_eq!(known.state, UrlState::Page { seq: page.seq });
    assert_eq!(store.page_of(other, &end).unwrap(), None);
    assert_eq!(store.page_of(no, &url("http://a.test/by-nobody")).unwrap(), None);
    // It is found at its new place, too.
    store.commit(Step::of(Event::PageReadAgain(Box::new(page.clone())))).unwrap();
    assert!(store.page_of(no, &end).unwrap().unwrap().seq > page.seq);
    assert!(holds(&*store));
    store.remove(no).unwrap();
    assert_eq!(store.page_of(no, &end).unwrap(), None);
}

fn holds(store: &dyn Store) -> bool {
    store.verify(&|_| Ok(Vec::new())).unwrap().holds()
}

/// The id was redirected before it answered.
fn redirect(ending: &mut Ending, to: PageUrl) {
    let from = std::mem::replace(&mut ending.visit.url, to.clone());
    ending.visit.redirects = vec![from.to_string()];
    if let VisitOutcome::Page(page) = &mut ending.how {
        page.url = to;
        page.redirects.clone_from(&ending.visit.redirects);
    }
}

fn create(store: &dyn Store) -> CrawlRecord {
    let template = Template::parse("http://a.test/{id}").unwrap();
    let rules = WalkRules { min: Some(1), max: Some(9), ..WalkRules::new(template) };
    let walks = vec![Walk::new(rules).unwrap()];
    let mut crawl = crawl(&[]);
    crawl.seeds = Seeds::Linear(LinearSeeds { walks, resume: Resume::All, follow: true });
    crawl.keep_tracking = true;
    store.create(NewCrawl { crawl, random: 7 }).unwrap()
}

fn id_ended(store: &dyn Store, record: &CrawlRecord, id: u64, kept: KeptState) -> Ended {
    let url = url(&format!("http://a.test/{id}"));
    let keyer = telusur_model::UrlKeyer { seed: store.key_seed(), drop_tracking: false };
    let visit = Visit {
        crawl: record.crawl.no,
        purpose: Default::default(),
        key: keyer.key(&url),
        url,
        place: QueuePlace::of_id(0, id),
        depth: 0,
        hops_outside: 0,
        via: Via::Linear,
        found_at: Timestamp(1_000),
        referrer: None,
        redirects: Vec::new(),
        lastmod: None,
        attempt: 1,
    };
    let mut ended = ended(store, record, visit, 200, &[]);
    ended.ending.id = Some(IdEnding { walk: 0, position: id, kept });
    if kept.state != IdState::Content {
        ended.ending.how = VisitOutcome::NoPage { status: None };
        ended.ending.packed = None;
    }
    ended
}

fn run(first: u64, last: u64, state: KeptState) -> KeptRun {
    KeptRun { first, last, state }
}
