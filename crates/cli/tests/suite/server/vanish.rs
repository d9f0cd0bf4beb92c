//! Clients that go away: after every byte of what they ask, and in the middle of what they are told.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    thread,
    time::Instant,
};

use serde_json::{Value, json};

use super::{
    http::{LIMIT, Server},
    line::request,
    quiet::Quiet,
};
use crate::support::Place;

/// How often each kind of request is sent whole before its client goes.
const WHOLE: usize = 30;
/// Jobs of one batch.
const GRAPH: usize = 3;

/// How a client goes that has sent all of its request.
#[derive(Debug, Clone, Copy)]
enum Going {
    AtOnce,
    /// It says that it will send no more, and waits until the server is done with it.
    InOrder,
    /// After so many bytes of the answer, with others unread: the server is told of an error.
    Midway(usize),
}

fn goings(waits: bool) -> impl Iterator<Item = Going> {
    (0..WHOLE).map(move |n| match n % 3 {
        0 => Going::AtOnce,
        // One that waits long has no answer to read.
        1 if !waits => Going::Midway(n * n % 97 + 1),
        _ => Going::InOrder,
    })
}

fn go(server: &Server, bytes: &[u8], going: Going) {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(bytes).unwrap();
    match going {
        Going::AtOnce => {}
        Going::InOrder => {
            stream.shutdown(Shutdown::Write).unwrap();
            // An answer or none: it had the time to give one.
            let _ = stream.read_to_end(&mut Vec::new());
        }
        Going::Midway(bytes) => stream.read_exact(&mut vec![0; bytes]).unwrap(),
    }
}

fn cut(server: &Server, bytes: &[u8]) {
    for sent in 0..bytes.len() {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        // A server that has refused the beginning may be gone before the end of it is sent.
        let _ = stream.write_all(&bytes[..sent]);
    }
}

// Cuts a kind of request everywhere, then sends it whole, each time as another one.
fn vanish(server: &Server, waits: bool, of: impl Fn(usize) -> Vec<u8>) {
    cut(server, &of(WHOLE));
    for (n, going) in goings(waits).enumerate() {
        go(server, &of(n), going);
    }
}

fn batch(n: usize) -> Value {
    let job = |m: usize, waits_for: &[&str]| {
        json!({"jobType": "batch", "queue": "idle", "payload": {"batch": n}, "ref": format!("r{m}"),
            "idempotencyKey": format!("{n}-{m}"), "dependsOn": waits_for})
    };
    json!({"jobs": [job(0, &[]), job(1, &["ref:r0"]), job(2, &["ref:r0", "ref:r1"])]})
}

fn ask(worker: &str, queue: &str, wait: u32) -> Value {
    json!({"workerId": worker, "queues": [queue], "max": 1, "waitSeconds": wait})
}

#[test]
fn a_client_that_goes_away_at_any_byte_leaves_nothing_half_done() {
    let place = Place::postgres();
    // Fewer turns than there will be clients: none of them may keep its own.
    let server = Server::start_with(&place, &["--max-requests", "8"]);
    let quiet = Quiet::before(&server, &place);
    for n in 0..WHOLE {
        server.post("/jobs", &json!({"jobType": "t", "queue": "leased", "leaseSeconds": 1, "payload": n})).accepted();
        server.post("/jobs", &json!({"jobType": "t", "queue": "held"})).accepted();
    }
    let seen = server.post("/jobs", &json!({"jobType": "t", "queue": "idle"})).accepted();
    let tokens: Vec<String> = (0..WHOLE).map(|_| lease(&server, "held")).collect();
    let outcomes = |n: usize| json!({"items": [{"leaseToken": tokens.get(n).map_or("nobody's", String::as_str)}]});

    let post = |path: &str, body: &Value| request("POST", path, &body.to_string());
    thread::scope(|scope| {
        scope.spawn(|| {
            vanish(&server, false, |n| {
                post("/jobs", &json!({"jobType": "single", "queue": "idle", "idempotencyKey": format!("{n}")}))
            });
        });
        scope.spawn(|| vanish(&server, false, |n| post("/jobs/batch", &batch(n))));
        scope.spawn(|| {
            let schedule = json!({"everySeconds": 86400, "job": {"jobType": "t", "queue": "idle"}}).to_string();
            vanish(&server, false, |n| request("PUT", &format!("/schedules/s-{n}"), &schedule));
        });
        scope.spawn(|| vanish(&server, false, |n| post("/worker/leases", &ask(&format!("at-once-{n}"), "leased", 0))));
        scope.spawn(|| vanish(&server, true, |n| post("/worker/leases", &ask(&format!("waits-{n}"), "none", 50))));
        scope.spawn(|| vanish(&server, false, |n| post("/worker/leases/complete-batch", &outcomes(n))));
        scope.spawn(|| vanish(&server, false, |_| request("GET", &format!("/jobs/{seen}"), "")));
        scope.spawn(|| vanish(&server, true, |_| request("GET", &format!("/jobs/{seen}?waitSeconds=50"), "")));
    });
    quiet.returns();

    let whole = graphs(&place);
    assert!(whole > 0, "no batch at all was recorded: nothing was shown");
    for n in 0..WHOLE {
        // Whoever was not told asks again.
        let answer = server.post("/jobs/batch", &batch(n));
        assert_eq!((answer.status, answer.json()["jobs"].as_array().unwrap().len()), (202, GRAPH), "{answer:?}");
        let answer = server.post("/worker/leases/complete-batch", &outcomes(n)).json();
        assert_eq!(answer["items"][0]["status"], "COMPLETED", "{answer}");
        server
            .post("/jobs", &json!({"jobType": "single", "queue": "idle", "idempotencyKey": format!("{n}")}))
            .accepted();
    }
    assert_eq!(graphs(&place), WHOLE, "each is there once, whole");
    assert_eq!(quiet.count("SELECT count(*) FROM orchestrix.job WHERE job_type = 'single'"), WHOLE);

    // What was leased for those who are gone comes back, and is done by somebody who stays.
    let deadline = Instant::now() + LIMIT;
    let done = "SELECT count(*) FROM orchestrix.history WHERE state = 'completed' AND queue = 'leased'";
    while quiet.count(done) < WHOLE {
        assert!(Instant::now() < deadline, "{} of {WHOLE} jobs came back", quiet.count(done));
        let leases = server.post("/worker/leases", &ask("stays", "leased", 1)).json()["leases"].clone();
        for lease in leases.as_array().unwrap() {
            let token = lease["leaseToken"].as_str().unwrap();
            server.post(&format!("/worker/leases/{token}/complete"), &json!({}));
        }
    }
}

fn lease(server: &Server, queue: &str) -> String {
    let leases = server.post("/worker/leases", &ask("stays", queue, 50)).json();
    leases["leases"][0]["leaseToken"].as_str().unwrap().to_owned()
}

// How many batches there are; each must be whole, with its keys and with all that its jobs wait for.
fn graphs(place: &Place) -> usize {
    let sql = "SELECT count(DISTINCT j.id) || ',' || count(DISTINCT d.parent || ' ' || d.child) || ',' || count(DISTINCT k.key)
        FROM orchestrix.job j LEFT JOIN orchestrix.dependency d ON d.child = j.id
            LEFT JOIN orchestrix.idempotency k ON k.job_id = j.id
        WHERE j.job_type = 'batch' GROUP BY j.payload";
    let graphs = place.sql(sql);
    assert!(graphs.iter().all(|graph| graph == "3,3,3"), "jobs, dependencies and keys of each batch: {graphs:?}");
    let keys = place.sql("SELECT count(*)::text FROM orchestrix.idempotency WHERE job_type = 'batch'");
    assert_eq!(keys, [(GRAPH * graphs.len()).to_string()], "a key whose job is not there");
    graphs.len()
}
