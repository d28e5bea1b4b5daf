//! `telusur crawl --dry-run`: what the user typed, as it was understood.

use crate::{DRY_RUN, Place};

#[test]
fn defaults() {
    let seen = Place::new().run(&DRY_RUN);
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        seen.result(),
        format!(
            "start         http://a.org/
scope         domain
exclude       /logout
exclude       [?&]sessionid=
limits        none
budgets       10,000 URLs per host, 50,000 per site
page size     1MiB read
delay         1s per host
at once       1 per host, 32 in all
adaptive      yes
fairness      equal
attempts      4
robots.txt    obeyed
sitemaps      read
user agent    Telusur/{version}
timeout       30s
redirects     10
keep          html
fail on       none
"
        )
    );
}

#[test]
fn every_flag() {
    let arguments: Vec<&str> = "crawl --dry-run http://a.org/ --name docs -n 10k -d 3 -t 1h30m \
        --max-bytes 1GB --max-per-host 7 --max-per-site 8 --max-body 10kB -s prefix --include /x \
        --include /y --exclude /z --extra-hops 1 --allow-host cdn.a.org --query-params drop=a,b \
        --keep-tracking --topic kopi --delay 2s --per-host 2 --rate 30/m -w 5 --no-adaptive \
        --fairness weighted --contact me@a.org -H X-Key:secret --timeout 5s --retries 0 \
        --max-redirects 2 --allow-private 10.0.0.0/8 --keep raw --fail-on ratio=0.2 --max-errors 9 \
        -o out.jsonl"
        .split_whitespace()
        .collect();
    let seen = Place::new().run(&arguments);
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        seen.result(),
        format!(
            "name          docs
start         http://a.org/
scope         prefix and 1 hops beyond
also host     cdn.a.org
include       /x
include       /y
exclude       /z
query         without a, b
tracking      kept
topic         kopi
limits        10,000 pages, depth 3, 1h30m, 1GB, 9 errors
budgets       7 URLs per host, 8 per site
page size     10kB read
delay         2s per host
at once       2 per host, 5 in all
rate          0.5/s
adaptive      no
fairness      weighted
attempts      1
robots.txt    obeyed
sitemaps      read
user agent    Telusur/{version} (+me@a.org)
timeout       5s
redirects     2
header        X-Key: ***
not public    10.0.0.0/8 allowed
keep          raw
fail on       ratio=0.2
"
        )
    );
}

#[test]
fn json_is_the_whole_request() {
    let seen =
        Place::new().run(&[&DRY_RUN[..], &["--json", "--limit", "5", "-H", "A: b"]].concat());
    let request: serde_json::Value = serde_json::from_str(seen.result()).unwrap();
    assert_eq!(request["limits"]["pages_max"], 5);
    assert_eq!(request["seeds"]["links"][0], "http://a.org/");
    assert_eq!(request["fetch"]["headers"][0], "A: ***");
    assert_eq!(request["fail_on"], "none");
}

#[test]
fn contradictions_and_slips_are_one_line_with_a_way_out() {
    let place = Place::new();
    let check = |arguments: &[&str], expect: &str| {
        let seen = place.run(arguments);
        let error = seen.error(2);
        assert!(error.contains(expect), "{error}");
    };
    check(&[&DRY_RUN[..], &["--max-page", "5"]].concat(), "'--max-pages'");
    check(&[&DRY_RUN[..], &["--delay"]].concat(), "See: telusur crawl --help");
    check(&[&DRY_RUN[..], &["--adaptive", "--no-adaptive"]].concat(), "cannot be used with");
    check(&[&DRY_RUN[..], &["-q", "-v"]].concat(), "cannot be used with");
    check(&[&DRY_RUN[..], &["-O"]].concat(), "--output");
    check(&[&DRY_RUN[..], &["-n", "-5"]].concat(), "--max-pages \"-5\" is not a whole number");
    check(&["crwal"], "'crawl'");
    check(&["version", "--color", "pink"], "auto, always, never");
}

#[test]
fn mistakes_can_be_json() {
    let place = Place::new();
    for arguments in [&["crawl", "--json", "--nonsense"][..], &["explain", "--json", "E9"]] {
        let seen = place.run(arguments);
        assert_eq!((seen.code, seen.stdout.as_str()), (2, ""));
        let problem: serde_json::Value = serde_json::from_str(&seen.stderr).unwrap();
        assert_eq!(problem["exit_code"], 2);
        assert!(problem["code"].as_str().unwrap().starts_with("E01"));
    }
}

#[test]
fn no_start_url_says_how_to_name_one() {
    let seen = Place::new().run(&["crawl", "--dry-run"]);
    assert_eq!(
        seen.error(2),
        "error: there is no start URL. Name one: telusur crawl https://example.com"
    );
}

#[test]
fn start_urls_that_are_none() {
    let place = Place::new();
    let check = |url: &str, expect: &str| {
        let seen = place.run(&["crawl", "--dry-run", url]);
        assert_eq!(seen.error(2), expect);
    };
    check(
        "example.com",
        "error: \"example.com\" has no scheme. Did you mean https://example.com ?",
    );
    check(
        "http://10.0.0.5/",
        "error: 10.0.0.5 is a private address. Allow it for this crawl: --allow-private 10.0.0.5/32",
    );
    check(
        "http://h:99999/\u{1b}[2J",
        "error: \"http://h:99999/\u{fffd}[2J\" is not a URL that can be crawled: invalid port \
         number. Write it like https://example.com/page",
    );
}

#[test]
fn start_urls_from_the_environment() {
    let place = Place::new();
    let variables = [("CRAWLER_START_URLS", "http://b.org/ http://c.org/")];
    let seen = place.run_with(&["crawl", "--dry-run"], &variables, "");
    assert!(
        seen.result().starts_with("start         http://b.org/\n              http://c.org/\n")
    );
    let seen = place.run_with(&DRY_RUN, &variables, "");
    assert!(seen.result().starts_with("start         http://a.org/\nscope"));
    let list = ["crawl", "--dry-run", "-i", "-"];
    let seen = place.run_with(&list, &variables, "http://d.org/");
    assert!(seen.result().starts_with("start         http://d.org/\nscope"));
}

#[test]
fn lists_of_start_urls() {
    let list = "\u{feff}http://b.org/\r\n\n# c\nhttp://b.org/#x\nnonsense\n10.1.1.1\nhttp://c.org/";
    let place = Place::new().with("list", list);
    let seen = place.run(&["crawl", "--dry-run", "-i", "list"]);
    assert_eq!(seen.code, 0);
    assert!(
        seen.stdout.starts_with("start         http://b.org/\n              http://c.org/\nscope")
    );
    let warnings: Vec<&str> = seen.stderr.lines().collect();
    assert_eq!(
        warnings,
        [
            "warning: list:5: \"nonsense\" is not a URL that can be crawled: relative URL without a \
             base",
            "warning: list:6: \"10.1.1.1\" has no scheme",
            "warning: list: 2 bad lines were passed over",
        ]
    );
    let seen = place.run_with(&["crawl", "--dry-run", "-q", "-i", "-"], &[], "");
    assert!(seen.error(2).contains("there is no start URL"));
    let seen = place.run(&["crawl", "--dry-run", "-i", "no-such-list"]);
    assert!(seen.error(2).contains("cannot read no-such-list"));
    let seen = place.run(&["crawl", "--dry-run", "-i", "."]);
    assert!(seen.error(2).contains("it is a directory"));
}

#[test]
fn a_long_list_is_counted() {
    let list: String = (0..1_000).map(|n| format!("http://a.org/{n}\n")).collect();
    let seen = Place::new().run_with(&["crawl", "--dry-run", "-i", "-"], &[], &list);
    assert!(seen.result().contains("              and 990 more\n"));
}

#[test]
fn the_output_is_not_overwritten() {
    let place = Place::new().with("out.jsonl", "precious");
    let seen = place.run(&[&DRY_RUN[..], &["-o", "out.jsonl"]].concat());
    assert!(seen.error(2).contains("out.jsonl exists already. Overwrite it with -O"));
    place.run(&[&DRY_RUN[..], &["-o", "out.jsonl", "-O"]].concat()).result();
    let kept = std::fs::read_to_string(place.path().join("out.jsonl")).unwrap();
    assert_eq!(kept, "precious", "a dry run writes nothing");
}
