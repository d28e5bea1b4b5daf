//! Numbered pages: what a request says about ids, made walks.

use std::collections::HashSet;

use telusur_model::{
    Crawl, Direction, IdRanges, LinearSeeds, MissingRules, Rates, Seeds, SitemapRules, Template,
    Walk, WalkRules,
};

use super::{
    BadRequest, BadRequestKind, DURATION_S_MAX, LinearRequest, RatesRequest, RequestPolicy,
    read_seconds, read_word, scope_kind, shown,
};

/// Templates of one linear crawl: every decision looks at each of them.
const TEMPLATES_MAX: usize = 1000;

impl RequestPolicy {
    pub(super) fn set_linear(
        &self,
        crawl: &mut Crawl,
        request: &LinearRequest,
    ) -> Result<(), BadRequest> {
        let follows = match &request.follow {
            Some(word) => Some(scope_kind("/linear/follow", word)?),
            None => None,
        };
        let walks = self.walks(request)?;
        if let Some(kind) = follows {
            crawl.scope.kind = kind;
        }
        let discover = follows.is_some() && crawl.sitemaps.discover;
        crawl.sitemaps = SitemapRules { discover, urls: Vec::new() };
        // The id may stand in any parameter, also in one that other crawls pass over.
        crawl.keep_tracking = true;
        let resume = request.resume.unwrap_or_default();
        crawl.seeds = Seeds::Linear(LinearSeeds { walks, resume, follow: follows.is_some() });
        Ok(())
    }

    fn walks(&self, request: &LinearRequest) -> Result<Vec<Walk>, BadRequest> {
        let templates = self.templates(request)?;
        let rates = rates(request, templates.len())?;
        let mut walks: Vec<Walk> = Vec::with_capacity(templates.len());
        for (template, rates) in templates.into_iter().zip(rates) {
            // Ids and rules are read once, and shared by all templates with the same rates.
            let shared = walks.iter().find(|walk| walk.rules().rates == rates);
            let walk = match shared {
                Some(shared) => shared.with_template(template),
                None => {
                    let rules = WalkRules { rates, ..walk_rules(template, request)? };
                    Walk::new(rules).map_err(|error| {
                        BadRequest::field("/linear", error.to_string())
                            .of_kind(BadRequestKind::Walk)
                            .hint(error.hint())
                    })?
                }
            };
            walks.push(walk);
        }
        Ok(walks)
    }

    fn templates(&self, request: &LinearRequest) -> Result<Vec<Template>, BadRequest> {
        let texts: Vec<&String> = request.template.iter().chain(&request.templates).collect();
        let refuse = |pointer: &str, what: String| {
            BadRequest::field(pointer, what).of_kind(BadRequestKind::Template)
        };
        if texts.is_empty() {
            return Err(refuse("/linear/template", "there is no template".to_owned())
                .hint("Write it like https://example.org/item/{id}"));
        }
        if texts.len() > TEMPLATES_MAX {
            let what = format!("{TEMPLATES_MAX} templates are the limit");
            return Err(refuse("/linear/templates", what).hint("Split them into several crawls"));
        }
        let mut templates = Vec::with_capacity(texts.len());
        let mut addresses = HashSet::with_capacity(texts.len());
        for text in texts {
            let template = Template::parse(text).map_err(|error| {
                let what = format!("{}: {:?}", error.fault, shown(text));
                refuse("/linear/template", what).hint(error.hint())
            })?;
            let address = template.url_of(0);
            self.url("/linear/template", address.as_str())?;
            // Two spellings of one template would ask for every page twice.
            if !addresses.insert(address) {
                let what = format!("template is given twice: {:?}", shown(text));
                return Err(refuse("/linear/templates", what).hint("Leave one of them"));
            }
            templates.push(template);
        }
        Ok(templates)
    }
}

/// The rates of each template.
fn rates(request: &LinearRequest, templates: usize) -> Result<Vec<Rates>, BadRequest> {
    let read = |rates: &RatesRequest| Rates { ascending: rates.asc, descending: rates.desc };
    if request.rates.is_empty() {
        let one = request.rate.as_ref().map_or(Rates { ascending: 1, descending: 1 }, read);
        return Ok(vec![one; templates]);
    }
    if request.rates.len() != templates {
        let what = format!("there are {} of them for {templates} templates", request.rates.len());
        return Err(BadRequest::field("/linear/rates", what));
    }
    Ok(request.rates.iter().map(read).collect())
}

/// Everything but the rates.
fn walk_rules(template: Template, request: &LinearRequest) -> Result<WalkRules, BadRequest> {
    let rules = WalkRules::new(template);
    let direction = match request.direction.as_deref() {
        None => None,
        Some(word) => {
            let words = Direction::WORDS;
            Some(read_word("/linear/direction", word, Direction::from_word, words)?)
        }
    };
    let ids = match &request.ids {
        None => None,
        Some(text) => {
            let ids = IdRanges::parse(text);
            Some(ids.map_err(|error| BadRequest::field("/linear/ids", error.to_string()))?)
        }
    };
    let missing = match &request.missing {
        None => rules.missing.clone(),
        Some(text) => MissingRules::parse(text).map_err(|error| {
            BadRequest::field("/linear/missing", shown(&error.to_string())).hint(error.hint())
        })?,
    };
    let cooldown_ms = request
        .cooldown_s
        .map(|seconds| read_seconds("/linear/cooldown_s", seconds, DURATION_S_MAX))
        .transpose()?;
    Ok(WalkRules {
        direction,
        start: request.start,
        min: request.min.or(request.from),
        max: request.max.or(request.to),
        ids,
        step: request.step.unwrap_or(rules.step),
        margin: request.margin.unwrap_or(rules.margin),
        attempts: request.attempts.unwrap_or(rules.attempts),
        cooldown_ms: cooldown_ms.unwrap_or(rules.cooldown_ms),
        missing,
        ..rules
    })
}
