//! Ten times as many clients as the server admits: most get 429 at once, and every response is true.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use serde_json::json;

use super::{
    connection::{Connection, encode_request},
    leak_check::{LeakCheck, TableLock, enqueue_concurrently},
    process::{Response, ServerProcess, TIMEOUT},
};
use crate::harness::TestEnv;

/// Requests that run, and requests that queue.
const MAX_REQUESTS: usize = 4;
const MAX_WAITING: usize = 8;
const LIMITS: [&str; 4] = ["--max-requests", "4", "--max-waiting", "8"];
const CLIENTS: usize = 10 * (MAX_REQUESTS + MAX_WAITING);

fn job(n: usize) -> String {
    json!({"jobType": "t", "payload": n}).to_string()
}

// The jobs in the database, by their payloads.
fn recorded(env: &TestEnv) -> BTreeSet<usize> {
    let payloads = env.sql("SELECT payload FROM orchestrix.job WHERE job_type = 't'");
    let numbers: BTreeSet<usize> = payloads.iter().map(|payload| payload.parse().unwrap()).collect();
    assert_eq!(numbers.len(), payloads.len(), "a job was stored twice");
    numbers
}

fn is_rejected(answer: &Response) -> bool {
    if answer.status != 429 {
        return false;
    }
    answer.problem(429, "rate_limited");
    assert!(answer.header("retry-after").is_some_and(|seconds| seconds.parse::<u32>().is_ok()), "{answer:?}");
    true
}

#[test]
fn a_blocked_database_leads_to_429_and_health_checks_still_answer() {
    let env = TestEnv::postgres();
    let server = ServerProcess::start_with(&env, &[&["--roles", "api"], &LIMITS[..]].concat());
    let held = TableLock::acquire(&env, "job");
    let answers: Vec<(usize, Response)> = thread::scope(|scope| {
        let (sender, responses) = mpsc::channel();
        for n in 0..CLIENTS {
            let (sender, server) = (sender.clone(), &server);
            scope.spawn(move || sender.send((n, server.send("POST", "/jobs", &job(n)))));
        }
        drop(sender);
        let next = || responses.recv_timeout(TIMEOUT).expect("an answer");
        let mut answers: Vec<_> = (0..CLIENTS - MAX_REQUESTS).map(|_| next()).collect();
        assert!(answers.iter().all(|(_, answer)| is_rejected(answer)), "{answers:?}");
        for path in ["/healthz", "/readyz"] {
            assert_eq!(server.get(path).status, 200, "{path}");
        }
        drop(held);
        answers.extend((0..MAX_REQUESTS).map(|_| next()));
        answers
    });
    // The full capacity is available again at once.
    assert_eq!(enqueue_concurrently(&server, MAX_REQUESTS + MAX_WAITING), [202; MAX_REQUESTS + MAX_WAITING]);
    for (_, answer) in &answers[CLIENTS - MAX_REQUESTS..] {
        // On a slow machine the lock may outlast the lock timeout.
        assert!([202, 503].contains(&answer.status), "{answer:?}");
    }
    let accepted = answers.iter().filter(|(_, answer)| answer.status == 202).map(|(n, _)| *n);
    assert_eq!(recorded(&env), accepted.collect());
}

/// The outcome of each request, by its number.
#[derive(Default)]
struct Answers {
    accepted: BTreeSet<usize>,
    rejected: BTreeSet<usize>,
    /// Sent by clients that did not wait for the response.
    unknown: BTreeSet<usize>,
}

const REQUESTS: usize = 5_000;

fn client(server: &ServerProcess, next: &AtomicUsize, answers: &Mutex<Answers>) {
    let mut connection = None;
    loop {
        let n = next.fetch_add(1, Ordering::Relaxed);
        if n >= REQUESTS {
            return;
        }
        let mut open = connection.take().unwrap_or_else(|| Connection::open(&server.address).unwrap());
        if n.is_multiple_of(10) {
            open.send(&encode_request("POST", "/jobs", &job(n))).unwrap();
            answers.lock().unwrap().unknown.insert(n);
            continue;
        }
        let answer = open.request("POST", "/jobs", &job(n)).unwrap();
        let rejected = is_rejected(&answer);
        assert!(rejected || answer.status == 202, "{answer:?}");
        let mut answers = answers.lock().unwrap();
        if rejected { &mut answers.rejected } else { &mut answers.accepted }.insert(n);
        connection = Some(open);
    }
}

#[test]
fn under_overload_every_response_is_true_and_nothing_leaks() {
    let env = TestEnv::postgres();
    let server = ServerProcess::start_with(&env, &LIMITS);
    let leaks = LeakCheck::baseline(&server, &env);
    let (next, answers, over) = (AtomicUsize::new(0), Mutex::new(Answers::default()), AtomicBool::new(false));
    let checks = thread::scope(|scope| {
        let health = scope.spawn(|| {
            let mut checks = 0;
            while !over.load(Ordering::Relaxed) {
                for path in ["/healthz", "/readyz"] {
                    assert_eq!(server.get(path).status, 200, "{path}");
                    checks += 1;
                }
            }
            checks
        });
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| client(&server, &next, &answers))).collect();
        let ended: Vec<_> = clients.into_iter().map(thread::ScopedJoinHandle::join).collect();
        over.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|ended| ended.unwrap());
        health.join().unwrap()
    });
    assert!(checks > 0, "no health check ran");
    leaks.wait_until("the full capacity is available again", || {
        enqueue_concurrently(&server, MAX_REQUESTS + MAX_WAITING) == [202; MAX_REQUESTS + MAX_WAITING]
    });
    leaks.assert_back_to_baseline();

    let (answers, recorded) = (answers.into_inner().unwrap(), recorded(&env));
    let (accepted, rejected) = (answers.accepted.len(), answers.rejected.len());
    assert!(accepted > 0 && rejected > 0, "{accepted} accepted, {rejected} rejected: the test proves nothing");
    assert_eq!(answers.accepted.difference(&recorded).count(), 0, "accepted but not stored");
    assert_eq!(answers.rejected.intersection(&recorded).count(), 0, "rejected but stored");
    let besides = recorded.difference(&answers.accepted).filter(|n| !answers.unknown.contains(n)).count();
    assert_eq!(besides, 0, "stored although the response was not 202");
}
