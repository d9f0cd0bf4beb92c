//! Access control: every route, called by every role, on resources of its own tenant and of others.

mod all_routes;
mod dependencies;
mod lists;
mod table;

use axum::http::StatusCode;
use orchestrix_core::JobState;
use orchestrix_store::{JobFilter, PageRequest};
use serde_json::{Value, json};

use crate::test_server::TestServer;

#[tokio::test]
async fn a_key_bound_to_a_tenant_acts_in_that_tenant_only() {
    let server = TestServer::new();
    let key = server.create_key("operator", Some("acme")).await;
    let key = Some(key.as_str());
    let dead = server.enqueue_dead_job("other").await;
    server.create_schedule("theirs", "other").await;
    let count_jobs = async || {
        let page = server.store.list_jobs(&JobFilter::default(), &PageRequest::first(1_000)).await.unwrap();
        page.items.len()
    };
    let before = count_jobs().await;
    // A request that names another tenant is forbidden and has no effect.
    for (request, body) in [
        ("POST /jobs", json!({"jobType": "t", "tenant": "other"})),
        ("POST /jobs", json!({"jobType": "t", "tenant": "default"})),
        ("POST /jobs/batch", json!({"jobs": [{"jobType": "t"}, {"jobType": "t", "tenant": "other"}]})),
        ("PUT /schedules/mine", json!({"everySeconds": 60, "job": {"jobType": "t", "tenant": "other"}})),
        ("GET /admin/jobs?tenant=other", json!({})),
        ("GET /admin/dlq?tenant=other", json!({})),
        ("GET /admin/audit?tenant=other", json!({})),
        ("POST /admin/dlq/redrive", json!({"filter": {"tenant": "other"}})),
        ("POST /admin/jobs/bulk", json!({"action": "cancel", "filter": {"tenant": "other"}})),
    ] {
        let (status, response) = server.request(request, key, &body).await;
        assert_eq!(
            (status, response["code"].as_str()),
            (StatusCode::FORBIDDEN, Some("forbidden")),
            "{request} {body}: {response}"
        );
    }
    // A job of another tenant is not found, like one that does not exist.
    let unknown = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70";
    let (status, response) = server.request("POST /admin/dlq/redrive", key, &json!({"jobIds": [dead, unknown]})).await;
    assert_eq!(status, StatusCode::OK, "{response}");
    let codes: Vec<&str> =
        response["refused"].as_array().unwrap().iter().map(|job| job["code"].as_str().unwrap()).collect();
    assert_eq!((codes, &response["retried"]), (vec!["job_not_found", "job_not_found"], &json!([])));
    let (_, response) = server.request("POST /admin/dlq/redrive", key, &json!({"all": true})).await;
    assert_eq!(response["retried"], json!([]));
    assert_eq!((count_jobs().await, server.job_state(&dead).await), (before, JobState::Dead));
    // A request without a tenant acts in the tenant of the key, and lists show that tenant only.
    let (status, response) = server.request("POST /jobs", key, &json!({"jobType": "t"})).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{response}");
    let own = response["jobId"].as_str().unwrap();
    assert_eq!(server.store.job_summary(own.parse().unwrap()).await.unwrap().unwrap().tenant.as_str(), "acme");
    let (status, _) = server.request(&format!("GET /jobs/{own}"), key, &json!({})).await;
    assert_eq!(status, StatusCode::OK);
    let body = json!({"jobType": "t", "dependsOn": [own], "tenant": "acme"});
    assert_eq!(server.request("POST /jobs", key, &body).await.0, StatusCode::ACCEPTED);
    let body = json!({"everySeconds": 60, "job": {"jobType": "t"}});
    assert_eq!(server.request("PUT /schedules/mine", key, &body).await.0, StatusCode::CREATED);
    let (_, list) = server.request("GET /admin/jobs", key, &json!({})).await;
    assert!(
        list["items"].as_array().unwrap().iter().all(|job| job["tenant"] == "acme") && list["items"][1].is_object()
    );
    // Bulk operations affect the tenant of the key only. Operations and audit entries of other tenants are hidden.
    let theirs = json!({"action": "cancel", "filter": {"state": "pending"}});
    let other = server.create_key("operator", Some("other")).await;
    let (status, response) = server.request("POST /admin/jobs/bulk", Some(&other), &theirs).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{response}");
    let id = response["operationId"].as_str().unwrap();
    let operation = server.store.operation(id.parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(operation.filter.tenant.unwrap().as_str(), "other");
    for request in [format!("GET /admin/operations/{id}"), format!("POST /admin/operations/{id}/abort")] {
        assert_eq!(server.request(&request, key, &json!({})).await.0, StatusCode::NOT_FOUND, "{request}");
        assert_ne!(server.request(&request, Some(&other), &json!({})).await.0, StatusCode::NOT_FOUND, "{request}");
    }
    assert_eq!(server.request("GET /admin/operations", key, &json!({})).await.1["items"], json!([]));
    let (_, list) = server.request("GET /admin/audit", key, &json!({})).await;
    let own = |entry: &Value| entry["tenant"] == "acme" && entry["actor"].as_str().unwrap().starts_with("key:");
    assert!(list["items"].as_array().unwrap().iter().all(own) && list["items"][0].is_object(), "{list}");
    let (_, list) = server.request("GET /schedules", key, &json!({})).await;
    let names: Vec<&str> = list["items"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["mine"]);
}
