//! [`ExcludedStart`]: a crawl that its own exclusions keep from starting. Better refused than run: it
//! would end at once with nothing, or wait for ids that it never asks. A list that would take long to match is
//! not looked at to its end: such a crawl runs, and its summary says what was excluded.

use crate::{PageUrl, Scope, Seeds, Walk};

/// A start that an exclusion keeps from being asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the crawl excludes its own start: {start} matches the exclusion {pattern:?}")]
pub struct ExcludedStart {
    /// The start URL or template.
    pub start: String,
    /// The exclusion.
    pub pattern: String,
}

impl Scope {
    /// The first start, if exclusions keep every start of a crawl from being asked for. `None` also if it
    /// would take too long to find out.
    pub fn excluded_start(&self, seeds: &Seeds, sitemaps: &[PageUrl]) -> Option<ExcludedStart> {
        let mut bytes_left = self.match_bytes_max();
        let mut exclusion = |url: &PageUrl| {
            bytes_left = bytes_left.checked_sub(url.as_str().len())?;
            self.exclusion(url).map(str::to_owned)
        };
        let mut first = None;
        for url in seeds.urls().iter().chain(sitemaps) {
            let pattern = exclusion(url)?;
            first.get_or_insert_with(|| ExcludedStart { start: url.to_string(), pattern });
        }
        for walk in seeds.walks() {
            for page in sample(walk) {
                let pattern = exclusion(&page)?;
                let start = || walk.rules().template.to_string();
                first.get_or_insert_with(|| ExcludedStart { start: start(), pattern });
            }
        }
        first
    }
}

/// Some pages of a walk: to leave out single ids is no mistake.
fn sample(walk: &Walk) -> [PageUrl; 3] {
    let rules = walk.rules();
    let first = rules.start.or(rules.min).or(rules.max).unwrap_or(0);
    [first, first.wrapping_add(1), 987_654].map(|id| rules.template.url_of(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, LinearSeeds, Resume, ScopeRules, Template, WalkRules};

    #[track_caller]
    fn check(seeds: &Seeds, exclude: &str, expect: Option<&str>) {
        let rules = ScopeRules { exclude: vec![exclude.to_owned()], ..ScopeRules::default() };
        let scope = Scope::new(&rules, &[], &Limits::default()).unwrap();
        let excluded = scope.excluded_start(seeds, &[]);
        assert_eq!(excluded.map(|excluded| excluded.start).as_deref(), expect);
    }

    #[test]
    fn a_start_that_is_excluded_is_named() {
        let page = |text: &str| PageUrl::parse(text).unwrap();
        let one = Seeds::Links(vec![page("http://a.org/x.pdf")]);
        check(&one, r"\.pdf$", Some("http://a.org/x.pdf"));
        check(&one, r"\.zip$", None);
        check(&Seeds::Links(vec![page("http://a.org/x.pdf"), page("http://a.org/")]), "pdf", None);
        check(&Seeds::Links(Vec::new()), "pdf", None);
    }

    #[test]
    fn starts_that_take_long_to_match_are_not_all_tried() {
        let page = |number: u32| PageUrl::parse(&format!("http://a.org/{number}")).unwrap();
        let many = Seeds::Links((0..10_000).map(page).collect());
        check(&many, "http", Some("http://a.org/0"));
        check(&many, "http|[!-~]{500}a", None);
        check(&Seeds::Links(vec![page(0)]), "http|[!-~]{500}a", Some("http://a.org/0"));
    }

    #[test]
    fn single_ids_may_be_excluded() {
        let rules = WalkRules {
            min: Some(1),
            max: Some(9),
            ..WalkRules::new(Template::parse("http://a.org/item/{id}").unwrap())
        };
        let walks = vec![Walk::new(rules).unwrap()];
        let seeds = Seeds::Linear(LinearSeeds { walks, resume: Resume::default(), follow: false });
        check(&seeds, "/item/1$", None);
        check(&seeds, "/item/", Some("http://a.org/item/{id}"));
    }
}
