//! `telusur politeness HOST`: what was asked of a host, when, at what gaps, and by which rules.

use std::io::{self, Write};

use telusur_engine::control::ReportPoliteness;
use telusur_engine::json::{HostHistoryView, PolitenessView, RobotsFileView};
use telusur_model::{PageUrl, RobotsRules};

use super::{Outcome, Session};
use crate::json::write_json_line;
use crate::message::{Code, Message, shown};
use crate::units::{show_count, write_duration_ms};

/// Rules of one robots.txt that are listed; of the others the number is given.
const RULES_SHOWN_MAX: usize = 40;

pub(super) fn politeness(session: &Session, host: &str, output: &mut dyn Write) -> Outcome {
    let host = host_of(host)?;
    let report = session.ask(&ReportPoliteness { host: host.clone() })?;
    if session.global.json {
        write_json_line(output, &report)?;
        return Ok(0);
    }
    if report.origins.is_empty() && report.crawls.is_empty() {
        let what = format!("{} was never asked for anything", shown(&host));
        return Err(Message::new(Code::NoSuchHost, what)
            .hint("List the hosts of a crawl with: telusur show last")
            .into());
    }
    write_report(&report, output)?;
    Ok(0)
}

/// The host that the user means: a name, an address, or the host of a URL.
fn host_of(text: &str) -> Result<String, Message> {
    let url = if text.contains("://") { text.to_owned() } else { format!("http://{text}/") };
    PageUrl::parse(&url).map(|url| url.host().to_string()).map_err(|_| {
        Message::new(Code::NoSuchHost, format!("\"{}\" is no host", shown(text)))
            .hint("Write it like: telusur politeness docs.example.org")
    })
}

fn write_report(report: &PolitenessView, output: &mut dyn Write) -> io::Result<()> {
    writeln!(output, "{}", shown(&report.host))?;
    for origin in &report.origins {
        write_robots(origin, output)?;
    }
    for crawl in &report.crawls {
        write_manners(crawl, output)?;
    }
    Ok(())
}

fn write_robots(robots: &RobotsFileView, output: &mut dyn Write) -> io::Result<()> {
    let mut row = |name: &str, value: String| writeln!(output, "  {name:<14}{}", shown(&value));
    row("robots.txt", format!("{}, asked {}", robots.origin, robots.asked_at))?;
    for hop in &robots.redirects {
        row("", format!("redirected from {hop}"))?;
    }
    row("", robots.said.clone())?;
    for rule in robots.rules.iter().take(RULES_SHOWN_MAX) {
        row("", rule.clone())?;
    }
    if robots.rules.len() > RULES_SHOWN_MAX {
        row("", format!("and {} more rules", robots.rules.len() - RULES_SHOWN_MAX))?;
    }
    if let Some(delay_ms) = robots.crawl_delay_ms {
        row("", format!("Crawl-delay: {}", write_duration_ms(delay_ms)))?;
    }
    for signal in &robots.content_signals {
        row("", format!("Content-Signal: {signal}"))?;
    }
    for sitemap in &robots.sitemaps {
        row("", format!("Sitemap: {sitemap}"))?;
    }
    Ok(())
}

fn write_manners(manners: &HostHistoryView, output: &mut dyn Write) -> io::Result<()> {
    let mut row = |name: &str, value: String| writeln!(output, "  {name:<14}{}", shown(&value));
    row(&manners.alias, format!("as {}", manners.user_agent))?;
    let robots = match RobotsRules::from_word(&manners.robots) {
        Some(RobotsRules::Obey) => "robots.txt obeyed",
        Some(RobotsRules::UnreachableAllows) => "robots.txt obeyed where it can be read",
        Some(RobotsRules::Ignore) => "robots.txt not read",
        None => &manners.robots,
    };
    let learned = match manners.learned_delay_ms {
        Some(ms) => format!(", {} for this host", write_duration_ms(ms)),
        None => String::new(),
    };
    row("manners", format!("delay {}{learned}, {robots}", write_duration_ms(manners.delay_ms)))?;
    row("requests", requests(manners))?;
    row("gaps", gaps(manners))?;
    row(
        "answers",
        format!("{} pages, {} errors", show_count(manners.fetched), show_count(manners.errors)),
    )?;
    for request in &manners.recent {
        let (at, url) = (shown(&request.at), shown(&request.url));
        writeln!(output, "    {at}  {:<12}  {url}", shown(&request.outcome))?;
    }
    Ok(())
}

fn requests(manners: &HostHistoryView) -> String {
    let sent = show_count(manners.requests);
    match (&manners.first_request_at, &manners.last_request_at) {
        (Some(first), Some(last)) => format!("{sent}, from {first} to {last}"),
        _ => sent,
    }
}

fn gaps(manners: &HostHistoryView) -> String {
    let Some(min_ms) = manners.gap_ms_min else { return "none yet".to_owned() };
    let name = |below_ms: Option<u64>| match below_ms {
        Some(ms) => format!("<{}", write_duration_ms(ms)),
        None => "longer".to_owned(),
    };
    let counted = manners.gaps.iter().filter(|gap| gap.count > 0);
    let counted: Vec<String> =
        counted.map(|gap| format!("{}: {}", name(gap.below_ms), show_count(gap.count))).collect();
    format!("shortest {}; {}", write_duration_ms(min_ms), counted.join(", "))
}
