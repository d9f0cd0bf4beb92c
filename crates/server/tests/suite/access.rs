//! Who may ask what: every route there is, by everybody there is, about their own and about others' things.

mod lists;

use std::collections::BTreeSet;

use axum::http::StatusCode;
use orchestrix_core::JobState;
use orchestrix_store::{JobFilter, PageRequest};
use serde_json::{Value, json};

use crate::place::Place;

const ANYBODY: &str = "anybody";
const CLIENTS: &str = "client operator admin";
const WORKERS: &str = "worker operator admin";
const OPERATORS: &str = "operator admin";
const ADMINS: &str = "admin";

/// Every route, who may use it, and whether one who is bound to a tenant may.
const ROUTES: &[(&str, &str, bool)] = &[
    ("GET /healthz", ANYBODY, true),
    ("GET /readyz", ANYBODY, true),
    ("GET /openapi.json", ANYBODY, true),
    ("GET /metrics", OPERATORS, false),
    ("POST /jobs", CLIENTS, true),
    ("POST /jobs/batch", CLIENTS, true),
    ("GET /jobs/{jobId}", CLIENTS, true),
    ("GET /jobs/{jobId}/result", CLIENTS, true),
    ("POST /jobs/{jobId}/cancel", CLIENTS, true),
    ("POST /jobs/{jobId}/release", CLIENTS, true),
    ("GET /jobs/{jobId}/events", CLIENTS, true),
    ("GET /ws", CLIENTS, true),
    ("GET /schedules", CLIENTS, true),
    ("GET /schedules/{name}", CLIENTS, true),
    ("GET /schedules/{name}/next", CLIENTS, true),
    ("GET /schedules/{name}/occurrences", CLIENTS, true),
    ("PUT /schedules/{name}", OPERATORS, true),
    ("DELETE /schedules/{name}", OPERATORS, true),
    ("POST /schedules/{name}/pause", OPERATORS, true),
    ("POST /schedules/{name}/resume", OPERATORS, true),
    ("POST /schedules/{name}/trigger", OPERATORS, true),
    ("POST /schedules/{name}/backfill", OPERATORS, true),
    ("POST /worker/leases", WORKERS, false),
    ("POST /worker/heartbeat", WORKERS, false),
    ("POST /worker/leave", WORKERS, false),
    ("POST /worker/leases/complete-batch", WORKERS, false),
    ("POST /worker/leases/{leaseToken}/complete", WORKERS, false),
    ("POST /worker/leases/{leaseToken}/fail", WORKERS, false),
    ("POST /worker/leases/{leaseToken}/progress", WORKERS, false),
    ("POST /worker/leases/{leaseToken}/logs", WORKERS, false),
    ("POST /worker/leases/{leaseToken}/snooze", WORKERS, false),
    ("POST /worker/leases/{leaseToken}/release", WORKERS, false),
    ("GET /admin/jobs", OPERATORS, true),
    ("GET /admin/jobs/{jobId}", OPERATORS, true),
    ("GET /admin/jobs/{jobId}/logs", OPERATORS, true),
    ("GET /admin/jobs/{jobId}/explain", OPERATORS, true),
    ("POST /admin/jobs/{jobId}/retry", OPERATORS, true),
    ("POST /admin/jobs/{jobId}/cancel", OPERATORS, true),
    ("POST /admin/jobs/{jobId}/priority", OPERATORS, true),
    ("POST /admin/jobs/bulk", OPERATORS, true),
    ("GET /admin/operations", OPERATORS, true),
    ("GET /admin/operations/{id}", OPERATORS, true),
    ("POST /admin/operations/{id}/abort", OPERATORS, true),
    ("GET /admin/audit", OPERATORS, true),
    ("GET /admin/stats", OPERATORS, false),
    ("POST /admin/workers/{workerId}/drain", OPERATORS, false),
    ("GET /admin/dlq", OPERATORS, true),
    ("POST /admin/dlq/redrive", OPERATORS, true),
    ("POST /admin/dlq/purge", OPERATORS, false),
    ("GET /admin/queues", OPERATORS, false),
    ("GET /admin/queues/{name}", OPERATORS, false),
    ("PUT /admin/queues/{name}", OPERATORS, false),
    ("GET /admin/workers", OPERATORS, false),
    ("GET /admin/nodes", OPERATORS, false),
    ("GET /admin/keys", ADMINS, false),
    ("POST /admin/keys", ADMINS, false),
    ("DELETE /admin/keys/{keyId}", ADMINS, false),
];

fn filled(route: &str, id: &str, name: &str) -> String {
    let token = "1.0199d0a48f3e7c219b1f2f6a3e1c5d70.0199d0a48f3e7c219b1f2f6a3e1c5d70";
    route
        .replace("{jobId}", id)
        .replace("{name}", name)
        .replace("{leaseToken}", token)
        .replace("{keyId}", "nobodyknows1")
        .replace("{id}", id)
        .replace("{workerId}", "w9")
}

#[tokio::test]
async fn every_route_is_for_whom_it_is_for_and_for_nobody_else() {
    let place = Place::new();
    let (_, described) = place.ask("GET /openapi.json", None, &json!({})).await;
    let mut there = BTreeSet::new();
    for (path, methods) in described["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            there.insert(format!("{} {path}", method.to_uppercase()));
        }
    }
    let known: BTreeSet<String> = ROUTES.iter().map(|(route, ..)| (*route).to_owned()).collect();
    assert_eq!(there, known, "a route that nobody has said who it is for");

    let mut callers =
        vec![("nobody", false, None), ("nobody", false, Some(format!("ox_{}_{}", "a".repeat(12), "0".repeat(64))))];
    for role in ["client", "worker", "operator", "admin"] {
        callers.push((role, false, Some(place.key(role, None).await)));
        if role != "worker" {
            callers.push((role, true, Some(place.key(role, Some("acme")).await)));
        }
    }
    let unknown = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70";
    for (route, who, bound_too) in ROUTES {
        for (role, bound, key) in &callers {
            let (status, body) = place.ask(&filled(route, unknown, "nothing"), key.as_deref(), &json!({})).await;
            let case = format!("{route} by {role}{}: {status} {body}", if *bound { " of a tenant" } else { "" });
            let code = body["code"].as_str().unwrap_or_default();
            match *role {
                _ if *who == ANYBODY => assert!(status.is_success(), "{case}"),
                "nobody" => assert_eq!((status, code), (StatusCode::UNAUTHORIZED, "unauthenticated"), "{case}"),
                role if who.split(' ').any(|one| one == role) && (*bound_too || !bound) => {
                    assert!(!matches!(status.as_u16(), 401 | 403) && status.as_u16() < 500, "{case}");
                }
                _ => assert_eq!((status, code), (StatusCode::FORBIDDEN, "forbidden"), "{case}"),
            }
        }
    }
}

#[tokio::test]
async fn what_is_another_tenants_is_not_there() {
    let place = Place::new();
    place.schedule("theirs", "other").await;
    for role in ["client", "operator", "admin"] {
        let key = place.key(role, Some("acme")).await;
        for (route, who, bound_too) in ROUTES {
            let named = route.contains("{jobId}") || route.contains("{name}");
            if !named || !bound_too || !who.split(' ').any(|one| one == role) {
                continue;
            }
            let (pending, dead) = (place.job("other").await, place.dead_job("other").await);
            for id in [&pending, &dead] {
                let body = match *route {
                    "POST /admin/jobs/{jobId}/priority" => json!({"priority": 7}),
                    "PUT /schedules/{name}" => json!({"everySeconds": 60, "job": {"jobType": "t"}}),
                    "POST /schedules/{name}/backfill" => {
                        json!({"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"})
                    }
                    _ => json!({}),
                };
                let (status, answer) = place.ask(&filled(route, id, "theirs"), Some(&key), &body).await;
                assert_eq!(status, StatusCode::NOT_FOUND, "{route} by {role}: {answer}");
            }
            assert_eq!(place.state(&pending).await, JobState::Pending, "{route}");
            assert_eq!(place.state(&dead).await, JobState::Dead, "{route}");
            let schedule = place.store.schedule(&"theirs".parse().unwrap()).await.unwrap().unwrap();
            assert!(!schedule.definition.paused && schedule.definition.job.tenant.as_str() == "other", "{route}");
        }
    }
}

#[tokio::test]
async fn who_is_bound_to_a_tenant_acts_in_it_alone() {
    let place = Place::new();
    let key = place.key("operator", Some("acme")).await;
    let key = Some(key.as_str());
    let (theirs, dead) = (place.job("other").await, place.dead_job("other").await);
    place.schedule("theirs", "other").await;
    let all = async || {
        let page = place.store.list(&JobFilter::default(), &PageRequest::first(1_000)).await.unwrap();
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
    for (what, wrap) in [("POST /jobs", false), ("POST /jobs/batch", true)] {
        let mut told = Vec::new();
        for parent in [theirs.as_str(), unknown] {
            let job = json!({"jobType": "t", "dependsOn": [parent]});
            let body = if wrap { json!({"jobs": [job]}) } else { job };
            let (status, answer) = place.ask(what, key, &body).await;
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{what}: {answer}");
            told.push(answer["errors"].to_string().replace(parent, "ID"));
        }
        assert_eq!(told[0], told[1], "{what}");
    }
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
    assert_eq!(place.store.summary(own.parse().unwrap()).await.unwrap().unwrap().tenant.as_str(), "acme");
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
