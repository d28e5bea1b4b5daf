//! `telusur explain`, `version`, `completions`, and the help.

use telusur::message::Code;

use crate::Place;

#[test]
fn every_code_is_explained() {
    let place = Place::new();
    for code in Code::ALL {
        let seen = place.run(&["explain", code.word()]);
        assert!(seen.result().starts_with(&format!("{}: {}", code.word(), code.title())));
    }
    assert!(place.run(&["explain", "timeout_connect"]).result().contains("no connection within"));
    assert!(
        place
            .run(&["explain", "E9999"])
            .error(2)
            .contains("\"E9999\" is no URL, no code and no reason")
    );
}

#[test]
fn version() {
    let version = env!("CARGO_PKG_VERSION");
    let place = Place::new();
    assert_eq!(place.run(&["version"]).result(), format!("telusur {version}\n"));
    assert_eq!(place.run(&["-V"]).result(), format!("telusur {version}\n"));
    let seen = place.run(&["version", "--json"]);
    let answer: serde_json::Value = serde_json::from_str(seen.result()).unwrap();
    assert_eq!(answer["version"], version);
}

#[test]
fn completions() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(Place::new().run(&["completions", shell]).result().contains("max-pages"));
    }
    Place::new().run(&["completions", "nonsense"]).error(2);
}

#[test]
fn help() {
    let place = Place::new();
    let seen = place.run(&["crawl", "--help"]);
    let help = seen.result();
    for heading in ["Start:", "Limits:", "Scope:", "Manners:", "HTTP:", "Keep:", "Output:", "End:"]
    {
        assert!(help.contains(heading), "{heading}");
    }
    let seen = place.run(&[]);
    assert_eq!((seen.code, seen.stdout.as_str()), (2, ""));
    assert!(seen.stderr.contains("Usage: telusur"), "{seen:?}");
}
