//! Requests for crawls, checked and made a [`Crawl`]: the one way from what users write, as flags, as a job of a
//! configuration file or as JSON, to a crawl. Every mistake names its field.

mod body;
mod linear;
mod policy;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use telusur_model::{
    BasicAuth, CompiledPatterns, Crawl, Fairness, Host, HttpVersion, Keep, Limits, PageUrl,
    Politeness, QueryParams, RobotsRules, Scope, ScopeKind, ScopeRules, Secret, Seeds, UrlKeyer,
    check_header, split_origin,
};

pub use self::body::{
    ChangeRequest, CrawlRequest, FetchRequest, LimitsRequest, LinearRequest, LoginRequest,
    PolitenessRequest, RatesRequest, ScopeRequest,
};
pub use self::policy::{RequestBounds, RequestPolicy, Rights, program_defaults};
use crate::change::CrawlChange;

/// Longest name, label or topic word.
const NAME_CHARS_MAX: usize = 200;
/// A day. A host that may be asked less often than that is better not crawled at all.
const DELAY_MS_MAX: u64 = 86_400_000;
/// Largest count, size or time: far beyond what one directory holds, and small enough to be added to.
const COUNT_MAX: u64 = 1 << 53;
/// A hundred years.
const DURATION_S_MAX: u32 = 100 * 366 * 86_400;
/// A day: no Retry-After is waited for longer than an hour at a time.
const PATIENCE_S_MAX: u32 = 86_400;
/// An hour for one visit.
const TIMEOUT_MS_MAX: u64 = 3_600_000;
/// Attempts after the first.
const RETRIES_MAX: u8 = 100;
/// Redirects of one visit.
const REDIRECTS_MAX: u8 = 50;
/// A label that begins like this is ours.
const OWN_LABEL_PREFIX: &str = "telusur.";

/// A request that cannot be carried out as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct BadRequest {
    /// What kind of mistake it is.
    pub kind: BadRequestKind,
    /// The field (RFC 6901).
    pub pointer: String,
    /// What is wrong with it.
    pub what: String,
    /// The way out.
    pub hint: Option<String>,
}

/// The kinds of mistake that callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BadRequestKind {
    /// A field cannot be used.
    Field,
    /// An address is not allowed.
    Address,
    /// Only the owner of the data directory may ask for it.
    Rights,
    /// A template cannot be used.
    Template,
    /// The ids of a linear crawl do not fit together.
    Walk,
}

impl BadRequest {
    /// A field that cannot be used.
    pub fn field(pointer: impl Into<String>, what: impl Into<String>) -> Self {
        Self { kind: BadRequestKind::Field, pointer: pointer.into(), what: what.into(), hint: None }
    }

    fn of_kind(self, kind: BadRequestKind) -> Self {
        Self { kind, ..self }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl RequestPolicy {
    /// What a request says beside its start.
    pub fn settings_of(&self, request: &CrawlRequest) -> Result<Crawl, BadRequest> {
        let mut crawl = self.defaults.clone();
        check_name(request.name.as_deref())?;
        crawl.name.clone_from(&request.name);
        self.set_limits(&mut crawl.limits, &request.limits)?;
        self.set_politeness(&mut crawl.politeness, &request.politeness)?;
        self.set_scope(&mut crawl, &request.scope)?;
        self.set_fetch(&mut crawl, &request.fetch)?;
        if let Some(word) = &request.keep {
            crawl.keep = read_word("/keep", word, Keep::from_word, Keep::WORDS)?;
        }
        self.check_words("/topic", &request.topic)?;
        if !request.topic.is_empty() {
            crawl.topic = request.topic.iter().map(|word| word.to_lowercase()).collect();
        }
        self.set_labels(&mut crawl, request)?;
        if let Some(discover) = request.discover_sitemaps {
            crawl.sitemaps.discover = discover;
        }
        if request.limits.max_per_host.is_some() {
            // Ids have an end, or a margin: the default for links that lead on and on is not for them.
            crawl.limits.ids_per_host_max = Some(crawl.limits.urls_per_host_max);
        }
        Ok(crawl)
    }

    /// The crawl that a request describes. Its number, id and time are for those who store it.
    pub fn crawl_of(&self, request: &CrawlRequest) -> Result<Crawl, BadRequest> {
        let mut crawl = self.settings_of(request)?;
        match &request.linear {
            Some(linear) if request.urls.is_empty() && request.sitemaps.is_empty() => {
                self.set_linear(&mut crawl, linear)?;
            }
            Some(_) => {
                let what = "a crawl goes along links (urls, sitemaps) or along numbers (linear)";
                return Err(BadRequest::field("/linear", what));
            }
            None => {
                let pages = self.urls("/urls", &request.urls, crawl.keep_tracking)?;
                let sitemaps = self.urls("/sitemaps", &request.sitemaps, crawl.keep_tracking)?;
                if pages.is_empty() && sitemaps.is_empty() {
                    return Err(BadRequest::field("/urls", "there is no start URL")
                        .hint("Name at least one: {\"urls\": [\"https://example.org/\"]}"));
                }
                crawl.seeds = Seeds::Links(pages);
                crawl.sitemaps.urls = sitemaps;
                crawl.limits.ids_per_host_max = None;
            }
        }
        // All patterns together, compiled once: that is what they cost.
        let scope = Scope::of(&crawl).map_err(|error| {
            BadRequest::field(self.pattern_pointer(&crawl.scope, error.at), error.to_string())
        })?;
        match scope.excluded_start(&crawl.seeds, &crawl.sitemaps.urls) {
            None => Ok(crawl),
            Some(excluded) => Err(BadRequest::field("/scope/exclude", excluded.to_string())
                .hint("Start elsewhere, or make the exclusion narrower")),
        }
    }

    /// What a request changes about a crawl. `known`: the patterns of the crawl with this change, if they were
    /// compiled before.
    pub fn change_of(
        &self,
        crawl: &Crawl,
        request: &ChangeRequest,
        known: Option<CompiledPatterns>,
    ) -> Result<CrawlChange, BadRequest> {
        let ChangeRequest { limits, politeness, exclude } = request;
        if limits.max_body.is_some() {
            let what = "how much is read of a body cannot change once a crawl is accepted";
            return Err(BadRequest::field("/limits/max_body", what));
        }
        self.check_patterns("/exclude", exclude, crawl.scope.exclude.len())?;
        let mut changed = crawl.clone();
        self.set_limits(&mut changed.limits, limits)?;
        if crawl.seeds.linear().is_some() && limits.max_per_host.is_some() {
            changed.limits.ids_per_host_max = Some(changed.limits.urls_per_host_max);
        }
        self.set_politeness(&mut changed.politeness, politeness)?;
        changed.scope.exclude.extend(exclude.iter().cloned());
        let compiled = match exclude.is_empty() {
            true => None,
            false => Some(compiled_for(&changed, crawl, known)?),
        };
        Ok(CrawlChange {
            limits: (*limits != LimitsRequest::default()).then_some(changed.limits),
            politeness: (*politeness != PolitenessRequest::default()).then_some(changed.politeness),
            exclude: exclude.clone(),
            compiled,
        })
    }

    /// A URL that a user names: it must be one that may be asked.
    pub fn url(&self, pointer: &str, text: &str) -> Result<PageUrl, BadRequest> {
        let url = PageUrl::parse(text.trim()).map_err(|error| {
            let what = format!("{:?} is not a URL that can be fetched: {error}", shown(text));
            BadRequest::field(pointer, what).hint("Write it like https://example.org/page")
        })?;
        match self.guard.as_ref().and_then(|guard| guard.refusal(&url)) {
            None => Ok(url),
            Some(why) => Err(BadRequest::field(pointer, why)
                .of_kind(BadRequestKind::Address)
                .hint("Only the operator can open it, when the server is started")),
        }
    }

    /// URLs that a user names, each page once.
    fn urls(
        &self,
        pointer: &str,
        texts: &[String],
        keep_tracking: bool,
    ) -> Result<Vec<PageUrl>, BadRequest> {
        let seeds_max = self.bounds.seeds_max;
        if texts.len() > seeds_max {
            let what = format!("there are {} of them; {seeds_max} is the limit", texts.len());
            return Err(BadRequest::field(pointer, what).hint("Split them into several crawls"));
        }
        let keyer = UrlKeyer { seed: 0, drop_tracking: !keep_tracking };
        let (mut urls, mut seen) = (Vec::with_capacity(texts.len()), HashSet::new());
        for (number, text) in texts.iter().enumerate() {
            let url = self.url(&format!("{pointer}/{number}"), text)?;
            if seen.insert(keyer.key(&url)) {
                urls.push(url);
            }
        }
        Ok(urls)
    }

    /// Where a pattern of a crawl's scope stands in the request. The default exclusions come first.
    fn pattern_pointer(&self, scope: &ScopeRules, at: Option<usize>) -> String {
        let of_defaults = self.defaults.scope.exclude.len();
        let place = at.map(|at| (at, at.checked_sub(scope.include.len() + of_defaults)));
        match place {
            Some((at, _)) if at < scope.include.len() => format!("/scope/include/{at}"),
            Some((_, Some(own))) => format!("/scope/exclude/{own}"),
            Some((_, None)) | None => "/scope".to_owned(),
        }
    }

    fn set_scope(&self, crawl: &mut Crawl, request: &ScopeRequest) -> Result<(), BadRequest> {
        let ScopeRequest {
            kind,
            include,
            exclude,
            default_exclude,
            allow_hosts,
            extra_hops,
            query_params,
            keep_tracking,
        } = request;
        let scope = &mut crawl.scope;
        if let Some(word) = kind {
            scope.kind = scope_kind("/scope/kind", word)?;
        }
        if *default_exclude == Some(false) {
            self.expect_owner("/scope/default_exclude")?;
            scope.exclude.clear();
        }
        self.check_patterns("/scope/include", include, 0)?;
        self.check_patterns("/scope/exclude", exclude, scope.exclude.len())?;
        self.check_words("/scope/allow_hosts", allow_hosts)?;
        if !include.is_empty() {
            scope.include.clone_from(include);
        }
        scope.exclude.extend(exclude.iter().cloned());
        scope.allow_hosts.extend(allow_hosts.iter().cloned());
        scope.extra_hops = extra_hops.unwrap_or(scope.extra_hops);
        if let Some(text) = query_params {
            scope.query_params = QueryParams::parse(text).ok_or_else(|| {
                BadRequest::field("/scope/query_params", "write keep, drop or drop=name,name")
            })?;
        }
        crawl.keep_tracking = keep_tracking.unwrap_or(crawl.keep_tracking);
        Ok(())
    }

    /// Whether there are too many regular expressions, or too long ones. Whether they can be used is known when
    /// all of a crawl are compiled together. `before`: how many the crawl has already.
    fn check_patterns(
        &self,
        pointer: &str,
        patterns: &[String],
        before: usize,
    ) -> Result<(), BadRequest> {
        let bounds = &self.bounds;
        if before + patterns.len() > bounds.patterns_max {
            let what = format!("{} patterns are the limit", bounds.patterns_max);
            return Err(BadRequest::field(pointer, what));
        }
        for (number, pattern) in patterns.iter().enumerate() {
            if pattern.len() > bounds.pattern_bytes_max {
                let what = format!(
                    "the pattern is {} bytes long; {} is the limit",
                    pattern.len(),
                    bounds.pattern_bytes_max
                );
                return Err(BadRequest::field(format!("{pointer}/{number}"), what));
            }
        }
        Ok(())
    }

    fn set_limits(&self, limits: &mut Limits, request: &LimitsRequest) -> Result<(), BadRequest> {
        let LimitsRequest {
            max_pages,
            max_depth,
            max_duration_s,
            max_bytes,
            max_errors,
            max_per_host,
            max_per_site,
            patience_s,
            max_body,
            min_free_disk,
        } = *request;
        let count = |name: &str, value: u64| up_to(&format!("/limits/{name}"), value, COUNT_MAX);
        let unless_zero = |value: u64| (value > 0).then_some(value);
        if let Some(pages) = max_pages {
            limits.pages_max = unless_zero(count("max_pages", pages)?);
        }
        if let Some(depth) = max_depth {
            limits.depth_max = (depth > 0).then_some(depth);
        }
        if let Some(seconds) = max_duration_s {
            let ms = read_seconds("/limits/max_duration_s", seconds, DURATION_S_MAX)?;
            limits.duration_ms_max = unless_zero(ms);
        }
        if let Some(bytes) = max_bytes {
            limits.bytes_max = unless_zero(count("max_bytes", bytes)?);
        }
        if let Some(errors) = max_errors {
            limits.errors_max = unless_zero(count("max_errors", errors)?);
        }
        if let Some(urls) = max_per_host {
            limits.urls_per_host_max = from_one("/limits/max_per_host", urls, COUNT_MAX)?;
        }
        if let Some(urls) = max_per_site {
            limits.urls_per_site_max = from_one("/limits/max_per_site", urls, COUNT_MAX)?;
        }
        if let Some(seconds) = patience_s {
            limits.patience_ms = read_seconds("/limits/patience_s", seconds, PATIENCE_S_MAX)?;
        }
        if let Some(bytes) = max_body {
            let max = self.bounds.body_bytes_max;
            limits.body_bytes_max = from_one("/limits/max_body", bytes, max)?;
        }
        if let Some(bytes) = min_free_disk {
            limits.free_bytes_min = Some(count("min_free_disk", bytes)?);
        }
        Ok(())
    }

    fn set_politeness(
        &self,
        politeness: &mut Politeness,
        request: &PolitenessRequest,
    ) -> Result<(), BadRequest> {
        if let Some(delay_ms) = request.delay_ms {
            politeness.delay_ms = up_to("/politeness/delay_ms", delay_ms, DELAY_MS_MAX)?;
        }
        if let Some(per_host) = request.per_host {
            let max = self.bounds.per_host_max;
            politeness.per_host = from_one("/politeness/per_host", per_host, max)?;
        }
        if let Some(workers) = request.workers {
            let max = self.bounds.workers_max;
            politeness.workers = from_one("/politeness/workers", workers, max)?;
            // A number that the user gave is meant: not even silent servers add to it.
            politeness.silent_max = 0;
        }
        if let Some(rate) = request.rate_per_s {
            if !(0.0..=1e6).contains(&rate) {
                return Err(BadRequest::field("/politeness/rate_per_s", "write 0 to 1000000"));
            }
            politeness.rate_per_second = (rate > 0.0).then_some(rate);
        }
        politeness.adaptive = request.adaptive.unwrap_or(politeness.adaptive);
        politeness.obey_rel_nofollow = request.nofollow.unwrap_or(politeness.obey_rel_nofollow);
        if let Some(word) = &request.fairness {
            politeness.fairness =
                read_word("/politeness/fairness", word, Fairness::from_word, Fairness::WORDS)?;
        }
        if let Some(retries) = request.retries {
            politeness.attempts_max = up_to("/politeness/retries", retries, RETRIES_MAX)? + 1;
        }
        if let Some(ms) = request.crawl_delay_max_ms {
            politeness.crawl_delay_max_ms =
                up_to("/politeness/crawl_delay_max_ms", ms, DELAY_MS_MAX)?;
        }
        if let Some(word) = &request.robots {
            let robots =
                read_word("/politeness/robots", word, RobotsRules::from_word, RobotsRules::WORDS)?;
            if robots == RobotsRules::Ignore && robots != politeness.robots {
                self.expect_owner("/politeness/robots")?;
            }
            politeness.robots = robots;
        }
        Ok(())
    }

    fn set_fetch(&self, crawl: &mut Crawl, request: &FetchRequest) -> Result<(), BadRequest> {
        let fetch = &mut crawl.fetch;
        if let Some(user_agent) = &request.user_agent {
            self.expect_owner("/fetch/user_agent")?;
            check_text("/fetch/user_agent", user_agent)?;
            fetch.user_agent.clone_from(user_agent);
        }
        if let Some(ms) = request.timeout_ms {
            fetch.timeout_ms = from_one("/fetch/timeout_ms", ms, TIMEOUT_MS_MAX)?;
        }
        if let Some(redirects) = request.max_redirects {
            fetch.redirects_max = up_to("/fetch/max_redirects", redirects, REDIRECTS_MAX)?;
        }
        if let Some(word) = &request.http {
            fetch.http =
                read_word("/fetch/http", word, HttpVersion::from_word, HttpVersion::WORDS)?;
        }
        fetch.cookies = request.cookies.unwrap_or(fetch.cookies);
        for (number, (name, value)) in request.headers.iter().enumerate() {
            let pointer = format!("/fetch/headers/{number}");
            let (_, own_name) = split_origin(name);
            check_header(own_name, value)
                .map_err(|fault| BadRequest::field(pointer, fault.to_string()))?;
        }
        fetch.headers.extend(request.headers.iter().cloned());
        for (number, login) in request.basic_auth.iter().enumerate() {
            let LoginRequest { host, user, password } = login;
            let pointer = format!("/fetch/basic_auth/{number}");
            [host, user, password].into_iter().try_for_each(|text| check_text(&pointer, text))?;
            fetch.basic_auth.push(BasicAuth {
                host: host.clone(),
                user: user.clone(),
                password: Secret::new(password),
            });
        }
        if let Some(text) = &request.cookies_txt {
            fetch.cookies_txt = Some(Secret::new(text));
        }
        if let Some(proxy) = &request.proxy {
            self.expect_owner("/fetch/proxy")?;
            fetch.proxy = Some(Secret::new(proxy));
        }
        if !request.allow_private.is_empty() {
            self.expect_owner("/fetch/allow_private")?;
            fetch.allow_private.clone_from(&request.allow_private);
        }
        if !request.insecure_hosts.is_empty() {
            self.expect_owner("/fetch/insecure_hosts")?;
            fetch.insecure_hosts = request.insecure_hosts.iter().map(|it| Host::new(it)).collect();
        }
        Ok(())
    }

    fn set_labels(&self, crawl: &mut Crawl, request: &CrawlRequest) -> Result<(), BadRequest> {
        let names: Vec<String> = request.labels.keys().cloned().collect();
        self.check_words("/labels", &names)?;
        self.check_words("/labels", &request.labels.values().cloned().collect::<Vec<_>>())?;
        if let Some(name) = names.iter().find(|name| name.starts_with(OWN_LABEL_PREFIX)) {
            return Err(BadRequest::field("/labels", format!("{name} is taken")));
        }
        crawl.labels.clone_from(&request.labels);
        Ok(())
    }

    fn check_words(&self, pointer: &str, words: &[String]) -> Result<(), BadRequest> {
        let max = self.bounds.words_max;
        if words.len() > max || words.iter().any(|word| word.chars().count() > NAME_CHARS_MAX) {
            let what = format!("{max} words of {NAME_CHARS_MAX} characters are the limit");
            return Err(BadRequest::field(pointer, what));
        }
        words.iter().try_for_each(|word| check_text(pointer, word))
    }

    fn expect_owner(&self, pointer: &str) -> Result<(), BadRequest> {
        match self.rights {
            Rights::Owner => Ok(()),
            Rights::User => {
                let what = "only the operator, or a key with the scope admin, may set this";
                Err(BadRequest::field(pointer, what).of_kind(BadRequestKind::Rights))
            }
        }
    }
}

/// The patterns of a changed crawl, compiled unless they are known.
fn compiled_for(
    changed: &Crawl,
    before: &Crawl,
    known: Option<CompiledPatterns>,
) -> Result<CompiledPatterns, BadRequest> {
    let scope = match known {
        Some(known) => Scope::with_compiled(changed, &known),
        None => Scope::of(changed),
    };
    let scope = scope.map_err(|error| {
        let count = before.scope.include.len() + before.scope.exclude.len();
        let own = error.at.and_then(|at| at.checked_sub(count));
        let pointer = own.map_or("/exclude".to_owned(), |at| format!("/exclude/{at}"));
        BadRequest::field(pointer, error.to_string())
    })?;
    Ok(scope.compiled())
}

/// What is worth a second look about a request.
pub fn warnings(request: &CrawlRequest) -> Vec<String> {
    let mut warnings = Vec::new();
    if request.politeness.delay_ms == Some(0) {
        warnings.push("no delay between requests: ask only hosts that are yours".to_owned());
    }
    if request.politeness.per_host.is_some_and(|per_host| per_host > 4) {
        warnings
            .push("many requests at once to one host: ask only hosts that are yours".to_owned());
    }
    warnings
}

fn scope_kind(pointer: &str, word: &str) -> Result<ScopeKind, BadRequest> {
    read_word(pointer, word, ScopeKind::from_word, ScopeKind::WORDS)
}

fn read_word<T>(
    pointer: &str,
    word: &str,
    read: impl Fn(&str) -> Option<T>,
    words: &[&str],
) -> Result<T, BadRequest> {
    read(word).ok_or_else(|| {
        let (last, others) = words.split_last().unwrap_or((&"", &[]));
        BadRequest::field(pointer, format!("write {} or {last}", others.join(", ")))
    })
}

/// A name must not look like one of the other ways to say which crawl is meant.
pub(crate) fn check_name(name: Option<&str>) -> Result<(), BadRequest> {
    let Some(name) = name else { return Ok(()) };
    let is_taken = name == "last" || name.starts_with("crawl_") || name.starts_with("c_");
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || is_taken {
        let what = format!("{:?} cannot be the name of a crawl", shown(name));
        return Err(BadRequest::field("/name", what).hint(format!(
            "A name has 1 to {NAME_CHARS_MAX} characters; last, crawl_N and c_... already mean something"
        )));
    }
    check_text("/name", name)
}

/// Names are shown on terminals, and headers are sent.
fn check_text(pointer: &str, text: &str) -> Result<(), BadRequest> {
    match text.chars().any(char::is_control) {
        true => Err(BadRequest::field(pointer, "it holds control characters")),
        false => Ok(()),
    }
}

fn up_to<T: PartialOrd + std::fmt::Display>(
    pointer: &str,
    value: T,
    max: T,
) -> Result<T, BadRequest> {
    if value <= max {
        return Ok(value);
    }
    Err(BadRequest::field(pointer, format!("{value} is too much; {max} is the limit")))
}

fn from_one<T: PartialOrd + std::fmt::Display + From<u8>>(
    pointer: &str,
    value: T,
    max: T,
) -> Result<T, BadRequest> {
    if value < T::from(1) {
        return Err(BadRequest::field(pointer, format!("{value} is too little; 1 is the least")));
    }
    up_to(pointer, value, max)
}

/// Seconds as milliseconds.
fn read_seconds(pointer: &str, seconds: f64, max: u32) -> Result<u64, BadRequest> {
    if !(0.0..=f64::from(max)).contains(&seconds) {
        return Err(BadRequest::field(pointer, format!("write 0 to {max} seconds")));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "within the limits"
    )]
    let ms = (seconds * 1000.0).round() as u64;
    Ok(ms)
}

/// Longest piece of a user's own text that is repeated.
const SHOWN_CHARS_MAX: usize = 300;

/// A user's own text, short enough to be repeated.
pub fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
