//! What stands in the path and behind the question mark.

use std::convert::Infallible;

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
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(text)) => Ok(Self(text)),
            // Not UTF-8: a name that nothing can have, so whoever looks for it says what is not there.
            Err(_) => Ok(Self(char::REPLACEMENT_CHARACTER.into())),
        }
    }
}

/// What stands behind the question mark, as texts. What cannot be read is a problem like any other.
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
