//! Measures the store with many queued URLs: `cargo run --release --example queued_urls -- DIR N`.
//!
//! Prints the rate, the peak memory and the bytes per URL while N URLs are queued over 1,000 hosts.
//! Run it again on the same directory (after `kill -9`, if you like) to see how long opening takes.

use std::time::Instant;

use telusur_ledger::{
    CrawlStore, Ending, FrontierStore, LinkSource, NewCrawl, QueueRange, Step, VisitOutcome,
};
use telusur_model::{
    Crawl, CrawlId, CrawlNo, Discovery, FetchRules, Keep, Limits, PageUrl, Politeness, Reason,
    Scope, ScopeKind, ScopeRules, Seeds, Timestamp, UrlKeyer, Via,
};

// The allocator of the product: memory figures depend on it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const HOSTS: u64 = 1_000;
const LINKS_PER_VISIT: u64 = 100;
const VISITS_PER_STEP: usize = 64;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().expect("usage: queued_urls DIR N");
    let wanted: u64 =
        arguments.next().expect("usage: queued_urls DIR N").parse().expect("N is a number");
    let opening = Instant::now();
    let store = telusur_store_embedded::open(dir.as_ref()).expect("open the directory");
    let crawls = store.crawls().expect("list crawls");
    let rows = crawls.first().map(|record| store.hosts(record.crawl.no).expect("read hosts").len());
    println!("opened in {:?}, hosts {rows:?}", opening.elapsed());
    let record = match crawls.into_iter().next() {
        Some(record) => record,
        None => store.create(NewCrawl { crawl: crawl(), random: 1 }).expect("create a crawl"),
    };
    println!("queued {}, resident {} MB", record.stats.queued, resident_mb());
    let started = Instant::now();
    let before = record.stats.queued;
    let mut queued = before;
    let mut next = record.stats.discovered;
    let mut host = 0;
    while queued < wanted {
        host = (host + 1) % HOSTS;
        let name = telusur_model::Host::new(&host_name(host));
        let crawl = record.crawl.no;
        let ask =
            QueueRange { crawl, host: &name, later: false, after: None, max: VISITS_PER_STEP };
        let visits = store.queued(ask).expect("read the queue");
        let scope =
            Scope::new(&record.crawl.scope, &[], &record.crawl.limits).expect("no patterns");
        let keyer = UrlKeyer { seed: store.key_seed(), drop_tracking: true };
        let mut step = Step::default();
        for queued in visits {
            let links = (0..LINKS_PER_VISIT)
                .map(|_| {
                    next += 1;
                    let text = format!(
                        "http://{}/section/{}/page-{next}.html",
                        host_name(next % HOSTS),
                        next % 97
                    );
                    let url = PageUrl::parse(&text).expect("a plain URL");
                    Discovery::page(url.clone(), keyer.key(&url), Via::Link)
                })
                .collect();
            step.end(Ending {
                found: LinkSource::of_visit(&queued.visit, Timestamp(1)).judge(links, &scope),
                visit: queued.visit,
                how: VisitOutcome::Failed { reason: Reason::HttpError, detail: String::new() },
                at: Timestamp(1),
                requested_at: None,
                other_schemes: 0,
                id: None,
                packed: None,
            });
        }
        let committed = store.commit(step).expect("commit");
        let at = committed.stats.first().map_or(queued, |(_, stats)| stats.queued);
        if at / 1_000_000 > queued / 1_000_000 {
            let rate = (at - before) as f64 / started.elapsed().as_secs_f64();
            println!(
                "{at} queued, {rate:.0}/s, resident {} MB, peak {} MB",
                resident_mb(),
                peak_mb()
            );
        }
        queued = at;
    }
    println!(
        "{queued} queued in {:?}, resident {} MB, peak {} MB",
        started.elapsed(),
        resident_mb(),
        peak_mb()
    );
    std::process::abort();
}

fn host_name(host: u64) -> String {
    format!("host{host}.test")
}

fn status_kb(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn resident_mb() -> u64 {
    status_kb("VmRSS:") / 1024
}

fn peak_mb() -> u64 {
    status_kb("VmHWM:") / 1024
}

fn crawl() -> Crawl {
    let seeds = (0..HOSTS).map(|host| format!("http://{}/", host_name(host)));
    Crawl {
        no: CrawlNo(0),
        id: CrawlId::new(Timestamp(0), 0),
        name: None,
        created_at: Timestamp(1),
        seeds: Seeds::Links(seeds.map(|url| PageUrl::parse(&url).expect("a plain URL")).collect()),
        scope: ScopeRules { kind: ScopeKind::Any, ..Default::default() },
        politeness: Politeness::default(),
        limits: Limits {
            urls_per_host_max: u64::MAX,
            urls_per_site_max: u64::MAX,
            ..Default::default()
        },
        fetch: FetchRules::default(),
        keep: Keep::None,
        topic: Vec::new(),
        keep_tracking: false,
        sitemaps: Default::default(),
        recrawl_of: None,
        labels: Default::default(),
    }
}
