//! Jobs that are to wait for another tenant's: nothing in the answer tells that those are there.

use axum::http::StatusCode;
use orchestrix_core::JobState;
use serde_json::{Value, json};

use super::Place;

/// Far from any id that is made here.
const NOWHERE: &str = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70";

#[tokio::test]
async fn a_parent_of_another_tenant_is_told_like_one_that_is_not_there() {
    let place = Place::new();
    let key = format!("Bearer {}", place.key("client", Some("acme")).await);
    let used = json!({"jobType": "t", "payload": "another", "idempotencyKey": "used"});
    assert_eq!(place.send("POST /jobs", &[("authorization", &key)], &used).await.0, StatusCode::ACCEPTED);
    let (pending, dead) = (place.job("other").await, place.dead_job("other").await);
    let of = |parents: &[&str]| json!({"jobType": "t", "dependsOn": parents});
    let with = |mut job: Value, field: &str, value: &str| {
        job[field] = value.into();
        job
    };
    for theirs in [&pending, &dead] {
        // Beside the other, so that both are told in the same order among others.
        let mut unknown = theirs.clone();
        let last = unknown.pop().unwrap();
        unknown.push(if last == '7' { '8' } else { '7' });
        for wrap in [false, true] {
            let (what, place_of) =
                if wrap { ("POST /jobs/batch", "jobs[0].dependsOn") } else { ("POST /jobs", "dependsOn") };
            let ask = async |headers: &[(&str, &str)], job: Value, parent: &str| {
                let headers = [&[("authorization", key.as_str())], headers].concat();
                let body = if wrap { json!({"jobs": [job]}) } else { job };
                let (status, mut answer) = place.send(what, &headers, &body).await;
                assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{what} {body}: {answer}");
                answer.as_object_mut().unwrap().remove("requestId").unwrap();
                answer.to_string().replace(parent, "IT")
            };
            let mut told = Vec::new();
            for it in [theirs.as_str(), &unknown] {
                let alone = ask(&[], of(&[it]), it).await;
                assert!(
                    alone.contains(&json!([{"field": place_of, "message": "there is no job IT"}]).to_string()),
                    "{alone}"
                );
                let both = ask(&[], of(&[it, NOWHERE]), it).await;
                assert!(both.contains("there is no job IT") && both.contains(NOWHERE), "{both}");
                let header = ask(&[("idempotency-key", "no good")], of(&[it]), it).await;
                assert!(header.contains("Idempotency-Key") && !header.contains("IT"), "{header}");
                let reused = ask(&[], with(of(&[it]), "idempotencyKey", "used"), it).await;
                assert!(reused.contains("idempotency_key_reused"), "{reused}");
                let bad = ask(&[], with(of(&[it]), "runAt", "never"), it).await;
                told.push([alone, both, header, reused, bad]);
            }
            assert_eq!(told[0], told[1], "{what}");
        }
    }
    assert_eq!((place.state(&pending).await, place.state(&dead).await), (JobState::Pending, JobState::Dead));
}

#[tokio::test]
async fn whoever_is_bound_to_none_makes_no_job_of_one_tenant_wait_for_anothers() {
    let place = Place::new();
    let key = place.key("client", None).await;
    let theirs = place.job("other").await;
    let child = |tenant: &str| json!({"jobType": "t", "tenant": tenant, "dependsOn": [theirs]});
    assert_eq!(place.ask("POST /jobs", Some(&key), &child("other")).await.0, StatusCode::ACCEPTED);
    let (status, answer) = place.ask("POST /jobs", Some(&key), &child("acme")).await;
    assert_eq!((status, &answer["errors"][0]["field"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("dependsOn")));
    let body = json!({"jobs": [{"jobType": "t", "ref": "a", "tenant": "other"}, {"jobType": "t", "tenant": "acme", "dependsOn": ["ref:a"]}]});
    let (status, answer) = place.ask("POST /jobs/batch", Some(&key), &body).await;
    let expected = json!([{"field": "jobs[1].dependsOn[0]", "message": "the job with the ref \"a\" belongs to another tenant, other"}]);
    assert_eq!((status, &answer["errors"]), (StatusCode::UNPROCESSABLE_ENTITY, &expected));
}
