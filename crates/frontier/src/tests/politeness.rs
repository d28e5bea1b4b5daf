//! An hour of a thousand hosts: no host is asked too often, and no time is lost.

use std::net::{IpAddr, Ipv4Addr};

use telusur_model::{Host, Moment, PageUrl, Politeness, Visit};

use super::sim::{Rng, Sim, Web, chain_link, own_address, url};

const DELAY_MS: u64 = 1000;

/// `hN.example`: endless chains of pages with random latencies. The first `sharing` hosts live on
/// a quarter as many addresses.
struct ManyHosts {
    sharing: u64,
    connect_ms_max: u64,
    response_ms_max: u64,
    /// Hosts from this number on have few pages.
    endless_below: u64,
    pages_of_others: u64,
}

fn number(host: &str) -> u64 {
    host[1..].split('.').next().unwrap().parse().unwrap()
}

impl Web for ManyHosts {
    fn address(&self, host: &Host) -> Option<IpAddr> {
        let number = number(host.as_str());
        if number < self.sharing {
            let low = u8::try_from(number / 4 % 256).unwrap();
            return Some(IpAddr::V4(Ipv4Addr::new(
                10,
                0,
                u8::try_from(number / 1024).unwrap(),
                low,
            )));
        }
        Some(own_address(host))
    }

    fn connect_ms(&mut self, _visit: &Visit, rng: &mut Rng) -> u64 {
        rng.below(self.connect_ms_max)
    }

    fn response_ms(&mut self, _visit: &Visit, rng: &mut Rng) -> u64 {
        rng.below(self.response_ms_max)
    }

    fn links(&mut self, visit: &Visit) -> Vec<PageUrl> {
        let links = chain_link(visit, 1);
        let page: u64 = visit.url.path()[1..].parse().unwrap();
        let is_over =
            number(visit.url.host_str()) >= self.endless_below && page + 1 >= self.pages_of_others;
        if is_over { Vec::new() } else { links }
    }
}

fn sim(hosts: u64, web: ManyHosts) -> Sim<ManyHosts> {
    let mut sim = Sim::new(web);
    sim.spacing_ms = DELAY_MS;
    sim.keep_log = false;
    let politeness =
        Politeness { delay_ms: DELAY_MS, per_host: 3, workers: 4000, ..Politeness::default() };
    sim.start(1, politeness, None);
    for host in 0..hosts {
        sim.seed(1, url(&format!("h{host}.example"), 0));
    }
    sim
}

#[test]
fn nobody_is_asked_too_often_in_an_hour_with_restarts() {
    // A few hosts are busy for the whole hour, the others for their first pages only.
    let web = ManyHosts {
        sharing: 400,
        connect_ms_max: 60,
        response_ms_max: 4000,
        endless_below: 8,
        pages_of_others: 12,
    };
    let mut sim = sim(1000, web);
    let mut requests_before = 0;
    for (restart_at, requests_min) in [(6_000, 2_000), (1_800_000, 5_000), (3_600_000, 1_500)] {
        sim.run_until(Moment(restart_at));
        let requests = sim.requests - requests_before;
        assert!(requests > requests_min, "{requests} before {restart_at} ms");
        requests_before = sim.requests;
        sim.restart(DELAY_MS);
    }
}

#[test]
fn a_restart_without_the_quiet_time_would_ask_too_often() {
    // Shows that the check above can fail.
    let result = std::panic::catch_unwind(|| {
        let web = ManyHosts {
            sharing: 0,
            connect_ms_max: 60,
            response_ms_max: 100,
            endless_below: 50,
            pages_of_others: 0,
        };
        let mut sim = sim(50, web);
        sim.run_until(Moment(10_000));
        sim.restart(0);
        sim.run_until(Moment(20_000));
    });
    assert!(result.is_err());
}

/// A thousand hosts on addresses of their own, busy for ever, each done before its next turn.
fn busy_hosts() -> ManyHosts {
    ManyHosts {
        sharing: 0,
        connect_ms_max: 0,
        response_ms_max: 800,
        endless_below: 1000,
        pages_of_others: 0,
    }
}

#[test]
fn no_time_is_lost() {
    let seconds = 30;
    let mut sim = sim(1000, busy_hosts());
    sim.run_until(Moment(seconds * 1000));
    let possible = 1000 * seconds * 1000 / DELAY_MS;
    assert!(sim.requests * 100 >= possible * 99, "{} of {possible}", sim.requests);
}

/// The whole hour with every host busy all the time: 3.6 million visits. Run it with
/// `cargo test --release -p telusur-frontier -- --ignored`.
#[test]
#[ignore = "minutes without optimisation"]
fn a_thousand_busy_hosts_for_an_hour_with_a_restart() {
    let mut sim = sim(1000, busy_hosts());
    sim.run_until(Moment(1_800_000));
    sim.restart(DELAY_MS);
    sim.run_until(Moment(3_600_000));
    let possible = 1000 * 3_600;
    println!("{} of {possible} requests", sim.requests);
    assert!(sim.requests * 100 >= possible * 99, "{} of {possible}", sim.requests);
}
