//! `telusur inspect url`.

use crate::Place;

#[test]
fn a_url_is_taken_apart() {
    let seen = Place::new().run(&["inspect", "url", "HTTP://www.Example.ORG:80/a/../b?z=1&a=2#f"]);
    assert_eq!(
        seen.result(),
        "as found     http://www.example.org/b?z=1&a=2
normal form  http://www.example.org/b?a=2&z=1
host         www.example.org
port         80
site         example.org
slot         5
key          dfbf050257024c336fb7932942bdd3c1
"
    );
}

#[test]
fn a_link_is_resolved() {
    let arguments =
        ["inspect", "url", "../x?utm_source=y", "--base", "https://a.org/b/c/", "--json"];
    let seen = Place::new().run(&arguments);
    let answer: serde_json::Value = serde_json::from_str(seen.result()).unwrap();
    assert_eq!(answer["url"], "https://a.org/b/x?utm_source=y");
    assert_eq!(answer["normal_form"], "https://a.org/b/x");
    let seen = Place::new().run(&[&arguments[..], &["--keep-tracking"]].concat());
    assert!(seen.result().contains("\"normal_form\":\"https://a.org/b/x?utm_source=y\""));
}

#[test]
fn a_refusal_names_its_reason() {
    let place = Place::new();
    let check = |text: &str, expect: &str| {
        let seen = place.run(&["inspect", "url", text]);
        assert_eq!(seen.code, 2);
        assert!(seen.stdout.contains(expect), "{seen:?}");
    };
    check("mailto:a@b.org", "refused      blocked_scheme: ");
    check("http://[::1", "refused      bad_url: ");
    check(&format!("http://a.org/{}", "x".repeat(5_000)), "refused      url_too_long: ");
    check("\u{1b}]0;pwned\u{7}", "as found     \u{fffd}]0;pwned\u{fffd}");
    place.run(&["inspect", "url"]).error(2);
}

#[test]
fn lines_are_answered_one_by_one() {
    let questions = "{\"id\":1,\"url\":\"HTTP://A.org\"}\n\n\
        {\"id\":\"two\",\"url\":\"x#y\",\"base\":\"http://b.org/z/\"}\n\
        {\"id\":3,\"url\":\"x\",\"base\":null}\r\n\
        {\"id\":4,\"url\":\"mailto:x\",\"base\":\"\"}\n\
        {\"id\":5,\"url\":\"///c.org/x\",\"base\":\"http://b.org/\"}\n\
        {\"id\":6,\"url\":\"///c.org/x\",\"base\":\"file:///b\"}";
    let seen = Place::new().run_with(&["inspect", "url", "--jsonl"], &[], questions);
    assert_eq!(
        seen.result(),
        "{\"id\":1,\"url\":\"http://a.org/\",\"href\":\"http://a.org/\"}\n\
         {\"id\":\"two\",\"url\":\"http://b.org/z/x\",\"href\":\"http://b.org/z/x#y\"}\n\
         {\"id\":3,\"url\":null,\"href\":null}\n\
         {\"id\":4,\"url\":null,\"href\":\"mailto:x\"}\n\
         {\"id\":5,\"url\":\"http://c.org/x\",\"href\":\"http://c.org/x\"}\n\
         {\"id\":6,\"url\":null,\"href\":\"file:///c.org/x\"}\n"
    );
}

#[test]
fn bad_lines_are_reported_and_passed_over() {
    let long = format!("{{\"id\":3,\"url\":\"{}\"}}", "x".repeat(5 << 20));
    let questions =
        format!("nonsense\n{{\"id\":2}}\n{long}\n{{\"id\":4,\"url\":\"http://a.org/\"}}\n");
    let seen = Place::new().run_with(&["inspect", "url", "--jsonl"], &[], &questions);
    assert_eq!(seen.code, 2);
    assert_eq!(seen.stdout, "{\"id\":4,\"url\":\"http://a.org/\",\"href\":\"http://a.org/\"}\n");
    let starts: Vec<&str> = seen.stderr.lines().map(|line| &line[..24]).collect();
    assert_eq!(
        starts,
        ["error: standard input:1:", "error: standard input:2:", "error: standard input:3:"]
    );
}

#[test]
fn robots_txt_says_by_which_line() {
    let place = Place::new()
        .with("robots.txt", "User-agent: *\nDisallow: /private\nAllow: /private/open\n");
    let seen = place.run(&[
        "inspect",
        "robots",
        "--file",
        "robots.txt",
        "http://a.org/private/x",
        "http://a.org/private/open",
        "http://a.org/",
    ]);
    assert_eq!(
        seen.result(),
        "disallowed  http://a.org/private/x  (line 2: Disallow: /private)
allowed     http://a.org/private/open  (line 3: Allow: /private/open)
allowed     http://a.org/  (no rule matches)
"
    );
    let question = "{\"id\":\"q\",\"robots\":\"User-agent: x\\nDisallow: /\",\"agent\":\"x\",\"url\":\"http://a.org/\"}";
    let seen = place.run_with(&["inspect", "robots", "--jsonl"], &[], question);
    assert_eq!(seen.result(), "{\"id\":\"q\",\"allowed\":false,\"line\":2}\n");
    assert_eq!(place.run(&["inspect", "robots", "--file", "none.txt", "http://a.org/"]).code, 2);
}

#[test]
fn sitemaps_are_listed() {
    let place = Place::new().with(
        "sitemap.xml",
        "<urlset><url><loc>http://a.org/&amp;x</loc><lastmod>2026-11-15</lastmod></url></urlset>",
    );
    let seen = place.run(&["inspect", "sitemap", "sitemap.xml"]);
    let line: serde_json::Value = serde_json::from_str(seen.result()).unwrap();
    assert_eq!((&line["loc"], &line["kind"]), (&"http://a.org/&x".into(), &"page".into()));
    let place = place.with("page.html", "<!doctype html><p>no sitemap");
    let seen = place.run(&["inspect", "sitemap", "page.html"]);
    assert_eq!((seen.code, seen.stdout.as_str()), (0, ""));
    assert!(seen.stderr.starts_with("warning: "), "{seen:?}");
}
