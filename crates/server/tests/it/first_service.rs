//! The two calls of the first service, as its clients make them.

use serde_json::json;
use telusur_model::CrawlNo;

use crate::bench::{Bench, endless_site, page, small_site};

#[tokio::test]
async fn a_job_is_started_and_read() {
    let bench = Bench::start(small_site).await;
    let body = json!({ "url": "http://site.test/", "max_pages": 10 });
    let started = bench.client.post("/crawl", &body).await;
    assert_eq!(
        (started.status, started.text().as_str()),
        (200, r#"{"job_id":"crawl_1","status":"started"}"#)
    );
    bench.finished(1).await;
    let job = bench.client.json("/crawl/crawl_1").await["job"].clone();
    assert_eq!(job["id"], "crawl_1");
    assert_eq!(job["status"], "completed");
    assert_eq!(job["seed_url"], "http://site.test/");
    assert_eq!(job["max_pages"], 10);
    assert!(job["started_at"].as_u64().unwrap() > 1_600_000_000_000);
    assert!(job["ended_at"].as_u64() >= job["started_at"].as_u64());
    assert_eq!(job.get("truncated"), None);
    let pages = job["pages"].as_array().unwrap();
    assert_eq!(pages.len(), 5);
    let first = &pages[0];
    assert_eq!(first["url"], "http://site.test/");
    assert_eq!((&first["status_code"], &first["title"]), (&json!(200), &json!("A page")));
    assert_eq!(first["links"][0], "http://site.test/a");
    assert!(first["crawled_at"].as_u64() >= job["started_at"].as_u64());
    assert_eq!(first.get("error"), None);
    let gone = pages.iter().find(|page| page["url"] == "http://site.test/gone").unwrap();
    assert_eq!(
        (&gone["status_code"], &gone["title"], &gone["links"]),
        (&json!(404), &json!(""), &json!([]))
    );
    bench.stop().await;
}

#[tokio::test]
async fn a_slow_job_is_running_until_its_last_page() {
    let bench = Bench::start_gated(small_site).await;
    let body = json!({ "url": "http://site.test/" });
    bench.client.post("/crawl", &body).await;
    for pages in 0..5 {
        bench.until(CrawlNo(1), |it| it.stats.pages == pages).await;
        let job = bench.client.json("/crawl/crawl_1").await["job"].clone();
        assert_eq!((&job["status"], &job["ended_at"]), (&json!("running"), &json!(null)));
        assert_eq!(job["pages"].as_array().unwrap().len() as u64, pages);
        assert_eq!(job["max_pages"], 10, "ten pages if nobody says how many");
        bench.gate.let_through(1);
    }
    bench.finished(1).await;
    assert_eq!(bench.client.json("/crawl/crawl_1").await["job"]["status"], "completed");
    bench.stop().await;
}

#[tokio::test]
async fn at_most_as_many_pages_as_were_asked_for() {
    let bench = Bench::start(endless_site).await;
    bench.client.post("/crawl", &json!({ "url": "http://site.test/", "max_pages": 7 })).await;
    bench.finished(1).await;
    let job = bench.client.json("/crawl/crawl_1").await["job"].clone();
    assert_eq!((job["pages"].as_array().unwrap().len(), &job["status"]), (7, &json!("completed")));
    bench.stop().await;
}

#[tokio::test]
async fn a_page_that_cannot_be_fetched_says_why() {
    let bench = Bench::start(|path| match path {
        "/" => page(&["/cut"]),
        _ => telusur_testkit::FakeAnswer::cut(),
    });
    let bench = bench.await;
    let defaults = json!({ "url": "http://site.test/", "max_pages": 3 });
    bench.client.post("/crawl", &defaults).await;
    // The second page is asked again a while later; the job is running until then.
    bench.until(CrawlNo(1), |it| it.stats.visits >= 2).await;
    bench.client.post("/api/v1/crawls/crawl_1/stop", &json!({})).await;
    let unknown = json!({ "url": "http://nowhere.test/", "max_pages": 3 });
    bench.client.post("/crawl", &unknown).await;
    bench.finished(2).await;
    let job = bench.client.json("/crawl/crawl_2").await["job"].clone();
    assert_eq!(job["status"], "failed");
    let page = &job["pages"][0];
    assert_eq!((&page["url"], &page["status_code"]), (&json!("http://nowhere.test/"), &json!(0)));
    assert!(page["error"].as_str().unwrap().starts_with("dns_error"), "{page}");
    bench.stop().await;
}

#[tokio::test]
async fn a_start_that_the_operator_excludes_is_refused() {
    let bench =
        Bench::start_with(small_site, |it| it.defaults.scope.exclude.push("/private".to_owned()));
    let bench = bench.await;
    let refused = bench.client.post("/crawl", &json!({ "url": "http://site.test/private/" })).await;
    assert_eq!(refused.problem(422, "invalid_field")["pointer"], "/url");
    let other = json!({ "urls": ["http://site.test/"], "scope": { "exclude": ["("] } });
    let refused = bench.client.post("/api/v1/crawls", &other).await;
    assert_eq!(refused.problem(422, "invalid_field")["pointer"], "/scope/exclude/0");
    assert_eq!(bench.client.json("/api/v1/crawls").await["total"], 0);
    bench.stop().await;
}

#[tokio::test]
async fn ids_count_up() {
    let bench = Bench::start(small_site).await;
    for number in 1..=3 {
        let reply = bench.client.post("/crawl", &json!({ "url": "http://site.test/" })).await;
        assert_eq!(reply.json()["job_id"], format!("crawl_{number}"));
    }
    bench.stop().await;
}

#[tokio::test]
async fn an_unknown_job_is_not_found() {
    let bench = Bench::start(small_site).await;
    for id in ["crawl_1", "crawl_0", "crawl_01", "x", "%2e%2e", "a%00b", "';--", &"9".repeat(5000)]
    {
        let body = bench.client.get(format!("/crawl/{id}")).await.problem(404, "not_found");
        assert_eq!(body["error"], body["detail"], "clients of the first service look for `error`");
    }
    bench.stop().await;
}

#[tokio::test]
async fn wrong_requests_name_their_field_and_start_nothing() {
    let bench = Bench::start(small_site).await;
    let check = async |body: &str, status: u16, code: &str, pointer: &str| {
        let asking = bench.client.ask("POST", "/crawl").body(body.to_owned());
        let reply = asking.header("content-type", "application/json").send().await;
        let problem = reply.problem(status, code);
        assert_eq!(problem["pointer"].as_str().unwrap_or("-"), pointer, "{body}");
        assert!(problem["error"].is_string());
    };
    check("", 400, "invalid_json", "-").await;
    check("{", 400, "invalid_json", "-").await;
    check("[]", 422, "invalid_field", "").await;
    check("{}", 422, "invalid_field", "").await;
    check(r#"{"url":1}"#, 422, "invalid_field", "/url").await;
    check(r#"{"url":""}"#, 422, "invalid_field", "/url").await;
    check(r#"{"url":"example.org"}"#, 422, "invalid_field", "/url").await;
    check(r#"{"url":"ftp://site.test/"}"#, 422, "invalid_field", "/url").await;
    check(r#"{"url":"http://site.test/","max_pages":0}"#, 422, "invalid_field", "/max_pages").await;
    check(r#"{"url":"http://site.test/","max_pages":-1}"#, 422, "invalid_field", "/max_pages")
        .await;
    check(
        r#"{"url":"http://site.test/","max_pages":9223372036854775808}"#,
        422,
        "invalid_field",
        "/max_pages",
    )
    .await;
    check(r#"{"url":"http://site.test/","max_pages":NaN}"#, 400, "invalid_json", "-").await;
    check(r#"{"url":"http://site.test/","depth":1}"#, 422, "invalid_field", "/depth").await;
    for url in [
        "http://127.0.0.1/",
        "http://169.254.169.254/latest",
        "http://[::1]/",
        "http://2130706433/",
        "http://localhost:8088/",
        "http://10.0.0.5/",
    ] {
        check(&json!({ "url": url }).to_string(), 422, "url_not_allowed", "/url").await;
    }
    assert_eq!(bench.client.json("/api/v1/crawls").await["total"], 0);
    bench.stop().await;
}

#[tokio::test]
async fn what_curl_sends_without_being_told_is_taken_but_not_from_a_browser() {
    let bench = Bench::start(small_site).await;
    let body = r#"{"url":"http://site.test/"}"#;
    let form = "application/x-www-form-urlencoded";
    let ask = || bench.client.ask("POST", "/crawl").body(body);
    assert_eq!(ask().header("content-type", form).send().await.status, 200);
    let from_browser = ask().header("content-type", form).header("referer", "http://x.test/");
    from_browser.send().await.problem(415, "unsupported_type");
    ask().header("content-type", "text/plain").send().await.problem(415, "unsupported_type");
    bench.stop().await;
}
