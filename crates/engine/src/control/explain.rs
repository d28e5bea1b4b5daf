//! Why was this URL crawled, or not?

use serde::{Deserialize, Serialize};
use telusur_fetch::robots::{Rules, product_token};
use telusur_ledger::{Store, UrlRecord, UrlState};
use telusur_model::{
    Crawl, IdState, OriginRow, PageUrl, Progress, Reason, RobotsAnswer, RobotsRules, Scope,
    Timestamp, Verdict, normal_form,
};

use super::handle::{Control, read_url};
use super::lists::host_view;
use super::operation::{Each, Operation, OperationKind};
use super::page::page_view;
use crate::error::RequestError;
use crate::json::{ExplanationView, IdView, KnownUrlView, RobotsView};
use crate::linear_run::StoredWalk;

/// Everything that crawls know about one URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainUrl {
    /// The URL.
    pub url: String,
    /// In this crawl only.
    pub crawl: Option<String>,
}

impl Operation for ExplainUrl {
    const KIND: OperationKind = OperationKind::ExplainUrl;
    type Item = ExplanationView;
    type Reply = ();

    fn run(&self, control: &Control, each: Each<'_, ExplanationView>) -> Result<(), RequestError> {
        let url = read_url(&self.url)?;
        for record in control.meant(self.crawl.as_deref())? {
            let progress = control.progress(record.crawl.no);
            let store = control.store.as_ref();
            if !each(explain(store, &record.crawl, &url, progress.as_ref())?) {
                break;
            }
        }
        Ok(())
    }
}

fn explain(
    store: &dyn Store,
    crawl: &Crawl,
    url: &PageUrl,
    progress: Option<&Progress>,
) -> Result<ExplanationView, RequestError> {
    let known = store.url(crawl.no, url)?;
    let depth = known.as_ref().map_or(0, |known| known.depth);
    let known = known.map(known_view);
    let (admitted, reason, rule) = judge(crawl, url, depth)?;
    let host = store.hosts(crawl.no)?.into_iter().find(|row| row.host == url.host());
    let parked = progress.and_then(|it| it.parked.iter().find(|it| it.covers(url.host_str())));
    Ok(ExplanationView {
        crawl: crawl.id.to_string(),
        alias: crawl.no.to_string(),
        name: crawl.name.clone(),
        url: url.to_string(),
        normal_form: normal_form(url, !crawl.keep_tracking).into_owned(),
        state: known.as_ref().map_or_else(|| "unknown".to_owned(), |known| known.state.clone()),
        known,
        page: store.page_of(crawl.no, url)?.map(page_view),
        sitemap: store.sitemap(crawl.no, url)?.map(known_view),
        admitted,
        rule,
        reason: reason.map(|reason| reason.word().to_owned()),
        robots: store.origin(&url.origin())?.map(|row| robots_view(crawl, url, &row)),
        host: host.map(|row| host_view(row, crawl.politeness.delay_ms, parked)),
        id: explain_id(store, crawl, url)?,
        parked: progress.and_then(|it| it.why_host_waits(url.host_str())),
    })
}

fn known_view(known: UrlRecord) -> KnownUrlView {
    let view = KnownUrlView {
        state: known.state.word().to_owned(),
        url: known.url,
        via: known.via.word().to_owned(),
        referrer: known.referrer,
        redirects: known.redirects,
        depth: known.depth,
        found_at: known.found_at.rfc3339(),
        lastmod: known.lastmod.map(Timestamp::rfc3339),
        ..KnownUrlView::default()
    };
    let at = |at: Timestamp| Some(at.rfc3339());
    let word = |reason: Reason| reason.word().to_owned();
    match known.state {
        UrlState::Queued { attempt, last_failure, place: _ } => {
            KnownUrlView { attempts: Some(attempt), reason: last_failure.map(word), ..view }
        }
        UrlState::Page { seq: _ } => view,
        UrlState::Sitemap { entries, dropped, trouble, at: when } => KnownUrlView {
            entries: Some(entries),
            dropped: Some(dropped),
            detail: trouble,
            at: at(when),
            ..view
        },
        UrlState::Redirected { status, to, at: when } => {
            KnownUrlView { status: Some(status), to: Some(to), at: at(when), ..view }
        }
        UrlState::Failed { reason, detail, attempts, at: when } => KnownUrlView {
            reason: Some(word(reason)),
            detail: Some(detail),
            attempts: Some(attempts),
            at: at(when),
            ..view
        },
        UrlState::Skipped { reason, rule } => {
            KnownUrlView { reason: Some(word(reason)), rule: Some(rule), ..view }
        }
    }
}

fn explain_id(
    store: &dyn Store,
    crawl: &Crawl,
    url: &PageUrl,
) -> Result<Option<IdView>, RequestError> {
    let Some(seeds) = crawl.seeds.linear() else { return Ok(None) };
    for (number, walk) in (0..).zip(&seeds.walks) {
        let template = &walk.rules().template;
        let Some(id) = template.id_of(url) else { continue };
        let known = StoredWalk::read(store, crawl.no, number, walk, seeds)?.state_of(url);
        let state = known.map(|known| known.state);
        return Ok(Some(IdView {
            template: template.to_string(),
            id,
            state: state.map(|state| state.word().to_owned()),
            attempts: match state {
                Some(IdState::Waiting { attempts }) => Some(attempts),
                Some(IdState::Content | IdState::Missing | IdState::Hole) | None => None,
            },
            reason: known.and_then(|known| known.why).map(|why| why.word().to_owned()),
            is_within: walk.id_of(url).is_some(),
        }));
    }
    Ok(None)
}

fn robots_view(crawl: &Crawl, url: &PageUrl, row: &OriginRow) -> RobotsView {
    let (allowed, rule) = match &row.robots {
        RobotsAnswer::Text { text } => {
            let rules = Rules::parse(text, product_token(&crawl.fetch.user_agent));
            let verdict = rules.verdict(url);
            let rule = verdict.rule.map(|rule| format!("line {}: {rule}", rule.line()));
            (verdict.allowed, rule)
        }
        RobotsAnswer::Missing { why } => (true, Some(format!("there is none ({why})"))),
        RobotsAnswer::Unreachable { why, detail } => {
            let allowed = crawl.politeness.robots == RobotsRules::UnreachableAllows;
            (allowed, Some(format!("{why}: {detail}")))
        }
    };
    RobotsView { allowed, rule, asked_at: row.asked_at.rfc3339() }
}

/// Whether the rules would let a URL be followed, why not, and by which rule.
fn judge(
    crawl: &Crawl,
    url: &PageUrl,
    depth: u16,
) -> Result<(bool, Option<Reason>, String), RequestError> {
    let scope = Scope::of(crawl).map_err(|error| RequestError::BadArgument(error.to_string()))?;
    Ok(match scope.judge(url, depth, 0).verdict {
        Verdict::Admit => (true, None, format!("scope {}", crawl.scope.kind.word())),
        Verdict::Reject { reason, rule } => (false, Some(reason), rule),
    })
}
