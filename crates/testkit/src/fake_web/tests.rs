use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use super::*;
use crate::html_check::{hrefs, is_well_formed};

fn web(spec: &str) -> FakeWeb {
    FakeWeb::new(spec.parse().unwrap()).unwrap()
}

fn html(web: &FakeWeb, host: usize, path: &str) -> String {
    let answer = web.answer(host, path);
    assert_eq!(answer.status, 200, "{path}");
    String::from_utf8(answer.body.to_vec()).unwrap()
}

/// Follows links from the given pages, asking again where a fault may pass, and gives every answer
/// by URL.
fn crawl(web: &FakeWeb, seeds: Vec<PageUrl>) -> HashMap<PageUrl, FakeAnswer> {
    let live = LiveWeb::new(web.clone());
    let mut answers = HashMap::new();
    let mut queue = VecDeque::from(seeds);
    while let Some(url) = queue.pop_front() {
        if answers.contains_key(&url) {
            continue;
        }
        let request = FakeRequest { host: url.authority(), target: url.path() };
        let mut answer = live.answer_to(request).unwrap();
        if answer.status == 500 || answer.reset {
            answer = live.answer_to(request).unwrap();
        }
        if let Some(location) = answer.header("location") {
            queue.push_back(url.join(location).unwrap());
        } else if answer.status == 200 {
            let html = String::from_utf8(answer.body.to_vec()).unwrap();
            queue.extend(hrefs(&html).iter().map(|href| url.join(href).unwrap()));
        }
        answers.insert(url, answer);
    }
    answers
}

#[track_caller]
fn check_reachable(spec: &str) -> HashMap<PageUrl, FakeAnswer> {
    let web = web(spec);
    let answers = crawl(&web, web.seeds());
    for url in web.urls() {
        assert_eq!(answers.get(&url).map(|it| it.status), Some(200), "{url} of {spec}");
    }
    answers
}

#[test]
fn one_seed_gives_one_web() {
    let spec = "seed=5,hosts=3,pages=60,error-once=0.5,redirects=0.3,dead-links=0.1,delay=1..50";
    let (first, second) = (web(spec), web(spec));
    let other = web(&spec.replace("seed=5", "seed=6"));
    for host in 0..3 {
        for page in 0..first.pages_of(host) {
            let path = format!("/p/{page}");
            assert_eq!(first.answer(host, &path), second.answer(host, &path));
            assert_eq!(first.first_answer(host, &path), second.first_answer(host, &path));
            assert_ne!(first.answer(host, &path).body, other.answer(host, &path).body);
        }
    }
}

#[test]
fn every_page_is_reachable() {
    check_reachable("hosts=1,pages=1");
    check_reachable("hosts=3,pages=500,bytes=0");
    check_reachable("hosts=2,pages=60,links=1,bytes=0");
    check_reachable("hosts=20,pages=zipf:900,bytes=0,other-hosts=0.5");
    check_reachable("hosts=4,pages=list:200/1,links=6,bytes=0,other-hosts=0");
}

#[test]
fn every_page_of_a_host_is_reachable_from_its_first() {
    let web = web("hosts=3,pages=300,bytes=0,other-hosts=0");
    let answers = crawl(&web, vec![web.seeds()[1].clone()]);
    assert_eq!(answers.len(), 100);
    assert!(answers.keys().all(|url| url.host_str() == "host-1.test"));
}

#[test]
fn faults_hide_no_page() {
    let answers = check_reachable(
        "hosts=3,pages=400,bytes=0,error-once=0.2,reset-once=0.2,redirects=0.3,dead-links=0.05",
    );
    let with_status = |status| answers.values().filter(|it| it.status == status).count();
    assert!(with_status(404) > 100, "{} dead links", with_status(404));
    assert!((80..160).contains(&with_status(301)), "{} redirects", with_status(301));
}

#[test]
fn lasting_resets_last() {
    let web = web("hosts=1,pages=1000,reset-always=0.1,bytes=0");
    let cut = (0..1000).filter(|page| web.answer(0, &format!("/p/{page}")).reset).count();
    assert!((70..130).contains(&cut), "{cut}");
}

#[test]
fn links_spread_over_all_pages() {
    let web = web("hosts=10,pages=20000");
    let mut linked: HashMap<PageAt, u32> = HashMap::new();
    for page in 0..web.pages_of(4) {
        web.shape.links(&web.spec, PageAt { host: 4, page }, |target| {
            let Target::Page(at) = target else { panic!("no dead links were asked for") };
            *linked.entry(at).or_default() += 1;
        });
    }
    let own: Vec<u32> = linked.iter().filter(|(at, _)| at.host == 4).map(|(_, &n)| n).collect();
    assert_eq!(
        own.len(),
        2000 - 1 + usize::from(linked.contains_key(&PageAt { host: 4, page: 0 }))
    );
    // 2,000 pages with about 45 links each within the host: the mean is 45.
    assert!(own.iter().all(|count| (15..90).contains(count)), "{:?}", own.iter().max());
    let elsewhere = linked.keys().filter(|at| at.host != 4).count();
    assert!(elsewhere > 6_000, "{elsewhere}");
}

#[test]
fn pages_are_about_as_long_as_asked_and_all_different() {
    let web = web("hosts=2,pages=200");
    let mut bodies = HashSet::new();
    for page in 0..100 {
        let html = html(&web, 1, &format!("/p/{page}"));
        assert!((19_000..21_500).contains(&html.len()), "{} bytes", html.len());
        assert_eq!(hrefs(&html).len(), 50);
        assert!(is_well_formed(&html), "{html}");
        assert!(bodies.insert(html));
    }
}

#[test]
fn small_pages_keep_their_links() {
    let web = web("hosts=1,pages=5,links=3,bytes=0");
    let html = html(&web, 0, "/p/2");
    assert_eq!(hrefs(&html).len(), 3);
    assert!(is_well_formed(&html));
    assert!(html.len() < 1000);
}

#[test]
fn a_page_has_one_address() {
    let web = web("hosts=1,pages=100");
    for path in ["/p/07", "/p/+7", "/p/7/", "/p/7?x=1", "/p/", "/p/100", "/gone/7", "/robots.txt"] {
        assert_eq!(web.answer(0, path).status, 404, "{path}");
    }
    assert_eq!(web.answer(0, "/").header("location"), Some("/p/0"));
}

#[test]
fn millions_of_pages_cost_nothing() {
    let web = web("hosts=1000,pages=10000000");
    assert_eq!(web.pages_total(), 10_000_000);
    assert_eq!(web.answer(999, "/p/9999").status, 200);
    assert_eq!(web.answer(999, "/p/10000").status, 404);
}

#[test]
fn delays_are_of_the_host_or_of_all() {
    let web = web("hosts=3,pages=300,delay=10..20,delay.1=500");
    let delays: HashSet<Duration> =
        (0..100).map(|page| web.answer(0, &format!("/p/{page}")).delay).collect();
    assert!(delays.len() > 5);
    assert!(delays.iter().all(|delay| (10..=20).contains(&delay.as_millis())));
    assert_eq!(web.answer(1, "/p/3").delay, Duration::from_millis(500));
}

#[test]
fn hosts_are_found_by_their_names() {
    let by_name = web("hosts=300,pages=300");
    let by_address = by_name.on_port(8123);
    assert_eq!(by_name.host_name(299), "host-299.test");
    assert_eq!(by_address.host_name(299), "127.1.1.44:8123");
    for web in [by_name, by_address] {
        for host in [0, 7, 255, 256, 299] {
            assert_eq!(web.host_index(&web.host_name(host)), Some(host));
        }
        for name in ["host-300.test", "127.1.1.45:8123", "127.1.0.1:80", "127.0.0.1:8123", ""] {
            assert_eq!(web.host_index(name), None, "{name}");
        }
    }
}

#[test]
fn numbered_pages_have_gaps_and_an_end() {
    let web = FakeWeb::new("hosts=1,pages=200,bytes=0,gaps=0.25".parse().unwrap()).unwrap();
    let status = |number: u64| web.answer(0, &format!("/item/{number}")).status;
    let there = (0..200).filter(|number| status(*number) == 200).count();
    assert!((130..170).contains(&there), "{there} of 200 exist");
    assert_eq!((200..300).filter(|number| status(*number) == 200).count(), 0);
    assert_eq!(web.answer(0, "/p/199").status, 200, "pages themselves have no gaps");
}

#[test]
fn saved_pages_are_served_in_turn() {
    let spec: FakeWebSpec = "hosts=2,pages=5".parse().unwrap();
    let web = FakeWeb::new(spec).unwrap().with_bodies(vec![b"one".to_vec(), b"two".to_vec()]);
    let body = |host, page| web.answer(host, &format!("/p/{page}")).body;
    let all = [body(0, 0), body(0, 1), body(1, 0), body(1, 1), body(1, 2)];
    assert_eq!(all, ["one", "two", "one", "two", "one"].map(bytes::Bytes::from));
}
