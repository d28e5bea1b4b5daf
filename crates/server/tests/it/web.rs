//! Single pages from the web, and the URLs of a site.

use serde_json::json;
use telusur_testkit::FakeAnswer;

use crate::bench::{Bench, page, small_site};

#[tokio::test]
async fn a_page_is_fetched_and_read() {
    let bench = Bench::start(|path| match path {
        "/old" => FakeAnswer::redirect(301, "/a"),
        path => small_site(path),
    });
    let bench = bench.await;
    let page = bench.client.post("/api/v1/fetch", &json!({ "url": "http://site.test/old" })).await;
    assert_eq!(page.status, 200, "{page:?}");
    let page = page.json();
    assert_eq!((&page["url"], &page["title"]), (&json!("http://site.test/a"), &json!("Coffee")));
    assert_eq!(page["redirects"], json!(["http://site.test/old"]));
    assert!(page["markdown"].as_str().unwrap().contains("Roasted"));
    assert_eq!(bench.client.json("/api/v1/crawls").await["total"], 0, "nothing is stored");
    bench.stop().await;
}

#[tokio::test]
async fn what_is_not_public_is_not_fetched_for_anybody() {
    let bench = Bench::start(small_site).await;
    for target in ["/api/v1/fetch", "/api/v1/map"] {
        for url in [
            "http://127.0.0.1/",
            "http://169.254.169.254/",
            "http://[fd00::1]/",
            "http://site.test:22/",
            "http://0x7f.1/",
        ] {
            let problem = bench
                .client
                .post(target, &json!({ "url": url }))
                .await
                .problem(422, "url_not_allowed");
            assert_eq!(problem["pointer"], "/url");
        }
        bench
            .client
            .post(target, &json!({ "url": "gopher://x/" }))
            .await
            .problem(422, "invalid_field");
        bench
            .client
            .post(target, &json!({ "url": "http://nowhere.test/" }))
            .await
            .problem(422, "not_fetched");
    }
    bench.stop().await;
}

#[tokio::test]
async fn the_urls_of_a_site_are_listed() {
    let bench = Bench::start(|path| match path {
        "/" => page(&["/a", "/listed", "http://other.test/"]),
        "/robots.txt" => FakeAnswer::ok("text/plain", "Sitemap: http://site.test/map.xml\n"),
        "/map.xml" => FakeAnswer::ok(
            "application/xml",
            "<urlset><url><loc>http://site.test/listed</loc></url></urlset>",
        ),
        _ => FakeAnswer::not_found(),
    });
    let bench = bench.await;
    let map = bench.client.post("/api/v1/map", &json!({ "url": "http://site.test/" })).await.json();
    let link = |url: &str, via: &str| json!({ "url": url, "via": via });
    assert_eq!(
        map["links"],
        json!([link("http://site.test/listed", "sitemap"), link("http://site.test/a", "link")])
    );
    let few = json!({ "url": "http://site.test/", "limit": 1 });
    let few = bench.client.post("/api/v1/map", &few).await.json();
    assert_eq!((few["links"].as_array().unwrap().len(), &few["truncated"]), (1, &json!(true)));
    let none = json!({ "url": "http://site.test/", "limit": 0 });
    bench.client.post("/api/v1/map", &none).await.problem(422, "invalid_field");
    bench.stop().await;
}
