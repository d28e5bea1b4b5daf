//! [`REGISTRY`]: the one table of everything that can be set. Flags, environment names,
//! configuration keys, `config show` and `config init` are all read from it.

use super::Kind;

/// A setting, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table says what each one means")]
pub enum Key {
    DataDir,
    StartUrls,
    ReadSitemaps,
    Sitemaps,
    UserAgent,
    Contact,
    MaxPages,
    MaxDepth,
    MaxDuration,
    MaxBytes,
    MaxPerHost,
    MaxPerSite,
    MaxBody,
    MaxErrors,
    MinFreeDisk,
    Parsers,
    Scope,
    Include,
    Exclude,
    AllowHosts,
    ExtraHops,
    QueryParams,
    KeepTracking,
    Topic,
    Delay,
    PerHost,
    Workers,
    Rate,
    Adaptive,
    Fairness,
    Robots,
    RobotsUnreachable,
    CrawlDelayMax,
    Nofollow,
    Timeout,
    Retries,
    MaxRedirects,
    AllowPrivate,
    Headers,
    Http,
    Proxy,
    InsecureHosts,
    BasicAuth,
    Cookies,
    CookiesFile,
    Keep,
    FailOn,
    LogLevel,
    LogFormat,
    LogFile,
}

impl Key {
    /// Its place in the table.
    pub fn index(self) -> usize {
        // Fieldless enums count from zero in the order of their variants; a test holds the table to
        // the same order.
        self as usize
    }

    /// Its row of the table.
    pub fn setting(self) -> &'static Setting {
        &REGISTRY[self.index()]
    }
}

/// What is known about a setting.
#[derive(Debug)]
pub struct Setting {
    /// Its name in code.
    pub key: Key,
    /// Its section in a configuration file; empty for the top.
    pub section: &'static str,
    /// Its key within the section.
    pub name: &'static str,
    /// What its value looks like.
    pub kind: Kind,
    /// Its default, as it is written in the environment; empty for none.
    pub default: &'static str,
    /// The flag that sets it.
    pub flag: Option<&'static str>,
    /// A second environment variable that sets it.
    pub short: Option<ShortName>,
    /// What it means, for `config init`.
    pub help: &'static str,
}

/// An environment variable of its own, besides the TELUSUR_ name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortName {
    /// The variable.
    pub name: &'static str,
    /// What its number counts; `None` where the value is written as everywhere else.
    pub number_of: Option<NumberOf>,
}

/// What a bare number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberOf {
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// Workers.
    Workers,
}

impl Setting {
    /// The path of the setting: `manners.delay`.
    pub fn path(&self) -> String {
        if self.section.is_empty() {
            self.name.to_owned()
        } else {
            format!("{}.{}", self.section, self.name)
        }
    }

    /// Its environment variable: `TELUSUR_MANNERS__DELAY`.
    pub fn variable(&self) -> String {
        match self.key {
            Key::DataDir => "TELUSUR_DATA".to_owned(),
            Key::LogLevel => "TELUSUR_LOG".to_owned(),
            _ => format!("TELUSUR_{}", self.path().replace('.', "__").to_ascii_uppercase()),
        }
    }
}

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;
const YEAR_MS: u64 = 366 * DAY_MS;

const ANY_COUNT: Kind = Kind::Count { min: 0, max: u64::MAX / 1_000 };

/// Every setting, in the order of [`Key`].
pub const REGISTRY: &[Setting] = &[
    Setting {
        key: Key::DataDir,
        section: "",
        name: "data_dir",
        kind: Kind::Path,
        default: "",
        flag: Some("--data"),
        short: None,
        help: "where everything is kept; ~/ is the home directory",
    },
    Setting {
        key: Key::StartUrls,
        section: "start",
        name: "urls",
        kind: Kind::List,
        default: "",
        flag: Some("URL"),
        short: Some(ShortName { name: "CRAWLER_START_URLS", number_of: None }),
        help: "start URLs of a crawl that names none",
    },
    Setting {
        key: Key::ReadSitemaps,
        section: "start",
        name: "read_sitemaps",
        kind: Kind::Switch,
        default: "true",
        flag: Some("--no-sitemap"),
        short: None,
        help: "read the sitemaps that robots.txt names, or /sitemap.xml where it names none",
    },
    Setting {
        key: Key::Sitemaps,
        section: "start",
        name: "sitemaps",
        kind: Kind::List,
        default: "",
        flag: Some("--sitemap"),
        short: None,
        help: "sitemaps, feeds or lists of URLs to start from",
    },
    Setting {
        key: Key::UserAgent,
        section: "identity",
        name: "user_agent",
        kind: Kind::Text { is_required: true },
        default: "Telusur/{version} (+{contact})",
        flag: Some("--user-agent"),
        short: None,
        help: "how Telusur names itself; {version} and {contact} are filled in",
    },
    Setting {
        key: Key::Contact,
        section: "identity",
        name: "contact",
        kind: Kind::Text { is_required: false },
        default: "",
        flag: Some("--contact"),
        short: None,
        help: "page or mail address where the owner of a site reaches you",
    },
    Setting {
        key: Key::MaxPages,
        section: "limits",
        name: "max_pages",
        kind: ANY_COUNT,
        default: "0",
        flag: Some("--max-pages"),
        short: None,
        help: "pages stored; 0 = no limit",
    },
    Setting {
        key: Key::MaxDepth,
        section: "limits",
        name: "max_depth",
        kind: Kind::Count { min: 0, max: u16::MAX as u64 },
        default: "0",
        flag: Some("--depth"),
        short: None,
        help: "links away from a start URL; 0 = no limit but the built-in 20",
    },
    Setting {
        key: Key::MaxDuration,
        section: "limits",
        name: "max_duration",
        kind: Kind::Duration { ms_min: 0, ms_max: YEAR_MS },
        default: "0s",
        flag: Some("--max-duration"),
        short: Some(ShortName {
            name: "CRAWLER_DURATION_SECONDS",
            number_of: Some(NumberOf::Seconds),
        }),
        help: "time that a crawl runs; 0s = no limit",
    },
    Setting {
        key: Key::MaxBytes,
        section: "limits",
        name: "max_bytes",
        kind: Kind::Size { min: 0, max: 1 << 50 },
        default: "0B",
        flag: Some("--max-bytes"),
        short: None,
        help: "bytes received; 0B = no limit",
    },
    Setting {
        key: Key::MaxPerHost,
        section: "limits",
        name: "max_per_host",
        kind: Kind::Count { min: 1, max: u64::MAX / 1_000 },
        default: "10000",
        flag: Some("--max-per-host"),
        short: None,
        help: "URLs taken in for one host; beyond it a trap is suspected",
    },
    Setting {
        key: Key::MaxPerSite,
        section: "limits",
        name: "max_per_site",
        kind: Kind::Count { min: 1, max: u64::MAX / 1_000 },
        default: "50000",
        flag: Some("--max-per-site"),
        short: None,
        help: "URLs taken in for one registrable domain",
    },
    Setting {
        key: Key::MaxBody,
        section: "limits",
        name: "max_body",
        kind: Kind::Size { min: 1, max: 1 << 30 },
        default: "1MiB",
        flag: Some("--max-body"),
        short: None,
        help: "bytes read of one page; the rest is cut off",
    },
    Setting {
        key: Key::MaxErrors,
        section: "limits",
        name: "max_errors",
        kind: ANY_COUNT,
        default: "0",
        flag: Some("--max-errors"),
        short: None,
        help: "failed URLs after which a crawl ends; 0 = no limit",
    },
    Setting {
        key: Key::MinFreeDisk,
        section: "limits",
        name: "min_free_disk",
        kind: Kind::Size { min: 0, max: 1 << 50 },
        default: "2GiB",
        flag: Some("--min-free-disk"),
        short: None,
        help: "a crawl pauses when less space is left",
    },
    Setting {
        key: Key::Parsers,
        section: "limits",
        name: "parsers",
        kind: Kind::Workers { min: 0, max: 256 },
        default: "auto",
        flag: Some("--parsers"),
        short: None,
        help: "jailed processes that parse pages; 0 = parse without a jail, auto = one per core",
    },
    Setting {
        key: Key::Scope,
        section: "scope",
        name: "scope",
        kind: Kind::Word(&["page", "prefix", "host", "domain", "any"]),
        default: "domain",
        flag: Some("--scope"),
        short: None,
        help: "how far links are followed: page | prefix | host | domain | any",
    },
    Setting {
        key: Key::Include,
        section: "scope",
        name: "include",
        kind: Kind::Patterns,
        default: "",
        flag: Some("--include"),
        short: None,
        help: "regular expressions; where there are any, a URL must match one",
    },
    Setting {
        key: Key::Exclude,
        section: "scope",
        name: "exclude",
        kind: Kind::Patterns,
        default: "/logout [?&]sessionid=",
        flag: Some("--exclude"),
        short: None,
        help: "regular expressions; a URL must match none",
    },
    Setting {
        key: Key::AllowHosts,
        section: "scope",
        name: "allow_hosts",
        kind: Kind::Hosts,
        default: "",
        flag: Some("--allow-host"),
        short: None,
        help: "hosts in scope besides those of the start URLs",
    },
    Setting {
        key: Key::ExtraHops,
        section: "scope",
        name: "extra_hops",
        kind: Kind::Count { min: 0, max: u8::MAX as u64 },
        default: "0",
        flag: Some("--extra-hops"),
        short: None,
        help: "links followed beyond the scope",
    },
    Setting {
        key: Key::QueryParams,
        section: "scope",
        name: "query_params",
        kind: Kind::QueryParams,
        default: "keep",
        flag: Some("--query-params"),
        short: None,
        help: "the part after ? of a link: keep | drop | drop=name,name",
    },
    Setting {
        key: Key::KeepTracking,
        section: "scope",
        name: "keep_tracking",
        kind: Kind::Switch,
        default: "false",
        flag: Some("--keep-tracking"),
        short: None,
        help: "whether utm_source and its kin make two URLs different pages",
    },
    Setting {
        key: Key::Topic,
        section: "scope",
        name: "topic",
        kind: Kind::List,
        default: "",
        flag: Some("--topic"),
        short: None,
        help: "links with one of these words in text or address go first within their host",
    },
    Setting {
        key: Key::Delay,
        section: "manners",
        name: "delay",
        kind: Kind::Duration { ms_min: 0, ms_max: DAY_MS },
        default: "1s",
        flag: Some("--delay"),
        short: Some(ShortName { name: "CRAWL_DELAY_MS", number_of: Some(NumberOf::Milliseconds) }),
        help: "least time between the starts of two requests to one host",
    },
    Setting {
        key: Key::PerHost,
        section: "manners",
        name: "per_host",
        kind: Kind::Count { min: 1, max: 256 },
        default: "1",
        flag: Some("--per-host"),
        short: None,
        help: "most requests under way at one host",
    },
    Setting {
        key: Key::Workers,
        section: "manners",
        name: "workers",
        kind: Kind::Workers { min: 1, max: 4096 },
        default: "auto",
        flag: Some("--workers"),
        short: Some(ShortName { name: "CRAWLER_MAX_THREADS", number_of: Some(NumberOf::Workers) }),
        help: "most requests under way in a crawl; auto = 32",
    },
    Setting {
        key: Key::Rate,
        section: "manners",
        name: "rate",
        kind: Kind::Rate,
        default: "0/s",
        flag: Some("--rate"),
        short: None,
        help: "most requests that a whole crawl starts: 5/s, 30/m; 0/s = no limit",
    },
    Setting {
        key: Key::Adaptive,
        section: "manners",
        name: "adaptive",
        kind: Kind::Switch,
        default: "true",
        flag: Some("--adaptive"),
        short: None,
        help: "ask a host less often while it answers 429 or 503",
    },
    Setting {
        key: Key::Fairness,
        section: "manners",
        name: "fairness",
        kind: Kind::Word(&["equal", "weighted", "none"]),
        default: "equal",
        flag: Some("--fairness"),
        short: None,
        help: "how sites share a crawl: equal | weighted | none",
    },
    Setting {
        key: Key::Robots,
        section: "manners",
        name: "robots",
        kind: Kind::Switch,
        default: "true",
        flag: Some("--ignore-robots"),
        short: None,
        help: "obey robots.txt",
    },
    Setting {
        key: Key::RobotsUnreachable,
        section: "manners",
        name: "robots_unreachable",
        kind: Kind::Word(&["wait", "allow"]),
        default: "wait",
        flag: Some("--robots-unreachable"),
        short: None,
        help: "what a robots.txt that cannot be read means: wait = ask nothing | allow",
    },
    Setting {
        key: Key::CrawlDelayMax,
        section: "manners",
        name: "crawl_delay_max",
        kind: Kind::Duration { ms_min: 0, ms_max: DAY_MS },
        default: "60s",
        flag: Some("--crawl-delay-max"),
        short: None,
        help: "most that robots.txt or 429 answers can slow us down",
    },
    Setting {
        key: Key::Nofollow,
        section: "manners",
        name: "nofollow",
        kind: Kind::Switch,
        default: "false",
        flag: Some("--nofollow"),
        short: None,
        help: "leave links marked rel=nofollow alone",
    },
    Setting {
        key: Key::Timeout,
        section: "fetch",
        name: "timeout",
        kind: Kind::Duration { ms_min: 1, ms_max: HOUR_MS },
        default: "30s",
        flag: Some("--timeout"),
        short: None,
        help: "longest that one visit may take",
    },
    Setting {
        key: Key::Retries,
        section: "fetch",
        name: "retries",
        kind: Kind::Count { min: 0, max: 100 },
        default: "3",
        flag: Some("--retries"),
        short: None,
        help: "further attempts at a URL after a failure that may pass",
    },
    Setting {
        key: Key::MaxRedirects,
        section: "fetch",
        name: "max_redirects",
        kind: Kind::Count { min: 0, max: 50 },
        default: "10",
        flag: Some("--max-redirects"),
        short: None,
        help: "redirects followed one after the other",
    },
    Setting {
        key: Key::AllowPrivate,
        section: "fetch",
        name: "allow_private",
        kind: Kind::Openings,
        default: "",
        flag: Some("--allow-private"),
        short: None,
        help: "addresses asked although they are not public: 10.1.2.0/24, localhost:8080",
    },
    Setting {
        key: Key::Headers,
        section: "fetch",
        name: "headers",
        kind: Kind::Headers,
        default: "",
        flag: Some("--header"),
        short: None,
        help: "extra headers 'Name: value', sent to the origins of the start URLs only",
    },
    Setting {
        key: Key::Http,
        section: "fetch",
        name: "http",
        kind: Kind::Word(&["auto", "1", "2"]),
        default: "auto",
        flag: Some("--http"),
        short: None,
        help: "version of HTTP: auto = 2 where the server offers it | 1 | 2",
    },
    Setting {
        key: Key::Proxy,
        section: "fetch",
        name: "proxy",
        kind: Kind::Proxy,
        default: "",
        flag: Some("--proxy"),
        short: None,
        help: "ask through this proxy: http://host:3128 or socks5://host:1080",
    },
    Setting {
        key: Key::InsecureHosts,
        section: "fetch",
        name: "insecure_hosts",
        kind: Kind::Hosts,
        default: "",
        flag: Some("--insecure-host"),
        short: None,
        help: "hosts whose TLS certificates are not verified",
    },
    Setting {
        key: Key::BasicAuth,
        section: "fetch",
        name: "basic_auth",
        kind: Kind::Logins,
        default: "",
        flag: Some("--basic-auth"),
        short: None,
        help: "logins 'host=user:env:VARIABLE'; the password is read from the variable",
    },
    Setting {
        key: Key::Cookies,
        section: "fetch",
        name: "cookies",
        kind: Kind::Switch,
        default: "true",
        flag: Some("--no-cookies"),
        short: None,
        help: "send cookies back to the site that set them, within one crawl",
    },
    Setting {
        key: Key::CookiesFile,
        section: "fetch",
        name: "cookies_file",
        kind: Kind::Path,
        default: "",
        flag: Some("--cookies"),
        short: None,
        help: "a cookies.txt file to begin with",
    },
    Setting {
        key: Key::Keep,
        section: "store",
        name: "keep",
        kind: Kind::Word(&["none", "text", "html", "raw"]),
        default: "html",
        flag: Some("--keep"),
        short: None,
        help: "what is kept of a page: none | text | html | raw",
    },
    Setting {
        key: Key::FailOn,
        section: "end",
        name: "fail_on",
        kind: Kind::FailOn,
        default: "none",
        flag: Some("--fail-on"),
        short: None,
        help: "when a crawl ends with exit code 6: none | any-error | seed | ratio=0.2",
    },
    Setting {
        key: Key::LogLevel,
        section: "log",
        name: "level",
        kind: Kind::Word(&["off", "error", "warn", "info", "debug", "trace"]),
        default: "warn",
        flag: Some("--verbose"),
        short: None,
        help: "off | error | warn | info | debug | trace",
    },
    Setting {
        key: Key::LogFormat,
        section: "log",
        name: "format",
        kind: Kind::Word(&["text", "json"]),
        default: "text",
        flag: Some("--log-format"),
        short: None,
        help: "text | json",
    },
    Setting {
        key: Key::LogFile,
        section: "log",
        name: "file",
        kind: Kind::Path,
        default: "",
        flag: Some("--log-file"),
        short: None,
        help: "where the log goes; empty = standard error",
    },
];
