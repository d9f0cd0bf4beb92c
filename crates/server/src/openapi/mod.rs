//! The description of the API, OpenAPI 3.1, made of what stands beside the handlers and the types.
//!
//! Handlers say what is their own: what they take, what they answer when all is well, and which problems only they know.
//! What follows from how every request is treated is added here, once: see [`problems`], [`requests`] and [`links`].
//! What they take is held against what is sent: see [`takes`].

pub(crate) mod docs;
mod links;
pub(crate) mod problems;
mod requests;
pub(crate) mod takes;

use std::sync::Arc;

use axum::{
    body::Bytes,
    extract::State,
    http::{Method, header},
    response::IntoResponse,
};
use orchestrix_api::{
    Problem,
    schema::{AuditText, KeyText, States, Token},
};
use serde_json::{Map, Value, json};
use utoipa::OpenApi;

use crate::{
    App,
    route_policy::{AllowedRoles, route_policy},
};
use problems::{
    Away, Fault, Finished, Invalid, InvalidOrReused, Lost, Malformed, NoKey, NoResult, NoSuchJob, NoSuchKey,
    NoSuchOperation, NoSuchQueue, NoSuchSchedule, NoSuchWorker, NotForYou, NotJson, NotKept, NotRetryable, Shares,
    TooLarge, TooMany, TooManyAtOnce,
};
use takes::Operations;

/// Requests that are about the server itself; they pass the gate by.
pub(crate) const OPERATIONS: &str = "operations";

/// What is said before any operation.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Orchestrix",
        description = "Work done later, surely, and visibly. JSON is camelCase, times are RFC 3339 in UTC, durations are seconds. In a \
            request a field that is null is one that is left out, and a field or a parameter that nobody knows is a mistake; where no body \
            is described, `{}` may be sent. Every answer carries \
            `x-request-id`: the one that the request came with, if it is 1 to 128 visible ASCII characters, or one of its own. Whatever \
            goes wrong is told as a problem (RFC 9457) with a `code` that never changes.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    tags(
        (name = "jobs", description = "Recording jobs and following them."),
        (name = "schedules", description = "Jobs that are created again and again."),
        (name = "workers", description = "Working on jobs, in any language."),
        (name = "admin", description = "For operators: all of a job, and what can be done about it."),
        (name = "operations", description = "The server itself."),
    ),
    components(
        schemas(AuditText, KeyText, Problem, States, Token),
        responses(
            Away, Fault, Finished, Invalid, InvalidOrReused, Lost, Malformed, NoKey, NoResult, NoSuchJob, NoSuchKey, NoSuchOperation,
            NoSuchQueue, NoSuchSchedule, NoSuchWorker, NotForYou, NotJson, NotKept, NotRetryable, TooLarge, TooMany, TooManyAtOnce
        ),
    ),
)]
pub(crate) struct Api;

/// The description as it is served.
pub(crate) struct Document {
    text: Bytes,
    pub(crate) operations: Operations,
}

impl Document {
    /// Completes what the routes say of themselves.
    pub(crate) fn of(api: &utoipa::openapi::OpenApi) -> Self {
        let mut document = serde_json::to_value(api).expect("a description has string keys only");
        complete(&mut document);
        let operations = Operations::of(&mut document);
        Self { text: document.to_string().into(), operations }
    }
}

/// Describes the API: this document.
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = OPERATIONS,
    operation_id = "getDescription",
    responses((status = 200, description = "The description, OpenAPI 3.1.", body = serde_json::Value)),
)]
pub(crate) async fn openapi(State(app): State<Arc<App>>) -> impl IntoResponse {
    let document = app.document.get().map_or_else(Bytes::new, |document| document.text.clone());
    ([(header::CONTENT_TYPE, "application/json")], document)
}

fn complete(document: &mut Value) {
    let components = &mut document["components"];
    components["responses"] = Value::Object(problems::described());
    components["headers"] = json!({
        "x-request-id": {
            "description": "The id of the request, to be found in the logs.",
            "required": true,
            "schema": {"type": "string", "minLength": 1, "maxLength": 128},
        },
        "Retry-After": {
            "description": "After how many seconds to try again.",
            "required": true,
            "schema": {"type": "integer", "minimum": 0},
        },
    });
    requests::complete(document);
    links::complete(document);
    components_of_keys(document);
    for (path, method, operation) in operations(document) {
        let needs_key = needs_key(path, method);
        if needs_key {
            operation.insert("security".into(), json!([{"key": []}]));
        }
        let shares = Shares {
            needs_key,
            worked_on: operation["tags"] != json!([OPERATIONS]),
            may_have_body: matches!(method.as_str(), "post" | "put" | "delete"),
        };
        let Some(answers) = operation["responses"].as_object_mut() else { continue };
        for (status, name) in problems::shared(shares) {
            let answer = || json!({"$ref": format!("#/components/responses/{name}")});
            answers.entry(status.as_str()).or_insert_with(answer);
        }
        answers.values_mut().for_each(add_request_id);
    }
    let problems = document["components"]["responses"].as_object_mut();
    problems.into_iter().flat_map(Map::values_mut).for_each(add_request_id);
}

// A server that was told to answer whoever asks needs none.
fn needs_key(path: &str, method: &str) -> bool {
    route_policy(&self::method(method), Some(path)).roles != AllowedRoles::Public
}

fn method(word: &str) -> Method {
    Method::from_bytes(word.to_ascii_uppercase().as_bytes()).unwrap_or_default()
}

fn components_of_keys(document: &mut Value) {
    document["components"]["securitySchemes"] = json!({
        "key": {"type": "http", "scheme": "bearer", "description": "An API key. A server that was started with `--no-auth` asks for none."},
    });
}

fn operations(document: &mut Value) -> impl Iterator<Item = (&String, &String, &mut Map<String, Value>)> {
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    let paths = paths.filter_map(|(path, methods)| Some((path, methods.as_object_mut()?)));
    paths.flat_map(|(path, methods)| {
        methods.iter_mut().filter_map(move |(method, operation)| Some((path, method, operation.as_object_mut()?)))
    })
}

// What a reference points to is dealt with where it lies.
fn add_request_id(answer: &mut Value) {
    if answer.get("$ref").is_none() {
        answer["headers"]["x-request-id"] = json!({"$ref": "#/components/headers/x-request-id"});
    }
}
