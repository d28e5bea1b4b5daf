//! The cost of decisions, counted in queues looked at: it must not grow with the number of hosts.

use std::net::{IpAddr, Ipv4Addr};

use telusur_model::{Host, Moment, PageUrl, Politeness, Visit};

use super::sim::{Sim, Web, chain_link, own_address, url};

struct Chains {
    one_address: bool,
    pages: u64,
}

impl Web for Chains {
    fn address(&self, host: &Host) -> Option<IpAddr> {
        let shared = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
        Some(if self.one_address { shared } else { own_address(host) })
    }

    fn links(&mut self, visit: &Visit) -> Vec<PageUrl> {
        let links = chain_link(visit, 1);
        if links[0].path()[1..].parse::<u64>().unwrap() < self.pages { links } else { Vec::new() }
    }
}

/// Queues looked at per event, over a whole crawl.
fn effort_per_event(hosts: u64, name: impl Fn(u64) -> String, web: Chains, delay_ms: u64) -> f64 {
    let pages = hosts * web.pages;
    let mut sim = Sim::new(web);
    sim.keep_log = false;
    sim.start(1, Politeness { delay_ms, workers: 100, ..Politeness::default() }, None);
    for host in 0..hosts {
        sim.seed(1, url(&name(host), 0));
    }
    sim.run_until(Moment(u64::MAX));
    assert_eq!(sim.requests, pages);
    assert_eq!(sim.ends.len(), 1);
    sim.frontier.effort as f64 / (hosts + sim.events_told) as f64
}

#[test]
fn ten_thousand_hosts() {
    let name = |host| format!("h{host}.example");
    let few = effort_per_event(100, name, Chains { one_address: false, pages: 2 }, 0);
    let many = effort_per_event(10_000, name, Chains { one_address: false, pages: 2 }, 0);
    assert!(many < 4.0 && many < few * 1.2, "{few} for few hosts, {many} for many");
}

#[test]
fn thousands_of_sites_that_wait() {
    let name = |host| format!("h{host}.com");
    let many = effort_per_event(5_000, name, Chains { one_address: false, pages: 3 }, 1000);
    assert!(many < 5.0, "{many}");
}

#[test]
fn thousands_of_hosts_on_one_address() {
    for name in [|host| format!("h{host}.example"), |host| format!("h{host}.com")] {
        let many = effort_per_event(2_000, name, Chains { one_address: true, pages: 2 }, 10);
        assert!(many < 5.0, "{many}");
    }
}
