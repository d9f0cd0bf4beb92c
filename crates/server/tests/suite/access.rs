//! Who may ask what: every route there is, by everybody there is, about their own and about others' things.

mod lists;
mod parents;
mod table;
mod walk;

use axum::http::StatusCode;
use orchestrix_core::JobState;
use orchestrix_store::{JobFilter, PageRequest};
use serde_json::{Value, json};

use crate::place::Place;

#[tokio::test]
async fn who_is_bound_to_a_tenant_acts_in_it_alone() {
    let place = Place::new();
    let key = place.key("operator", Some("acme")).await;
    let key = Some(key.as_str());
    let dead = place.dead_job("other").await;
    place.schedule("theirs", "other").await;
    let all = async || {
        let page = place.store.list_jobs(&JobFilter::default(), &PageRequest::first(1_000)).await.unwrap();
        page.items.len()
    };
    let before = all().await;
    // Whatever names another is forbidden, and nothing of it is done.
    for (what, body) in [
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
        let (status, answer) = place.ask(what, key, &body).await;
        assert_eq!(
            (status, answer["code"].as_str()),
            (StatusCode::FORBIDDEN, Some("forbidden")),
            "{what} {body}: {answer}"
        );
    }
    // A job of another is as unknown as one that never was.
    let unknown = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70";
    let (status, answer) = place.ask("POST /admin/dlq/redrive", key, &json!({"jobIds": [dead, unknown]})).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let codes: Vec<&str> =
        answer["refused"].as_array().unwrap().iter().map(|job| job["code"].as_str().unwrap()).collect();
    assert_eq!((codes, &answer["retried"]), (vec!["job_not_found", "job_not_found"], &json!([])));
    let (_, answer) = place.ask("POST /admin/dlq/redrive", key, &json!({"filter": {}})).await;
    assert_eq!(answer["retried"], json!([]));
    assert_eq!((all().await, place.state(&dead).await), (before, JobState::Dead));
    // What names none is their own, and their own is all they see.
    let (status, answer) = place.ask("POST /jobs", key, &json!({"jobType": "t"})).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    let own = answer["jobId"].as_str().unwrap();
    assert_eq!(place.store.job_summary(own.parse().unwrap()).await.unwrap().unwrap().tenant.as_str(), "acme");
    let (status, _) = place.ask(&format!("GET /jobs/{own}"), key, &json!({})).await;
    assert_eq!(status, StatusCode::OK);
    let body = json!({"jobType": "t", "dependsOn": [own], "tenant": "acme"});
    assert_eq!(place.ask("POST /jobs", key, &body).await.0, StatusCode::ACCEPTED);
    let body = json!({"everySeconds": 60, "job": {"jobType": "t"}});
    assert_eq!(place.ask("PUT /schedules/mine", key, &body).await.0, StatusCode::CREATED);
    let (_, list) = place.ask("GET /admin/jobs", key, &json!({})).await;
    assert!(
        list["items"].as_array().unwrap().iter().all(|job| job["tenant"] == "acme") && list["items"][1].is_object()
    );
    // What they begin is done to their own alone, and what others began and did is not there.
    let theirs = json!({"action": "cancel", "filter": {"state": "pending"}});
    let other = place.key("operator", Some("other")).await;
    let (status, answer) = place.ask("POST /admin/jobs/bulk", Some(&other), &theirs).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    let id = answer["operationId"].as_str().unwrap();
    let operation = place.store.operation(id.parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(operation.filter.tenant.unwrap().as_str(), "other");
    for what in [format!("GET /admin/operations/{id}"), format!("POST /admin/operations/{id}/abort")] {
        assert_eq!(place.ask(&what, key, &json!({})).await.0, StatusCode::NOT_FOUND, "{what}");
        assert_ne!(place.ask(&what, Some(&other), &json!({})).await.0, StatusCode::NOT_FOUND, "{what}");
    }
    assert_eq!(place.ask("GET /admin/operations", key, &json!({})).await.1["items"], json!([]));
    let (_, list) = place.ask("GET /admin/audit", key, &json!({})).await;
    let own = |entry: &Value| entry["tenant"] == "acme" && entry["actor"].as_str().unwrap().starts_with("key:");
    assert!(list["items"].as_array().unwrap().iter().all(own) && list["items"][0].is_object(), "{list}");
    let (_, list) = place.ask("GET /schedules", key, &json!({})).await;
    let names: Vec<&str> = list["items"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["mine"]);
}
