//! `fetch`, `page`, `inspect page`, `export --kind` and `reparse`: pages for people.

use std::io::Write;

use serde_json::Value;
use telusur_testkit::BadServer;
use telusur_testkit::bad_server::Step;

use crate::{Place, Seen};

const PAGE: &str = "<!doctype html><html lang=en><title>=T\u{9b}31m\u{202e}</title>\
    <article><h1>Prices</h1><p>What bread costs in town this year, by the loaf.</p>\
    <table><tr><th>Kind<th>Price<tr><td>=1+1<td>2, about</table>\
    <p><a href=/next>next</a></p></article>";

/// What the page is about, whatever else an extractor takes for its main content.
const SENTENCE: &str = "What bread costs in town this year, by the loaf.\n";

/// A server on loopback with one answer for each connection; the last one is for all that follow.
struct Site {
    _runtime: tokio::runtime::Runtime,
    server: BadServer,
}

impl Site {
    fn new(answers: &[String]) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let script = |answer: &String| vec![Step::ReadRequest, Step::send(answer.clone())];
        let scripts = answers.iter().map(script).collect();
        let server = runtime.block_on(BadServer::start_varied(scripts)).unwrap();
        Self { _runtime: runtime, server }
    }

    fn asked(&self) -> Vec<String> {
        let requests = self.server.requests();
        requests.iter().map(|head| head.split(' ').nth(1).unwrap().to_owned()).collect()
    }
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

fn html(body: &str) -> String {
    answer("200 OK", "content-type: text/html; charset=utf-8\r\n", body)
}

fn no_robots() -> String {
    answer("404 Not Found", "", "")
}

fn fetch(place: &Place, url: &str, more: &[&str]) -> Seen {
    let open = ["fetch", url, "--allow-private", "127.0.0.0/8", "--delay", "0s"];
    place.run(&[&open[..], more].concat())
}

/// A place where one crawl has stored the page.
fn crawled(body: &str, more: &[&str]) -> (Place, Site, String) {
    let site = Site::new(&[html(body)]);
    let place = Place::new();
    let url = site.server.url("/page");
    let flags = ["crawl", url.as_str(), "--name", "bread", "--scope", "page", "-n", "1"];
    let quiet = ["--no-sitemap", "--ignore-robots", "--delay", "0s", "--min-free-disk", "0B"];
    let open = ["--allow-private", "127.0.0.0/8"];
    let seen = place.run(&[&flags[..], &quiet, &open, more].concat());
    assert_eq!(seen.code, 0, "{seen:?}");
    (place, site, url)
}

/// Whatever a page says of itself, no output commands a terminal or turns what is read around.
#[test]
fn no_output_does_what_a_page_says() {
    let (place, _site, url) = crawled(PAGE, &[]);
    for words in [
        &["search", "bread"][..],
        &["search", "bread", "--explain"],
        &["search", "bread", "--format", "jsonl"],
        &["search", "bread", "--format", "csv"],
        &["search", "--regex", "=T"],
        &["show", "last", "--skipped"],
        &["explain", &url],
        &["page", &url],
        &["export", "last"],
        &["rank"],
    ] {
        for form in [&[][..], &["--json"]] {
            let seen = place.run(&[words, form].concat());
            assert_eq!(seen.code, 0, "{words:?} {seen:?}");
            let said = seen.stdout + &seen.stderr;
            let is_treacherous =
                |c: char| (c.is_control() && !"\n\t".contains(c)) || c == '\u{202e}';
            assert!(!said.contains(is_treacherous), "{words:?} {form:?}: {said:?}");
        }
    }
}

#[test]
fn mistakes_of_a_page_are_not_logged() {
    let body = "<table>x".repeat(1_000);
    let seen = Place::new().run_with(&["inspect", "page", "-"], &[], &body);
    assert_eq!((seen.code, seen.stderr.as_str()), (0, ""));
}

#[test]
fn what_failed_is_asked_again() {
    let nonsense = "no such protocol\r\n\r\n".to_owned();
    let site = Site::new(&[html(r#"<a href="/next">next</a>"#), nonsense, html(PAGE)]);
    let place = Place::new();
    let url = site.server.url("/page");
    let flags = ["crawl", url.as_str(), "--scope", "host", "--retries", "0", "--no-sitemap"];
    let quiet = ["--ignore-robots", "--delay", "0s", "--min-free-disk", "0B", "-n", "2"];
    place.run(&[&flags[..], &quiet, &["--allow-private", "127.0.0.0/8"]].concat());
    assert_eq!(site.asked(), ["/page", "/next"]);
    let seen = place.run(&["retry", "last"]);
    assert_eq!(seen.code, 0, "{seen:?}");
    assert!(seen.stderr.contains("crawl_1 asks again for one URL that failed"), "{seen:?}");
    assert_eq!(site.asked(), ["/page", "/next", "/next"]);
    let seen = place.run(&["retry", "last", "--json"]);
    assert_eq!(seen.result(), "{\"crawl\":\"crawl_1\",\"retried\":0}\n", "{seen:?}");
    assert_ne!(place.run(&["retry", "crawl_9"]).code, 0);
}

#[test]
fn fetch_prints_markdown() {
    let site = Site::new(&[no_robots(), html(PAGE)]);
    let seen = fetch(&Place::new(), &site.server.url("/page"), &[]);
    assert!(seen.result().contains(SENTENCE), "{seen:?}");
    assert_eq!(site.asked(), ["/robots.txt", "/page"]);
}

#[test]
fn fetch_prints_every_form() {
    let check = |form: &str, expect: &str| {
        let site = Site::new(&[no_robots(), html(PAGE)]);
        let seen = fetch(&Place::new(), &site.server.url("/page"), &["--as", form]);
        let shown = seen.result().replace(&site.server.url(""), "http://site");
        assert!(shown.contains(expect), "{form}: {shown}");
        assert!(form == "html" || !shown.contains(['\u{9b}', '\u{202e}']), "{form}: {shown}");
    };
    check("text", SENTENCE);
    check("html", PAGE);
    check("headers", "content-type: text/html; charset=utf-8\n");
    check("links", "http://site/next\n");
    check("json", "\"title\":\"=T\\u009b31m\\u202e\"");
    check("json", "\"status\":200");
    check("tables", "\"page\":\"http://site/page\",\"index\":1,");
    check("overview", "tables       1\n");
}

#[test]
fn fetch_obeys_robots_txt() {
    let robots = answer("200 OK", "content-type: text/plain\r\n", "User-agent: *\nDisallow: /page");
    let site = Site::new(&[robots, html(PAGE)]);
    let place = Place::new();
    let url = site.server.url("/page");
    let seen = fetch(&place, &url, &[]);
    let message = seen.error(3);
    assert!(
        message.contains("robots_disallowed (robots.txt line 2: Disallow: /page)"),
        "{message}"
    );
    assert_eq!(site.asked(), ["/robots.txt"], "the page itself is not asked for");
    let seen = fetch(&place, &url, &["--ignore-robots", "--as", "links"]);
    assert_eq!((seen.code, seen.stdout), (0, format!("{}\n", site.server.url("/next"))));
    assert!(seen.stderr.starts_with("warning: robots.txt is ignored"), "{}", seen.stderr);
}

#[test]
fn fetch_waits_for_a_robots_txt_that_cannot_be_read() {
    let broken = answer("503 Service Unavailable", "", "");
    let site = Site::new(&[broken.clone(), broken, html(PAGE)]);
    let place = Place::new();
    let url = site.server.url("/page");
    let seen = fetch(&place, &url, &[]);
    assert!(seen.error(3).contains("robots_unreachable (robots.txt: status 503)"), "{seen:?}");
    fetch(&place, &url, &["--robots-unreachable", "allow"]).result();
}

#[test]
fn fetch_follows_redirects_and_judges_each_anew() {
    let to = |target: &str| answer("301 Moved", &format!("location: {target}\r\n"), "");
    let site = Site::new(&[no_robots(), to("/a"), to("/b"), html(PAGE)]);
    let place = Place::new();
    let seen = fetch(&place, &site.server.url("/"), &["--as", "json"]);
    let page: Value = serde_json::from_str(seen.result()).unwrap();
    assert_eq!(page["url"], site.server.url("/b"));
    assert_eq!(page["redirects"], serde_json::json!([site.server.url("/"), site.server.url("/a")]));

    let check = |answers: &[String], more: &[&str], expect: &str| {
        let site = Site::new(answers);
        let seen = fetch(&Place::new(), &site.server.url("/"), more);
        assert!(seen.error(3).contains(expect), "{seen:?}");
    };
    check(&[no_robots(), to("/")], &[], "redirect_loop");
    check(&[no_robots(), to("/a"), to("/b")], &["--max-redirects", "1"], "too_many_redirects");
    check(&[no_robots(), to("http://10.0.0.1/")], &[], "blocked_address");
    check(&[no_robots(), to("http://169.254.169.254/")], &[], "blocked_address");
}

#[test]
fn fetch_says_what_went_wrong() {
    let place = Place::new();
    let seen = place.run(&["fetch", "http://127.0.0.1:1/"]);
    assert!(seen.error(2).contains("--allow-private 127.0.0.1/32"), "{seen:?}");
    let site = Site::new(&[
        no_robots(),
        answer("410 Dequeued", "content-type: text/html\r\n", "<p>Dequeued."),
    ]);
    let seen = fetch(&place, &site.server.url("/"), &["--as", "html"]);
    assert_eq!((seen.code, seen.stdout.as_str()), (3, "<p>Dequeued."));
    assert!(seen.stderr.contains("answered 410"), "{seen:?}");
    let pdf = answer("200 OK", "content-type: application/pdf\r\n", "%PDF-1.7");
    let site = Site::new(&[no_robots(), pdf]);
    let seen = fetch(&place, &site.server.url("/"), &[]);
    assert_eq!((seen.code, seen.stdout.as_str()), (0, ""));
    assert!(seen.stderr.starts_with("warning: this is not read as text"), "{seen:?}");
    place.run(&["fetch", "http://a.org/", "--as", "nonsense"]).error(2);
}

#[test]
fn a_stored_page_is_shown() {
    let (place, site, url) = crawled(PAGE, &[]);
    drop(site);
    let overview = place.run(&["page", &url]);
    let overview = overview.result();
    for expect in
        ["crawl        crawl_1\n", "title        =T\u{fffd}31m\u{fffd}\n", "tables       1\n"]
    {
        assert!(overview.contains(expect), "{expect}: {overview}");
    }
    let check = |form: &str, expect: &str| {
        let seen = place.run(&["page", &url, "--as", form, "--crawl", "bread"]);
        assert!(seen.result().contains(expect), "{form}: {seen:?}");
    };
    check("markdown", SENTENCE);
    check("text", SENTENCE);
    check("html", PAGE);
    check("headers", "content-type: text/html; charset=utf-8\n");
    check("links", "/next\n");
    check("headings", "\"level\":1,\"text\":\"Prices\"}\n");
    let seen = place.run(&["page", &url, "--json"]);
    let page: Value = serde_json::from_str(seen.result()).unwrap();
    assert_eq!(page["status"], 200);
    assert_eq!(page["content"]["tables"][0]["rows"][1][0]["text"], "=1+1");
    let seen = place.run(&["page", "http://a.org/none"]);
    assert!(seen.error(2).contains("no crawl has stored http://a.org/none"), "{seen:?}");
    place.run(&["page", &url, "--crawl", "none"]).error(2);
}

#[test]
fn a_page_whose_body_was_not_kept_says_so() {
    let (place, _site, url) = crawled(PAGE, &["--keep", "text"]);
    assert!(place.run(&["page", &url]).result().contains("links        1\n"));
    place.run(&["page", &url, "--as", "links"]).result();
    for form in ["html", "markdown", "text", "headers"] {
        let seen = place.run(&["page", &url, "--as", form]);
        assert!(seen.error(2).contains("the body of "), "{form}: {seen:?}");
    }
    let (place, _site, url) = crawled(PAGE, &["--keep", "none"]);
    assert!(place.run(&["page", &url]).result().contains("kept         nothing of its content\n"));
    place.run(&["page", &url, "--as", "links"]).error(2);
}

#[test]
fn an_export_has_main_text_and_visible_text() {
    let (place, _site, url) = crawled(PAGE, &[]);
    let seen = place.run(&["export", "bread"]);
    assert!(!seen.stdout.contains(['\u{9b}', '\u{202e}']), "{seen:?}");
    let line: Value = serde_json::from_str(seen.result()).unwrap();
    assert_eq!(line["url"], url);
    assert_eq!(line["title"], "=T\u{9b}31m\u{202e}");
    for field in ["text", "markdown"] {
        assert!(line[field].as_str().unwrap().contains(SENTENCE.trim()), "{line}");
    }
    assert!(line["visible_text"].as_str().unwrap().contains("next"), "{line}");
    let seen = place.run(&["export", "bread", "--format", "csv"]);
    let mut lines = seen.result().lines();
    assert!(lines.next().unwrap().starts_with("url,final_url,status,title,"));
    let row = lines.next().unwrap();
    assert!(row.starts_with(&format!("{url},{url},200,\"'=T\u{fffd}31m\u{fffd}\",")), "{row}");
}

#[test]
fn kinds_are_exported() {
    let (place, _site, url) = crawled(PAGE, &[]);
    let seen =
        place.run(&["export", "bread", "--kind", "tables", "--format", "csv", "-o", "t.csv"]);
    assert!(seen.stderr.contains("4 lines written to t.csv"), "{seen:?}");
    let text = std::fs::read_to_string(place.path().join("t.csv")).unwrap();
    assert!(text.contains(&format!(",{url},1,,2,1,false,false,\"'=1+1\"\n")), "{text}");
    assert!(text.contains(&format!(",{url},1,,2,2,false,false,\"2, about\"\n")), "{text}");
    let seen = place.run(&["export", "bread", "--kind", "links"]);
    let line: Value = serde_json::from_str(seen.result()).unwrap();
    assert_eq!((&line["page"], &line["anchor"]), (&url.into(), &"next".into()));
    let again = ["export", "bread", "--kind", "tables", "-o", "t.csv"];
    assert!(place.run(&again).error(2).contains("t.csv exists already"));
    place.run(&["export", "bread", "--kind", "nonsense"]).error(2);
}

#[test]
fn tables_become_files() {
    let (place, _site, url) = crawled(PAGE, &[]);
    let seen = place.run(&["export", "bread", "--tables-dir", "out", "--json"]);
    let answer: Value = serde_json::from_str(seen.result()).unwrap();
    assert_eq!(answer["tables"], 1);
    let list = std::fs::read_to_string(place.path().join("out/tables.jsonl")).unwrap();
    let listed: Value = serde_json::from_str(&list).unwrap();
    assert_eq!(listed["page"], url);
    let file = place.path().join("out").join(listed["file"].as_str().unwrap());
    let table = std::fs::read_to_string(file).unwrap();
    assert_eq!(table, "Kind,Price\n\"'=1+1\",\"2, about\"\n");
    place.run(&["export", "bread", "--tables-dir", "out"]).error(2);
    place.run(&["export", "bread", "--tables-dir", "x", "--kind", "links"]).error(2);
}

fn packed(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_file_is_inspected() {
    let place = Place::new().with("page.html", PAGE).with("page.html.gz", packed(PAGE));
    let seen = place.run(&["inspect", "page", "page.html", "--url", "http://a.org/x", "--json"]);
    let page: Value = serde_json::from_str(seen.result()).unwrap();
    assert_eq!(page["links"][0]["url"], "http://a.org/next");
    assert_eq!(page["html5"], true);
    let markdown = ["inspect", "page", "page.html.gz", "--as", "markdown"];
    assert!(place.run(&markdown).result().contains(SENTENCE));
    let seen = place.run_with(&["inspect", "page", "-"], &[], PAGE);
    assert!(seen.result().contains("headings     1\n"), "{seen:?}");
    assert!(
        place.run(&["inspect", "page", "none.html"]).error(2).contains("cannot read none.html")
    );
    place.run(&["inspect", "page", "page.html", "--url", "nonsense"]).error(2);
    place.run(&["inspect", "page"]).error(2);
}

#[test]
fn a_packed_file_that_explodes_is_refused() {
    let place = Place::new().with("bomb.html.gz", packed(&" ".repeat((64 << 20) + 1)));
    let seen = place.run(&["inspect", "page", "bomb.html.gz"]);
    assert!(seen.error(2).contains("larger than 64 MiB"), "{seen:?}");
    let place = place.with("page.html.gz", "no gzip");
    place.run(&["inspect", "page", "page.html.gz"]).error(2);
}

#[test]
fn files_are_inspected_one_by_one() {
    let place = Place::new().with("a.html", PAGE).with("b.html.gz", packed("<p>Halo dunia"));
    let questions = "{\"id\":\"a\",\"path\":\"a.html\",\"url\":\"http://a.org/\"}\n\
        {\"id\":2,\"path\":\"b.html.gz\"}\n{\"id\":3,\"path\":\"c.html\"}\n";
    let seen = place.run_with(&["inspect", "page", "--jsonl"], &[], questions);
    let lines: Vec<Value> =
        seen.result().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["id"], "a");
    for field in ["title", "text", "visible_text", "markdown", "language"] {
        assert!(lines[0][field].is_string(), "{field}: {}", lines[0]);
    }
    assert_eq!((&lines[1]["id"], &lines[1]["visible_text"]), (&2.into(), &"Halo dunia".into()));
    assert!(lines[2]["error"].as_str().unwrap().contains("cannot read c.html"));
}

#[test]
fn stored_pages_are_read_again() {
    let (place, site, _) = crawled(PAGE, &[]);
    let asked = site.asked().len();
    let seen = place.run(&["reparse", "bread"]);
    assert_eq!(seen.result(), "1 pages read again, 0 changed, 0 new URLs queued\n");
    let seen = place.run(&["reparse", "bread", "--json"]);
    assert_eq!(seen.result(), "{\"pages\":1,\"changed\":0,\"not_kept\":0,\"queued\":0}\n");
    assert_eq!(site.asked().len(), asked, "nobody is asked");
    place.run(&["reparse", "none"]).error(2);
    let (place, _site, _) = crawled(PAGE, &["--keep", "text"]);
    let seen = place.run(&["reparse", "last"]);
    assert!(seen.result().ends_with("1 pages have no stored body\n"), "{seen:?}");
}
