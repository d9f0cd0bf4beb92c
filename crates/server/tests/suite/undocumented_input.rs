//! Every route rejects undocumented query parameters and bodies before it acts.

use axum::http::StatusCode;
use orchestrix_core::JobState;
use orchestrix_store::{AuditFilter, PageRequest};
use serde_json::{Value, json};

use crate::test_server::TestServer;

/// Every operation that passes admission, as a request about an unknown resource, and whether it accepts a body.
async fn operations(server: &TestServer) -> Vec<(String, bool)> {
    let (_, document) = server.request("GET /openapi.json", None, &json!({})).await;
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let path = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
        let path = path.collect::<Vec<_>>().join("/");
        for (method, operation) in methods.as_object().unwrap() {
            if operation["tags"] != json!(["operations"]) {
                all.push((format!("{} {path}", method.to_uppercase()), operation.get("requestBody").is_some()));
            }
        }
    }
    assert!(all.len() > 40, "{all:?}");
    all
}

/// The invalid fields that a 422 lists.
fn invalid_fields(request: &str, (status, problem): (StatusCode, Value)) -> Vec<String> {
    assert_eq!((status.as_u16(), &problem["code"]), (422, &json!("validation_failed")), "{request}: {problem}");
    let errors = problem["errors"].as_array().unwrap().iter();
    errors.map(|error| error["field"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn unknown_query_parameters_are_rejected() {
    let server = TestServer::new();
    let admin = server.create_key("admin", None).await;
    for (request, _) in operations(&server).await {
        let response = server.request(&format!("{request}?foo=1"), Some(&admin), &json!({})).await;
        assert_eq!(invalid_fields(&request, response), ["foo"], "{request}");
    }
    // Requests about the server itself ignore the query: monitoring tools add parameters.
    for request in ["GET /healthz?foo=1", "GET /metrics?foo=1", "GET /docs/?foo=1"] {
        assert_eq!(server.request(request, Some(&admin), &json!({})).await.0, StatusCode::OK, "{request}");
    }
}

#[tokio::test]
async fn repeated_query_parameters_are_rejected() {
    let server = TestServer::new();
    let admin = server.create_key("admin", None).await;
    for request in [
        "GET /admin/jobs?limit=5&limit=5",
        "GET /schedules?limit=5&limit=6",
        "GET /schedules/x/occurrences?limit=5&limit=5",
    ] {
        assert_eq!(
            invalid_fields(request, server.request(request, Some(&admin), &json!({})).await),
            ["limit"],
            "{request}"
        );
    }
    let repeated = "GET /admin/audit?actor=a&actor=b";
    assert_eq!(invalid_fields(repeated, server.request(repeated, Some(&admin), &json!({})).await), ["actor"]);
    let repeated = "GET /jobs/x?waitSeconds=1&waitSeconds=2";
    assert_eq!(invalid_fields(repeated, server.request(repeated, Some(&admin), &json!({})).await), ["waitSeconds"]);
    let (status, _) = server.request("GET /admin/jobs?state=dead&state=running", Some(&admin), &json!({})).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn a_body_is_rejected_where_none_is_documented_unless_it_is_empty() {
    let server = TestServer::new();
    let admin = server.create_key("admin", None).await;
    let mut without_body = Vec::new();
    for (request, _) in
        operations(&server).await.into_iter().filter(|(request, body)| !body && !request.starts_with("GET "))
    {
        let response = server.request(&request, Some(&admin), &json!({"dryRun": true, "x": null})).await;
        let mut fields = invalid_fields(&request, response);
        fields.sort_unstable();
        assert_eq!(fields, ["dryRun", "x"], "{request}");
        for malformed in [json!([]), json!(null), json!("{}")] {
            let (status, problem) = server.request(&request, Some(&admin), &malformed).await;
            assert_eq!(
                (status.as_u16(), &problem["code"]),
                (400, &json!("malformed_request")),
                "{request} {malformed}"
            );
            assert_eq!(problem["detail"], "the body must be a JSON object");
        }
        let (status, problem) = server.request(&request, Some(&admin), &json!({})).await;
        assert!(status != 422 && status != 400, "{request}: {problem}");
        without_body.push(request);
    }
    let known = ["POST /jobs/x/cancel", "POST /admin/jobs/x/retry", "DELETE /admin/keys/x", "DELETE /schedules/x"];
    assert!(known.iter().all(|request| without_body.iter().any(|one| one == request)), "{without_body:?}");
}

#[tokio::test]
async fn a_request_with_undocumented_input_has_no_effect() {
    let server = TestServer::new();
    let admin = server.create_key("admin", None).await;
    let (pending, dead) = (server.enqueue_job("default").await, server.enqueue_dead_job("default").await);
    server.create_schedule("s", "default").await;
    for request in [
        format!("POST /jobs/{pending}/cancel"),
        format!("POST /admin/jobs/{pending}/cancel"),
        format!("POST /admin/jobs/{dead}/retry"),
        "DELETE /schedules/s".into(),
    ] {
        let response = server.request(&request, Some(&admin), &json!({"dryRun": true})).await;
        assert_eq!(invalid_fields(&request, response), ["dryRun"]);
        let response = server.request(&format!("{request}?dryRun=true"), Some(&admin), &json!({})).await;
        assert_eq!(invalid_fields(&request, response), ["dryRun"]);
    }
    assert_eq!((server.job_state(&pending).await, server.job_state(&dead).await), (JobState::Pending, JobState::Dead));
    assert_eq!(server.request("GET /schedules/s", Some(&admin), &json!({})).await.0, StatusCode::OK);
    // The same holds for a route that accepts a body.
    let response = server.request("PUT /admin/queues/q?dryRun=true", Some(&admin), &json!({"paused": true})).await;
    assert_eq!(invalid_fields("queue", response), ["dryRun"]);
    assert!(server.store.paused_queues().await.unwrap().is_empty());
}

#[tokio::test]
async fn an_unsupported_method_writes_no_audit_entry() {
    let server = TestServer::new();
    let admin = server.create_key("admin", None).await;
    let count_entries = async || {
        server.store.list_audit_entries(&AuditFilter::default(), &PageRequest::first(100)).await.unwrap().items.len()
    };
    let before = count_entries().await;
    for request in
        ["PATCH /admin/keys", "POST /admin/jobs", "PUT /admin/jobs/bulk", "POST /schedules", "PUT /worker/leases"]
    {
        let (status, problem) = server.request(request, Some(&admin), &json!({"action": "cancel"})).await;
        assert_eq!((status.as_u16(), &problem["code"]), (405, &json!("method_not_allowed")), "{request}");
    }
    assert_eq!(count_entries().await, before);
}
