//! Settings as a request for a crawl: what the user chose, by flags, environment or files. What was not chosen is as
//! the process says that runs the crawl.

use telusur_engine::request::{
    BadRequest, BadRequestKind, ChangeRequest, CrawlRequest, FetchRequest, LimitsRequest,
    PolitenessRequest, RequestPolicy, ScopeRequest, program_defaults,
};
use telusur_model::{Crawl, RobotsRules};

use crate::message::{Code, Message, shown};
use crate::settings::{FailOn, Given, Key, Settings, Value};

/// The request that these settings describe, without a start.
pub fn crawl_request(settings: &Settings) -> CrawlRequest {
    let chosen = Chosen { settings, is_asked: &|key| settings.is_chosen(key) };
    CrawlRequest {
        limits: limits(&chosen),
        scope: scope(&chosen),
        politeness: politeness(&chosen),
        fetch: fetch(&chosen),
        keep: chosen.word(Key::Keep),
        topic: chosen.list(Key::Topic),
        discover_sitemaps: chosen.switch(Key::ReadSitemaps),
        ..CrawlRequest::default()
    }
}

/// What these settings change about a crawl: those that were given as flags of this command.
pub fn change_request(settings: &Settings, given: &[Given]) -> ChangeRequest {
    let is_given = |key: Key| given.iter().any(|given| given.key == key);
    let chosen = Chosen { settings, is_asked: &is_given };
    ChangeRequest {
        limits: limits(&chosen),
        politeness: politeness(&chosen),
        exclude: chosen.list(Key::Exclude),
    }
}

/// What crawls are like with these settings, without a start.
pub fn crawl_settings(settings: &Settings) -> Result<Crawl, Message> {
    settings_of(&crawl_request(settings))
}

/// What crawls are like with the settings of a request, without its start.
pub fn settings_of(request: &CrawlRequest) -> Result<Crawl, Message> {
    policy().settings_of(request).map_err(|bad| bad_request_message(&bad))
}

/// The crawl that a request describes, as this process would run it.
pub fn crawl_of(request: &CrawlRequest) -> Result<Crawl, Message> {
    policy().crawl_of(request).map_err(|bad| bad_request_message(&bad))
}

fn policy() -> RequestPolicy {
    RequestPolicy::of_owner(program_defaults())
}

/// What is wrong with a request, for people.
pub fn bad_request_message(bad: &BadRequest) -> Message {
    let code = match bad.kind {
        BadRequestKind::Field | BadRequestKind::Rights => Code::BadArgument,
        BadRequestKind::Address => Code::PrivateAddress,
        BadRequestKind::Template => Code::Template,
        BadRequestKind::Walk => Code::Walk,
    };
    let what = match bad.kind {
        BadRequestKind::Field | BadRequestKind::Rights | BadRequestKind::Address => {
            let field = bad.pointer.trim_start_matches('/').replace('/', ".");
            format!("{}: {}", shown(&field), shown(&bad.what))
        }
        // They name the template, or all that was said about ids.
        BadRequestKind::Template | BadRequestKind::Walk => shown(&bad.what),
    };
    let message = Message::new(code, what);
    match &bad.hint {
        Some(hint) => message.hint(shown(hint)),
        None => message,
    }
}

/// Reads settings that are asked for; the others are `None`, or empty.
struct Chosen<'a> {
    settings: &'a Settings,
    is_asked: &'a dyn Fn(Key) -> bool,
}

impl Chosen<'_> {
    fn get<T>(&self, key: Key, read: impl FnOnce(&Settings) -> T) -> Option<T> {
        (self.is_asked)(key).then(|| read(self.settings))
    }

    fn count(&self, key: Key) -> Option<u64> {
        self.get(key, |settings| settings.count(key))
    }

    fn small_count<T: TryFrom<u64>>(&self, key: Key) -> Option<T> {
        self.get(key, |settings| settings.small_count(key))
    }

    fn bytes(&self, key: Key) -> Option<u64> {
        self.get(key, |settings| settings.bytes(key))
    }

    fn ms(&self, key: Key) -> Option<u64> {
        self.get(key, |settings| settings.duration_ms(key))
    }

    fn seconds(&self, key: Key) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "durations end at a year")]
        self.ms(key).map(|ms| ms as f64 / 1000.0)
    }

    fn switch(&self, key: Key) -> Option<bool> {
        self.get(key, |settings| settings.switch(key))
    }

    fn word(&self, key: Key) -> Option<String> {
        self.get(key, |settings| settings.word(key).to_owned())
    }

    fn list(&self, key: Key) -> Vec<String> {
        self.get(key, |settings| settings.list(key).to_vec()).unwrap_or_default()
    }
}

fn limits(chosen: &Chosen<'_>) -> LimitsRequest {
    LimitsRequest {
        max_pages: chosen.count(Key::MaxPages),
        max_depth: chosen.small_count(Key::MaxDepth),
        max_duration_s: chosen.seconds(Key::MaxDuration),
        max_bytes: chosen.bytes(Key::MaxBytes),
        max_errors: chosen.count(Key::MaxErrors),
        max_per_host: chosen.count(Key::MaxPerHost),
        max_per_site: chosen.count(Key::MaxPerSite),
        patience_s: chosen.seconds(Key::Patience),
        max_body: chosen.bytes(Key::MaxBody),
        min_free_disk: chosen.bytes(Key::MinFreeDisk),
    }
}

fn scope(chosen: &Chosen<'_>) -> ScopeRequest {
    let query_params = chosen.get(Key::QueryParams, |settings| {
        let Value::QueryParams(params) = settings.value(Key::QueryParams) else {
            unreachable!("the registry says which kind it is")
        };
        params.text()
    });
    ScopeRequest {
        kind: chosen.word(Key::Scope),
        include: chosen.list(Key::Include),
        exclude: chosen.list(Key::Exclude),
        // A list that is set replaces the default.
        default_exclude: chosen.get(Key::Exclude, |_| false),
        allow_hosts: chosen.list(Key::AllowHosts),
        extra_hops: chosen.small_count(Key::ExtraHops),
        query_params,
        keep_tracking: chosen.switch(Key::KeepTracking),
    }
}

fn politeness(chosen: &Chosen<'_>) -> PolitenessRequest {
    let rate_per_s = chosen.get(Key::Rate, |settings| {
        let Value::RatePerSecond(rate) = settings.value(Key::Rate) else {
            unreachable!("the registry says which kind it is")
        };
        *rate
    });
    PolitenessRequest {
        delay_ms: chosen.ms(Key::Delay),
        per_host: chosen.small_count(Key::PerHost),
        workers: chosen.get(Key::Workers, |settings| settings.workers(Key::Workers)).flatten(),
        rate_per_s,
        adaptive: chosen.switch(Key::Adaptive),
        fairness: chosen.word(Key::Fairness),
        retries: chosen.small_count(Key::Retries),
        crawl_delay_max_ms: chosen.ms(Key::CrawlDelayMax),
        robots: robots(chosen).map(|robots| robots.word().to_owned()),
        nofollow: chosen.switch(Key::Nofollow),
    }
}

fn robots(chosen: &Chosen<'_>) -> Option<RobotsRules> {
    let settings = chosen.settings;
    if !(chosen.is_asked)(Key::Robots) && !(chosen.is_asked)(Key::RobotsUnreachable) {
        return None;
    }
    Some(match (settings.switch(Key::Robots), settings.word(Key::RobotsUnreachable)) {
        (false, _) => RobotsRules::Ignore,
        (true, "allow") => RobotsRules::UnreachableAllows,
        (true, _) => RobotsRules::Obey,
    })
}

/// Passwords and files are read by commands that have the environment and the disk.
fn fetch(chosen: &Chosen<'_>) -> FetchRequest {
    let settings = chosen.settings;
    let headers = chosen.get(Key::Headers, |settings| {
        let Value::Headers(headers) = settings.value(Key::Headers) else {
            unreachable!("the registry says which kind it is")
        };
        headers.clone()
    });
    let proxy = chosen.get(Key::Proxy, |settings| {
        let Value::Proxy(proxy) = settings.value(Key::Proxy) else {
            unreachable!("the registry says which kind it is")
        };
        proxy.as_ref().map(|proxy| proxy.reveal().to_owned())
    });
    let is_named = (chosen.is_asked)(Key::UserAgent) || (chosen.is_asked)(Key::Contact);
    let openings = chosen.get(Key::AllowPrivate, |settings| {
        settings.openings().iter().map(ToString::to_string).collect()
    });
    FetchRequest {
        user_agent: is_named
            .then(|| user_agent(settings.text(Key::UserAgent), settings.text(Key::Contact))),
        timeout_ms: chosen.ms(Key::Timeout),
        max_redirects: chosen.small_count(Key::MaxRedirects),
        http: chosen.word(Key::Http),
        cookies: chosen.switch(Key::Cookies),
        cookies_txt: None,
        headers: headers.unwrap_or_default(),
        basic_auth: Vec::new(),
        proxy: proxy.flatten(),
        allow_private: openings.unwrap_or_default(),
        insecure_hosts: chosen.list(Key::InsecureHosts),
    }
}

fn user_agent(template: &str, contact: &str) -> String {
    let template = if contact.is_empty() {
        template.replace(" (+{contact})", "").replace("{contact}", "")
    } else {
        template.replace("{contact}", contact)
    };
    template.replace("{version}", env!("CARGO_PKG_VERSION"))
}

/// When the finished crawl counts as failed.
pub fn fail_on(settings: &Settings) -> FailOn {
    let Value::FailOn(fail_on) = settings.value(Key::FailOn) else {
        unreachable!("the registry says which kind it is")
    };
    *fail_on
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Environment, Sources, resolve};
    use telusur_model::{
        Fairness, FetchRules, Host, HttpVersion, Keep, Limits, Politeness, QueryParams, ScopeKind,
        ScopeRules,
    };

    fn request(variables: &[(&str, &str)]) -> Crawl {
        let environment = Environment::of(variables);
        let settings = resolve(&Sources { environment, ..Sources::default() }).unwrap().settings;
        let urls = vec!["http://a.org/".to_owned()];
        crawl_of(&CrawlRequest { urls, ..crawl_request(&settings) }).unwrap()
    }

    /// What is not chosen is left to the process that runs the crawl.
    #[test]
    fn nothing_chosen_asks_for_nothing() {
        let sources = Sources { environment: Environment::of(&[]), ..Sources::default() };
        let settings = resolve(&sources).unwrap().settings;
        assert_eq!(crawl_request(&settings), CrawlRequest::default());
    }

    /// The defaults that `config show` names are those that crawls get.
    #[test]
    fn the_registry_and_the_program_have_the_same_defaults() {
        let sources = Sources { environment: Environment::of(&[]), ..Sources::default() };
        let settings = resolve(&sources).unwrap().settings;
        let defaults = program_defaults();
        assert_eq!(settings.list(Key::Exclude), defaults.scope.exclude);
        assert_eq!(settings.duration_ms(Key::Delay), defaults.politeness.delay_ms);
        assert_eq!(settings.small_count::<u16>(Key::PerHost), defaults.politeness.per_host);
        assert_eq!(settings.switch(Key::Adaptive), defaults.politeness.adaptive);
        assert_eq!(settings.word(Key::Fairness), defaults.politeness.fairness.word());
        assert_eq!(settings.small_count::<u8>(Key::Retries) + 1, defaults.politeness.attempts_max);
        assert_eq!(
            settings.duration_ms(Key::CrawlDelayMax),
            defaults.politeness.crawl_delay_max_ms
        );
        assert_eq!(settings.switch(Key::Nofollow), defaults.politeness.obey_rel_nofollow);
        assert!(settings.switch(Key::Robots) && defaults.politeness.robots == RobotsRules::Obey);
        assert_eq!(settings.count(Key::MaxPerHost), defaults.limits.urls_per_host_max);
        assert_eq!(settings.count(Key::MaxPerSite), defaults.limits.urls_per_site_max);
        assert_eq!(settings.bytes(Key::MaxBody), defaults.limits.body_bytes_max);
        assert_eq!(settings.duration_ms(Key::Patience), defaults.limits.patience_ms);
        assert_eq!(settings.word(Key::Scope), defaults.scope.kind.word());
        assert_eq!(settings.word(Key::Keep), defaults.keep.word());
        assert_eq!(settings.duration_ms(Key::Timeout), defaults.fetch.timeout_ms);
        assert_eq!(settings.small_count::<u8>(Key::MaxRedirects), defaults.fetch.redirects_max);
        assert_eq!(settings.switch(Key::Cookies), defaults.fetch.cookies);
        assert_eq!(settings.switch(Key::ReadSitemaps), defaults.sitemaps.discover);
        let agent = user_agent(settings.text(Key::UserAgent), settings.text(Key::Contact));
        assert_eq!(agent, defaults.fetch.user_agent);
    }

    #[test]
    fn defaults_are_those_of_the_model() {
        let request = request(&[]);
        assert_eq!(request.limits, Limits::default());
        assert_eq!(request.fetch, FetchRules::default());
        assert_eq!(request.politeness, Politeness { attempts_max: 4, ..Politeness::default() });
        assert_eq!(request.keep, Keep::default());
        assert_eq!(request.scope.kind, ScopeKind::default());
    }

    #[test]
    fn every_value_arrives() {
        let request = request(&[
            ("TELUSUR_IDENTITY__CONTACT", "https://me.org/bot"),
            ("TELUSUR_LIMITS__MAX_PAGES", "10k"),
            ("TELUSUR_LIMITS__MAX_DEPTH", "3"),
            ("TELUSUR_LIMITS__MAX_DURATION", "1h"),
            ("TELUSUR_LIMITS__MAX_BYTES", "1GB"),
            ("TELUSUR_LIMITS__MAX_PER_HOST", "7"),
            ("TELUSUR_LIMITS__MAX_PER_SITE", "8"),
            ("TELUSUR_LIMITS__MAX_BODY", "10kB"),
            ("TELUSUR_LIMITS__MAX_ERRORS", "9"),
            ("TELUSUR_LIMITS__PATIENCE", "1m"),
            ("TELUSUR_LIMITS__MIN_FREE_DISK", "5MB"),
            ("TELUSUR_SCOPE__SCOPE", "prefix"),
            ("TELUSUR_SCOPE__INCLUDE", "/a /b"),
            ("TELUSUR_SCOPE__EXCLUDE", "/c"),
            ("TELUSUR_SCOPE__ALLOW_HOSTS", "CDN.a.org"),
            ("TELUSUR_SCOPE__EXTRA_HOPS", "1"),
            ("TELUSUR_SCOPE__QUERY_PARAMS", "drop=a,b"),
            ("TELUSUR_SCOPE__KEEP_TRACKING", "true"),
            ("TELUSUR_SCOPE__TOPIC", "Kopi batik"),
            ("TELUSUR_MANNERS__DELAY", "2s"),
            ("TELUSUR_MANNERS__PER_HOST", "2"),
            ("TELUSUR_MANNERS__WORKERS", "5"),
            ("TELUSUR_MANNERS__RATE", "30/m"),
            ("TELUSUR_MANNERS__ADAPTIVE", "no"),
            ("TELUSUR_MANNERS__FAIRNESS", "weighted"),
            ("TELUSUR_MANNERS__ROBOTS_UNREACHABLE", "allow"),
            ("TELUSUR_MANNERS__CRAWL_DELAY_MAX", "5s"),
            ("TELUSUR_MANNERS__NOFOLLOW", "yes"),
            ("TELUSUR_START__READ_SITEMAPS", "no"),
            ("TELUSUR_FETCH__TIMEOUT", "5s"),
            ("TELUSUR_FETCH__RETRIES", "0"),
            ("TELUSUR_FETCH__MAX_REDIRECTS", "2"),
            ("TELUSUR_FETCH__ALLOW_PRIVATE", "10.0.0.0/8 localhost:80"),
            ("TELUSUR_FETCH__HEADERS", "A: b c\nD: e"),
            ("TELUSUR_FETCH__HTTP", "1"),
            ("TELUSUR_FETCH__PROXY", "http://me:pw@proxy.example:3128"),
            ("TELUSUR_FETCH__INSECURE_HOSTS", "old.example"),
            ("TELUSUR_FETCH__COOKIES", "no"),
            ("TELUSUR_STORE__KEEP", "raw"),
        ]);
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            request.limits,
            Limits {
                pages_max: Some(10_000),
                depth_max: Some(3),
                duration_ms_max: Some(3_600_000),
                bytes_max: Some(1_000_000_000),
                urls_per_host_max: 7,
                urls_per_site_max: 8,
                body_bytes_max: 10_000,
                errors_max: Some(9),
                patience_ms: 60_000,
                ids_per_host_max: None,
                free_bytes_min: Some(5_000_000),
            }
        );
        assert_eq!(
            request.scope,
            ScopeRules {
                kind: ScopeKind::Prefix,
                include: vec!["/a".into(), "/b".into()],
                exclude: vec!["/c".into()],
                allow_hosts: vec!["cdn.a.org".into()],
                extra_hops: 1,
                query_params: QueryParams::Drop(vec!["a".into(), "b".into()]),
            }
        );
        assert_eq!(
            request.politeness,
            Politeness {
                delay_ms: 2_000,
                per_host: 2,
                workers: 5,
                rate_per_second: Some(0.5),
                adaptive: false,
                fairness: Fairness::Weighted,
                attempts_max: 1,
                crawl_delay_max_ms: 5_000,
                robots: RobotsRules::UnreachableAllows,
                obey_rel_nofollow: true,
                silent_max: 0,
            }
        );
        assert_eq!(
            request.fetch,
            FetchRules {
                user_agent: format!("Telusur/{version} (+https://me.org/bot)"),
                timeout_ms: 5_000,
                redirects_max: 2,
                allow_private: vec!["10.0.0.0/8".into(), "localhost:80".into()],
                headers: vec![("A".into(), "b c".into()), ("D".into(), "e".into())],
                http: HttpVersion::One,
                insecure_hosts: vec![Host::new("old.example")],
                proxy: Some(telusur_model::Secret::new("http://me:pw@proxy.example:3128")),
                basic_auth: Vec::new(),
                cookies: false,
                cookies_txt: None,
            }
        );
        assert_eq!(request.keep, Keep::Raw);
        assert_eq!(request.topic, ["kopi", "batik"]);
        assert!(request.keep_tracking);
        assert!(!request.sitemaps.discover);
    }
}
