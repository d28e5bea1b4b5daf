//! Nothing is acknowledged before it is durable. A binary of its own: it listens to everything that
//! happens in its process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../it/bench.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod bench;

use std::sync::{Arc, Mutex};

use telusur_testkit::FakeWebSpec;
use telusur_testkit::fake_web::PageCounts;
use tracing::field::{Field, Visit};
use tracing::span;

use crate::bench::{Bench, crawl};

/// Keeps the messages of the events that matter here, in their order.
#[derive(Clone, Default)]
struct Trace(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Trace {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("telusur")
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        struct Message<'a>(&'a Trace);
        impl Visit for Message<'_> {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    self.0.0.lock().unwrap().push(format!("{value:?}"));
                }
            }
        }
        event.record(&mut Message(self));
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn bodies_then_step_then_acknowledgement() {
    let trace = Trace::default();
    tracing::subscriber::set_global_default(trace.clone()).unwrap();
    let (bench, web) = Bench::of_web(FakeWebSpec {
        hosts: 2,
        pages: PageCounts::Even { total: 60 },
        links_per_page: 5,
        page_bytes: 2_000,
        seed: 77,
        ..Default::default()
    });
    bench.crawl(crawl(web.seeds())).await;
    let (mut bodies, mut steps, mut acknowledged) = (0, 0, 0);
    for message in trace.0.lock().unwrap().iter() {
        match message.as_str() {
            "bodies synced" => bodies += 1,
            "step synced" => steps += 1,
            "step acknowledged" => acknowledged += 1,
            _ => {}
        }
        assert!(acknowledged <= steps && steps <= bodies, "{bodies} {steps} {acknowledged}");
    }
    assert!(acknowledged >= 3, "{acknowledged}");
}
