//! What stands in the path and behind the question mark. What cannot be read is a problem like any other.

use axum::{
    extract::{FromRequestParts, Path, Query},
    http::request::Parts,
};
use orchestrix_api::Code;
use serde::de::DeserializeOwned;

use crate::refusal::Refusal;

/// The one name or id in the path.
pub(crate) struct Named(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(text)) => Ok(Self(text)),
            Err(_) => Err(Refusal::new(Code::NotFound, "the path is not UTF-8")),
        }
    }
}

/// What stands behind the question mark, as texts.
pub(crate) struct Asked<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(asked)) => Ok(Self(asked)),
            Err(error) => Err(Refusal::new(Code::MalformedRequest, error.body_text())),
        }
    }
}
