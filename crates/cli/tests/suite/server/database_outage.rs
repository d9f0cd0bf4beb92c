//! A database whose connections break repeatedly, in the middle of requests.

use std::{
    collections::BTreeSet,
    sync::{
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::Instant,
};

use orchestrix_testkit::FaultProxy;
use serde_json::{Value, json};

use super::{
    connection::Connection,
    leak_check::LeakCheck,
    process::{Response, ServerProcess, TIMEOUT},
};
use crate::harness::TestEnv;

const CLIENTS: usize = 16;
const CUTS: usize = 10;
/// Accepted requests between two cuts.
const BETWEEN: usize = 100;

/// The n-th request: a single job, a job with an idempotency key, or a graph.
fn request(n: usize) -> (&'static str, Value) {
    match n % 4 {
        0 => {
            let first = json!({"jobType": "graph", "ref": "a", "payload": n, "idempotencyKey": format!("{n}")});
            ("/jobs/batch", json!({"jobs": [first, {"jobType": "graph", "payload": n, "dependsOn": ["ref:a"]}]}))
        }
        1 => ("/jobs", json!({"jobType": "keyed", "payload": n, "idempotencyKey": format!("{n}")})),
        _ => ("/jobs", json!({"jobType": "plain", "payload": n})),
    }
}

// The ids of the accepted jobs, or `None` for a 503. Any other response is an error.
fn accepted(answer: &Response) -> Option<Vec<String>> {
    if answer.status == 202 {
        let body = answer.json();
        let id = |job: &Value| job["jobId"].as_str().unwrap().to_owned();
        return Some(body["jobs"].as_array().map_or_else(|| vec![id(&body)], |jobs| jobs.iter().map(id).collect()));
    }
    answer.problem(503, "unavailable");
    assert!(answer.header("retry-after").is_some_and(|seconds| seconds.parse::<u32>().is_ok()), "{answer:?}");
    None
}

// Receives responses until `wanted` of the given kind have come; returns the ids of all jobs accepted meanwhile.
fn receive(
    receiver: &Receiver<Option<Vec<String>>>,
    mut wanted: usize,
    is_wanted: impl Fn(bool) -> bool,
) -> Vec<String> {
    let deadline = Instant::now() + TIMEOUT;
    let mut jobs = Vec::new();
    while wanted > 0 {
        let answer =
            receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())).expect("the awaited answers");
        wanted -= usize::from(is_wanted(answer.is_some()));
        jobs.extend(answer.into_iter().flatten());
    }
    jobs
}

fn client(server: &ServerProcess, next: &AtomicUsize, over: &AtomicBool, sender: &Sender<Option<Vec<String>>>) {
    let mut connection = Connection::open(&server.address).unwrap();
    while !over.load(Ordering::Relaxed) {
        let (path, body) = request(next.fetch_add(1, Ordering::Relaxed));
        // The server stays up: every request gets a response, on a connection that stays open.
        let answer = connection.request("POST", path, &body.to_string()).unwrap();
        if sender.send(accepted(&answer)).is_err() {
            return;
        }
    }
}

#[test]
fn a_breaking_database_costs_responses_but_no_accepted_job() {
    let env = TestEnv::postgres();
    let config: tokio_postgres::Config = env.url().parse().unwrap();
    let port = config.get_ports()[0];
    let proxy = FaultProxy::start(([127, 0, 0, 1], port).into()).unwrap();
    let through = env.url().replace(&format!(":{port}/"), &format!(":{}/", proxy.address().port()));
    let server = ServerProcess::start(&TestEnv::at_url(through));
    let leaks = LeakCheck::baseline(&server, &env);

    let (next, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut jobs = Vec::new();
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..CLIENTS {
            let (sender, server, next, over) = (sender.clone(), &server, &next, &over);
            scope.spawn(move || client(server, next, over, &sender));
        }
        drop(sender);
        for _ in 0..CUTS {
            jobs.extend(receive(&receiver, BETWEEN, |accepted| accepted));
            proxy.cut();
            jobs.extend(receive(&receiver, CLIENTS, |accepted| !accepted));
            // Requests in flight have been answered; nothing is accepted now.
            assert_eq!(accepted(&server.post("/jobs", &json!({"jobType": "plain"}))), None);
            let ready = server.get("/readyz");
            assert_eq!((ready.status, &ready.json()["status"]), (503, &"unavailable".into()));
            proxy.restore();
        }
        jobs.extend(receive(&receiver, BETWEEN, |accepted| accepted));
        over.store(true, Ordering::Relaxed);
        jobs.extend(receiver.into_iter().flatten().flatten());
    });

    let there: BTreeSet<String> = env.sql("SELECT id FROM orchestrix.jobs").into_iter().collect();
    let lost: Vec<&String> = jobs.iter().filter(|id| !there.contains(*id)).collect();
    assert!(lost.is_empty(), "{} of {} accepted jobs are lost", lost.len(), jobs.len());
    let torn = env.sql(
        "SELECT count(*) || ' jobs, ' || count(d.child) || ' edges' FROM orchestrix.job j
            LEFT JOIN orchestrix.dependency d ON d.child = j.id
        WHERE j.job_type = 'graph' GROUP BY payload HAVING count(*) <> 2 OR count(d.child) <> 1",
    );
    assert!(torn.is_empty(), "incomplete graphs: {torn:?}");
    let doubled = "SELECT payload FROM orchestrix.jobs WHERE job_type = 'keyed' GROUP BY payload HAVING count(*) > 1";
    assert_eq!(env.sql(doubled), [""; 0]);

    // Leases and leadership recover by themselves.
    let deadline = Instant::now() + TIMEOUT;
    let ask = json!({"workerId": "w", "queues": ["*"], "max": 1, "waitSeconds": 5});
    while server.post("/worker/leases", &ask).json()["leases"].as_array().is_none_or(Vec::is_empty)
        || server.get("/readyz").json()["status"] != "ok"
    {
        assert!(Instant::now() < deadline, "leases or leadership did not recover: {:?}", server.get("/readyz"));
    }
    leaks.assert_back_to_baseline();
}
