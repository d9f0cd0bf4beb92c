//! A server that is killed repeatedly while clients repeat their requests.

use std::{
    collections::BTreeMap,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use orchestrix_testkit::free_port;
use serde_json::json;

use super::{
    connection::Connection,
    process::{ServerProcess, TIMEOUT},
};
use crate::harness::TestEnv;

/// Requests in total; several with the same key are sent at the same time.
const REQUESTS: usize = 10_000;
const REQUESTS_PER_KEY: usize = 4;
const KEYS: usize = REQUESTS / REQUESTS_PER_KEY;
const CLIENTS: usize = 32;
const KILLS: usize = 5;
/// How long a client waits before it retries.
const PAUSE: Duration = Duration::from_millis(10);

#[test]
fn an_idempotency_key_names_one_job_across_server_crashes_on_postgres() {
    enqueue_while_killing_server(&TestEnv::postgres());
}

#[test]
fn an_idempotency_key_names_one_job_across_server_crashes_on_sqlite() {
    enqueue_while_killing_server(&TestEnv::sqlite());
}

/// What one client observed.
#[derive(Default)]
struct ClientLog {
    /// Requests that were sent and got no response.
    cut: usize,
    gave_up: Option<String>,
}

fn enqueue_while_killing_server(env: &TestEnv) {
    // Below the ephemeral ports: otherwise a client could connect to itself while the server is down.
    let address = format!("127.0.0.1:{}", free_port());
    let start = || ServerProcess::spawn(env.command(&["server", "--no-auth", "--listen", &address]));
    let mut server = start();
    let next = AtomicUsize::new(0);
    let (answers, log) = thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let (sender, address, next) = (sender.clone(), &address, &next);
                scope.spawn(move || client(address, next, &sender))
            })
            .collect();
        drop(sender);
        let mut answers = Vec::new();
        for answer in receiver {
            answers.push(answer);
            if answers.len() % (REQUESTS / (KILLS + 1)) == 0 && answers.len() <= KILLS * (REQUESTS / (KILLS + 1)) {
                server.signal("KILL");
                server.wait_for_exit();
                server = start();
            }
        }
        let log: Vec<ClientLog> = clients.into_iter().map(|client| client.join().unwrap()).collect();
        (answers, log)
    });
    let gave_up: Vec<_> = log.iter().filter_map(|log| log.gave_up.as_ref()).collect();
    assert!(gave_up.is_empty(), "clients gave up: {gave_up:?}");
    assert_eq!(answers.len(), REQUESTS, "every request was accepted eventually");
    let cut: usize = log.iter().map(|log| log.cut).sum();
    assert!(cut >= KILLS, "kills met only {cut} requests under way: the test proves nothing");
    drop(server);
    assert_one_job_per_key(env, &answers);
}

// Sends requests until none is left, each until it is accepted.
fn client(address: &str, next: &AtomicUsize, sender: &mpsc::Sender<(usize, String)>) -> ClientLog {
    let mut log = ClientLog::default();
    let mut connection = None;
    loop {
        let key = next.fetch_add(1, Ordering::Relaxed) / REQUESTS_PER_KEY;
        if key >= KEYS {
            return log;
        }
        let job = json!({"jobType": "t", "payload": {"key": key}, "idempotencyKey": format!("key-{key}")}).to_string();
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let again = match connection.take().map_or_else(|| Connection::open(address), Ok) {
                Err(error) => error.to_string(),
                Ok(mut open) => match open.request("POST", "/jobs", &job) {
                    Ok(answer) if answer.status == 202 => {
                        connection = Some(open);
                        if sender.send((key, answer.accepted_job_id())).is_err() {
                            return log;
                        }
                        break;
                    }
                    Ok(answer) => format!("{answer:?}"),
                    Err(error) => {
                        log.cut += 1;
                        error.to_string()
                    }
                },
            };
            if Instant::now() > deadline {
                log.gave_up = Some(again);
                return log;
            }
            thread::sleep(PAUSE);
        }
    }
}

// Compares the responses with the database.
fn assert_one_job_per_key(env: &TestEnv, answers: &[(usize, String)]) {
    let (jobs, keys) = match env.is_postgres() {
        true => (
            "SELECT (payload::json ->> 'key') || '|' || id FROM orchestrix.job",
            "SELECT substr(key, 5) || '|' || job_id FROM orchestrix.idempotency",
        ),
        false => (
            "SELECT (payload ->> '$.key') || '|' || lower(hex(id)) FROM job",
            "SELECT substr(key, 5) || '|' || lower(hex(job_id)) FROM idempotency",
        ),
    };
    let read = |sql: &str| {
        let rows = env.sql(sql);
        let pairs: BTreeMap<usize, String> = rows
            .iter()
            .map(|row| row.split_once('|').unwrap())
            .map(|(key, id)| (key.parse().unwrap(), id.replace('-', "")))
            .collect();
        (rows.len(), pairs)
    };
    let (count, jobs) = read(jobs);
    assert_eq!((count, jobs.len()), (KEYS, KEYS), "exactly one job per key");
    assert_eq!(read(keys), (KEYS, jobs.clone()), "every key refers to its own job");
    for (key, id) in answers {
        assert_eq!(jobs[key], id.replace('-', ""), "the response for key {key} named another job");
    }
}
