//! Commands over a server: who is away, who says no, and what must not be sent twice.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::{Value, json};

use crate::support::{Place, Ran, bare};

const NOBODY: &str = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70";

fn over(server: &str, arguments: &[&str]) -> Ran {
    Ran::of(&mut bare(&[arguments, &["--server", server]].concat()))
}

#[test]
fn a_server_that_is_away_is_unreachable_and_named() {
    // Nobody listens on the first port.
    let away = |arguments: &[&str]| {
        over("http://127.0.0.1:1", &[arguments, &["--connect-timeout", "50ms", "--api-key", "hunter2"]].concat())
    };
    for command in [&["jobs", "list"][..], &["jobs", "enqueue", "t"], &["queues", "pause", "q"], &["nodes", "list"]] {
        let ran = away(command).ended(5, "the server at http://127.0.0.1:1 is not there");
        assert!(ran.stderr.contains("is it up, and --server right?") && !ran.stderr.contains("hunter2"), "{ran:?}");
        assert!(!ran.stderr.contains("unknown"), "nothing was sent: {ran:?}");
    }
}

#[test]
fn a_server_or_a_database_and_not_where_only_a_database_will_do() {
    let place = Place::sqlite();
    place.run(&["jobs", "list", "--server", "http://127.0.0.1:1"]).ended(2, "exclude each other");
    for command in [&["server", "--no-auth"][..], &["dev"], &["migrate"]] {
        over("http://127.0.0.1:1", command).ended(2, "works on a database");
    }
    for server in ["nowhere", "ftp://h", "http://me:hunter2@h"] {
        let ran = over(server, &["jobs", "list"]).ended(2, "server: ");
        assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
    }
    // What needs neither asks nobody.
    over("http://127.0.0.1:1", &["schedules", "next", "--every", "1h"]).done();
}

#[test]
fn what_a_server_refuses_has_the_same_exit_codes_and_every_bad_field_is_told() {
    let place = Place::served();
    place.run(&["jobs", "get", NOBODY]).ended(3, "`orchestrix jobs list`");
    place.run(&["schedules", "get", "nobody"]).ended(3, "there is no schedule nobody");
    let id = place.enqueue(&["t"]).to_string();
    place.run(&["jobs", "retry", &id]).ended(4, "it is pending; only dead and cancelled jobs can be retried");
    place.enqueue(&["t", "--idempotency-key", "k"]);
    let other = ["jobs", "enqueue", "t", "--idempotency-key", "k", "--payload", "2"];
    place.run(&other).ended(4, "choose another --idempotency-key");
    let ran = place
        .run(&["schedules", "put", "s", "t", "--every", "1h", "--jitter", "2h", "--catch-up-limit", "0"])
        .ended(2, "2 fields are invalid");
    for line in ["\n  jitterSeconds: must not be longer", "\n  catchUpLimit: must be from 1 to 10000"] {
        assert!(ran.stderr.contains(line), "{ran:?}");
    }
    let wrong = format!("http://{}/elsewhere", place.address());
    over(&wrong, &["jobs", "list"]).ended(3, "there is nothing at /elsewhere/admin/jobs");
}

/// Stands before a server: ends the first connection once its request has come, and passes on all others.
struct Breaking {
    address: String,
    seen: Arc<AtomicUsize>,
}

impl Breaking {
    fn start(target: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                match count.fetch_add(1, Ordering::SeqCst) {
                    0 => drop(request(stream)),
                    _ => pass_on(stream, &target),
                }
            }
        });
        Self { address, seen }
    }
}

// Reads one request to its end, and keeps the connection.
fn request(mut stream: TcpStream) -> (TcpStream, String) {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let n = stream.read(&mut buffer).unwrap();
        text.push_str(std::str::from_utf8(&buffer[..n]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if length.is_none_or(|length| body.len() >= length.parse().unwrap()) {
            return (stream, text);
        }
    }
}

fn pass_on(stream: TcpStream, target: &str) {
    let server = TcpStream::connect(target).unwrap();
    let copy = |mut from: TcpStream, mut to: TcpStream| {
        thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        })
    };
    copy(stream.try_clone().unwrap(), server.try_clone().unwrap());
    copy(server, stream);
}

fn jobs(place: &Place) -> usize {
    place.json(&["jobs", "list"])["items"].as_array().unwrap().len()
}

#[test]
fn a_job_without_a_key_is_not_sent_twice_when_the_connection_breaks() {
    let place = Place::served();
    let line = Breaking::start(place.address());
    let ran = over(&line.address, &["jobs", "enqueue", "t"]).ended(5, "whether it was recorded is unknown");
    assert!(ran.stderr.contains("--idempotency-key"), "{ran:?}");
    assert_eq!((line.seen.load(Ordering::SeqCst), jobs(&place)), (1, 0));

    let line = Breaking::start(place.address());
    let trigger = ["jobs", "retry", NOBODY];
    over(&line.address, &trigger).ended(5, "whether it was done is unknown");
    assert_eq!(line.seen.load(Ordering::SeqCst), 1);
}

#[test]
fn what_may_be_repeated_is_sent_again_when_the_connection_breaks() {
    let place = Place::served();
    for command in [
        &["jobs", "enqueue", "t", "--idempotency-key", "k"][..],
        &["jobs", "list"],
        &["queues", "pause", "q"],
        &["schedules", "put", "s", "t", "--every", "1h"],
    ] {
        let line = Breaking::start(place.address());
        over(&line.address, command).done();
        assert!(line.seen.load(Ordering::SeqCst) >= 2, "{command:?}");
    }
    assert_eq!(jobs(&place), 1);
}

#[test]
fn a_key_is_shown_to_the_server_and_to_nobody_else() {
    for (status, text, advice) in
        [(401, "unauthenticated", "ORCHESTRIX_API_KEY"), (403, "forbidden", "role is operator")]
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = thread::spawn(move || {
            let (mut stream, text_of) = request(listener.accept().unwrap().0);
            let problem: Value = json!({"code": text, "detail": "no", "status": status});
            let body = problem.to_string();
            let length = body.len();
            write!(stream, "HTTP/1.1 {status} No\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
                .unwrap();
            text_of
        });
        let mut command = bare(&["jobs", "list", "--server", &address, "--log", "trace"]);
        let ran = Ran::of(command.env("ORCHESTRIX_API_KEY", "hunter2")).ended(1, advice);
        assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
        let asked = asked.join().unwrap();
        assert!(asked.starts_with("GET /admin/jobs?limit=50 HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains("\r\nauthorization: Bearer hunter2\r\n"), "{asked}");
    }
}
