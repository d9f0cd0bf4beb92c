//! What goes into the audit: what operators do, by whichever route, and of what they send only what is worth keeping.

use orchestrix_store::{AuditEntry, AuditFilter, PageRequest};
use serde_json::{Value, json};

use crate::place::Place;

/// What is in the audit of what was done by keys, the first deed first.
async fn deeds(place: &Place) -> Vec<AuditEntry> {
    let mut entries = place.store.audit(&AuditFilter::default(), &PageRequest::first(100)).await.unwrap().items;
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
        ("POST /admin/jobs/{id}/cancel", 202, lost(json!({"payload": "sesame"}))),
        // It belongs to another place: a job was meant to be recorded.
        ("POST /admin/jobs", 405, lost(job.clone())),
        ("PUT /admin/jobs/bulk", 405, lost(json!({"action": "cancel", "filter": {"queue": "q"}}))),
        ("POST /schedules", 405, lost(job)),
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
            let (status, answer) = place.ask(&format!("POST {path}"), Some(&key), &json!({"payload": "sesame"})).await;
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
