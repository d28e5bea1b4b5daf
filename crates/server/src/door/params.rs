//! Parameters in the address. Unknown ones are refused where the type says so.

use axum::extract::{FromRequestParts, Query};
use http::request::Parts;
use serde::de::DeserializeOwned;

use crate::problem::{Code, Problem};
use crate::service::Service;

/// The parameters of a request.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Service> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Service) -> Result<Self, Problem> {
        match Query::<T>::try_from_uri(&parts.uri) {
            Ok(Query(params)) => Ok(Self(params)),
            Err(rejection) => {
                let text = rejection.body_text();
                let what = text.split_once(": ").map_or(text.as_str(), |(_, rest)| rest);
                let name = what.split_once(": ").map(|(name, _)| name.to_owned());
                let problem = Problem::new(Code::InvalidField, what);
                Err(match name {
                    Some(name) => problem.at(name),
                    None => problem,
                })
            }
        }
    }
}
