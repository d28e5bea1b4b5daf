//! What one GET over a kept connection costs: 20 KB pages from a loopback server in another process.
//!
//!     cargo run --release -p telusur-fetch --example keep_alive_cost
//!
//! Prints the processor time of the fetching process alone, user and system. The server is this same
//! program, started again with the argument `serve`, so that its time is not counted.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use telusur_fetch::{Fetch, FetchOrder, FetchProfile, FetchSettings, WebFetcher};
use telusur_model::{Clock, FetchOutcome, FetchRules, Moment, PageUrl, Timestamp};

const PAGE_BYTES: usize = 20_000;
const VISITS: u32 = 50_000;
/// Visits under way at once, each on a connection of its own.
const AT_ONCE: u32 = 8;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        return Ok(serve()?);
    }
    let mut server =
        Command::new(std::env::current_exe()?).arg("serve").stdout(Stdio::piped()).spawn()?;
    let mut address = String::new();
    BufReader::new(server.stdout.take().ok_or("no output")?).read_line(&mut address)?;
    let measured = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(measure(&format!("http://{}/", address.trim())));
    server.kill()?;
    server.wait()?;
    measured
}

async fn measure(url: &str) -> Result<(), Box<dyn std::error::Error>> {
    let clock = Arc::new(ProcessClock(Instant::now()));
    let fetcher = Arc::new(WebFetcher::new(FetchSettings::default(), clock)?);
    let rules = FetchRules { allow_private: vec!["127.0.0.1".to_owned()], ..Default::default() };
    let profile = Arc::new(FetchProfile::new(&rules, 1 << 20, Vec::new())?);
    let url = PageUrl::parse(url)?;
    let (cpu_before, started) = (cpu_us()?, Instant::now());
    let workers: Vec<_> = (0..AT_ONCE)
        .map(|_| tokio::spawn(visit_many(fetcher.clone(), url.clone(), profile.clone())))
        .collect();
    for worker in workers {
        worker.await?;
    }
    let (cpu, wall) = (cpu_us()? - cpu_before, started.elapsed());
    let each = |us: u64| us as f64 / f64::from(VISITS);
    println!("{:.1} µs of processor time per visit (user and system)", each(cpu));
    println!("{:.0} visits per second", f64::from(VISITS) / wall.as_secs_f64());
    Ok(())
}

async fn visit_many(fetcher: Arc<WebFetcher>, url: PageUrl, profile: Arc<FetchProfile>) {
    for _ in 0..VISITS / AT_ONCE {
        let order = FetchOrder::new(url.clone(), profile.clone());
        let fetched = fetcher.fetch(order).await;
        let is_whole =
            matches!(&fetched.outcome, FetchOutcome::Page(page) if page.body.len() == PAGE_BYTES);
        assert!(is_whole, "{:?}", fetched.outcome);
    }
}

/// Processor time of this process so far, in microseconds.
fn cpu_us() -> Result<u64, Box<dyn std::error::Error>> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Ok(u64::try_from(time.tv_sec)? * 1_000_000 + u64::try_from(time.tv_nsec)? / 1_000)
}

/// Answers every request with the same page, one thread per connection.
fn serve() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nServer: example\r\n\
         Date: Sun, 15 Nov 2026 20:00:00 GMT\r\nCache-Control: max-age=60\r\nVary: Accept\r\n\
         Content-Length: {PAGE_BYTES}\r\n\r\n"
    );
    let answer: Arc<[u8]> = [head.as_bytes(), &[b'x'; PAGE_BYTES]].concat().into();
    for stream in listener.incoming() {
        let (mut stream, answer) = (stream?, Arc::clone(&answer));
        std::thread::spawn(move || {
            let mut request = [0; 4096];
            while stream.read(&mut request).is_ok_and(|read| read > 0) {
                if stream.write_all(&answer).is_err() {
                    return;
                }
            }
        });
    }
    Ok(())
}

struct ProcessClock(Instant);

impl Clock for ProcessClock {
    fn now(&self) -> Moment {
        Moment(u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn wall(&self) -> Timestamp {
        Timestamp(0)
    }
}
