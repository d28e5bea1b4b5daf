//! What robots.txt and its kin mean to a crawl.

use std::sync::atomic::{AtomicU32, Ordering};

use telusur_engine::control::ExplainUrl;
use telusur_ledger::{FrontierStore, UrlState};
use telusur_model::{CrawlNo, Reason, RobotsAnswer, RobotsRules};
use telusur_testkit::FakeAnswer;

use crate::bench::{Bench, accept, finished, known, page, polite_crawl, run, url};

fn robots(text: &'static str) -> FakeAnswer {
    FakeAnswer::ok("text/plain", text)
}

#[tokio::test(start_paused = true)]
async fn robots_txt_comes_first_and_its_rules_hold() {
    let bench = Bench::of_site(|path| match path {
        "/robots.txt" => robots("User-agent: telusur\n\nDisallow: /private\nAllow: /private/x\n"),
        "/" => page(&["/a", "/private/y", "/private/x"]),
        "/private/y" => panic!("it is forbidden"),
        "/sitemap.xml" => FakeAnswer::not_found(),
        _ => page(&[]),
    });
    let (store, record) = bench.crawl(polite_crawl()).await;
    assert_eq!(bench.asked()[0], "site.test/robots.txt");
    assert_eq!((record.stats.ok, record.stats.skips[&Reason::RobotsDisallowed]), (3, 1));
    let private = known(&store, "http://site.test/private/y");
    let UrlState::Skipped { reason, rule } = private.state else { panic!("{private:?}") };
    assert_eq!(reason, Reason::RobotsDisallowed);
    assert_eq!(rule, "robots.txt line 3: Disallow: /private");
    let explain = ExplainUrl { url: "http://site.test/private/z".into(), crawl: None };
    let (explanations, ()) = run(&store, &explain);
    let said = explanations[0].robots.as_ref().unwrap();
    assert!(!said.allowed && said.rule.as_deref() == Some("line 3: Disallow: /private"));
}

#[tokio::test(start_paused = true)]
async fn a_missing_robots_txt_forbids_nothing() {
    for status in [404, 410, 401, 403] {
        static STATUS: AtomicU32 = AtomicU32::new(0);
        STATUS.store(status, Ordering::Relaxed);
        let bench = Bench::of_site(|path| match path {
            "/robots.txt" => {
                let status = u16::try_from(STATUS.load(Ordering::Relaxed)).unwrap();
                FakeAnswer { status, ..robots("User-agent: *\nDisallow: /") }
            }
            "/" => page(&["/a"]),
            _ => page(&[]),
        });
        let (_, record) = bench.crawl(polite_crawl()).await;
        assert_eq!(record.stats.ok, 2, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_robots_txt_forbids_everything_and_is_asked_for_again() {
    for answer in [
        || FakeAnswer::plain(500, "no"),
        || FakeAnswer::plain(503, "no"),
        FakeAnswer::cut,
        || FakeAnswer::plain(200, "").after(std::time::Duration::from_secs(60)),
    ] as [fn() -> FakeAnswer; 4]
    {
        static ANSWER: std::sync::Mutex<fn() -> FakeAnswer> =
            std::sync::Mutex::new(FakeAnswer::not_found);
        *ANSWER.lock().unwrap() = answer;
        let bench = Bench::of_site(|path| match path {
            "/robots.txt" => ANSWER.lock().unwrap()(),
            other => panic!("{other} was asked for"),
        });
        let (store, record) = bench.crawl(polite_crawl()).await;
        assert_eq!(record.stats.failures[&Reason::RobotsUnreachable], 1);
        assert_eq!(bench.asked(), ["site.test/robots.txt"; 3]);
        let home = known(&store, "http://site.test/");
        assert!(matches!(
            home.state,
            UrlState::Failed { reason: Reason::RobotsUnreachable, detail, .. }
                if detail.starts_with("robots.txt: ")
        ));
        let row = store.origin("http://site.test").unwrap().unwrap();
        assert!(matches!(row.robots, RobotsAnswer::Unreachable { .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn a_robots_txt_that_comes_back_lets_the_crawl_go_on() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let bench = Bench::of_site(|path| match path {
        "/robots.txt" if ASKED.fetch_add(1, Ordering::Relaxed) < 2 => FakeAnswer::plain(503, "no"),
        "/robots.txt" => robots("User-agent: *\nDisallow: /x\n"),
        "/" => page(&["/a", "/x"]),
        _ => page(&[]),
    });
    let (_, record) = bench.crawl(polite_crawl()).await;
    assert_eq!((record.stats.ok, record.stats.skips[&Reason::RobotsDisallowed]), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn unreachable_can_be_made_to_mean_allowed() {
    let bench = Bench::of_site(|path| match path {
        "/robots.txt" => FakeAnswer::plain(500, "no"),
        "/" => page(&["/a"]),
        _ => page(&[]),
    });
    let mut crawl = polite_crawl();
    crawl.politeness.robots = RobotsRules::UnreachableAllows;
    let (_, record) = bench.crawl(crawl).await;
    assert_eq!(record.stats.ok, 2);
}

#[tokio::test(start_paused = true)]
async fn ignored_means_not_even_asked_for() {
    let bench = Bench::of_site(|path| match path {
        "/" => page(&["/a"]),
        "/a" => page(&[]),
        other => panic!("{other} was asked for"),
    });
    let mut crawl = polite_crawl();
    crawl.politeness.robots = RobotsRules::Ignore;
    let (_, record) = bench.crawl(crawl).await;
    assert_eq!(record.stats.ok, 2);
}

#[tokio::test(start_paused = true)]
async fn redirects_of_robots_txt_lead_to_the_rules_of_the_first_host() {
    let bench = Bench::of_hosts(|host, path| match (host, path) {
        ("site.test", "/robots.txt") => FakeAnswer::redirect(301, "/r1"),
        ("site.test", "/r1") => FakeAnswer::redirect(302, "http://other.test/r2"),
        ("other.test", "/r2") => robots("User-agent: *\nDisallow: /x\n"),
        ("site.test", "/") => page(&["/a", "/x"]),
        ("site.test", "/a" | "/sitemap.xml") => page(&[]),
        other => panic!("{other:?} was asked for"),
    });
    let (store, record) = bench.crawl(polite_crawl()).await;
    assert_eq!((record.stats.ok, record.stats.skips[&Reason::RobotsDisallowed]), (2, 1));
    let row = store.origin("http://site.test").unwrap().unwrap();
    assert_eq!(row.redirects, ["http://site.test/robots.txt", "http://site.test/r1"]);
}

#[tokio::test(start_paused = true)]
async fn five_redirects_are_followed_and_circles_end() {
    let bench = Bench::of_site(|path| match path.strip_prefix("/robots") {
        Some(".txt") => FakeAnswer::redirect(302, "/robots1"),
        Some(hop) => {
            let hop: u32 = hop.parse().unwrap();
            assert!(hop <= 5, "the sixth redirect was followed");
            FakeAnswer::redirect(302, format!("/robots{}", hop + 1))
        }
        None => page(&[]),
    });
    let (_, record) = bench.crawl(polite_crawl()).await;
    assert_eq!(record.stats.ok, 1, "what is not reached is not there");

    let bench = Bench::of_site(|path| match path {
        "/robots.txt" => FakeAnswer::redirect(302, "/robots.txt"),
        _ => page(&[]),
    });
    let (_, record) = bench.crawl(polite_crawl()).await;
    assert_eq!(record.stats.ok, 1);
    assert_eq!(bench.asked().iter().filter(|target| target.ends_with("robots.txt")).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn each_port_has_rules_of_its_own() {
    let bench = Bench::of_hosts(|host, path| match (host, path) {
        ("site.test", "/robots.txt") => robots("User-agent: *\nDisallow: /x\n"),
        ("site.test", "/") => page(&["/x", "http://site.test:8080/x", "http://site.test:8081/x"]),
        ("site.test:8080", "/robots.txt") => robots(""),
        ("site.test:8081", "/robots.txt") => FakeAnswer::plain(503, ""),
        ("site.test:8080", "/x") | (_, "/sitemap.xml") => page(&[]),
        other => panic!("{other:?} was asked for"),
    });
    let (_, record) = bench.crawl(polite_crawl()).await;
    assert_eq!(record.stats.ok, 2);
    assert_eq!(record.stats.skips[&Reason::RobotsDisallowed], 1);
    assert_eq!(record.stats.failures[&Reason::RobotsUnreachable], 1);
}

#[tokio::test(start_paused = true)]
async fn rules_outlive_the_process_and_serve_the_next_crawl() {
    let bench = Bench::of_site(|path| match path {
        "/robots.txt" => robots("User-agent: *\nDisallow: /x\nCrawl-delay: 7\n"),
        "/" => page(&["/a", "/x"]),
        _ => page(&[]),
    });
    bench.crawl(polite_crawl()).await;
    let store = bench.open();
    let engine = bench.engine(&store);
    let again = accept(&store, polite_crawl());
    engine.handle().run(again).await.unwrap();
    let progress = finished(&engine, again).await;
    engine.shutdown().await.unwrap();
    assert_eq!(progress.stats.skips[&Reason::RobotsDisallowed], 1);
    let asked = bench.asked();
    assert_eq!(asked.iter().filter(|target| target.ends_with("/robots.txt")).count(), 1);
    let times: Vec<_> = bench.fetcher.log().requests().iter().map(|it| it.started_at).collect();
    for pair in times.windows(2) {
        assert!(pair[1].ms_since(pair[0]) >= 7_000, "the crawl-delay also holds between crawls");
    }
}

#[tokio::test(start_paused = true)]
async fn expired_rules_are_read_again() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let bench = Bench::of_site(|path| match path {
        "/robots.txt" if ASKED.fetch_add(1, Ordering::Relaxed) == 0 => robots(""),
        "/robots.txt" => robots("User-agent: *\nDisallow: /\n"),
        // Thirty answers of an hour each: the day is over in the middle.
        _ => {
            let number: u32 = path.trim_start_matches('/').parse().unwrap_or(0);
            page(&[&format!("/{}", number + 1)]).after(std::time::Duration::from_secs(3600))
        }
    });
    let mut crawl = polite_crawl();
    crawl.sitemaps.discover = false;
    crawl.fetch.timeout_ms = 7_200_000;
    crawl.limits.depth_max = Some(100);
    let (_, record) = bench.crawl(crawl).await;
    assert_eq!(record.stats.skips[&Reason::RobotsDisallowed], 1);
    assert_eq!(ASKED.load(Ordering::Relaxed), 2);
    assert!((20..=25).contains(&record.stats.ok), "{}", record.stats.ok);
}

#[tokio::test(start_paused = true)]
async fn nofollow_and_noindex_are_honoured_and_recorded() {
    let bench = Bench::of_site(|path| match path {
        "/" => page(&["/meta", "/own-meta", "/header", "/other-bot"]),
        "/own-meta" => FakeAnswer::html("<meta name=Telusur content=none><a href=/t>x</a>"),
        "/meta" => FakeAnswer::html("<meta name=robots content='NoFollow'><a href=/m>x</a>"),
        "/header" => {
            let mut answer = page(&["/h"]);
            answer.headers.push(("x-robots-tag", "telusur: none".into()));
            answer
        }
        "/other-bot" => {
            let mut answer = page(&["/o"]);
            answer.headers.push(("x-robots-tag", "otherbot: none".into()));
            answer
        }
        "/m" | "/h" | "/t" => panic!("{path} was followed"),
        _ => page(&[]),
    });
    let (store, record) = bench.crawl(polite_crawl()).await;
    assert_eq!(record.stats.skips[&Reason::Nofollow], 3);
    let nofollow = known(&store, "http://site.test/m");
    assert!(matches!(nofollow.state, UrlState::Skipped { reason: Reason::Nofollow, .. }));
    let pages = telusur_ledger::PageStore::pages_after(&*store, CrawlNo(1), 0, 100).unwrap();
    let page = |path: &str| pages.iter().find(|page| page.url.path() == path).unwrap();
    assert_eq!(page("/header").directives.said, "X-Robots-Tag: none");
    assert!(page("/header").directives.noindex && !page("/meta").directives.noindex);
    assert!(page("/own-meta").directives.noindex && !page("/other-bot").directives.noindex);
}

#[tokio::test(start_paused = true)]
async fn rel_nofollow_is_obeyed_on_request() {
    for obeys in [false, true] {
        let bench = Bench::of_site(|path| match path {
            "/" => FakeAnswer::html("<a rel=nofollow href=/n>x</a><a href=/f>y</a>"),
            _ => page(&[]),
        });
        let mut crawl = polite_crawl();
        crawl.politeness.obey_rel_nofollow = obeys;
        let (_, record) = bench.crawl(crawl).await;
        assert_eq!(record.stats.ok, if obeys { 2 } else { 3 });
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_never_asked_keeps_its_own_reason() {
    let bench = Bench::of_hosts(|_, _| page(&[]));
    let mut crawl = polite_crawl();
    crawl.seeds = telusur_model::Seeds::Links(vec![url("http://no-such-host.invalid/")]);
    let (_, record) = bench.crawl(crawl).await;
    assert_eq!(record.stats.failures[&Reason::DnsError], 1);
}

/// The writer once panicked, and every start after it.
#[tokio::test(start_paused = true)]
async fn robots_txt_and_sitemaps_are_asked_for_whatever_is_excluded() {
    let bench = Bench::of_site(|path| match path {
        "/robots.txt" => robots("User-agent: *\nDisallow: /private\nSitemap: /map.txt\n"),
        "/map.txt" => FakeAnswer::ok("text/plain", "http://site.test/listed\n"),
        "/" => page(&["/a.html", "/a.txt", "/private/x"]),
        "/a.html" | "/listed" => page(&[]),
        other => panic!("{other} was asked for"),
    });
    let mut crawl = polite_crawl();
    crawl.scope.exclude = vec![r"\.(pdf|txt|zip)$".to_owned()];
    let (_, record) = bench.crawl(crawl).await;
    assert_eq!((record.stats.ok, record.stats.sitemaps), (3, 1));
    assert_eq!(record.stats.skips[&Reason::Excluded], 1, "exclusions are for pages");
    assert_eq!(record.stats.skips[&Reason::RobotsDisallowed], 1, "the rules were read");
}

#[tokio::test(start_paused = true)]
async fn an_exclusion_of_everything_that_comes_later_hurts_nobody() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let bench = Bench::of_site(|path| match path {
        // The prerequisite waits to be repeated when the exclusion comes.
        "/robots.txt" if ASKED.fetch_add(1, Ordering::Relaxed) == 0 => FakeAnswer::plain(503, "no"),
        "/robots.txt" => robots(""),
        other => panic!("{other} was asked for"),
    });
    let store = bench.open();
    let engine = bench.engine(&store);
    let mut crawl = polite_crawl();
    crawl.sitemaps.discover = false;
    let no = accept(&store, crawl);
    let handle = engine.handle();
    handle.run(no).await.unwrap();
    crate::bench::until(&engine, no, |_| ASKED.load(Ordering::Relaxed) > 0).await;
    handle.exclude(no, ".*".into()).await.unwrap();
    let progress = finished(&engine, no).await;
    engine.shutdown().await.unwrap();
    assert_eq!(progress.stats.skips[&Reason::Excluded], 1);
    assert_eq!(ASKED.load(Ordering::Relaxed), 2);
}

/// The same panic, set off by the site: its rules forbid the probe and allow the pages.
#[tokio::test(start_paused = true)]
async fn a_probe_that_robots_txt_forbids_is_not_sent_and_hurts_nobody() {
    let bench = Bench::of_site(|path| match path {
        "/robots.txt" => robots("User-agent: *\nDisallow: /\nAllow: /$\nAllow: /p\n"),
        "/" => {
            let links: Vec<String> = (0..15).map(|number| format!("/p{number}")).collect();
            page(&links.iter().map(String::as_str).collect::<Vec<_>>())
        }
        _ if path.starts_with("/p") => page(&[]),
        other => panic!("{other} was asked for"),
    });
    let (_, record) = bench.crawl(polite_crawl()).await;
    assert_eq!(record.stats.ok, 16);
}
