//! [`Shape`]: how many pages each host has and which page links to which. Decided from the seed,
//! page by page, never written down.

use super::spec::{FakeWebSpec, PageCounts};
use crate::random::Dice;

/// One page of the web.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageAt {
    /// The host, by index.
    pub host: usize,
    /// The page's number on its host; the others are found from page 0.
    pub page: u64,
}

/// Where one link leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// To a page.
    Page(PageAt),
    /// To an address where nothing is.
    Dead(PageAt),
}

/// Who has how many pages, and links to which.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pages_of_host: Vec<u64>,
}

impl Shape {
    pub(super) fn new(spec: &FakeWebSpec) -> Self {
        let weights: Vec<u64> = match &spec.pages {
            PageCounts::Listed(counts) => {
                let last = counts.last().copied().unwrap_or(1);
                let counts = counts.iter().copied().chain(std::iter::repeat(last));
                let pages_of_host = counts.take(spec.hosts).map(|count| count.max(1)).collect();
                return Self { pages_of_host };
            }
            PageCounts::Even { .. } => vec![1; spec.hosts],
            // Fixed point, because floating point may round differently elsewhere.
            PageCounts::Zipf { .. } => {
                (1..=spec.hosts as u64).map(|rank| (1 << 40) / rank).collect()
            }
        };
        let (PageCounts::Even { total } | PageCounts::Zipf { total }) = spec.pages else {
            unreachable!("listed counts are returned above");
        };
        Self { pages_of_host: shares(total, &weights) }
    }

    pub(super) fn pages_of(&self, host: usize) -> u64 {
        self.pages_of_host.get(host).copied().unwrap_or(0)
    }

    pub(super) fn pages_total(&self) -> u64 {
        self.pages_of_host.iter().sum()
    }

    /// The links of a page: first those that make every page of the host reachable from page 0,
    /// then random ones.
    pub(super) fn links(&self, spec: &FakeWebSpec, from: PageAt, mut each: impl FnMut(Target)) {
        let arity = tree_arity(spec.links_per_page);
        let first_child = from.page.saturating_mul(arity).saturating_add(1);
        let end = first_child.saturating_add(arity).min(self.pages_of(from.host));
        let children = first_child..end.max(first_child);
        let tree_links = usize::try_from(children.end - children.start).unwrap_or(usize::MAX);
        for page in children {
            each(Target::Page(PageAt { host: from.host, page }));
        }
        let mut dice = Dice::of(&[spec.seed, LINKS, from.host as u64, from.page]);
        for _ in tree_links..spec.links_per_page {
            each(self.random_link(spec, from.host, &mut dice));
        }
    }

    fn random_link(&self, spec: &FakeWebSpec, own_host: usize, dice: &mut Dice) -> Target {
        let leaves = self.pages_of_host.len() > 1 && dice.chance(spec.other_host_share);
        let host = if leaves {
            let others = dice.index(self.pages_of_host.len() - 1);
            if others >= own_host { others + 1 } else { others }
        } else {
            own_host
        };
        let at = PageAt { host, page: dice.below(self.pages_of(host)) };
        if dice.chance(spec.faults.dead_links) { Target::Dead(at) } else { Target::Page(at) }
    }
}

/// Keeps the dice of links apart from other dice of the same page.
const LINKS: u64 = 1;

/// Children per page in the tree that makes all pages reachable. A fifth of the links, so that most
/// links of a page are random even near the root; at most 10, so that a host of 20,000 pages is
/// about as deep (5) as real sites are.
fn tree_arity(links_per_page: usize) -> u64 {
    (links_per_page as u64 / 5).clamp(1, 10)
}

/// Shares out `total` by weight, exactly, at least 1 each.
fn shares(total: u64, weights: &[u64]) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    let to_share = u128::from(total.saturating_sub(weights.len() as u64));
    let mut weight_so_far = 0;
    let mut shared_so_far = 0;
    let mut counts = Vec::with_capacity(weights.len());
    for &weight in weights {
        weight_so_far += u128::from(weight);
        let due = u64::try_from(to_share * weight_so_far / sum).expect("at most the total");
        counts.push(1 + due - shared_so_far);
        shared_so_far = due;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pages: &str, hosts: usize, expect: &[u64]) {
        let spec = format!("hosts={hosts},pages={pages}").parse().unwrap();
        assert_eq!(Shape::new(&spec).pages_of_host, expect);
    }

    #[test]
    fn page_counts() {
        check("9", 3, &[3, 3, 3]);
        check("10", 3, &[3, 3, 4]);
        check("2", 3, &[1, 1, 1]);
        check("list:100/5", 4, &[100, 5, 5, 5]);
        check("list:0", 1, &[1]);
    }

    #[test]
    fn zipf_falls_off_and_adds_up() {
        let spec = "hosts=50,pages=zipf:10000".parse().unwrap();
        let shape = Shape::new(&spec);
        assert_eq!(shape.pages_total(), 10_000);
        assert!(shape.pages_of_host.is_sorted_by(|a, b| a + 1 >= *b));
        assert!(shape.pages_of(0) > 10 * shape.pages_of(20));
    }

    #[test]
    fn every_page_has_exactly_its_links() {
        let spec = "hosts=3,pages=100,links=7".parse().unwrap();
        let shape = Shape::new(&spec);
        for page in 0..33 {
            let mut count = 0;
            shape.links(&spec, PageAt { host: 0, page }, |_| count += 1);
            assert_eq!(count, 7);
        }
    }

    #[test]
    fn the_share_of_links_to_other_hosts_is_kept() {
        let spec = "hosts=4,pages=4000,other-hosts=0.3".parse().unwrap();
        let shape = Shape::new(&spec);
        let (mut all, mut away) = (0, 0);
        for page in 500..1000 {
            shape.links(&spec, PageAt { host: 2, page }, |target| {
                let Target::Page(at) = target else { panic!("no dead links were asked for") };
                all += 1;
                away += usize::from(at.host != 2);
            });
        }
        assert!((all * 28 / 100..all * 32 / 100).contains(&away), "{away} of {all}");
    }
}
