//! `telusur serve` and `telusur key`, as a user runs them.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use telusur_testkit::serve_demo;

use crate::Place;
use crate::run::{Web, small_web};

/// A service that runs.
pub(crate) struct Served {
    child: Child,
    address: String,
}

impl Served {
    pub(crate) fn start(place: &Place, arguments: &[&str]) -> Self {
        Self::start_with(place, arguments, &[])
    }

    fn start_with(place: &Place, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut all = vec!["serve", "--listen", "127.0.0.1:0", "--min-free-disk", "0B"];
        all.extend(arguments);
        let mut command = place.command(&all);
        command.envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").unwrap();
        let address = address.trim_end_matches('/').to_owned();
        Self { child, address }
    }

    /// Asks it with curl, which must succeed.
    pub(crate) fn curl(&self, arguments: &[&str], target: &str) -> String {
        let url = format!("http://{}{target}", self.address);
        let output = Command::new("curl").args(["-sS"]).args(arguments).arg(url).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Where it listens: address and port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// What it answers, as JSON.
    pub(crate) fn json(&self, target: &str) -> serde_json::Value {
        serde_json::from_str(&self.curl(&[], target)).unwrap()
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    fn wait(mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap_or(-1)
    }

    /// The counters of a crawl.
    fn stats(&self, id: &str) -> serde_json::Value {
        let crawl = self.curl(&[], &format!("/api/v1/crawls/{id}"));
        let crawl: serde_json::Value = serde_json::from_str(&crawl).unwrap();
        crawl["stats"].clone()
    }

    /// Waits until a job is over.
    fn job(&self, id: &str) -> String {
        loop {
            let job = self.curl(&[], &format!("/crawl/{id}"));
            if !job.contains("\"status\":\"running\"") {
                return job;
            }
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines between the mark and the end of their block in the README.
fn recipes() -> Vec<&'static str> {
    let readme = include_str!("../../../../README.md");
    let block = readme.split("<!-- recipes -->\n```sh\n").nth(1).unwrap();
    block.split("```").next().unwrap().lines().collect()
}

#[test]
fn the_recipes_of_the_readme_work_as_printed() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let site = runtime.block_on(serve_demo(None)).unwrap();
    let place = Place::new();
    let allowed = format!("127.0.0.1:{}", site.port());
    let served = Served::start(&place, &["--delay", "0s", "--allow-private", &allowed]);
    let recipes = recipes();
    assert!(recipes.len() >= 10);
    for (number, recipe) in recipes.into_iter().enumerate() {
        // The same lines, at the address of this test and of a site that can be reached.
        let line = recipe
            .replace("127.0.0.1:8088", &served.address)
            .replace("https://example.com/", &format!("{}/", site.origin()));
        let output =
            Command::new("sh").args(["-c", &line]).current_dir(place.path()).output().unwrap();
        let answer = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && !answer.contains("urn:telusur:problem"),
            "{line}: {output:?}"
        );
        if number == 0 {
            assert_eq!(answer, r#"{"job_id":"crawl_1","status":"started"}"#);
            served.job("crawl_1");
        }
    }
    let exported = std::fs::read_to_string(place.path().join("pages.jsonl")).unwrap();
    assert_eq!(exported.lines().filter(|line| line.contains("\"status\":200")).count(), 10);
    served.signal("-TERM");
    assert_eq!(served.wait(), 143);
    runtime.block_on(site.stop());
}

#[test]
fn a_killed_service_goes_on_where_it_was() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let site = runtime.block_on(serve_demo(None)).unwrap();
    let place = Place::new();
    let allowed = format!("127.0.0.1:{}", site.port());
    let arguments = ["--delay", "20ms", "--allow-private", &allowed];
    let mut served = Served::start(&place, &arguments);
    let body = format!("{{\"url\":\"{}/\",\"max_pages\":40}}", site.origin());
    for _ in 0..2 {
        served.curl(&["-d", &body], "/crawl");
    }
    for pages in [5, 15] {
        let mut shown = [served.stats("crawl_1"), served.stats("crawl_2")];
        while shown.iter().any(|stats| stats["fetched"].as_u64() < Some(pages)) {
            shown = [served.stats("crawl_1"), served.stats("crawl_2")];
        }
        served.signal("-KILL");
        served.wait();
        served = Served::start(&place, &arguments);
        for (crawl, shown) in ["crawl_1", "crawl_2"].into_iter().zip(shown) {
            let after = served.stats(crawl);
            for counter in
                ["fetched", "ok", "discovered", "redirected", "failed", "skipped", "bytes"]
            {
                let (before, now) = (shown[counter].as_u64(), after[counter].as_u64());
                assert!(before.is_some() && now >= before, "{crawl} {counter}: {before:?} {now:?}");
            }
        }
    }
    for crawl in ["crawl_1", "crawl_2"] {
        let job = served.job(crawl);
        assert!(job.contains("\"status\":\"completed\""), "{job}");
        assert_eq!(job.matches("\"crawled_at\"").count(), 40);
    }
    served.signal("-INT");
    assert_eq!(served.wait(), 130);
    assert!(place.run(&["verify"]).code == 0);
    runtime.block_on(site.stop());
}

#[test]
fn other_terminals_reach_the_service() {
    let place = Place::new();
    let served = Served::start(&place, &[]);
    assert_eq!(place.run(&["ls"]).code, 0);
    // What a terminal starts is run by the service, and can be seen there.
    let nowhere =
        ["crawl", "http://127.0.0.1:1/", "--allow-private", "127.0.0.0/8", "--retries", "0"];
    let seen = place.run(&[&nowhere[..], &["--delay", "0s"]].concat());
    assert_eq!(seen.code, 3, "{seen:?}");
    assert!(seen.stderr.contains("cannot fetch http://127.0.0.1:1/"), "{seen:?}");
    assert_eq!(served.json("/api/v1/crawls/crawl_1")["state"], "failed");
    drop(served);
}

#[test]
fn others_cannot_reach_it_without_a_key() {
    let place = Place::new();
    let refused = place.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert!(refused.error(2).contains("without a key"), "{refused:?}");
    let made = place.run(&["key", "create", "--scope", "admin"]);
    assert!(made.code == 0 && made.stdout.starts_with("tlk_"), "{made:?}");
    let mut child = place
        .command(&["serve", "--listen", "0.0.0.0:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port = line.trim().trim_end_matches('/').rsplit(':').next().unwrap().to_owned();
    let served = Served { child, address: format!("127.0.0.1:{port}") };
    assert!(served.curl(&[], "/api/v1/crawls").contains("\"code\":\"unauthorized\""));
    let header = format!("Authorization: Bearer {}", made.stdout.trim());
    assert!(served.curl(&["-H", &header], "/api/v1/crawls").contains("\"items\":[]"));
}

#[test]
fn an_address_in_use_starts_nothing() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let place = Place::new();
    let refused = place.run(&["serve", "--listen", &address]);
    assert!(refused.error(2).contains("cannot listen"), "{refused:?}");
    assert!(!place.path().join(".local/share/telusur").exists(), "no directory was made");
    place.run(&["serve", "--listen", "nonsense"]).error(2);
}

#[test]
fn keys_are_made_listed_and_revoked() {
    let place = Place::new();
    let made = place.run(&["key", "create", "--scope", "read,search", "--name", "ci", "--json"]);
    let made: serde_json::Value = serde_json::from_str(&made.stdout).unwrap();
    let id = made["id"].as_str().unwrap();
    let listed = place.run(&["key", "ls"]);
    assert!(listed.stdout.contains(id) && listed.stdout.contains("search,read"), "{listed:?}");
    assert!(!listed.stdout.contains(made["key"].as_str().unwrap()));
    assert_eq!(place.run(&["key", "revoke", id]).code, 0);
    place.run(&["key", "revoke", id]).error(2);
    place.run(&["key", "create", "--scope", "root"]).error(2);
}

/// A web server that writes down the heads of the requests it gets.
fn listening_site() -> (String, std::sync::mpsc::Receiver<String>) {
    use std::io::Write;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let (heard, heads) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut head = String::new();
            let mut reader = BufReader::new(&stream);
            while reader.read_line(&mut head).is_ok_and(|read| read > 2) {}
            let answer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\
                          Connection: close\r\n\r\nhi";
            let _ = (&stream).write_all(answer.as_bytes());
            if heard.send(head.to_ascii_lowercase()).is_err() {
                return;
            }
        }
    });
    (origin, heads)
}

#[test]
fn secrets_of_the_operator_go_to_their_origin_only() {
    let (own, own_heads) = listening_site();
    let (strange, strange_heads) = listening_site();
    let place = Place::new();
    let config = format!(
        "[fetch]\nheaders = [\"{own}=X-Api-Key: s3cret-a\", \"Accept-Language: id\"]\n\
         basic_auth = [\"{own}=me:env:SITE_PASSWORD\"]\nallow_private = [\"127.0.0.1\"]\n\
         [manners]\ndelay = \"0s\"\n"
    );
    std::fs::write(place.path().join("telusur.toml"), config).unwrap();
    let served = Served::start_with(&place, &[], &[("SITE_PASSWORD", "s3cret-b")]);
    let json = ["-H", "Content-Type: application/json", "-d"];
    for target in ["/api/v1/fetch", "/api/v1/map"] {
        for site in [&own, &strange] {
            let body = format!("{{\"url\":\"{site}/\"}}");
            served.curl(&[json[0], json[1], json[2], &body], target);
        }
    }
    served.signal("-TERM");
    served.wait();
    let (own_heads, strange_heads): (Vec<_>, Vec<_>) =
        (own_heads.try_iter().collect(), strange_heads.try_iter().collect());
    assert!(own_heads.len() >= 4 && strange_heads.len() >= 4);
    for head in &own_heads {
        assert!(head.contains("x-api-key: s3cret-a") && head.contains("authorization: basic "));
    }
    for head in &strange_heads {
        assert!(!head.contains("x-api-key") && !head.contains("authorization"), "{head}");
    }
}

#[test]
fn serve_refuses_secrets_that_name_no_origin() {
    let place = Place::new();
    for (name, value, line) in [
        (
            "TELUSUR_FETCH__HEADERS",
            "Authorization: Bearer s3cret",
            "headers = [\"https://HOST=Authorization: …\"]",
        ),
        ("TELUSUR_FETCH__HEADERS", "X-Key: s3cret", "headers = [\"https://HOST=X-Key: …\"]"),
        (
            "TELUSUR_FETCH__BASIC_AUTH",
            "docs.example=me:env:HOME",
            "basic_auth = [\"https://docs.example=me:env:VARIABLE\"]",
        ),
    ] {
        let mut serve = place.command(&["serve", "--listen", "127.0.0.1:0"]);
        let output = serve.env(name, value).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("names no origin") && said.contains(line), "{said}");
        assert!(!said.contains("s3cret"), "{said}");
    }
}

#[test]
fn flags_of_resume_reach_the_service_that_holds_the_crawl() {
    let place = Place::new();
    // Takes connections and never answers, so that the crawl is still there.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let served = Served::start(&place, &["--delay", "0s", "--allow-private", "127.0.0.0/8"]);
    let body = format!("{{\"url\":\"http://{}/\"}}", silent.local_addr().unwrap());
    served.curl(&["-d", &body], "/crawl");
    let refused = place.run(&["resume", "crawl_1", "--min-free-disk", "1GB"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("telusur serve --min-free-disk"), "{refused:?}");
    let flags = ["--max-per-host", "9", "--patience", "5s", "--max-pages", "7"];
    place.run(&[&["resume", "crawl_1"], &flags[..]].concat());
    let crawl = served.curl(&[], "/api/v1/crawls/crawl_1");
    let crawl: serde_json::Value = serde_json::from_str(&crawl).unwrap();
    let limits = &crawl["limits"];
    assert_eq!(
        (&limits["max_per_host"], &limits["patience_s"]),
        (&9.into(), &5.into()),
        "{limits}"
    );
    assert_eq!(limits["max_pages"], 7, "{limits}");
    served.signal("-KILL");
    served.wait();
}

/// Although loopback is open: a page, or a user, must not make the service ask itself.
#[test]
fn the_service_does_not_crawl_itself() {
    let place = Place::new();
    let served = Served::start(&place, &["--delay", "0s", "--allow-private", "127.0.0.0/8"]);
    let port = served.address.rsplit(':').next().unwrap();
    for host in ["127.0.0.1", "localhost", "0.0.0.0"] {
        let body = format!("{{\"url\":\"http://{host}:{port}/\"}}");
        let answer = served.curl(&["-d", &body], "/crawl");
        assert!(answer.contains("where this service itself listens"), "{host}: {answer}");
    }
}

/// One crawl whose bodies cannot be written once ended the service at every start, with all other crawls.
#[test]
fn a_crawl_that_cannot_be_stored_stops_nobody_else() {
    let place = Place::new();
    let web = Web::new(small_web(1000));
    let data = place.path().join(".local/share/telusur");
    for name in ["good", "bad"] {
        let mut crawl = place.start_crawl(&web, &["--name", name, "--new"]);
        crate::until("a page is stored", || {
            place.shown(name)["stats"]["fetched"].as_u64().is_some_and(|pages| pages > 0)
        });
        crawl.kill().unwrap();
        crawl.wait().unwrap();
    }
    // The segment that it goes on with is a directory, and so is the one after it.
    for segment in ["00000001.warc.zst", "00000002.warc.zst"] {
        let segment = data.join("bodies/crawl_2").join(segment);
        let _ = std::fs::remove_file(&segment);
        std::fs::create_dir(&segment).unwrap();
    }
    let flags = ["--allow-private", "127.0.0.0/8"];
    for _ in 0..2 {
        let served = Served::start(&place, &flags);
        for (name, state) in [("good", "completed"), ("bad", "paused")] {
            crate::until(state, || place.shown(name)["state"] == state);
        }
        let bad: serde_json::Value =
            serde_json::from_str(&served.curl(&[], "/api/v1/crawls/crawl_2")).unwrap();
        assert_eq!(bad["pause_reason"], "engine_stopped", "{bad}");
        let why = bad["pause_detail"].as_str().unwrap();
        assert!(why.contains("write the segments of crawl_2"), "{why}");
        assert!(served.curl(&[], "/readyz").contains("\"ok\""));
        served.signal("-TERM");
        assert_eq!(served.wait(), 143);
    }
    let seen = place.run(&["ls"]);
    assert!(seen.code == 0 && seen.stdout.contains("good") && seen.stdout.contains("bad"));
}

/// A service that is told to reads what is stored while no crawl runs, and tells what it found.
#[test]
fn an_idle_service_finds_damage() {
    let place = Place::new();
    assert_eq!(place.crawl(&Web::new(small_web(20)), &[]).code, 0);
    let segment = place.path().join(".local/share/telusur/bodies/crawl_1/00000001.warc.zst");
    let file = std::fs::OpenOptions::new().write(true).open(&segment).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[0; 8], file.metadata().unwrap().len() / 2)
        .unwrap();
    let served = Served::start(&place, &["--scrub-pace", "1GiB"]);
    let mut stats = serde_json::Value::Null;
    crate::until("everything was read", || {
        stats = serde_json::from_str(&served.curl(&[], "/api/v1/stats")).unwrap();
        stats["scrub"]["ended_at"].is_string()
    });
    assert_eq!(stats["scrub"]["damaged"], 1, "{stats}");
    let found = stats["scrub"]["found"][0].as_str().unwrap();
    assert!(found.contains("bodies/crawl_1/00000001.warc.zst at byte"), "{found}");
    let health = served.curl(&[], "/readyz");
    assert!(health.contains("degraded") && health.contains("1 things"), "{health}");
    assert!(served.curl(&[], "/system").contains("Damage found"));
}
