//! Requests that nobody in their right mind sends.

use crate::bench::{Bench, small_site};

#[tokio::test]
async fn every_answer_keeps_browsers_on_a_leash() {
    let bench = Bench::start(small_site).await;
    for target in ["/healthz", "/api/v1/crawls", "/nothing", "/crawl/x", "/metrics", "//crawl"] {
        let reply = bench.client.get(target).await;
        assert_eq!(reply.header("x-content-type-options"), "nosniff", "{target}");
        assert_eq!(reply.header("referrer-policy"), "no-referrer");
        assert!(reply.header("content-security-policy").contains("default-src 'none'"));
        assert_eq!(reply.header("cross-origin-resource-policy"), "same-origin");
        assert!(reply.header("access-control-allow-origin").is_empty(), "nobody else reads it");
        assert!(reply.header("x-request-id").starts_with("r_"));
    }
    bench.stop().await;
}

#[tokio::test]
async fn other_methods_are_refused() {
    let bench = Bench::start(small_site).await;
    for (method, target) in [
        ("PUT", "/crawl"),
        ("DELETE", "/crawl"),
        ("GET", "/crawl"),
        ("TRACE", "/api/v1/crawls"),
        ("OPTIONS", "/api/v1/crawls"),
        ("PUT", "/api/v1/crawls/crawl_1"),
        ("POST", "/healthz"),
        ("PATCH", "/api/v1/search"),
    ] {
        let reply = bench.client.ask(method, target).send().await;
        reply.problem(405, "method_not_allowed");
        assert!(!reply.header("allow").is_empty(), "{method} {target}");
    }
    let head = bench.client.ask("HEAD", "/api/v1/crawls").send().await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    bench.stop().await;
}

#[tokio::test]
async fn odd_addresses_lead_nowhere() {
    let bench = Bench::start(small_site).await;
    for target in [
        "//crawl",
        "/crawl/../crawl",
        "/crawl/%2e%2e/",
        "/api/v1/crawls/../../etc/passwd",
        "/api/v1/",
        "/api/v2/crawls",
        "/api/v1/crawls/%ff%fe",
        "/api/v1/crawls/crawl_1%00/pages",
        "/%",
        "/.env",
    ] {
        let reply = bench.client.get(target).await;
        assert!([400, 404].contains(&reply.status), "{target}: {reply:?}");
        assert!(reply.text().len() < 2000);
    }
    bench.stop().await;
}

#[tokio::test]
async fn what_is_echoed_is_no_markup() {
    let bench = Bench::start(small_site).await;
    let reply = bench.client.get("/crawl/%3Cscript%3Ealert(1)%3C%2Fscript%3E").await;
    reply.problem(404, "not_found");
    assert_eq!(reply.header("content-type"), "application/problem+json");
    assert!(reply.header("content-security-policy").contains("sandbox"));
    bench.stop().await;
}
