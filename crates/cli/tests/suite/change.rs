//! Cancelling, retrying and forgetting jobs.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    time::Duration,
};

use orchestrix_core::{JobState, JobType, NewJob, Timestamp, WorkerName};
use orchestrix_store::{ClaimRequest, JobFilter, Outcome, OutcomeReport, PageRequest, prelude::*};
use serde_json::json;

use crate::support::{Place, Ran, bare, claim, everywhere, finish};

fn state(place: &Place, id: &impl ToString) -> String {
    place.json(&["jobs", "get", &id.to_string()])["state"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_job_is_cancelled_and_a_finished_one_is_a_conflict() {
    for place in everywhere() {
        let id = place.enqueue(&["t"]).to_string();
        let cancelled = json!({"items": [{"jobId": id, "status": "CANCELLED", "state": "cancelled"}]});
        assert_eq!(place.json(&["jobs", "cancel", &id]), cancelled);
        assert_eq!(place.json(&["jobs", "cancel", &id]), cancelled, "cancelling again is fine");
        let done = place.enqueue(&["t"]).to_string();
        place.work(Outcome::DONE).await;
        place.run(&["jobs", "cancel", &done]).ended(4, "it is completed and can no longer be cancelled");
        let waiting = place.enqueue(&["t"]).to_string();
        let ran = place.run(&["jobs", "cancel", &done, &waiting]).ended(4, &done);
        assert!(ran.stdout.contains(&waiting), "one that is refused leaves the others standing: {ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_dead_and_cancelled_jobs_are_retried() {
    for place in everywhere() {
        let dead = place.dead(&["t"], "broken").await.to_string();
        let waiting = place.enqueue(&["other", "--hold"]).to_string();
        assert_eq!(place.json(&["jobs", "retry", &dead])["items"][0]["state"], "pending");
        place.run(&["jobs", "retry", &dead]).ended(4, "only dead and cancelled jobs");
        place.run(&["jobs", "cancel", &waiting]).done();
        place.run(&["jobs", "retry", &waiting]).done();
        assert_eq!(place.work(Outcome::DONE).await, JobState::Completed);
    }
}

#[test]
fn a_held_job_is_released_and_may_be_again() {
    for place in everywhere() {
        let id = place.enqueue(&["t", "--hold"]).to_string();
        assert_eq!(place.json(&["jobs", "release", &id]), json!({"items": [{"jobId": id, "status": "PENDING"}]}));
        assert_eq!(place.json(&["jobs", "release", &id])["items"][0]["status"], "PENDING");
        place.run(&["jobs", "cancel", &id]).done();
        place.run(&["jobs", "release", &id]).ended(4, "only held jobs");
    }
}

#[test]
fn whatever_matches_is_cancelled_only_with_consent() {
    for place in everywhere() {
        let wanted: Vec<String> = (0..3).map(|_| place.enqueue(&["t", "--queue", "q"]).to_string()).collect();
        let other = place.enqueue(&["t"]);
        let cancel = ["jobs", "cancel", "--queue", "q"];
        place.run(&cancel).ended(2, "3 jobs would be cancelled. Add --yes to go ahead, or --dry-run to see which.");
        let dry = place.run(&[&cancel[..], &["--dry-run", "--yes"]].concat()).ended(0, "dry run: 3 jobs");
        assert!(wanted.iter().all(|id| dry.stdout.contains(id.as_str())), "{dry:?}");
        assert_eq!(state(&place, &wanted[0]), "pending");
        place.run(&[&cancel[..], &["--yes", "--limit", "1"]].concat()).ended(0, "more may match");
        place.run(&[&cancel[..], &["--yes"]].concat()).done();
        assert!(wanted.iter().all(|id| state(&place, id) == "cancelled"));
        assert_eq!(state(&place, &other), "pending");
        assert_eq!(place.json(&[&cancel[..], &["--yes"]].concat()), json!({"items": []}), "none is left");
        place.run(&["jobs", "cancel", "--all", "--yes"]).done();
        assert_eq!(state(&place, &other), "cancelled");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_jobs_are_listed_and_get_another_chance() {
    for place in everywhere() {
        let first = place.dead(&["a", "--queue", "q"], "broken").await.to_string();
        let second = place.dead(&["b"], "broken").await.to_string();
        let cancelled = place.enqueue(&["c"]).to_string();
        place.run(&["jobs", "cancel", &cancelled]).done();

        let list = place.json(&["dlq", "list"]);
        assert_eq!(list["items"].as_array().unwrap().len(), 2);
        assert_eq!(place.json(&["dlq", "list", "--queue", "q"])["items"][0]["jobId"], first.as_str());
        assert!(place.run(&["dlq", "list"]).done().stdout.contains("REASON"));

        place.run(&["dlq", "redrive", "--queue", "q"]).ended(2, "1 job would be retried. Add --yes");
        place.run(&["dlq", "redrive", "--all", "--dry-run"]).ended(0, "dry run: 2 jobs");
        place.run(&["dlq", "redrive", &second, "--dry-run"]).ended(0, "dry run: 1 job");
        assert_eq!((state(&place, &first), state(&place, &second)), ("dead".into(), "dead".into()));

        let redriven = place.json(&["dlq", "redrive", "--queue", "q", "--yes"]);
        assert_eq!(redriven["items"][0]["jobId"], first.as_str());
        assert_eq!((state(&place, &first), state(&place, &second)), ("pending".into(), "dead".into()));
        place.run(&["dlq", "redrive", &second]).done();
        let told = place.json(&["jobs", "get", &second])["transitions"].as_array().unwrap().last().unwrap().clone();
        assert_eq!((&told["event"], &told["state"]), (&json!("redriven"), &json!("pending")), "{told}");
        place.run(&["dlq", "redrive", &second]).ended(4, "it is pending; only dead jobs are redriven");
        place.run(&["dlq", "redrive", "--all", "--yes"]).ended(0, "0 jobs retried");
        place.run(&["dlq", "redrive", &cancelled]).ended(4, "it is cancelled; only dead jobs are redriven");
        assert_eq!(state(&place, &cancelled), "cancelled", "it was no dead letter");
        place.run(&["jobs", "retry", &cancelled]).done();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_says_of_every_job_what_would_become_of_it() {
    const NOBODY: &str = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70";
    for place in everywhere() {
        let dead = place.dead(&["t"], "broken").await.to_string();
        let cancelled = place.enqueue(&["t"]).to_string();
        place.run(&["jobs", "cancel", &cancelled]).done();
        let waiting = place.enqueue(&["t"]).to_string();
        let all = [dead.as_str(), &cancelled, &waiting, NOBODY];
        let dry = |command: [&str; 2], ids: &[&str]| place.run(&[&command[..], ids, &["--dry-run"]].concat());

        let ran = dry(["jobs", "cancel"], &all).ended(4, "dry run: 1 job would be changed");
        assert!(ran.stderr.contains(&format!("job {dead}: it is dead and can no longer be cancelled")), "{ran:?}");
        assert!(ran.stderr.contains(&format!("job {NOBODY}: there is no job")), "{ran:?}");
        assert!([&waiting, &cancelled].iter().all(|id| ran.stdout.contains(id.as_str())), "{ran:?}");
        assert!(!ran.stdout.contains(&dead), "{ran:?}");
        dry(["jobs", "cancel"], &[&waiting, &cancelled]).ended(0, "dry run: 1 job would be changed");

        let ran = dry(["dlq", "redrive"], &all).ended(4, "dry run: 1 job would be changed");
        for (id, state) in [(&cancelled, "cancelled"), (&waiting, "pending")] {
            let text = format!("job {id}: it is {state}; only dead jobs are redriven");
            assert!(ran.stderr.contains(&text) && !ran.stdout.contains(id.as_str()), "{ran:?}");
        }
        assert!(ran.stdout.contains(&dead), "{ran:?}");
        assert_eq!(
            ["dead", "cancelled", "pending"],
            [&dead, &cancelled, &waiting].map(|id| state(&place, id)).each_ref().map(String::as_str)
        );
    }
}

/// Passes requests on one at a time, and calls `after` with each before it is answered.
fn stand_before(target: String, after: impl Fn(&str) + Send + 'static) -> String {
    fn message(stream: &mut TcpStream) -> Option<String> {
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
            while let Some(request) = message(&mut client) {
                server.write_all(request.as_bytes()).unwrap();
                let answer = message(&mut server).unwrap();
                after(&request);
                client.write_all(answer.as_bytes()).unwrap();
            }
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redrive_reaches_the_oldest_though_those_before_them_die_again_at_once() {
    // Two more than one request retries.
    const JOBS: usize = 1_002;
    async fn kill_all(store: &dyn Store) -> usize {
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
    let place = Place::served();
    let store = place.store().await;
    store.enqueue_jobs(vec![NewJob::new(JobType::trusted("t")); JOBS]).await.unwrap();
    assert_eq!(kill_all(&*store).await, JOBS);
    let (runtime, killer) = (tokio::runtime::Handle::current(), Arc::clone(&store));
    let address = stand_before(place.address(), move |request| {
        if request.starts_with("POST /admin/dlq/redrive") {
            assert!(runtime.block_on(kill_all(&*killer)) > 0);
        }
    });
    let redrive = ["dlq", "redrive", "--all", "--yes", "--server", &address];
    let ran = tokio::task::block_in_place(|| Ran::of(&mut bare(&redrive)));
    ran.ended(0, "1002 jobs retried");
    let mut page = PageRequest::first(1_000);
    let mut twice = 0;
    loop {
        let part = store.list_jobs(&JobFilter::default(), &page).await.unwrap();
        twice += part.items.iter().filter(|job| job.attempts == 2).count();
        let Some(next) = part.next else { break };
        page = PageRequest::after(next, 1_000);
    }
    assert_eq!(twice, JOBS, "each was retried just once");
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_jobs_are_forgotten_and_nothing_else_is() {
    for place in everywhere() {
        let done = place.enqueue(&["t"]);
        place.work(Outcome::DONE).await;
        let cancelled = place.enqueue(&["t"]).to_string();
        place.run(&["jobs", "cancel", &cancelled]).done();
        let dead = place.dead(&["t", "--idempotency-key", "k"], "broken").await.to_string();
        let waiting = place.enqueue(&["t"]);

        place
            .run(&["dlq", "purge", "--all"])
            .ended(2, "1 job would be forgotten for good. Add --yes to go ahead, or --dry-run to see how many.");
        assert_eq!(place.json(&["dlq", "purge", "--all", "--dry-run"]), json!({"count": 1, "dryRun": true}));
        assert_eq!(place.json(&["dlq", "purge", "--older-than", "1h", "--yes"]), json!({"count": 0, "dryRun": false}));
        assert_eq!(state(&place, &dead), "dead");
        assert_eq!(place.json(&["dlq", "purge", "--all", "--yes"]), json!({"count": 1, "dryRun": false}));
        place.run(&["jobs", "get", &dead]).ended(3, &dead);
        for (id, kept) in [(done, "completed"), (waiting, "pending")] {
            assert_eq!(state(&place, &id), kept);
        }
        assert_eq!(state(&place, &cancelled), "cancelled");
        let again = place.json(&["jobs", "enqueue", "t", "--idempotency-key", "k"]);
        assert_eq!(again, json!({"jobId": dead, "status": "FAILED"}), "its key outlives it");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_those_that_died_long_enough_ago_are_forgotten() {
    let place = Place::sqlite();
    place.run(&["migrate"]).done();
    let earlier = place.store_at(Timestamp::now() - Duration::from_secs(7_200)).await;
    let old = earlier.enqueue_job(NewJob::new(JobType::new("t").unwrap())).await.unwrap().id.to_string();
    let claimed = claim(&earlier).await;
    finish(&earlier, &claimed, Outcome::Fail { error: "broken".into(), retryable: false, retry_after: None }).await;
    let recent = place.dead(&["t"], "broken").await.to_string();
    assert_eq!(place.json(&["dlq", "purge", "--older-than", "1h", "--dry-run"]), json!({"count": 1, "dryRun": true}));
    assert_eq!(place.json(&["dlq", "purge", "--older-than", "1h", "--yes"]), json!({"count": 1, "dryRun": false}));
    place.run(&["jobs", "get", &old]).ended(3, &old);
    assert_eq!(state(&place, &recent), "dead");
}
