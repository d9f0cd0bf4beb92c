//! What is sent beyond what a route takes is refused before anything is done, for every route there is.

use axum::http::StatusCode;
use orchestrix_core::JobState;
use orchestrix_store::{AuditFilter, PageRequest};
use serde_json::{Value, json};

use crate::place::Place;

/// Every operation that is worked on, as a request about nothing that is there, and whether it takes a body.
async fn operations(place: &Place) -> Vec<(String, bool)> {
    let (_, described) = place.ask("GET /openapi.json", None, &json!({})).await;
    let mut all = Vec::new();
    for (path, methods) in described["paths"].as_object().unwrap() {
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

/// The fields that a refusal names.
fn named(what: &str, (status, problem): (StatusCode, Value)) -> Vec<String> {
    assert_eq!((status.as_u16(), &problem["code"]), (422, &json!("validation_failed")), "{what}: {problem}");
    let errors = problem["errors"].as_array().unwrap().iter();
    errors.map(|error| error["field"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_parameter_that_a_route_does_not_know_is_named() {
    let place = Place::new();
    let admin = place.key("admin", None).await;
    for (what, _) in operations(&place).await {
        let answer = place.ask(&format!("{what}?foo=1"), Some(&admin), &json!({})).await;
        assert_eq!(named(&what, answer), ["foo"], "{what}");
    }
    // What is about the server itself may be asked by those who put something there.
    for what in ["GET /healthz?foo=1", "GET /metrics?foo=1", "GET /docs/?foo=1"] {
        assert_eq!(place.ask(what, Some(&admin), &json!({})).await.0, StatusCode::OK, "{what}");
    }
}

#[tokio::test]
async fn a_parameter_that_stands_there_twice_is_named() {
    let place = Place::new();
    let admin = place.key("admin", None).await;
    for what in [
        "GET /admin/jobs?limit=5&limit=5",
        "GET /schedules?limit=5&limit=6",
        "GET /schedules/x/occurrences?limit=5&limit=5",
    ] {
        assert_eq!(named(what, place.ask(what, Some(&admin), &json!({})).await), ["limit"], "{what}");
    }
    let twice = "GET /admin/audit?actor=a&actor=b";
    assert_eq!(named(twice, place.ask(twice, Some(&admin), &json!({})).await), ["actor"]);
    let twice = "GET /jobs/x?waitSeconds=1&waitSeconds=2";
    assert_eq!(named(twice, place.ask(twice, Some(&admin), &json!({})).await), ["waitSeconds"]);
    let (status, _) = place.ask("GET /admin/jobs?state=dead&state=running", Some(&admin), &json!({})).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn a_body_where_none_is_taken_is_refused_unless_it_says_nothing() {
    let place = Place::new();
    let admin = place.key("admin", None).await;
    let mut without = Vec::new();
    for (what, _) in operations(&place).await.into_iter().filter(|(what, body)| !body && !what.starts_with("GET ")) {
        let answer = place.ask(&what, Some(&admin), &json!({"dryRun": true, "x": null})).await;
        let mut fields = named(&what, answer);
        fields.sort_unstable();
        assert_eq!(fields, ["dryRun", "x"], "{what}");
        for malformed in [json!([]), json!(null), json!("{}")] {
            let (status, problem) = place.ask(&what, Some(&admin), &malformed).await;
            assert_eq!((status.as_u16(), &problem["code"]), (400, &json!("malformed_request")), "{what} {malformed}");
            assert_eq!(problem["detail"], "the body must be a JSON object");
        }
        let (status, problem) = place.ask(&what, Some(&admin), &json!({})).await;
        assert!(status != 422 && status != 400, "{what}: {problem}");
        without.push(what);
    }
    let known = ["POST /jobs/x/cancel", "POST /admin/jobs/x/retry", "DELETE /admin/keys/x", "DELETE /schedules/x"];
    assert!(known.iter().all(|what| without.iter().any(|one| one == what)), "{without:?}");
}

#[tokio::test]
async fn what_is_refused_for_its_form_is_not_done() {
    let place = Place::new();
    let admin = place.key("admin", None).await;
    let (pending, dead) = (place.job("default").await, place.dead_job("default").await);
    place.schedule("s", "default").await;
    for what in [
        format!("POST /jobs/{pending}/cancel"),
        format!("POST /admin/jobs/{pending}/cancel"),
        format!("POST /admin/jobs/{dead}/retry"),
        "DELETE /schedules/s".into(),
    ] {
        let answer = place.ask(&what, Some(&admin), &json!({"dryRun": true})).await;
        assert_eq!(named(&what, answer), ["dryRun"]);
        let answer = place.ask(&format!("{what}?dryRun=true"), Some(&admin), &json!({})).await;
        assert_eq!(named(&what, answer), ["dryRun"]);
    }
    assert_eq!((place.state(&pending).await, place.state(&dead).await), (JobState::Pending, JobState::Dead));
    assert_eq!(place.ask("GET /schedules/s", Some(&admin), &json!({})).await.0, StatusCode::OK);
    // Nor by a route that takes a body.
    let answer = place.ask("PUT /admin/queues/q?dryRun=true", Some(&admin), &json!({"paused": true})).await;
    assert_eq!(named("queue", answer), ["dryRun"]);
    assert!(place.store.paused_queues().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_method_that_a_route_does_not_have_does_nothing_that_the_audit_should_know() {
    let place = Place::new();
    let admin = place.key("admin", None).await;
    let written = async || {
        place.store.list_audit_entries(&AuditFilter::default(), &PageRequest::first(100)).await.unwrap().items.len()
    };
    let before = written().await;
    for what in
        ["PATCH /admin/keys", "POST /admin/jobs", "PUT /admin/jobs/bulk", "POST /schedules", "PUT /worker/leases"]
    {
        let (status, problem) = place.ask(what, Some(&admin), &json!({"action": "cancel"})).await;
        assert_eq!((status.as_u16(), &problem["code"]), (405, &json!("method_not_allowed")), "{what}");
    }
    assert_eq!(written().await, before);
}
