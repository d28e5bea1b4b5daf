use telusur_model::ScopeKind;

use super::*;

fn owner() -> RequestPolicy {
    RequestPolicy::of_owner(program_defaults())
}

fn user() -> RequestPolicy {
    let guard = Some(telusur_fetch::AddressGuard::default());
    RequestPolicy { bounds: RequestBounds::USER, guard, rights: Rights::User, ..owner() }
}

fn read(json: &str) -> CrawlRequest {
    serde_json::from_str(json).unwrap()
}

/// A request on top of one start URL.
fn with(fields: &str) -> CrawlRequest {
    read(&format!("{{\"urls\": [\"http://a.org/\"], {fields}}}"))
}

#[track_caller]
fn check_refused(policy: &RequestPolicy, request: &CrawlRequest, kind: BadRequestKind, at: &str) {
    let bad = policy.crawl_of(request).unwrap_err();
    assert_eq!((bad.kind, bad.pointer.as_str()), (kind, at), "{bad:?}");
}

#[test]
fn what_is_not_named_is_as_the_defaults_say() {
    let crawl = user().crawl_of(&read("{\"urls\": [\"http://a.org/\"]}")).unwrap();
    let defaults = program_defaults();
    assert_eq!(crawl.limits, defaults.limits);
    assert_eq!(crawl.politeness, defaults.politeness);
    assert_eq!(crawl.scope, defaults.scope);
    assert_eq!(crawl.fetch, defaults.fetch);
}

#[test]
fn every_field_arrives() {
    let request = with(
        "\"limits\": {\"max_pages\": 5, \"max_duration_s\": 1.5, \"max_per_site\": 7, \"min_free_disk\": 9},
         \"scope\": {\"kind\": \"prefix\", \"exclude\": [\"/x\"], \"query_params\": \"drop=a,b\", \"keep_tracking\": true},
         \"politeness\": {\"delay_ms\": 2, \"retries\": 0, \"nofollow\": true, \"crawl_delay_max_ms\": 3,
                          \"robots\": \"unreachable_allows\", \"fairness\": \"weighted\"},
         \"fetch\": {\"timeout_ms\": 4, \"max_redirects\": 1, \"http\": \"1\", \"cookies\": false,
                     \"headers\": [[\"Accept-Language\", \"id\"]],
                     \"basic_auth\": [{\"host\": \"a.org\", \"user\": \"u\", \"password\": \"p\"}]},
         \"keep\": \"raw\", \"topic\": [\"Kopi\"], \"discover_sitemaps\": false, \"labels\": {\"team\": \"x\"}",
    );
    let crawl = user().crawl_of(&request).unwrap();
    assert_eq!((crawl.limits.pages_max, crawl.limits.duration_ms_max), (Some(5), Some(1_500)));
    assert_eq!((crawl.limits.urls_per_site_max, crawl.limits.free_bytes_min), (7, Some(9)));
    assert_eq!(crawl.scope.kind, ScopeKind::Prefix);
    assert_eq!(crawl.scope.exclude, ["/logout", "[?&]sessionid=", "/x"]);
    assert_eq!(crawl.scope.query_params, QueryParams::Drop(vec!["a".into(), "b".into()]));
    assert!(crawl.keep_tracking && crawl.politeness.obey_rel_nofollow);
    assert_eq!((crawl.politeness.delay_ms, crawl.politeness.attempts_max), (2, 1));
    assert_eq!(crawl.politeness.robots, RobotsRules::UnreachableAllows);
    assert_eq!(crawl.politeness.fairness, Fairness::Weighted);
    assert_eq!((crawl.fetch.timeout_ms, crawl.fetch.redirects_max), (4, 1));
    assert_eq!((crawl.fetch.http, crawl.fetch.cookies), (HttpVersion::One, false));
    assert_eq!(crawl.fetch.headers, [("Accept-Language".to_owned(), "id".to_owned())]);
    assert_eq!(crawl.fetch.basic_auth[0].password.reveal(), "p");
    assert_eq!((crawl.keep, crawl.topic.as_slice()), (Keep::Raw, ["kopi".to_owned()].as_slice()));
    assert!(!crawl.sitemaps.discover);
}

/// Requests written before `manners` was renamed.
#[test]
fn manners_are_politeness() {
    let crawl = user().crawl_of(&with("\"manners\": {\"workers\": 3}")).unwrap();
    assert_eq!((crawl.politeness.workers, crawl.politeness.silent_max), (3, 0));
}

#[test]
fn only_the_owner_decides_which_addresses_are_reached_and_as_whom() {
    let fields = [
        ("\"fetch\": {\"user_agent\": \"Other/1\"}", "/fetch/user_agent"),
        ("\"fetch\": {\"proxy\": \"http://p.org:3128\"}", "/fetch/proxy"),
        ("\"fetch\": {\"allow_private\": [\"10.0.0.0/8\"]}", "/fetch/allow_private"),
        ("\"fetch\": {\"insecure_hosts\": [\"a.org\"]}", "/fetch/insecure_hosts"),
        ("\"politeness\": {\"robots\": \"ignore\"}", "/politeness/robots"),
        ("\"scope\": {\"default_exclude\": false}", "/scope/default_exclude"),
    ];
    for (field, pointer) in fields {
        check_refused(&user(), &with(field), BadRequestKind::Rights, pointer);
        owner().crawl_of(&with(field)).unwrap();
    }
    let without = owner().crawl_of(&with("\"scope\": {\"default_exclude\": false}")).unwrap();
    assert!(without.scope.exclude.is_empty());
}

#[test]
fn mistakes_name_their_field() {
    let field = BadRequestKind::Field;
    let cases = [
        ("\"limits\": {\"max_per_host\": 0}", "/limits/max_per_host"),
        ("\"limits\": {\"max_duration_s\": -1}", "/limits/max_duration_s"),
        ("\"limits\": {\"patience_s\": 1e9}", "/limits/patience_s"),
        ("\"limits\": {\"max_body\": 99999999999}", "/limits/max_body"),
        ("\"politeness\": {\"fairness\": \"fair\"}", "/politeness/fairness"),
        ("\"politeness\": {\"workers\": 0}", "/politeness/workers"),
        ("\"politeness\": {\"retries\": 200}", "/politeness/retries"),
        ("\"fetch\": {\"http\": \"3\"}", "/fetch/http"),
        ("\"fetch\": {\"headers\": [[\"Host\", \"b.org\"]]}", "/fetch/headers/0"),
        ("\"fetch\": {\"headers\": [[\"A\", \"b\\r\\nC: d\"]]}", "/fetch/headers/0"),
        ("\"scope\": {\"include\": [\"/ok\", \"(\"]}", "/scope/include/1"),
        ("\"scope\": {\"exclude\": [\"/ok\", \"[\"]}", "/scope/exclude/1"),
        ("\"scope\": {\"exclude\": [\"a.org\"]}", "/scope/exclude"),
        ("\"scope\": {\"query_params\": \"sort\"}", "/scope/query_params"),
        ("\"keep\": \"all\"", "/keep"),
        ("\"name\": \"last\"", "/name"),
        ("\"labels\": {\"telusur.request\": \"x\"}", "/labels"),
        ("\"linear\": {\"template\": \"http://a.org/{id}\"}", "/linear"),
    ];
    for (json, pointer) in cases {
        check_refused(&user(), &with(json), field, pointer);
    }
    check_refused(&user(), &read("{}"), field, "/urls");
    check_refused(&user(), &read("{\"urls\": [\"a\"]}"), field, "/urls/0");
    let inside = read("{\"urls\": [\"http://10.0.0.1/\"]}");
    check_refused(&user(), &inside, BadRequestKind::Address, "/urls/0");
    assert!(serde_json::from_str::<CrawlRequest>("{\"limit\": {}}").is_err(), "a misspelt field");
}

#[test]
fn ids_are_walked_as_asked() {
    let linear = |fields: &str| read(&format!("{{\"linear\": {{{fields}}}}}"));
    let request = linear(
        "\"templates\": [\"http://a.org/{id}\", \"http://b.org/{id}\"], \"from\": 1, \"to\": 9,
         \"rates\": [{\"asc\": 1}, {\"asc\": 5, \"desc\": 7}], \"cooldown_s\": 0.5, \"follow\": \"host\",
         \"resume\": \"holes\"",
    );
    let crawl = user().crawl_of(&request).unwrap();
    let seeds = crawl.seeds.linear().unwrap();
    let rates: Vec<_> = seeds
        .walks
        .iter()
        .map(|walk| (walk.rules().rates.ascending, walk.rules().rates.descending))
        .collect();
    assert_eq!(rates, [(1, 1), (5, 7)]);
    assert_eq!(seeds.walks[0].rules().cooldown_ms, 500);
    assert_eq!((seeds.resume, seeds.follow), (telusur_model::Resume::Holes, true));
    assert_eq!(crawl.scope.kind, ScopeKind::Host);
    assert!(crawl.keep_tracking);

    let template = BadRequestKind::Template;
    check_refused(&user(), &linear(""), template, "/linear/template");
    check_refused(
        &user(),
        &linear("\"template\": \"http://a.org/\""),
        template,
        "/linear/template",
    );
    let twice = "\"templates\": [\"http://a.org/{id}\", \"http://a.org/{id}\"]";
    check_refused(&user(), &linear(twice), template, "/linear/templates");
    let unbounded = linear("\"template\": \"http://a.org/{id}\", \"margin\": 0, \"start\": 5");
    check_refused(&user(), &unbounded, BadRequestKind::Walk, "/linear");
    let uneven =
        linear("\"template\": \"http://a.org/{id}\", \"from\": 1, \"to\": 2, \"rates\": [{}, {}]");
    check_refused(&user(), &uneven, BadRequestKind::Field, "/linear/rates");
}

#[test]
fn a_change_names_only_what_changes() {
    let crawl = owner().crawl_of(&with("\"name\": \"x\"")).unwrap();
    let change = |json: &str| user().change_of(&crawl, &serde_json::from_str(json).unwrap(), None);
    assert_eq!(change("{}").unwrap(), CrawlChange::default());
    let changed = change("{\"politeness\": {\"delay_ms\": 5}}").unwrap();
    assert_eq!((changed.limits, changed.politeness.map(|it| it.delay_ms)), (None, Some(5)));
    assert!(change("{\"exclude\": [\"/old\"]}").unwrap().compiled.is_some());
    assert_eq!(change("{\"exclude\": [\"/old\", \"(\"]}").unwrap_err().pointer, "/exclude/1");
    assert_eq!(change("{\"limits\": {\"max_body\": 1}}").unwrap_err().pointer, "/limits/max_body");
}
