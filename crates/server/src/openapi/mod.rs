//! The description of the API, OpenAPI 3.1, made of what stands beside the handlers and the types.
//!
//! Handlers say what is their own: what they take, what they answer when all is well, and which problems only they know.
//! What follows from how every request is treated is added here, once: see [`problems`], [`requests`] and [`links`].

pub(crate) mod docs;
mod links;
pub(crate) mod problems;
mod requests;

use std::sync::Arc;

use axum::{Extension, http::header, response::IntoResponse};
use orchestrix_api::{
    Problem,
    schema::{AuditText, States, Token},
};
use serde_json::{Map, Value, json};
use utoipa::OpenApi;

use problems::{
    Away, Fault, Finished, Invalid, InvalidOrReused, Lost, Malformed, NoResult, NoSuchJob, NoSuchOperation,
    NoSuchQueue, NoSuchSchedule, NoSuchWorker, NotForYou, NotJson, NotKept, NotRetryable, Takes, TooLarge, TooMany,
    TooManyAtOnce,
};

/// Requests that are about the server itself; they pass the gate by.
pub(crate) const OPERATIONS: &str = "operations";

/// What is said before any operation.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Orchestrix",
        description = "Work done later, surely, and visibly. JSON is camelCase, times are RFC 3339 in UTC, durations are seconds. In a \
            request a field that is null is one that is left out, and a field that nobody knows is a mistake. Every answer carries \
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
        schemas(AuditText, Problem, States, Token),
        responses(
            Away, Fault, Finished, Invalid, InvalidOrReused, Lost, Malformed, NoResult, NoSuchJob, NoSuchOperation, NoSuchQueue,
            NoSuchSchedule, NoSuchWorker, NotForYou, NotJson, NotKept, NotRetryable, TooLarge, TooMany, TooManyAtOnce
        ),
    ),
)]
pub(crate) struct Api;

/// The description as it is served.
#[derive(Clone)]
pub(crate) struct Document(Arc<str>);

impl Document {
    /// Completes what the routes say of themselves.
    pub(crate) fn of(api: &utoipa::openapi::OpenApi) -> Self {
        let mut document = serde_json::to_value(api).expect("a description has string keys only");
        complete(&mut document);
        Self(document.to_string().into())
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
pub(crate) async fn openapi(Extension(document): Extension<Document>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], document.0.to_string())
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
    for (method, operation) in operations(document) {
        let parameters = operation.get("parameters").and_then(Value::as_array);
        let takes = Takes {
            worked_on: operation["tags"] != json!([OPERATIONS]),
            has_body: operation.contains_key("requestBody"),
            may_have_body: matches!(method.as_str(), "post" | "put"),
            has_query: parameters.is_some_and(|all| all.iter().any(|parameter| parameter["in"] == "query")),
        };
        let Some(answers) = operation["responses"].as_object_mut() else { continue };
        for (status, name) in problems::shared(takes) {
            let answer = || json!({"$ref": format!("#/components/responses/{name}")});
            answers.entry(status.as_str()).or_insert_with(answer);
        }
        answers.values_mut().for_each(add_request_id);
    }
    let problems = document["components"]["responses"].as_object_mut();
    problems.into_iter().flat_map(Map::values_mut).for_each(add_request_id);
}

fn operations(document: &mut Value) -> impl Iterator<Item = (&String, &mut Map<String, Value>)> {
    let paths = document["paths"].as_object_mut();
    let paths = paths.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut);
    paths.flatten().filter_map(|(method, operation)| Some((method, operation.as_object_mut()?)))
}

// What a reference points to is dealt with where it lies.
fn add_request_id(answer: &mut Value) {
    if answer.get("$ref").is_none() {
        answer["headers"]["x-request-id"] = json!({"$ref": "#/components/headers/x-request-id"});
    }
}
