//! Cancelling, retrying, releasing, redriving and purging jobs.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    time::Duration,
};

use orchestrix_core::{JobState, JobType, NewJob, Timestamp, WorkerName};
use orchestrix_store::{ClaimRequest, JobFilter, Outcome, OutcomeReport, PageRequest, prelude::*};
use serde_json::json;

use crate::harness::{CliOutput, TestEnv, claim_one, each_database_and_server, finish, orchestrix};

fn state(env: &TestEnv, id: &impl ToString) -> String {
    env.json(&["jobs", "get", &id.to_string()])["state"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_job_is_cancelled_and_a_finished_one_conflicts() {
    for env in each_database_and_server() {
        let id = env.enqueue(&["t"]).to_string();
        let cancelled = json!({"items": [{"jobId": id, "status": "CANCELLED", "state": "cancelled"}]});
        assert_eq!(env.json(&["jobs", "cancel", &id]), cancelled);
        assert_eq!(env.json(&["jobs", "cancel", &id]), cancelled, "a second cancel succeeds");
        let done = env.enqueue(&["t"]).to_string();
        env.finish_next_job(Outcome::DONE).await;
        env.run(&["jobs", "cancel", &done]).exits_with(4, "completed");
        let waiting = env.enqueue(&["t"]).to_string();
        let ran = env.run(&["jobs", "cancel", &done, &waiting]).exits_with(4, &done);
        assert!(ran.stdout.contains(&waiting), "a refused job does not stop the others: {ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_dead_and_cancelled_jobs_are_retried() {
    for env in each_database_and_server() {
        let dead = env.enqueue_dead_job(&["t"], "broken").await.to_string();
        let waiting = env.enqueue(&["other", "--hold"]).to_string();
        assert_eq!(env.json(&["jobs", "retry", &dead])["items"][0]["state"], "pending");
        env.run(&["jobs", "retry", &dead]).exits_with(4, "pending");
        env.run(&["jobs", "cancel", &waiting]).success();
        env.run(&["jobs", "retry", &waiting]).success();
        assert_eq!(env.finish_next_job(Outcome::DONE).await, JobState::Completed);
    }
}

#[test]
fn a_held_job_is_released_and_a_second_release_succeeds() {
    for env in each_database_and_server() {
        let id = env.enqueue(&["t", "--hold"]).to_string();
        assert_eq!(env.json(&["jobs", "release", &id]), json!({"items": [{"jobId": id, "status": "PENDING"}]}));
        assert_eq!(env.json(&["jobs", "release", &id])["items"][0]["status"], "PENDING");
        env.run(&["jobs", "cancel", &id]).success();
        env.run(&["jobs", "release", &id]).exits_with(4, "cancelled");
    }
}

#[test]
fn cancelling_by_filter_needs_consent() {
    for env in each_database_and_server() {
        let wanted: Vec<String> = (0..3).map(|_| env.enqueue(&["t", "--queue", "q"]).to_string()).collect();
        let other = env.enqueue(&["t"]);
        let cancel = ["jobs", "cancel", "--queue", "q"];
        env.run(&cancel).exits_with(2, "3 jobs would be cancelled");
        let dry = env.run(&[&cancel[..], &["--dry-run", "--yes"]].concat()).exits_with(0, "dry run: 3 jobs");
        assert!(wanted.iter().all(|id| dry.stdout.contains(id.as_str())), "{dry:?}");
        assert_eq!(state(&env, &wanted[0]), "pending");
        env.run(&[&cancel[..], &["--yes", "--limit", "1"]].concat()).exits_with(0, "more");
        env.run(&[&cancel[..], &["--yes"]].concat()).success();
        assert!(wanted.iter().all(|id| state(&env, id) == "cancelled"));
        assert_eq!(state(&env, &other), "pending");
        assert_eq!(env.json(&[&cancel[..], &["--yes"]].concat()), json!({"items": []}), "no job is left");
        env.run(&["jobs", "cancel", "--all", "--yes"]).success();
        assert_eq!(state(&env, &other), "cancelled");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_jobs_are_listed_and_redriven() {
    for env in each_database_and_server() {
        let first = env.enqueue_dead_job(&["a", "--queue", "q"], "broken").await.to_string();
        let second = env.enqueue_dead_job(&["b"], "broken").await.to_string();
        let cancelled = env.enqueue(&["c"]).to_string();
        env.run(&["jobs", "cancel", &cancelled]).success();

        let list = env.json(&["dlq", "list"]);
        assert_eq!(list["items"].as_array().unwrap().len(), 2);
        assert_eq!(env.json(&["dlq", "list", "--queue", "q"])["items"][0]["jobId"], first.as_str());
        assert!(env.run(&["dlq", "list"]).success().stdout.contains("REASON"));

        env.run(&["dlq", "redrive", "--queue", "q"]).exits_with(2, "1 job would be redriven");
        env.run(&["dlq", "redrive", "--all", "--dry-run"]).exits_with(0, "dry run: 2 jobs");
        env.run(&["dlq", "redrive", &second, "--dry-run"]).exits_with(0, "dry run: 1 job");
        assert_eq!((state(&env, &first), state(&env, &second)), ("dead".into(), "dead".into()));

        let redriven = env.json(&["dlq", "redrive", "--queue", "q", "--yes"]);
        assert_eq!(redriven["items"][0]["jobId"], first.as_str());
        assert_eq!((state(&env, &first), state(&env, &second)), ("pending".into(), "dead".into()));
        env.run(&["dlq", "redrive", &second]).success();
        let last = env.json(&["jobs", "get", &second])["transitions"].as_array().unwrap().last().unwrap().clone();
        assert_eq!((&last["event"], &last["state"]), (&json!("redriven"), &json!("pending")), "{last}");
        env.run(&["dlq", "redrive", &second]).exits_with(4, "pending");
        env.run(&["dlq", "redrive", "--all", "--yes"]).exits_with(0, "0 jobs");
        env.run(&["dlq", "redrive", &cancelled]).exits_with(4, "cancelled");
        assert_eq!(state(&env, &cancelled), "cancelled", "a cancelled job is not redriven");
        env.run(&["jobs", "retry", &cancelled]).success();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_reports_the_effect_on_every_job() {
    const UNKNOWN_ID: &str = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70";
    for env in each_database_and_server() {
        let dead = env.enqueue_dead_job(&["t"], "broken").await.to_string();
        let cancelled = env.enqueue(&["t"]).to_string();
        env.run(&["jobs", "cancel", &cancelled]).success();
        let waiting = env.enqueue(&["t"]).to_string();
        let all = [dead.as_str(), &cancelled, &waiting, UNKNOWN_ID];
        let dry = |command: [&str; 2], ids: &[&str]| env.run(&[&command[..], ids, &["--dry-run"]].concat());

        let ran = dry(["jobs", "cancel"], &all).exits_with(4, "dry run: 1 job");
        assert!(ran.stderr.contains(&format!("job {dead}: ")), "{ran:?}");
        assert!(ran.stderr.contains(&format!("there is no job {UNKNOWN_ID}")), "{ran:?}");
        assert!([&waiting, &cancelled].iter().all(|id| ran.stdout.contains(id.as_str())), "{ran:?}");
        assert!(!ran.stdout.contains(&dead), "{ran:?}");
        dry(["jobs", "cancel"], &[&waiting, &cancelled]).exits_with(0, "dry run: 1 job");

        let ran = dry(["dlq", "redrive"], &all).exits_with(4, "dry run: 1 job");
        for (id, state) in [(&cancelled, "cancelled"), (&waiting, "pending")] {
            let line = ran.stderr.lines().find(|line| line.contains(&format!("job {id}: "))).unwrap_or_default();
            assert!(line.contains(state) && !ran.stdout.contains(id.as_str()), "{ran:?}");
        }
        assert!(ran.stdout.contains(&dead), "{ran:?}");
        assert_eq!(
            ["dead", "cancelled", "pending"],
            [&dead, &cancelled, &waiting].map(|id| state(&env, id)).each_ref().map(String::as_str)
        );
    }
}

/// Starts a proxy that forwards one request at a time, and calls `after` before it returns each response.
fn start_proxy(target: String, after: impl Fn(&str) + Send + 'static) -> String {
    fn read_message(stream: &mut TcpStream) -> Option<String> {
        let (mut text, mut buffer) = (String::new(), [0; 64 * 1024]);
        loop {
            let n = stream.read(&mut buffer).ok().filter(|n| *n > 0)?;
            text.push_str(std::str::from_utf8(&buffer[..n]).unwrap());
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if length.is_none_or(|length| body.len() >= length.parse().unwrap()) {
                return Some(text);
            }
        }
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            let mut server = TcpStream::connect(&target).unwrap();
            while let Some(request) = read_message(&mut client) {
                server.write_all(request.as_bytes()).unwrap();
                let answer = read_message(&mut server).unwrap();
                after(&request);
                client.write_all(answer.as_bytes()).unwrap();
            }
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redrive_reaches_the_oldest_jobs_even_if_newer_ones_die_again_at_once() {
    // Two more than one request redrives.
    const JOBS: usize = 1_002;
    async fn fail_all(store: &dyn Store) -> usize {
        let mut killed = 0;
        loop {
            let worker = WorkerName::new("hand").unwrap();
            let claimed = store.claim_jobs(&ClaimRequest::any(worker, 1_000)).await.unwrap();
            if claimed.is_empty() {
                return killed;
            }
            let outcome = Outcome::Fail { error: "broken".into(), retryable: false, retry_after: None };
            let ends = claimed.iter().map(|job| OutcomeReport { token: job.token, outcome: outcome.clone() });
            killed += store.finish_attempts(ends.collect()).await.unwrap().len();
        }
    }
    let env = TestEnv::behind_server();
    let store = env.store().await;
    store.enqueue_jobs(vec![NewJob::new(JobType::trusted("t")); JOBS]).await.unwrap();
    assert_eq!(fail_all(&*store).await, JOBS);
    let (runtime, killer) = (tokio::runtime::Handle::current(), Arc::clone(&store));
    let address = start_proxy(env.address(), move |request| {
        if request.starts_with("POST /admin/dlq/redrive") {
            assert!(runtime.block_on(fail_all(&*killer)) > 0);
        }
    });
    let redrive = ["dlq", "redrive", "--all", "--yes", "--server", &address];
    let ran = tokio::task::block_in_place(|| CliOutput::run(&mut orchestrix(&redrive)));
    ran.exits_with(0, "1002 jobs");
    let mut page = PageRequest::first(1_000);
    let mut twice = 0;
    loop {
        let part = store.list_jobs(&JobFilter::default(), &page).await.unwrap();
        twice += part.items.iter().filter(|job| job.attempts == 2).count();
        let Some(next) = part.next else { break };
        page = PageRequest::after(next, 1_000);
    }
    assert_eq!(twice, JOBS, "each job was redriven exactly once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_removes_dead_jobs_only() {
    for env in each_database_and_server() {
        let done = env.enqueue(&["t"]);
        env.finish_next_job(Outcome::DONE).await;
        let cancelled = env.enqueue(&["t"]).to_string();
        env.run(&["jobs", "cancel", &cancelled]).success();
        let dead = env.enqueue_dead_job(&["t", "--idempotency-key", "k"], "broken").await.to_string();
        let waiting = env.enqueue(&["t"]);

        env.run(&["dlq", "purge", "--all"]).exits_with(2, "--yes");
        assert_eq!(env.json(&["dlq", "purge", "--all", "--dry-run"]), json!({"count": 1, "dryRun": true}));
        assert_eq!(env.json(&["dlq", "purge", "--older-than", "1h", "--yes"]), json!({"count": 0, "dryRun": false}));
        assert_eq!(state(&env, &dead), "dead");
        assert_eq!(env.json(&["dlq", "purge", "--all", "--yes"]), json!({"count": 1, "dryRun": false}));
        env.run(&["jobs", "get", &dead]).exits_with(3, &dead);
        for (id, kept) in [(done, "completed"), (waiting, "pending")] {
            assert_eq!(state(&env, &id), kept);
        }
        assert_eq!(state(&env, &cancelled), "cancelled");
        let again = env.json(&["jobs", "enqueue", "t", "--idempotency-key", "k"]);
        assert_eq!(again, json!({"jobId": dead, "status": "FAILED"}), "the idempotency key outlives the job");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_respects_older_than() {
    let env = TestEnv::sqlite();
    env.run(&["migrate"]).success();
    let earlier = env.store_at(Timestamp::now() - Duration::from_secs(7_200)).await;
    let old = earlier.enqueue_job(NewJob::new(JobType::new("t").unwrap())).await.unwrap().id.to_string();
    let claimed = claim_one(&earlier).await;
    finish(&earlier, &claimed, Outcome::Fail { error: "broken".into(), retryable: false, retry_after: None }).await;
    let recent = env.enqueue_dead_job(&["t"], "broken").await.to_string();
    assert_eq!(env.json(&["dlq", "purge", "--older-than", "1h", "--dry-run"]), json!({"count": 1, "dryRun": true}));
    assert_eq!(env.json(&["dlq", "purge", "--older-than", "1h", "--yes"]), json!({"count": 1, "dryRun": false}));
    env.run(&["jobs", "get", &old]).exits_with(3, &old);
    assert_eq!(state(&env, &recent), "dead");
}
