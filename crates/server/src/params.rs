//! What stands in the path and behind the question mark.

use std::{collections::BTreeSet, convert::Infallible};

use axum::{
    extract::{FromRequestParts, Path, Query},
    http::{Uri, request::Parts},
};
use orchestrix_api::{
    Code, ObjectReader, Problem, RequestError,
    object_reader::{MAX_FIELDS, truncate_name},
};
use orchestrix_core::{FieldError, Invalid};
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

/// The one parameter that may stand there several times, which is the same as once with commas.
const SEVERAL: &str = "state";

/// What stands behind the question mark, as one JSON object of texts, to be read as a body is: so everything wrong is told at once.
#[derive(Debug)]
pub(crate) struct Params(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        Self::of(&parts.uri)
    }
}

impl Params {
    fn of(uri: &Uri) -> Result<Self, Refusal> {
        let malformed = |detail: String| Refusal::new(Code::MalformedRequest, detail);
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|_| malformed("the query cannot be read".into()))?;
        if pairs.len() > MAX_FIELDS {
            return Err(malformed(format!("the query has more than {MAX_FIELDS} parameters")));
        }
        let (mut object, mut twice) = (Map::new(), BTreeSet::new());
        for (name, text) in pairs {
            match object.get_mut(&name) {
                None => drop(object.insert(name, text.into())),
                Some(Value::String(before)) if name == SEVERAL => *before = format!("{before},{text}"),
                // Whichever of them was taken, the other would be passed over.
                Some(_) => drop(twice.insert(name)),
            }
        }
        let twice = twice.iter().map(|name| FieldError::new(truncate_name(name), "stands there twice"));
        Invalid::check(twice.collect()).map_err(Problem::invalid)?;
        Ok(Self(Value::from(object).to_string()))
    }

    /// Refuses whatever is asked where nothing can be.
    pub(crate) fn none(uri: &Uri) -> Result<(), Refusal> {
        if uri.query().is_none_or(str::is_empty) {
            return Ok(());
        }
        let Self(text) = Self::of(uri)?;
        let asked = ObjectReader::parse(&text).map_err(RequestError::from)?;
        Ok(asked.finish().map_err(RequestError::from)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bad(read: Result<impl std::fmt::Debug, Refusal>) -> Vec<(String, String)> {
        let errors = read.unwrap_err().0.errors;
        errors.into_iter().map(|error| (error.field, error.message)).collect()
    }

    fn of(query: &str) -> Uri {
        format!("/x?{query}").parse().unwrap()
    }

    #[test]
    fn states_are_joined_and_nothing_else_is() {
        let read = |query: &str| Params::of(&of(query)).map(|params| params.0);
        assert_eq!(read("state=dead&q=a%2Cb&state=running").unwrap(), r#"{"q":"a,b","state":"dead,running"}"#);
        let twice = |name: &str| (name.to_owned(), "stands there twice".to_owned());
        assert_eq!(bad(read("q=a&limit=5&q=b&limit=5&q=c&state=dead")), [twice("limit"), twice("q")]);
        let long = "x".repeat(5_000);
        assert!(bad(read(&format!("{long}&{long}")))[0].0.len() < 100);
        let many: Vec<String> = (0..=MAX_FIELDS).map(|n| format!("p{n}=1")).collect();
        assert_eq!(read(&many.join("&")).unwrap_err().0.code, Code::MalformedRequest);
    }

    #[test]
    fn where_nothing_can_be_asked_all_that_is_asked_is_named() {
        for nothing in ["/x", "/x?", "/x?&"] {
            Params::none(&nothing.parse().unwrap()).unwrap();
        }
        let unknown = |name: &str| (name.to_owned(), "is not known".to_owned());
        let mut named = bad(Params::none(&of("foo=1&dryRun=true&bar")));
        named.sort_unstable();
        assert_eq!(named, [unknown("bar"), unknown("dryRun"), unknown("foo")]);
    }
}
