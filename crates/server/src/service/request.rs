//! What users ask for, checked and made a [`Crawl`]. Every mistake names its field.

use std::collections::HashSet;

use telusur_model::{
    Crawl, Direction, Fairness, IdRanges, Keep, Limits, LinearSeeds, MissingRules, PageUrl,
    Politeness, Rates, Resume, Scope, ScopeKind, ScopeRules, Seeds, SitemapRules, Template,
    UrlKeyer, Walk, WalkRules,
};

use super::Service;
use super::catalog::REQUEST_LABEL;
use crate::json::{
    LimitsBody, LinearBody, MannersBody, NewCrawlBody, RatesBody, S1Request, ScopeBody,
};
use crate::problem::{Code, Problem, shown};

/// Longest name, label or topic word.
const NAME_CHARS_MAX: usize = 200;
/// Labels, topic words and hosts of one crawl.
const WORDS_MAX: usize = 50;
/// Templates of one linear crawl: every decision looks at each of them.
const TEMPLATES_MAX: usize = 1000;
/// A day. A host that may be asked less often than that is better not crawled at all.
const DELAY_MS_MAX: u64 = 86_400_000;
/// Requests under way at one host.
const PER_HOST_MAX: u16 = 64;
/// Requests under way in one crawl: each may hold a body in memory.
const WORKERS_MAX: u16 = 1024;
/// Bytes read of one body.
const BODY_BYTES_MAX: u64 = 64 << 20;
/// Largest count, size or time: far beyond what one directory holds, and small enough to be added to.
const COUNT_MAX: u64 = 1 << 53;
/// A hundred years.
const DURATION_S_MAX: u64 = 100 * 366 * 86_400;
/// A day: no Retry-After is waited for longer than an hour at a time.
const PATIENCE_S_MAX: u64 = 86_400;
/// Pages that a client of the first service may ask for.
const S1_PAGES_MAX: i64 = 1_000_000;

impl Service {
    /// The crawl that a body describes, and what is worth a second look about it.
    pub(super) fn crawl_of(&self, body: NewCrawlBody) -> Result<(Crawl, Vec<String>), Problem> {
        let mut crawl = self.settings().defaults.clone();
        let warnings = warnings(&body);
        crawl.name = body.name;
        check_name(crawl.name.as_deref())?;
        set_limits(&mut crawl.limits, &body.limits)?;
        set_manners(&mut crawl.politeness, &body.manners)?;
        self.set_scope(&mut crawl, body.scope)?;
        if let Some(word) = body.keep {
            crawl.keep = keep(&word)?;
        }
        check_words("/topic", &body.topic)?;
        if !body.topic.is_empty() {
            crawl.topic = body.topic.iter().map(|word| word.to_lowercase()).collect();
        }
        let names: Vec<String> = body.labels.keys().cloned().collect();
        check_words("/labels", &names)?;
        check_words("/labels", &body.labels.values().cloned().collect::<Vec<_>>())?;
        if names.iter().any(|name| name == REQUEST_LABEL) {
            return Err(Problem::field("/labels", format!("{REQUEST_LABEL} is taken")));
        }
        crawl.labels = body.labels;
        match body.linear {
            Some(linear) if body.urls.is_empty() && body.sitemaps.is_empty() => {
                self.set_linear(&mut crawl, &linear)?;
                if body.limits.max_per_host.is_some() {
                    crawl.limits.ids_per_host_max = Some(crawl.limits.urls_per_host_max);
                }
            }
            Some(_) => {
                let what = "a crawl goes along links (urls, sitemaps) or along numbers (linear)";
                return Err(Problem::field("/linear", what));
            }
            None => {
                let pages = self.urls("/urls", &body.urls)?;
                let sitemaps = self.urls("/sitemaps", &body.sitemaps)?;
                if pages.is_empty() && sitemaps.is_empty() {
                    return Err(Problem::field("/urls", "there is no start URL")
                        .hint("Name at least one: {\"urls\": [\"https://example.org/\"]}"));
                }
                crawl.seeds = Seeds::Links(pages);
                crawl.sitemaps.urls = sitemaps;
            }
        }
        // All patterns together, compiled once: that is what they cost.
        let scope = Scope::of(&crawl).map_err(|error| {
            let pointer = self.pattern_pointer(&crawl.scope, error.at);
            Problem::field(&pointer, error.to_string())
        })?;
        check_start("/scope/exclude", &crawl, &scope)?;
        Ok((crawl, warnings))
    }

    /// Where a pattern of a crawl's scope stands in the body that asked for it. The operator's own exclusions
    /// come first.
    fn pattern_pointer(&self, scope: &ScopeRules, at: Option<usize>) -> String {
        let of_operator = self.settings().defaults.scope.exclude.len();
        let place = at.map(|at| (at, at.checked_sub(scope.include.len() + of_operator)));
        match place {
            Some((at, _)) if at < scope.include.len() => format!("/scope/include/{at}"),
            Some((_, Some(own))) => format!("/scope/exclude/{own}"),
            Some((_, None)) | None => "/scope".to_owned(),
        }
    }

    /// The crawl that a client of the first service asks for.
    pub(crate) fn crawl_of_s1(&self, request: &S1Request) -> Result<Crawl, Problem> {
        let mut crawl = self.settings().defaults.clone();
        if !(1..=S1_PAGES_MAX).contains(&request.max_pages) {
            let what = format!("max_pages is {}; write 1 to {S1_PAGES_MAX}", request.max_pages);
            return Err(Problem::field("/max_pages", what));
        }
        crawl.limits.pages_max = u64::try_from(request.max_pages).ok();
        crawl.seeds = Seeds::Links(vec![self.url("/url", &request.url)?]);
        // The patterns are the operator's.
        let scope = Scope::of(&crawl).map_err(|error| Problem::field("/url", error.to_string()))?;
        check_start("/url", &crawl, &scope)?;
        Ok(crawl)
    }

    /// A URL that a user names: it must be one that may be asked.
    pub(crate) fn url(&self, pointer: &str, text: &str) -> Result<PageUrl, Problem> {
        let url = PageUrl::parse(text.trim()).map_err(|error| {
            let what = format!("{:?} is not a URL that can be fetched: {error}", shown(text));
            Problem::field(pointer, what).hint("Write it like https://example.org/page")
        })?;
        match self.inner().guard.refusal(&url) {
            None => Ok(url),
            Some(why) => Err(Problem::new(Code::UrlNotAllowed, why)
                .at(pointer)
                .hint("Only the operator can open it, when the server is started")),
        }
    }

    /// URLs that a user names, each page once.
    fn urls(&self, pointer: &str, texts: &[String]) -> Result<Vec<PageUrl>, Problem> {
        let seeds_max = self.settings().bounds.seeds_max;
        if texts.len() > seeds_max {
            let what = format!("there are {} of them; {seeds_max} is the limit", texts.len());
            return Err(Problem::field(pointer, what).hint("Split them into several crawls"));
        }
        let keyer = UrlKeyer { seed: 0, drop_tracking: true };
        let (mut urls, mut seen) = (Vec::with_capacity(texts.len()), HashSet::new());
        for (number, text) in texts.iter().enumerate() {
            let url = self.url(&format!("{pointer}/{number}"), text)?;
            if seen.insert(keyer.key(&url)) {
                urls.push(url);
            }
        }
        Ok(urls)
    }

    fn set_scope(&self, crawl: &mut Crawl, scope: ScopeBody) -> Result<(), Problem> {
        let ScopeBody { kind, include, exclude, allow_hosts, extra_hops } = scope;
        if let Some(word) = kind {
            crawl.scope.kind = scope_kind("/scope/kind", &word)?;
        }
        self.check_patterns("/scope/include", &include, 0)?;
        self.check_patterns("/scope/exclude", &exclude, crawl.scope.exclude.len())?;
        check_words("/scope/allow_hosts", &allow_hosts)?;
        if !include.is_empty() {
            crawl.scope.include = include;
        }
        crawl.scope.exclude.extend(exclude);
        crawl.scope.allow_hosts.extend(allow_hosts);
        if let Some(hops) = extra_hops {
            crawl.scope.extra_hops = hops;
        }
        Ok(())
    }

    /// Whether there are too many regular expressions, or too long ones. Whether they can be used is known when
    /// all of a crawl are compiled together. `before`: how many the crawl has already.
    pub(super) fn check_patterns(
        &self,
        pointer: &str,
        patterns: &[String],
        before: usize,
    ) -> Result<(), Problem> {
        let bounds = &self.settings().bounds;
        if before + patterns.len() > bounds.patterns_max {
            let what = format!("{} patterns are the limit", bounds.patterns_max);
            return Err(Problem::field(pointer, what));
        }
        for (number, pattern) in patterns.iter().enumerate() {
            let pointer = format!("{pointer}/{number}");
            if pattern.len() > bounds.pattern_bytes_max {
                let what = format!(
                    "the pattern is {} bytes long; {} is the limit",
                    pattern.len(),
                    bounds.pattern_bytes_max
                );
                return Err(Problem::field(&pointer, what));
            }
        }
        Ok(())
    }

    fn set_linear(&self, crawl: &mut Crawl, body: &LinearBody) -> Result<(), Problem> {
        let follows = match &body.follow {
            Some(word) => Some(scope_kind("/linear/follow", word)?),
            None => None,
        };
        let texts: Vec<&String> = body.template.iter().chain(&body.templates).collect();
        if texts.is_empty() {
            return Err(Problem::field("/linear/template", "there is no template")
                .hint("Write it like https://example.org/item/{id}"));
        }
        if texts.len() > TEMPLATES_MAX {
            let what = format!("{TEMPLATES_MAX} templates are the limit");
            return Err(Problem::field("/linear/templates", what));
        }
        let mut walks: Vec<Walk> = Vec::with_capacity(texts.len());
        let mut addresses = HashSet::with_capacity(texts.len());
        for text in texts {
            let template = Template::parse(text).map_err(|error| {
                let what = format!("{}: {:?}", error.fault, shown(text));
                Problem::field("/linear/template", what).hint(error.hint())
            })?;
            let address = template.url_of(0);
            self.url("/linear/template", address.as_str())?;
            if !addresses.insert(address) {
                let what = format!("{:?} is given twice", shown(text));
                return Err(Problem::field("/linear/templates", what));
            }
            // Ids and rules are read once, and shared by all templates.
            let walk = match walks.first() {
                Some(first) => first.with_template(template),
                None => Walk::new(walk_rules(template, body)?)
                    .map_err(|error| Problem::field("/linear", error.to_string()))?,
            };
            walks.push(walk);
        }
        if let Some(kind) = follows {
            crawl.scope.kind = kind;
        }
        let discover = follows.is_some() && crawl.sitemaps.discover;
        crawl.sitemaps = SitemapRules { discover, urls: Vec::new() };
        // The id may stand in any parameter, also in one that other crawls pass over.
        crawl.keep_tracking = true;
        let follow = follows.is_some();
        crawl.seeds = Seeds::Linear(LinearSeeds { walks, resume: Resume::All, follow });
        Ok(())
    }
}

/// Refuses a crawl that its own exclusions keep from starting.
fn check_start(pointer: &str, crawl: &Crawl, scope: &Scope) -> Result<(), Problem> {
    match scope.excluded_start(&crawl.seeds, &crawl.sitemaps.urls) {
        None => Ok(()),
        Some(excluded) => Err(Problem::field(pointer, shown(&excluded.to_string()))
            .hint("Start elsewhere, or make the exclusion narrower")),
    }
}

fn walk_rules(template: Template, body: &LinearBody) -> Result<WalkRules, Problem> {
    let rules = WalkRules::new(template);
    let direction = match body.direction.as_deref() {
        None => None,
        Some("ascending") => Some(Direction::Ascending),
        Some("descending") => Some(Direction::Descending),
        Some(_) => {
            return Err(Problem::field("/linear/direction", "write ascending or descending"));
        }
    };
    let ids = match &body.ids {
        None => None,
        Some(text) => {
            let ids = IdRanges::parse(text);
            Some(ids.map_err(|error| Problem::field("/linear/ids", error.to_string()))?)
        }
    };
    let missing = match &body.missing {
        None => rules.missing.clone(),
        Some(text) => {
            let rules = MissingRules::parse(text);
            rules.map_err(|error| {
                let what = shown(&error.to_string());
                Problem::field("/linear/missing", what).hint(error.hint())
            })?
        }
    };
    let rates = body
        .rate
        .as_ref()
        .map(|RatesBody { asc, desc }| Rates { ascending: *asc, descending: *desc });
    let cooldown_s = body.cooldown_s.map(|s| up_to("/linear/cooldown_s", s, DURATION_S_MAX));
    Ok(WalkRules {
        direction,
        start: body.start,
        min: body.min.or(body.from),
        max: body.max.or(body.to),
        ids,
        step: body.step.unwrap_or(rules.step),
        margin: body.margin.unwrap_or(rules.margin),
        attempts: body.attempts.unwrap_or(rules.attempts),
        cooldown_ms: cooldown_s.transpose()?.map_or(rules.cooldown_ms, |s| s * 1000),
        rates: rates.unwrap_or(rules.rates),
        missing,
        ..rules
    })
}

pub(super) fn set_limits(limits: &mut Limits, body: &LimitsBody) -> Result<(), Problem> {
    let count = |name: &str, value: u64| up_to(&format!("/limits/{name}"), value, COUNT_MAX);
    let unless_zero = |value: u64| (value > 0).then_some(value);
    if let Some(pages) = body.max_pages {
        limits.pages_max = unless_zero(count("max_pages", pages)?);
    }
    if let Some(depth) = body.max_depth {
        limits.depth_max = (depth > 0).then_some(depth);
    }
    if let Some(seconds) = body.max_duration_s {
        let seconds = up_to("/limits/max_duration_s", seconds, DURATION_S_MAX)?;
        limits.duration_ms_max = unless_zero(seconds * 1000);
    }
    if let Some(bytes) = body.max_bytes {
        limits.bytes_max = unless_zero(count("max_bytes", bytes)?);
    }
    if let Some(errors) = body.max_errors {
        limits.errors_max = unless_zero(count("max_errors", errors)?);
    }
    if let Some(urls) = body.max_per_host {
        limits.urls_per_host_max = from_one("/limits/max_per_host", urls, COUNT_MAX)?;
    }
    if let Some(urls) = body.max_per_site {
        limits.urls_per_site_max = from_one("/limits/max_per_site", urls, COUNT_MAX)?;
    }
    if let Some(seconds) = body.patience_s {
        limits.patience_ms = up_to("/limits/patience_s", seconds, PATIENCE_S_MAX)? * 1000;
    }
    if let Some(bytes) = body.max_body {
        limits.body_bytes_max = from_one("/limits/max_body", bytes, BODY_BYTES_MAX)?;
    }
    Ok(())
}

pub(super) fn set_manners(manners: &mut Politeness, body: &MannersBody) -> Result<(), Problem> {
    if let Some(delay_ms) = body.delay_ms {
        manners.delay_ms = up_to("/manners/delay_ms", delay_ms, DELAY_MS_MAX)?;
    }
    if let Some(per_host) = body.per_host {
        manners.per_host = from_one("/manners/per_host", per_host, PER_HOST_MAX)?;
    }
    if let Some(workers) = body.workers {
        manners.workers = from_one("/manners/workers", workers, WORKERS_MAX)?;
        // A number that the user gave is meant: not even silent servers add to it.
        manners.silent_max = 0;
    }
    if let Some(rate) = body.rate_per_s {
        if !(0.0..=1e6).contains(&rate) {
            return Err(Problem::field("/manners/rate_per_s", "write 0 to 1000000"));
        }
        manners.rate_per_second = (rate > 0.0).then_some(rate);
    }
    if let Some(adaptive) = body.adaptive {
        manners.adaptive = adaptive;
    }
    if let Some(word) = &body.fairness {
        manners.fairness = match word.as_str() {
            "equal" => Fairness::Equal,
            "weighted" => Fairness::Weighted,
            "none" => Fairness::None,
            _ => return Err(Problem::field("/manners/fairness", "write equal, weighted or none")),
        };
    }
    Ok(())
}

fn warnings(body: &NewCrawlBody) -> Vec<String> {
    let mut warnings = Vec::new();
    if body.manners.delay_ms == Some(0) {
        warnings.push("no delay between requests: ask only hosts that are yours".to_owned());
    }
    if body.manners.per_host.is_some_and(|per_host| per_host > 4) {
        warnings
            .push("many requests at once to one host: ask only hosts that are yours".to_owned());
    }
    warnings
}

fn keep(word: &str) -> Result<Keep, Problem> {
    match word {
        "none" => Ok(Keep::None),
        "text" => Ok(Keep::Text),
        "html" => Ok(Keep::Html),
        "raw" => Ok(Keep::Raw),
        _ => Err(Problem::field("/keep", "write none, text, html or raw")),
    }
}

fn scope_kind(pointer: &str, word: &str) -> Result<ScopeKind, Problem> {
    let refuse = || Problem::field(pointer, "write page, prefix, host, domain or any");
    ScopeKind::from_word(word).ok_or_else(refuse)
}

fn check_name(name: Option<&str>) -> Result<(), Problem> {
    let Some(name) = name else { return Ok(()) };
    let is_taken = name == "last" || name.starts_with("crawl_") || name.starts_with("c_");
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || is_taken {
        let what = format!("a name has 1 to {NAME_CHARS_MAX} characters, and looks like no id");
        return Err(Problem::field("/name", what));
    }
    check_text("/name", name)
}

fn check_words(pointer: &str, words: &[String]) -> Result<(), Problem> {
    if words.len() > WORDS_MAX || words.iter().any(|word| word.chars().count() > NAME_CHARS_MAX) {
        let what = format!("{WORDS_MAX} words of {NAME_CHARS_MAX} characters are the limit");
        return Err(Problem::field(pointer, what));
    }
    words.iter().try_for_each(|word| check_text(pointer, word))
}

/// Names are shown on terminals.
fn check_text(pointer: &str, text: &str) -> Result<(), Problem> {
    match text.chars().any(char::is_control) {
        true => Err(Problem::field(pointer, "it holds control characters")),
        false => Ok(()),
    }
}

fn up_to<T: PartialOrd + std::fmt::Display>(pointer: &str, value: T, max: T) -> Result<T, Problem> {
    if value <= max {
        return Ok(value);
    }
    Err(Problem::field(pointer, format!("{value} is too much; {max} is the limit")))
}

fn from_one<T: PartialOrd + std::fmt::Display + From<u8>>(
    pointer: &str,
    value: T,
    max: T,
) -> Result<T, Problem> {
    if value < T::from(1) {
        return Err(Problem::field(pointer, format!("{value} is too little; 1 is the least")));
    }
    up_to(pointer, value, max)
}
