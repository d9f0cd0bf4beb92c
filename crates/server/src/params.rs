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
        let text = Path::<String>::from_request_parts(parts, state).await;
        // What is not UTF-8 is no name of anything, which is for whoever looks for one to say.
        Ok(text.map_or_else(|_| Self(char::REPLACEMENT_CHARACTER.into()), |Path(text)| Self(text)))
    }
}

/// What stands behind the question mark, as texts.
pub(crate) struct Asked<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(asked)) => Ok(Self(asked)),
            // Texts take whatever is there, so it can only be there twice.
            Err(_) => Err(Refusal::new(Code::MalformedRequest, "a parameter of the query stands there twice")),
        }
    }
}
