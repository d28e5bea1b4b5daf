//! How events are written down. A change here would be misread by a program that has events of the
//! older kind in a log: it takes a new version number.

use std::sync::Arc;

use telusur_ledger::{
    Admission, CrawlChange, Event, FoundLink, GiveUp, HostNote, IdEnded, IdEnding, KeptRun,
    KeptState, LinkSource, LinksFound, LostPageRetry, PageLost, StoreError, TrapMark, VisitEnded,
    VisitOutcome, decode_events, encode_events,
};
use telusur_model::{
    CrawlNo, CrawlState, Host, IdState, Lane, OriginRow, PageUrl, Purpose, QueuePlace, Reason,
    RobotsAnswer, Site, Timestamp, UrlKey, Via, Visit,
};

const CRAWL: CrawlNo = CrawlNo(3);

fn url() -> PageUrl {
    PageUrl::parse("http://a.test/7").unwrap()
}

fn visit(place: QueuePlace) -> Visit {
    Visit {
        crawl: CRAWL,
        purpose: Purpose::Page,
        url: url(),
        key: UrlKey(5),
        place,
        depth: 1,
        hops_outside: 0,
        via: Via::Link,
        found_at: Timestamp(1),
        referrer: Some("http://a.test/".to_owned()),
        redirects: Vec::new(),
        lastmod: None,
        attempt: 1,
    }
}

/// One event of each kind that holds no page, whose record has a format of its own.
fn samples() -> Vec<Event> {
    let (site, at) = (Site::of_host("a.test"), Timestamp(9));
    let host = Host::new("a.test");
    let queued = QueuePlace { lane: Lane::Plain, order: 1, seq: 4 };
    let source = LinkSource::of_visit(&visit(queued), at);
    let link = |admission| FoundLink {
        url: url(),
        key: UrlKey(5),
        hot: false,
        via: Via::Link,
        purpose: Purpose::Page,
        lastmod: None,
        is_outside: false,
        admission,
    };
    let refused = Admission::Refused { reason: Reason::OutOfScope, rule: "scope host".to_owned() };
    let links = vec![
        link(Admission::Admitted { is_included: true }),
        link(Admission::Nofollow),
        link(refused),
    ];
    let outcomes = [
        VisitOutcome::Sitemap { entries: 2, dropped: 1, trouble: None },
        VisitOutcome::Redirected { status: 301, to: "http://a.test/8".to_owned() },
        VisitOutcome::Failed { reason: Reason::TimeoutBody, detail: "late".to_owned() },
        VisitOutcome::Skipped { reason: Reason::Excluded, rule: "x".to_owned() },
        VisitOutcome::Later {
            due: Timestamp(99),
            counted: true,
            reason: Reason::HttpError,
            status: Some(503),
            detail: String::new(),
        },
    ];
    let ended = outcomes.map(|how| {
        let visit = visit(queued);
        let ended = VisitEnded { visit, how, at, requested_at: Some(at), other_schemes: 1 };
        Event::VisitEnded(Box::new(ended))
    });
    let hole = KeptState { state: IdState::Hole, why: Some(Reason::TimeoutBody) };
    let id_ended = IdEnded {
        visit: visit(QueuePlace::of_id(0, 7)),
        id: IdEnding { walk: 0, position: 7, kept: hole },
        page: None,
        status: Some(500),
        requested_at: None,
        other_schemes: 0,
    };
    let origin = OriginRow {
        origin: "http://a.test".to_owned(),
        asked_at: at,
        redirects: Vec::new(),
        robots: RobotsAnswer::Missing { why: "status 404".to_owned() },
        not_found: None,
    };
    let give_up = GiveUp {
        crawl: CRAWL,
        host: host.clone(),
        reason: Reason::RetryAfter,
        detail: "an hour".to_owned(),
        at,
    };
    let change = CrawlChange::State(CrawlState::Running, at);
    let run = KeptRun { first: 1, last: 4, state: hole };
    let mark = TrapMark { shape: 11, run: 60, rule: Some("alike".to_owned()) };
    let mut events = vec![
        Event::CrawlChanged { crawl: CRAWL, change },
        Event::CrawlRan { crawl: CRAWL, active_ms: 250 },
        Event::BudgetsRaised { crawl: CRAWL },
        Event::LinksFound(Box::new(LinksFound {
            site: site.clone(),
            source: Arc::new(source),
            links,
        })),
        Event::IdEnded(Box::new(id_ended)),
        Event::IdsMarked { crawl: CRAWL, site: site.clone(), walk: 0, run },
        Event::OriginLearned(Box::new(origin)),
        Event::HostNoted { crawl: CRAWL, host: host.clone(), note: HostNote::Requested(at) },
        Event::HostNoted { crawl: CRAWL, host: host.clone(), note: HostNote::LastRequest(at) },
        Event::HostNoted { crawl: CRAWL, host, note: HostNote::Delay(Some(700)) },
        Event::HostGivenUp(Box::new(give_up)),
        Event::AskedAgain(Box::new(visit(queued))),
        Event::TrapNoted { crawl: CRAWL, site, mark },
    ];
    events.extend(ended);
    let retries = [
        LostPageRetry::Queue(Box::new(visit(queued))),
        LostPageRetry::Id { walk: 0, position: 7 },
        LostPageRetry::Never,
    ];
    events.extend(retries.map(|again| {
        let lost = PageLost { crawl: CRAWL, url: url(), key: UrlKey(5), again };
        Event::PageLost(Box::new(lost))
    }));
    events
}

#[test]
fn events_are_written_as_ever() {
    let written = encode_events(&samples());
    assert_eq!(decode_events(&written).unwrap(), samples());
    let digest = blake3::hash(&written).to_hex();
    assert_eq!(&digest[..16], "0903d15512b6f1a6", "{} bytes: raise the version", written.len());
}

#[test]
fn events_of_another_version_are_refused_by_number() {
    let mut written = encode_events(&samples());
    written[0] += 1;
    let refused = decode_events(&written);
    assert!(matches!(&refused, Err(StoreError::Unusable(why)) if why.contains("version 2")));
    assert!(matches!(decode_events(&[]), Err(StoreError::Damaged(_))));
    written.truncate(40);
    written[0] -= 1;
    assert!(matches!(decode_events(&written), Err(StoreError::Damaged(_))));
}
