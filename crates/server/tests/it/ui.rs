//! The web pages, as a browser without scripts sees them.

use serde_json::json;
use telusur_testkit::FakeAnswer;

use crate::bench::{Bench, endless_site, page};
use crate::client::Reply;

/// A site whose owner tries to get into the pages of whoever crawls it.
fn planted_site(path: &str) -> FakeAnswer {
    match path {
        "/" => FakeAnswer::html(
            "<title>&lt;script&gt;planted()&lt;/script&gt;</title>\
             <p>Coffee &lt;img src=x onerror=planted()&gt; beans and coffee again.</p>\
             <a href='/a?x=%22%3E%3Cscript%3Eplanted()'>\"&gt;&lt;script&gt;planted()</a>\
             <a href='/gone'>gone</a><a href='http://elsewhere.test/'>out</a>\
             <table><tr><td>&lt;script&gt;planted()</td></tr></table>\
             <script>planted()</script><link rel=preconnect href=http://elsewhere.test/>",
        ),
        path if path.starts_with("/item/") && path != "/item/3" => page(&[]),
        path if path.starts_with("/a") => FakeAnswer::html("<title>Tea</title><p>Leaves."),
        _ => FakeAnswer::not_found(),
    }
}

async fn bench() -> Bench {
    Bench::start_with(planted_site, |settings| settings.has_ui = true).await
}

/// Two crawls that are over: along links, and along numbers.
async fn crawled() -> Bench {
    let bench = bench().await;
    bench.crawled().await;
    let linear = json!({ "template": "http://site.test/item/{id}", "from": 1, "to": 5 });
    bench.client.post("/api/v1/crawls", &json!({ "linear": linear })).await;
    bench.finished(2).await;
    while bench.client.json("/api/v1/search?q=coffee").await["estimated_total"] == 0 {
        tokio::task::yield_now().await;
    }
    bench
}

async fn send_form(bench: &Bench, target: &str, fields: &str) -> Reply {
    let own = format!("http://{}", bench.client.address);
    bench
        .client
        .ask("POST", target)
        .header("content-type", "application/x-www-form-urlencoded")
        .header("origin", &own)
        .body(fields.to_owned())
        .send()
        .await
}

#[tokio::test]
async fn every_page_answers_in_both_languages_and_runs_nothing_of_strangers() {
    let bench = crawled().await;
    let home = bench.client.json("/api/v1/crawls/crawl_1/pages").await;
    let id = home["items"][0]["id"].as_str().unwrap().to_owned();
    let mut pages: Vec<String> = [
        "/",
        "/search?q=coffee",
        "/search?q=coffee&why=1&sort=newest&site=site.test&start=10",
        "/search?q=%3Cscript%3Eplanted()%3C/script%3E",
        "/crawls",
        "/crawls/new?urls=http://site.test/",
        "/crawls/crawl_1",
        "/crawls/crawl_1/live",
        "/crawls/crawl_1/pages",
        "/crawls/crawl_1/queue",
        "/crawls/crawl_1/hosts",
        "/crawls/crawl_1/errors",
        "/crawls/crawl_1/skipped",
        "/crawls/crawl_1/settings",
        "/crawls/crawl_1/delete",
        "/crawls/crawl_2/coverage",
        "/crawls/crawl_2/coverage?walk=0&first=2&last=4",
        "/explain?url=http://site.test/",
        "/system",
        "/docs/api",
    ]
    .map(str::to_owned)
    .into();
    for tab in [
        "text", "markdown", "meta", "links", "images", "tables", "lists", "forms", "scripts",
        "styles", "headers", "raw", "preview",
    ] {
        pages.push(format!("/pages/{id}?tab={tab}"));
    }
    for page in pages {
        for lang in ["en", "id"] {
            let ask = bench.client.ask("GET", page.as_str()).header("accept-language", lang);
            let reply = ask.send().await;
            let text = reply.text();
            assert_eq!(reply.status, 200, "{page} {text}");
            let is_whole = !page.ends_with("/live");
            assert_eq!(text.contains(&format!("<html lang=\"{lang}\"")), is_whole, "{page}");
            let policy = reply.header("content-security-policy");
            assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{page}");
            let lower = text.to_lowercase();
            for planted in ["<script>", "<img src=x", " onerror=planted()>", " style=\""] {
                assert!(!lower.contains(planted), "{page} holds {planted}: {text}");
            }
        }
    }
    bench.stop().await;
}

#[tokio::test]
async fn words_of_the_reader_are_used() {
    let bench = bench().await;
    for (header, target, expect) in [
        ("en", "/", "Search what you crawled"),
        ("id", "/", "Cari di halaman terjelajah"),
        ("en", "/?lang=id", "Cari di halaman terjelajah"),
        ("fr", "/", "Search what you crawled"),
    ] {
        let reply = bench.client.ask("GET", target).header("accept-language", header).send().await;
        assert!(reply.text().contains(expect), "{header} {target}");
    }
    let kept = bench.client.get("/?lang=id").await;
    assert!(kept.header("set-cookie").starts_with("telusur_lang=id;"), "{kept:?}");
    let again = bench.client.ask("GET", "/").header("cookie", "telusur_lang=id").send().await;
    assert!(again.text().contains("lang=\"id\""));
    let dark = bench.client.get("/look?scheme=dark&back=/crawls").await;
    assert_eq!((dark.status, dark.header("location")), (303, "/crawls"));
    let dark = bench.client.ask("GET", "/").header("cookie", "telusur_scheme=dark").send().await;
    assert!(dark.text().contains("data-scheme=\"dark\""));
    let away = bench.client.get("/look?scheme=dark&back=//evil.example/").await;
    assert_eq!(away.header("location"), "/");
    bench.stop().await;
}

#[tokio::test]
async fn found_words_are_marked_and_lead_to_the_stored_page() {
    let bench = crawled().await;
    let results = bench.client.get("/search?q=coffee").await.text();
    assert!(results.contains("<mark>Coffee</mark>"), "{results}");
    assert!(results.contains("&lt;script&gt;planted()") || results.contains("&#60;script"));
    let at = results.find("href=\"/page?url=").unwrap() + 6;
    let link = results[at..].split('"').next().unwrap().replace("&#38;", "&");
    let leads = bench.client.get(link.replace("&amp;", "&")).await;
    assert_eq!(leads.status, 303, "{leads:?}");
    let stored = bench.client.get(leads.header("location")).await;
    assert!(stored.text().contains("beans and coffee again"), "{}", stored.text());
    bench.stop().await;
}

#[tokio::test]
async fn a_form_previews_and_starts_a_crawl() {
    let bench = bench().await;
    let form = "along=links&urls=http%3A%2F%2Fsite.test%2F&max_pages=7&then=";
    let preview = send_form(&bench, "/crawls/new", &format!("{form}preview")).await;
    assert_eq!(preview.status, 200);
    assert!(preview.text().contains("telusur crawl http://site.test/ --max-pages 7"));
    assert_eq!(bench.client.json("/api/v1/crawls").await["total"], 0, "only a preview");
    let started = send_form(&bench, "/crawls/new", &format!("{form}start")).await;
    assert_eq!((started.status, started.header("location")), (303, "/crawls/crawl_1"));
    bench.finished(1).await;
    let wrong = send_form(&bench, "/crawls/new", "urls=http%3A%2F%2F10.0.0.1%2F&then=start").await;
    assert_eq!(wrong.status, 422);
    assert!(wrong.text().contains("role=\"alert\""));
    bench.stop().await;
}

#[tokio::test]
async fn forms_of_other_websites_change_nothing() {
    let bench = bench().await;
    for target in ["/crawls/new", "/crawls/crawl_1/stop", "/crawls/crawl_1/delete", "/key"] {
        for origin in ["http://evil.example", "null"] {
            let ask = bench.client.ask("POST", target).header("origin", origin);
            let form = ask.header("content-type", "application/x-www-form-urlencoded");
            let reply = form.body("urls=http%3A%2F%2Fsite.test%2F&then=start").send().await;
            assert_eq!(reply.status, 403, "{target} {origin}");
        }
    }
    assert_eq!(bench.client.json("/api/v1/crawls").await["total"], 0);
    bench.stop().await;
}

#[tokio::test]
async fn a_running_crawl_is_watched_changed_and_ended() {
    let bench = Bench::start_gated_with(endless_site, |settings| settings.has_ui = true).await;
    bench.client.post("/api/v1/crawls", &json!({ "urls": ["http://site.test/"] })).await;
    bench.gate.let_through(3);
    bench.until(telusur_model::CrawlNo(1), |it| it.stats.pages == 3).await;
    let live = bench.client.get("/crawls/crawl_1").await.text();
    assert!(live.contains("hx-get=\"/crawls/crawl_1/live\"") && live.contains("id=\"chart\""));
    let tried = send_form(&bench, "/crawls/crawl_1/settings", "exclude=%2F5%24&then=preview").await;
    assert!(tried.text().contains("<li dir=\"ltr\">http://site.test/5</li>"), "{}", tried.text());
    let odd = send_form(&bench, "/crawls/crawl_1/settings", "exclude=(&then=preview").await;
    assert_eq!(odd.status, 422);
    let added = send_form(&bench, "/crawls/crawl_1/settings", "exclude=%2F5%24&then=change").await;
    assert_eq!(added.status, 303);
    let crawl = bench.client.json("/api/v1/crawls/crawl_1").await;
    assert_eq!(crawl["scope"]["exclude"], json!(["/5$"]));
    bench.gate.let_through(1000);
    let paused = send_form(&bench, "/crawls/crawl_1/pause", "").await;
    assert_eq!((paused.status, paused.header("location")), (303, "/crawls/crawl_1"));
    assert_eq!(bench.client.json("/api/v1/crawls/crawl_1").await["state"], "paused");
    assert_eq!(send_form(&bench, "/crawls/crawl_1/delete", "").await.status, 303);
    let gone = bench.client.get("/crawls/crawl_1").await;
    assert_eq!((gone.status, gone.header("content-type")), (404, "text/html; charset=utf-8"));
    bench.stop().await;
}

/// Ids that only pretend to exist are named beside those that say that they do not.
#[tokio::test]
async fn the_coverage_names_ids_that_are_missing_by_their_look() {
    let say =
        |_: &str| FakeAnswer::html("<title>Item</title><p>There is no such item here, sorry.");
    let bench = Bench::start_with(say, |settings| settings.has_ui = true).await;
    let linear = json!({ "template": "http://site.test/item/{id}", "from": 1, "to": 200 });
    bench.client.post("/api/v1/crawls", &json!({ "linear": linear })).await;
    bench.finished(1).await;
    let known = bench.client.json("/api/v1/crawls/crawl_1/coverage").await;
    let by_look = known["items"][0]["counts"]["missing_by_look"].as_u64().unwrap();
    assert!(by_look > 0, "{known}");
    let english = bench.client.get("/crawls/crawl_1/coverage?lang=en").await.text();
    assert!(english.contains(&format!("{by_look} of them said that they exist")), "{english}");
    let indonesian = bench.client.get("/crawls/crawl_1/coverage?lang=id").await.text();
    assert!(indonesian.contains(&format!("{by_look} di antaranya mengaku ada")), "{indonesian}");
    bench.stop().await;
}

#[tokio::test]
async fn the_strip_shows_what_the_api_knows() {
    let bench = crawled().await;
    let known = bench.client.json("/api/v1/crawls/crawl_2/coverage").await;
    let runs = known["items"][0]["runs"].as_array().unwrap();
    let drawn = bench.client.get("/crawls/crawl_2/coverage").await.text();
    assert_eq!(drawn.matches("data-first=").count(), runs.len());
    for run in runs {
        let rect = format!(
            "<rect class=\"{}\" data-first=\"{}\" data-last=\"{}\"",
            run["state"].as_str().unwrap(),
            run["first"],
            run["last"]
        );
        assert!(drawn.contains(&rect), "{rect} in {drawn}");
    }
    bench.stop().await;
}

#[tokio::test]
async fn a_preview_may_do_nothing() {
    let bench = crawled().await;
    let pages = bench.client.json("/api/v1/crawls/crawl_1/pages").await;
    let id = pages["items"][0]["id"].as_str().unwrap();
    let preview = bench.client.get(format!("/pages/{id}/preview")).await;
    assert_eq!(preview.status, 200);
    let policy = preview.header("content-security-policy");
    assert!(policy.starts_with("sandbox; default-src 'none';"), "{policy}");
    assert!(preview.text().contains("<no-link"), "{}", preview.text());
    let page = bench.client.get(format!("/pages/{id}?tab=preview")).await.text();
    assert!(page.contains("<iframe class=\"preview\" sandbox "), "{page}");
    bench.stop().await;
}

#[tokio::test]
async fn a_browser_can_carry_a_key() {
    let bench = bench().await;
    let made = bench.client.post("/api/v1/keys", &json!({ "scopes": ["read"] })).await.json();
    let key = made["key"].as_str().unwrap();
    let refused = bench.client.get("/crawls").await;
    assert_eq!(refused.status, 401);
    assert!(refused.text().contains("action=\"/key\""), "{}", refused.text());
    assert_eq!(send_form(&bench, "/key", "key=tlk_wrong&back=/crawls").await.status, 401);
    let given = send_form(&bench, "/key", &format!("key={key}&back=/crawls")).await;
    assert_eq!((given.status, given.header("location")), (303, "/crawls"));
    let cookie = given.header("set-cookie");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let ask = bench.client.ask("GET", "/crawls").header("cookie", &cookie);
    assert_eq!(ask.send().await.status, 200);
    let ask = bench.client.ask("GET", "/crawls/new").header("cookie", &cookie);
    assert_eq!(ask.send().await.status, 403, "reading is not crawling");
    bench.stop().await;
}

#[tokio::test]
async fn files_are_kept_by_browsers_and_pages_are_not() {
    let bench = bench().await;
    let home = bench.client.get("/").await;
    assert_eq!(home.header("cache-control"), "no-store");
    let text = home.text();
    for (start, kind) in
        [("/assets/telusur.css?", "text/css"), ("/assets/keys.js?", "text/javascript")]
    {
        let at = text.find(start).unwrap();
        let file = bench.client.get(text[at..].split('"').next().unwrap()).await;
        assert_eq!(file.status, 200);
        assert!(file.header("content-type").starts_with(kind));
        assert!(file.header("cache-control").contains("immutable"));
    }
    assert_eq!(bench.client.get("/assets/nothing.js").await.status, 404);
    bench.stop().await;
}

#[tokio::test]
async fn where_nothing_is_people_are_shown_a_page_and_programs_a_problem() {
    let bench = bench().await;
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    for (method, target, status) in
        [("GET", "/no/such/page", 404), ("GET", "/crawls/crawl_1/pause", 405)]
    {
        let ask = || bench.client.ask(method, target);
        let page = ask().header("accept", browser).header("accept-language", "id").send().await;
        assert_eq!(
            (page.status, page.header("content-type")),
            (status, "text/html; charset=utf-8")
        );
        assert!(page.text().contains("<html lang=\"id\""), "{}", page.text());
        assert!(page.header("content-security-policy").contains("script-src 'self'"));
        for accepted in ["*/*", "application/json"] {
            let problem = ask().header("accept", accepted).send().await;
            assert_eq!(problem.status, status);
            assert_eq!(problem.header("content-type"), "application/problem+json");
        }
    }
    let api = bench.client.ask("GET", "/api/v1/nothing").header("accept", browser).send().await;
    api.problem(404, "not_found");
    bench.stop().await;
}
