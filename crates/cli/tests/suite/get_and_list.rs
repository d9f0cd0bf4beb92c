//! `jobs get` and `jobs list`.

use orchestrix_core::{JobState, Json};
use orchestrix_store::{LogLevel, LogLine, Outcome};
use serde_json::{Value, json};

use crate::harness::{TestEnv, claim_one, each_database_and_server};

fn ids(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|job| job["jobId"].as_str().unwrap()).collect()
}

/// The transitions of a job as "event state".
fn events(job: &Value) -> Vec<String> {
    let text = |step: &Value, name: &str| step[name].as_str().unwrap_or_default().to_owned();
    let steps = job["transitions"].as_array().unwrap().iter();
    steps.map(|step| format!("{} {}", text(step, "event"), text(step, "state")).trim_end().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_shown_with_its_result_attempts_and_transitions() {
    for env in each_database_and_server() {
        let id = env.enqueue(&["SEND_EMAIL", "--retry-base", "0s"]).to_string();
        env.finish_next_job(Outcome::Fail {
            error: "no route\u{1b}[31m to host".into(),
            retryable: true,
            retry_after: None,
        })
        .await;
        let job = env.json(&["jobs", "get", &id]);
        assert_eq!(
            (&job["state"], &job["status"], &job["attemptsUsed"]),
            (&json!("retrying"), &json!("PENDING"), &json!(1))
        );
        let attempt = &job["attempts"][0];
        assert_eq!((&attempt["outcome"], &attempt["workerId"]), (&json!("failed"), &json!("hand")));
        assert_eq!(attempt["error"], "no route\u{1b}[31m to host");
        assert!(attempt["startedAt"].is_string() && attempt["endedAt"].is_string());
        assert_eq!(events(&job), ["recorded", "started running", "ended retrying"]);
        let text = env.run(&["jobs", "get", &id]).success().stdout;
        assert!(text.contains("no route\\u{1b}[31m to host"), "escapes are shown, not sent: {text}");

        let id = env.enqueue(&["OTHER"]).to_string();
        let result = Json::parse("result", r#"{"sent":  true}"#).unwrap();
        assert_eq!(env.finish_next_job(Outcome::Complete { result: Some(result) }).await, JobState::Completed);
        let text = env.run(&["jobs", "get", &id]).success().stdout;
        for part in ["completed", r#"{"sent":  true}"#, "hand", "finished", "recorded", "started", "ended"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let job = env.json(&["jobs", "get", &id]);
        assert_eq!(job["result"], json!({"sent": true}));
        let attempt = &job["attempts"][0];
        assert_eq!((&attempt["outcome"], &attempt["workerId"]), (&json!("completed"), &json!("hand")));
        assert_eq!((&attempt["startedAt"], &attempt["endedAt"]), (&job["startedAt"], &job["finishedAt"]));
        assert_eq!(events(&job), ["recorded pending", "started running", "ended completed"]);

        let id = env.enqueue(&["LONG", "--priority", "5"]).to_string();
        let store = env.store().await;
        let claimed = claim_one(&*store).await;
        assert_eq!(claimed.id().to_string(), id);
        let line = |n: usize| LogLine { at: None, level: LogLevel::Info, message: format!("line {n}") };
        store.append_logs(claimed.token, (0..105).map(line).collect()).await.unwrap();
        let job = env.json(&["jobs", "get", &id]);
        let attempt = &job["attempts"][0];
        assert_eq!((attempt.get("outcome"), attempt.get("endedAt")), (None, None), "{attempt}");
        assert_eq!((&attempt["attempt"], &attempt["workerId"]), (&json!(1), &json!("hand")));
        assert_eq!(events(&job), ["recorded pending", "started running"]);
        let logs = &job["logs"];
        assert_eq!((logs["items"].as_array().unwrap().len(), &logs["items"][99]["message"]), (100, &json!("line 99")));
        assert_eq!(logs["nextCursor"], logs["items"][99]["seq"].to_string(), "where the list of lines goes on");
        let text = env.run(&["jobs", "get", &id]).success().stdout;
        assert!(text.contains("1        running"), "{text}");
    }
}

#[test]
fn every_filter_narrows_the_list() {
    for env in each_database_and_server() {
        let wanted = env
            .enqueue(&[
                "SEND_EMAIL",
                "--queue",
                "email",
                "--tenant",
                "acme",
                "--tags",
                "x",
                "--correlation-id",
                "order-9",
            ])
            .to_string();
        let other = env.enqueue(&["OTHER", "--delay", "1h"]).to_string();
        for filter in [
            &["--state", "pending,running"][..],
            &["--queue", "email"],
            &["--type", "SEND_EMAIL"],
            &["--tenant", "acme"],
            &["--tag", "x"],
            &["--text", "order-9"],
            &["--queue", "email", "--from", "1h", "--to", "2100-01-01T00:00:00Z"],
        ] {
            let list = env.json(&[&["jobs", "list"], filter].concat());
            assert_eq!(ids(&list), [wanted.as_str()], "{filter:?}");
        }
        assert_eq!(ids(&env.json(&["jobs", "list"])), [other.as_str(), &wanted]);
        assert_eq!(env.json(&["jobs", "list", "--to", "1h"]), json!({"items": []}));
        let table = env.run(&["jobs", "list"]).success().stdout;
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines.len() == 3 && lines[0].starts_with("ID ") && lines[1].contains("scheduled"), "{table}");
        assert_eq!(env.run(&["jobs", "list", "--output", "jsonl"]).success().stdout.lines().count(), 2);
    }
}

#[test]
fn a_list_reads_as_many_pages_as_its_limit_needs_and_prints_the_next_cursor() {
    let env = TestEnv::sqlite();
    std::fs::write(env.dir().join("jobs.jsonl"), "{\"jobType\": \"t\"}\n".repeat(1_205)).unwrap();
    env.run(&["jobs", "enqueue", "--from-file", "jobs.jsonl"]).success();
    let first = env.json(&["jobs", "list", "--limit", "1100"]);
    assert_eq!(ids(&first).len(), 1_100);
    let cursor = first["nextCursor"].as_str().unwrap();
    env.run(&["jobs", "list", "--limit", "1100"]).exits_with(0, &format!("--cursor {cursor}"));
    let rest = env.json(&["jobs", "list", "--limit", "1100", "--cursor", cursor]);
    assert_eq!((ids(&rest).len(), &rest["nextCursor"]), (105, &Value::Null));
    let mut all = [ids(&first), ids(&rest)].concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 1_205);
}
