//! Commands over a server: unreachable servers, refusals, and requests that must not be repeated.

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

use crate::harness::{CliOutput, TestEnv, orchestrix};

const UNKNOWN_ID: &str = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70";

fn run_over_server(server: &str, arguments: &[&str]) -> CliOutput {
    CliOutput::run(&mut orchestrix(&[arguments, &["--server", server]].concat()))
}

#[test]
fn an_unreachable_server_is_named() {
    // No process listens on port 1.
    let away = |arguments: &[&str]| {
        run_over_server(
            "http://127.0.0.1:1",
            &[arguments, &["--connect-timeout", "50ms", "--api-key", "hunter2"]].concat(),
        )
    };
    for command in [&["jobs", "list"][..], &["jobs", "enqueue", "t"], &["queues", "pause", "q"], &["nodes", "list"]] {
        let ran = away(command).exits_with(5, "http://127.0.0.1:1");
        assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
        assert!(!ran.stderr.contains("unknown"), "nothing was sent: {ran:?}");
    }
}

#[test]
fn server_and_database_exclude_each_other_and_some_commands_need_a_database() {
    let env = TestEnv::sqlite();
    env.run(&["jobs", "list", "--server", "http://127.0.0.1:1"]).exits_with(2, "--server");
    for command in [&["server", "--no-auth"][..], &["dev"], &["migrate"]] {
        run_over_server("http://127.0.0.1:1", command).exits_with(2, "database");
    }
    for server in ["nowhere", "ftp://h", "http://me:hunter2@h"] {
        let ran = run_over_server(server, &["jobs", "list"]).exits_with(2, "server: ");
        assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
    }
    // A command that needs neither does not connect.
    run_over_server("http://127.0.0.1:1", &["schedules", "next", "--every", "1h"]).success();
}

#[test]
fn refusals_of_a_server_have_the_usual_exit_codes_and_name_every_invalid_field() {
    let env = TestEnv::behind_server();
    env.run(&["jobs", "get", UNKNOWN_ID]).exits_with(3, "orchestrix jobs list");
    env.run(&["schedules", "get", "missing"]).exits_with(3, "missing");
    let id = env.enqueue(&["t"]).to_string();
    env.run(&["jobs", "retry", &id]).exits_with(4, "pending");
    env.enqueue(&["t", "--idempotency-key", "k"]);
    let other = ["jobs", "enqueue", "t", "--idempotency-key", "k", "--payload", "2"];
    env.run(&other).exits_with(4, "--idempotency-key");
    let ran = env
        .run(&["schedules", "put", "s", "t", "--every", "1h", "--jitter", "2h", "--catch-up-limit", "0"])
        .exits_with(2, "2 fields");
    for line in ["\n  jitterSeconds: ", "\n  catchUpLimit: "] {
        assert!(ran.stderr.contains(line), "{ran:?}");
    }
    let wrong = format!("http://{}/elsewhere", env.address());
    run_over_server(&wrong, &["jobs", "list"]).exits_with(3, "/elsewhere/admin/jobs");
}

/// A proxy that closes the first connection after its request, and forwards all others.
struct FlakyProxy {
    address: String,
    connections: Arc<AtomicUsize>,
}

impl FlakyProxy {
    fn start(target: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                match count.fetch_add(1, Ordering::SeqCst) {
                    0 => drop(read_request(stream)),
                    _ => forward(stream, &target),
                }
            }
        });
        Self { address, connections }
    }
}

// Reads one whole request, and returns the open connection with it.
fn read_request(mut stream: TcpStream) -> (TcpStream, String) {
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

fn forward(stream: TcpStream, target: &str) {
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

fn jobs(env: &TestEnv) -> usize {
    env.json(&["jobs", "list"])["items"].as_array().unwrap().len()
}

#[test]
fn an_enqueue_without_a_key_is_not_repeated_when_the_connection_breaks() {
    let env = TestEnv::behind_server();
    let proxy = FlakyProxy::start(env.address());
    let ran = run_over_server(&proxy.address, &["jobs", "enqueue", "t"]).exits_with(5, "unknown");
    assert!(ran.stderr.contains("--idempotency-key"), "{ran:?}");
    assert_eq!((proxy.connections.load(Ordering::SeqCst), jobs(&env)), (1, 0));

    let proxy = FlakyProxy::start(env.address());
    let trigger = ["jobs", "retry", UNKNOWN_ID];
    run_over_server(&proxy.address, &trigger).exits_with(5, "unknown");
    assert_eq!(proxy.connections.load(Ordering::SeqCst), 1);
}

#[test]
fn idempotent_requests_are_repeated_when_the_connection_breaks() {
    let env = TestEnv::behind_server();
    for command in [
        &["jobs", "enqueue", "t", "--idempotency-key", "k"][..],
        &["jobs", "list"],
        &["queues", "pause", "q"],
        &["schedules", "put", "s", "t", "--every", "1h"],
    ] {
        let proxy = FlakyProxy::start(env.address());
        run_over_server(&proxy.address, command).success();
        assert!(proxy.connections.load(Ordering::SeqCst) >= 2, "{command:?}");
    }
    assert_eq!(jobs(&env), 1);
}

#[test]
fn the_api_key_is_sent_to_the_server_and_never_logged() {
    for (status, text, advice) in [(401, "unauthenticated", "ORCHESTRIX_API_KEY"), (403, "forbidden", "operator")] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = thread::spawn(move || {
            let (mut stream, text_of) = read_request(listener.accept().unwrap().0);
            let problem: Value = json!({"code": text, "detail": "no", "status": status});
            let body = problem.to_string();
            let length = body.len();
            write!(stream, "HTTP/1.1 {status} No\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
                .unwrap();
            text_of
        });
        let mut command = orchestrix(&["jobs", "list", "--server", &address, "--log", "trace"]);
        let ran = CliOutput::run(command.env("ORCHESTRIX_API_KEY", "hunter2")).exits_with(1, advice);
        assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
        let asked = asked.join().unwrap();
        assert!(asked.starts_with("GET /admin/jobs?limit=50 HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains("\r\nauthorization: Bearer hunter2\r\n"), "{asked}");
    }
}
