//! Ids of a linear crawl behind the same gates as everything else.

use std::net::{IpAddr, Ipv4Addr};

use telusur_model::{
    CrawlNo, Door, FetchOutcome, Fetched, FinishReason, IdState, Moment, NetworkSign, PageUrl,
    Politeness, QueuePlace, Rates, RawPage, Resume, RobotsRules, Template, Timestamp, UrlKey, Via,
    Visit, Walk, WalkRules,
};

use crate::{CrawlStart, Frontier, IdEnd, Linear, Next, Opening, RobotsKnown};

const CRAWL: CrawlNo = CrawlNo(1);

fn walk(template: &str, change: impl FnOnce(WalkRules) -> WalkRules) -> Walk {
    let rules = WalkRules::new(Template::parse(template).unwrap());
    Walk::new(change(rules)).unwrap()
}

fn range(template: &str, first: u64, last: u64) -> Walk {
    walk(template, |rules| WalkRules { min: Some(first), max: Some(last), ..rules })
}

fn manners() -> Politeness {
    Politeness { delay_ms: 0, per_host: 1, robots: RobotsRules::Ignore, ..Politeness::default() }
}

fn frontier(walks: Vec<Walk>, politeness: Politeness) -> Frontier {
    let open = |walk| Opening::resume(Resume::All).open(walk, [], Moment(0)).state;
    let pages: Vec<PageUrl> =
        walks.iter().map(|walk: &Walk| walk.rules().template.url_of(0)).collect();
    let mut frontier = Frontier::new();
    frontier.start(CrawlStart {
        crawl: CRAWL,
        politeness,
        pages_max: None,
        pages_done: 0,
        hosts: Vec::new(),
        linear: Some(Linear::new(walks.into_iter().map(open).collect())),
        quiet_until: Moment(0),
    });
    for url in pages {
        frontier.address(&url.host(), Some(address(&url)), Moment(0));
    }
    frontier
}

fn visit(frontier: &mut Frontier, now: Moment) -> Option<Visit> {
    match frontier.next(now) {
        Next::Visit(visit) => Some(visit),
        _ => None,
    }
}

fn address(url: &PageUrl) -> IpAddr {
    let last = url.host().as_str().bytes().fold(1_u8, u8::wrapping_add);
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))
}

fn fetched(visit: &Visit, status: u16, now: Moment) -> Fetched {
    let outcome = FetchOutcome::Page(RawPage {
        url: visit.url.clone(),
        status,
        headers: Vec::new(),
        body: Default::default(),
        truncated: false,
        wire_bytes: 0,
    });
    let address = Some(address(&visit.url));
    let network = NetworkSign::Alive;
    Fetched { outcome, requested_at: Some(now), took_ms: 0, address, retry_after_ms: None, network }
}

fn end(frontier: &mut Frontier, visit: &Visit, state: IdState, now: Moment) {
    frontier.finished(visit, &fetched(visit, 200, now), now);
    let stored_page = state == IdState::Content;
    frontier.committed_id(CRAWL, &visit.url.host(), visit.place, IdEnd { state, stored_page });
}

/// The URLs in the order in which they are asked, one at a time.
fn play(frontier: &mut Frontier, count: usize) -> Vec<String> {
    let mut urls = Vec::new();
    while urls.len() < count
        && let Some(visit) = visit(frontier, Moment(0))
    {
        end(frontier, &visit, IdState::Content, Moment(0));
        urls.push(visit.url.to_string());
    }
    urls
}

#[test]
fn ids_are_asked_in_order_and_the_crawl_ends() {
    let mut frontier = frontier(vec![range("http://a.org/{id}", 7, 9)], manners());
    assert!(frontier.linear(CRAWL).is_some() && frontier.linear(CrawlNo(2)).is_none());
    let urls = play(&mut frontier, 3);
    assert_eq!(urls, ["http://a.org/7", "http://a.org/8", "http://a.org/9"]);
    let why = FinishReason::Drained;
    assert_eq!(frontier.next(Moment(0)), Next::Finished { crawl: CRAWL, why });
}

#[test]
fn turns_go_by_rates() {
    let both = walk("http://a.org/{id}", |rules| WalkRules {
        start: Some(50),
        min: Some(0),
        max: Some(99),
        rates: Rates { ascending: 1, descending: 2 },
        ..rules
    });
    let mut frontier = frontier(vec![both, range("http://b.org/{id}", 1, 9)], manners());
    let urls = play(&mut frontier, 8);
    let ids: Vec<&str> = urls.iter().map(|url| url.trim_start_matches("http://")).collect();
    let round = ["a.org/50", "a.org/49", "a.org/48", "b.org/1"];
    let next = ["a.org/51", "a.org/47", "a.org/46", "b.org/2"];
    assert_eq!(ids, [round, next].concat());
}

#[test]
fn a_host_is_asked_after_its_delay_and_others_meanwhile() {
    let polite = Politeness { delay_ms: 1000, ..manners() };
    let walks = vec![range("http://a.org/{id}", 1, 3), range("http://b.org/{id}", 1, 3)];
    let mut frontier = frontier(walks, polite);
    let first = visit(&mut frontier, Moment(0)).unwrap();
    frontier.requested(&first.url.host(), Moment(0));
    end(&mut frontier, &first, IdState::Content, Moment(0));
    let second = visit(&mut frontier, Moment(0)).unwrap();
    frontier.requested(&second.url.host(), Moment(0));
    end(&mut frontier, &second, IdState::Content, Moment(0));
    assert_eq!(second.url.to_string(), "http://b.org/1");
    assert_eq!(frontier.next(Moment(999)), Next::Wait(Some(Moment(1000))));
    assert_eq!(visit(&mut frontier, Moment(1000)).unwrap().url.to_string(), "http://a.org/2");
}

#[test]
fn the_rules_of_every_origin_are_read_first() {
    let walks = vec![range("http://a.org/{id}", 1, 3), range("https://a.org/{id}", 1, 3)];
    let polite = Politeness { robots: RobotsRules::Obey, per_host: 8, ..manners() };
    let mut frontier = frontier(walks, polite);
    let known = RobotsKnown { until: Moment(u64::MAX), crawl_delay_ms: None };
    let [http, https] =
        ["http://a.org/0", "https://a.org/0"].map(|url| PageUrl::parse(url).unwrap());
    let crawl = CRAWL;
    for url in [&http, &https] {
        assert_eq!(frontier.next(Moment(0)), Next::NeedRobots { crawl, url: url.clone() });
    }
    frontier.robots(CRAWL, &http.host(), Door::of(&http), known);
    let urls = play(&mut frontier, 9);
    assert_eq!(urls, ["http://a.org/1", "http://a.org/2", "http://a.org/3"]);
    frontier.robots(CRAWL, &https.host(), Door::of(&https), known);
    assert_eq!(play(&mut frontier, 3).len(), 3);
}

#[test]
fn a_failed_id_comes_back_after_the_cool_down() {
    let walk = walk("http://a.org/{id}", |rules| WalkRules {
        min: Some(1),
        max: Some(2),
        attempts: 2,
        cooldown_ms: 5_000,
        ..rules
    });
    let mut frontier = frontier(vec![walk], manners());
    let first = visit(&mut frontier, Moment(0)).unwrap();
    end(&mut frontier, &first, IdState::Waiting { attempts: 1 }, Moment(0));
    let second = visit(&mut frontier, Moment(0)).unwrap();
    end(&mut frontier, &second, IdState::Content, Moment(0));
    assert_eq!(frontier.next(Moment(1)), Next::Wait(Some(Moment(5_000))));
    let again = visit(&mut frontier, Moment(5_000)).unwrap();
    assert_eq!((again.url, again.attempt), (first.url, 2));
}

#[test]
fn an_id_that_was_redirected_is_under_way_until_its_end() {
    let mut frontier = frontier(vec![range("http://a.org/{id}", 1, 1)], manners());
    let first = visit(&mut frontier, Moment(0)).unwrap();
    frontier.finished(&first, &fetched(&first, 302, Moment(0)), Moment(0));
    let to = PageUrl::parse("http://b.org/one").unwrap();
    let hop = Visit { url: to.clone(), redirects: vec![first.url.to_string()], ..first.clone() };
    frontier.redirected_id(&first.url.host(), hop);
    frontier.address(&to.host(), Some(address(&to)), Moment(0));
    let second = visit(&mut frontier, Moment(0)).unwrap();
    assert_eq!((&second.url, second.place), (&to, first.place));
    assert!(matches!(frontier.next(Moment(0)), Next::Wait(_)), "it has not ended");
    end(&mut frontier, &second, IdState::Content, Moment(0));
    assert!(matches!(frontier.next(Moment(0)), Next::Finished { .. }));
}

#[test]
fn ids_and_links_take_turns() {
    let mut frontier = frontier(vec![range("http://a.org/{id}", 1, 9)], manners());
    for number in 1..=3 {
        let place = QueuePlace { lane: telusur_model::Lane::Plain, order: 1, seq: number };
        let link = Visit {
            crawl: CRAWL,
            purpose: Default::default(),
            url: PageUrl::parse(&format!("http://a.org/link{number}")).unwrap(),
            key: UrlKey(u128::from(number)),
            place,
            depth: 1,
            hops_outside: 0,
            via: Via::Link,
            found_at: Timestamp(0),
            referrer: None,
            redirects: Vec::new(),
            lastmod: None,
            attempt: 1,
        };
        frontier.discovered(link, None);
    }
    let mut paths = Vec::new();
    while let Some(visit) = visit(&mut frontier, Moment(0)) {
        paths.push(visit.url.path().to_owned());
        match visit.place.id() {
            Some(_) => end(&mut frontier, &visit, IdState::Content, Moment(0)),
            None => {
                frontier.finished(&visit, &fetched(&visit, 200, Moment(0)), Moment(0));
                frontier.committed(CRAWL, &visit.url.host(), visit.place, true);
            }
        }
    }
    let turns = ["/1", "/link1", "/2", "/link2", "/3", "/link3"];
    assert_eq!(paths[..6], turns);
    assert_eq!(paths.len(), 12);
}

#[test]
fn the_page_limit_counts_ids() {
    let mut frontier = frontier(vec![range("http://a.org/{id}", 1, 9)], manners());
    frontier.set_pages_max(CRAWL, Some(2));
    assert_eq!(play(&mut frontier, 2).len(), 2);
    let why = FinishReason::MaxPages;
    assert_eq!(frontier.next(Moment(0)), Next::Finished { crawl: CRAWL, why });
}

/// A budget of ids counts ids that are asked for: another attempt costs none, be it excused or not.
#[test]
fn retries_cost_no_unit_of_the_budget() {
    let mut frontier = frontier(vec![range("http://a.org/{id}", 1, 9)], manners());
    frontier.limit_ids(CRAWL, Some(2));
    let mut asked = Vec::new();
    let mut now = Moment(0);
    for attempts in [0, 1, 0, 1] {
        let visit = visit(&mut frontier, now).unwrap();
        end(&mut frontier, &visit, IdState::Waiting { attempts }, now);
        asked.push(visit.url.to_string());
        if asked.len() >= 2 {
            now = now.plus_ms(10_000_000);
        }
    }
    assert_eq!(asked[..2], ["http://a.org/1", "http://a.org/2"]);
    for _ in 0..2 {
        let visit = visit(&mut frontier, now).expect("those that wait are asked again");
        assert!(asked.contains(&visit.url.to_string()), "{}", visit.url);
        end(&mut frontier, &visit, IdState::Content, now);
        now = now.plus_ms(10_000_000);
    }
    assert!(visit(&mut frontier, now).is_none());
}

#[test]
fn ids_that_may_not_be_asked_give_their_unit_back() {
    let mut frontier = frontier(vec![range("http://a.org/{id}", 1, 9)], manners());
    frontier.limit_ids(CRAWL, Some(2));
    for _ in 0..3 {
        let refused = visit(&mut frontier, Moment(0)).unwrap();
        frontier.skipped(&refused, Moment(0));
        let hole = IdEnd { state: IdState::Hole, stored_page: false };
        frontier.committed_id(CRAWL, &refused.url.host(), refused.place, hole);
    }
    frontier.limit_ids(CRAWL, Some(2));
    assert_eq!(play(&mut frontier, 9), ["http://a.org/4", "http://a.org/5"]);
}

/// Those of an earlier run, too: the walk knows them as holes.
#[test]
fn ids_refused_earlier_use_up_no_budget() {
    let mut frontier = frontier(vec![range("http://a.org/{id}", 1, 9)], manners());
    for _ in 0..3 {
        let hole = visit(&mut frontier, Moment(0)).unwrap();
        end(&mut frontier, &hole, IdState::Hole, Moment(0));
    }
    frontier.ids_refused_earlier(CRAWL, &[3]);
    frontier.limit_ids(CRAWL, Some(2));
    assert_eq!(play(&mut frontier, 9), ["http://a.org/4", "http://a.org/5"]);
}

#[test]
fn a_changed_budget_counts_ids_under_way() {
    let polite = Politeness { per_host: 8, ..manners() };
    let mut frontier = frontier(vec![range("http://a.org/{id}", 1, 9)], polite);
    assert!(visit(&mut frontier, Moment(0)).is_some());
    frontier.limit_ids(CRAWL, Some(2));
    assert!(visit(&mut frontier, Moment(0)).is_some());
    assert!(visit(&mut frontier, Moment(0)).is_none());
}

#[test]
fn ids_of_a_blocked_site_wait_and_those_of_others_do_not() {
    let walks = vec![range("http://x.a.test/{id}", 1, 3), range("http://b.test/{id}", 1, 3)];
    let mut frontier = frontier(walks, manners());
    let blocked = telusur_model::Host::new("x.a.test").site();
    assert_eq!(play(&mut frontier, 1), ["http://x.a.test/1"]);
    frontier.block_site(&blocked, true);
    assert_eq!(play(&mut frontier, 10), ["http://b.test/1", "http://b.test/2", "http://b.test/3"]);
    frontier.block_site(&blocked, false);
    assert_eq!(play(&mut frontier, 10), ["http://x.a.test/2", "http://x.a.test/3"]);
}
