//! What each operation takes, read from its description: so what is sent beyond it is known for all of them in one place, and a new one
//! cannot forget to look.

use std::collections::HashMap;

use axum::http::Method;
use serde_json::Value;

/// What an operation takes beside its path and its headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Takes {
    pub(crate) query: bool,
    pub(crate) body: bool,
}

/// What is known of a route and a method.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Described {
    Operation(Takes),
    /// The route is described, and does not have this method.
    NoSuchMethod,
    /// The route is none that is described.
    Nothing,
}

/// The operations by their paths and methods.
pub(crate) struct Operations(HashMap<String, HashMap<Method, Takes>>);

impl Operations {
    pub(super) fn of(document: &mut Value) -> Self {
        let mut paths: HashMap<String, HashMap<Method, Takes>> = HashMap::new();
        for (path, method, operation) in super::operations(document) {
            let parameters = operation.get("parameters").and_then(Value::as_array);
            let takes = Takes {
                query: parameters.is_some_and(|all| all.iter().any(|parameter| parameter["in"] == "query")),
                body: operation.contains_key("requestBody"),
            };
            paths.entry(path.clone()).or_default().insert(super::method(method), takes);
        }
        Self(paths)
    }

    pub(crate) fn find(&self, method: &Method, route: &str) -> Described {
        let Some(methods) = self.0.get(route) else { return Described::Nothing };
        // One that is read can be asked for without its body, too.
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        methods.get(method).map_or(Described::NoSuchMethod, |takes| Described::Operation(*takes))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_an_operation_takes_is_what_is_described() {
        let mut document = json!({"paths": {
            "/a/{id}": {"get": {"parameters": [{"in": "path"}, {"in": "query"}]}, "put": {"requestBody": {}}},
            "/b": {"post": {"parameters": [{"in": "header"}]}},
        }});
        let operations = Operations::of(&mut document);
        let takes = |query, body| Described::Operation(Takes { query, body });
        for (method, route, described) in [
            (Method::GET, "/a/{id}", takes(true, false)),
            (Method::HEAD, "/a/{id}", takes(true, false)),
            (Method::PUT, "/a/{id}", takes(false, true)),
            (Method::DELETE, "/a/{id}", Described::NoSuchMethod),
            (Method::POST, "/b", takes(false, false)),
            (Method::HEAD, "/b", Described::NoSuchMethod),
            (Method::GET, "/c", Described::Nothing),
        ] {
            assert_eq!(operations.find(&method, route), described, "{method} {route}");
        }
    }
}
