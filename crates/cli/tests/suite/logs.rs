//! Log lines: their format, and the ids that they carry.

use orchestrix_core::Timestamp;
use serde_json::{Map, Value};

use crate::{
    harness::{CliOutput, TestEnv, orchestrix},
    server::process::ServerProcess,
};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Parses a JSON log line and asserts the fields that every line has.
#[track_caller]
fn object(line: &str) -> Map<String, Value> {
    let object: Map<String, Value> = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    for name in ["time", "level", "target", "message"] {
        assert!(object[name].is_string(), "{line}");
    }
    let time = object["time"].as_str().unwrap();
    assert!(time.ends_with('Z') && time.parse::<Timestamp>().is_ok(), "{line}");
    assert!(object.values().all(|value| !value.is_object() && !value.is_array()), "not flat: {line}");
    object
}

fn dev(env: &TestEnv, arguments: &[&str]) -> ServerProcess {
    let mut command = orchestrix(&[&["dev", "--listen", "127.0.0.1:0"], arguments].concat());
    command.current_dir(env.dir());
    ServerProcess::spawn(command)
}

/// Enqueues a job that fails at once, with every id a request can have; returns the job's id.
fn fail(server: &ServerProcess) -> String {
    let headers = [("content-type", "application/json"), ("x-request-id", "request-7"), ("traceparent", TRACE)];
    let body = r#"{"jobType": "orchestrix.fail", "payload": {"message": "sesame", "retryable": false},
        "correlationId": "order-7", "idempotencyKey": "sesame-key"}"#;
    let id = server.call("POST", "/jobs", &headers, body).accepted_job_id();
    server.wait_for_status(&id, "FAILED");
    id
}

#[test]
fn every_json_line_is_an_object_with_its_request_and_job_ids() {
    let env = TestEnv::sqlite();
    let server = dev(&env, &["--log", "trace", "--log-format", "json"]);
    let id = fail(&server);
    let lines = server.shut_down();
    let objects: Vec<_> = lines.iter().map(|line| object(line)).collect();
    let of = |name: &str, value: &str| {
        objects.iter().filter(|object| object.get(name).is_some_and(|v| v == value)).collect::<Vec<_>>()
    };

    // Lines of the request: enqueued, answered.
    let request = of("requestId", "request-7");
    assert!(request.iter().any(|line| line.get("jobId").is_some_and(|v| v == id.as_str())), "{lines:#?}");
    assert!(request.iter().any(|line| line.get("status").is_some_and(|v| v == 202)), "{lines:#?}");
    for line in &request {
        assert_eq!(
            (&line["traceId"], &line["method"], &line["route"]),
            (&TRACE_ID.into(), &"POST".into(), &"/jobs".into())
        );
    }

    // Lines of the attempt: started, ended.
    let attempt: Vec<_> = of("jobId", &id).into_iter().filter(|line| line.contains_key("attempt")).collect();
    assert!(attempt.len() >= 2, "{lines:#?}");
    for line in &attempt {
        assert_eq!((&line["correlationId"], &line["traceId"]), (&"order-7".into(), &TRACE_ID.into()));
        assert_eq!((&line["jobType"], &line["attempt"]), (&"orchestrix.fail".into(), &1.into()));
    }
    assert!(of("outcome", "failed").len() == 1, "{lines:#?}");
    for line in of("jobId", &id) {
        assert_eq!(line["correlationId"], "order-7", "{line:?}");
    }

    // The startup message is a log line, too; payloads and keys are in none.
    let is_startup_message = |object: &Map<String, Value>| object["message"].as_str().unwrap().contains("curl -i");
    assert!(objects.iter().any(is_startup_message), "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("sesame")), "{lines:#?}");
}

#[test]
fn pretty_lines_are_plain_and_carry_request_and_job_ids() {
    let env = TestEnv::sqlite();
    let server = dev(&env, &["--log", "debug"]);
    let id = fail(&server);
    let lines = server.shut_down();
    let line =
        |text: &str| lines.iter().find(|line| line.contains(text)).unwrap_or_else(|| panic!("{text}: {lines:#?}"));
    let enqueued = line("requestId=request-7");
    assert!(enqueued.contains(" DEBUG ") && enqueued.contains(&format!("jobId={id}")), "{enqueued}");
    let ended = line("outcome=failed");
    assert!(ended.contains(" DEBUG ") && ended.contains(&format!("jobId={id}")), "{ended}");
    assert!(ended.contains("correlationId=order-7"), "{ended}");
    assert!(!lines.iter().any(|line| line.contains('\u{1b}') || line.contains("sesame")), "{lines:#?}");
}

#[test]
fn a_warning_carries_its_request_id() {
    let env = TestEnv::sqlite();
    let server = dev(&env, &["--log-format", "json"]);
    // Without its table every enqueue fails.
    let file = rusqlite::Connection::open(env.dir().join("orchestrix-data/orchestrix.db")).unwrap();
    file.execute_batch("PRAGMA busy_timeout = 60000; ALTER TABLE job RENAME TO gone").unwrap();
    let headers = [("content-type", "application/json"), ("x-request-id", "request-8")];
    server.call("POST", "/jobs", &headers, r#"{"jobType": "t"}"#).problem(500, "internal");
    let line = object(&server.wait_for_line("\"requestId\":\"request-8\""));
    assert_eq!(line["level"], "error", "{line:?}");
}

#[test]
fn an_error_of_a_command_is_a_json_object_too() {
    let env = TestEnv::sqlite();
    let ran = env.run(&["jobs", "get", "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70", "--log-format", "json"]);
    assert_eq!(ran.code, Some(5));
    assert_eq!(object(ran.stderr.trim_end())["level"], "error");
    let mut command = env.command(&["jobs", "list", "--log-format", "loud"]);
    CliOutput::run(&mut command).exits_with(2, "possible values: pretty, json");
}
