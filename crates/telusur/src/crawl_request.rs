//! [`CrawlRequest`]: settings and start URLs as the engine understands them.

use serde::Serialize;
use telusur_model::{
    Crawl, CrawlId, CrawlNo, Fairness, FetchRules, Host, HttpVersion, Keep, Limits, PageUrl,
    Politeness, RobotsRules, Scope, ScopeKind, ScopeRules, Seeds, SitemapRules, Timestamp,
};

use crate::message::{Code, Message, shown};
use crate::settings::{FailOn, Key, Settings, Value};

/// Workers when the user leaves the number to us. Requests mostly wait; 32 of them keep two cores
/// busy on loopback and a delay of 1 s keeps them idle on the web.
const WORKERS_AUTO: u16 = 32;

/// What the user asked for, complete and checked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CrawlRequest {
    /// The name that the user gave it.
    pub name: Option<String>,
    /// Where it starts.
    pub seeds: Seeds,
    /// Which links it follows.
    pub scope: ScopeRules,
    /// How it treats the hosts it asks.
    pub politeness: Politeness,
    /// When it ends.
    pub limits: Limits,
    /// How it asks.
    pub fetch: FetchRules,
    /// What is kept of a page.
    pub keep: Keep,
    /// Links with one of these words go first within their host.
    pub topic: Vec<String>,
    /// Whether tracking parameters make two URLs different pages.
    pub keep_tracking: bool,
    /// Which sitemaps are read.
    pub sitemaps: SitemapRules,
}

/// Where a crawl starts.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// Pages.
    pub pages: Vec<PageUrl>,
    /// Sitemaps, feeds and lists.
    pub sitemaps: Vec<PageUrl>,
}

impl From<Vec<PageUrl>> for Start {
    fn from(pages: Vec<PageUrl>) -> Self {
        Self { pages, sitemaps: Vec::new() }
    }
}

impl CrawlRequest {
    /// The request that these settings describe.
    pub fn new(settings: &Settings, start: impl Into<Start>, name: Option<String>) -> Self {
        let Start { pages: seeds, sitemaps } = start.into();
        Self {
            name,
            seeds: Seeds::Links(seeds),
            scope: scope_rules(settings),
            politeness: politeness(settings),
            limits: limits(settings),
            fetch: fetch_rules(settings),
            keep: keep(settings.word(Key::Keep)),
            topic: settings.list(Key::Topic).iter().map(|word| word.to_lowercase()).collect(),
            keep_tracking: settings.switch(Key::KeepTracking),
            sitemaps: SitemapRules { discover: settings.switch(Key::ReadSitemaps), urls: sitemaps },
        }
    }
}

impl CrawlRequest {
    /// Refuses a crawl that its own exclusions keep from starting.
    pub fn check_start(&self) -> Result<(), Message> {
        // A pattern that cannot be used is refused elsewhere, with its own words.
        let scope = Scope::new(&self.scope, &[], &self.limits).ok();
        match scope.and_then(|it| it.excluded_start(&self.seeds, &self.sitemaps.urls)) {
            None => Ok(()),
            Some(excluded) => Err(Message::new(Code::BadArgument, shown(&excluded.to_string()))
                .hint("Start elsewhere, or make the pattern of --exclude narrower")),
        }
    }

    /// The request as a crawl; the store gives it its number and its id.
    pub fn into_crawl(self, created_at: Timestamp) -> Crawl {
        Crawl {
            no: CrawlNo(0),
            id: CrawlId::new(created_at, 0),
            name: self.name,
            created_at,
            seeds: self.seeds,
            scope: self.scope,
            politeness: self.politeness,
            limits: self.limits,
            fetch: self.fetch,
            keep: self.keep,
            topic: self.topic,
            keep_tracking: self.keep_tracking,
            sitemaps: self.sitemaps,
            recrawl_of: None,
            labels: Default::default(),
        }
    }
}

fn scope_rules(settings: &Settings) -> ScopeRules {
    let Value::QueryParams(query_params) = settings.value(Key::QueryParams) else {
        unreachable!("the registry says which kind it is")
    };
    ScopeRules {
        kind: ScopeKind::from_word(settings.word(Key::Scope)).expect("the registry has its words"),
        include: settings.list(Key::Include).to_vec(),
        exclude: settings.list(Key::Exclude).to_vec(),
        allow_hosts: settings.list(Key::AllowHosts).to_vec(),
        extra_hops: settings.small_count(Key::ExtraHops),
        query_params: query_params.clone(),
    }
}

fn politeness(settings: &Settings) -> Politeness {
    let workers = settings.workers(Key::Workers);
    let Value::RatePerSecond(rate) = settings.value(Key::Rate) else {
        unreachable!("the registry says which kind it is")
    };
    let retries: u8 = settings.small_count(Key::Retries);
    Politeness {
        delay_ms: settings.duration_ms(Key::Delay),
        per_host: settings.small_count(Key::PerHost),
        workers: workers.unwrap_or(WORKERS_AUTO),
        // A number that the user gave is meant: not even silent servers add to it.
        silent_max: if workers.is_some() { 0 } else { Politeness::default().silent_max },
        rate_per_second: (*rate > 0.0).then_some(*rate),
        adaptive: settings.switch(Key::Adaptive),
        fairness: fairness(settings.word(Key::Fairness)),
        attempts_max: retries + 1,
        crawl_delay_max_ms: settings.duration_ms(Key::CrawlDelayMax),
        robots: robots_rules(settings),
        obey_rel_nofollow: settings.switch(Key::Nofollow),
    }
}

fn robots_rules(settings: &Settings) -> RobotsRules {
    match (settings.switch(Key::Robots), settings.word(Key::RobotsUnreachable)) {
        (false, _) => RobotsRules::Ignore,
        (true, "allow") => RobotsRules::UnreachableAllows,
        (true, _) => RobotsRules::Obey,
    }
}

fn limits(settings: &Settings) -> Limits {
    let unless_zero = |number: u64| (number > 0).then_some(number);
    let depth: u16 = settings.small_count(Key::MaxDepth);
    Limits {
        pages_max: unless_zero(settings.count(Key::MaxPages)),
        depth_max: (depth > 0).then_some(depth),
        duration_ms_max: unless_zero(settings.duration_ms(Key::MaxDuration)),
        bytes_max: unless_zero(settings.bytes(Key::MaxBytes)),
        urls_per_host_max: settings.count(Key::MaxPerHost),
        urls_per_site_max: settings.count(Key::MaxPerSite),
        body_bytes_max: settings.bytes(Key::MaxBody),
        errors_max: unless_zero(settings.count(Key::MaxErrors)),
        patience_ms: settings.duration_ms(Key::Patience),
        ids_per_host_max: None,
        free_bytes_min: settings
            .is_chosen(Key::MinFreeDisk)
            .then(|| settings.bytes(Key::MinFreeDisk)),
    }
}

fn fetch_rules(settings: &Settings) -> FetchRules {
    let Value::Headers(headers) = settings.value(Key::Headers) else {
        unreachable!("the registry says which kind it is")
    };
    let Value::Proxy(proxy) = settings.value(Key::Proxy) else {
        unreachable!("the registry says which kind it is")
    };
    FetchRules {
        user_agent: user_agent(settings.text(Key::UserAgent), settings.text(Key::Contact)),
        timeout_ms: settings.duration_ms(Key::Timeout),
        redirects_max: settings.small_count(Key::MaxRedirects),
        allow_private: settings.openings().iter().map(ToString::to_string).collect(),
        headers: headers.clone(),
        http: match settings.word(Key::Http) {
            "1" => HttpVersion::One,
            "2" => HttpVersion::Two,
            _ => HttpVersion::Auto,
        },
        insecure_hosts: settings.list(Key::InsecureHosts).iter().map(|it| Host::new(it)).collect(),
        proxy: proxy.clone(),
        cookies: settings.switch(Key::Cookies),
        // Passwords and files are read by whoever has the environment and the disk.
        basic_auth: Vec::new(),
        cookies_txt: None,
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

fn fairness(word: &str) -> Fairness {
    match word {
        "equal" => Fairness::Equal,
        "weighted" => Fairness::Weighted,
        _ => Fairness::None,
    }
}

fn keep(word: &str) -> Keep {
    match word {
        "none" => Keep::None,
        "text" => Keep::Text,
        "html" => Keep::Html,
        _ => Keep::Raw,
    }
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
    use telusur_model::QueryParams;

    fn request(variables: &[(&str, &str)]) -> CrawlRequest {
        let environment = Environment::of(variables);
        let settings = resolve(&Sources { environment, ..Sources::default() }).unwrap().settings;
        let pages = vec![PageUrl::parse("http://a.org/").unwrap()];
        CrawlRequest::new(&settings, pages, None)
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
