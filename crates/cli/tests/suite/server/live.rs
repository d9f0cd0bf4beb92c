//! Live updates, observed on another process than the one that writes.

mod browser;
mod client;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::client::{EventStream, WebSocketClient};
use super::{leak_check::SqlTransaction, process::ServerProcess};
use crate::{
    harness::{TestEnv, each_database, on_each_database},
    worker::WorkerProcess,
};

fn sleeping(seconds: f64, queue: &str) -> Value {
    json!({"jobType": "orchestrix.sleep", "payload": {"seconds": seconds}, "queue": queue, "leaseSeconds": 2})
}

#[test]
fn subscribers_see_status_changes_of_any_process_in_order() {
    for env in each_database() {
        let (near, far) = (ServerProcess::start(&env), ServerProcess::start(&env));
        let mut broad: Vec<WebSocketClient> = [json!({"all": true}), json!({"queues": ["q"]})]
            .into_iter()
            .map(|wanted| WebSocketClient::subscribed(&near, &wanted))
            .collect();
        let id = far.post("/jobs", &sleeping(0.5, "q")).accepted_job_id();
        far.post("/jobs", &json!({"jobType": "other", "queue": "other"})).accepted_job_id();
        for socket in &mut broad {
            socket.wait_for_status(&id, "PENDING");
        }
        let mut by_id = WebSocketClient::subscribed(&near, &json!({"jobs": [id]}));
        by_id.wait_for_status(&id, "PENDING");
        let mut events = EventStream::open(&near, &id, None);
        assert_eq!(events.next("status")["status"], "PENDING");
        let _worker = WorkerProcess::start(&env, &["--queues", "q"]);
        assert_eq!(events.next("status")["status"], "RUNNING");
        let end = events.next("status");
        assert_eq!(end["status"], "COMPLETED");
        assert_eq!(end, far.get(&format!("/jobs/{id}")).json());
        assert_eq!(events.count_until_end(), 0, "the final status is the last event");
        for socket in broad.iter_mut().chain([&mut by_id]) {
            socket.wait_for_status(&id, "RUNNING");
            let end = socket.wait_for_status(&id, "COMPLETED");
            assert_eq!((&end["jobType"], &end["queue"]), (&"orchestrix.sleep".into(), &"q".into()));
            assert!(end["at"].as_str().unwrap().ends_with('Z'), "{end}");
            assert_eq!(socket.statuses(&id), ["PENDING", "RUNNING", "COMPLETED"]);
            let numbers: Vec<u64> = socket.status_events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
            assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
        }
        assert!(broad[1].status_events.iter().all(|event| event["queue"] == "q"), "{:?}", broad[1].status_events);
    }
}

#[test]
fn a_job_is_followed_to_its_end_although_its_worker_was_killed() {
    on_each_database(|env| {
        let server = ServerProcess::start(&env);
        let mut socket = WebSocketClient::subscribed(&server, &json!({"all": true}));
        let first = WorkerProcess::start(&env, &[]);
        let id = server.post("/jobs", &sleeping(1.0, "q")).accepted_job_id();
        socket.wait_for_status(&id, "RUNNING");
        first.signal("KILL");
        let _second = WorkerProcess::start(&env, &[]);
        socket.wait_for_status(&id, "COMPLETED");
        let statuses = socket.statuses(&id);
        assert!(statuses.windows(2).all(|two| two[0] != two[1]), "only changes are reported: {statuses:?}");
        let running = statuses.iter().filter(|status| **status == "RUNNING").count();
        assert!(running >= 1 && statuses.last() == Some(&"COMPLETED"), "{statuses:?}");
    });
}

#[test]
fn an_event_stream_resumes_after_the_last_event_id() {
    for env in each_database() {
        let (near, far) = (ServerProcess::start(&env), ServerProcess::start(&env));
        let id = far.post("/jobs", &json!({"jobType": "t"})).accepted_job_id();
        let token = lease(&far);
        let report = |path: &str, body: Value| {
            let answer = far.post(&format!("/worker/leases/{token}/{path}"), &body);
            assert_eq!(answer.status, 200, "{answer:?}");
        };
        let line = |text: &str| json!({"lines": [{"level": "info", "message": text}]});
        report("logs", line("one\ntwo"));
        let mut events = EventStream::open(&near, &id, None);
        assert_eq!(events.next("status")["status"], "RUNNING");
        let first = events.next("log");
        assert_eq!((&first["message"], &first["level"]), (&"one\ntwo".into(), &"info".into()));
        let last = events.last_id.clone();
        assert_eq!(last, first["seq"].to_string());
        report("progress", json!({"percent": 50, "message": "half"}));
        assert_eq!(events.next("progress"), json!({"percent": 50.0, "message": "half"}));
        drop(events);
        for text in ["three", "four"] {
            report("logs", line(text));
        }
        let mut events = EventStream::open(&near, &id, Some(&last));
        assert_eq!(events.next("status")["progress"]["percent"], 50.0);
        assert_eq!(events.next("log")["message"], "three");
        assert_eq!(events.next("log")["message"], "four");
        report("logs", line("the last"));
        report("complete", json!({}));
        assert_eq!(events.next("log")["message"], "the last");
        assert_eq!(events.next("status")["status"], "COMPLETED");
        assert_eq!(events.count_until_end(), 0);
        // A subscriber of a finished job gets its final status only.
        let mut late = EventStream::open(&near, &id, Some(&events.last_id));
        assert_eq!(late.next("status")["status"], "COMPLETED");
        assert_eq!(late.count_until_end(), 0);
    }
}

fn lease(server: &ServerProcess) -> String {
    let ask = json!({"workerId": "w", "queues": ["*"], "max": 1, "waitSeconds": 10});
    server.post("/worker/leases", &ask).json()["leases"][0]["leaseToken"].as_str().unwrap().to_owned()
}

#[test]
fn every_server_reports_a_redriven_job() {
    for env in each_database() {
        let (near, far) = (ServerProcess::start(&env), ServerProcess::start(&env));
        let dead = |queue: &str| {
            let id = far.post("/jobs", &json!({"jobType": "t", "queue": queue})).accepted_job_id();
            let fail = format!("/worker/leases/{}/fail", lease(&far));
            assert_eq!(far.post(&fail, &json!({"error": "no use", "retryable": false})).status, 200);
            id
        };
        // Died before any subscription.
        let old = dead("old");
        let mut sockets = [&near, &far].map(|server| WebSocketClient::subscribed(server, &json!({"all": true})));
        let [one, some, many] = ["one", "some", "many"].map(dead);
        for socket in &mut sockets {
            for id in [&one, &some, &many] {
                socket.wait_for_status(id, "FAILED");
            }
        }
        for id in [&old, &one] {
            assert_eq!(far.post(&format!("/admin/jobs/{id}/retry"), &json!({})).status, 200);
        }
        assert_eq!(far.post("/admin/dlq/redrive", &json!({"jobIds": [some]})).status, 200);
        let bulk = json!({"action": "retry", "filter": {"queue": "many"}});
        assert_eq!(far.post("/admin/jobs/bulk", &bulk).status, 202);
        for socket in &mut sockets {
            socket.wait_for_status(&old, "PENDING");
            for id in [&one, &some, &many] {
                socket.wait_for_new_status(id, "PENDING");
            }
        }
    }
}

#[test]
fn a_new_server_reports_changes_since_the_last_event() {
    for env in each_database() {
        let mut first = ServerProcess::start(&env);
        let mut socket = WebSocketClient::subscribed(&first, &json!({"queues": ["q"]}));
        let id = first.post("/jobs", &json!({"jobType": "t", "queue": "q"})).accepted_job_id();
        let token = lease(&first);
        let last = socket.wait_for_status(&id, "RUNNING");
        first.signal("KILL");
        first.wait_for_exit();
        let second = ServerProcess::start(&env);
        assert_eq!(second.post(&format!("/worker/leases/{token}/complete"), &json!({})).status, 200);
        let mut socket = WebSocketClient::subscribed(&second, &json!({"queues": ["q"], "since": last["at"]}));
        assert_eq!(socket.wait_until_synced(), json!({"event": "synced", "complete": true}));
        assert_eq!(socket.statuses(&id), ["COMPLETED"]);
    }
}

#[test]
fn a_job_of_a_long_transaction_is_reported_at_commit() {
    let env = TestEnv::postgres();
    let servers = [ServerProcess::start(&env), ServerProcess::start(&env)];
    let mut sockets = servers.each_ref().map(|server| WebSocketClient::subscribed(server, &json!({"all": true})));
    let enqueue_and_wait = |sockets: &mut [WebSocketClient; 2]| {
        let id = servers[0].post("/jobs", &json!({"jobType": "t"})).accepted_job_id();
        sockets.iter_mut().for_each(|socket| drop(socket.wait_for_status(&id, "PENDING")));
    };
    enqueue_and_wait(&mut sockets);
    let mut transaction = SqlTransaction::begin(&env);
    let id = transaction.query("SELECT orchestrix.enqueue(job_type => 'late');");
    // Enqueues jobs until the late one is older than the window of recent changes.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        enqueue_and_wait(&mut sockets);
    }
    assert!(sockets.iter().all(|socket| socket.statuses(&id).is_empty()));
    assert_eq!(transaction.query("COMMIT; SELECT 'done';"), "done");
    for socket in &mut sockets {
        socket.wait_for_status(&id, "PENDING");
    }
    enqueue_and_wait(&mut sockets);
    assert!(sockets.iter().all(|socket| socket.statuses(&id) == ["PENDING"]), "reported once");
}

#[test]
fn invalid_subscriptions_get_an_error_and_the_connection_stays_open() {
    let env = TestEnv::sqlite();
    let server = ServerProcess::start(&env);
    let unknown = "0199d0a4-8f3e-7c21-9b1f-2f6a3e1c5d70";
    server.get(&format!("/jobs/{unknown}/events")).problem(404, "job_not_found");
    server.get("/jobs/nonsense/events").problem(404, "job_not_found");
    let id = server.post("/jobs", &json!({"jobType": "t", "delaySeconds": 1000})).accepted_job_id();
    let odd = server.call("GET", &format!("/jobs/{id}/events"), &[("last-event-id", "x")], "");
    assert_eq!(odd.invalid_fields(), ["Last-Event-ID"]);
    server.get("/ws").problem(400, "malformed_request");
    let page = [
        ("origin", "http://evil.example"),
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA=="),
    ];
    server.call("GET", "/ws", &page, "").problem(403, "forbidden");

    let mut socket = WebSocketClient::open(&server);
    for (text, code) in [
        ("{", "malformed_request"),
        (r#"{"subscribe": {"everything": true}}"#, "validation_failed"),
        ("{}", "validation_failed"),
    ] {
        socket.send(text);
        let error = socket.next();
        assert_eq!((&error["event"], &error["code"]), (&"error".into(), &code.into()), "{error}");
    }
    let many: Vec<String> = (0..1_001).map(|n| format!("0199d0a4-8f3e-7c21-9b1f-{n:012x}")).collect();
    socket.send(&json!({"subscribe": {"jobs": many}}).to_string());
    assert_eq!(socket.next()["code"], "validation_failed");
    socket.send(&json!({"subscribe": {"jobs": ["nonsense", unknown, id]}}).to_string());
    for _ in 0..2 {
        let error = socket.next();
        assert_eq!((&error["event"], &error["code"]), (&"error".into(), &"job_not_found".into()), "{error}");
        assert!(["nonsense", unknown].contains(&error["jobId"].as_str().unwrap()), "{error}");
    }
    socket.wait_for_status(&id, "PENDING");
    socket.send(&json!({"unsubscribe": {"jobs": [id]}}).to_string());
    socket.ping();
    server.post(&format!("/jobs/{id}/cancel"), &json!({})).accepted_job_id();
    // The first event of this subscription proves that nothing more came for the cancelled one.
    let next = server.post("/jobs", &json!({"jobType": "t", "delaySeconds": 1000})).accepted_job_id();
    socket.send(&json!({"subscribe": {"jobs": [next]}}).to_string());
    assert_eq!(socket.next()["jobId"], *next);
    socket.send(&format!(r#"{{"subscribe": {{"jobs": ["{}"]}}}}"#, "x".repeat(70_000)));
    assert_eq!(socket.wait_for_close(), Some(1009));
}

#[test]
fn a_server_closes_its_subscriptions_on_shutdown() {
    let env = TestEnv::sqlite();
    let mut server = ServerProcess::start(&env);
    let id = server.post("/jobs", &json!({"jobType": "t"})).accepted_job_id();
    let mut socket = WebSocketClient::subscribed(&server, &json!({"all": true}));
    let mut events = EventStream::open(&server, &id, None);
    assert_eq!(events.next("status")["status"], "PENDING");
    server.signal("TERM");
    assert_eq!(socket.wait_for_close(), Some(1001));
    assert_eq!(events.count_until_end(), 0);
    assert_eq!(server.wait_for_exit().code(), Some(0));
}
