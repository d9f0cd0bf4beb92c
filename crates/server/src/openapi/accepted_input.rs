//! Which operations accept a query or a body, according to the OpenAPI document.
//!
//! The middleware rejects undocumented input in one place, so a new handler cannot forget to check.

use std::collections::HashMap;

use axum::http::Method;
use serde_json::Value;

/// The input that an operation accepts beyond its path and headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AcceptedInput {
    pub(crate) query: bool,
    pub(crate) body: bool,
}

/// The result of looking up a route and a method.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OperationLookup {
    Operation(AcceptedInput),
    /// The route is documented without this method.
    MethodNotDocumented,
    /// The route is not documented.
    NotDocumented,
}

/// The documented operations by path and method.
pub(crate) struct OperationIndex(HashMap<String, HashMap<Method, AcceptedInput>>);

impl OperationIndex {
    pub(super) fn new(document: &mut Value) -> Self {
        let mut paths: HashMap<String, HashMap<Method, AcceptedInput>> = HashMap::new();
        for (path, method, operation) in super::operations(document) {
            let parameters = operation.get("parameters").and_then(Value::as_array);
            let input = AcceptedInput {
                query: parameters.is_some_and(|all| all.iter().any(|parameter| parameter["in"] == "query")),
                body: operation.contains_key("requestBody"),
            };
            paths.entry(path.clone()).or_default().insert(super::method(method), input);
        }
        Self(paths)
    }

    pub(crate) fn find(&self, method: &Method, route: &str) -> OperationLookup {
        let Some(methods) = self.0.get(route) else { return OperationLookup::NotDocumented };
        // Every GET route also answers HEAD.
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        methods.get(method).map_or(OperationLookup::MethodNotDocumented, |input| OperationLookup::Operation(*input))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn accepted_input_follows_the_document() {
        let mut document = json!({"paths": {
            "/a/{id}": {"get": {"parameters": [{"in": "path"}, {"in": "query"}]}, "put": {"requestBody": {}}},
            "/b": {"post": {"parameters": [{"in": "header"}]}},
        }});
        let operations = OperationIndex::new(&mut document);
        let input = |query, body| OperationLookup::Operation(AcceptedInput { query, body });
        for (method, route, described) in [
            (Method::GET, "/a/{id}", input(true, false)),
            (Method::HEAD, "/a/{id}", input(true, false)),
            (Method::PUT, "/a/{id}", input(false, true)),
            (Method::DELETE, "/a/{id}", OperationLookup::MethodNotDocumented),
            (Method::POST, "/b", input(false, false)),
            (Method::HEAD, "/b", OperationLookup::MethodNotDocumented),
            (Method::GET, "/c", OperationLookup::NotDocumented),
        ] {
            assert_eq!(operations.find(&method, route), described, "{method} {route}");
        }
    }
}
