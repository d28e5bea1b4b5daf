//! Crawls through the JSON API: started, listed, changed, ordered about, deleted.

use serde_json::{Value, json};
use telusur_model::{CrawlNo, CrawlState, Progress};

use crate::bench::{Bench, endless_site, number, page, small_site};

fn site() -> Value {
    json!({ "urls": ["http://site.test/"] })
}

#[tokio::test]
async fn a_crawl_is_accepted_runs_and_is_read_back() {
    let bench = Bench::start(small_site).await;
    let body = json!({
        "name": "docs", "urls": ["http://site.test/"], "labels": { "team": "blue" },
        "limits": { "max_pages": 50, "max_depth": 4, "max_duration_s": 600 },
        "scope": { "kind": "host", "exclude": ["/b$"] }, "manners": { "delay_ms": 0, "workers": 4 },
        "keep": "text",
    });
    let reply = bench.client.post("/api/v1/crawls", &body).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    let accepted = reply.json();
    let id = accepted["id"].as_str().unwrap();
    assert_eq!(reply.header("location"), format!("/api/v1/crawls/{id}"));
    assert!(id.starts_with("c_") && id.len() == 28);
    assert_eq!(accepted["warnings"].as_array().unwrap().len(), 1, "no delay is worth a word");
    bench.finished(1).await;
    let crawl = bench.client.json(format!("/api/v1/crawls/{id}")).await;
    assert_eq!(crawl, bench.client.json("/api/v1/crawls/crawl_1").await);
    assert_eq!(
        (&crawl["state"], &crawl["finish_reason"]),
        (&json!("completed"), &json!("drained"))
    );
    assert_eq!((&crawl["kind"], &crawl["name"]), (&json!("bfs"), &json!("docs")));
    assert_eq!(crawl["labels"], json!({ "team": "blue" }));
    assert_eq!(
        (&crawl["limits"]["max_pages"], &crawl["limits"]["max_depth"]),
        (&json!(50), &json!(4))
    );
    assert_eq!(
        (&crawl["manners"]["workers"], &crawl["scope"]["kind"]),
        (&json!(4), &json!("host"))
    );
    let stats = &crawl["stats"];
    assert_eq!(
        (&stats["fetched"], &stats["ok"], &stats["queued"]),
        (&json!(3), &json!(2), &json!(0))
    );
    assert_eq!(stats["status_codes"], json!({ "200": 2, "404": 1 }));
    assert_eq!(stats["skips"], json!({ "excluded": 1, "out_of_scope": 1 }));
    assert_eq!(stats["hosts"][0]["host"], "site.test");
    assert_eq!(bench.client.get(crawl["links"]["pages"].as_str().unwrap()).await.status, 200);
    bench.stop().await;
}

#[tokio::test]
async fn linear_crawls_are_accepted_too() {
    let bench = Bench::start(|path| match path {
        "/item/3" => telusur_testkit::FakeAnswer::not_found(),
        _ => page(&[]),
    });
    let bench = bench.await;
    let body =
        json!({ "linear": { "template": "http://site.test/item/{id}", "from": 1, "to": 5 } });
    let reply = bench.client.post("/api/v1/crawls", &body).await;
    assert_eq!((reply.status, &reply.json()["kind"]), (202, &json!("linear")));
    bench.finished(1).await;
    let coverage = bench.client.json("/api/v1/crawls/crawl_1/coverage").await;
    let walk = &coverage["items"][0];
    assert_eq!((&walk["counts"]["content"], &walk["counts"]["missing"]), (&json!(4), &json!(1)));
    let runs = walk["runs"].as_array().unwrap().iter().map(|run| {
        (
            run["first"].as_u64().unwrap(),
            run["last"].as_u64().unwrap(),
            run["state"].as_str().unwrap(),
        )
    });
    let runs: Vec<_> = runs.collect();
    assert_eq!(runs, [(1, 2, "content"), (3, 3, "missing"), (4, 5, "content")]);
    let part = bench.client.json("/api/v1/crawls/crawl_1/coverage?limit=2").await;
    assert_eq!(part["items"][0]["runs"].as_array().unwrap().len(), 2);
    let next = part["next_cursor"].as_str().unwrap();
    let rest = bench.client.json(format!("/api/v1/crawls/crawl_1/coverage?cursor={next}")).await;
    assert_eq!(rest["items"][0]["runs"][0]["first"], 4);
    for (body, pointer) in [
        (json!({ "template": "http://site.test/1" }), "/linear/template"),
        (json!({ "template": "http://127.0.0.1/{id}", "from": 1, "to": 2 }), "/linear/template"),
        (json!({ "template": "http://site.test/{id}", "from": 5, "to": 1 }), "/linear"),
        (
            json!({ "template": "http://site.test/{id}", "from": 1, "to": 2, "direction": "up" }),
            "/linear/direction",
        ),
    ] {
        let reply = bench.client.post("/api/v1/crawls", &json!({ "linear": body })).await;
        assert_eq!(
            (reply.status, reply.json()["pointer"].as_str()),
            (422, Some(pointer)),
            "{reply:?}"
        );
    }
    bench.stop().await;
}

#[tokio::test]
async fn the_same_request_makes_one_crawl() {
    let bench = Bench::start(small_site).await;
    let ask = |key: &str, body: &Value| {
        bench.client.ask("POST", "/api/v1/crawls").header("idempotency-key", key).json(body)
    };
    let first = ask("k1", &site()).send().await;
    let again = ask("k1", &site()).send().await;
    assert_eq!((first.status, again.status), (202, 200));
    assert_eq!(first.json()["id"], again.json()["id"]);
    assert_eq!(again.json()["labels"], json!({}), "what it is known by is nobody's label");
    let other = json!({ "urls": ["http://site.test/a"] });
    ask("k1", &other).send().await.problem(422, "idempotency_mismatch");
    assert_eq!(ask("k2", &site()).send().await.status, 202);
    let bench = bench.restart().await;
    let later = bench.client.ask("POST", "/api/v1/crawls").header("idempotency-key", "k1");
    let later = later.json(&site()).send().await;
    assert_eq!((later.status, &later.json()["id"]), (200, &first.json()["id"]));
    bench.stop().await;
}

#[tokio::test]
async fn a_dry_run_makes_nothing() {
    let bench = Bench::start(small_site).await;
    let body = json!({ "urls": ["http://site.test/"], "dry_run": true });
    let reply = bench.client.post("/api/v1/crawls", &body).await;
    assert_eq!((reply.status, &reply.json()["state"]), (200, &json!("dry_run")));
    assert_eq!(bench.client.json("/api/v1/crawls").await["total"], 0);
    bench.stop().await;
}

#[tokio::test]
async fn crawls_are_listed_in_pages_the_youngest_first() {
    let bench = Bench::start(small_site).await;
    for _ in 0..5 {
        bench.crawled().await;
    }
    let first = bench.client.get("/api/v1/crawls?limit=2").await;
    let link = first.header("link").to_owned();
    let first = first.json();
    let aliases = |page: &Value| -> Vec<u32> {
        page["items"].as_array().unwrap().iter().map(|crawl| number(&crawl["alias"])).collect()
    };
    assert_eq!((aliases(&first), &first["total"]), (vec![5, 4], &json!(5)));
    // A crawl that comes in between moves nothing.
    bench.crawled().await;
    let next = link.split(['<', '>']).nth(1).unwrap();
    assert!(link.ends_with("rel=\"next\"") && next.contains("limit=2"), "{link}");
    let second = bench.client.json(next).await;
    assert_eq!(aliases(&second), [3, 2]);
    let cursor = second["next_cursor"].as_str().unwrap();
    let last = bench.client.json(format!("/api/v1/crawls?limit=2&cursor={cursor}")).await;
    assert_eq!((aliases(&last), &last["next_cursor"]), (vec![1], &json!(null)));
    let none = bench.client.json("/api/v1/crawls?state=running").await;
    assert_eq!((&none["items"], &none["total"]), (&json!([]), &json!(null)));
    for wrong in ["limit=0", "limit=1001", "limit=x", "cursor=%25", "sate=running"] {
        let reply = bench.client.get(format!("/api/v1/crawls?{wrong}")).await;
        reply.problem(422, "invalid_field");
    }
    bench.stop().await;
}

#[tokio::test]
async fn labels_find_crawls() {
    let bench = Bench::start(small_site).await;
    for team in ["blue", "red"] {
        let body = json!({ "urls": ["http://site.test/"], "labels": { "team": team } });
        bench.client.post("/api/v1/crawls", &body).await;
    }
    for (filter, count) in [("team", 2), ("team%3Dred", 1), ("team%3Dgreen", 0), ("other", 0)] {
        let found = bench.client.json(format!("/api/v1/crawls?label={filter}")).await;
        assert_eq!(found["items"].as_array().unwrap().len(), count, "{filter}");
    }
    bench.stop().await;
}

#[tokio::test]
async fn orders_are_idempotent_and_refused_where_they_make_no_sense() {
    let bench = Bench::start(endless_site).await;
    bench.client.post("/api/v1/crawls", &site()).await;
    bench.until(CrawlNo(1), |it| it.stats.pages > 5).await;
    let order = async |word: &str| {
        bench.client.post(format!("/api/v1/crawls/crawl_1/{word}"), &json!({})).await
    };
    for _ in 0..2 {
        let paused = order("pause").await;
        assert_eq!((paused.status, &paused.json()["state"]), (200, &json!("paused")));
        assert_eq!(paused.json()["pause_reason"], "asked");
    }
    for _ in 0..2 {
        assert_eq!(order("resume").await.json()["state"], "running");
    }
    bench.client.ask("DELETE", "/api/v1/crawls/crawl_1").send().await.problem(409, "wrong_state");
    for _ in 0..2 {
        let stopped = order("stop").await.json();
        assert_eq!(
            (&stopped["state"], &stopped["finish_reason"]),
            (&json!("stopped"), &json!("stopped"))
        );
    }
    order("pause").await.problem(409, "wrong_state");
    assert_eq!(order("resume").await.status, 200, "a stopped crawl can go on");
    bench.until(CrawlNo(1), |it| it.state == CrawlState::Running).await;
    assert_eq!(order("cancel").await.status, 204);
    order("cancel").await.problem(404, "not_found");
    order("stop").await.problem(404, "not_found");
    bench.client.get("/api/v1/crawls/crawl_1").await.problem(404, "not_found");
    assert_eq!(bench.client.json("/api/v1/crawls").await["total"], 0);
    bench.stop().await;
}

#[tokio::test]
async fn a_finished_crawl_is_deleted() {
    let bench = Bench::start(small_site).await;
    bench.crawled().await;
    let delete = || bench.client.ask("DELETE", "/api/v1/crawls/crawl_1").send();
    assert_eq!(delete().await.status, 204);
    delete().await.problem(404, "not_found");
    let resume = bench.client.post("/api/v1/crawls/crawl_1/resume", &json!({})).await;
    resume.problem(404, "not_found");
    bench.stop().await;
}

#[tokio::test]
async fn a_complete_crawl_cannot_be_resumed() {
    let bench = Bench::start(small_site).await;
    bench.crawled().await;
    let resume = bench.client.post("/api/v1/crawls/crawl_1/resume", &json!({})).await;
    assert!(resume.problem(409, "wrong_state")["detail"].as_str().unwrap().contains("complete"));
    bench.stop().await;
}

#[tokio::test]
async fn a_running_crawl_is_changed() {
    let bench = Bench::start_gated(endless_site).await;
    bench.client.post("/api/v1/crawls", &site()).await;
    bench.gate.let_through(1);
    bench.until(CrawlNo(1), |it| it.stats.queued == 2).await;
    let read = bench.client.get("/api/v1/crawls/crawl_1").await;
    let tag = read.header("etag").to_owned();
    let patch = |body: Value| bench.client.ask("PATCH", "/api/v1/crawls/crawl_1").json(&body);
    let change = json!({
        "limits": { "max_pages": 2 }, "manners": { "delay_ms": 7, "workers": 3 }, "exclude": ["/2$"],
    });
    let changed = patch(change).header("if-match", &tag).send().await;
    assert_eq!(changed.status, 200, "{changed:?}");
    let changed = changed.json();
    assert_eq!(
        (&changed["limits"]["max_pages"], &changed["manners"]["delay_ms"]),
        (&json!(2), &json!(7))
    );
    assert_eq!(changed["scope"]["exclude"], json!(["/2$"]));
    // Somebody else changed it since.
    let late = patch(json!({ "manners": { "delay_ms": 1 } })).header("if-match", &tag).send().await;
    late.problem(412, "changed");
    bench.gate.let_through(10);
    let ended = bench.finished(1).await;
    assert_eq!(ended.stats.pages, 2, "the new limit holds");
    for (body, pointer) in [
        (json!({ "exclude": ["("] }), "/exclude/0"),
        (json!({ "limits": { "max_body": 5 } }), "/limits/max_body"),
        (json!({ "politeness": { "workers": 0 } }), "/politeness/workers"),
        (json!({ "politeness": { "workers": 1_000_000 } }), "/politeness/workers"),
        (json!({ "politeness": { "fairness": "x" } }), "/politeness/fairness"),
        (json!({ "limits": { "max_page": 5 } }), "/limits/max_page"),
    ] {
        let problem = patch(body).send().await.problem(422, "invalid_field");
        assert_eq!(problem["pointer"], pointer);
    }
    bench.stop().await;
}

#[tokio::test]
async fn a_crawl_at_its_limit_goes_on_with_a_higher_one() {
    let bench = Bench::start(endless_site).await;
    let body = json!({ "urls": ["http://site.test/"], "limits": { "max_pages": 3 } });
    bench.client.post("/api/v1/crawls", &body).await;
    bench.finished(1).await;
    let resume = || bench.client.ask("POST", "/api/v1/crawls/crawl_1/resume").send();
    resume().await.problem(409, "wrong_state");
    let more = json!({ "limits": { "max_pages": 6 } });
    bench.client.ask("PATCH", "/api/v1/crawls/crawl_1").json(&more).send().await;
    assert_eq!(resume().await.status, 200);
    bench.until(CrawlNo(1), |it| it.stats.pages == 6 && it.state != CrawlState::Running).await;
    bench.stop().await;
}

#[tokio::test]
async fn what_failed_is_asked_again() {
    let bench = Bench::start_gated(|path| match path {
        "/" => page(&["/broken"]),
        _ => telusur_testkit::FakeAnswer::redirect(302, "http:///"),
    });
    let bench = bench.await;
    bench.client.post("/api/v1/crawls", &site()).await;
    bench.gate.let_through(2);
    let ended = bench.finished(1).await;
    assert_eq!(ended.stats.failed, 1, "{:?}", ended.stats);
    let retried = bench.client.post("/api/v1/crawls/crawl_1/retry", &json!({})).await;
    assert_eq!((retried.status, &retried.json()["retried"]), (200, &json!(1)));
    bench.until(CrawlNo(1), |it| it.state == CrawlState::Running && it.stats.queued == 1).await;
    bench.gate.let_through(1);
    let ended = bench.finished(1).await;
    assert_eq!((ended.stats.failed, ended.stats.pages, ended.stats.visits), (1, 1, 3));
    bench.stop().await;
}

#[tokio::test]
async fn unchanged_crawls_are_not_sent_again() {
    let bench = Bench::start(small_site).await;
    bench.crawled().await;
    let read = bench.client.get("/api/v1/crawls/crawl_1").await;
    let ask = bench.client.ask("GET", "/api/v1/crawls/crawl_1");
    let again = ask.header("if-none-match", read.header("etag")).send().await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    bench.stop().await;
}

#[tokio::test]
async fn a_crawl_that_excludes_its_own_start_is_refused_with_the_field() {
    let bench = Bench::start(small_site).await;
    let body = json!({ "urls": ["http://site.test/"], "scope": { "exclude": ["site"] } });
    let reply = bench.client.post("/api/v1/crawls", &body).await;
    assert_eq!(reply.status, 422, "{reply:?}");
    let problem = reply.json().to_string();
    assert!(problem.contains("/scope/exclude") && problem.contains("its own start"), "{problem}");
    bench.stop().await;
}

#[tokio::test]
async fn a_budget_that_was_reached_is_named() {
    let bench = Bench::start(endless_site).await;
    let body = json!({ "urls": ["http://site.test/"], "limits": { "max_per_host": 5 } });
    bench.client.post("/api/v1/crawls", &body).await;
    bench.finished(1).await;
    let crawl = bench.client.json("/api/v1/crawls/crawl_1").await;
    assert_eq!(crawl["finish_reason"], "budget");
    let left_out = &crawl["stats"]["left_out"][0];
    assert_eq!(
        (&left_out["reason"], &left_out["flag"]),
        (&json!("host_budget"), &json!("--max-per-host"))
    );
    assert!(left_out["urls"].as_u64().unwrap() > 0);
    bench.stop().await;
}

#[tokio::test]
async fn a_crawl_goes_on_when_its_budget_is_raised() {
    let bench = Bench::start(endless_site).await;
    let body = json!({ "urls": ["http://site.test/"], "limits": { "max_per_host": 5 } });
    bench.client.post("/api/v1/crawls", &body).await;
    bench.finished(1).await;
    let resume = "/api/v1/crawls/crawl_1/resume";
    let refused = bench.client.post(resume, &json!({})).await;
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(refused.json().to_string().contains("Raise max_per_host"), "{refused:?}");
    let change = json!({ "limits": { "max_per_host": 7, "max_per_site": 6 } });
    let changed = bench.client.ask("PATCH", "/api/v1/crawls/crawl_1").json(&change).send().await;
    assert_eq!(changed.status, 200, "{changed:?}");
    assert_eq!(changed.json()["limits"]["max_per_site"], 6);
    let resumed = bench.client.post(resume, &json!({})).await;
    assert_eq!(resumed.status, 200, "{resumed:?}");
    let is_over =
        |it: &Progress| matches!(it.state, CrawlState::Finished { .. }) && it.stats.pages == 6;
    bench.until(CrawlNo(1), is_over).await;
    let refused = bench.client.post(resume, &json!({})).await;
    assert_eq!(refused.status, 409, "{refused:?}");
    bench.stop().await;
}

#[tokio::test]
async fn a_linear_crawl_goes_on_when_its_budget_is_raised() {
    let bench = Bench::start(|_| page(&[])).await;
    let linear = json!({ "template": "http://site.test/item/{id}", "from": 1, "to": 9 });
    let body = json!({ "linear": linear, "limits": { "max_per_host": 4 } });
    bench.client.post("/api/v1/crawls", &body).await;
    bench.finished(1).await;
    let crawl = bench.client.json("/api/v1/crawls/crawl_1").await;
    assert_eq!(crawl["finish_reason"], "budget");
    let expect = json!([{ "reason": "host_budget", "urls": 5, "at_least": false, "flag": "--max-per-host" }]);
    assert_eq!(crawl["stats"]["left_out"], expect);
    let resume = "/api/v1/crawls/crawl_1/resume";
    let refused = bench.client.post(resume, &json!({})).await;
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(refused.json().to_string().contains("max_per_host"), "{refused:?}");
    let change = json!({ "limits": { "max_per_host": 20 } });
    let changed = bench.client.ask("PATCH", "/api/v1/crawls/crawl_1").json(&change).send().await;
    assert_eq!(changed.status, 200, "{changed:?}");
    let resumed = bench.client.post(resume, &json!({})).await;
    assert_eq!(resumed.status, 200, "{resumed:?}");
    let is_over =
        |it: &Progress| matches!(it.state, CrawlState::Finished { .. }) && it.stats.pages == 9;
    bench.until(CrawlNo(1), is_over).await;
    let crawl = bench.client.json("/api/v1/crawls/crawl_1").await;
    assert_eq!(crawl["finish_reason"], "drained");
    assert_eq!(crawl["stats"]["left_out"], json!([]));
    bench.stop().await;
}
