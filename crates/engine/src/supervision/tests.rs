use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::*;

const HTTP: Part = Part::Service("http");
const PARSE: Part = Part::Stage("parse");

#[tokio::test]
async fn a_thread_that_panics_is_named() {
    let supervisor = Supervisor::default();
    let thread = supervisor.thread(PARSE, || panic!("on purpose")).unwrap();
    assert_eq!(supervisor.death().await, PARSE);
    assert!(thread.join().is_err());
}

#[tokio::test]
async fn a_thread_that_ends_early_is_named() {
    let supervisor = Supervisor::default();
    assert_eq!(supervisor.thread(PARSE, || 7).unwrap().join().unwrap(), 7);
    assert_eq!(supervisor.death().await, PARSE);
}

#[tokio::test]
async fn a_task_that_panics_is_named() {
    let supervisor = Supervisor::default();
    let task = supervisor.task(HTTP, async { panic!("on purpose") });
    assert_eq!(supervisor.death().await, HTTP);
    assert_eq!(task.ended().await, None::<()>);
}

#[tokio::test]
async fn a_task_that_ends_early_is_named() {
    let supervisor = Supervisor::default();
    assert_eq!(supervisor.task(HTTP, async { 7 }).ended().await, Some(7));
    assert_eq!(supervisor.death().await, HTTP);
}

#[tokio::test]
async fn a_task_may_be_told_to_end() {
    let supervisor = Supervisor::default();
    let task = supervisor.task(HTTP, std::future::pending::<()>());
    task.end();
    assert_eq!(task.ended().await, None);
    assert_eq!(supervisor.dead(), None);
}

#[tokio::test]
async fn work_may_end_and_must_not_panic() {
    let supervisor = Supervisor::default();
    let (ended, end) = tokio::sync::oneshot::channel();
    supervisor.work(PARSE, async { ended.send(()).unwrap() });
    end.await.unwrap();
    let (ended, end) = tokio::sync::oneshot::channel();
    supervisor.blocking_work(PARSE, || ended.send(()).unwrap());
    end.await.unwrap();
    assert_eq!(supervisor.dead(), None);
    supervisor.work(PARSE, async { panic!("on purpose") });
    assert_eq!(supervisor.death().await, PARSE);
}

#[tokio::test]
async fn blocking_work_that_panics_is_named() {
    let supervisor = Supervisor::default();
    supervisor.blocking_work(HTTP, || panic!("on purpose"));
    assert_eq!(supervisor.death().await, HTTP);
}

#[tokio::test]
async fn when_everything_ends_only_a_panic_counts() {
    let supervisor = Supervisor::default();
    supervisor.close();
    supervisor.thread(PARSE, || ()).unwrap().join().unwrap();
    supervisor.task(PARSE, async {}).ended().await.unwrap();
    assert_eq!(supervisor.dead(), None);
    supervisor.task(HTTP, async { panic!("on purpose") }).ended().await.unwrap_or(());
    assert_eq!(supervisor.death().await, HTTP);
    supervisor.thread(PARSE, || panic!("on purpose")).unwrap().join().unwrap_or(());
    assert_eq!(supervisor.dead(), Some(HTTP), "the first is the cause");
}

/// Places that start a thread or a task by themselves: how many times, and who notices when one dies.
const UNSUPERVISED: &[(&str, usize, &str)] = &[
    ("engine/src/supervision.rs", 4, "the supervisor itself"),
    (
        "engine/src/handle.rs",
        5,
        "the crawl task, which `Engine::failed` waits for; the others are awaited",
    ),
    ("engine/src/crawl_task.rs", 1, "awaited: the crawl task ends with it"),
    (
        "engine/src/control/socket.rs",
        2,
        "one client's question: its connection closes, and it is told",
    ),
    ("engine/src/index_follower.rs", 1, "joined at the next look: links keep their older ranks"),
    ("engine/src/index_lease/holder.rs", 1, "scoped: joined by the holder"),
    ("engine/src/index_lease/owner.rs", 1, "scoped: joined by the owner"),
    (
        "fetch/src/connection/http2.rs",
        1,
        "its visits are told that the connection is gone, and are tried again",
    ),
    ("fetch/src/service_client.rs", 1, "one request's connection: the request ends with it"),
    ("fetch/src/web_fetcher.rs", 1, "the next visit that looks panics with it"),
    ("parse-pool/src/spawner.rs", 1, "whoever needs a child is refused, and the engine stops"),
    ("server/src/door/connections.rs", 1, "one client's connection: it closes"),
    ("server/src/service/blocking_pool.rs", 1, "panics are caught, and whoever asked is told"),
    ("server/src/service/mod.rs", 3, "awaited by whoever asked, who is told"),
    ("telusur/src/commands/bench.rs", 1, "awaited"),
    ("telusur/src/commands/findable.rs", 1, "joined, and its panic goes on"),
    ("telusur/src/commands/follow.rs", 1, "stops the indexer when it ends, and is joined"),
    ("telusur/src/commands/serve.rs", 1, "waits for the second signal, while everything ends"),
    (
        "telusur/src/commands/watch.rs",
        3,
        "two are awaited; an order to stop that is lost is given by the second signal",
    ),
    ("telusur/src/foreground.rs", 2, "the end of the crawl is seen in its progress; awaited"),
    ("telusur/src/remote.rs", 1, "joined when the lines end"),
];

/// A thread that nobody watches dies quietly, and what waits for it waits for ever.
#[test]
fn nothing_is_started_that_nobody_watches() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = BTreeMap::new();
    for name in ["engine", "fetch", "frontier", "index", "ledger", "parse", "parse-pool", "server"]
        .into_iter()
        .chain(["store-embedded", "telusur"])
    {
        for file in sources(&crates.join(name).join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            let count = spawns(&text);
            if count > 0 {
                let path = file.strip_prefix(crates).unwrap().to_string_lossy().into_owned();
                found.insert(path, count);
            }
        }
    }
    let known = UNSUPERVISED.iter().map(|(path, count, _)| ((*path).to_owned(), *count));
    assert_eq!(found, known.collect(), "start it with a `Supervisor`, or say here who notices");
}

/// The files of a crate, without those that are tests as a whole.
fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|it| it == "rs")
            && !path.file_stem().unwrap().to_string_lossy().ends_with("tests")
        {
            files.push(path);
        }
    }
    files
}

/// How many threads and tasks a file starts, before its tests.
fn spawns(text: &str) -> usize {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = code.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    let calls = ["spawn(", "spawn_blocking(", "spawn_local(", "spawn_on("];
    let is_process = |line: &str| {
        line.starts_with("fn spawn(")
            || line.contains("Process::spawn")
            || line.contains(".spawn()")
    };
    lines
        .filter(|line| !is_process(line))
        .map(|line| calls.iter().map(|call| line.matches(call).count()).sum::<usize>())
        .sum()
}
