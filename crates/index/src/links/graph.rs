//! A graph of links in little memory, and PageRank on it. Deterministic: the same links in any order
//! give the same ranks to the last bit.

use std::collections::HashMap;

use telusur_model::UrlKey;

/// The probability that a reader follows a link instead of beginning elsewhere (Brin and Page, 1998).
const FOLLOWED: f64 = 0.85;
/// The iteration ends when all ranks together change by less than this. The order of pages no longer
/// changes long before.
const CHANGE_MIN: f64 = 1e-9;
/// 0.85^128 is below [`CHANGE_MIN`], so that more rounds could not change anything.
const ROUNDS_MAX: usize = 128;

/// Collects links between pages.
#[derive(Default)]
pub struct LinkGraphBuilder {
    ids: HashMap<UrlKey, u32>,
    pages: Vec<UrlKey>,
    links: Vec<(u32, u32)>,
}

impl LinkGraphBuilder {
    /// Notes a page, even if nothing links to it, and gives its number in the graph.
    pub fn page(&mut self, page: UrlKey) -> u32 {
        *self.ids.entry(page).or_insert_with(|| {
            self.pages.push(page);
            u32::try_from(self.pages.len() - 1).expect("fewer than 2^32 pages fit in memory")
        })
    }

    /// Notes a link. A link that is noted twice counts once, a link of a page to itself not at all.
    pub fn link(&mut self, from: UrlKey, to: UrlKey) {
        let link = (self.page(from), self.page(to));
        if link.0 != link.1 {
            self.links.push(link);
        }
    }

    /// The graph, in which a page's number is its place in the order of keys.
    pub fn build(self) -> LinkGraph {
        let Self { ids, pages, mut links } = self;
        drop(ids);
        // Numbers by key make the result independent of the order in which links were noted.
        let mut order: Vec<u32> = (0..).take(pages.len()).collect();
        order.sort_unstable_by_key(|&id| pages[index(id)]);
        let mut number_of = vec![0; pages.len()];
        for (number, &id) in (0..).zip(&order) {
            number_of[index(id)] = number;
        }
        for (from, to) in &mut links {
            *from = number_of[index(*from)];
            *to = number_of[index(*to)];
        }
        let pages = order.iter().map(|&id| pages[index(id)]).collect();
        LinkGraph { pages, links: Adjacency::of(order.len(), links) }
    }
}

/// Links between pages.
pub struct LinkGraph {
    pages: Vec<UrlKey>,
    links: Adjacency,
}

impl LinkGraph {
    /// The pages, by their numbers.
    pub fn pages(&self) -> &[UrlKey] {
        &self.pages
    }

    /// How many different links there are.
    pub fn link_count(&self) -> usize {
        self.links.count
    }

    /// The ranks of all pages, by their numbers. They add up to one.
    pub fn page_ranks(&self) -> Vec<f64> {
        self.links.page_ranks()
    }

    /// The ranks of the groups (sites) that pages belong to, by links from one group to another.
    /// `group_of` gives each page's group, counting from zero.
    pub fn group_ranks(&self, group_of: &[u32]) -> Vec<f64> {
        let groups = group_of.iter().max().map_or(0, |&last| index(last) + 1);
        let mut links = Vec::new();
        for (from, &group) in group_of.iter().enumerate() {
            let targets = self.links.targets(from).map(|to| (group, group_of[index(to)]));
            links.extend(targets.filter(|(from, to)| from != to));
        }
        Adjacency::of(groups, links).page_ranks()
    }
}

/// For each node the nodes that it links to: ascending numbers, of which only the differences are
/// kept, in seven bits per byte. Most links lead to neighbours and cost one or two bytes.
struct Adjacency {
    /// Where each node's list begins in `packed`, and one more for the end.
    starts: Vec<u64>,
    degrees: Vec<u32>,
    packed: Vec<u8>,
    count: usize,
}

impl Adjacency {
    fn of(nodes: usize, mut links: Vec<(u32, u32)>) -> Self {
        links.sort_unstable();
        links.dedup();
        let mut starts = Vec::with_capacity(nodes + 1);
        let mut degrees = vec![0; nodes];
        let mut packed = Vec::with_capacity(links.len() * 2);
        let mut rest = links.as_slice();
        for (node, degree) in (0_u32..).zip(&mut degrees) {
            starts.push(offset(packed.len()));
            let here = rest.iter().take_while(|(from, _)| *from == node).count();
            let mut before = 0;
            for &(_, to) in &rest[..here] {
                push_varint(&mut packed, to - before);
                before = to;
            }
            *degree = u32::try_from(here).expect("targets are different u32 numbers");
            rest = &rest[here..];
        }
        starts.push(offset(packed.len()));
        packed.shrink_to_fit();
        Self { starts, degrees, packed, count: links.len() }
    }

    fn targets(&self, node: usize) -> impl Iterator<Item = u32> + '_ {
        let at = |offset: u64| usize::try_from(offset).expect("an offset into memory");
        let mut list = &self.packed[at(self.starts[node])..at(self.starts[node + 1])];
        let mut target = 0;
        std::iter::from_fn(move || {
            target += take_varint(&mut list)?;
            Some(target)
        })
    }

    fn page_ranks(&self) -> Vec<f64> {
        let nodes = self.degrees.len();
        if nodes == 0 {
            return Vec::new();
        }
        let even = 1.0 / nodes as f64;
        let mut ranks = vec![even; nodes];
        let mut next = vec![0.0; nodes];
        for _ in 0..ROUNDS_MAX {
            // The rank of pages without links would vanish; a reader there jumps to any page.
            let lost: f64 = ranks
                .iter()
                .zip(&self.degrees)
                .filter(|(_, d)| **d == 0)
                .map(|(rank, _)| rank)
                .sum();
            next.fill((1.0 - FOLLOWED) * even + FOLLOWED * lost * even);
            for (node, &degree) in self.degrees.iter().enumerate() {
                let share = FOLLOWED * ranks[node] / f64::from(degree.max(1));
                for target in self.targets(node) {
                    next[index(target)] += share;
                }
            }
            let change: f64 = ranks.iter().zip(&next).map(|(a, b)| (a - b).abs()).sum();
            std::mem::swap(&mut ranks, &mut next);
            if change < CHANGE_MIN {
                break;
            }
        }
        ranks
    }
}

fn index(number: u32) -> usize {
    usize::try_from(number).expect("usize has at least 32 bits here")
}

fn offset(len: usize) -> u64 {
    u64::try_from(len).expect("usize has at most 64 bits")
}

fn push_varint(packed: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        packed.push(u8::try_from(value & 0x7F).expect("seven bits") | 0x80);
        value >>= 7;
    }
    packed.push(u8::try_from(value).expect("less than 0x80"));
}

fn take_varint(list: &mut &[u8]) -> Option<u32> {
    let mut value = 0;
    let mut shift = 0;
    loop {
        let (&byte, rest) = list.split_first()?;
        *list = rest;
        value |= u32::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(value);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn graph(links: &[(u8, u8)]) -> LinkGraph {
        let mut builder = LinkGraphBuilder::default();
        for &(from, to) in links {
            builder.link(UrlKey(from.into()), UrlKey(to.into()));
        }
        builder.build()
    }

    /// PageRank as it is defined: a dense matrix, multiplied until nothing changes.
    fn naive(graph: &LinkGraph) -> Vec<f64> {
        let n = graph.pages().len();
        let mut matrix = vec![vec![1.0 / n as f64; n]; n];
        for (from, row) in matrix.iter_mut().enumerate() {
            let targets: Vec<_> = graph.links.targets(from).collect();
            if targets.is_empty() {
                continue;
            }
            for (to, cell) in (0_u32..).zip(row.iter_mut()) {
                let linked = if targets.contains(&to) { 1.0 / targets.len() as f64 } else { 0.0 };
                *cell = linked;
            }
        }
        let mut ranks = vec![1.0 / n as f64; n];
        for _ in 0..200 {
            let followed =
                |to: usize| (0..n).map(|from| ranks[from] * matrix[from][to]).sum::<f64>();
            ranks = (0..n).map(|to| 0.15 / n as f64 + 0.85 * followed(to)).collect();
        }
        ranks
    }

    #[test]
    fn the_page_that_all_point_to_is_first() {
        let graph = graph(&[(1, 9), (2, 9), (3, 9), (9, 1), (2, 2)]);
        let ranks = graph.page_ranks();
        let best = ranks.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0;
        assert_eq!(graph.pages()[best], UrlKey(9));
        assert_eq!(graph.link_count(), 4);
    }

    #[test]
    fn sites_are_ranked_by_links_between_them() {
        // Pages 0..4 in two groups; the inner link 0-1 does not count.
        let graph = graph(&[(0, 1), (0, 2), (1, 2), (3, 2)]);
        let ranks = graph.group_ranks(&[0, 0, 1, 0]);
        assert_eq!(ranks.len(), 2);
        assert!(ranks[1] > ranks[0]);
    }

    #[test]
    fn an_empty_graph_has_no_ranks() {
        assert!(LinkGraphBuilder::default().build().page_ranks().is_empty());
    }

    proptest! {
        #[test]
        fn equals_the_definition(links in prop::collection::vec((0_u8..30, 0_u8..30), 1..150)) {
            let graph = graph(&links);
            for (fast, slow) in graph.page_ranks().iter().zip(naive(&graph)) {
                prop_assert!((fast - slow).abs() < 1e-8, "{fast} {slow}");
            }
        }

        #[test]
        fn the_order_of_links_makes_no_difference(
            links in prop::collection::vec((0_u8..40, 0_u8..40), 1..100)
        ) {
            let mut backward = links.clone();
            backward.reverse();
            let (one, other) = (graph(&links), graph(&backward));
            prop_assert_eq!(one.pages(), other.pages());
            prop_assert_eq!(one.page_ranks(), other.page_ranks());
        }

        #[test]
        fn numbers_survive_packing(values in prop::collection::vec(any::<u32>(), 0..50)) {
            let mut packed = Vec::new();
            values.iter().for_each(|&value| push_varint(&mut packed, value));
            let mut list = packed.as_slice();
            let read: Vec<u32> = std::iter::from_fn(|| take_varint(&mut list)).collect();
            prop_assert_eq!(read, values);
        }
    }
}
