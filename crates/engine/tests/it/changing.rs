//! Settings of a crawl that are changed while it runs.

use std::sync::Arc;

use telusur_engine::{CrawlChange, Engine, EngineOptions, EngineParts};
use telusur_ledger::{CrawlStore, Store};
use telusur_model::Limits;

use crate::bench::{Bench, accept, crawl, page, url};
use crate::short_disk::ShortDisk;

/// The task that decides what is asked next once waited for the disk.
#[tokio::test(flavor = "multi_thread")]
async fn the_writer_makes_a_change_durable_before_it_is_answered() {
    let bench = Bench::of_hosts(|_, path| page(&[&format!("{path}a"), &format!("{path}b")]));
    let store = bench.open();
    let no = accept(&store, crawl(vec![url("http://good.test/")]));
    let disk = Arc::new(ShortDisk::of(&store));
    let parts = EngineParts { store: Arc::clone(&disk) as Arc<dyn Store>, ..bench.parts(&store) };
    let options = EngineOptions { parse_threads: 2, free_bytes_min: 0 };
    let engine = Engine::start(parts, &options).unwrap();
    engine.handle().run(no).await.unwrap();
    let limits = Limits { pages_max: Some(7), ..Limits::default() };
    let change = CrawlChange { limits: Some(limits), ..CrawlChange::default() };
    let exclude =
        |pattern: &str| CrawlChange { exclude: vec![pattern.to_owned()], ..CrawlChange::default() };
    let handle = engine.handle();
    // None of them undoes another, whichever is written first.
    let changed = tokio::join!(
        handle.change(no, exclude("/x")),
        handle.change(no, change),
        handle.change(no, exclude("/y")),
    );
    assert!(matches!(changed, (Ok(()), Ok(()), Ok(()))), "{changed:?}");
    assert_eq!(disk.changed_by.lock().unwrap().as_deref(), Some("commit"));
    let kept = store.crawl(no).unwrap().unwrap().crawl;
    assert_eq!(kept.limits.pages_max, Some(7));
    assert_eq!(kept.scope.exclude.len(), 2, "{:?}", kept.scope.exclude);
    engine.shutdown().await.unwrap();
}
