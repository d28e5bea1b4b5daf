//! Who may do what.

use serde_json::json;
use telusur_model::Timestamp;
use telusur_server::{KeyFile, Scope};

use crate::bench::{Bench, small_site};

fn key(bench: &Bench, scope: Scope) -> String {
    let file = KeyFile::new(&bench.dir.path().join("keys.json"));
    file.create(scope.word(), &[scope], Timestamp(1), None).unwrap().0
}

#[tokio::test]
async fn other_websites_cannot_change_anything() {
    let bench = Bench::start(small_site).await;
    let body = json!({ "url": "http://site.test/" });
    for (name, value) in [
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        for target in ["/crawl", "/api/v1/crawls"] {
            let ask = bench.client.ask("POST", target).json(&body).header(name, value);
            ask.send().await.problem(403, "forbidden_origin");
        }
    }
    let own = format!("http://{}", bench.client.address);
    let ask = bench.client.ask("POST", "/crawl").json(&body).header("origin", &own);
    assert_eq!(ask.send().await.status, 200);
    bench.stop().await;
}

#[tokio::test]
async fn names_of_others_are_not_answered_to() {
    let bench =
        Bench::start_with(small_site, |it| it.allowed_hosts = vec!["our.example".into()]).await;
    for (host, status) in [
        ("evil.example", 421),
        ("evil.example:8088", 421),
        ("127.0.0.1.evil.example", 421),
        ("", 421),
        ("localhost", 200),
        ("localhost:1", 200),
        ("127.0.0.1:5", 200),
        ("[::1]:5", 200),
        ("our.example", 200),
        ("OUR.example:80", 200),
        ("sub.our.example", 421),
    ] {
        let reply = bench.client.ask("GET", "/api/v1/crawls").header("host", host).send().await;
        assert_eq!(reply.status, status, "{host}");
    }
    bench.stop().await;
}

#[tokio::test]
async fn a_key_allows_what_its_scope_says() {
    let bench = Bench::start(small_site).await;
    let keys: Vec<(Scope, String)> =
        Scope::ALL.iter().map(|scope| (*scope, key(&bench, *scope))).collect();
    // The service looks at the file once a second; making a key through it looks at once.
    bench
        .service
        .create_key(serde_json::from_value(json!({ "scopes": ["read"] })).unwrap())
        .await
        .unwrap();
    let routes = [
        ("GET", "/api/v1/search?q=x", Scope::Search),
        ("GET", "/api/v1/crawls", Scope::Read),
        ("GET", "/crawl/crawl_1", Scope::Read),
        ("POST", "/api/v1/crawls", Scope::Crawl),
        ("POST", "/crawl", Scope::Crawl),
        ("POST", "/api/v1/fetch", Scope::Crawl),
        ("GET", "/metrics", Scope::Metrics),
        ("GET", "/api/v1/keys", Scope::Admin),
    ];
    for (method, target, needed) in routes {
        bench.client.ask(method, target).send().await.problem(401, "unauthorized");
        let wrong = bench.client.with_key("tlk_wrong").ask(method, target).send().await;
        wrong.problem(401, "unauthorized");
        assert!(wrong.header("www-authenticate").starts_with("Bearer"));
        for (scope, key) in &keys {
            let reply = bench.client.with_key(key).ask(method, target).send().await;
            let is_let_in = ![401, 403].contains(&reply.status);
            assert_eq!(
                is_let_in,
                scope.covers(needed),
                "{method} {target} with {scope:?}: {reply:?}"
            );
            if !is_let_in {
                reply.problem(403, "forbidden_scope");
            }
        }
    }
    let query = format!("/api/v1/crawls?key={}", keys[4].1);
    bench.client.get(query).await.problem(401, "unauthorized");
    for open in ["/healthz", "/readyz", "/api/v1/openapi.json"] {
        assert_eq!(bench.client.get(open).await.status, 200);
    }
    bench.stop().await;
}

#[tokio::test]
async fn a_browser_carries_its_key_in_a_cookie() {
    let bench = Bench::start(small_site).await;
    let made = bench.client.post("/api/v1/keys", &json!({ "scopes": ["read"] })).await.json();
    let cookie = format!("lang=id; telusur_key={}", made["key"].as_str().unwrap());
    let reply = bench.client.ask("GET", "/api/v1/crawls").header("cookie", &cookie).send().await;
    assert_eq!(reply.status, 200);
    bench.stop().await;
}

#[tokio::test]
async fn searching_can_be_open_to_all() {
    let bench = Bench::start_with(small_site, |it| it.public_search = true).await;
    bench.client.post("/api/v1/keys", &json!({ "scopes": ["admin"] })).await;
    assert_eq!(bench.client.get("/api/v1/search?q=x").await.status, 200);
    bench.client.get("/api/v1/crawls").await.problem(401, "unauthorized");
    bench.stop().await;
}

#[tokio::test]
async fn keys_are_made_listed_and_revoked_and_shown_once() {
    let bench = Bench::start(small_site).await;
    let body = json!({ "name": "ops", "scopes": ["admin"], "expires_in_days": 30 });
    let made = bench.client.post("/api/v1/keys", &body).await;
    assert_eq!(made.status, 201);
    let made = made.json();
    let (key, id) = (made["key"].as_str().unwrap(), made["id"].as_str().unwrap());
    let admin = bench.client.with_key(key);
    let listed = admin.get("/api/v1/keys").await;
    assert!(!listed.text().contains(key) && !listed.text().contains("hash"), "{listed:?}");
    assert_eq!((&listed.json()[0]["id"], &listed.json()[0]["name"]), (&json!(id), &json!("ops")));
    for wrong in [
        json!({ "scopes": [] }),
        json!({ "scopes": ["root"] }),
        json!({ "scopes": ["read"], "expires_in_days": 0 }),
        json!({}),
    ] {
        admin.post("/api/v1/keys", &wrong).await.problem(422, "invalid_field");
    }
    let second = admin.post("/api/v1/keys", &json!({ "scopes": ["admin"] })).await.json();
    let revoke = || admin.ask("DELETE", format!("/api/v1/keys/{id}")).send();
    assert_eq!(revoke().await.status, 204);
    revoke().await.problem(401, "unauthorized");
    let other = bench.client.with_key(second["key"].as_str().unwrap());
    let gone = other.ask("DELETE", format!("/api/v1/keys/{id}")).send().await;
    gone.problem(404, "not_found");
    bench.stop().await;
}

#[tokio::test]
async fn a_key_that_makes_too_many_requests_waits() {
    let bench = Bench::start_with(small_site, |it| {
        it.bounds.key_burst = 5;
        it.bounds.key_requests_per_s = 1;
    });
    let bench = bench.await;
    let made = bench.client.post("/api/v1/keys", &json!({ "scopes": ["read"] })).await.json();
    let client = bench.client.with_key(made["key"].as_str().unwrap());
    let mut refused = None;
    for _ in 0..50 {
        let reply = client.get("/api/v1/crawls").await;
        if reply.status == 429 {
            refused = Some(reply);
            break;
        }
    }
    let refused = refused.expect("fifty at once are too many");
    refused.problem(429, "too_many_requests");
    assert_eq!(refused.header("retry-after"), "1");
    bench.stop().await;
}

#[tokio::test]
async fn a_service_that_only_reads_changes_nothing() {
    let bench = Bench::start_with(small_site, |it| it.read_only = true).await;
    let body = json!({ "urls": ["http://site.test/"] });
    bench.client.post("/api/v1/crawls", &body).await.problem(403, "read_only");
    let s1 = bench.client.post("/crawl", &json!({ "url": "http://site.test/" })).await;
    s1.problem(403, "read_only");
    assert_eq!(bench.client.get("/api/v1/crawls").await.status, 200);
    bench.stop().await;
}

#[tokio::test]
async fn revoking_the_only_key_opens_nothing() {
    let bench = Bench::start(small_site).await;
    let made = bench.client.post("/api/v1/keys", &json!({ "scopes": ["admin"] })).await.json();
    let admin = bench.client.with_key(made["key"].as_str().unwrap());
    let target = format!("/api/v1/keys/{}", made["id"].as_str().unwrap());
    assert_eq!(admin.ask("DELETE", target).send().await.status, 204);
    for client in [&bench.client, &admin] {
        client.get("/api/v1/crawls").await.problem(401, "unauthorized");
    }
    let bench = bench.restart().await;
    bench.client.get("/api/v1/crawls").await.problem(401, "unauthorized");
    bench.stop().await;
}

#[tokio::test]
async fn a_service_that_only_reads_makes_no_keys() {
    let bench = Bench::start_with(small_site, |it| it.read_only = true).await;
    let refused = bench.client.post("/api/v1/keys", &json!({ "scopes": ["admin"] })).await;
    refused.problem(403, "read_only");
    assert!(!bench.dir.path().join("keys.json").exists());
    bench.stop().await;
}

#[tokio::test]
async fn a_stream_ends_with_its_key() {
    use http_body_util::BodyExt;
    let bench = Bench::start_gated(small_site).await;
    let body = json!({ "urls": ["http://site.test/"] });
    assert_eq!(bench.client.post("/api/v1/crawls", &body).await.status, 202);
    let admin = bench.client.post("/api/v1/keys", &json!({ "scopes": ["admin"] })).await.json();
    let admin = bench.client.with_key(admin["key"].as_str().unwrap());
    let made = admin.post("/api/v1/keys", &json!({ "scopes": ["read"] })).await.json();
    let reader = bench.client.with_key(made["key"].as_str().unwrap());
    let mut events = reader.ask("GET", "/api/v1/crawls/crawl_1/events").begin().await;
    assert_eq!(events.status(), 200);
    assert!(events.body_mut().frame().await.unwrap().is_ok(), "the first event");
    let target = format!("/api/v1/keys/{}", made["id"].as_str().unwrap());
    assert_eq!(admin.ask("DELETE", target).send().await.status, 204);
    // The crawl waits for the test and never ends: only the key does.
    while let Some(frame) = events.body_mut().frame().await {
        frame.unwrap();
    }
    bench.stop().await;
}

#[tokio::test]
async fn who_only_reads_gets_no_cookies_of_sites() {
    let bench = Bench::start(|path| {
        let mut answer = small_site(path);
        answer.headers.push(("set-cookie", "sid=s3cret; Path=/; HttpOnly".into()));
        answer
    });
    let bench = bench.await;
    bench.crawled().await;
    let target = "/api/v1/pages?url=http://site.test/a";
    let shown = async |client: &crate::client::Client| {
        let page = client.json(target).await;
        let by_id = client.json(format!("/api/v1/pages/{}", page["id"].as_str().unwrap())).await;
        assert_eq!(page["headers"], by_id["headers"]);
        page["headers"].to_string()
    };
    assert!(shown(&bench.client).await.contains("sid=s3cret"), "nobody needs a key yet");
    let made = async |scope: &str, client: &crate::client::Client| {
        let made = client.post("/api/v1/keys", &json!({ "scopes": [scope] })).await.json();
        client.with_key(made["key"].as_str().unwrap())
    };
    let admin = made("admin", &bench.client).await;
    let (reader, crawler) = (made("read", &admin).await, made("crawl", &admin).await);
    assert!(shown(&crawler).await.contains("sid=s3cret"));
    let masked = shown(&reader).await;
    assert!(masked.contains("sid=***; Path=/; HttpOnly") && !masked.contains("s3cret"), "{masked}");
    bench.stop().await;
}
