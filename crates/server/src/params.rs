//! Path and query parameters.

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

use crate::api_error::ApiError;

/// The single parameter in the path: a name or an id.
pub(crate) struct PathParam(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for PathParam {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(text)) => Ok(Self(text)),
            // Not UTF-8. No name contains this character, so the handler answers that nothing was found.
            Err(_) => Ok(Self(char::REPLACEMENT_CHARACTER.into())),
        }
    }
}

/// The only query parameter that may be repeated, which means the same as one value with commas.
const REPEATABLE: &str = "state";

/// The query parameters as a JSON object of strings. Handlers parse it like a body, so that one response lists all
/// errors.
#[derive(Debug)]
pub(crate) struct QueryParams(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for QueryParams {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Self::parse(&parts.uri)
    }
}

impl QueryParams {
    fn parse(uri: &Uri) -> Result<Self, ApiError> {
        let malformed = |detail: String| ApiError::new(Code::MalformedRequest, detail);
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|_| malformed("the query string is malformed".into()))?;
        if pairs.len() > MAX_FIELDS {
            return Err(malformed(format!("the query has more than {MAX_FIELDS} parameters")));
        }
        let (mut object, mut repeated) = (Map::new(), BTreeSet::new());
        for (name, text) in pairs {
            match object.get_mut(&name) {
                None => drop(object.insert(name, text.into())),
                Some(Value::String(before)) if name == REPEATABLE => *before = format!("{before},{text}"),
                // Taking one of the values would silently ignore the other.
                Some(_) => drop(repeated.insert(name)),
            }
        }
        let errors = repeated.iter().map(|name| FieldError::new(truncate_name(name), "must not be repeated"));
        Invalid::check(errors.collect()).map_err(Problem::invalid)?;
        Ok(Self(Value::from(object).to_string()))
    }

    /// Rejects all query parameters, for an operation that has none.
    pub(crate) fn ensure_empty(uri: &Uri) -> Result<(), ApiError> {
        if uri.query().is_none_or(str::is_empty) {
            return Ok(());
        }
        let Self(text) = Self::parse(uri)?;
        let object = ObjectReader::parse(&text).map_err(RequestError::from)?;
        Ok(object.finish().map_err(RequestError::from)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(parsed: Result<impl std::fmt::Debug, ApiError>) -> Vec<(String, String)> {
        let errors = parsed.unwrap_err().problem.errors;
        errors.into_iter().map(|error| (error.field, error.message)).collect()
    }

    fn uri(query: &str) -> Uri {
        format!("/x?{query}").parse().unwrap()
    }

    #[test]
    fn only_states_may_be_repeated() {
        let parse = |query: &str| QueryParams::parse(&uri(query)).map(|params| params.0);
        assert_eq!(parse("state=dead&q=a%2Cb&state=running").unwrap(), r#"{"q":"a,b","state":"dead,running"}"#);
        let repeated = |name: &str| (name.to_owned(), "must not be repeated".to_owned());
        assert_eq!(errors(parse("q=a&limit=5&q=b&limit=5&q=c&state=dead")), [repeated("limit"), repeated("q")]);
        let long = "x".repeat(5_000);
        assert!(errors(parse(&format!("{long}&{long}")))[0].0.len() < 100);
        let many: Vec<String> = (0..=MAX_FIELDS).map(|n| format!("p{n}=1")).collect();
        assert_eq!(parse(&many.join("&")).unwrap_err().problem.code, Code::MalformedRequest);
    }

    #[test]
    fn where_no_parameter_is_accepted_the_error_names_all_of_them() {
        for empty in ["/x", "/x?", "/x?&"] {
            QueryParams::ensure_empty(&empty.parse().unwrap()).unwrap();
        }
        let unknown = |name: &str| (name.to_owned(), "is not known".to_owned());
        let mut named = errors(QueryParams::ensure_empty(&uri("foo=1&dryRun=true&bar")));
        named.sort_unstable();
        assert_eq!(named, [unknown("bar"), unknown("dryRun"), unknown("foo")]);
    }
}
