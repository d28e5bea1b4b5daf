//! What all pages have in common: who reads, in which language and colours; the frame around a page; the
//! headers that keep a browser from doing more with it than was meant; and problems shown as pages.

use std::convert::Infallible;

use askama::Template;
use axum::body::Body;
use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HeaderName, HeaderValue, LOCATION,
    SET_COOKIE,
};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::assets::DIGEST;
use super::forms::FormBody;
use super::words::{Lang, Words, preferred};
use crate::access::{KEY_COOKIE, Scope};
use crate::door::{Params, is_for_programs};
use crate::problem::{Code, Problem};
use crate::service::Service;

/// Nothing from elsewhere, no scripts or styles inside of pages.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    font-src 'self'; connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; \
    frame-ancestors 'none'";

const LANG_COOKIE: &str = "telusur_lang";
const SCHEME_COOKIE: &str = "telusur_scheme";
/// A year.
const COOKIE_AGE_S: u32 = 31_536_000;

/// Who reads a page, and how.
#[derive(Clone, Debug)]
pub(crate) struct Viewer {
    pub(crate) lang: Lang,
    /// `light` or `dark` if the reader chose; empty follows the system.
    scheme: &'static str,
    /// The address of the page, with its parameters.
    target: String,
}

impl<S: Sync> FromRequestParts<S> for Viewer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.uri, &parts.headers))
    }
}

impl Viewer {
    pub(super) fn of(uri: &http::Uri, headers: &HeaderMap) -> Self {
        let accepted = headers.get("accept-language").and_then(|value| value.to_str().ok());
        let lang = asked_lang(uri)
            .or_else(|| Lang::from_code(cookie(headers, LANG_COOKIE)?))
            .or_else(|| preferred(accepted?))
            .unwrap_or(Lang::En);
        let scheme = match cookie(headers, SCHEME_COOKIE) {
            Some("dark") => "dark",
            Some("light") => "light",
            _ => "",
        };
        let target = uri.path_and_query().map_or("/", |it| it.as_str()).to_owned();
        Self { lang, scheme, target }
    }

    /// The frame around a page.
    pub(crate) fn frame(&self, place: &'static str, title: impl Into<String>) -> Frame {
        Frame { reader: self.clone(), place, title: title.into(), words: self.lang.words() }
    }

    pub(crate) fn words(&self) -> &'static Words {
        self.lang.words()
    }
}

/// What the outer template needs.
#[derive(Debug)]
pub(crate) struct Frame {
    reader: Viewer,
    /// Which of the main links is the current one.
    pub(crate) place: &'static str,
    pub(crate) title: String,
    pub(crate) words: &'static Words,
}

impl Frame {
    pub(crate) fn lang(&self) -> &'static str {
        self.reader.lang.code()
    }

    pub(crate) fn other_lang(&self) -> &'static str {
        match self.reader.lang {
            Lang::En => Lang::Id.code(),
            Lang::Id => Lang::En.code(),
        }
    }

    pub(crate) fn other_lang_name(&self) -> &'static str {
        match self.reader.lang {
            Lang::En => "Bahasa Indonesia",
            Lang::Id => "English",
        }
    }

    pub(crate) fn scheme(&self) -> &'static str {
        self.reader.scheme
    }

    pub(crate) fn digest(&self) -> &'static str {
        &DIGEST
    }

    pub(crate) fn target(&self) -> &str {
        &self.reader.target
    }

    /// The address of this page, as the value of a parameter.
    pub(crate) fn back(&self) -> String {
        encoded(&self.reader.target)
    }
}

/// What is left as it is in the value of a parameter.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A value as it is written in an address.
pub(crate) fn encoded(value: &str) -> String {
    utf8_percent_encode(value, PLAIN).to_string()
}

/// An address with parameters; those without a value are left out.
pub(crate) fn address(path: &str, params: &[(&str, &str)]) -> String {
    let params = params.iter().filter(|(_, value)| !value.is_empty());
    let params: Vec<String> =
        params.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    if params.is_empty() { path.to_owned() } else { format!("{path}?{}", params.join("&")) }
}

/// A page, or a piece of one.
pub(crate) fn render(template: &impl Template) -> Result<Response, Problem> {
    render_as(StatusCode::OK, template)
}

pub(crate) fn render_as(status: StatusCode, template: &impl Template) -> Result<Response, Problem> {
    let text = template.render().map_err(|error| {
        tracing::error!(%error, "a page cannot be written");
        Problem::new(Code::Internal, "the page cannot be written")
    })?;
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, html);
    Ok(response)
}

/// Sends a browser elsewhere on this server after a form was sent.
pub(crate) fn go_to(path: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    if let Ok(path) = HeaderValue::from_str(path) {
        response.headers_mut().insert(LOCATION, path);
    }
    response
}

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage<'a> {
    frame: Frame,
    detail: &'a str,
    advice: Option<&'a str>,
    code: &'a str,
    is_missing: bool,
    needs_key: bool,
    has_key: bool,
}

/// The layer around all pages: shows problems as pages, and sets the policy.
pub(crate) async fn as_page(request: Request, next: Next) -> Response {
    let reader = Viewer::of(request.uri(), request.headers());
    let has_key = cookie(request.headers(), KEY_COOKIE).is_some();
    let asked = asked_lang(request.uri());
    let mut response = next.run(request).await;
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        response = problem_page(&reader, &problem, has_key)
            .unwrap_or_else(|problem| problem.into_response());
    }
    if let Some(lang) = asked {
        set_cookie(&mut response, LANG_COOKIE, lang.code(), "Lax");
    }
    let headers = response.headers_mut();
    if !headers.contains_key(CONTENT_SECURITY_POLICY) {
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    }
    // With `no-referrer` a browser sends its forms as if they came from nowhere, and the guard at the
    // door would refuse them.
    let own = HeaderValue::from_static("same-origin");
    headers.insert(HeaderName::from_static("referrer-policy"), own);
    response
}

/// The same for addresses that are not ours: who asks for HTML is shown a page, a program the problem itself.
pub(crate) async fn as_page_for_people(request: Request, next: Next) -> Response {
    let accepted = request.headers().get_all(ACCEPT).iter().filter_map(|it| it.to_str().ok());
    let is_person = accepted.into_iter().any(|kinds| kinds.contains("text/html"));
    match is_person && !is_for_programs(request.uri().path()) {
        true => as_page(request, next).await,
        false => next.run(request).await,
    }
}

fn problem_page(reader: &Viewer, problem: &Problem, has_key: bool) -> Result<Response, Problem> {
    let needs_key = matches!(problem.code(), Code::Unauthorized | Code::ForbiddenScope);
    let words = reader.words();
    let title = match problem.code() {
        Code::Unauthorized | Code::ForbiddenScope => words.key_title,
        Code::NotFound => words.not_found_title,
        _ => words.problem_title,
    };
    let page = ProblemPage {
        frame: reader.frame("", title),
        detail: problem.detail(),
        advice: problem.advice().filter(|_| !needs_key),
        code: problem.code().word(),
        is_missing: problem.code() == Code::NotFound,
        needs_key,
        has_key,
    };
    let mut response = render_as(problem.code().status(), &page)?;
    for (name, value) in &problem.headers() {
        if name != CONTENT_TYPE && name != "www-authenticate" {
            response.headers_mut().insert(name, value.clone());
        }
    }
    Ok(response)
}

/// What a reader wants to see differently. The language is remembered by the layer around all pages.
#[derive(Deserialize)]
pub(crate) struct Look {
    scheme: Option<String>,
    #[serde(default)]
    back: String,
}

/// Remembers the language or the colours, and goes back.
pub(crate) async fn look(Params(look): Params<Look>) -> Response {
    let mut response = go_to(own_path(&look.back));
    let scheme = look.scheme.as_deref().filter(|it| ["dark", "light", "auto"].contains(it));
    if let Some(scheme) = scheme {
        set_cookie(&mut response, SCHEME_COOKIE, scheme, "Lax");
    }
    response
}

/// A key that was typed.
#[derive(Deserialize)]
pub(crate) struct GivenKey {
    #[serde(default)]
    key: String,
    #[serde(default)]
    back: String,
}

/// Lets a browser carry a key.
pub(crate) async fn give_key(
    State(service): State<Service>,
    FormBody(given): FormBody<GivenKey>,
) -> Result<Response, Problem> {
    let key = given.key.trim();
    let mut headers = HeaderMap::new();
    let bearer = HeaderValue::from_str(&format!("Bearer {key}"));
    let unusable = |_| Problem::new(Code::Unauthorized, "this is no key");
    headers.insert(http::header::AUTHORIZATION, bearer.map_err(unusable)?);
    service.permit(&headers, Scope::Search)?;
    let mut response = go_to(own_path(&given.back));
    let is_plain = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if is_plain {
        set_cookie(&mut response, KEY_COOKIE, key, "Strict; HttpOnly");
    }
    Ok(response)
}

/// The language that an address asks for: `?lang=id`.
fn asked_lang(uri: &http::Uri) -> Option<Lang> {
    let mut pairs = uri.query().unwrap_or_default().split('&');
    pairs.find_map(|pair| Lang::from_code(pair.strip_prefix("lang=")?))
}

fn set_cookie(response: &mut Response, name: &str, value: &str, rules: &str) {
    let cookie = format!("{name}={value}; Path=/; Max-Age={COOKIE_AGE_S}; SameSite={rules}");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
}

/// A path on this server; anything else is the first page. `//` and `/\` lead to other servers.
fn own_path(path: &str) -> &str {
    let is_own = path.starts_with('/')
        && !path.starts_with("//")
        && !path.starts_with("/\\")
        && path.bytes().all(|byte| byte.is_ascii_graphic());
    if is_own { path } else { "/" }
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|it| it.split_once('='));
    pairs.find(|(it, _)| it.trim() == name).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn going_back_never_leaves_this_server() {
        for (path, expect) in [
            ("/search?q=a", "/search?q=a"),
            ("//evil.example/", "/"),
            ("/\\evil.example/", "/"),
            ("https://evil.example/", "/"),
            ("/a\nSet-Cookie: x", "/"),
            ("", "/"),
        ] {
            assert_eq!(own_path(path), expect, "{path:?}");
        }
    }

    #[test]
    fn addresses_carry_values_whole() {
        assert_eq!(address("/search", &[("q", "a&b=c d"), ("x", "")]), "/search?q=a%26b%3Dc%20d");
        assert_eq!(address("/", &[]), "/");
    }
}
