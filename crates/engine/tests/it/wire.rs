//! What servers do to the request for robots.txt, over real sockets: until the rules are known,
//! nothing else is asked. The numbers in comments are those of the public list of bad inputs.

use std::sync::Arc;

use bytes::Bytes;
use telusur_engine::{Engine, EngineOptions, EngineParts, SystemClock};
use telusur_fetch::{FetchSettings, WebFetcher};
use telusur_ledger::{CrawlRecord, CrawlStore, Store};
use telusur_model::{Clock, CrawlNo, Reason, Seeds};
use telusur_parse_pool::InProcess;
use telusur_store_embedded::EmbeddedStore;
use telusur_testkit::BadServer;
use telusur_testkit::bad_server::Step;

use crate::bench::{accept, finished, known, polite_crawl, url};

struct Ended {
    _dir: tempfile::TempDir,
    store: Arc<EmbeddedStore>,
    record: CrawlRecord,
    server: BadServer,
}

/// Crawls a server that does the same on every connection; `scheme`: how it is asked.
async fn crawl_of(scheme: &str, script: Vec<Step>) -> Ended {
    crawl_with_delay(scheme, script, 0).await
}

async fn crawl_with_delay(scheme: &str, script: Vec<Step>, delay_ms: u64) -> Ended {
    let server = BadServer::start(script).await.unwrap();
    let mut crawl = polite_crawl();
    crawl.politeness.delay_ms = delay_ms;
    crawl.seeds = Seeds::Links(vec![url(&format!("{scheme}://{}/", server.address()))]);
    crawl.fetch.allow_private = vec!["127.0.0.1".to_owned()];
    crawl.politeness.attempts_max = 1;
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(telusur_store_embedded::open(dir.path()).unwrap());
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let fetcher = WebFetcher::new(FetchSettings::default(), Arc::clone(&clock)).unwrap();
    let parts = EngineParts {
        store: Arc::clone(&store) as Arc<dyn Store>,
        fetcher: Arc::new(fetcher),
        clock,
        parser: Arc::new(InProcess::default()),
        index: None,
        followers: Vec::new(),
    };
    let options = EngineOptions { parse_threads: 1, free_bytes_min: 0 };
    let engine = Engine::start(parts, &options).unwrap();
    let no = accept(&store, crawl);
    engine.handle().run(no).await.unwrap();
    finished(&engine, no).await;
    engine.shutdown().await.unwrap();
    let record = store.crawl(CrawlNo(1)).unwrap().unwrap();
    Ended { _dir: dir, store, record, server }
}

/// The server was asked for nothing but robots.txt, and its page failed for this reason.
#[track_caller]
fn assert_barred(ended: &Ended, scheme: &str) {
    assert_eq!(ended.record.stats.failures[&Reason::RobotsUnreachable], 1);
    let asked = ended.server.requests();
    assert!(asked.iter().all(|head| head.starts_with("GET /robots.txt ")), "{asked:?}");
    known(&ended.store, &format!("{scheme}://{}/", ended.server.address()));
}

/// The rules that came before the end of what was read hold.
#[track_caller]
fn assert_forbidden(ended: &Ended) {
    // The page, and the sitemap that is usually there.
    assert_eq!(ended.record.stats.skips[&Reason::RobotsDisallowed], 2);
    assert_eq!(ended.server.requests().len(), 1, "{:?}", ended.server.requests());
}

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n";
const FORBID: &str = "User-agent: *\nDisallow: /\n";

#[tokio::test]
async fn an_endless_robots_txt_is_cut_and_obeyed() {
    // B1.
    let endless = Step::SendForEver(Bytes::from("# and so on\n".repeat(1_000)));
    let script = vec![Step::ReadRequest, Step::send(format!("{HEAD}\r\n{FORBID}")), endless];
    assert_forbidden(&crawl_of("http", script).await);
}

#[tokio::test]
async fn a_robots_txt_that_explodes_is_cut_and_obeyed() {
    // B6.
    use std::io::Write;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(FORBID.as_bytes()).unwrap();
    for _ in 0..1_000 {
        packed.write_all(&[b'\n'; 1 << 16]).unwrap();
    }
    let body = packed.finish().unwrap();
    let head = format!("{HEAD}content-encoding: gzip\r\ncontent-length: {}\r\n\r\n", body.len());
    let script = vec![Step::ReadRequest, Step::send(head), Step::Send(body.into())];
    assert_forbidden(&crawl_of("http", script).await);
}

#[tokio::test]
async fn connections_that_break_bar_the_host() {
    // B2.
    for script in [
        vec![Step::Reset],
        vec![Step::ReadRequest, Step::Close],
        vec![
            Step::ReadRequest,
            Step::send(format!("{HEAD}content-length: 9\r\n\r\n/")),
            Step::Reset,
        ],
        vec![Step::ReadRequest, Step::send("HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n")],
    ] {
        assert_barred(&crawl_of("http", script).await, "http");
    }
}

#[tokio::test]
async fn a_tls_error_bars_the_host() {
    // B2.
    let script = vec![Step::send("SSH-2.0-OpenSSH_9.6\r\n"), Step::Close];
    assert_barred(&crawl_of("https", script).await, "https");
}

/// Every connection is good for one answer; whoever asks a second time is cut off. One attempt is all
/// that a URL has here, so one failure that is charged to it loses the page.
#[tokio::test]
async fn a_server_that_closes_kept_connections_loses_no_page() {
    let links: String = (1..=30).map(|number| format!("<a href=/{number}>x</a>")).collect();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n{links}",
        links.len()
    );
    let timeout = "HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n\r\ntoo late";
    for on_reuse in [Step::Close, Step::Reset, Step::send(timeout), Step::send("stray bytes\r\n")] {
        for delay_ms in [0, 1] {
            let case = format!("{on_reuse:?}, delay {delay_ms}");
            let again = vec![Step::ReadRequest, on_reuse.clone()];
            let script = [vec![Step::ReadRequest, Step::send(answer.clone())], again].concat();
            let ended = crawl_with_delay("http", script, delay_ms).await;
            let stats = &ended.record.stats;
            assert_eq!((stats.ok, stats.statuses.get(&408)), (31, None), "{case}");
            assert!(stats.failures.is_empty(), "{case}: {:?}", stats.failures);
        }
    }
}
