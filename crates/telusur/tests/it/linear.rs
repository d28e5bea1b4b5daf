//! `telusur linear`: what is typed, how it is understood, and what comes of it on a site on loopback.

use serde_json::Value;
use telusur_testkit::{FakeWeb, ServedDemo, serve, serve_demo};

use crate::{Place, Seen};

#[track_caller]
fn refused(arguments: &[&str], expect: &str) {
    let all = [&["linear"][..], arguments].concat();
    let seen = Place::new().run(&all);
    let error = seen.error(2);
    assert!(error.contains(expect), "{arguments:?}: {error}");
}

#[test]
fn bad_templates_are_refused_with_the_way_out() {
    let with = |template: &'static str| [template, "--from", "1", "--to", "9"];
    refused(
        &with("https://x/1"),
        "template has no {id}: \"https://x/1\". Write it like 'https://x/{id}' (quotes keep the \
         shell from touching braces)",
    );
    refused(&with("https://x/{id}/{id}"), "more than one {id}");
    refused(&with("https://x/{id"), "brace without its partner");
    refused(&with("https://{id}.x/"), "{id} before its path");
    refused(&with("https://x/{ID}"), "lower case");
    refused(&with("https://x/{id:8}"), "not a zero and a width");
    refused(&with("x/{id}"), "not a usable URL");
    refused(&with("http://127.0.0.1/{id}"), "--allow-private 127.0.0.1/32");
    refused(&["--from", "1", "--to", "9"], "there is no template");
    refused(&["https://x/{id}", "https://x/{id}", "--from", "1", "--to", "9"], "given twice");
}

#[test]
fn bad_bounds_are_refused_with_the_way_out() {
    let with = |more: &[&'static str]| [&["https://x.org/{id}"][..], more].concat();
    refused(&with(&["--from", "9", "--to", "1"]), "--from 1 --to 9");
    refused(&with(&["--from", "-1", "--to", "9"]), "--from \"-1\" is not an id");
    refused(&with(&["--from", "1", "--to", "18446744073709551616"]), "is not an id");
    refused(&with(&["--from", "1"]), "the highest id is unknown and the margin is 0");
    refused(&with(&["--start", "5", "--max", "9"]), "the lowest id is unknown");
    refused(&with(&["--start", "50", "--min", "1", "--max", "9"]), "not between");
    refused(&with(&[]), "the first id is not known");
    refused(&with(&["--from", "1", "--start", "5"]), "cannot be used with");
    refused(&with(&["--ascending", "--descending", "--from", "1", "--to", "2"]), "cannot be used");
    let range = |more: &[&'static str]| with(&[&["--from", "1", "--to", "9"][..], more].concat());
    refused(&range(&["--rate", "asc=0"]), "the rate is 0. Use 1 or more");
    refused(&range(&["--rate", "fast"]), "\"fast\" is not a rate");
    refused(&range(&["--rate", "sideways=2"]), "names no direction and no template");
    refused(&range(&["--rate", "asc=x"]), "is not a whole number");
    refused(&range(&["--step", "0"]), "the step is 0");
    refused(&range(&["--attempts", "0"]), "the number of attempts is 0");
    refused(&range(&["--attempts", "300"]), "Write 1 to 255");
    refused(&range(&["--cooldown", "10"]), "--cooldown \"10\" is not a duration");
    refused(&range(&["--margin", "-3"]), "--margin \"-3\" is not a whole number");
    refused(&range(&["--resume", "some"]), "Write all, new or holes");
    refused(&range(&["--missing", "4o4"]), "--missing: \"4o4\" is not an answer");
    refused(&range(&["--missing", "RX:("]), "not a usable pattern");
    refused(&range(&["--follow=far"]), "is not a scope");
    refused(&range(&["--list-ids", "nowhere"]), "cannot use nowhere");
    refused(&["@sirup"], "there is no job \"sirup\"");
}

#[test]
fn lists_of_ids_are_checked() {
    let place = Place::new().with("bad", "1\n2-\n").with("none", "# nothing\n");
    let run = |name| {
        let arguments = ["linear", "https://x.org/{id}", "--dry-run", "--list-ids", name];
        place.run(&arguments)
    };
    assert!(run("bad").error(2).contains("line 2 of the list is not an id"), "{:?}", run("bad"));
    assert!(run("none").error(2).contains("there is no id in it"));
}

#[test]
fn a_dry_run_shows_how_it_was_understood() {
    let seen = Place::new().run(&[
        "linear",
        "--dry-run",
        "https://x.org/item/{id:04}",
        "--start",
        "50",
        "--min",
        "10",
        "--margin",
        "5",
        "--rate",
        "asc=1,desc=2",
        "--attempts",
        "3",
        "--follow=host",
    ]);
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        seen.result(),
        format!(
            "template      https://x.org/item/{{id:04}}
first page    https://x.org/item/0050
ascending     50 to the margin
descending    49 to 10, rate 2
margin        5 missing in a row
attempts      3, after 10m
resume        the rest, and what failed
links         followed, scope host
limits        none
budgets       10,000 URLs per host, 50,000 per site
page size     1MiB read
delay         1s per host
at once       1 per host, 32 in all
robots.txt    obeyed
user agent    Telusur/{version}
"
        )
    );
}

const JOB: &str = "[[job]]
name = \"shop\"
template = \"https://x.org/item/{id}\"
start = 38401264
min = 38071127
max = 38500000
margin = 50
attempts = 3
cooldown = \"10m\"
rate = { asc = 1, desc = 2 }
schedule = \"daily 02:00\"
";

#[test]
fn a_job_of_the_configuration_is_run_by_its_name() {
    let place = Place::new().with("telusur.toml", JOB);
    let seen = place.run(&["linear", "@shop", "--dry-run", "--max", "38_400_000_0"]);
    let text = seen.result();
    assert!(text.starts_with("name          shop\n"), "{text}");
    assert!(text.contains("ascending     38401264 to 384000000\n"), "{text}");
    assert!(text.contains("descending    38401263 to 38071127, rate 2\n"), "{text}");
    let error = place.run(&["linear", "@shpo", "--dry-run"]);
    assert!(error.error(2).ends_with("there is no job \"shpo\". There are shop"), "{error:?}");
}

#[test]
fn mistakes_in_a_job_are_named_with_their_line() {
    let check = |job: &str, expect: &str| {
        let seen = Place::new().with("telusur.toml", job).run(&["linear", "@a", "--dry-run"]);
        assert_eq!(seen.error(2), format!("error: telusur.toml:{expect}"));
    };
    let head = "[[job]]\nname = \"a\"\n";
    check(
        &format!("{head}template = \"https://x/{{id}}\"\nmargn = 5\n"),
        "4: unknown key \"margn\" in [[job]]. Did you mean \"margin\"?",
    );
    check(
        &format!("{head}template = \"https://x/{{id}}\"\nmin = \"one\"\n"),
        "4: \"min\" in [[job]]: \"one\" is not an id. Write a whole number from 0 to \
         18446744073709551615",
    );
    check(
        head,
        "1: \"template\" in [[job]] is missing. A job has a name and a template: template = \
         \"https://a.org/{id}\"",
    );
}

/// The demo site, served.
pub(crate) struct Site {
    runtime: tokio::runtime::Runtime,
    served: ServedDemo,
}

impl Site {
    pub(crate) fn new() -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let served = runtime.block_on(serve_demo(None)).unwrap();
        Self { runtime, served }
    }

    pub(crate) fn linear(&self, place: &Place, more: &[&str]) -> Seen {
        let template = format!("http://127.0.0.1:{}/item/{{id}}", self.served.port());
        let flags = ["linear", &template, "--delay", "0s", "--allow-private", "127.0.0.0/8"];
        place.run(&[&flags[..], &["--min-free-disk", "0B"], more].concat())
    }

    fn stop(self) {
        self.runtime.block_on(self.served.stop());
    }
}

/// A direction of what `coverage --json` says.
fn leg<'a>(covered: &'a Value, direction: &str) -> &'a Value {
    let mut legs = covered["legs"].as_array().unwrap().iter();
    legs.find(|leg| leg["direction"] == direction).unwrap()
}

fn coverage(place: &Place) -> Value {
    let seen = place.run(&["coverage", "--json"]);
    serde_json::from_str(seen.result()).unwrap()
}

#[test]
fn a_range_with_gaps_is_walked_to_its_end_and_shown() {
    let (site, place) = (Site::new(), Place::new());
    let seen = site.linear(&place, &["--start", "30", "--min", "1", "--margin", "5"]);
    assert_eq!(seen.code, 0, "{seen:?}");
    assert!(seen.stdout.contains("telusur coverage crawl_1"), "{seen:?}");
    let covered = coverage(&place);
    assert_eq!(leg(&covered, "ascending")["state"], "stopped", "{covered}");
    assert_eq!(leg(&covered, "descending")["state"], "complete", "{covered}");
    assert_eq!(covered["counts"]["holes"], 0);
    let runs = covered["runs"].as_array().unwrap();
    let content: u64 = runs
        .iter()
        .filter(|run| run["state"] == "content")
        .map(|run| run["count"].as_u64().unwrap())
        .sum();
    assert_eq!(covered["counts"]["content"], content);
    let text = place.run(&["coverage"]);
    assert!(text.result().contains("stopped at"), "{text:?}");
    let explained =
        place.run(&["explain", &covered["template"].as_str().unwrap().replace("{id}", "999")]);
    assert!(explained.stdout.contains("not asked yet"), "{explained:?}");
    let verified = place.run(&["verify"]);
    assert_eq!(verified.code, 0, "{verified:?}");

    // The same command again has nothing to ask, and says so.
    let again = site.linear(&place, &["--start", "30", "--min", "1", "--margin", "5"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert!(again.stderr.contains("ascending stopped at"), "{again:?}");
    assert_eq!(coverage(&place), covered);
    // A larger margin goes on.
    let further = site.linear(&place, &["--start", "30", "--min", "1", "--margin", "9"]);
    assert!(further.stderr.contains("margin 5 is now 9"), "{further:?}");
    assert!(
        leg(&coverage(&place), "ascending")["stop"].as_u64()
            > leg(&covered, "ascending")["stop"].as_u64()
    );
    let listed = place.run(&["ls"]);
    assert_eq!(listed.stdout.lines().count(), 2, "{listed:?}");
    site.stop();
}

#[test]
fn a_crawl_that_reached_its_budget_of_ids_goes_on_with_a_higher_one() {
    let (site, place) = (Site::new(), Place::new());
    let seen = site.linear(&place, &["--from", "1", "--to", "9", "--max-per-host", "4"]);
    assert!(seen.stdout.contains("host_budget 5 (raise --max-per-host)"), "{seen:?}");
    let shown = place.run(&["show", "crawl_1"]);
    assert!(shown.stdout.contains("host_budget 5 (raise --max-per-host)"), "{shown:?}");
    let refused = place.run(&["resume", "crawl_1"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("telusur resume crawl_1 --max-per-host 8"), "{refused:?}");
    let resumed = place.run(&["resume", "crawl_1", "--max-per-host", "9"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert_eq!(coverage(&place)["counts"]["unknown"], 0);
    let shown: Value =
        serde_json::from_str(place.run(&["show", "crawl_1", "--json"]).result()).unwrap();
    assert_eq!(
        (&shown["finish_reason"], &shown["stats"]["left_out"]),
        (&"drained".into(), &Value::Array(vec![]))
    );
    site.stop();
}

#[test]
fn coverage_is_for_linear_crawls() {
    let seen = Place::new().run(&["coverage"]);
    seen.error(2);
}

#[test]
fn a_running_crawl_is_asked_from_another_terminal_and_goes_on_after_a_kill() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let spec = "hosts=1,pages=300,links=1,bytes=500,gaps=0.3,delay=5..15".parse().unwrap();
    let web = FakeWeb::new(spec).unwrap();
    let served = runtime.block_on(serve(&web, None)).unwrap();
    let template = format!("http://{}/item/{{id}}", served.web().host_name(0));
    let place = Place::new();
    let arguments = [
        "linear",
        &template,
        "--from",
        "0",
        "--to",
        "399",
        "--delay",
        "0s",
        "--per-host",
        "2",
        "--min-free-disk",
        "0B",
        "--allow-private",
        "127.0.0.0/8",
    ];
    let mut command = place.command(&arguments);
    let quiet = std::process::Stdio::null;
    let mut child = command.stdout(quiet()).stderr(quiet()).spawn().unwrap();
    let content = || -> Option<u64> {
        let seen = place.run(&["coverage", "--json"]);
        let covered: Value = serde_json::from_str(&seen.stdout).ok()?;
        covered["counts"]["content"].as_u64()
    };
    while content().is_none_or(|content| content < 5) {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(place.run(&["verify"]).code, 0);
    let again = place.run(&arguments);
    assert!(again.stderr.contains("goes on"), "{again:?}");
    let exist = (0..300).filter(|id| web.answer(0, &format!("/item/{id}")).status == 200).count();
    assert_eq!(content(), Some(exist as u64));
    assert_eq!(coverage(&place)["counts"]["missing"], 400 - exist);
    runtime.block_on(served.stop());
}
