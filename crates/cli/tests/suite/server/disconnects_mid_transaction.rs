//! Clients that disconnect while the database works on their request.
//!
//! A lock held by the test makes this deterministic: the client disconnects, the server notices, and only then does
//! the database go on.

use std::{
    collections::BTreeSet,
    io::{Read, Write},
    net::{Shutdown, TcpStream},
};

use serde_json::{Value, json};

use super::{
    connection::encode_request,
    leak_check::{LeakCheck, MAX_SESSIONS, TableLock},
    process::{ServerProcess, TIMEOUT},
};
use crate::harness::TestEnv;

/// No coordinator, so that only the request under test blocks; and fewer admission permits than clients, so that a
/// leaked permit would block the test.
const SERVER_FLAGS: &[&str] = &["--roles", "api", "--max-requests", "4"];

struct DisconnectTest<'a> {
    server: &'a ServerProcess,
    env: &'a TestEnv,
    leaks: LeakCheck<'a>,
}

impl DisconnectTest<'_> {
    // Sends a request that blocks on a locked table, and disconnects. Returns once the server has finished with it.
    fn disconnect_while_blocked_on(&self, table: &str, method: &str, path: &str, body: &Value) {
        let held = TableLock::acquire(self.env, table);
        let body = if method == "GET" { String::new() } else { body.to_string() };
        let mut stream = self.send(&encode_request(method, path, &body));
        self.leaks.wait_until("the request blocks", || !self.leaks.blocked_sessions().is_empty());
        disconnect(&mut stream);
        drop(held);
        self.leaks.wait_until("no request is in progress", || {
            self.leaks.blocked_sessions().is_empty() && self.leaks.open_transactions() == 0
        });
    }

    fn send(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(&self.server.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.write_all(bytes).unwrap();
        stream
    }

    fn jobs(&self, job_type: &str) -> usize {
        self.leaks.count(&format!("SELECT count(*) FROM orchestrix.jobs WHERE job_type = '{job_type}'"))
    }
}

// Shuts down the sending side and reads to the end. An empty response means that the server closed because the client
// did.
fn disconnect(stream: &mut TcpStream) {
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(String::from_utf8_lossy(&answer), "", "the request was answered before the disconnect");
}

#[test]
fn a_disconnect_mid_transaction_commits_everything_or_nothing() {
    let env = TestEnv::postgres();
    let server = ServerProcess::start_with(&env, SERVER_FLAGS);
    let test = DisconnectTest { leaks: LeakCheck::baseline(&server, &env), server: &server, env: &env };

    test.disconnect_while_blocked_on("job", "POST", "/jobs", &json!({"jobType": "one"}));
    test.disconnect_while_blocked_on("job", "POST", "/jobs", &json!({"jobType": "one", "idempotencyKey": "k"}));
    server.post("/jobs", &json!({"jobType": "one", "idempotencyKey": "k"})).accepted_job_id();
    assert!((1..=2).contains(&test.jobs("one")), "one job with a key, and at most one without");

    // The jobs are inserted, their dependencies are not.
    let graph = json!({"jobs": [{"jobType": "graph", "ref": "a", "idempotencyKey": "a"},
        {"jobType": "graph", "dependsOn": ["ref:a"], "idempotencyKey": "b"}]});
    test.disconnect_while_blocked_on("dependency", "POST", "/jobs/batch", &graph);
    let edges = || test.leaks.count("SELECT count(*) FROM orchestrix.dependency");
    let there = (test.jobs("graph"), edges());
    assert!([(0, 0), (2, 1)].contains(&there), "jobs and dependencies: {there:?}");
    assert_eq!(server.post("/jobs/batch", &graph).status, 202);
    assert_eq!((test.jobs("graph"), edges()), (2, 1));

    let schedule = json!({"everySeconds": 86400, "job": {"jobType": "t"}});
    test.disconnect_while_blocked_on("schedule", "PUT", "/schedules/nightly", &schedule);
    let put = server.send("PUT", "/schedules/nightly", &schedule.to_string());
    assert!([200, 201].contains(&put.status), "{put:?}");

    let id = server.post("/jobs", &json!({"jobType": "seen"})).accepted_job_id();
    test.disconnect_while_blocked_on("job", "GET", &format!("/jobs/{id}"), &Value::Null);

    server.post("/jobs", &json!({"jobType": "done", "queue": "done"})).accepted_job_id();
    let ask = json!({"workerId": "w", "queues": ["done"], "max": 1, "waitSeconds": 50});
    let lease = server.post("/worker/leases", &ask).json()["leases"][0]["leaseToken"].clone();
    let outcomes = json!({"items": [{"leaseToken": lease}]});
    test.disconnect_while_blocked_on("job", "POST", "/worker/leases/complete-batch", &outcomes);
    let answer = server.post("/worker/leases/complete-batch", &outcomes).json();
    assert_eq!(answer["items"][0]["status"], "COMPLETED", "{answer}");

    test.leaks.assert_back_to_baseline();
}

#[test]
fn jobs_leased_for_a_disconnected_client_are_released_at_once() {
    let env = TestEnv::postgres();
    let server = ServerProcess::start_with(&env, SERVER_FLAGS);
    let test = DisconnectTest { leaks: LeakCheck::baseline(&server, &env), server: &server, env: &env };
    // The lease would expire long after the test.
    let job = json!({"jobType": "t", "queue": "q", "leaseSeconds": 3600});
    let ask = |worker: &str, wait: u32| json!({"workerId": worker, "queues": ["q"], "max": 1, "waitSeconds": wait});

    // Disconnected during the claim, which leases the job nevertheless.
    let id = server.post("/jobs", &job).accepted_job_id();
    test.disconnect_while_blocked_on("job", "POST", "/worker/leases", &ask("gone", 0));
    let again = format!(
        "SELECT count(*) FROM orchestrix.job WHERE id = '{id}' AND state = 'pending' AND lease_counter = 1 AND attempts = 0"
    );
    test.leaks.wait_until("the job is released without using an attempt", || test.leaks.count(&again) == 1);
    assert_eq!(server.post("/worker/leases", &ask("stays", 50)).json()["leases"][0]["jobId"], *id);

    // Disconnected during the long poll: the next job goes to another worker.
    for n in 0..10 {
        let worker = format!("waits-{n}");
        let mut stream = test.send(&encode_request("POST", "/worker/leases", &ask(&worker, 50).to_string()));
        // The worker is registered, so its request is in progress.
        let known = format!("SELECT count(*) FROM orchestrix.worker WHERE name = '{worker}'");
        test.leaks.wait_until("the worker is registered", || test.leaks.count(&known) == 1);
        disconnect(&mut stream);
        let id = server.post("/jobs", &job).accepted_job_id();
        assert_eq!(server.post("/worker/leases", &ask("stays", 50)).json()["leases"][0]["jobId"], *id);
    }
    test.leaks.assert_back_to_baseline();
}

#[test]
fn disconnects_from_a_slow_database_use_no_more_connections_than_the_pool_has() {
    let env = TestEnv::postgres();
    let server = ServerProcess::start_with(&env, SERVER_FLAGS);
    let test = DisconnectTest { leaks: LeakCheck::baseline(&server, &env), server: &server, env: &env };
    let graph = json!({"jobs": [{"jobType": "t", "ref": "a"}, {"jobType": "t", "dependsOn": ["ref:a"]}]}).to_string();
    let held = TableLock::acquire(&env, "dependency");
    let mut seen = BTreeSet::new();
    for n in 1..=2 * MAX_SESSIONS {
        let mut stream = test.send(&encode_request("POST", "/jobs/batch", &graph));
        // Each blocks on another connection: one left mid-transaction is not reused.
        test.leaks.wait_until("the request blocks", || {
            seen.extend(test.leaks.blocked_sessions());
            seen.len() == n
        });
        disconnect(&mut stream);
        // The lock is still held. The server cancels the abandoned query instead of waiting for it.
        assert!(test.leaks.sessions() <= MAX_SESSIONS, "{} sessions after {n} clients", test.leaks.sessions());
    }
    drop(held);
    test.leaks.assert_back_to_baseline();
}
