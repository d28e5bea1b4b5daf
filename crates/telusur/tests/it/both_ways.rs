//! A command says the same whether it opens the data directory itself, hands its request to the process that owns it,
//! or asks a service over HTTP.

use std::path::Path;

use telusur_testkit::serve_demo;

use crate::serve::Served;
use crate::{Place, Seen};

/// The ways to one directory.
const WAYS: [Way; 3] = [Way::Closed, Way::Owned, Way::Remote];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Nothing owns it.
    Closed,
    /// A service owns it: commands find its control socket.
    Owned,
    /// The same service, over HTTP with a key.
    Remote,
}

/// What was seen, without what is never the same twice: times, rates, ids and what a process used.
fn told(seen: &Seen) -> (i32, String, String) {
    (seen.code, plain(&seen.stdout), plain(&seen.stderr))
}

fn plain(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("Machine"));
    lines.map(plain_line).collect::<Vec<_>>().join("\n")
}

fn plain_line(line: &str) -> String {
    // `5 pages in 17 ms`, at the end of a search.
    let line = match line.rsplit_once(" in ") {
        Some((before, time)) if time.ends_with(" ms") => before,
        Some(_) | None => line,
    };
    // The size of an index depends on how its pages fell into segments.
    let line = match line.split_once(" documents, ") {
        Some((before, size)) if size.ends_with("of it texts)") => before,
        Some(_) | None => line,
    };
    let words = line.split_inclusive([' ', ',', '{', '}']).map(|word| {
        let end = word.trim_end_matches([' ', ',', '{', '}']);
        let is_name =
            ["took_ms", "_at", "pages_per_s", "cpu_seconds", "memory_bytes", "eta_s", "active_s"]
                .iter()
                .any(|name| end.contains(&format!("{name}\":")) || end.contains("_since\":"));
        let is_time = end.contains("T") && end.contains("Z") && end.contains(':');
        let is_span = ends_in_time(end);
        let is_id = end.contains("c_0");
        if is_name || is_time || is_span || is_id { "_".to_owned() } else { word.to_owned() }
    });
    words.collect()
}

/// `0.3s`, `2m05s`, `14ms`, `21.4/s`: durations and rates.
fn ends_in_time(word: &str) -> bool {
    let word = word.trim_matches(['(', ')', ':', ';', '.']);
    let number =
        word.trim_end_matches("/s").trim_end_matches("ms").trim_end_matches(['s', 'm', 'h']);
    number.len() < word.len()
        && !number.is_empty()
        && number.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'm' | 'h' | 's'))
}

/// Runs a command in one of the ways.
fn run(place: &Place, way: Way, served: Option<&Served>, key: &str, words: &[&str]) -> Seen {
    let address = served.map(|served| format!("http://{}", served.address())).unwrap_or_default();
    match way {
        Way::Closed | Way::Owned => place.run(words),
        Way::Remote => {
            let remote = ["--server", address.as_str(), "--key", key];
            place.run(&[words, &remote[..]].concat())
        }
    }
}

fn key_of(place: &Place) -> String {
    let seen = place.run(&["key", "create", "--scope", "admin"]);
    seen.stdout.lines().next().unwrap_or_default().trim().to_owned()
}

/// Looks at everything, in all ways, on copies of one directory.
#[test]
fn looks_are_the_same_whoever_answers() {
    let place = Place::new();
    assert_eq!(place.run(&["demo", "-q"]).code, 0);
    let key = key_of(&place);
    let start = place.shown("demo")["seeds"][0].as_str().unwrap_or_default().to_owned();
    assert!(start.starts_with("http://127.0.0.1:"), "{start}");
    let host = start.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let host = host.split(':').next().unwrap_or_default();
    let looks: Vec<Vec<&str>> = vec![
        vec!["ls"],
        vec!["ls", "--json"],
        vec!["show", "demo"],
        vec!["show", "demo", "--json"],
        vec!["show", "demo", "--errors"],
        vec!["show", "demo", "--errors", "--json"],
        vec!["show", "demo", "--skipped"],
        vec!["show", "demo", "--skipped", "--json"],
        vec!["show", "nothing"],
        vec!["coverage", "demo-items"],
        vec!["coverage", "demo-items", "--json"],
        vec!["coverage", "demo-items", "--holes"],
        vec!["coverage", "demo"],
        vec!["search", "cloves"],
        vec!["search", "cloves", "--json"],
        vec!["search", "pulau", "lang:id", "--format", "csv"],
        vec!["search", "nothing-has-this-word"],
        vec!["suggest", "clo"],
        vec!["rank", "--json"],
        vec!["explain", start.as_str()],
        vec!["explain", start.as_str(), "--json"],
        vec!["page", start.as_str()],
        vec!["page", start.as_str(), "--json"],
        vec!["export", "demo", "--format", "urls"],
        vec!["export", "demo", "--kind", "tables", "--format", "csv"],
        vec!["politeness", host],
        vec!["verify"],
        vec!["index", "status", "--json"],
    ];
    let closed: Vec<_> =
        looks.iter().map(|words| told(&run(&place, Way::Closed, None, &key, words))).collect();
    let served = Served::start(&place, &[]);
    for way in [Way::Owned, Way::Remote] {
        for (words, closed) in looks.iter().zip(&closed) {
            let seen = run(&place, way, Some(&served), &key, words);
            assert_eq!(&told(&seen), closed, "{way:?} {words:?}");
        }
    }
}

/// Works on a directory of its own in each way: started, repeated, imported, resumed, retried, changed, removed.
#[test]
fn work_is_the_same_whoever_does_it() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let site = runtime.block_on(serve_demo(None)).unwrap();
    let (origin, allowed) = (site.origin(), format!("127.0.0.1:{}", site.port()));
    let start = format!("{origin}/");
    let items = format!("{origin}/item/{{id}}");
    let polite: &[&str] =
        &["--delay", "0s", "--allow-private", &allowed, "--min-free-disk", "0B", "--workers", "1"];
    let crawl = [
        &["crawl", start.as_str(), "-n", "5", "--depth", "1", "--no-sitemap", "--name", "site"],
        polite,
    ]
    .concat();
    let linear =
        [&["linear", items.as_str(), "--from", "1", "--to", "20", "--name", "items"], polite]
            .concat();
    let wrong = [&["crawl", start.as_str(), "--exclude", "127"], polite].concat();
    let works: Vec<Vec<&str>> = vec![
        crawl,
        vec!["show", "site"],
        vec!["resume", "site"],
        vec!["resume", "site", "-n", "0", "--min-free-disk", "0B"],
        vec!["search", "cloves"],
        vec!["recrawl", "site", "--min-free-disk", "0B"],
        vec!["show", "last", "--changes"],
        linear,
        vec!["coverage", "items"],
        vec!["resume", "items", "--ids", "holes"],
        vec!["resume", "items", "--ids", "nonsense"],
        vec!["retry", "site"],
        wrong,
        vec!["import", "documents.jsonl", "--name", "papers"],
        vec!["import", "bad.jsonl", "--name", "papers"],
        vec!["search", "xylophone"],
        vec!["exclude", "site", "/archive/"],
        vec!["pause", "site"],
        vec!["stop", "site"],
        vec!["index", "rebuild", "--min-free-disk", "0B"],
        vec!["search", "xylophone"],
        vec!["rm", "papers", "--yes"],
        vec!["search", "xylophone"],
        vec!["cancel", "items", "--yes"],
        vec!["ls"],
        vec!["verify"],
    ];
    let mut first: Vec<(i32, String, String)> = Vec::new();
    for way in WAYS {
        let place = Place::new()
            .with(
                "documents.jsonl",
                "{\"id\":\"a\",\"title\":\"Xylophone\",\"text\":\"A xylophone.\"}\n",
            )
            .with("bad.jsonl", "{\"title\":\"no id\"}\n");
        let flags = ["--delay", "0s", "--allow-private", allowed.as_str()];
        let key = match way {
            Way::Closed => String::new(),
            Way::Owned | Way::Remote => key_of_new(&place),
        };
        let served = (way != Way::Closed).then(|| Served::start(&place, &flags));
        for (number, words) in works.iter().enumerate() {
            let seen = told(&run(&place, way, served.as_ref(), &key, words));
            match way {
                Way::Closed => first.push(seen),
                Way::Owned | Way::Remote => assert_eq!(seen, first[number], "{way:?} {words:?}"),
            }
        }
    }
    // It is a comparison that can fail.
    let other = told(&Place::new().run(&["show", "site"]));
    assert_ne!(other, first[1]);
    runtime.block_on(site.stop());
}

/// A key for a directory in which nothing is stored yet.
fn key_of_new(place: &Place) -> String {
    std::fs::create_dir_all(place.path().join(".local/share")).unwrap();
    let served = Served::start(place, &[]);
    let key = key_of(place);
    drop(served);
    assert!(key.starts_with("tlk_"), "{key}");
    assert!(Path::new(&place.path().join(".local/share/telusur/keys.json")).exists());
    key
}

/// What is never the same is taken out, and nothing else.
#[test]
fn plain_lines_keep_what_matters() {
    assert_eq!(plain_line("20 pages in 0.3s (21.4/s), 2 errors"), "20 pages in __ 2 errors");
    assert_eq!(plain_line("5 pages in 17 ms"), "5 pages");
    assert_eq!(plain_line("4 errors"), "4 errors");
    assert_eq!(plain("a\n    Machine   CPU 0.1s\nb"), "a\nb");
}
