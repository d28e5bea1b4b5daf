//! [`Learned`]: what a running crawl knows against links that its scope would admit. Judged when a
//! link is found, so that links that will never be asked for use up no budget.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use telusur_fetch::robots::Rules;
use telusur_model::{Door, Host, LinkRules, PageUrl, Reason};

use crate::trap_watch::TrapWatch;

/// Shared by the visits of a crawl, and kept when its settings change.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// The rules of robots.txt by origin. Read for every new link and written once per origin. Those
    /// that are not here are judged when their visit is handed out.
    rules: RwLock<HashMap<(Host, Door), Arc<Rules>>>,
    /// Endless pages that say the same.
    pub(crate) traps: TrapWatch,
}

impl Learned {
    /// The rules of an origin are known; `None`: not any more.
    pub(crate) fn set_rules(&self, host: Host, door: Door, rules: Option<Arc<Rules>>) {
        let mut known = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        match rules {
            Some(rules) => known.insert((host, door), rules),
            None => known.remove(&(host, door)),
        };
    }
}

impl Learned {
    fn forbidding_rule(&self, link: &PageUrl) -> Option<String> {
        let known = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        forbidding_rule(known.get(&(link.host(), Door::of(link)))?, link)
    }
}

impl LinkRules for Learned {
    fn refusal(&self, link: &PageUrl) -> Option<(Reason, String)> {
        if let Some(rule) = self.forbidding_rule(link) {
            return Some((Reason::RobotsDisallowed, rule));
        }
        Some((Reason::TrapSuspected, self.traps.rule_for(link)?))
    }
}

/// The line of robots.txt that forbids a URL, in words for the user.
pub(crate) fn forbidding_rule(rules: &Rules, url: &PageUrl) -> Option<String> {
    let verdict = rules.verdict(url);
    let rule = verdict.rule.filter(|_| !verdict.allowed)?;
    Some(format!("robots.txt line {}: {rule}", rule.line()))
}
