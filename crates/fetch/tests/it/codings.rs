//! Compressed answers over the wire. The decoders themselves are tested beside their code.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use telusur_model::{FetchOutcome, FetchRules, Reason};

use crate::bench::{Bench, outcome, outcome_on, reason};
use crate::script::{Act, Hold, Read, ScriptedServer, send};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn answer(headers: &str, body: &[u8]) -> Act {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{headers}\r\n\r\n", body.len());
    send([head.as_bytes(), body].concat())
}

#[tokio::test]
async fn wire_bytes_are_counted_before_decoding() {
    let sent = gzip(b"Selamat pagi");
    let wire_bytes = sent.len() as u64;
    let outcome = outcome(vec![Read, answer("Content-Encoding: gzip", &sent)]).await;
    let FetchOutcome::Page(page) = outcome else { panic!("{outcome:?}") };
    assert_eq!((&page.body[..], page.wire_bytes), (&b"Selamat pagi"[..], wire_bytes));
    assert!(!page.truncated);
}

#[tokio::test]
async fn a_bomb_is_cut_and_its_connection_closed() {
    // E1.
    let bomb = gzip(&vec![0; 64 << 20]);
    let script = vec![Read, answer("Content-Encoding: gzip", &bomb), Hold];
    let mut server = ScriptedServer::start(vec![script]).await;
    let page = Bench::new().page(&server.url("/")).await;
    assert_eq!((page.body.len(), page.truncated), (1 << 20, true));
    server.connection_ended().await;
}

#[tokio::test]
async fn a_dripped_bomb_ends_with_the_visit() {
    // E9.
    // Long enough for the head to arrive, also on a busy machine.
    let rules = FetchRules { timeout_ms: 500, ..FetchRules::default() };
    let bomb = gzip(&vec![0; 1 << 20]);
    let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n";
    let script = vec![Read, send(head), send(&bomb[..100]), Hold];
    let outcome = outcome_on(&Bench::with_rules(rules), script).await;
    assert_eq!(reason(&outcome), Reason::TimeoutBody);
}

#[tokio::test]
async fn what_cannot_be_decoded_is_never_a_page() {
    // E4, E5, E6.
    for (headers, expect) in [
        ("Content-Encoding: compress", Reason::UnsupportedEncoding),
        ("Content-Encoding: gzip", Reason::DecodeError),
        ("Content-Encoding: gzip, gzip, gzip", Reason::DecodeError),
    ] {
        let outcome = outcome(vec![Read, answer(headers, b"<html>plain</html>")]).await;
        assert_eq!(reason(&outcome), expect, "{headers}");
    }
    for codings in ["gzip, chunked", "chunked, identity"] {
        let coded =
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {codings}\r\n\r\n1\r\nx\r\n0\r\n\r\n");
        let outcome = outcome(vec![Read, send(coded)]).await;
        assert_eq!(reason(&outcome), Reason::UnsupportedEncoding, "{codings}");
    }
}

#[tokio::test]
async fn a_charset_instead_of_a_coding_costs_no_page() {
    let answer = answer("Content-Encoding: UTF-8", b"<html>plain</html>");
    let outcome = outcome(vec![Read, answer]).await;
    let FetchOutcome::Page(page) = outcome else { panic!("{outcome:?}") };
    assert_eq!((&page.body[..], page.has_unknown_coding()), (&b"<html>plain</html>"[..], true));
}

/// The server keeps the connection open: its end never comes.
#[tokio::test]
async fn a_transfer_coding_that_means_nothing_is_ignored() {
    let coded = |length: &str| {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n";
        send(format!("{head}{length}\r\nplain"))
    };
    for (script, expect) in [
        (vec![Read, coded("Content-Length: 5\r\n"), Hold], "plain"),
        (vec![Read, coded("Content-Length: 3\r\n"), Hold], "pla"),
        (vec![Read, coded("Content-Length: 0\r\n"), Hold], ""),
        (vec![Read, coded("")], "plain"),
    ] {
        let outcome = outcome(script).await;
        let FetchOutcome::Page(page) = outcome else { panic!("{outcome:?}") };
        assert_eq!(page.body, expect);
    }
    let outcome = outcome(vec![Read, coded("Content-Length: 9\r\n")]).await;
    assert_eq!(reason(&outcome), Reason::Truncated);
}

#[tokio::test]
async fn a_thousand_codings() {
    // E4.
    let header = format!("Content-Encoding: {}gzip", "gzip, ".repeat(999));
    let outcome = outcome(vec![Read, answer(&header, b"x")]).await;
    assert_eq!(reason(&outcome), Reason::DecodeError);
}

#[tokio::test]
async fn a_film_that_says_it_is_a_page_is_cut_like_one() {
    // E12: five gigabytes are announced, one megabyte is read. What it is, its bytes tell the reader.
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5368709120\r\n\r\n";
    let film =
        crate::script::send_endlessly([b"\0\0\0\x18ftypmp42".as_slice(), &[0; 988]].concat());
    let mut server = ScriptedServer::start(vec![vec![Read, crate::script::send(head), film]]).await;
    let page = Bench::new().page(&server.url("/")).await;
    assert_eq!((page.body.len(), page.truncated), (1 << 20, true));
    server.connection_ended().await;
}
