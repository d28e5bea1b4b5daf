//! Configuration files, `.env`, and `telusur config`.

use std::process::Command;

use crate::{DRY_RUN, Place};

#[track_caller]
fn refused(file: &str, text: impl AsRef<[u8]>, expect: &str) {
    let seen = Place::new().with(file, text).run(&DRY_RUN);
    let error = seen.error(2);
    assert!(error.contains(expect), "{error}");
}

#[test]
fn unknown_keys() {
    refused(
        "telusur.toml",
        "[limits]\nmax_page = 1",
        "error: telusur.toml:2: unknown key \"max_page\" in [limits]. Did you mean \"max_pages\"?",
    );
}

#[test]
fn files_that_cannot_be_read() {
    refused("telusur.toml", "[limits\n", "telusur.toml:1: ");
    refused("telusur.toml", b"\n\xff\xfe", "telusur.toml: line 2 is not UTF-8");
    refused("telusur.toml", "#".repeat((1 << 20) + 1), "telusur.toml: it is larger than 1 MiB");
    refused(".env", b"\xff", ".env: line 1 is not UTF-8");
    refused(".env", "hello", "./.env:1: \"hello\" is not NAME=value");
}

#[test]
fn byte_order_marks_and_carriage_returns_are_fine() {
    let place = Place::new().with("telusur.toml", "\u{feff}[manners]\r\ndelay = \"3s\"\r\n");
    assert!(place.run(&DRY_RUN).result().contains("delay         3s per host"));
}

#[test]
fn a_directory_or_a_fifo_is_not_read() {
    let place = Place::new();
    std::fs::create_dir(place.path().join("telusur.toml")).unwrap();
    assert!(place.run(&DRY_RUN).error(2).contains("telusur.toml: it is a directory"));

    let place = Place::new();
    let made = Command::new("mkfifo").arg(place.path().join("telusur.toml")).status().unwrap();
    assert!(made.success());
    assert!(place.run(&DRY_RUN).error(2).contains("telusur.toml: it is not a regular file"));
}

#[test]
fn a_directory_named_dot_env_is_somebody_elses() {
    let place = Place::new();
    std::fs::create_dir(place.path().join(".env")).unwrap();
    place.run(&DRY_RUN).result();
}

#[test]
fn a_named_file_must_exist() {
    let place = Place::new();
    let seen = place.run(&[&DRY_RUN[..], &["-c", "x.toml"]].concat());
    assert!(seen.error(2).contains("cannot read x.toml: there is no such file"));
    let seen = place.run_with(&DRY_RUN, &[("TELUSUR_CONFIG", "y.toml")], "");
    assert!(seen.error(2).contains("cannot read y.toml"));
}

#[test]
fn no_config_reads_nothing() {
    let place = Place::new().with("telusur.toml", "nonsense").with(".env", "nonsense");
    place.run(&DRY_RUN).error(2);
    place.run(&[&DRY_RUN[..], &["--no-config"]].concat()).result();
    place.run(&[&DRY_RUN[..], &["--no-config", "-c", "x"]].concat()).error(2);
}

#[test]
fn the_nearest_place_wins_and_is_named() {
    let place = Place::new()
        .with("telusur.toml", "[manners]\ndelay = \"2s\"\nper_host = 3\n")
        .with("more.toml", "[manners]\nper_host = 4\n")
        .with(".env", "CRAWLER_MAX_THREADS=5\nTELUSUR_STORE__KEEP=raw\n");
    std::fs::create_dir_all(place.path().join(".config/telusur")).unwrap();
    let place = place.with(".config/telusur/config.toml", "[fetch]\nretries = 7\n");
    let arguments = ["config", "show", "--origin"];
    let variables = [("CRAWL_DELAY_MS", "1500"), ("TELUSUR_STORE__KEEP", "text")];
    let seen = place.run_with(&arguments, &variables, "");
    let lines: Vec<&str> = seen.result().lines().collect();
    let origin = |start: &str| {
        let line = lines.iter().find(|line| line.starts_with(start)).unwrap();
        line.split(" # ").map(str::trim).collect::<Vec<_>>().join(" <- ")
    };
    let home = place.path().join(".config/telusur/config.toml");
    assert_eq!(origin("delay"), "delay = \"1s500ms\" <- environment CRAWL_DELAY_MS");
    assert_eq!(origin("per_host"), "per_host = 3 <- telusur.toml:3");
    assert_eq!(origin("workers"), "workers = 5 <- ./.env:1 CRAWLER_MAX_THREADS");
    assert_eq!(origin("keep = "), "keep = \"text\" <- environment TELUSUR_STORE__KEEP");
    assert_eq!(origin("retries"), format!("retries = 7 <- {}:2", home.display()));
    assert_eq!(origin("timeout"), "timeout = \"30s\" <- default");

    let both = ["config", "show", "--origin", "-c", "telusur.toml", "-c", "more.toml"];
    assert!(place.run(&both).result().contains("per_host = 4"));
    let one = place.run(&["config", "show", "--origin", "-c", "more.toml"]);
    assert!(one.result().contains("retries = 3"), "{one:?}");
}

#[test]
fn names_that_disagree_are_warned_about_once() {
    let variables = [("CRAWL_DELAY_MS", "500"), ("TELUSUR_MANNERS__DELAY", "2s")];
    let seen = Place::new().run_with(&DRY_RUN, &variables, "");
    assert_eq!(seen.code, 0);
    assert_eq!(seen.stderr.matches("warning: ").count(), 1, "{seen:?}");
    assert!(seen.stdout.contains("2s per host"), "{seen:?}");
}

#[test]
fn init_writes_a_file_that_passes_the_check() {
    let place = Place::new();
    let seen = place.run(&["config", "init"]);
    assert_eq!((seen.code, seen.stderr.as_str()), (0, "note: wrote telusur.toml\n"));
    assert_eq!(place.run(&["config", "check"]).result(), "telusur.toml: ok\n");
    let seen = place.run(&["config", "check", "--json"]);
    assert_eq!(seen.result(), "[{\"ok\":true,\"path\":\"telusur.toml\"}]\n");
    assert!(place.run(&["config", "init"]).error(2).contains("telusur.toml exists already"));
    assert_eq!(place.run(&["config", "init", "-O"]).code, 0);
    let printed = place.run(&["config", "init", "-"]);
    let written = std::fs::read_to_string(place.path().join("telusur.toml")).unwrap();
    assert_eq!(printed.result(), written);
}

#[test]
fn check_reports_every_mistake() {
    let place = Place::new().with("telusur.toml", "x = 1\n[manners]\ndelay = 5\nworkers = -1\n");
    let seen = place.run(&["config", "check"]);
    assert_eq!(seen.code, 2);
    let places: Vec<&str> = seen.stderr.lines().map(|line| &line[..21]).collect();
    assert_eq!(places, ["error: telusur.toml:1", "error: telusur.toml:3", "error: telusur.toml:4"]);
    assert!(place.run(&["config", "check", "no.toml"]).error(2).contains("no.toml"));
    let seen = Place::new().run_with(&["config", "check"], &[("CRAWL_DELAY_MS", "x")], "");
    assert!(seen.error(2).contains("CRAWL_DELAY_MS"));
}

#[test]
fn path_lists_the_files() {
    let place = Place::new().with("telusur.toml", "");
    let seen = place.run(&["config", "path"]);
    let home = place.path().join(".config/telusur/config.toml");
    let expect =
        format!("not there  {}\nread       telusur.toml\nnot there  .env\n", home.display());
    assert_eq!(seen.result(), expect);
}

#[test]
fn show_speaks_json() {
    let seen = Place::new().run(&["config", "show", "--json"]);
    let rows: Vec<serde_json::Value> = serde_json::from_str(seen.result()).unwrap();
    let delay = rows.iter().find(|row| row["key"] == "manners.delay").unwrap();
    assert_eq!(delay["value"], "1s");
    assert_eq!(delay["origin"], "default");
}

#[test]
fn a_home_is_not_needed() {
    let mut command = Place::new().command(&DRY_RUN);
    command.env_remove("HOME");
    // The directory is gone with its `Place`, so run where something exists.
    command.current_dir("/");
    assert_eq!(crate::finish(command, "").code, 0);
}

/// It once ended in a panic.
#[test]
fn without_a_home_a_data_directory_must_be_named() {
    let place = Place::new();
    let seen = place.run_with(&["ls"], &[("HOME", "")], "");
    assert!(seen.error(2).contains("--data DIR"), "{seen:?}");
    let seen = place.run_with(&["demo", "--data", "d", "-q"], &[("HOME", "")], "");
    assert_eq!(seen.code, 0, "{seen:?}");
}
