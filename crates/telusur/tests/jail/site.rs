//! A site on loopback with one good page and some that break a parser that obeys them.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use crate::BREAKING;

/// What the good page says.
pub(crate) const GOOD: &str = "A page about lighthouses";

pub(crate) struct Site {
    address: SocketAddr,
}

impl Site {
    /// Serves until the tests are over.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || answer(&stream));
            }
        });
        Self { address }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// Answers one request. Whoever hangs up has had enough.
fn answer(mut stream: &TcpStream) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    lines.find(String::is_empty);
    let path = first.split(' ').nth(1).unwrap_or_default();
    let (status, body) = match path {
        "/robots.txt" | "/sitemap.xml" => ("404 Not Found", String::new()),
        "/" => {
            let links = BREAKING.map(|path| format!("<a href={path}>x</a>")).concat();
            ("200 OK", format!("<title>Home</title><p>Start.{links}<a href=/good>good</a>"))
        }
        path => ("200 OK", format!("<!doctype html><title>{path}</title><h1>Head</h1><p>{GOOD}.")),
    };
    let length = body.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{body}"
    );
}
