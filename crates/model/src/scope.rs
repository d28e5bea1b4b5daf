//! [`Scope`]: which links a crawl follows. Every refusal names its rule.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::pattern::{PatternLimits, PatternSet};
use crate::words::words;
use crate::{Crawl, Limits, LinkRules, PageUrl, Reason};

/// What all patterns of a scope may cost together. Their size is enough for an alternation of 5,000 words; with
/// those of a linear crawl's missing pages ([`crate::MissingPages`]) it is 5 MiB for a crawl. Every new link is
/// matched: an address of usual length takes less than 0.4 ms, the longest one 8 ms.
const PATTERN_LIMITS: PatternLimits = PatternLimits { bytes_max: 4 << 20, positions_max: 600 };
/// Path segments of a URL. A site that nests deeper is generating its paths.
const PATH_SEGMENTS_MAX: usize = 64;
/// Times that one path segment may occur in a URL: `/a/b/a/b/a/b` is a link that feeds on itself.
const EQUAL_SEGMENTS_MAX: usize = 3;
/// Links away from a seed when the user names no limit (Heritrix's default).
const HOPS_MAX: u16 = 20;

/// How far from a seed links are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScopeKind {
    /// The seeds alone.
    Page,
    /// Below the seed's directory, on its host.
    Prefix,
    /// On the seed's host.
    Host,
    /// On the seed's host without `www.`, and on every host below it.
    #[default]
    Domain,
    /// Everywhere.
    Any,
}

/// What to do with the part of a link after `?`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueryParams {
    /// Follow it as found.
    #[default]
    Keep,
    /// Drop all parameters.
    DropAll,
    /// Drop these parameters.
    Drop(Vec<String>),
}

/// The rules as the user gave them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeRules {
    /// How far links are followed.
    pub kind: ScopeKind,
    /// Where there are any, a URL must match one of them.
    pub include: Vec<String>,
    /// A URL must match none of them.
    pub exclude: Vec<String>,
    /// Hosts that are in scope besides the seeds' own.
    pub allow_hosts: Vec<String>,
    /// Links followed beyond the scope.
    pub extra_hops: u8,
    /// What to do with queries.
    pub query_params: QueryParams,
}

/// A rule that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pattern:?} is not a usable pattern: {why}")]
pub struct ScopeError {
    /// The pattern as given.
    pub pattern: String,
    /// Its place among the patterns, inclusions before exclusions; `None` if all together are too much.
    pub at: Option<usize>,
    /// What is wrong with it, in one line.
    pub why: String,
}

/// The answer to "may this link be followed?".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Admit,
    /// No, and this rule says so.
    Reject {
        /// The kind of refusal.
        reason: Reason,
        /// The rule, in words for the user.
        rule: String,
    },
}

/// A link and what the rules say about it, found out in one look at the patterns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkVerdict {
    /// Whether it may be followed.
    pub verdict: Verdict,
    /// Whether the user named it by an include pattern: then no trap is suspected in it. Of a link that is out
    /// of scope nobody knows.
    pub is_included: bool,
}

/// The compiled patterns of a scope, to be used again by another one with the same patterns: to compile them
/// may take a tenth of a second.
#[derive(Clone, Debug)]
pub struct CompiledPatterns(PatternSet);

impl PartialEq for CompiledPatterns {
    /// Equal patterns match the same.
    fn eq(&self, other: &Self) -> bool {
        self.0.texts() == other.0.texts()
    }
}

impl CompiledPatterns {
    /// Whether both were compiled as one.
    pub fn is_shared(&self, other: &Self) -> bool {
        self.0.is_shared(&other.0)
    }

    fn of(&self, texts: &[&str]) -> Option<PatternSet> {
        (self.0.texts() == texts).then(|| self.0.clone())
    }
}

/// The seeds' part of a scope: where "home" is.
#[derive(Clone, Debug, Default)]
pub struct SeedSite {
    pages: HashSet<String>,
    prefixes: Vec<String>,
    hosts: HashSet<String>,
    domains: HashSet<String>,
}

impl SeedSite {
    fn new(seeds: &[PageUrl], allow_hosts: &[String]) -> Self {
        let mut home = Self::default();
        for seed in seeds {
            home.pages.insert(seed.as_str().to_owned());
            home.prefixes.push(directory_of(seed));
            home.hosts.insert(seed.host_str().to_owned());
            home.domains.insert(without_www(seed.host_str()).to_owned());
        }
        home.prefixes.sort();
        home.prefixes.dedup();
        for host in allow_hosts {
            home.hosts.insert(host.to_ascii_lowercase());
            home.domains.insert(without_www(host).to_ascii_lowercase());
        }
        home
    }

    fn has(&self, kind: ScopeKind, url: &PageUrl) -> bool {
        match kind {
            ScopeKind::Any => true,
            ScopeKind::Page => self.pages.contains(url.as_str()),
            ScopeKind::Prefix => {
                self.prefixes.iter().any(|prefix| url.as_str().starts_with(prefix))
            }
            ScopeKind::Host => self.hosts.contains(url.host_str()),
            ScopeKind::Domain => {
                host_and_parents(url.host_str()).any(|name| self.domains.contains(name))
            }
        }
    }
}

/// Compiled rules: judges links.
#[derive(Clone, Debug)]
pub struct Scope {
    kind: ScopeKind,
    home: SeedSite,
    /// The patterns: first those of which a URL must match one, then those of which it must match none.
    patterns: PatternSet,
    include_count: usize,
    extra_hops: u8,
    depth_max: u16,
    query_params: QueryParams,
    learned: Option<Arc<dyn LinkRules>>,
}

impl Scope {
    /// The scope of a crawl.
    pub fn of(crawl: &Crawl) -> Result<Self, ScopeError> {
        Self::new(&crawl.scope, &crawl.home(), &crawl.limits)
    }

    /// The same, with patterns that were compiled before, if they are those of the crawl.
    pub fn with_compiled(crawl: &Crawl, compiled: &CompiledPatterns) -> Result<Self, ScopeError> {
        let patterns = texts_of(&crawl.scope);
        let patterns = compiled.of(&patterns).map_or_else(|| compile(&patterns), Ok)?;
        Ok(Self::from_parts(&crawl.scope, &crawl.home(), &crawl.limits, patterns))
    }

    /// Compiles the rules of a crawl.
    pub fn new(rules: &ScopeRules, seeds: &[PageUrl], limits: &Limits) -> Result<Self, ScopeError> {
        let patterns = compile(&texts_of(rules))?;
        Ok(Self::from_parts(rules, seeds, limits, patterns))
    }

    fn from_parts(
        rules: &ScopeRules,
        seeds: &[PageUrl],
        limits: &Limits,
        patterns: PatternSet,
    ) -> Self {
        Self {
            kind: rules.kind,
            home: SeedSite::new(seeds, &rules.allow_hosts),
            patterns,
            include_count: rules.include.len(),
            extra_hops: rules.extra_hops,
            depth_max: limits.depth_max.unwrap_or(HOPS_MAX),
            query_params: rules.query_params.clone(),
            learned: None,
        }
    }

    /// Its patterns, for a scope with the same ones.
    pub fn compiled(&self) -> CompiledPatterns {
        CompiledPatterns(self.patterns.clone())
    }

    /// The same scope, with what the crawl learns while it runs.
    pub fn with_learned(self, learned: Arc<dyn LinkRules>) -> Self {
        Self { learned: Some(learned), ..self }
    }

    /// Why a link that the rules admit is not followed after all, by what was learned on the way.
    /// `is_included`: as in [`LinkVerdict`].
    pub fn learned_refusal(
        &self,
        link: &PageUrl,
        is_included: impl FnOnce() -> bool,
    ) -> Option<(Reason, String)> {
        let (reason, rule) = self.learned.as_ref()?.refusal(link)?;
        // An explicit include is the user's word that there is no trap.
        let is_overruled = reason == Reason::TrapSuspected && is_included();
        (!is_overruled).then_some((reason, rule))
    }

    /// Adds an exclusion to a scope that is in use.
    pub fn exclude(&mut self, pattern: &str) -> Result<(), ScopeError> {
        let mut patterns: Vec<&str> = self.patterns.texts().iter().map(String::as_str).collect();
        patterns.push(pattern);
        self.patterns = compile(&patterns)?;
        Ok(())
    }

    /// Whether a link found at `depth` (seeds have depth 0) is followed. `hops_outside` counts the
    /// links already followed beyond the scope on the way here.
    pub fn judge(&self, link: &PageUrl, depth: u16, hops_outside: u8) -> LinkVerdict {
        let reject = |reason, rule: String| Verdict::Reject { reason, rule };
        if !self.home.has(self.kind, link) && hops_outside >= self.extra_hops {
            let verdict = reject(Reason::OutOfScope, format!("scope {}", self.kind.word()));
            return LinkVerdict { verdict, is_included: false };
        }
        let (included, excluded) = self.patterns.first_matches(self.include_count, link.as_str());
        let is_included = included.is_some();
        let verdict = if let Some(at) = excluded {
            reject(Reason::Excluded, format!("exclude {}", self.patterns.texts()[at]))
        } else if self.include_count > 0 && !is_included {
            reject(Reason::NotIncluded, "matches no include pattern".to_owned())
        } else if depth > self.depth_max {
            reject(Reason::DepthLimit, format!("depth {}", self.depth_max))
        } else if !is_included && let Some(rule) = trap_rule(link) {
            // An explicit include is the user's word that these paths are no trap.
            reject(Reason::TrapSuspected, rule)
        } else {
            Verdict::Admit
        };
        LinkVerdict { verdict, is_included }
    }

    /// Whether the user named the URL by an include pattern: then no trap is suspected in it.
    pub fn is_included(&self, link: &PageUrl) -> bool {
        let (included, _) = match self.include_count {
            0 => return false,
            count => self.patterns.first_matches(count, link.as_str()),
        };
        included.is_some()
    }

    /// Whether a host's sitemaps are of use: it is at home here, and more than single pages are
    /// wanted. A crawl of everything reads those of its start hosts alone.
    pub fn wants_sitemaps_of(&self, url: &PageUrl) -> bool {
        match self.kind {
            ScopeKind::Page => false,
            ScopeKind::Domain => self.home.has(ScopeKind::Domain, url),
            ScopeKind::Prefix | ScopeKind::Host | ScopeKind::Any => {
                self.home.has(ScopeKind::Host, url)
            }
        }
    }

    /// The exclusion that a URL matches, if any.
    pub fn exclusion(&self, link: &PageUrl) -> Option<&str> {
        let (_, found) = self.patterns.first_matches(self.include_count, link.as_str());
        found.map(|at| self.patterns.texts()[at].as_str())
    }

    /// Bytes of URLs that may be asked about on behalf of one request: the more the patterns leave open, the
    /// longer each takes.
    pub fn match_bytes_max(&self) -> usize {
        self.patterns.match_bytes_max()
    }

    /// Whether a URL is beyond the scope and only reached by an extra hop.
    pub fn is_outside(&self, link: &PageUrl) -> bool {
        !self.home.has(self.kind, link)
    }

    /// The link with its query treated as the user asked.
    pub fn treat_query(&self, link: PageUrl) -> PageUrl {
        let Some(query) = link.query() else { return link };
        let kept: Vec<&str> = match &self.query_params {
            QueryParams::Keep => return link,
            QueryParams::DropAll => Vec::new(),
            QueryParams::Drop(names) => query
                .split('&')
                .filter(|pair| {
                    let name = pair.split_once('=').map_or(*pair, |(name, _)| name);
                    !names.iter().any(|dropped| dropped == name)
                })
                .collect(),
        };
        let without = &link.as_str()[..link.as_str().len() - "?".len() - query.len()];
        let text = match kept[..] {
            [] => without.to_owned(),
            _ => format!("{without}?{}", kept.join("&")),
        };
        PageUrl::parse(&text).unwrap_or(link)
    }
}

words! {
    ScopeKind { Page = "page", Prefix = "prefix", Host = "host", Domain = "domain", Any = "any" }
}

impl QueryParams {
    /// Reads `keep`, `drop` or `drop=name,name`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "keep" => Some(Self::Keep),
            "drop" => Some(Self::DropAll),
            _ => {
                let names: Vec<String> = text
                    .strip_prefix("drop=")?
                    .split(',')
                    .map(|name| name.trim().to_owned())
                    .collect();
                names.iter().all(|name| !name.is_empty()).then_some(Self::Drop(names))
            }
        }
    }

    /// The text that [`parse`](Self::parse) reads.
    pub fn text(&self) -> String {
        match self {
            Self::Keep => "keep".to_owned(),
            Self::DropAll => "drop".to_owned(),
            Self::Drop(names) => format!("drop={}", names.join(",")),
        }
    }
}

/// Whether an anchor or an address holds one of the crawl's topic words (S4's hot queue). The words
/// are lower case.
pub fn matches_topic(topic: &[String], url: &PageUrl, anchor: &str) -> bool {
    if topic.is_empty() {
        return false;
    }
    let url = url.as_str().to_lowercase();
    let anchor = anchor.to_lowercase();
    topic.iter().any(|word| url.contains(word.as_str()) || anchor.contains(word.as_str()))
}

/// The patterns in the order in which they are compiled: inclusions before exclusions.
fn texts_of(rules: &ScopeRules) -> Vec<&str> {
    rules.include.iter().chain(&rules.exclude).map(String::as_str).collect()
}

fn compile(patterns: &[&str]) -> Result<PatternSet, ScopeError> {
    PatternSet::new(patterns, PATTERN_LIMITS).map_err(|error| error.of_scope(patterns))
}

fn trap_rule(url: &PageUrl) -> Option<String> {
    let segments: Vec<&str> = url.path().split('/').filter(|segment| !segment.is_empty()).collect();
    if segments.len() > PATH_SEGMENTS_MAX {
        return Some(format!("more than {PATH_SEGMENTS_MAX} path segments"));
    }
    if segments.len() <= EQUAL_SEGMENTS_MAX {
        return None;
    }
    let mut sorted = segments;
    sorted.sort_unstable();
    sorted.chunk_by(|left, right| left == right).find(|equal| equal.len() > EQUAL_SEGMENTS_MAX).map(
        |equal| format!("path segment {:?} occurs more than {EQUAL_SEGMENTS_MAX} times", equal[0]),
    )
}

fn directory_of(url: &PageUrl) -> String {
    let path = url.path();
    let directory = &path[..=path.rfind('/').unwrap_or(0)];
    format!("{}{directory}", url.origin())
}

fn without_www(host: &str) -> &str {
    host.strip_prefix("www.").unwrap_or(host)
}

fn host_and_parents(host: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(host), |name| name.split_once('.').map(|(_, parent)| parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(rules: ScopeRules, seed: &str) -> Scope {
        Scope::new(&rules, &[PageUrl::parse(seed).unwrap()], &Limits::default()).unwrap()
    }

    #[track_caller]
    fn check(scope: &Scope, link: &str, expect: Option<Reason>) {
        let verdict = scope.judge(&PageUrl::parse(link).unwrap(), 1, 0).verdict;
        let reason = match verdict {
            Verdict::Admit => None,
            Verdict::Reject { reason, .. } => Some(reason),
        };
        assert_eq!(reason, expect, "{link}");
    }

    #[test]
    fn domain_is_the_host_and_everything_below() {
        let scope = scope(ScopeRules::default(), "https://www.example.org/start");
        check(&scope, "http://example.org/", None);
        check(&scope, "https://docs.example.org/x", None);
        check(&scope, "https://notexample.org/", Some(Reason::OutOfScope));
        check(&scope, "https://example.org.evil.test/", Some(Reason::OutOfScope));
    }

    #[test]
    fn narrower_scopes() {
        let of =
            |kind| scope(ScopeRules { kind, ..Default::default() }, "http://a.org/docs/x.html");
        check(&of(ScopeKind::Host), "http://a.org/", None);
        check(&of(ScopeKind::Host), "http://www.a.org/", Some(Reason::OutOfScope));
        check(&of(ScopeKind::Prefix), "http://a.org/docs/y", None);
        check(&of(ScopeKind::Prefix), "http://a.org/blog", Some(Reason::OutOfScope));
        check(&of(ScopeKind::Page), "http://a.org/docs/y", Some(Reason::OutOfScope));
        check(&of(ScopeKind::Any), "http://elsewhere.net/", None);
    }

    #[test]
    fn patterns() {
        let rules = ScopeRules {
            include: vec!["/news/".into()],
            exclude: vec!["/news/old".into()],
            ..Default::default()
        };
        let scope = scope(rules, "http://a.org/");
        check(&scope, "http://a.org/news/1", None);
        check(&scope, "http://a.org/shop", Some(Reason::NotIncluded));
        check(&scope, "http://a.org/news/old/1", Some(Reason::Excluded));
    }

    #[test]
    fn traps_are_suspected_unless_included() {
        let trap = "http://a.org/x/y/x/y/x/y/x/y";
        check(&scope(ScopeRules::default(), "http://a.org/"), trap, Some(Reason::TrapSuspected));
        let rules = ScopeRules { include: vec!["/x/".into()], ..Default::default() };
        check(&scope(rules, "http://a.org/"), trap, None);
    }

    #[test]
    fn extra_hops_lead_outside_and_no_further() {
        let scope = scope(ScopeRules { extra_hops: 1, ..Default::default() }, "http://a.org/");
        let link = PageUrl::parse("http://b.org/").unwrap();
        assert_eq!(scope.judge(&link, 1, 0).verdict, Verdict::Admit);
        assert!(matches!(scope.judge(&link, 2, 1).verdict, Verdict::Reject { .. }));
    }

    #[test]
    fn depth_has_a_limit() {
        let limits = Limits { depth_max: Some(2), ..Default::default() };
        let seed = PageUrl::parse("http://a.org/").unwrap();
        let scope =
            Scope::new(&ScopeRules::default(), std::slice::from_ref(&seed), &limits).unwrap();
        assert_eq!(scope.judge(&seed, 2, 0).verdict, Verdict::Admit);
        assert!(matches!(
            scope.judge(&seed, 3, 0).verdict,
            Verdict::Reject { reason: Reason::DepthLimit, .. }
        ));
    }

    #[test]
    fn equal_patterns_are_not_compiled_again() {
        let rules = ScopeRules { exclude: vec!["/old".into()], ..Default::default() };
        let first = scope(rules.clone(), "http://a.org/");
        let again =
            |rules: &ScopeRules| first.compiled().of(&texts_of(rules)).map(CompiledPatterns);
        assert!(again(&rules).unwrap().is_shared(&first.compiled()));
        assert!(!scope(rules, "http://a.org/").compiled().is_shared(&first.compiled()));
        let others = ScopeRules { exclude: vec!["/new".into()], ..Default::default() };
        assert!(again(&others).is_none());
    }

    #[test]
    fn hostile_patterns_are_refused_in_one_line() {
        let long = "x".repeat(crate::pattern::SOURCE_BYTES_MAX + 1);
        for pattern in ["(", "(a{1000}){1000}{1000}", &long] {
            let error = compile(&[pattern]).unwrap_err();
            assert!(!error.why.contains('\n') && error.pattern.len() <= 80);
        }
    }

    #[test]
    fn queries_can_be_dropped() {
        let treat = |query_params, link: &str| {
            let scope = scope(ScopeRules { query_params, ..Default::default() }, "http://a.org/");
            scope.treat_query(PageUrl::parse(link).unwrap()).to_string()
        };
        assert_eq!(treat(QueryParams::DropAll, "http://a.org/x?a=1"), "http://a.org/x");
        let drop = QueryParams::Drop(vec!["sid".into()]);
        assert_eq!(treat(drop, "http://a.org/x?a=1&sid=2"), "http://a.org/x?a=1");
    }

    #[test]
    fn topic_words_match_anchor_or_address() {
        let topic = ["banjir".to_owned()];
        let url = PageUrl::parse("http://a.org/berita/banjir-bandang").unwrap();
        let other = PageUrl::parse("http://a.org/berita/2").unwrap();
        assert!(matches_topic(&topic, &url, ""));
        assert!(matches_topic(&topic, &other, "Banjir besar"));
        assert!(!matches_topic(&topic, &other, "cuaca"));
    }
}
