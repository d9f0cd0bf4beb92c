//! Clients that disconnect after every byte of their request, and in the middle of the response.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    thread,
    time::Instant,
};

use serde_json::{Value, json};

use super::{
    connection::encode_request,
    leak_check::LeakCheck,
    process::{ServerProcess, TIMEOUT},
};
use crate::harness::TestEnv;

/// How often each kind of request is sent in full before its client disconnects.
const REPEATS: usize = 30;
/// Jobs in one batch.
const JOBS_PER_BATCH: usize = 3;

/// How a client disconnects after it has sent its whole request.
#[derive(Debug, Clone, Copy)]
enum Disconnect {
    Immediately,
    /// It shuts down its sending side, and reads until the server closes.
    AfterShutdown,
    /// It closes after reading this many bytes, with more unread: the server sees a reset.
    MidResponse(usize),
}

fn disconnects(waits: bool) -> impl Iterator<Item = Disconnect> {
    (0..REPEATS).map(move |n| match n % 3 {
        0 => Disconnect::Immediately,
        // A long poll has no response to read.
        1 if !waits => Disconnect::MidResponse(n * n % 97 + 1),
        _ => Disconnect::AfterShutdown,
    })
}

fn send_and_disconnect(server: &ServerProcess, bytes: &[u8], disconnect: Disconnect) {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.write_all(bytes).unwrap();
    match disconnect {
        Disconnect::Immediately => {}
        Disconnect::AfterShutdown => {
            stream.shutdown(Shutdown::Write).unwrap();
            // The server may answer or not.
            let _ = stream.read_to_end(&mut Vec::new());
        }
        Disconnect::MidResponse(bytes) => stream.read_exact(&mut vec![0; bytes]).unwrap(),
    }
}

fn send_every_prefix(server: &ServerProcess, bytes: &[u8]) {
    for sent in 0..bytes.len() {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        // The server may close as soon as it has rejected the first bytes.
        let _ = stream.write_all(&bytes[..sent]);
    }
}

// Sends every prefix of a request, then the whole request several times, each with other ids.
fn disconnect_everywhere(server: &ServerProcess, waits: bool, of: impl Fn(usize) -> Vec<u8>) {
    send_every_prefix(server, &of(REPEATS));
    for (n, disconnect) in disconnects(waits).enumerate() {
        send_and_disconnect(server, &of(n), disconnect);
    }
}

fn batch(n: usize) -> Value {
    let job = |m: usize, waits_for: &[&str]| {
        json!({"jobType": "batch", "queue": "idle", "payload": {"batch": n}, "ref": format!("r{m}"),
            "idempotencyKey": format!("{n}-{m}"), "dependsOn": waits_for})
    };
    json!({"jobs": [job(0, &[]), job(1, &["ref:r0"]), job(2, &["ref:r0", "ref:r1"])]})
}

fn lease_request(worker: &str, queue: &str, wait: u32) -> Value {
    json!({"workerId": worker, "queues": [queue], "max": 1, "waitSeconds": wait})
}

#[test]
fn a_client_that_disconnects_at_any_byte_leaves_nothing_half_done() {
    let env = TestEnv::postgres();
    // Fewer admission permits than clients: a leaked permit would block the test.
    let server = ServerProcess::start_with(&env, &["--max-requests", "8"]);
    let leaks = LeakCheck::baseline(&server, &env);
    for n in 0..REPEATS {
        server
            .post("/jobs", &json!({"jobType": "t", "queue": "leased", "leaseSeconds": 1, "payload": n}))
            .accepted_job_id();
        server.post("/jobs", &json!({"jobType": "t", "queue": "held"})).accepted_job_id();
    }
    let seen = server.post("/jobs", &json!({"jobType": "t", "queue": "idle"})).accepted_job_id();
    let tokens: Vec<String> = (0..REPEATS).map(|_| lease(&server, "held")).collect();
    let outcomes = |n: usize| json!({"items": [{"leaseToken": tokens.get(n).map_or("unknown", String::as_str)}]});

    let post = |path: &str, body: &Value| encode_request("POST", path, &body.to_string());
    thread::scope(|scope| {
        scope.spawn(|| {
            disconnect_everywhere(&server, false, |n| {
                post("/jobs", &json!({"jobType": "single", "queue": "idle", "idempotencyKey": format!("{n}")}))
            });
        });
        scope.spawn(|| disconnect_everywhere(&server, false, |n| post("/jobs/batch", &batch(n))));
        scope.spawn(|| {
            let schedule = json!({"everySeconds": 86400, "job": {"jobType": "t", "queue": "idle"}}).to_string();
            disconnect_everywhere(&server, false, |n| encode_request("PUT", &format!("/schedules/s-{n}"), &schedule));
        });
        scope.spawn(|| {
            disconnect_everywhere(&server, false, |n| {
                post("/worker/leases", &lease_request(&format!("at-once-{n}"), "leased", 0))
            });
        });
        scope.spawn(|| {
            disconnect_everywhere(&server, true, |n| {
                post("/worker/leases", &lease_request(&format!("waits-{n}"), "none", 50))
            });
        });
        scope.spawn(|| disconnect_everywhere(&server, false, |n| post("/worker/leases/complete-batch", &outcomes(n))));
        scope.spawn(|| disconnect_everywhere(&server, false, |_| encode_request("GET", &format!("/jobs/{seen}"), "")));
        scope.spawn(|| {
            disconnect_everywhere(&server, true, |_| {
                encode_request("GET", &format!("/jobs/{seen}?waitSeconds=50"), "")
            });
        });
    });
    leaks.assert_back_to_baseline();

    let whole = count_whole_batches(&env);
    assert!(whole > 0, "no batch was stored: the test proves nothing");
    for n in 0..REPEATS {
        // A client that got no response repeats its request.
        let answer = server.post("/jobs/batch", &batch(n));
        assert_eq!(
            (answer.status, answer.json()["jobs"].as_array().unwrap().len()),
            (202, JOBS_PER_BATCH),
            "{answer:?}"
        );
        let answer = server.post("/worker/leases/complete-batch", &outcomes(n)).json();
        assert_eq!(answer["items"][0]["status"], "COMPLETED", "{answer}");
        server
            .post("/jobs", &json!({"jobType": "single", "queue": "idle", "idempotencyKey": format!("{n}")}))
            .accepted_job_id();
    }
    assert_eq!(count_whole_batches(&env), REPEATS, "each batch is stored once and complete");
    assert_eq!(leaks.count("SELECT count(*) FROM orchestrix.job WHERE job_type = 'single'"), REPEATS);

    // Jobs leased to disconnected clients are reaped, and completed by another worker.
    let deadline = Instant::now() + TIMEOUT;
    let done = "SELECT count(*) FROM orchestrix.history WHERE state = 'completed' AND queue = 'leased'";
    while leaks.count(done) < REPEATS {
        assert!(Instant::now() < deadline, "{} of {REPEATS} jobs came back", leaks.count(done));
        let leases = server.post("/worker/leases", &lease_request("stays", "leased", 1)).json()["leases"].clone();
        for lease in leases.as_array().unwrap() {
            let token = lease["leaseToken"].as_str().unwrap();
            server.post(&format!("/worker/leases/{token}/complete"), &json!({}));
        }
    }
}

fn lease(server: &ServerProcess, queue: &str) -> String {
    let leases = server.post("/worker/leases", &lease_request("stays", queue, 50)).json();
    leases["leases"][0]["leaseToken"].as_str().unwrap().to_owned()
}

// Counts the batches. Each must be complete: jobs, idempotency keys and dependencies.
fn count_whole_batches(env: &TestEnv) -> usize {
    let sql = "SELECT count(DISTINCT j.id) || ',' || count(DISTINCT d.parent || ' ' || d.child) || ',' || count(DISTINCT k.key)
        FROM orchestrix.job j LEFT JOIN orchestrix.dependency d ON d.child = j.id
            LEFT JOIN orchestrix.idempotency k ON k.job_id = j.id
        WHERE j.job_type = 'batch' GROUP BY j.payload";
    let batches = env.sql(sql);
    assert!(batches.iter().all(|graph| graph == "3,3,3"), "jobs, dependencies and keys of each batch: {batches:?}");
    let keys = env.sql("SELECT count(*)::text FROM orchestrix.idempotency WHERE job_type = 'batch'");
    assert_eq!(keys, [(JOBS_PER_BATCH * batches.len()).to_string()], "an idempotency key without its job");
    batches.len()
}
