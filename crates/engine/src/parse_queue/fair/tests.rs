use proptest::prelude::*;

use super::*;

const COSTLY_US: u64 = 50_000;

fn owner(crawl: u32, site: &str) -> Owner {
    Owner { crawl: CrawlNo(crawl), site: Site::of_host(site) }
}

fn small() -> Weight {
    Weight { parsed_bytes: Some(1_000) }
}

/// One thread that parses, and what the pages of each site cost.
struct Bench {
    queue: FairQueue<&'static str>,
    /// Time used by each owner.
    used_us: BTreeMap<(u32, &'static str), u64>,
    order: Vec<&'static str>,
}

impl Bench {
    fn new() -> Self {
        Self { queue: FairQueue::new(2, COSTLY_US), used_us: BTreeMap::new(), order: Vec::new() }
    }

    fn push(&mut self, crawl: u32, site: &'static str, pages: usize) {
        for _ in 0..pages {
            self.queue.push(&owner(crawl, site), site, small());
        }
    }

    /// Parses one batch; false if there is none.
    fn step(&mut self, cost_us: impl Fn(&str) -> u64) -> bool {
        let batch = self.queue.take();
        let any = !batch.is_empty();
        for turn in batch {
            let (site, turn) = turn.split();
            *self.used_us.entry((turn.owner.crawl.0, site)).or_default() += cost_us(site);
            self.order.push(site);
            self.queue.ended(&turn, Some(cost_us(site)));
        }
        any
    }

    fn run(&mut self, until_us: u64, cost_us: impl Fn(&str) -> u64) {
        while self.used_us.values().sum::<u64>() < until_us && self.step(&cost_us) {}
    }
}

#[test]
fn equal_sites_take_turns() {
    let mut bench = Bench::new();
    for site in ["a.org", "b.org", "c.org"] {
        bench.push(1, site, 4);
    }
    while bench.step(|_| 1_000) {}
    let expected = ["a.org", "b.org", "c.org"].repeat(4);
    assert_eq!(bench.order, expected);
}

#[test]
fn a_costly_site_gets_its_share_of_time_and_no_more() {
    let mut bench = Bench::new();
    bench.push(1, "bad.org", 1_000);
    bench.push(1, "good.org", 10_000);
    bench.run(20_000_000, |site| if site == "bad.org" { 2_000_000 } else { 1_000 });
    let good = bench.used_us[&(1, "good.org")];
    assert!(good >= 8_000_000, "{:?}", bench.used_us);
}

#[test]
fn a_crawl_of_many_costly_sites_does_not_starve_another_crawl() {
    let mut bench = Bench::new();
    for site in ["a.org", "b.org", "c.org", "d.org", "e.org", "f.org", "g.org", "h.org"] {
        bench.push(1, site, 100);
    }
    bench.push(2, "good.org", 10_000);
    bench.run(20_000_000, |site| if site == "good.org" { 1_000 } else { 200_000 });
    let good = bench.used_us[&(2, "good.org")];
    assert!(good >= 8_000_000, "{:?}", bench.used_us);
}

#[test]
fn who_was_idle_is_owed_nothing() {
    let mut bench = Bench::new();
    bench.push(1, "late.org", 1);
    bench.push(1, "early.org", 5_000);
    bench.run(1_000_000, |_| 1_000);
    bench.push(1, "late.org", 1_000);
    bench.order.clear();
    bench.run(1_100_000, |_| 1_000);
    let late = bench.order.iter().filter(|site| **site == "late.org").count();
    assert!((40..=60).contains(&late), "{late} of {}", bench.order.len());
}

#[test]
fn a_costly_page_and_a_strangers_large_one_are_parsed_alone() {
    let mut queue = FairQueue::new(2, COSTLY_US);
    queue.push(&owner(1, "a.org"), "a1", small());
    let first = queue.take();
    assert_eq!(first.len(), 1);
    let (_, turn) = first.into_iter().next().unwrap().split();
    queue.ended(&turn, Some(COSTLY_US));
    queue.push(&owner(1, "big.org"), "big", Weight { parsed_bytes: Some(1 << 20) });
    queue.push(&owner(1, "a.org"), "a2", small());
    queue.push(&owner(1, "a.org"), "a3", small());
    queue.push(&owner(1, "b.org"), "b1", Weight { parsed_bytes: None });
    queue.push(&owner(1, "b.org"), "b2", Weight { parsed_bytes: None });
    let sizes = |queue: &mut FairQueue<_>| {
        let batch = queue.take();
        batch.iter().map(|turn| turn.work).collect::<Vec<_>>()
    };
    assert_eq!(sizes(&mut queue), ["big"]);
    // A thread is left for the others: no second costly page is begun.
    assert_eq!(sizes(&mut queue), ["b1", "b2"]);
    assert!(queue.take().is_empty());
    queue.ended(&turn_of("big.org"), Some(1_000));
    assert_eq!(sizes(&mut queue), ["a2"]);
    // Nor are two of one site.
    assert!(queue.take().is_empty());
}

fn turn_of(site: &str) -> Turn<()> {
    Turn { work: (), owner: owner(1, site), is_costly: true, charged_us: STRANGER_US }
}

#[test]
fn batches_are_small() {
    let mut bench = Bench::new();
    bench.push(1, "a.org", 1);
    bench.step(|_| 1_000);
    bench.push(1, "a.org", 100);
    // Ten pages of a millisecond.
    assert_eq!(bench.queue.take().len(), 10);
    let large = Weight { parsed_bytes: Some(100 << 10) };
    let mut queue = FairQueue::new(2, COSTLY_US);
    queue.push(&owner(1, "a.org"), 0, large);
    let (_, turn) = queue.take().remove(0).split();
    queue.ended(&turn, Some(1_000));
    for number in 1..10 {
        queue.push(&owner(1, "a.org"), number, large);
    }
    assert_eq!(queue.take().len(), 2);
}

#[test]
fn a_dropped_crawl_leaves_nothing_behind() {
    let mut bench = Bench::new();
    bench.push(1, "a.org", 5);
    bench.push(2, "a.org", 3);
    let taken = bench.queue.take();
    assert_eq!(bench.queue.forget(CrawlNo(1)).len() + taken.len(), 5);
    for turn in taken {
        bench.queue.ended(&turn.split().1, Some(1));
    }
    while bench.step(|_| 10) {}
    assert_eq!(bench.order.len(), 3);
}

#[test]
fn only_what_is_asked_for_is_removed() {
    let mut queue = FairQueue::new(1, COSTLY_US);
    for number in 0..6 {
        queue.push(&owner(1, "a.org"), number, Weight { parsed_bytes: None });
    }
    assert_eq!(queue.remove(CrawlNo(1), |number| number % 2 == 0), [0, 2, 4]);
    assert_eq!(queue.take().into_iter().map(|turn| turn.work).collect::<Vec<_>>(), [1, 3, 5]);
    assert!(queue.remove(CrawlNo(2), |_| true).is_empty());
}

#[test]
fn a_crawl_of_many_sites_forgets_most_of_them() {
    let mut queue = FairQueue::new(2, COSTLY_US);
    for number in 0..20_000 {
        queue.push(&owner(1, &format!("s{number}.org")), number, small());
        for turn in queue.take() {
            queue.ended(&turn.split().1, Some(1_000));
        }
    }
    assert!(queue.crawls[&CrawlNo(1)].sites.len() <= 2 * SITES_KEPT_MAX);
}

#[derive(Clone, Debug)]
enum Op {
    Push { crawl: u32, site: u8, bytes: Option<u64> },
    Take,
    End { cost_us: u64 },
    Drop { crawl: u32 },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (1..4_u32, 0..4_u8, prop::option::of(0..2_000_000_u64))
            .prop_map(|(crawl, site, bytes)| Op::Push { crawl, site, bytes }),
        2 => Just(Op::Take),
        2 => (0..3_000_000_u64).prop_map(|cost_us| Op::End { cost_us }),
        1 => (1..4_u32).prop_map(|crawl| Op::Drop { crawl }),
    ]
}

proptest! {
    /// Whatever happens, each piece of work comes out once, those of a site in order, and nothing is
    /// left behind.
    #[test]
    fn nothing_is_lost_or_doubled(ops in prop::collection::vec(op(), 0..200)) {
        let mut queue = FairQueue::new(2, COSTLY_US);
        let (mut pushed, mut seen, mut under_way) = (0_u64, BTreeSet::new(), VecDeque::new());
        let mut last = BTreeMap::new();
        for op in ops {
            match op {
                Op::Push { crawl, site, bytes } => {
                    let owner = owner(crawl, &format!("s{site}.org"));
                    queue.push(&owner, pushed, Weight { parsed_bytes: bytes });
                    pushed += 1;
                }
                Op::Take => {
                    for turn in queue.take() {
                        let (number, turn) = turn.split();
                        prop_assert!(seen.insert(number));
                        let before = last.insert(turn.owner.clone(), number);
                        prop_assert!(before.is_none_or(|before| before < number));
                        under_way.push_back(turn);
                    }
                }
                Op::End { cost_us } => {
                    if let Some(turn) = under_way.pop_front() {
                        queue.ended(&turn, Some(cost_us));
                    }
                }
                Op::Drop { crawl } => {
                    for number in queue.forget(CrawlNo(crawl)) {
                        prop_assert!(seen.insert(number));
                    }
                }
            }
        }
        loop {
            while let Some(turn) = under_way.pop_front() {
                queue.ended(&turn, None);
            }
            for turn in queue.take() {
                let (number, turn) = turn.split();
                prop_assert!(seen.insert(number));
                under_way.push_back(turn);
            }
            if under_way.is_empty() {
                break;
            }
        }
        prop_assert_eq!(seen.len() as u64, pushed);
        prop_assert_eq!(queue.costly_under_way, 0);
    }
}
