//! Waiting for jobs, and reading along.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Stdio},
};

use orchestrix_store::{LogLevel, LogLine, Outcome};
use serde_json::json;

use crate::support::{Place, Ran, claim, everywhere, finish};

fn spawn(place: &Place, arguments: &[&str]) -> Child {
    place.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn line(level: LogLevel, message: &str) -> LogLine {
    LogLine { at: None, level, message: message.into() }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_ends_with_the_job_and_tells_how_it_ended() {
    for place in everywhere() {
        for (outcome, code, state) in [
            (Outcome::DONE, 0, "COMPLETED"),
            (Outcome::Fail { error: "broken".into(), retryable: false, retry_after: None }, 1, "FAILED"),
        ] {
            let id = place.enqueue(&["t"]).to_string();
            let waiting = spawn(&place, &["jobs", "wait", &id, "--timeout", "2m"]);
            place.work(outcome).await;
            let ran = Ran::from(waiting.wait_with_output().unwrap()).ended(code, "");
            assert!(ran.stdout.contains(state), "{ran:?}");
        }
        let (one, two) = (place.enqueue(&["t"]).to_string(), place.enqueue(&["t"]).to_string());
        place.run(&["jobs", "cancel", &two]).done();
        place.work(Outcome::DONE).await;
        let ran = place.run(&["jobs", "wait", &one, &two, "--output", "jsonl"]).ended(1, "");
        assert!(ran.stdout.contains("COMPLETED") && ran.stdout.contains("CANCELLED"), "{ran:?}");
    }
}

#[test]
fn waiting_gives_up_after_its_time_and_says_that_nobody_takes_the_job() {
    let place = Place::sqlite();
    let id = place.enqueue(&["t"]).to_string();
    place.run(&["jobs", "wait", &id, "--timeout", "100ms"]).ended(1, "is still PENDING");
    let mut command = place.command(&["jobs", "wait", &id]);
    Ran::of(command.env("ORCHESTRIX_WAIT_TIMEOUT", "2500ms")).ended(1, "no live worker takes t from default");
}

#[tokio::test(flavor = "multi_thread")]
async fn enqueue_can_wait_for_the_end() {
    for place in everywhere() {
        for (outcome, code, status) in [
            (Outcome::DONE, 0, "COMPLETED"),
            (Outcome::Fail { error: "broken".into(), retryable: false, retry_after: None }, 1, "FAILED"),
        ] {
            place.prepare();
            let mut waiting = spawn(&place, &["jobs", "enqueue", "t", "--wait", "--output", "json"]);
            // It says so once the job is recorded.
            let mut errors = BufReader::new(waiting.stderr.take().unwrap());
            let mut said = String::new();
            errors.read_line(&mut said).unwrap();
            assert!(said.starts_with("waiting for "), "{said}");
            place.work(outcome).await;
            let ran = Ran::from(waiting.wait_with_output().unwrap()).ended(code, "");
            assert_eq!(ran.json()["status"], status);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_followed_until_the_job_is_over() {
    for place in everywhere() {
        let id = place.enqueue(&["t"]).to_string();
        let store = place.store().await;
        let claimed = claim(&*store).await;
        store.append_logs(claimed.token, vec![line(LogLevel::Info, "begun\u{7}")]).await.unwrap();

        let mut following = spawn(&place, &["jobs", "logs", "-f", &id]);
        let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        assert!(first.ends_with("info  [1] begun\\u{7}"), "{first}");
        store.append_logs(claimed.token, vec![line(LogLevel::Warn, "half way")]).await.unwrap();
        let second = lines.next().unwrap().unwrap();
        assert!(second.ends_with("warn  [1] half way"), "{second}");
        store.append_logs(claimed.token, vec![line(LogLevel::Error, "last words")]).await.unwrap();
        finish(&*store, &claimed, Outcome::DONE).await;
        let rest: Vec<String> = lines.map(Result::unwrap).collect();
        assert!(rest.len() == 1 && rest[0].ends_with("last words"), "{rest:?}");
        assert_eq!(following.wait().unwrap().code(), Some(0));

        let document = place.json(&["jobs", "logs", &id]);
        let messages: Vec<&str> =
            document["items"].as_array().unwrap().iter().map(|line| line["message"].as_str().unwrap()).collect();
        assert_eq!(messages, ["begun\u{7}", "half way", "last words"]);
        assert_eq!(document["items"][2]["level"], json!("error"));
        assert_eq!(place.run(&["jobs", "logs", "-f", &id, "--output", "jsonl"]).done().stdout.lines().count(), 3);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_of_many_pages_is_shown_whole_and_once() {
    let place = Place::sqlite();
    let id = place.enqueue(&["t"]).to_string();
    let store = place.store().await;
    let claimed = claim(&*store).await;
    for part in 0..3 {
        let lines = (0..800).map(|i| line(LogLevel::Info, &format!("line {}", part * 800 + i))).collect();
        store.append_logs(claimed.token, lines).await.unwrap();
    }
    finish(&*store, &claimed, Outcome::DONE).await;
    for follow in [&["jobs", "logs", &id][..], &["jobs", "logs", "-f", &id]] {
        let shown = place.run(follow).done().stdout;
        assert!(shown.lines().enumerate().all(|(i, line)| line.ends_with(&format!("] line {i}"))));
        assert_eq!(shown.lines().count(), 2_400);
    }
}
