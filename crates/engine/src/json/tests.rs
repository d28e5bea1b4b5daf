//! The JSON of each kind, as text: a name that changes here changes for everybody who reads it.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use telusur_model::{
    Coverage, CoverageCounts, Direction, LegCoverage, LegState, Strip, StripCell, WalkCoverage,
};

use super::*;

/// The JSON is read, and written again as it was: the control socket loses nothing.
#[track_caller]
fn check<T: Serialize + DeserializeOwned + Debug>(expect: Value) {
    let read: T = serde_json::from_value(expect.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), expect);
}

#[test]
fn a_crawl_in_short() {
    check::<CrawlLineView>(json!({
        "id": "cr_1", "alias": "crawl_1", "name": "demo", "state": "completed", "pause_detail": null,
        "fetched": 7, "queued": 0, "errors": 1, "created_at": "2026-01-31T00:00:00Z",
        "seed": "https://a.test/",
    }));
}

#[test]
fn an_error_and_a_skipped_url() {
    check::<ErrorView>(json!({
        "url": "https://a.test/x", "status": null, "reason": "dns_error", "detail": "no such host",
        "attempts": 3, "depth": 1, "referrer": "https://a.test/", "at": "2026-01-31T00:00:00Z",
    }));
    check::<SkippedView>(json!({
        "url": "https://b.test/", "reason": "out_of_scope", "help": "outside of the scope",
        "rule": "scope domain", "depth": 1, "referrer": "https://a.test/",
    }));
}

#[test]
fn a_stored_page() {
    check::<StoredPageView>(json!({
        "id": "p_1_7", "seq": 7, "url": "https://a.test/", "status": 200, "title": "A", "depth": 0,
        "referrer": null, "content_type": "text/html", "bytes": 9, "took_ms": 12,
        "fetched_at": "2026-01-31T00:00:00Z", "link_count": 1, "attempts": 1, "truncated": false,
        "change": "not_sent", "asks": "noindex", "lastmod": null, "soft_404": false,
        "parse_failed": null, "crawl": "cr_1", "alias": "crawl_1", "redirects": [],
        "headers": [["content-type", "text/html"]], "digest": "00", "has_body": true,
        "content": null,
    }));
}

#[test]
fn a_search() {
    check::<SearchView>(json!({
        "query": "tea", "took_ms": 1, "estimated_total": 1, "offset": 0, "limit": 10,
        "hits": [{
            "id": null, "url": "https://a.test/tea", "title": "Tea", "snippet": "<mark>tea</mark>",
            "snippet_text": "tea", "marks": [[0, 3]], "site": "a.test", "lang": "en",
            "type": "html", "fetched_at": "2026-01-31T00:00:00Z", "published_at": null,
            "score": 1.5, "crawl": "cr_1", "alias": "crawl_1", "more_from_site": 0, "similar": 2,
        }],
        "facets": { "lang": [{ "value": "en", "count": 1 }] },
        "ignored": [], "did_you_mean": null,
    }));
}

#[test]
fn an_explanation() {
    check::<ExplanationView>(json!({
        "crawl": "cr_1", "alias": "crawl_1", "name": null, "url": "https://a.test/",
        "normal_form": "https://a.test/", "state": "failed",
        "known": {
            "url": "https://a.test/", "state": "failed", "via": "seed", "referrer": null,
            "redirects": [], "depth": 0, "found_at": "2026-01-31T00:00:00Z", "lastmod": null,
            "at": "2026-01-31T00:00:01Z", "attempts": 3, "reason": "dns_error",
            "detail": "no such host", "rule": null, "status": null, "to": null, "entries": null,
            "dropped": null,
        },
        "page": null, "sitemap": null, "admitted": true, "rule": "scope domain", "reason": null,
        "robots": { "allowed": true, "rule": null, "asked_at": "2026-01-31T00:00:00Z" },
        "host": null, "id": null, "parked": null,
    }));
}

#[test]
fn the_coverage_of_a_walk() {
    let leg = LegCoverage {
        direction: Direction::Ascending,
        rate: 1,
        state: LegState::Stopped,
        next: Some(9),
        stop: Some(8),
        misses_in_row: 5,
        margin: 5,
        retry_at: None,
        asks_fresh: true,
    };
    let counts = CoverageCounts { content: 3, holes: 1, unknown: Some(2), ..Default::default() };
    let cells = vec![StripCell::Content, StripCell::Hole, StripCell::Missing, StripCell::Unknown];
    let walk = WalkCoverage {
        template: "https://a.test/{id}".into(),
        min: Some(1),
        max: None,
        start: Some(4),
        coverage: Coverage { counts, legs: vec![leg] },
        strip: Some(Strip { first: 1, last: 8, cells, start: Some(2) }),
        retry_in_ms: None,
        missing_by_look: 1,
    };
    let view = CoverageView::of(&walk, 0);
    let expect = json!({
        "template": "https://a.test/{id}", "walk": 0, "min": 1, "max": null, "start": 4,
        "legs": [{
            "direction": "ascending", "state": "stopped", "next": 9, "stop": 8,
            "misses_in_row": 5, "margin": 5, "rate": 1,
        }],
        "retry_in_ms": null,
        "strip": { "first": 1, "last": 8, "cells": "#x._", "start": 2 },
        "counts": {
            "content": 3, "missing": 0, "missing_by_look": 1, "holes": 1, "pending_retry": 0,
            "unknown": 2, "content_past_stop": 0,
        },
        "runs": [],
    });
    assert_eq!(serde_json::to_value(&view).unwrap(), expect);
    check::<CoverageView>(expect);
}

#[test]
fn items_of_one_walk_become_one() {
    let item = |walk: u32, first: u64| -> CoverageView {
        let run = RunView { first, last: first, count: 1, state: "hole".into(), reason: None };
        let coverage = Coverage { counts: CoverageCounts::default(), legs: Vec::new() };
        let empty = WalkCoverage {
            template: String::new(),
            min: None,
            max: None,
            start: None,
            coverage,
            strip: None,
            retry_in_ms: None,
            missing_by_look: 0,
        };
        CoverageView { runs: vec![run], ..CoverageView::of(&empty, walk) }
    };
    let mut views = Vec::new();
    for (walk, first) in [(0, 1), (0, 5), (1, 2)] {
        CoverageView::join(&mut views, item(walk, first));
    }
    let firsts = |view: &CoverageView| view.runs.iter().map(|run| run.first).collect::<Vec<_>>();
    assert_eq!(views.iter().map(firsts).collect::<Vec<_>>(), [vec![1, 5], vec![2]]);
}
