//! An indexer beside the engine: it has the index and no store. Here both are in one process, with the
//! same socket, files and locks between them as between two.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use telusur_engine::control::{
    self, Control, CrawlDone, Operation, RemoveCrawl, Search, SocketGuard, Verify,
};
use telusur_engine::json::HitView;
use telusur_engine::{
    Engine, FollowCounts, Indexer, LeaseEnd, NotLeased, StopFollowing, lease_index,
};
use telusur_index::{DocKey, IndexLimits, SearchIndex};
use telusur_ledger::{CrawlStore, PageStore, Store};
use telusur_model::CrawlNo;
use telusur_store_embedded::EmbeddedStore;
use telusur_testkit::FakeWebSpec;

use crate::bench::{Bench, accept, crawl, finished, in_process};

const PAGES: u64 = 300;

/// A directory with an owner that runs crawls, and a socket to ask it.
struct Owner {
    bench: Bench,
    store: Arc<EmbeddedStore>,
    index: Arc<SearchIndex>,
    engine: Engine,
    socket: SocketGuard,
}

fn web() -> (Bench, telusur_model::Crawl) {
    let spec = FakeWebSpec {
        hosts: 3,
        pages: telusur_testkit::fake_web::PageCounts::Even { total: PAGES },
        links_per_page: 8,
        page_bytes: 2_000,
        ..FakeWebSpec::default()
    };
    let (bench, web) = Bench::of_web(spec);
    (bench, crawl(web.seeds()))
}

impl Owner {
    fn start() -> (Self, telusur_model::Crawl) {
        let (bench, crawl) = web();
        let (store, index) = (bench.open(), Arc::new(open_index(&bench)));
        let engine = bench.engine_with_index(&store, &index);
        let control = Control::of_engine(Arc::clone(&store) as Arc<dyn Store>, engine.handle())
            .with_index(Some(Arc::clone(&index)));
        let socket = control::serve(&socket_of(&bench), control).unwrap();
        (Self { bench, store, index, engine, socket }, crawl)
    }

    fn socket(&self) -> PathBuf {
        socket_of(&self.bench)
    }

    async fn crawl(&self, crawl: telusur_model::Crawl) -> CrawlNo {
        let no = accept(&self.store, crawl);
        self.engine.handle().run(no).await.unwrap();
        finished(&self.engine, no).await;
        no
    }

    /// Waits until searches here see all that is stored.
    async fn searchable(&self, crawl: CrawlNo) {
        let last = last_seq(&self.store, crawl);
        while self.index.applied_upto() < last {
            tokio::task::yield_now().await;
        }
    }

    fn follow(&self) -> FollowerThread {
        FollowerThread::start(self)
    }

    /// Asks as another process does.
    async fn ask<O>(&self, operation: O) -> O::Reply
    where
        O: Operation<Reply: Send> + Send + 'static,
    {
        let socket = self.socket();
        let asked = move || control::ask(&socket, &operation, &mut |_| true).unwrap();
        let replied = tokio::task::spawn_blocking(asked).await.unwrap();
        replied.unwrap().expect("every item was wanted")
    }

    /// Ends the engine in order and checks that the index holds what is stored.
    async fn end(self, crawl: CrawlNo) {
        drop(self.socket);
        self.engine.shutdown().await.unwrap();
        assert_eq!(keys(&self.index), stored_keys(&self.store, crawl));
        self.index.validate().unwrap();
    }
}

fn socket_of(bench: &Bench) -> PathBuf {
    bench.dir.path().join("control.sock")
}

fn open_index(bench: &Bench) -> SearchIndex {
    SearchIndex::open(&bench.dir.path().join("index"), IndexLimits::default()).unwrap()
}

fn last_seq(store: &EmbeddedStore, crawl: CrawlNo) -> u64 {
    store.pages_after(crawl, 0, 10_000).unwrap().last().map_or(0, |page| page.seq)
}

/// The keys of all documents, each as often as it is there.
fn keys(index: &SearchIndex) -> Vec<DocKey> {
    let mut keys = Vec::new();
    index.each_key(&mut |key| keys.push(key)).unwrap();
    keys.sort_unstable();
    keys
}

fn stored_keys(store: &EmbeddedStore, crawl: CrawlNo) -> Vec<DocKey> {
    let pages = store.pages_after(crawl, 0, 10_000).unwrap();
    let ok = pages.iter().filter(|page| page.is_ok());
    let mut keys: Vec<_> = ok.map(|page| DocKey { url: page.key, crawl }).collect();
    keys.sort_unstable();
    assert!(!keys.is_empty());
    keys
}

/// An indexer in a thread.
struct FollowerThread {
    thread: JoinHandle<LeaseEnd>,
    stop: StopFollowing,
    counts: Arc<FollowCounts>,
}

impl FollowerThread {
    /// Comes back when the index is leased.
    fn start(owner: &Owner) -> Self {
        let (counts, stop) = (Arc::<FollowCounts>::default(), StopFollowing::default());
        let leased = lease_index(&owner.socket(), &stop).unwrap();
        let index = open_index(&owner.bench);
        let its_counts = Arc::clone(&counts);
        let thread = std::thread::spawn(move || leased.follow(index, &its_counts).unwrap());
        Self { thread, stop, counts }
    }

    fn stop(self) -> (LeaseEnd, u64) {
        self.stop.stop();
        self.ended()
    }

    fn ended(self) -> (LeaseEnd, u64) {
        let ended = self.thread.join().unwrap();
        (ended, self.counts.indexed.load(Ordering::Acquire))
    }
}

/// Asks to follow with nothing but a socket, and reads the first answer.
fn raw_lease(owner: &Owner) -> BufReader<UnixStream> {
    let mut stream = UnixStream::connect(owner.socket()).unwrap();
    writeln!(stream, "{{\"lease_index\":{{\"format\":{}}}}}", telusur_index::FORMAT).unwrap();
    let mut stream = BufReader::new(stream);
    assert_eq!(line(&mut stream), "{\"reply\":{}}\n");
    stream
}

fn line(stream: &mut BufReader<UnixStream>) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    line
}

/// Whether nothing more comes: the end, or a reset if the owner left words of ours unread.
fn is_hung_up(stream: &mut BufReader<UnixStream>) -> bool {
    match stream.fill_buf() {
        Ok(rest) => rest.is_empty(),
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

fn found(store: &Arc<EmbeddedStore>, index: &Arc<SearchIndex>, text: &str) -> Vec<HitView> {
    let control = Control::of_store(Arc::clone(store) as Arc<dyn Store>, in_process())
        .with_index(Some(index.clone()));
    let search = Search { text: text.to_owned(), limit: 50, ..Search::default() };
    let (_, reply) = control.collect(&search).unwrap();
    reply.hits
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_makes_the_same_index_as_the_owner_would() {
    let (owner, crawl) = Owner::start();
    let follower = owner.follow();
    let no = owner.crawl(crawl).await;
    owner.searchable(no).await;
    assert_eq!(keys(&owner.index), stored_keys(&owner.store, no), "searches of the owner see it");
    let (ended, indexed) = follower.stop();
    assert_eq!(ended, LeaseEnd::Stopped);
    assert_eq!(indexed as usize, owner.store.pages_after(no, 0, 10_000).unwrap().len());
    let (store, index) = (Arc::clone(&owner.store), Arc::clone(&owner.index));
    let other_dir = tempfile::tempdir().unwrap();
    let other = SearchIndex::open(other_dir.path(), IndexLimits::default()).unwrap();
    let indexer = Indexer::new(Arc::clone(&store) as Arc<dyn Store>, Arc::new(other), in_process());
    indexer.catch_up(&mut |_| {}).unwrap();
    indexer.digest_links().unwrap();
    drop(owner.socket);
    owner.engine.shutdown().await.unwrap();
    let _bench = owner.bench;
    let page = &store.pages_after(no, 0, 10_000).unwrap()[7];
    let word = page.url.as_str().rsplit('/').next().unwrap().to_owned();
    for text in ["page", "the", word.as_str()] {
        assert_eq!(found(&store, &index, text), found(&store, indexer.index(), text), "{text}");
    }
    assert!(!found(&store, &index, "page").is_empty());
    assert_eq!(keys(&index), keys(indexer.index()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_hears_of_pages_by_id_and_url() {
    let (owner, crawl) = Owner::start();
    let mut lease = raw_lease(&owner);
    let no = owner.crawl(crawl).await;
    let told: serde_json::Value = serde_json::from_str(&line(&mut lease)).unwrap();
    let page = owner.store.page(no, told["stored"]["page"].as_u64().unwrap()).unwrap().unwrap();
    assert_eq!(told["stored"]["url"], page.url.as_str());
    // It never took a page, and nothing is missing when it is gone.
    drop(lease);
    owner.end(no).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_that_comes_late_is_told_nothing_and_misses_nothing() {
    let (bench, crawl) = web();
    let (store, _) = bench.crawl(crawl).await;
    let index = Arc::new(open_index(&bench));
    // The owner has an engine that never sees a page.
    let engine = bench.engine_with_index(&store, &index);
    let control = Control::of_engine(Arc::clone(&store) as Arc<dyn Store>, engine.handle())
        .with_index(Some(Arc::clone(&index)));
    let socket = control::serve(&socket_of(&bench), control).unwrap();
    let owner = Owner { bench, store, index, engine, socket };
    let follower = owner.follow();
    owner.searchable(CrawlNo(1)).await;
    assert_eq!(follower.stop().0, LeaseEnd::Stopped);
    owner.end(CrawlNo(1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_follower_is_refused_by_name() {
    let (owner, _) = Owner::start();
    let follower = owner.follow();
    let refused = lease_index(&owner.socket(), &StopFollowing::default()).err();
    let Some(NotLeased::Refused(why)) = refused else { panic!("{refused:?}") };
    let pid = std::process::id();
    assert_eq!(why, format!("an indexer (pid {pid}) follows this directory already; end it first"));
    assert_eq!(follower.stop().0, LeaseEnd::Stopped);
    // As soon as the index is back, the next may have it.
    while lease_index(&owner.socket(), &StopFollowing::default()).is_err() {}
    drop(owner.socket);
    owner.engine.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_indexer_of_another_format_is_refused() {
    let (owner, _) = Owner::start();
    let mut stream = UnixStream::connect(owner.socket()).unwrap();
    writeln!(stream, "{{\"lease_index\":{{\"format\":999}}}}").unwrap();
    let answer = line(&mut BufReader::new(stream));
    assert!(answer.contains("wrong_state") && answer.contains("format 999"), "{answer}");
    assert_eq!(owner.follow().stop().0, LeaseEnd::Stopped);
    drop(owner.socket);
    owner.engine.shutdown().await.unwrap();
}

/// Each of these ends the lease and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_holders_lose_the_index() {
    let (owner, crawl) = Owner::start();
    let endless = "x".repeat(100_000);
    let hostile = [
        "nonsense\n",
        "{\"next\":{\"after\":-1,\"pages_max\":10}}\n",
        "{\"next\":{\"after\":0,\"pages_max\":99999999999999999999999}}\n",
        "{\"run\":{\"operation\":\"remove_crawl\",\"request\":{\"crawl\":\"last\"}}}\n",
        "\u{0}\u{0}\u{0}\u{0}\n",
        endless.as_str(),
    ];
    for text in hostile {
        let mut lease = raw_lease(&owner);
        // The owner may have hung up before the last byte.
        let _ = lease.get_mut().write_all(text.as_bytes());
        assert!(is_hung_up(&mut lease), "{text:.40}");
    }
    // More pages than are given at once, and a place beyond all: a bounded answer.
    let mut lease = raw_lease(&owner);
    writeln!(
        lease.get_mut(),
        "{{\"next\":{{\"after\":{},\"pages_max\":{}}}}}",
        u64::MAX,
        usize::MAX
    )
    .unwrap();
    assert_eq!(line(&mut lease), format!("{{\"batch_end\":{{\"upto\":{}}}}}\n", u64::MAX));
    drop(lease);
    let no = owner.crawl(crawl).await;
    owner.end(no).await;
}

/// The holder hears of it in the order of changes, and goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_follower_takes_out_a_removed_crawl() {
    let (owner, crawl) = Owner::start();
    let follower = owner.follow();
    let no = owner.crawl(crawl.clone()).await;
    owner.searchable(no).await;
    let id = owner.store.crawl(no).unwrap().unwrap().crawl.id.to_string();
    let removed = owner.ask(RemoveCrawl { crawl: "last".into() }).await;
    assert_eq!(removed, CrawlDone { crawl: id });
    assert_eq!(keys(&owner.index), [], "nothing of it is found once the removal is confirmed");
    let no = owner.crawl(crawl).await;
    owner.searchable(no).await;
    assert_eq!(follower.stop().0, LeaseEnd::Stopped);
    owner.end(no).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_index_is_called_back_to_be_verified() {
    let (owner, crawl) = Owner::start();
    let follower = owner.follow();
    let no = owner.crawl(crawl.clone()).await;
    owner.searchable(no).await;
    let report = owner.ask(Verify {}).await;
    assert!(report.holds(), "{report:#?}");
    assert_eq!(follower.ended().0, LeaseEnd::Recalled);
    // Afterwards it may be had again.
    let follower = owner.follow();
    assert_eq!(follower.stop().0, LeaseEnd::Stopped);
    owner.end(no).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_ends_calls_the_index_back_and_finishes_it() {
    let (owner, crawl) = Owner::start();
    let follower = owner.follow();
    let no = owner.crawl(crawl).await;
    owner.end(no).await;
    assert_eq!(follower.ended().0, LeaseEnd::Recalled);
}

/// A holder that is killed leaves its index as it is, and the files that it wrote since.
#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_was_never_given_back_in_order_is_taken_back() {
    let (owner, crawl) = Owner::start();
    let mut lease = raw_lease(&owner);
    let leased = open_index(&owner.bench);
    let no = owner.crawl(crawl).await;
    // It has taken in what it will never commit.
    writeln!(lease.get_mut(), "{{\"next\":{{\"after\":0,\"pages_max\":250}}}}").unwrap();
    loop {
        let line: serde_json::Value = serde_json::from_str(&line(&mut lease)).unwrap();
        if line.get("batch_end").is_some() {
            break;
        }
    }
    // The connection is closed first, and the files are freed later.
    drop(lease);
    drop(leased);
    owner.searchable(no).await;
    assert_eq!(keys(&owner.index), stored_keys(&owner.store, no));
    owner.end(no).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_socket_is_for_its_owner_and_a_stale_one_is_nobody() {
    let (owner, _) = Owner::start();
    let socket = owner.socket();
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let Owner { engine, socket: guard, bench, .. } = owner;
    drop(guard);
    let nobody = lease_index(&socket, &StopFollowing::default()).err();
    assert!(matches!(nobody, Some(NotLeased::NoOwner(_))), "{nobody:?}");
    // What a killed owner leaves behind.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let nobody = lease_index(&socket, &StopFollowing::default()).err();
    assert!(matches!(nobody, Some(NotLeased::NoOwner(_))), "{nobody:?}");
    engine.shutdown().await.unwrap();
    drop(bench);
}
