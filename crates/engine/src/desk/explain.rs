//! Why was this URL crawled, or not?

use serde::{Deserialize, Serialize};
use telusur_model::{Crawl, HostRow, PageRecord, PageUrl, Reason, Scope, Verdict, normal_form};
use telusur_store::{Store, UrlRecord, UrlState};

use crate::error::RequestError;

/// What one crawl knows of a URL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The crawl's id.
    pub crawl: String,
    /// Its alias.
    pub alias: String,
    /// Its name.
    pub name: Option<String>,
    /// The URL as asked.
    pub url: String,
    /// The form by which it is told apart.
    pub normal_form: String,
    /// What became of it; `None` if no page of the crawl leads there.
    pub known: Option<UrlRecord>,
    /// The stored page.
    pub page: Option<PageRecord>,
    /// What the crawl's rules say about it now.
    pub judged: Judged,
    /// What is known about its host in this crawl.
    pub host: Option<HostRow>,
}

/// What the rules say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// Whether it would be followed.
    pub admitted: bool,
    /// The reason if not.
    pub reason: Option<Reason>,
    /// The rule that decides.
    pub rule: String,
}

pub(super) fn explain(
    store: &dyn Store,
    crawl: &Crawl,
    url: &PageUrl,
) -> Result<Explanation, RequestError> {
    let known = store.url(crawl.no, url)?;
    let page = match known.as_ref().map(|known| &known.state) {
        Some(UrlState::Page { seq }) => store.page(crawl.no, *seq)?,
        _ => None,
    };
    let host = store.hosts(crawl.no)?.into_iter().find(|row| row.host == url.host());
    let depth = known.as_ref().map_or(0, |known| known.depth);
    Ok(Explanation {
        crawl: crawl.id.to_string(),
        alias: crawl.no.to_string(),
        name: crawl.name.clone(),
        url: url.to_string(),
        normal_form: normal_form(url, !crawl.keep_tracking).into_owned(),
        judged: judge(crawl, url, depth)?,
        known,
        page,
        host,
    })
}

fn judge(crawl: &Crawl, url: &PageUrl, depth: u16) -> Result<Judged, RequestError> {
    let scope = Scope::of(crawl).map_err(|error| RequestError::BadArgument(error.to_string()))?;
    Ok(match scope.judge(url, depth, 0) {
        Verdict::Admit => Judged {
            admitted: true,
            reason: None,
            rule: format!("scope {}", crawl.scope.kind.word()),
        },
        Verdict::Reject { reason, rule } => Judged { admitted: false, reason: Some(reason), rule },
    })
}
