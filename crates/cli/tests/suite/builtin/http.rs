//! `orchestrix.http` against a small stub server.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Instant,
};

use orchestrix_core::Timestamp;
use serde_json::json;

use super::GRACE;
use crate::{
    harness::{TestEnv, each_database},
    worker::{WorkerProcess, eventually},
};

/// Answers each request with what its function returns for the request's number and path. An empty text is never
/// sent: the client waits.
struct StubServer {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl StubServer {
    fn start(answer: impl Fn(usize, &str) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&requests);
        thread::spawn(move || {
            let mut waiting = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let request = read(&stream);
                let path = request.split_whitespace().nth(1).unwrap_or_default().to_owned();
                let number = {
                    let mut record = record.lock().unwrap();
                    record.push(request);
                    record.len()
                };
                match answer(number, &path) {
                    text if text.is_empty() => waiting.push(stream),
                    // The client may close the connection before it has read everything.
                    text => drop(stream.write_all(text.as_bytes())),
                }
            }
        });
        Self { port, requests }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn read(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut request = String::new();
    while !request.ends_with("\r\n\r\n") {
        if reader.read_line(&mut request).unwrap() == 0 {
            return request;
        }
    }
    let length = request.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    request + std::str::from_utf8(&body).unwrap()
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

#[test]
fn private_addresses_are_refused_before_any_request() {
    let env = TestEnv::sqlite();
    let _worker = WorkerProcess::start(&env, &[]);
    let server = StubServer::start(|_, _| answer("200 OK", "", ""));
    for host in ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "[::1]", "[::ffff:7f00:1]", "localhost", "0.0.0.0"] {
        let url = format!("http://{host}:{}/", server.port);
        let error = env.wait_for_fatal_error(&env.enqueue_builtin("http", &json!({"url": url}), &[]));
        assert!(error.contains("--allow-private-http"), "{host}: {error}");
    }
    for url in ["http://169.254.169.254/latest/meta-data/", "https://10.0.0.1/", "http://[fd00:ec2::254]/"] {
        let error = env.wait_for_fatal_error(&env.enqueue_builtin("http", &json!({"url": url}), &[]));
        assert!(error.contains("--allow-private-http"), "{url}: {error}");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn a_request_is_sent_as_given_and_the_response_is_the_result() {
    for env in each_database() {
        let _worker = WorkerProcess::start(&env, &["--allow-private-http"]);
        let server = StubServer::start(|_, path| match path {
            "/moved" => answer("302 Found", "Location: /there\r\n", ""),
            _ => answer("201 Created", "X-Twice: a\r\nX-Twice: b\r\n", "h\u{e9}llo"),
        });
        let get =
            env.wait_for_state(&env.enqueue_builtin("http", &json!({"url": server.url("/moved")}), &[]), "completed");
        let result = &get["result"];
        assert_eq!((&result["status"], &result["body"]), (&json!(201), &json!("h\u{e9}llo")), "{result:#}");
        assert_eq!((&result["truncated"], &result["headers"]["x-twice"]), (&json!(false), &json!("a, b")));

        let payload = json!({"url": server.url("/x"), "headers": {"Authorization": "Bearer k"}, "body": {"a": [1]}});
        env.wait_for_state(&env.enqueue_builtin("http", &payload, &[]), "completed");
        let payload = json!({"url": server.url("/y"), "method": "put", "body": "plain"});
        env.wait_for_state(&env.enqueue_builtin("http", &payload, &[]), "completed");
        let [moved, there, post, put] = &server.requests()[..] else { panic!("{:?}", server.requests()) };
        assert!(moved.starts_with("GET /moved HTTP/1.1") && there.starts_with("GET /there "), "{moved} {there}");
        assert!(post.starts_with("POST /x ") && post.ends_with("\r\n\r\n{\"a\":[1]}"), "{post}");
        assert!(post.contains("authorization: Bearer k") && post.contains("content-type: application/json"), "{post}");
        assert!(put.starts_with("PUT /y ") && put.ends_with("\r\n\r\nplain") && !put.contains("json"), "{put}");
    }
}

#[test]
fn the_response_status_decides_between_complete_retry_and_fatal() {
    let env = TestEnv::sqlite();
    let _worker = WorkerProcess::start(&env, &["--allow-private-http"]);
    let server = StubServer::start(|number, path| match path {
        "/busy" if number == 1 => answer("500 Internal StubServer Error", "Retry-After: 600\r\n", ""),
        "/later" => answer("503 Service Unavailable", "Retry-After: 600\r\n", ""),
        "/missing" => answer("404 Not Found", "", ""),
        "/moved" => answer("302 Found", "Location: http://example.invalid/\r\n", ""),
        _ => answer("200 OK", "", ""),
    });
    let send = |path: &str, expected| {
        env.enqueue_builtin("http", &json!({"url": server.url(path), "expectStatus": expected}), &[])
    };
    let busy = env.wait_for_state(&send("/busy", json!(null)), "completed");
    assert_eq!(busy["attempts"].as_array().unwrap().len(), 2, "{busy:#}");
    assert!(env.wait_for_fatal_error(&send("/missing", json!(null))).contains("answered 404 Not Found"));
    assert!(env.wait_for_fatal_error(&send("/", json!([201, 204]))).contains("answered 200 OK"));
    assert_eq!(env.wait_for_state(&send("/missing", json!([200, 404])), "completed")["result"]["status"], 404);
    assert_eq!(env.wait_for_state(&send("/moved", json!(302)), "completed")["result"]["status"], 302);

    let later = env.wait_for_state(&send("/later", json!(null)), "retrying");
    let time = |value: &serde_json::Value| value.as_str().unwrap().parse::<Timestamp>().unwrap();
    let wait = time(&later["eligibleAt"]).duration_since(time(&later["attempts"][0]["endedAt"])).as_secs();
    assert!((599..=660).contains(&wait), "{wait}: {later:#}");
}

#[test]
fn a_long_response_is_truncated_and_a_missing_one_is_retried() {
    let env = TestEnv::sqlite();
    let _worker = WorkerProcess::start(&env, &["--allow-private-http", "--heartbeat-interval", "50ms"]);
    let server = StubServer::start(|_, path| match path {
        // The body never reaches its declared length.
        "/long" => format!("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n{}", "x".repeat(70_000)),
        _ => String::new(),
    });
    let long = env.wait_for_state(&env.enqueue_builtin("http", &json!({"url": server.url("/long")}), &[]), "completed");
    assert_eq!(long["result"]["truncated"], true);
    assert_eq!(long["result"]["body"].as_str().unwrap().len(), 65_536);

    let payload = json!({"url": server.url("/silent")});
    let overdue = env.enqueue_builtin("http", &payload, &["--timeout", "200ms", "--max-attempts", "1"]);
    assert_eq!(env.wait_for_state(&overdue, "dead")["attempts"][0]["outcome"], "timed_out");
    let cancelled = env.enqueue_builtin("http", &payload, &[]);
    eventually("the request arrives", || (server.requests().len() == 3).then_some(()));
    let cancelled_at = Instant::now();
    env.run(&["jobs", "cancel", &cancelled]).success();
    env.wait_for_state(&cancelled, "cancelled");
    assert!(cancelled_at.elapsed() < GRACE, "the handler did not stop by itself");

    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let lost = env.enqueue_builtin("http", &json!({"url": format!("http://{closed}/")}), &["--max-attempts", "2"]);
    assert_eq!(env.wait_for_state(&lost, "dead")["attempts"].as_array().unwrap().len(), 2);
}

#[test]
fn no_log_shows_a_request_header() {
    let env = TestEnv::sqlite();
    let mut worker = WorkerProcess::start(&env, &["--allow-private-http", "--log", "trace"]);
    let server = StubServer::start(|_, _| answer("200 OK", "", ""));
    let headers = json!({"Authorization": "Bearer hunter2", "X-Key": "hunter2"});
    let id = env.enqueue_builtin("http", &json!({"url": server.url("/"), "headers": headers}), &[]);
    env.wait_for_state(&id, "completed");
    assert!(server.requests()[0].contains("hunter2"));
    worker.signal("TERM");
    assert_eq!(worker.wait_for_exit(), Some(0));
    let log = worker.remaining_lines();
    assert!(log.len() > 10 && !log.iter().any(|line| line.contains("hunter2")), "{log:#?}");
}
