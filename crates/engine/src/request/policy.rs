//! [`RequestPolicy`]: what requests for crawls are judged by: the defaults, the bounds, and who asks.

use telusur_fetch::AddressGuard;
use telusur_model::{
    Crawl, CrawlId, CrawlNo, FetchRules, Keep, Limits, Politeness, ScopeRules, Seeds, SitemapRules,
    Timestamp,
};

/// What requests are judged by.
#[derive(Clone, Debug)]
pub struct RequestPolicy {
    /// What a crawl is like if its user says nothing else.
    pub defaults: Crawl,
    /// How much may be asked for.
    pub bounds: RequestBounds,
    /// Addresses that users may name; `None` leaves that to the crawl's own guard.
    pub guard: Option<AddressGuard>,
    /// Who asks.
    pub rights: Rights,
}

/// Who asks for a crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Who owns the data directory, or holds a key with the scope `admin`: may also set what decides which
    /// addresses are reached, and as whom.
    Owner,
    /// Whom the owner lets start crawls.
    User,
}

/// How much may be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestBounds {
    /// Start URLs.
    pub seeds_max: usize,
    /// Labels, topic words and hosts, each.
    pub words_max: usize,
    /// Regular expressions.
    pub patterns_max: usize,
    /// Bytes of one regular expression.
    pub pattern_bytes_max: usize,
    /// Requests in flight at one host.
    pub per_host_max: u16,
    /// Requests in flight in one crawl: each may hold a body in memory.
    pub workers_max: u16,
    /// Bytes read of one body.
    pub body_bytes_max: u64,
}

impl RequestBounds {
    /// Bounds for the owner: what the machine bears is the owner's business.
    pub const OWNER: Self = Self {
        seeds_max: usize::MAX,
        words_max: usize::MAX,
        patterns_max: usize::MAX,
        pattern_bytes_max: usize::MAX,
        per_host_max: 256,
        workers_max: 4096,
        body_bytes_max: 1 << 30,
    };
    /// Bounds for users of a service, unless its operator says otherwise.
    pub const USER: Self = Self {
        seeds_max: 10_000,
        words_max: 50,
        patterns_max: 100,
        pattern_bytes_max: 64 << 10,
        per_host_max: 64,
        workers_max: 1024,
        body_bytes_max: 64 << 20,
    };
}

impl RequestPolicy {
    /// The owner's policy, with these defaults.
    pub fn of_owner(defaults: Crawl) -> Self {
        Self { defaults, bounds: RequestBounds::OWNER, guard: None, rights: Rights::Owner }
    }
}

/// What a crawl is like if neither the user nor a setting says anything.
pub fn program_defaults() -> Crawl {
    Crawl {
        no: CrawlNo(0),
        id: CrawlId::new(Timestamp(0), 0),
        name: None,
        created_at: Timestamp(0),
        seeds: Seeds::Links(Vec::new()),
        scope: ScopeRules {
            exclude: vec!["/logout".to_owned(), "[?&]sessionid=".to_owned()],
            ..ScopeRules::default()
        },
        politeness: Politeness { attempts_max: 4, ..Politeness::default() },
        limits: Limits::default(),
        fetch: FetchRules::default(),
        keep: Keep::default(),
        topic: Vec::new(),
        keep_tracking: false,
        sitemaps: SitemapRules::default(),
        recrawl_of: None,
        labels: Default::default(),
    }
}
