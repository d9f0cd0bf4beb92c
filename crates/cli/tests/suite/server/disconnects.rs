//! Clients that go away: after every byte of what they ask, and in the middle of what they are told.

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

/// How often each kind of request is sent whole before its client goes.
const REPEATS: usize = 30;
/// Jobs of one batch.
const JOBS_PER_BATCH: usize = 3;

/// How a client goes that has sent all of its request.
#[derive(Debug, Clone, Copy)]
enum Disconnect {
    Immediately,
    /// It says that it will send no more, and waits until the server is done with it.
    AfterShutdown,
    /// After so many bytes of the answer, with others unread: the server is told of an error.
    MidResponse(usize),
}

fn disconnects(waits: bool) -> impl Iterator<Item = Disconnect> {
    (0..REPEATS).map(move |n| match n % 3 {
        0 => Disconnect::Immediately,
        // One that waits long has no answer to read.
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
            // An answer or none: it had the time to give one.
            let _ = stream.read_to_end(&mut Vec::new());
        }
        Disconnect::MidResponse(bytes) => stream.read_exact(&mut vec![0; bytes]).unwrap(),
    }
}

fn send_every_prefix(server: &ServerProcess, bytes: &[u8]) {
    for sent in 0..bytes.len() {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        // A server that has refused the beginning may be gone before the end of it is sent.
        let _ = stream.write_all(&bytes[..sent]);
    }
}

// Cuts a kind of request each_database_and_server, then sends it whole, each time as another one.
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
fn a_client_that_goes_away_at_any_byte_leaves_nothing_half_done() {
    let env = TestEnv::postgres();
    // Fewer turns than there will be clients: none of them may keep its own.
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
    let outcomes = |n: usize| json!({"items": [{"leaseToken": tokens.get(n).map_or("nobody's", String::as_str)}]});

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
            })
        });
        scope.spawn(|| {
            disconnect_everywhere(&server, true, |n| {
                post("/worker/leases", &lease_request(&format!("waits-{n}"), "none", 50))
            })
        });
        scope.spawn(|| disconnect_everywhere(&server, false, |n| post("/worker/leases/complete-batch", &outcomes(n))));
        scope.spawn(|| disconnect_everywhere(&server, false, |_| encode_request("GET", &format!("/jobs/{seen}"), "")));
        scope.spawn(|| {
            disconnect_everywhere(&server, true, |_| encode_request("GET", &format!("/jobs/{seen}?waitSeconds=50"), ""))
        });
    });
    leaks.assert_back_to_baseline();

    let whole = count_whole_batches(&env);
    assert!(whole > 0, "no batch at all was recorded: nothing was shown");
    for n in 0..REPEATS {
        // Whoever was not told asks again.
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
    assert_eq!(count_whole_batches(&env), REPEATS, "each is there once, whole");
    assert_eq!(leaks.count("SELECT count(*) FROM orchestrix.job WHERE job_type = 'single'"), REPEATS);

    // What was leased for those who are gone comes back, and is done by somebody who stays.
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

// How many batches there are; each must be whole, with its keys and with all that its jobs wait for.
fn count_whole_batches(env: &TestEnv) -> usize {
    let sql = "SELECT count(DISTINCT j.id) || ',' || count(DISTINCT d.parent || ' ' || d.child) || ',' || count(DISTINCT k.key)
        FROM orchestrix.job j LEFT JOIN orchestrix.dependency d ON d.child = j.id
            LEFT JOIN orchestrix.idempotency k ON k.job_id = j.id
        WHERE j.job_type = 'batch' GROUP BY j.payload";
    let batches = env.sql(sql);
    assert!(batches.iter().all(|graph| graph == "3,3,3"), "jobs, dependencies and keys of each batch: {batches:?}");
    let keys = env.sql("SELECT count(*)::text FROM orchestrix.idempotency WHERE job_type = 'batch'");
    assert_eq!(keys, [(JOBS_PER_BATCH * batches.len()).to_string()], "a key whose job is not there");
    batches.len()
}
