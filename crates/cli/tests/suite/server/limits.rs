//! Limits that are checked before memory is spent, and an unavailable database.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Instant,
};

use orchestrix_testkit::PostgresServer;
use serde_json::json;

use super::process::{ServerProcess, TIMEOUT};
use crate::harness::{CliOutput, TestEnv, orchestrix};

#[test]
fn a_body_over_its_limit_is_refused_unread() {
    let env = TestEnv::sqlite();
    let server = ServerProcess::start(&env);
    let text = format!(
        "POST /jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        1u64 << 40
    );
    server.send_raw(text.as_bytes()).problem(413, "payload_too_large");
    // Without a length it is detected while reading.
    let mut chunked =
        b"POST /jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
            .to_vec();
    for _ in 0..40 {
        chunked.extend(b"10000\r\n");
        chunked.extend([b' '; 0x10000]);
        chunked.extend(b"\r\n");
    }
    chunked.extend(b"0\r\n\r\n");
    server.send_raw(&chunked).problem(413, "payload_too_large");
    let payload = format!(r#"{{"jobType": "t", "payload": "{}"}}"#, "x".repeat(1024 * 1024));
    server.send("POST", "/jobs", &payload).problem(413, "payload_too_large");
    let payload = format!(r#"{{"jobType": "t", "payload": "{}"}}"#, "x".repeat(1024 * 1024 - 2));
    assert_eq!(server.send("POST", "/jobs", &payload).status, 202);
}

#[test]
fn nesting_batches_and_names_have_limits() {
    let env = TestEnv::sqlite();
    let server = ServerProcess::start(&env);
    let deep = format!(r#"{{"jobType": "t", "payload": {}{}}}"#, "[".repeat(500_000), "]".repeat(500_000));
    server.send("POST", "/jobs", &deep).problem(400, "malformed_request");
    let jobs = vec![json!({"jobType": "t"}); 10_001];
    assert_eq!(server.post("/jobs/batch", &json!({"jobs": jobs})).invalid_fields(), ["jobs"]);
    assert_eq!(server.post("/jobs/batch", &json!({"jobs": []})).invalid_fields(), ["jobs"]);
    assert_eq!(server.post("/jobs", &json!({"jobType": "x".repeat(129)})).invalid_fields(), ["jobType"]);
    let huge = r#"{"jobType": "t", "delaySeconds": 1e999, "priority": 99999999999999999999999}"#;
    assert_eq!(server.send("POST", "/jobs", huge).invalid_fields(), ["delaySeconds", "priority"]);
    server
        .call("POST", "/jobs", &[("content-type", "application/json")], "{\"jobType\": \"\u{0}\"}")
        .problem(400, "malformed_request");
}

#[test]
fn a_server_survives_clients_that_disconnect_early() {
    let env = TestEnv::sqlite();
    let server = ServerProcess::start(&env);
    for part in [
        "POST /jobs HT",
        "POST /jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{\"jobT",
        "\r\n\r\n",
        "\u{0}\u{1}",
    ] {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.write_all(part.as_bytes()).unwrap();
        drop(stream);
    }
    // Jobs leased to a client that left its long poll are released.
    let mut waits = TcpStream::connect(&server.address).unwrap();
    waits.set_read_timeout(Some(TIMEOUT)).unwrap();
    let body = r#"{"workerId": "gone", "queues": ["*"], "max": 5, "waitSeconds": 50}"#;
    let head = format!(
        "POST /worker/leases HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    waits.write_all([head.as_bytes(), body.as_bytes()].concat().as_slice()).unwrap();
    // The worker is registered, so its request is in progress.
    let deadline = Instant::now() + TIMEOUT;
    while server.get("/readyz").json()["components"]["workers"]["status"] != "ok" {
        assert!(Instant::now() < deadline, "the worker is not registered");
    }
    drop(waits);
    let id = server.post("/jobs", &json!({"jobType": "t"})).accepted_job_id();
    let ask = json!({"workerId": "stays", "queues": ["*"], "max": 1, "waitSeconds": 30});
    assert_eq!(server.post("/worker/leases", &ask).json()["leases"][0]["jobId"], *id);
}

#[test]
fn without_its_database_a_server_answers_503_and_accepts_nothing() {
    let mut database = PostgresServer::builder().start().unwrap();
    let env = TestEnv::on_postgres(&database);
    let server = ServerProcess::start(&env);
    let id = server.post("/jobs", &json!({"jobType": "t", "idempotencyKey": "before"})).accepted_job_id();
    database.kill().unwrap();
    let refused = server.post("/jobs", &json!({"jobType": "t", "idempotencyKey": "during"}));
    refused.problem(503, "unavailable");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(server.get("/healthz").status, 200);
    let ready = server.get("/readyz");
    assert_eq!((ready.status, &ready.json()["components"]["persistence"]["status"]), (503, &"unavailable".into()));
    let address = format!("http://{}", server.address);
    let over = |command: &[&str]| {
        let flags = ["--server", &address, "--connect-timeout", "100ms"];
        CliOutput::run(&mut orchestrix(&[command, &flags].concat()))
    };
    let ran = over(&["jobs", "list"]).exits_with(5, "the server ");
    assert!(!ran.stderr.contains("unknown"), "{ran:?}");
    over(&["jobs", "enqueue", "t"]).exits_with(5, "unknown");
    database.restart().unwrap();
    let again = json!({"jobType": "t", "idempotencyKey": "during"});
    let deadline = Instant::now() + TIMEOUT;
    while server.post("/jobs", &again).status != 202 {
        assert!(Instant::now() < deadline, "the server does not recover");
    }
    assert_eq!(server.post("/jobs", &json!({"jobType": "t", "idempotencyKey": "before"})).accepted_job_id(), id);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.contains("200 OK"), "{text}");
}
