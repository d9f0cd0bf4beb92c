//! What is logged, and whose it is.

use orchestrix_core::Timestamp;
use serde_json::{Map, Value};

use crate::{
    server::http::Server,
    support::{Place, Ran, bare},
};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A line, which is one object with all that each has.
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

fn dev(place: &Place, arguments: &[&str]) -> Server {
    let mut command = bare(&[&["dev", "--listen", "127.0.0.1:0"], arguments].concat());
    command.current_dir(place.folder());
    Server::of(command)
}

/// Has a job fail at once, in a request with all the ids there are; the job's.
fn fail(server: &Server) -> String {
    let headers = [("content-type", "application/json"), ("x-request-id", "request-7"), ("traceparent", TRACE)];
    let body = r#"{"jobType": "orchestrix.fail", "payload": {"message": "sesame", "retryable": false},
        "correlationId": "order-7", "idempotencyKey": "sesame-key"}"#;
    let id = server.call("POST", "/jobs", &headers, body).accepted();
    server.until(&id, "FAILED");
    id
}

#[test]
fn as_json_every_line_is_an_object_and_knows_its_request_and_its_job() {
    let place = Place::sqlite();
    let server = dev(&place, &["--log", "trace", "--log-format", "json"]);
    let id = fail(&server);
    let lines = server.last_words();
    let objects: Vec<_> = lines.iter().map(|line| object(line)).collect();
    let of = |name: &str, value: &str| {
        objects.iter().filter(|object| object.get(name).is_some_and(|v| v == value)).collect::<Vec<_>>()
    };

    // The request: recorded, answered.
    let request = of("requestId", "request-7");
    let said: Vec<&Value> = request.iter().map(|line| &line["message"]).collect();
    assert!(said.contains(&&"recorded".into()) && said.contains(&&"answered".into()), "{lines:#?}");
    for line in &request {
        assert_eq!(
            (&line["traceId"], &line["method"], &line["route"]),
            (&TRACE_ID.into(), &"POST".into(), &"/jobs".into())
        );
    }

    // The attempt: started, ended.
    let attempt: Vec<_> = of("jobId", &id).into_iter().filter(|line| line.contains_key("attempt")).collect();
    let said: Vec<&Value> = attempt.iter().map(|line| &line["message"]).collect();
    assert!(said.contains(&&"attempt started".into()) && said.contains(&&"attempt ended".into()), "{lines:#?}");
    for line in &attempt {
        assert_eq!((&line["correlationId"], &line["traceId"]), (&"order-7".into(), &TRACE_ID.into()));
        assert_eq!((&line["jobType"], &line["attempt"]), (&"orchestrix.fail".into(), &1.into()));
    }
    assert!(of("outcome", "failed").len() == 1, "{lines:#?}");
    for line in of("jobId", &id) {
        assert_eq!(line["correlationId"], "order-7", "{line:?}");
    }

    // What it says to whoever looks on is one of them; payloads and keys are in none.
    let looks = |object: &Map<String, Value>| object["message"].as_str().unwrap().contains("curl -i");
    assert!(objects.iter().any(looks), "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("sesame")), "{lines:#?}");
}

#[test]
fn for_people_a_line_is_short_and_plain_and_knows_its_request_and_its_job() {
    let place = Place::sqlite();
    let server = dev(&place, &["--log", "debug"]);
    let id = fail(&server);
    let lines = server.last_words();
    let line =
        |text: &str| lines.iter().find(|line| line.contains(text)).unwrap_or_else(|| panic!("{text}: {lines:#?}"));
    assert!(line(" DEBUG recorded ").contains("requestId=request-7"));
    let ended = line(" DEBUG ended ");
    assert!(ended.contains("outcome=failed") && ended.contains(&format!("jobId={id}")), "{ended}");
    assert!(ended.contains("correlationId=order-7"), "{ended}");
    assert!(!lines.iter().any(|line| line.contains('\u{1b}') || line.contains("sesame")), "{lines:#?}");
}

#[test]
fn a_lone_warning_knows_its_request() {
    let place = Place::sqlite();
    let server = dev(&place, &["--log-format", "json"]);
    // A table that is gone is an error of whichever request needs it.
    let file = rusqlite::Connection::open(place.folder().join("orchestrix-data/orchestrix.db")).unwrap();
    file.execute_batch("PRAGMA busy_timeout = 60000; ALTER TABLE job RENAME TO gone").unwrap();
    let headers = [("content-type", "application/json"), ("x-request-id", "request-8")];
    server.call("POST", "/jobs", &headers, r#"{"jobType": "t"}"#).problem(500, "internal");
    let line = object(&server.says("\"requestId\":\"request-8\""));
    assert_eq!((&line["level"], &line["message"]), (&"error".into(), &"the store failed".into()));
}

#[test]
fn a_mistake_is_an_object_too() {
    let place = Place::sqlite();
    let ran = place.run(&["jobs", "get", "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70", "--log-format", "json"]);
    assert_eq!(ran.code, Some(5));
    assert_eq!(object(ran.stderr.trim_end())["level"], "error");
    let mut command = place.command(&["jobs", "list", "--log-format", "loud"]);
    Ran::of(&mut command).ended(2, "possible values: pretty, json");
}
