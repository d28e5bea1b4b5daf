//! A crawl to start: a form, what would come of it, and the command that does the same.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use telusur_engine::request::{
    CrawlRequest, LimitsRequest, LinearRequest, PolitenessRequest, Rights, ScopeRequest,
};

use super::forms::{FormBody, lines, number, text};
use super::frame::{Frame, Viewer, go_to, render_as};
use super::words::fill;
use crate::door::Params;
use crate::json::CrawlView;
use crate::problem::Problem;
use crate::service::{Accepted, Service};

/// What was typed into the form.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Wish {
    along: String,
    urls: String,
    template: String,
    from: String,
    to: String,
    start: String,
    margin: String,
    max_pages: String,
    depth: String,
    scope: String,
    name: String,
    delay_ms: String,
    workers: String,
    keep: String,
    exclude: String,
    then: String,
}

impl Wish {
    fn is_linear(&self) -> bool {
        self.along == "linear"
    }

    /// Whether something is filled in that is folded away at first.
    fn has_more(&self) -> bool {
        [&self.delay_ms, &self.workers, &self.keep, &self.exclude].iter().any(|it| !it.is_empty())
    }

    fn body(&self, dry_run: bool) -> Result<CrawlRequest, Problem> {
        let linear = LinearRequest {
            template: text(&self.template),
            from: number("from", &self.from)?,
            to: number("to", &self.to)?,
            start: number("start", &self.start)?,
            margin: number("margin", &self.margin)?,
            ..LinearRequest::default()
        };
        Ok(CrawlRequest {
            name: text(&self.name),
            urls: if self.is_linear() { Vec::new() } else { lines(&self.urls) },
            linear: self.is_linear().then_some(linear),
            limits: LimitsRequest {
                max_pages: number("max_pages", &self.max_pages)?,
                max_depth: number("depth", &self.depth)?,
                ..LimitsRequest::default()
            },
            scope: ScopeRequest {
                kind: text(&self.scope),
                exclude: lines(&self.exclude),
                ..ScopeRequest::default()
            },
            politeness: PolitenessRequest {
                delay_ms: number("delay_ms", &self.delay_ms)?,
                workers: number("workers", &self.workers)?,
                ..PolitenessRequest::default()
            },
            keep: text(&self.keep),
            dry_run,
            ..CrawlRequest::default()
        })
    }
}

#[derive(Template)]
#[template(path = "new_crawl.html")]
struct NewCrawlPage {
    frame: Frame,
    wish: Wish,
    problem: Option<Mistake>,
    preview: Option<Preview>,
    scopes: Vec<(&'static str, &'static str)>,
    keeps: Vec<(&'static str, &'static str)>,
    default_delay: String,
    default_workers: String,
}

struct Mistake {
    detail: String,
    advice: Option<String>,
}

struct Preview {
    facts: Vec<(&'static str, String)>,
    time: Option<String>,
    warnings: Vec<String>,
    command: String,
}

/// The form; what is in its address is filled in.
pub(crate) async fn form(
    State(service): State<Service>,
    reader: Viewer,
    Params(wish): Params<Wish>,
) -> Result<Response, Problem> {
    shown(&service, &reader, wish, None, None)
}

/// Starts the crawl, or shows what would be done.
pub(crate) async fn start(
    State(service): State<Service>,
    reader: Viewer,
    FormBody(wish): FormBody<Wish>,
) -> Result<Response, Problem> {
    let is_preview = wish.then != "start";
    let body = match wish.body(is_preview) {
        Ok(body) => body,
        Err(problem) => return shown(&service, &reader, wish, Some(problem), None),
    };
    match service.accept(body.clone(), None, Rights::User).await {
        Ok(Accepted::DryRun(crawl)) => {
            let preview = preview(&crawl, &body, &reader);
            shown(&service, &reader, wish, None, Some(preview))
        }
        Ok(Accepted::New(crawl) | Accepted::Before(crawl)) => {
            Ok(go_to(&format!("/crawls/{}", crawl.alias)))
        }
        Err(problem) => shown(&service, &reader, wish, Some(problem), None),
    }
}

fn shown(
    service: &Service,
    reader: &Viewer,
    wish: Wish,
    problem: Option<Problem>,
    preview: Option<Preview>,
) -> Result<Response, Problem> {
    let words = reader.words();
    let manners = &service.settings().defaults.politeness;
    let status = problem.as_ref().map_or(StatusCode::OK, |problem| problem.code().status());
    let page = NewCrawlPage {
        frame: reader.frame("crawls", words.new_crawl),
        problem: problem.map(|problem| Mistake {
            detail: problem.detail().to_owned(),
            advice: problem.advice().map(str::to_owned),
        }),
        preview,
        wish,
        scopes: vec![
            ("page", words.scope_page),
            ("prefix", words.scope_prefix),
            ("host", words.scope_host),
            ("domain", words.scope_domain),
            ("any", words.scope_any),
        ],
        keeps: vec![
            ("html", words.keep_html),
            ("text", words.keep_text),
            ("raw", words.keep_raw),
            ("none", words.keep_none),
        ],
        default_delay: manners.delay_ms.to_string(),
        default_workers: manners.workers.to_string(),
    };
    render_as(status, &page)
}

fn preview(crawl: &CrawlView, body: &CrawlRequest, reader: &Viewer) -> Preview {
    let (words, lang) = (reader.words(), reader.lang);
    let limit = |number: u64| match number {
        0 => words.no_limit.to_owned(),
        number => lang.count(number),
    };
    let seeds = crawl.seeds.join("\n");
    let time_s = crawl.limits.max_pages.saturating_mul(crawl.manners.delay_ms) / 1000;
    Preview {
        facts: vec![
            (words.form_kind, seeds),
            (words.form_scope, crawl.scope.kind.clone()),
            (words.form_max_pages, limit(crawl.limits.max_pages)),
            (words.form_depth, limit(crawl.limits.max_depth)),
            (words.form_delay, lang.count(crawl.manners.delay_ms)),
            (words.form_workers, lang.count(crawl.manners.workers)),
            (words.form_keep, crawl.keep.clone()),
            (words.preview_robots, crawl.manners.robots.clone()),
        ],
        time: (time_s > 0).then(|| fill(words.preview_time, &[("time", &lang.seconds(time_s))])),
        warnings: crawl.warnings.clone(),
        command: command(body),
    }
}

/// The command line that asks for the same.
fn command(body: &CrawlRequest) -> String {
    let mut parts: Vec<String> = vec!["telusur".to_owned()];
    let digits = |number: Option<u64>| number.map(|number| number.to_string());
    match &body.linear {
        Some(linear) => {
            parts.push("linear".to_owned());
            parts.extend(linear.template.as_deref().map(quoted));
            for (name, value) in [
                ("from", linear.from),
                ("to", linear.to),
                ("start", linear.start),
                ("margin", linear.margin),
            ] {
                flag(&mut parts, name, digits(value));
            }
        }
        None => {
            parts.push("crawl".to_owned());
            parts.extend(body.urls.iter().map(|url| quoted(url)));
            flag(&mut parts, "depth", body.limits.max_depth.map(|depth| depth.to_string()));
            flag(&mut parts, "scope", body.scope.kind.clone());
        }
    }
    flag(&mut parts, "max-pages", digits(body.limits.max_pages));
    flag(&mut parts, "name", body.name.clone());
    for pattern in &body.scope.exclude {
        flag(&mut parts, "exclude", Some(pattern.clone()));
    }
    flag(&mut parts, "delay", body.politeness.delay_ms.map(|delay_ms| format!("{delay_ms}ms")));
    flag(&mut parts, "workers", body.politeness.workers.map(|workers| workers.to_string()));
    flag(&mut parts, "keep", body.keep.clone());
    parts.join(" ")
}

fn flag(parts: &mut Vec<String>, name: &str, value: Option<String>) {
    if let Some(value) = value {
        parts.push(format!("--{name}"));
        parts.push(quoted(&value));
    }
}

/// A word as a shell takes it whole.
fn quoted(word: &str) -> String {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"-_./:@%+=,".contains(&it);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wish: Wish, expect: &str) {
        assert_eq!(command(&wish.body(true).unwrap()), expect);
    }

    #[test]
    fn the_command_asks_for_the_same() {
        check(
            Wish {
                urls: "https://a.test/\n\n https://b.test/?x=1&y ".into(),
                max_pages: "1,000".into(),
                exclude: "it's".into(),
                delay_ms: "500".into(),
                ..Wish::default()
            },
            "telusur crawl https://a.test/ 'https://b.test/?x=1&y' --max-pages 1000 \
             --exclude 'it'\\''s' --delay 500ms",
        );
        check(
            Wish {
                along: "linear".into(),
                template: "https://a.test/{id}".into(),
                from: "1".into(),
                to: "9".into(),
                ..Wish::default()
            },
            "telusur linear 'https://a.test/{id}' --from 1 --to 9",
        );
    }

    #[test]
    fn what_is_no_number_is_told() {
        let wish = Wish { max_pages: "many".into(), ..Wish::default() };
        assert!(wish.body(true).is_err());
    }
}
