//! Dependencies on jobs of another tenant. The response must not reveal that those jobs exist.

use axum::http::StatusCode;
use orchestrix_core::JobState;
use serde_json::{Value, json};

use super::TestServer;

/// An id that does not exist.
const UNKNOWN_ID: &str = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70";

#[tokio::test]
async fn a_dependency_of_another_tenant_looks_like_one_that_does_not_exist() {
    let server = TestServer::new();
    let key = format!("Bearer {}", server.create_key("client", Some("acme")).await);
    let used = json!({"jobType": "t", "payload": "another", "idempotencyKey": "used"});
    assert_eq!(
        server.request_with_headers("POST /jobs", &[("authorization", &key)], &used).await.0,
        StatusCode::ACCEPTED
    );
    let (pending, dead) = (server.enqueue_job("other").await, server.enqueue_dead_job("other").await);
    let job_with = |parents: &[&str]| json!({"jobType": "t", "dependsOn": parents});
    let with = |mut job: Value, field: &str, value: &str| {
        job[field] = value.into();
        job
    };
    for theirs in [&pending, &dead] {
        // Adjacent to the foreign id, so that both sort alike among other ids.
        let mut unknown = theirs.clone();
        let last = unknown.pop().unwrap();
        unknown.push(if last == '7' { '8' } else { '7' });
        for batch in [false, true] {
            let (request, field) =
                if batch { ("POST /jobs/batch", "jobs[0].dependsOn") } else { ("POST /jobs", "dependsOn") };
            let send = async |headers: &[(&str, &str)], job: Value, parent: &str| {
                let headers = [&[("authorization", key.as_str())], headers].concat();
                let body = if batch { json!({"jobs": [job]}) } else { job };
                let (status, mut response) = server.request_with_headers(request, &headers, &body).await;
                assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{request} {body}: {response}");
                response.as_object_mut().unwrap().remove("requestId").unwrap();
                response.to_string().replace(parent, "ID")
            };
            let mut responses = Vec::new();
            for id in [theirs.as_str(), &unknown] {
                let alone = send(&[], job_with(&[id]), id).await;
                assert!(
                    alone.contains(&json!([{"field": field, "message": "there is no job ID"}]).to_string()),
                    "{alone}"
                );
                let both = send(&[], job_with(&[id, UNKNOWN_ID]), id).await;
                assert!(both.contains("there is no job ID") && both.contains(UNKNOWN_ID), "{both}");
                let header = send(&[("idempotency-key", "no good")], job_with(&[id]), id).await;
                assert!(header.contains("Idempotency-Key") && !header.contains("ID"), "{header}");
                let reused = send(&[], with(job_with(&[id]), "idempotencyKey", "used"), id).await;
                assert!(reused.contains("idempotency_key_reused"), "{reused}");
                let bad = send(&[], with(job_with(&[id]), "runAt", "never"), id).await;
                responses.push([alone, both, header, reused, bad]);
            }
            assert_eq!(responses[0], responses[1], "{request}");
        }
    }
    assert_eq!((server.job_state(&pending).await, server.job_state(&dead).await), (JobState::Pending, JobState::Dead));
}

#[tokio::test]
async fn an_unbound_key_cannot_make_a_job_depend_on_another_tenants_job() {
    let server = TestServer::new();
    let key = server.create_key("client", None).await;
    let theirs = server.enqueue_job("other").await;
    let child = |tenant: &str| json!({"jobType": "t", "tenant": tenant, "dependsOn": [theirs]});
    assert_eq!(server.request("POST /jobs", Some(&key), &child("other")).await.0, StatusCode::ACCEPTED);
    let (status, response) = server.request("POST /jobs", Some(&key), &child("acme")).await;
    assert_eq!((status, &response["errors"][0]["field"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("dependsOn")));
    let body = json!({"jobs": [{"jobType": "t", "ref": "a", "tenant": "other"}, {"jobType": "t", "tenant": "acme", "dependsOn": ["ref:a"]}]});
    let (status, response) = server.request("POST /jobs/batch", Some(&key), &body).await;
    let expected = json!([{"field": "jobs[1].dependsOn[0]", "message": "the job with the ref \"a\" belongs to another tenant, other"}]);
    assert_eq!((status, &response["errors"]), (StatusCode::UNPROCESSABLE_ENTITY, &expected));
}
