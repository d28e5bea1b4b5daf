//! Ids of linear crawls.

use telusur_model::{
    CrawlNo, IdCounts, IdState, LinearSeeds, PageUrl, QueuePlace, Reason, Resume, Seeds, Template,
    Timestamp, Via, Visit, Walk, WalkRules,
};

use super::{Bench, assert_verified, crawl, first, step, url};
use crate::{
    CrawlRecord, Ending, IdEnding, KeptRun, KeptState, NewCrawl, Step, Store, UrlState,
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
        let ending = |(id, state)| ended(&*store, &record, id, state);
        let endings = states.into_iter().map(ending).collect();
        let committed = store.commit(Step { endings, ..Default::default() }).unwrap();
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
    let runs = vec![(CrawlNo(1), 0, run(5, 6, waiting))];
    store.commit(Step { runs, ..Default::default() }).unwrap();
    let runs = store.runs(CrawlNo(1), 0).unwrap();
    assert_eq!(runs, [run(1, 3, CONTENT), run(4, 4, MISSING), run(5, 6, waiting)]);
    assert_verified(&*store);
    store.remove(CrawlNo(1)).unwrap();
    assert!(store.runs(CrawlNo(1), 0).unwrap().is_empty());
}

pub(super) fn counts_an_id_once(bench: &dyn Bench) {
    let store = bench.open();
    let record = create(&*store);
    let content = || ended(&*store, &record, 7, CONTENT);
    let step = |endings| Step { endings, ..Default::default() };
    store.commit(step(vec![content(), content()])).unwrap();
    let committed = store.commit(step(vec![content()])).unwrap();
    // Whoever waits for the id is told all the same.
    assert_eq!(committed.dequeued.len(), 1);
    store.commit(step(vec![ended(&*store, &record, 7, HOLE)])).unwrap();
    let stats = store.crawl(record.crawl.no).unwrap().unwrap().stats;
    assert_eq!((stats.pages, stats.ids.content, stats.ids.holes), (1, 1, 0));
    assert_verified(&*store);
}

pub(super) fn makes_way_for_ids(bench: &dyn Bench) {
    let store = bench.open();
    let record = create(&*store);
    let mut with_links = ended(&*store, &record, 1, CONTENT);
    // As if an earlier run had other bounds: ids of the walk are not followed as links.
    with_links.discoveries = step(
        &*store,
        &record,
        with_links.visit.clone(),
        200,
        &["http://a.test/2", "http://a.test/3"],
    )
    .endings
    .remove(0)
    .discoveries;
    store.commit(Step { endings: vec![with_links], ..Default::default() }).unwrap();
    let link = first(&*store, &record, "a.test");
    assert_eq!(link.url, url("http://a.test/2"));
    store.commit(step(&*store, &record, link, 200, &[])).unwrap();
    let endings = [2, 3].map(|id| ended(&*store, &record, id, CONTENT)).into();
    store.commit(Step { endings, ..Default::default() }).unwrap();
    let stats = store.crawl(record.crawl.no).unwrap().unwrap().stats;
    assert_eq!((stats.pages, stats.ids.content, stats.queued, stats.discovered), (3, 3, 0, 3));
    assert_verified(&*store);
}

pub(super) fn finds_redirected_ids_where_they_ended(bench: &dyn Bench) {
    let end = url("http://a.test/by-name");
    let (no, other) = {
        let store = bench.open();
        let (record, other) = (create(&*store), create(&*store));
        let mut ending = ended(&*store, &record, 2, CONTENT);
        redirect(&mut ending, end.clone());
        let endings = vec![ended(&*store, &record, 1, CONTENT), ending];
        store.commit(Step { endings, ..Default::default() }).unwrap();
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
    store.commit(Step { reread: vec![page.clone()], ..Default::default() }).unwrap();
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
        page.record.url = to;
        page.record.redirects.clone_from(&ending.visit.redirects);
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

fn ended(store: &dyn Store, record: &CrawlRecord, id: u64, kept: KeptState) -> Ending {
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
    let mut ending = step(store, record, visit, 200, &[]).endings.remove(0);
    ending.id = Some(IdEnding { walk: 0, position: id, kept });
    if kept.state != IdState::Content {
        ending.how = VisitOutcome::NoPage { status: None };
    }
    ending
}

fn run(first: u64, last: u64, state: KeptState) -> KeptRun {
    KeptRun { first, last, state }
}
