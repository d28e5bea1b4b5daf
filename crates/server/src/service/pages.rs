//! Stored pages with everything in them, and why a URL was crawled or not.

use telusur_engine::control::{ExplainUrl, Explanation, ReadPage, StoredPage};
use telusur_ledger::UrlState;
use telusur_model::{CrawlNo, PageRecord};

use super::Service;
use crate::access::{Pass, Scope};
use crate::json::{ExplanationView, PageLink, PageView, RobotsView, StoredPageView};
use crate::problem::{Code, Problem, shown};

impl Service {
    /// The stored page of a URL, of the youngest crawl that has it, or of the one that is named.
    pub async fn page_of_url(
        &self,
        url: String,
        crawl: Option<CrawlNo>,
    ) -> Result<StoredPageView, Problem> {
        let crawl = crawl.map(|no| no.to_string());
        self.read(move |service| {
            let page = service.ask(&ReadPage { url, crawl, with_body: false })?;
            let none = || Problem::new(Code::NotFound, "no crawl has stored a page for this URL");
            page.map(|page| stored_page_view(*page)).ok_or_else(none)
        })
        .await
    }

    /// A stored page by its id.
    pub async fn page(&self, id: &str) -> Result<StoredPage, Problem> {
        let (no, seq) = read_page_id(id).ok_or_else(|| no_such_page(id))?;
        let id = id.to_owned();
        self.read(move |service| {
            let page = service.inner().control.page_at(no, seq)?;
            page.ok_or_else(|| no_such_page(&id))
        })
        .await
    }

    /// The same, as it is shown.
    pub async fn stored_page(&self, id: &str) -> Result<StoredPageView, Problem> {
        Ok(stored_page_view(self.page(id).await?))
    }

    /// Where a stored page links to.
    pub async fn links(&self, id: &str) -> Result<Vec<PageLink>, Problem> {
        Ok(page_links(&self.page(id).await?))
    }

    /// Why a URL was crawled or not, by every crawl or by one.
    pub async fn explain(
        &self,
        url: String,
        crawl: Option<CrawlNo>,
    ) -> Result<Vec<ExplanationView>, Problem> {
        let crawl = crawl.map(|no| no.to_string());
        self.read(move |service| {
            let (found, ()) = service.inner().control.collect(&ExplainUrl { url, crawl })?;
            Ok(found.into_iter().map(explanation_view).collect())
        })
        .await
    }
}

/// The page as this reader may see it. The cookies that a site gave us are the key to what it showed us:
/// who may only read what was crawled does not get them.
pub(crate) fn for_eyes_of(pass: &Pass, mut page: StoredPageView) -> StoredPageView {
    if !pass.covers(Scope::Crawl) {
        for header in &mut page.headers {
            if let [name, value] = &mut header[..] {
                mask_cookie(name, value);
            }
        }
    }
    page
}

/// Hides the value of a cookie that a site set. Its name and its rules stay.
pub(crate) fn mask_cookie(name: &str, value: &mut String) {
    if !name.eq_ignore_ascii_case("set-cookie") && !name.eq_ignore_ascii_case("set-cookie2") {
        return;
    }
    let (pair, rules) = value.split_once(';').unwrap_or((value.as_str(), ""));
    let cookie = pair.split_once('=').map_or("", |(cookie, _)| cookie.trim());
    let rules = if rules.is_empty() { String::new() } else { format!(";{rules}") };
    *value = format!("{cookie}=***{rules}");
}

/// A stored page with everything that is in it.
fn stored_page_view(page: StoredPage) -> StoredPageView {
    let StoredPage { crawl, alias, record, headers, content, .. } = page;
    StoredPageView {
        crawl,
        crawl_alias: alias,
        redirects: record.redirects.clone(),
        headers: headers.into_iter().map(|(name, value)| vec![name, value]).collect(),
        digest: record.digest.to_string(),
        content: content.and_then(|content| serde_json::to_value(content).ok()),
        page: page_view(record),
    }
}

/// The links of a stored page.
fn page_links(page: &StoredPage) -> Vec<PageLink> {
    let links = page.content.as_ref().map(|content| content.links.as_slice()).unwrap_or_default();
    links.iter().map(page_link).collect()
}

pub(super) fn page_link(link: &telusur_model::Link) -> PageLink {
    PageLink { url: link.url.to_string(), text: link.anchor.clone() }
}

pub(super) fn page_view(page: PageRecord) -> PageView {
    PageView {
        id: page_id(&page),
        seq: page.seq,
        url: page.url.to_string(),
        status: page.status,
        title: page.title,
        depth: page.depth,
        referrer: page.referrer,
        content_type: page.content_type,
        bytes: page.bytes,
        took_ms: page.took_ms,
        fetched_at: page.fetched_at.rfc3339(),
        link_count: page.link_count,
        attempts: page.attempts,
        truncated: page.truncated,
        change: page.change.map(|change| change.to_string()),
        parse_failed: page.parse_failed,
    }
}

fn page_id(page: &PageRecord) -> String {
    format!("p_{}_{}", page.crawl.0, page.seq)
}

fn read_page_id(id: &str) -> Option<(CrawlNo, u64)> {
    let (no, seq) = id.strip_prefix("p_")?.split_once('_')?;
    Some((CrawlNo(no.parse().ok()?), seq.parse().ok()?))
}

fn no_such_page(id: &str) -> Problem {
    Problem::new(Code::NotFound, format!("there is no page {:?}", shown(id)))
}

fn explanation_view(it: Explanation) -> ExplanationView {
    let state = match it.known.as_ref().map(|known| &known.state) {
        None => "unknown",
        Some(UrlState::Queued { .. }) => "queued",
        Some(UrlState::Page { .. }) => "page",
        Some(UrlState::Sitemap { .. }) => "sitemap",
        Some(UrlState::Redirected { .. }) => "redirected",
        Some(UrlState::Failed { .. }) => "failed",
        Some(UrlState::Skipped { .. }) => "skipped",
    };
    ExplanationView {
        crawl: it.crawl,
        alias: it.alias,
        name: it.name,
        url: it.url,
        normal_form: it.normal_form,
        state: state.to_owned(),
        known: it.known.and_then(|known| serde_json::to_value(known).ok()),
        page: it.page.as_ref().map(page_id),
        admitted: it.judged.admitted,
        rule: it.judged.rule,
        reason: it.judged.reason.map(|reason| reason.word().to_owned()),
        robots: it.robots.map(|said| RobotsView {
            allowed: said.allowed,
            rule: said.rule,
            asked_at: said.asked_at.rfc3339(),
        }),
        id_state: it.id.and_then(|id| id.state).map(|state| state.word().to_owned()),
        parked: it.parked,
    }
}
