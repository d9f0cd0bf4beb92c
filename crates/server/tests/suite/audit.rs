//! What goes into the audit: what operators do, by whichever route, and of what they send only what is worth keeping.

use orchestrix_store::{AuditEntry, AuditFilter, PageRequest};
use serde_json::{Value, json};

use crate::place::Place;

/// What is in the audit of what was done by keys, the first deed first.
async fn deeds(place: &Place) -> Vec<AuditEntry> {
    let mut entries =
        place.store.list_audit_entries(&AuditFilter::default(), &PageRequest::first(100)).await.unwrap().items;
    entries.retain(|entry| entry.actor.starts_with("key:"));
    entries.sort_by_key(|entry| entry.seq);
    entries
}

#[tokio::test]
async fn only_what_a_route_understands_and_names_is_kept() {
    let place = Place::new();
    let admin = place.key("admin", None).await;
    let id = place.job("default").await;
    place.schedule("s", "default").await;
    let job = json!({"jobType": "t", "payload": "sesame"});
    let kept = |body: Value| (body.clone(), Some(body));
    let lost = |body: Value| (body, None);
    let cases = [
        // Worth keeping.
        ("PUT /admin/queues/q", 200, kept(json!({"paused": true}))),
        ("POST /admin/jobs/{id}/priority", 200, kept(json!({"priority": 5}))),
        ("POST /admin/jobs/bulk", 202, kept(json!({"action": "cancel", "filter": {"queue": "q"}, "dryRun": true}))),
        ("POST /admin/dlq/redrive", 200, kept(json!({"filter": {"queue": "q"}}))),
        ("POST /admin/dlq/purge", 200, kept(json!({"olderThanSeconds": 60, "dryRun": true}))),
        ("POST /admin/keys", 201, kept(json!({"name": "n", "role": "client"}))),
        ("POST /schedules/s/pause", 200, kept(json!({"note": "until tomorrow"}))),
        // A schedule has a payload in it.
        ("PUT /schedules/s", 200, lost(json!({"everySeconds": 60, "job": job}))),
        // Nobody knows what is in these.
        ("PUT /admin/queues/q", 422, lost(json!({"paused": true, "payload": "sesame"}))),
        ("POST /admin/jobs/{id}/priority", 422, lost(json!({"priority": "sesame"}))),
        (
            "POST /admin/jobs/bulk",
            422,
            lost(json!({"action": "cancel", "filter": {"queue": "q", "payload": "sesame"}})),
        ),
        ("POST /admin/dlq/redrive", 422, lost(json!({"jobIds": ["sesame"]}))),
        ("POST /admin/keys", 422, lost(json!({"name": "n", "role": "client", "key": "sesame"}))),
        ("POST /admin/jobs/{id}/cancel", 202, lost(json!({}))),
    ];
    for (what, status, (body, _)) in &cases {
        let (answered, answer) = place.ask(&what.replace("{id}", &id), Some(&admin), body).await;
        assert_eq!(answered.as_u16(), *status, "{what} {body}: {answer}");
    }
    let entries = deeds(&place).await;
    assert_eq!(entries.len(), cases.len(), "{entries:#?}");
    for ((what, status, (_, kept)), entry) in cases.iter().zip(&entries) {
        let (method, path) = what.split_once(' ').unwrap();
        assert!(entry.action.starts_with(&format!("{method} /")), "{what}: {entry:?}");
        assert_eq!(entry.target.as_ref(), Some(&path.replace("{id}", &id)));
        assert!(entry.outcome.as_ref().unwrap().starts_with(&status.to_string()), "{what}: {entry:?}");
        let detail: Option<Value> = entry.detail.as_ref().map(|text| serde_json::from_str(text).unwrap());
        assert_eq!(&detail, kept, "{what}");
    }
    assert!(!format!("{entries:?}").contains("sesame"));
}

#[tokio::test]
async fn what_operators_do_by_the_routes_of_clients_is_written_down_too() {
    let place = Place::new();
    let mut expected = Vec::new();
    for role in ["client", "operator", "admin"] {
        let key = place.key(role, None).await;
        for deed in ["release", "cancel"] {
            let id = place.job("default").await;
            let path = format!("/jobs/{id}/{deed}");
            let (status, answer) = place.ask(&format!("POST {path}"), Some(&key), &json!({})).await;
            assert_eq!(status.as_u16(), 202, "{answer}");
            if role != "client" {
                expected.push((format!("POST /jobs/{{jobId}}/{deed}"), Some(path), Some("202".to_owned()), None));
            }
        }
        // Recording and looking is no deed.
        assert_eq!(place.ask("POST /jobs", Some(&key), &json!({"jobType": "t"})).await.0.as_u16(), 202);
        assert_eq!(place.ask("GET /schedules", Some(&key), &json!({})).await.0.as_u16(), 200);
    }
    let entries = deeds(&place).await.into_iter();
    let entries: Vec<_> = entries.map(|entry| (entry.action, entry.target, entry.outcome, entry.detail)).collect();
    assert_eq!(entries, expected);
}

/// Takes the one job there is, and says what became of it, by each of the ways that there are.
async fn work(place: &Place, key: Option<&str>) -> Vec<(String, String)> {
    let mut done = Vec::new();
    let ask = json!({"workerId": "w", "max": 1});
    let mut deed = async |route: &str, token: &str, body: &Value| {
        let path = route.replace("{leaseToken}", token);
        let (status, answer) = match key {
            Some(_) => place.ask(&format!("POST {path}"), key, body).await,
            None => {
                let (status, answer) =
                    place.local.call("POST".parse().unwrap(), &path, Some(body.to_string())).await.unwrap();
                (status, serde_json::from_slice(&answer).unwrap_or_default())
            }
        };
        assert!(status.is_success(), "{route}: {answer}");
        let hidden = token.rsplit_once('.').map_or_else(String::new, |(open, _)| {
            let (job, counter) = open.split_once('.').unwrap();
            format!("{}.{counter}.…", job.parse::<orchestrix_core::JobId>().unwrap())
        });
        done.push((format!("POST {route}"), route.replace("{leaseToken}", &hidden)));
        answer
    };
    deed("/worker/register", "", &json!({"workerId": "w", "instanceId": "i"})).await;
    for (ending, body) in [
        ("release", json!({})),
        ("snooze", json!({"seconds": 0})),
        ("fail", json!({"error": "sesame", "retryAfterSeconds": 0})),
        ("complete", json!({"result": "sesame"})),
        ("batch", json!({})),
    ] {
        let id = place.job("default").await;
        let answer = deed("/worker/leases", "", &ask).await;
        let token = answer["leases"][0]["leaseToken"].as_str().unwrap().to_owned();
        deed("/worker/leases/{leaseToken}/progress", &token, &json!({"percent": 1})).await;
        deed("/worker/leases/{leaseToken}/logs", &token, &json!({"lines": []})).await;
        deed("/worker/heartbeat", "", &json!({"workerId": "w", "leaseTokens": [token]})).await;
        match ending {
            "batch" => {
                deed("/worker/leases/complete-batch", "", &json!({"items": [{"leaseToken": token}]})).await;
            }
            _ => drop(deed(&format!("/worker/leases/{{leaseToken}}/{ending}"), &token, &body).await),
        }
        // Out of the way of the next.
        let _ = place.store.cancel_job(id.parse().unwrap()).await;
    }
    deed("/worker/leave", "", &json!({"workerId": "w"})).await;
    done
}

#[tokio::test]
async fn what_operators_do_by_the_routes_of_workers_is_written_down_and_what_workers_do_is_not() {
    let place = Place::new();
    let quiet = |route: &str| ["/worker/heartbeat", "/progress", "/logs"].iter().any(|end| route.ends_with(end));
    let mut expected = Vec::new();
    for role in ["worker", "operator", "admin"] {
        let key = place.key(role, None).await;
        let done = work(&place, Some(&key)).await;
        if role != "worker" {
            expected.extend(done.into_iter().filter(|(route, _)| !quiet(route)));
        }
    }
    let entries = deeds(&place).await;
    assert!(!format!("{entries:?}").contains("sesame"));
    assert!(entries.iter().all(|entry| entry.outcome.as_deref().is_some_and(|outcome| outcome.starts_with("20"))));
    let entries: Vec<_> = entries.into_iter().map(|entry| (entry.action, entry.target.unwrap())).collect();
    assert_eq!(entries, expected);

    // Where no keys are asked for, workers would fill it.
    let before =
        place.store.list_audit_entries(&AuditFilter::default(), &PageRequest::first(1_000)).await.unwrap().items.len();
    work(&place, None).await;
    let after =
        place.store.list_audit_entries(&AuditFilter::default(), &PageRequest::first(1_000)).await.unwrap().items.len();
    assert_eq!(after, before);
}
