//! One set of JSON: what `--json` prints of a closed directory is what the API answers, and what `--json`
//! prints while the service runs.

use serde_json::Value;

use crate::Place;
use crate::linear::Site;
use crate::serve::Served;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// JSON lines as one list.
fn lines(text: &str) -> Value {
    text.lines().map(json).collect()
}

/// The items of a list of the API, all of which fit into one answer.
fn items(body: &str) -> Value {
    let body = json(body);
    assert_eq!(body["next_cursor"], Value::Null, "{body}");
    body["items"].clone()
}

/// What a search found, without what differs each time.
fn found(text: &str) -> Value {
    let mut found = json(text);
    found["took_ms"] = Value::Null;
    for hit in found["hits"].as_array_mut().unwrap() {
        hit["score"] = Value::Null;
    }
    found
}

/// One thing that is shown.
struct Shown<'a> {
    /// How the terminal asks for it.
    command: &'a [&'a str],
    of_command: fn(&str) -> Value,
    /// How the API does: parameters, and a path.
    params: &'a [&'a str],
    path: &'a str,
    of_body: fn(&str) -> Value,
}

/// Everything must be the same: on a closed directory, from the API, and through the service.
#[track_caller]
fn check(place: &Place, all: &[Shown<'_>]) {
    let print = |shown: &Shown<'_>| {
        let seen = place.run(&[shown.command, &["--json"]].concat());
        assert_eq!(seen.code, 0, "{:?}: {seen:?}", shown.command);
        (shown.of_command)(&seen.stdout)
    };
    let closed: Vec<Value> = all.iter().map(print).collect();
    let served = Served::start(place, &[]);
    for (shown, closed) in all.iter().zip(closed) {
        let command = shown.command;
        let params: Vec<&str> =
            shown.params.iter().flat_map(|param| ["--data-urlencode", param]).collect();
        let body = served.curl(&[&["-G"][..], &params].concat(), shown.path);
        assert_ne!(closed, Value::Array(Vec::new()), "{command:?} shows nothing");
        assert_eq!((shown.of_body)(&body), closed, "{command:?} and {}", shown.path);
        assert_eq!(print(shown), closed, "{command:?} through the service");
    }
}

#[test]
fn a_crawl_along_links_is_the_same_everywhere() {
    let place = Place::new();
    assert_eq!(place.run(&["demo"]).code, 0);
    let shown = place.shown("demo");
    let start = shown["seeds"][0].as_str().unwrap();
    let url = format!("url={start}");
    let crawl = |command, path| Shown {
        command,
        of_command: lines,
        params: &["limit=1000"],
        path,
        of_body: items,
    };
    check(
        &place,
        &[
            Shown {
                command: &["show", "demo"],
                of_command: json,
                params: &[],
                path: "/api/v1/crawls/crawl_1",
                of_body: json,
            },
            Shown {
                command: &["ls"],
                of_command: json,
                params: &[],
                path: "/api/v1/crawls",
                of_body: items,
            },
            crawl(&["show", "demo", "--errors"], "/api/v1/crawls/crawl_1/errors"),
            crawl(&["show", "demo", "--skipped"], "/api/v1/crawls/crawl_1/skipped"),
            Shown {
                command: &["page", start],
                of_command: json,
                params: &[&url],
                path: "/api/v1/pages",
                of_body: json,
            },
            Shown {
                command: &["explain", start],
                of_command: json,
                params: &[&url],
                path: "/api/v1/explain",
                of_body: json,
            },
            Shown {
                command: &["search", "demo", "--facets", "site,lang,type,year,crawl", "-n", "5"],
                of_command: found,
                params: &["q=demo", "facets=site,lang,type,year,crawl", "limit=5"],
                path: "/api/v1/search",
                of_body: found,
            },
        ],
    );
}

#[test]
fn a_crawl_along_numbers_is_the_same_everywhere() {
    let (site, place) = (Site::new(), Place::new());
    let seen = site.linear(&place, &["--start", "30", "--min", "1", "--margin", "5"]);
    assert_eq!(seen.code, 0, "{seen:?}");
    check(
        &place,
        &[
            Shown {
                command: &["coverage"],
                of_command: lines,
                params: &["limit=1000"],
                path: "/api/v1/crawls/crawl_1/coverage",
                of_body: items,
            },
            Shown {
                command: &["show", "crawl_1"],
                of_command: json,
                params: &[],
                path: "/api/v1/crawls/crawl_1",
                of_body: json,
            },
        ],
    );
}
