//! The routes of the service: one process answers them all, and lives.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::site::{GOOD, Site};
use crate::{BREAKING, Place};

struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(place: &Place) -> Self {
        let mut command = place.command(&[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--min-free-disk",
            "0B",
            "--delay",
            "0s",
            "--allow-private",
            "127.0.0.0/8",
        ]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").unwrap();
        Self { child, address: address.trim_end_matches('/').to_owned() }
    }

    /// Status and body of an answer.
    #[expect(clippy::disallowed_methods, reason = "the test itself is the client, on loopback")]
    fn ask(&self, method: &str, target: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (host, length) = (&self.address, body.len());
        write!(
            stream,
            "{method} {target} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }

    /// An operation as the terminal asks for it.
    #[track_caller]
    fn run(&self, operation: &str, request: &str) -> String {
        let (status, answer) =
            self.ask("POST", &format!("/api/v1/operations/{operation}"), request);
        assert_eq!(status, 200, "{operation}: {answer}");
        answer
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn every_route_says_so() {
    let site = Site::start();
    let place = Place::crawled(&site);
    let served = Served::start(&place);
    for path in BREAKING {
        let url = site.url(path);
        let named = format!("{{\"url\":\"{url}\"}}");
        let (status, fetched) = served.ask("POST", "/api/v1/fetch", &named);
        assert_eq!(status, 200, "{fetched}");
        assert!(fetched.contains("\"parse_failed\":\"the parser"), "{fetched}");
        let (status, map) = served.ask("POST", "/api/v1/map", &named);
        assert_eq!(status, 200, "{map}");
        assert!(map.contains("parse_failed"), "{map}");
        let wanted = format!("{{\"url\":\"{url}\",\"crawl\":null,\"with_body\":false}}");
        let page = served.run("read_page", &wanted);
        assert!(page.contains("\"parse_failed\":\"the parser"), "{page}");
        if path == "/loop" {
            continue; // It takes seconds each time, and the way is the same.
        }
        // The terminal asks the process that owns the directory.
        let open = ["--allow-private", "127.0.0.0/8", "--delay", "0s"];
        let seen = place.run(&[&["fetch", &url][..], &open].concat());
        assert!(seen.code == 2 && seen.stderr.contains("parse_failed"), "{seen:?}");
    }
    // A pool whose children die again and again waits longer before each start: each of these has its own.
    drop(served);
    for (operation, request) in [
        ("export_pages", r#"{"crawl":"last"}"#),
        ("export_content", r#"{"crawl":"last","kind":"headings"}"#),
        ("verify", "{}"),
        ("reparse_crawl", r#"{"crawl":"last","free_bytes_min":0}"#),
    ] {
        let served = Served::start(&place);
        let pid = served.child.id();
        let answer = served.run(operation, request);
        assert_eq!(answer.matches("parse_failed").count(), 3, "{operation}: {answer}");
        assert_eq!((served.ask("GET", "/healthz", "").0, served.child.id()), (200, pid));
    }
    let served = Served::start(&place);
    let pid = served.child.id();
    served.run("rebuild_index", r#"{"min_free_disk":0}"#);
    let good =
        served.ask("POST", "/api/v1/fetch", &format!("{{\"url\":\"{}\"}}", site.url("/good")));
    assert!(good.1.contains(GOOD), "{good:?}");
    let (status, health) = served.ask("GET", "/healthz", "");
    assert_eq!((status, served.child.id()), (200, pid), "{health}");
}
