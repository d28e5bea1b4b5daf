//! Budgets of hosts, sites and URL shapes: what makes endless sites end. They count what is asked
//! for. Pure: counters in, verdicts out; nothing here reads or writes the database.

use telusur_model::{HostRow, Limits, Reason, UrlShape};

/// Shapes of addresses that are counted for one host.
const SHAPES_PER_HOST_MAX: usize = 1000;

/// A budget that is used up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    Host { rule: String },
    Site { rule: String },
    Shape { shape: u32, rule: String },
}

impl Full {
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::Host { .. } => Reason::HostBudget,
            Self::Site { .. } => Reason::SiteBudget,
            Self::Shape { .. } => Reason::TrapSuspected,
        }
    }

    pub(crate) fn rule(&self) -> &str {
        match self {
            Self::Host { rule } | Self::Site { rule } | Self::Shape { rule, .. } => rule,
        }
    }
}

/// The budget that has no unit left for another URL, if any. `host`: its host's counters; `site`:
/// units in use of its site; `shape`: its shape, if it is one that can go on for ever.
pub(crate) fn full(
    limits: &Limits,
    host: Option<&HostRow>,
    site: u64,
    shape: Option<&UrlShape>,
) -> Option<Full> {
    let (host_max, site_max) = (limits.urls_per_host_max, limits.urls_per_site_max);
    if host.map_or(0, |row| row.admitted) >= host_max {
        return Some(Full::Host { rule: format!("{host_max} URLs per host") });
    }
    if site >= site_max {
        return Some(Full::Site { rule: format!("{site_max} URLs per site") });
    }
    let shape = shape?;
    let taken = host.and_then(|row| row.templates.get(&shape.hash)).copied().unwrap_or(0);
    (taken >= shape.budget).then(|| Full::Shape {
        shape: shape.hash,
        rule: format!("more than {} addresses like {}", shape.budget, shape.text),
    })
}

/// Takes a unit for a URL.
pub(crate) fn charge(host: &mut HostRow, site: &mut u64, shape: Option<&UrlShape>) {
    host.admitted += 1;
    *site += 1;
    if let Some(shape) = shape
        && (host.templates.len() < SHAPES_PER_HOST_MAX || host.templates.contains_key(&shape.hash))
    {
        *host.templates.entry(shape.hash).or_default() += 1;
    }
}

/// Gives the unit of a URL back that was not asked for after all.
pub(crate) fn give_back(host: &mut HostRow, site: &mut u64, shape: Option<&UrlShape>) {
    host.admitted = host.admitted.saturating_sub(1);
    *site = site.saturating_sub(1);
    if let Some(units) = shape.and_then(|shape| host.templates.get_mut(&shape.hash)) {
        *units = units.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use telusur_model::{Host, PageUrl};

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let limits = Limits { urls_per_host_max: 2, urls_per_site_max: 3, ..Limits::default() };
        let shape = UrlShape::of(&PageUrl::parse("http://a.org/cal?month=1").unwrap()).unwrap();
        let shape = UrlShape { budget: 1, ..shape };
        let (mut host, mut site) = (HostRow::new(Host::new("a.org")), 0);
        let reason = |host: &HostRow, site, shape: Option<&UrlShape>| {
            full(&limits, Some(host), site, shape).map(|full| full.reason())
        };
        charge(&mut host, &mut site, Some(&shape));
        assert_eq!(reason(&host, site, Some(&shape)), Some(Reason::TrapSuspected));
        assert_eq!(reason(&host, site, None), None);
        charge(&mut host, &mut site, None);
        assert_eq!(reason(&host, site, None), Some(Reason::HostBudget));
        give_back(&mut host, &mut site, Some(&shape));
        assert_eq!(reason(&host, site, Some(&shape)), None);
        assert_eq!(reason(&host, 3, None), Some(Reason::SiteBudget));
        for _ in 0..3 {
            give_back(&mut host, &mut site, Some(&shape));
        }
        assert_eq!((host.admitted, site), (0, 0));
    }
}
