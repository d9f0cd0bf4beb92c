//! Audit entries: which actions are recorded, and which request bodies.

use orchestrix_store::{AuditEntry, AuditFilter, PageRequest};
use serde_json::{Value, json};

use crate::test_server::TestServer;

/// The audit entries of API keys, oldest first.
async fn entries_of_keys(server: &TestServer) -> Vec<AuditEntry> {
    let mut entries =
        server.store.list_audit_entries(&AuditFilter::default(), &PageRequest::first(100)).await.unwrap().items;
    entries.retain(|entry| entry.actor.starts_with("key:"));
    entries.sort_by_key(|entry| entry.seq);
    entries
}

#[tokio::test]
async fn only_valid_bodies_of_listed_routes_are_recorded() {
    let server = TestServer::new();
    let admin = server.create_key("admin", None).await;
    let id = server.enqueue_job("default").await;
    server.create_schedule("s", "default").await;
    let job = json!({"jobType": "t", "payload": "sesame"});
    let recorded = |body: Value| (body.clone(), Some(body));
    let omitted = |body: Value| (body, None);
    let cases = [
        // Recorded.
        ("PUT /admin/queues/q", 200, recorded(json!({"paused": true}))),
        ("PUT /admin/tenants/acme", 200, recorded(json!({"weight": 3}))),
        ("POST /admin/jobs/{id}/priority", 200, recorded(json!({"priority": 5}))),
        ("POST /admin/jobs/bulk", 202, recorded(json!({"action": "cancel", "filter": {"queue": "q"}, "dryRun": true}))),
        ("POST /admin/dlq/redrive", 200, recorded(json!({"filter": {"queue": "q"}}))),
        ("POST /admin/dlq/purge", 200, recorded(json!({"olderThanSeconds": 60, "dryRun": true}))),
        ("POST /admin/keys", 201, recorded(json!({"name": "n", "role": "client"}))),
        ("POST /schedules/s/pause", 200, recorded(json!({"note": "until tomorrow"}))),
        // A schedule contains a payload.
        ("PUT /schedules/s", 200, omitted(json!({"everySeconds": 60, "job": job}))),
        // Invalid bodies may contain anything.
        ("PUT /admin/queues/q", 422, omitted(json!({"paused": true, "payload": "sesame"}))),
        ("PUT /admin/tenants/acme", 422, omitted(json!({"weight": 3, "maxPending": "sesame"}))),
        ("POST /admin/jobs/{id}/priority", 422, omitted(json!({"priority": "sesame"}))),
        (
            "POST /admin/jobs/bulk",
            422,
            omitted(json!({"action": "cancel", "filter": {"queue": "q", "payload": "sesame"}})),
        ),
        ("POST /admin/dlq/redrive", 422, omitted(json!({"jobIds": ["sesame"]}))),
        ("POST /admin/keys", 422, omitted(json!({"name": "n", "role": "client", "key": "sesame"}))),
        ("POST /admin/jobs/{id}/cancel", 202, omitted(json!({}))),
    ];
    for (request, status, (body, _)) in &cases {
        let (actual, response) = server.request(&request.replace("{id}", &id), Some(&admin), body).await;
        assert_eq!(actual.as_u16(), *status, "{request} {body}: {response}");
    }
    let entries = entries_of_keys(&server).await;
    assert_eq!(entries.len(), cases.len(), "{entries:#?}");
    for ((request, status, (_, expected)), entry) in cases.iter().zip(&entries) {
        let (method, path) = request.split_once(' ').unwrap();
        assert!(entry.action.starts_with(&format!("{method} /")), "{request}: {entry:?}");
        assert_eq!(entry.target.as_ref(), Some(&path.replace("{id}", &id)));
        assert!(entry.outcome.as_ref().unwrap().starts_with(&status.to_string()), "{request}: {entry:?}");
        let detail: Option<Value> = entry.detail.as_ref().map(|text| serde_json::from_str(text).unwrap());
        assert_eq!(&detail, expected, "{request}");
    }
    assert!(!format!("{entries:?}").contains("sesame"));
}

#[tokio::test]
async fn actions_of_operators_on_client_routes_are_recorded() {
    let server = TestServer::new();
    let mut expected = Vec::new();
    for role in ["client", "operator", "admin"] {
        let key = server.create_key(role, None).await;
        for action in ["release", "cancel"] {
            let id = server.enqueue_job("default").await;
            let path = format!("/jobs/{id}/{action}");
            let (status, response) = server.request(&format!("POST {path}"), Some(&key), &json!({})).await;
            assert_eq!(status.as_u16(), 202, "{response}");
            if role != "client" {
                expected.push((format!("POST /jobs/{{jobId}}/{action}"), Some(path), Some("202".to_owned()), None));
            }
        }
        // Enqueueing and reading are not recorded.
        assert_eq!(server.request("POST /jobs", Some(&key), &json!({"jobType": "t"})).await.0.as_u16(), 202);
        assert_eq!(server.request("GET /schedules", Some(&key), &json!({})).await.0.as_u16(), 200);
    }
    let entries = entries_of_keys(&server).await.into_iter();
    let entries: Vec<_> = entries.map(|entry| (entry.action, entry.target, entry.outcome, entry.detail)).collect();
    assert_eq!(entries, expected);
}

/// Leases jobs and reports every outcome. Returns the routes called and their expected audit targets.
async fn work(server: &TestServer, key: Option<&str>) -> Vec<(String, String)> {
    let mut calls = Vec::new();
    let lease_request = json!({"workerId": "w", "max": 1});
    let mut call = async |route: &str, token: &str, body: &Value| {
        let path = route.replace("{leaseToken}", token);
        let (status, response) = match key {
            Some(_) => server.request(&format!("POST {path}"), key, body).await,
            None => {
                let (status, response) =
                    server.local.call("POST".parse().unwrap(), &path, Some(body.to_string())).await.unwrap();
                (status, serde_json::from_slice(&response).unwrap_or_default())
            }
        };
        assert!(status.is_success(), "{route}: {response}");
        let redacted = token.rsplit_once('.').map_or_else(String::new, |(public, _)| {
            let (job, counter) = public.split_once('.').unwrap();
            format!("{}.{counter}.…", job.parse::<orchestrix_core::JobId>().unwrap())
        });
        calls.push((format!("POST {route}"), route.replace("{leaseToken}", &redacted)));
        response
    };
    call("/worker/register", "", &json!({"workerId": "w", "instanceId": "i"})).await;
    for (outcome, body) in [
        ("release", json!({})),
        ("snooze", json!({"seconds": 0})),
        ("fail", json!({"error": "sesame", "retryAfterSeconds": 0})),
        ("complete", json!({"result": "sesame"})),
        ("batch", json!({})),
    ] {
        let id = server.enqueue_job("default").await;
        let response = call("/worker/leases", "", &lease_request).await;
        let token = response["leases"][0]["leaseToken"].as_str().unwrap().to_owned();
        call("/worker/leases/{leaseToken}/progress", &token, &json!({"percent": 1})).await;
        call("/worker/leases/{leaseToken}/logs", &token, &json!({"lines": []})).await;
        call("/worker/heartbeat", "", &json!({"workerId": "w", "leaseTokens": [token]})).await;
        match outcome {
            "batch" => {
                call("/worker/leases/complete-batch", "", &json!({"items": [{"leaseToken": token}]})).await;
            }
            _ => drop(call(&format!("/worker/leases/{{leaseToken}}/{outcome}"), &token, &body).await),
        }
        // The job must not be leased again by the next iteration.
        let _ = server.store.cancel_job(id.parse().unwrap()).await;
    }
    call("/worker/leave", "", &json!({"workerId": "w"})).await;
    calls
}

#[tokio::test]
async fn actions_on_worker_routes_are_recorded_for_operators_and_not_for_workers() {
    let server = TestServer::new();
    let is_exempt = |route: &str| ["/worker/heartbeat", "/progress", "/logs"].iter().any(|end| route.ends_with(end));
    let mut expected = Vec::new();
    for role in ["worker", "operator", "admin"] {
        let key = server.create_key(role, None).await;
        let calls = work(&server, Some(&key)).await;
        if role != "worker" {
            expected.extend(calls.into_iter().filter(|(route, _)| !is_exempt(route)));
        }
    }
    let entries = entries_of_keys(&server).await;
    assert!(!format!("{entries:?}").contains("sesame"));
    assert!(entries.iter().all(|entry| entry.outcome.as_deref().is_some_and(|outcome| outcome.starts_with("20"))));
    let entries: Vec<_> = entries.into_iter().map(|entry| (entry.action, entry.target.unwrap())).collect();
    assert_eq!(entries, expected);

    // Without API keys nothing is recorded, because workers would flood the audit.
    let before =
        server.store.list_audit_entries(&AuditFilter::default(), &PageRequest::first(1_000)).await.unwrap().items.len();
    work(&server, None).await;
    let after =
        server.store.list_audit_entries(&AuditFilter::default(), &PageRequest::first(1_000)).await.unwrap().items.len();
    assert_eq!(after, before);
}
