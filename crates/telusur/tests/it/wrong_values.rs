//! Every setting, set wrongly in every place where it can be set.

use telusur::settings::{Kind, REGISTRY, Setting};

use crate::{DRY_RUN, Place};

/// Texts that do not fit a kind. Any text is a path or a word of a list.
fn wrong_texts(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Path | Kind::List => &[],
        Kind::Text { .. } => &["a\u{1}b", "caf\u{e9}"],
        Kind::Duration { .. } => &["5", "soon", "1x", "99999h"],
        Kind::Size { .. } => &["big", "1XB", "9999999TiB"],
        Kind::Count { .. } => &["abc", "1.5", "1e3", "99999999999999999999"],
        Kind::Workers { .. } => &["abc", "-1", "1000000"],
        Kind::Rate => &["5", "fast", "1/h"],
        Kind::Switch => &["maybe"],
        Kind::Word(_) => &["nonsense"],
        Kind::Patterns => &["(", "(a{1000}){1000}{1000}"],
        Kind::Hosts => &["a/b"],
        Kind::Openings => &["nonsense", "10.0.0.0/99", "host:0"],
        Kind::Headers => &["nonsense", "Content-Length: 5"],
        Kind::QueryParams => &["sort", "drop="],
        Kind::FailOn => &["sometimes", "ratio=2"],
        Kind::Proxy => &["nonsense", "ftp://a:1", "http://"],
        Kind::Logins => &["nonsense", "a.org=me:secret", "=me:env:X"],
    }
}

fn is_switch_flag(setting: &Setting) -> bool {
    setting.kind == Kind::Switch || setting.flag == Some("--verbose")
}

#[test]
fn flags() {
    let place = Place::new();
    // Flags of the server are not flags of a crawl; its settings are tried in the other places.
    let of_crawls = REGISTRY.iter().filter(|setting| setting.section != "server");
    for setting in of_crawls.filter(|setting| !is_switch_flag(setting)) {
        let Some(flag) = setting.flag.filter(|flag| flag.starts_with("--")) else { continue };
        let command = if setting.section == "server" { &["serve"][..] } else { &DRY_RUN[..] };
        for wrong in wrong_texts(setting.kind) {
            let argument = format!("{flag}={wrong}");
            let seen = place.run(&[command, &[&argument]].concat());
            let error = seen.error(2);
            assert!(error.starts_with(&format!("error: {flag} \"")), "{argument}: {error}");
        }
    }
}

#[test]
fn switches_take_no_value() {
    let place = Place::new();
    for flag in ["--adaptive=1", "--no-adaptive=1", "--keep-tracking=yes", "--verbose=2", "-O=x"] {
        place.run(&[&DRY_RUN[..], &[flag]].concat()).error(2);
    }
}

#[test]
fn variables() {
    let place = Place::new();
    for setting in REGISTRY {
        for wrong in wrong_texts(setting.kind) {
            let name = setting.variable();
            let seen = place.run_with(&DRY_RUN, &[(&name, wrong)], "");
            let error = seen.error(2);
            assert!(error.starts_with(&format!("error: {name}=\"")), "{wrong}: {error}");
        }
    }
}

#[test]
fn short_variables() {
    let place = Place::new();
    let shorts = REGISTRY.iter().filter_map(|setting| setting.short);
    for short in shorts.filter(|short| short.number_of.is_some()) {
        for wrong in ["abc", "-1", "1.5", "10s", "99999999999999999999"] {
            let seen = place.run_with(&DRY_RUN, &[(short.name, wrong)], "");
            let start = format!("error: {}=\"{wrong}\" is not a whole number", short.name);
            assert!(seen.error(2).starts_with(&start), "{seen:?}");
        }
    }
}

#[test]
fn lines_of_dot_env() {
    for setting in REGISTRY {
        for wrong in wrong_texts(setting.kind) {
            let name = setting.variable();
            let place = Place::new().with(".env", format!("# first\n{name}='{wrong}'\n"));
            let seen = place.run(&DRY_RUN);
            let error = seen.error(2);
            assert!(error.contains("(from ./.env line 2)"), "{wrong}: {error}");
        }
    }
}

#[test]
fn keys_of_a_file() {
    for setting in REGISTRY {
        let texts = wrong_texts(setting.kind).iter().map(|text| format!("{text:?}"));
        let texts = texts.map(|text| text.replace("\\u{1}", "\\u0001"));
        for wrong in texts.chain(["1979-05-27".to_owned(), "{ a = 1 }".to_owned()]) {
            let line = format!("\n{} = {wrong}\n", setting.path());
            let place = Place::new().with("telusur.toml", &line);
            let seen = place.run(&DRY_RUN);
            let error = seen.error(2);
            let start = format!("error: telusur.toml:2: \"{}\"", setting.name);
            assert!(error.starts_with(&start), "{line}: {error}");
        }
    }
}

#[test]
fn a_crawl_that_excludes_its_own_start_is_refused() {
    let place = Place::new();
    let seen = place.run(&["crawl", "https://example.org/a.pdf", "--exclude", r"\.pdf$"]);
    assert_eq!(seen.code, 2, "{seen:?}");
    assert!(seen.stderr.contains("excludes its own start"), "{seen:?}");
    assert!(seen.stderr.contains(r"https://example.org/a.pdf"), "{seen:?}");
    let template = ["linear", "https://example.org/item/{id}", "--from", "1", "--to", "9"];
    let seen = place.run(&[&template[..], &["--exclude", "/item/"]].concat());
    assert_eq!(seen.code, 2, "{seen:?}");
    assert!(seen.stderr.contains("excludes its own start"), "{seen:?}");
    let seen = place.run(&[&template[..], &["--exclude", "/item/3$", "--dry-run"]].concat());
    assert_eq!(seen.code, 0, "{seen:?}");
}

#[test]
fn an_import_that_failed_is_imported_again() {
    let place = Place::new().with("d.jsonl", "{\"id\":\"1\",\"text\":\"kopi\"}\nno json\n");
    assert_ne!(place.run(&["import", "d.jsonl"]).code, 0);
    let seen = place.run(&["resume", "last"]);
    assert_ne!(seen.code, 0, "{seen:?}");
    assert!(seen.stderr.contains("did not come to its end"), "{seen:?}");
    assert!(seen.stderr.contains("telusur import FILE"), "{seen:?}");
    let list: serde_json::Value =
        serde_json::from_str(&place.run(&["ls", "--json"]).stdout).unwrap();
    assert_eq!(list[0]["state"], "paused");
    let place = place.with("d.jsonl", "{\"id\":\"1\",\"text\":\"kopi\"}\n");
    assert_eq!(place.run(&["import", "d.jsonl"]).code, 0);
    let list: serde_json::Value =
        serde_json::from_str(&place.run(&["ls", "--json"]).stdout).unwrap();
    assert_eq!((list.as_array().unwrap().len(), &list[0]["state"]), (1, &"completed".into()));
}

#[test]
fn the_budget_of_a_host_is_for_ids_if_it_is_named() {
    let place = Place::new();
    let linear = ["linear", "https://example.org/{id}", "--from", "1", "--to", "9", "--dry-run"];
    let limits = |more: &[&str]| {
        let seen = place.run(&[&linear[..], &["--json"], more].concat());
        let answer: serde_json::Value = serde_json::from_str(&seen.stdout).unwrap();
        answer["limits"]["ids_per_host_max"].clone()
    };
    assert_eq!(limits(&[]), serde_json::Value::Null);
    assert_eq!(limits(&["--max-per-host", "5"]), 5);
}

#[test]
fn a_generated_file_decides_nothing() {
    let place = Place::new();
    assert_eq!(place.run(&["config", "init"]).code, 0);
    let linear = ["linear", "https://example.org/{id}", "--from", "1", "--to", "9", "--dry-run"];
    let limits = |more: &[&str]| {
        let seen = place.run(&[&linear[..], &["--json"], more].concat());
        let answer: serde_json::Value = serde_json::from_str(&seen.stdout).unwrap();
        answer["limits"].clone()
    };
    let untouched = limits(&[]);
    assert_eq!(untouched["ids_per_host_max"], serde_json::Value::Null, "{untouched}");
    assert_eq!(untouched["free_bytes_min"], serde_json::Value::Null, "{untouched}");
    // Who names the default means it.
    assert_eq!(limits(&["--max-per-host", "10000"])["ids_per_host_max"], 10_000);
    let path = place.path().join("telusur.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let changed = text.replace("max_per_host = 10000", "max_per_host = 12");
    assert_ne!(changed, text);
    std::fs::write(&path, changed).unwrap();
    assert_eq!(limits(&[])["ids_per_host_max"], 12);
}
