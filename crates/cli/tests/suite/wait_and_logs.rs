//! `jobs wait`, `jobs enqueue --wait` and `jobs logs`.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Stdio},
};

use orchestrix_store::{LogLevel, LogLine, Outcome};
use serde_json::json;

use crate::harness::{CliOutput, TestEnv, claim_one, each_database_and_server, finish};

fn spawn(env: &TestEnv, arguments: &[&str]) -> Child {
    env.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn line(level: LogLevel, message: &str) -> LogLine {
    LogLine { at: None, level, message: message.into() }
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_ends_with_the_job_and_reports_its_status() {
    for env in each_database_and_server() {
        for (outcome, code, state) in [
            (Outcome::DONE, 0, "COMPLETED"),
            (Outcome::Fail { error: "broken".into(), retryable: false, retry_after: None }, 1, "FAILED"),
        ] {
            let id = env.enqueue(&["t"]).to_string();
            let waiting = spawn(&env, &["jobs", "wait", &id, "--timeout", "2m"]);
            env.finish_next_job(outcome).await;
            let ran = CliOutput::from(waiting.wait_with_output().unwrap()).exits_with(code, "");
            assert!(ran.stdout.contains(state), "{ran:?}");
        }
        let (one, two) = (env.enqueue(&["t"]).to_string(), env.enqueue(&["t"]).to_string());
        env.run(&["jobs", "cancel", &two]).success();
        env.finish_next_job(Outcome::DONE).await;
        let ran = env.run(&["jobs", "wait", &one, &two, "--output", "jsonl"]).exits_with(1, "");
        assert!(ran.stdout.contains("COMPLETED") && ran.stdout.contains("CANCELLED"), "{ran:?}");
    }
}

#[test]
fn wait_times_out_and_says_that_no_worker_takes_the_job() {
    let env = TestEnv::sqlite();
    let id = env.enqueue(&["t"]).to_string();
    env.run(&["jobs", "wait", &id, "--timeout", "100ms"]).exits_with(1, "PENDING");
    let mut command = env.command(&["jobs", "wait", &id]);
    CliOutput::run(command.env("ORCHESTRIX_WAIT_TIMEOUT", "2500ms"))
        .exits_with(1, "no live worker serves job type t in queue default");
}

#[tokio::test(flavor = "multi_thread")]
async fn enqueue_can_wait_for_the_end() {
    for env in each_database_and_server() {
        for (outcome, code, status) in [
            (Outcome::DONE, 0, "COMPLETED"),
            (Outcome::Fail { error: "broken".into(), retryable: false, retry_after: None }, 1, "FAILED"),
        ] {
            env.migrate();
            let mut waiting = spawn(&env, &["jobs", "enqueue", "t", "--wait", "--output", "json"]);
            // It prints this line once the job is enqueued.
            let mut errors = BufReader::new(waiting.stderr.take().unwrap());
            let mut line = String::new();
            errors.read_line(&mut line).unwrap();
            assert!(line.starts_with("waiting for "), "{line}");
            env.finish_next_job(outcome).await;
            let ran = CliOutput::from(waiting.wait_with_output().unwrap()).exits_with(code, "");
            assert_eq!(ran.json()["status"], status);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_followed_until_the_job_ends() {
    for env in each_database_and_server() {
        let id = env.enqueue(&["t"]).to_string();
        let store = env.store().await;
        let claimed = claim_one(&*store).await;
        store.append_logs(claimed.token, vec![line(LogLevel::Info, "begun\u{7}")]).await.unwrap();

        let mut following = spawn(&env, &["jobs", "logs", "-f", &id]);
        let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        assert!(first.ends_with("info  [1] begun\\u{7}"), "{first}");
        store.append_logs(claimed.token, vec![line(LogLevel::Warn, "half way")]).await.unwrap();
        let second = lines.next().unwrap().unwrap();
        assert!(second.ends_with("warn  [1] half way"), "{second}");
        store.append_logs(claimed.token, vec![line(LogLevel::Error, "last line")]).await.unwrap();
        finish(&*store, &claimed, Outcome::DONE).await;
        let rest: Vec<String> = lines.map(Result::unwrap).collect();
        assert!(rest.len() == 1 && rest[0].ends_with("last line"), "{rest:?}");
        assert_eq!(following.wait().unwrap().code(), Some(0));

        let document = env.json(&["jobs", "logs", &id]);
        let messages: Vec<&str> =
            document["items"].as_array().unwrap().iter().map(|line| line["message"].as_str().unwrap()).collect();
        assert_eq!(messages, ["begun\u{7}", "half way", "last line"]);
        assert_eq!(document["items"][2]["level"], json!("error"));
        assert_eq!(env.run(&["jobs", "logs", "-f", &id, "--output", "jsonl"]).success().stdout.lines().count(), 3);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_of_many_pages_is_printed_completely_and_once() {
    let env = TestEnv::sqlite();
    let id = env.enqueue(&["t"]).to_string();
    let store = env.store().await;
    let claimed = claim_one(&*store).await;
    for part in 0..3 {
        let lines = (0..800).map(|i| line(LogLevel::Info, &format!("line {}", part * 800 + i))).collect();
        store.append_logs(claimed.token, lines).await.unwrap();
    }
    finish(&*store, &claimed, Outcome::DONE).await;
    for follow in [&["jobs", "logs", &id][..], &["jobs", "logs", "-f", &id]] {
        let shown = env.run(follow).success().stdout;
        assert!(shown.lines().enumerate().all(|(i, line)| line.ends_with(&format!("] line {i}"))));
        assert_eq!(shown.lines().count(), 2_400);
    }
}
