//! Why was this URL crawled, or not?

use serde::{Deserialize, Serialize};
use telusur_fetch::robots::{Rules, product_token};
use telusur_ledger::{Store, UrlRecord};
use telusur_model::{
    Crawl, HostRow, IdState, OriginRow, PageRecord, PageUrl, Reason, RobotsAnswer, RobotsRules,
    Scope, Timestamp, Verdict, normal_form,
};

use super::handle::{Control, read_url};
use super::operation::{Each, Operation, OperationKind};
use crate::error::RequestError;
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
    type Item = Explanation;
    type Reply = ();

    fn run(&self, control: &Control, each: Each<'_, Explanation>) -> Result<(), RequestError> {
        let url = read_url(&self.url)?;
        for record in control.meant(self.crawl.as_deref())? {
            let mut explanation = explain(control.store.as_ref(), &record.crawl, &url)?;
            let progress = control.progress(record.crawl.no);
            explanation.parked = progress.and_then(|it| it.why_host_waits(url.host_str()));
            if !each(explanation) {
                break;
            }
        }
        Ok(())
    }
}

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
    /// What its robots.txt says, if it was read.
    pub robots: Option<RobotsSaid>,
    /// What became of it as a sitemap, if it is one.
    pub sitemap: Option<UrlRecord>,
    /// What is known about its host in this crawl.
    pub host: Option<HostRow>,
    /// Its id, if it is one of a linear crawl.
    pub id: Option<IdExplained>,
    /// Why its host is not asked at present, if it is parked.
    #[serde(default)]
    pub parked: Option<String>,
}

/// What is known of an id of a linear crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdExplained {
    /// The template that it belongs to.
    pub template: String,
    /// The id.
    pub id: u64,
    /// What became of it; `None` if it was not asked yet.
    pub state: Option<IdState>,
    /// Why, if it failed.
    pub why: Option<Reason>,
    /// Whether it lies between the bounds.
    pub is_within: bool,
}

/// What a robots.txt says about a URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RobotsSaid {
    /// When it was read.
    pub asked_at: Timestamp,
    /// Whether the URL may be asked for.
    pub allowed: bool,
    /// The line that decides, or why there is none.
    pub rule: Option<String>,
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

fn explain(store: &dyn Store, crawl: &Crawl, url: &PageUrl) -> Result<Explanation, RequestError> {
    let known = store.url(crawl.no, url)?;
    let page = store.page_of(crawl.no, url)?;
    let host = store.hosts(crawl.no)?.into_iter().find(|row| row.host == url.host());
    let depth = known.as_ref().map_or(0, |known| known.depth);
    Ok(Explanation {
        crawl: crawl.id.to_string(),
        alias: crawl.no.to_string(),
        name: crawl.name.clone(),
        url: url.to_string(),
        normal_form: normal_form(url, !crawl.keep_tracking).into_owned(),
        judged: judge(crawl, url, depth)?,
        robots: store.origin(&url.origin())?.map(|row| robots_said(crawl, url, &row)),
        sitemap: store.sitemap(crawl.no, url)?,
        known,
        page,
        host,
        id: explain_id(store, crawl, url)?,
        parked: None,
    })
}

fn explain_id(
    store: &dyn Store,
    crawl: &Crawl,
    url: &PageUrl,
) -> Result<Option<IdExplained>, RequestError> {
    let Some(seeds) = crawl.seeds.linear() else { return Ok(None) };
    for (number, walk) in (0..).zip(&seeds.walks) {
        let template = &walk.rules().template;
        let Some(id) = template.id_of(url) else { continue };
        let known = StoredWalk::read(store, crawl.no, number, walk, seeds)?.state_of(url);
        return Ok(Some(IdExplained {
            template: template.to_string(),
            id,
            state: known.map(|known| known.state),
            why: known.and_then(|known| known.why),
            is_within: walk.id_of(url).is_some(),
        }));
    }
    Ok(None)
}

fn robots_said(crawl: &Crawl, url: &PageUrl, row: &OriginRow) -> RobotsSaid {
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
    RobotsSaid { asked_at: row.asked_at, allowed, rule }
}

fn judge(crawl: &Crawl, url: &PageUrl, depth: u16) -> Result<Judged, RequestError> {
    let scope = Scope::of(crawl).map_err(|error| RequestError::BadArgument(error.to_string()))?;
    Ok(match scope.judge(url, depth, 0).verdict {
        Verdict::Admit => Judged {
            admitted: true,
            reason: None,
            rule: format!("scope {}", crawl.scope.kind.word()),
        },
        Verdict::Reject { reason, rule } => Judged { admitted: false, reason: Some(reason), rule },
    })
}
