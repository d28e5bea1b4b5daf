//! [`Problem`]: what a client is told when something cannot be done, after RFC 9457. The words of its
//! codes are stable: programs compare them.

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde_json::json;
use telusur_engine::RequestError;
pub(crate) use telusur_engine::request::shown;
use telusur_engine::request::{BadRequest, BadRequestKind};
use telusur_ledger::StoreError;

/// The media type of RFC 9457.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $word:literal, $status:literal, $see:literal;)+) => {
        /// The kinds of problem.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code { $($(#[doc = $doc])+ $variant,)+ }

        impl Code {
            /// Every code there is.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The stable word, such as `not_found`.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// The HTTP status that goes with it.
            pub fn status(self) -> StatusCode {
                let status = match self { $(Self::$variant => $status,)+ };
                StatusCode::from_u16(status).expect("the table holds valid statuses")
            }

            /// The code that `telusur explain` knows it by, if it does.
            pub fn see(self) -> Option<&'static str> {
                let see = match self { $(Self::$variant => $see,)+ };
                (!see.is_empty()).then_some(see)
            }

            /// The kind of problem, in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+).trim_ascii(),)+ }
            }
        }
    };
}

codes! {
    /// The body is not JSON
    InvalidJson = "invalid_json", 400, "E0117";
    /// The request cannot be understood
    BadRequest = "bad_request", 400, "E0121";
    /// A field of the request cannot be used
    InvalidField = "invalid_field", 422, "E0121";
    /// This address is not allowed
    UrlNotAllowed = "url_not_allowed", 422, "E0105";
    /// The page could not be fetched
    NotFetched = "not_fetched", 422, "E0303";
    /// This idempotency key was used for another request
    IdempotencyMismatch = "idempotency_mismatch", 422, "";
    /// A key is needed
    Unauthorized = "unauthorized", 401, "";
    /// The key does not allow this
    ForbiddenScope = "forbidden_scope", 403, "";
    /// Other websites may not do this
    ForbiddenOrigin = "forbidden_origin", 403, "";
    /// This server does not go by that name
    UnknownHost = "unknown_host", 421, "";
    /// This server only reads
    ReadOnly = "read_only", 403, "";
    /// There is no such thing here
    NotFound = "not_found", 404, "E0119";
    /// This address does not take that method
    MethodNotAllowed = "method_not_allowed", 405, "";
    /// The request took too long to arrive
    RequestTimeout = "request_timeout", 408, "";
    /// The crawl is not in a state for this
    WrongState = "wrong_state", 409, "E0120";
    /// It was changed in the meantime
    Changed = "changed", 412, "";
    /// The body is too large
    BodyTooLarge = "body_too_large", 413, "";
    /// The body is not of a type that is read
    UnsupportedType = "unsupported_type", 415, "";
    /// Too many crawls wait already
    TooManyCrawls = "too_many_crawls", 429, "";
    /// Too many requests
    TooManyRequests = "too_many_requests", 429, "";
    /// Something went wrong on this side
    Internal = "internal", 500, "E0406";
    /// The server is ending
    Draining = "draining", 503, "";
    /// The disk is full
    StorageFull = "storage_full", 507, "E0403";
}

/// Why a request was not carried out.
#[derive(Clone, Debug)]
pub struct Problem {
    code: Code,
    detail: String,
    pointer: Option<String>,
    hint: Option<String>,
    retry_after_s: Option<u64>,
    /// The clients of the first service look for a field `error`.
    is_s1: bool,
}

impl Problem {
    /// A problem; `detail` is for people.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self { code, detail, pointer: None, hint: None, retry_after_s: None, is_s1: false }
    }

    /// The same, about one field of the body (RFC 6901) or one parameter.
    pub fn at(self, pointer: impl Into<String>) -> Self {
        Self { pointer: Some(pointer.into()), ..self }
    }

    /// The same, with advice.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same, which may pass.
    pub fn retry_after_s(self, seconds: u64) -> Self {
        Self { retry_after_s: Some(seconds), ..self }
    }

    /// The same, for the clients of the first service.
    pub(crate) fn for_s1(self) -> Self {
        Self { is_s1: true, ..self }
    }

    /// There is no crawl of this name.
    pub(crate) fn no_such_crawl(id: &str) -> Self {
        Self::new(Code::NotFound, format!("there is no crawl {:?}", shown(id)))
    }

    /// A field that cannot be used.
    pub(crate) fn field(pointer: &str, detail: impl Into<String>) -> Self {
        Self::new(Code::InvalidField, detail).at(pointer)
    }

    /// Its kind.
    pub fn code(&self) -> Code {
        self.code
    }

    /// What happened, for people.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// What to do about it, for people.
    pub fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The body of the answer.
    pub(crate) fn body(&self, request_id: &str) -> Vec<u8> {
        let mut body = json!({
            "type": format!("urn:telusur:problem:{}", self.code.word()),
            "title": self.code.title(),
            "status": self.code.status().as_u16(),
            "detail": self.detail,
            "code": self.code.word(),
            "request_id": request_id,
        });
        let optional = [
            ("pointer", self.pointer.as_deref()),
            ("hint", self.hint.as_deref()),
            ("see", self.code.see()),
            ("error", Some(self.detail.as_str()).filter(|_| self.is_s1)),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                body[name] = value.into();
            }
        }
        body.to_string().into_bytes()
    }

    pub(crate) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if let Some(seconds) = self.retry_after_s {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if self.code == Code::Unauthorized {
            let name = HeaderName::from_static("www-authenticate");
            headers.insert(name, HeaderValue::from_static("Bearer realm=\"telusur\""));
        }
        headers
    }
}

/// The body is written by the outermost layer, which knows the request's id.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.code.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::DiskFull(_) => Self::new(Code::StorageFull, error.to_string())
                .hint("Nothing is lost. Free some space, then resume the crawls"),
            StoreError::StateDamaged(_) | StoreError::Unreadable { damage: Some(_), .. } => {
                tracing::error!(%error, code = "E0409", "the store failed a request");
                Self::new(Code::Internal, "the state of the data directory is damaged (E0409)")
                    .hint("The service's log names the file and the command that rebuilds it")
            }
            // What exactly is wrong with the disk is for the operator's log, not for a stranger.
            _ => {
                tracing::error!(%error, "the store failed a request");
                Self::new(Code::Internal, "the data directory cannot be read or written")
            }
        }
    }
}

impl From<RequestError> for Problem {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::NoSuchCrawl(id) => Self::no_such_crawl(&id),
            RequestError::WrongState(what) => Self::new(Code::WrongState, what),
            RequestError::BadArgument(what) => Self::new(Code::InvalidField, what),
            RequestError::BadRequest(bad) => bad.into(),
            RequestError::CannotResume { what, hint } => {
                Self::new(Code::WrongState, what).hint(hint)
            }
            RequestError::Stopped => draining(),
            RequestError::Store(error) => error.into(),
            RequestError::Index(error) => {
                tracing::error!(%error, "the index failed a request");
                Self::new(Code::Internal, "the search index cannot be read")
            }
        }
    }
}

impl From<BadRequest> for Problem {
    fn from(bad: BadRequest) -> Self {
        let code = match bad.kind {
            BadRequestKind::Field | BadRequestKind::Template | BadRequestKind::Walk => {
                Code::InvalidField
            }
            BadRequestKind::Address => Code::UrlNotAllowed,
            BadRequestKind::Rights => Code::ForbiddenScope,
        };
        Self { hint: bad.hint, ..Self::new(code, bad.what).at(bad.pointer) }
    }
}

/// The server is about to end.
pub(crate) fn draining() -> Problem {
    Problem::new(Code::Draining, "the server is ending; its crawls go on at the next start")
        .retry_after_s(5)
}

/// What a problem looks like, for the API's description.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemBody {
    /// A name for the kind of problem.
    #[serde(rename = "type")]
    kind: String,
    /// The kind of problem, in a few words.
    title: String,
    /// The HTTP status.
    status: u16,
    /// What happened.
    detail: String,
    /// The stable word.
    code: String,
    /// The field or parameter that is wrong.
    #[schema(required = false)]
    pointer: String,
    /// What to do about it.
    #[schema(required = false)]
    hint: String,
    /// The code that `telusur explain` tells more about.
    #[schema(required = false)]
    see: String,
    /// The same as `detail`, for clients of the first service.
    #[schema(required = false)]
    error: String,
    /// Names this request in the server's log.
    request_id: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique() {
        let mut words: Vec<_> = Code::ALL.iter().map(|code| code.word()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Code::ALL.len());
    }

    #[test]
    fn a_body_names_the_field_and_the_request() {
        let problem = Problem::field("/urls/0", "is no URL").hint("Write it like https://a.org/");
        let body: serde_json::Value = serde_json::from_slice(&problem.body("r_1")).unwrap();
        assert_eq!(body["status"], 422);
        assert_eq!(body["pointer"], "/urls/0");
        assert_eq!(body["request_id"], "r_1");
        assert_eq!(body.get("error"), None);
        let body: serde_json::Value =
            serde_json::from_slice(&problem.for_s1().body("r_1")).unwrap();
        assert_eq!(body["error"], "is no URL");
    }
}
