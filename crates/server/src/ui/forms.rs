//! Forms that a browser sends: read within the same bounds as every other body.

use axum::Form;
use axum::body::Body;
use axum::extract::{FromRequest, Request};
use http::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;

use crate::door::read_body;
use crate::problem::{Code, Problem};
use crate::service::Service;

/// The fields of a form.
pub(crate) struct FormBody<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequest<Service> for FormBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, service: &Service) -> Result<Self, Problem> {
        let kind = request.headers().get(CONTENT_TYPE).cloned();
        let bytes = read_body(request, service).await?;
        let mut whole = Request::post("/");
        if let Some(kind) = kind {
            whole = whole.header(CONTENT_TYPE, kind);
        }
        let unreadable = |what: String| Problem::new(Code::BadRequest, what);
        let whole = whole.body(Body::from(bytes)).map_err(|error| unreadable(error.to_string()))?;
        match Form::<T>::from_request(whole, service).await {
            Ok(Form(value)) => Ok(Self(value)),
            Err(rejection) => Err(unreadable(rejection.body_text())),
        }
    }
}

/// The lines of a text field that hold something.
pub(crate) fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// A number that was typed; an empty field is none.
pub(crate) fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<Option<T>, Problem> {
    // People write thousands apart, in whatever way their language does it.
    let digits: String = text.chars().filter(|it| !matches!(it, ' ' | ',' | '.' | '_')).collect();
    if digits.is_empty() {
        return Ok(None);
    }
    let wrong = |_| Problem::field(&format!("/{name}"), "this is not a whole number that fits");
    digits.parse().map(Some).map_err(wrong)
}

/// A field that holds something.
pub(crate) fn text(value: &str) -> Option<String> {
    let value = value.trim();
    (!value.is_empty()).then(|| value.to_owned())
}
