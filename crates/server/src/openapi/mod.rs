//! The OpenAPI 3.1 document, generated from the handlers and the API types.
//!
//! A handler documents its own input, success responses and errors. This module adds what all handlers share: common
//! errors ([`problems`]), constraints between fields ([`schemas`]) and links ([`links`]).
//! The middleware rejects input that the document does not list: see [`accepted_input`].

pub(crate) mod accepted_input;
pub(crate) mod docs_page;
mod links;
pub(crate) mod problems;
mod schemas;

use std::sync::Arc;

use axum::{
    body::Bytes,
    extract::State,
    http::{Method, header},
    response::IntoResponse,
};
use orchestrix_api::{
    Problem,
    schema::{AuditText, JobStates, KeyIdText, Token},
};
use serde_json::{Map, Value, json};
use utoipa::OpenApi;

use crate::{
    App,
    route_policy::{AllowedRoles, route_policy},
};
use accepted_input::OperationIndex;
use problems::{
    CommonErrors, Forbidden, InternalError, Invalid, InvalidOrKeyReused, JobFinished, JobNotFound, KeyNotFound,
    LeaseLost, Malformed, NoMetrics, NoResult, NotRetryable, OperationNotFound, QueueNotFound, RateLimited,
    ScheduleNotFound, TenantNotFound, TooLarge, TooManyOperations, Unauthenticated, Unavailable, UnsupportedMediaType,
    WorkerNotFound,
};

/// The tag of requests about the server itself, which bypass admission.
pub(crate) const OPERATIONS: &str = "operations";

/// The parts of the document outside the operations.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Orchestrix",
        description = "Distributed job orchestration. JSON is camelCase, times are RFC 3339 in UTC, durations are numbers \
            of seconds. In a request, `null` means absent unless a field says otherwise, and an unknown field or \
            parameter is an error. An operation without a documented body accepts `{}`. Every response has an \
            `x-request-id` header: the id of the request if it is 1 to 128 visible ASCII characters, or a generated \
            one. Errors are RFC 9457 problems with a stable `code`.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    tags(
        (name = "jobs", description = "Enqueue jobs and follow their status."),
        (name = "schedules", description = "Enqueue jobs on a recurring schedule."),
        (name = "workers", description = "Run jobs, in any language."),
        (name = "admin", description = "Inspect and operate the system."),
        (name = "operations", description = "Health, metrics and documentation of the server."),
    ),
    components(
        schemas(AuditText, JobStates, KeyIdText, Problem, Token),
        responses(
            Forbidden, InternalError, Invalid, InvalidOrKeyReused, JobFinished, JobNotFound, KeyNotFound, LeaseLost,
            Malformed, NoMetrics, NoResult, NotRetryable, OperationNotFound, QueueNotFound, RateLimited,
            ScheduleNotFound, TenantNotFound, TooLarge, TooManyOperations, Unauthenticated, Unavailable,
            UnsupportedMediaType, WorkerNotFound
        ),
    ),
)]
pub(crate) struct Api;

/// The document as it is served.
pub(crate) struct Document {
    text: Bytes,
    pub(crate) operations: OperationIndex,
}

impl Document {
    /// Completes the document that the routes generate.
    pub(crate) fn new(api: &utoipa::openapi::OpenApi) -> Self {
        let mut document = serde_json::to_value(api).expect("an OpenAPI document serializes to JSON");
        complete(&mut document);
        let operations = OperationIndex::new(&mut document);
        Self { text: document.to_string().into(), operations }
    }
}

/// Retrieves the OpenAPI document of this API.
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = OPERATIONS,
    operation_id = "getDescription",
    responses((status = 200, description = "The OpenAPI 3.1 document.", body = serde_json::Value)),
)]
pub(crate) async fn openapi(State(app): State<Arc<App>>) -> impl IntoResponse {
    let document = app.document.get().map_or_else(Bytes::new, |document| document.text.clone());
    ([(header::CONTENT_TYPE, "application/json")], document)
}

fn complete(document: &mut Value) {
    let components = &mut document["components"];
    components["responses"] = Value::Object(problems::responses());
    components["headers"] = json!({
        "x-request-id": {
            "description": "The request id, which also appears in the server's log.",
            "required": true,
            "schema": {"type": "string", "minLength": 1, "maxLength": 128},
        },
        "Retry-After": {
            "description": "The number of seconds to wait before retrying.",
            "required": true,
            "schema": {"type": "integer", "minimum": 0},
        },
    });
    schemas::complete(document);
    links::add_links(document);
    add_security_scheme(document);
    for (path, method, operation) in operations(document) {
        let needs_key = needs_key(path, method);
        if needs_key {
            operation.insert("security".into(), json!([{"key": []}]));
        }
        let common = CommonErrors {
            needs_key,
            admitted: operation["tags"] != json!([OPERATIONS]),
            may_have_body: matches!(method.as_str(), "post" | "put" | "delete"),
        };
        let Some(responses) = operation["responses"].as_object_mut() else { continue };
        for (status, name) in problems::common(common) {
            let reference = || json!({"$ref": format!("#/components/responses/{name}")});
            responses.entry(status.as_str()).or_insert_with(reference);
        }
        responses.values_mut().for_each(add_request_id);
    }
    let problems = document["components"]["responses"].as_object_mut();
    problems.into_iter().flat_map(Map::values_mut).for_each(add_request_id);
}

// Documents the default. A server started with `--no-auth` requires no key.
fn needs_key(path: &str, method: &str) -> bool {
    route_policy(&self::method(method), Some(path)).roles != AllowedRoles::Public
}

fn method(name: &str) -> Method {
    Method::from_bytes(name.to_ascii_uppercase().as_bytes()).unwrap_or_default()
}

fn add_security_scheme(document: &mut Value) {
    document["components"]["securitySchemes"] = json!({
        "key": {
            "type": "http",
            "scheme": "bearer",
            "description": "An API key. A server started with `--no-auth` requires none.",
        },
    });
}

fn operations(document: &mut Value) -> impl Iterator<Item = (&String, &String, &mut Map<String, Value>)> {
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    let paths = paths.filter_map(|(path, methods)| Some((path, methods.as_object_mut()?)));
    paths.flat_map(|(path, methods)| {
        methods.iter_mut().filter_map(move |(method, operation)| Some((path, method, operation.as_object_mut()?)))
    })
}

// Adds the header to inline responses. A referenced response gets it in the components.
fn add_request_id(response: &mut Value) {
    if response.get("$ref").is_none() {
        response["headers"]["x-request-id"] = json!({"$ref": "#/components/headers/x-request-id"});
    }
}
