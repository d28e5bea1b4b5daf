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
