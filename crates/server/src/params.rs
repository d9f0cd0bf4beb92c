//! What stands in the path and behind the question mark. What cannot be read is a problem like any other.

use axum::{
    extract::{FromRequestParts, Path, Query},
    http::request::Parts,
};
use orchestrix_api::Code;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

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

/// The same as one JSON object of texts, to be read as a body is: so everything wrong is told at once. What is asked several
/// times is joined by commas.
pub(crate) struct Params(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let Asked(pairs) = Asked::<Vec<(String, String)>>::from_request_parts(parts, state).await?;
        let mut object = Map::new();
        for (name, text) in pairs {
            let joined = match object.get(&name).and_then(Value::as_str) {
                Some(before) => format!("{before},{text}"),
                None => text,
            };
            object.insert(name, joined.into());
        }
        Ok(Self(Value::from(object).to_string()))
    }
}
