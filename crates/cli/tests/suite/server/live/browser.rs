//! Live updates in a real browser.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use orchestrix_testkit::install;
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use super::lease;
use crate::{
    harness::TestEnv,
    server::process::{ServerProcess, TIMEOUT},
};

/// A headless browser with one page; killed when dropped.
struct Browser {
    child: Child,
    socket: WebSocket<TcpStream>,
    last_id: u64,
}

impl Browser {
    fn start(env: &TestEnv) -> Self {
        let command = "apt-get update && apt-get install -y chromium";
        install::ensure_program("chromium", command, || println!("installing chromium")).unwrap();
        let profile = env.dir().join("browser");
        let mut child = Command::new("chromium")
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .args(["--remote-debugging-port=0", &format!("--user-data-dir={}", profile.display()), "about:blank"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let hello = lines.find(|line| line.contains("DevTools listening on ws://")).expect("a browser that starts");
        let address = hello.split("ws://").nth(1).unwrap().split('/').next().unwrap().to_owned();
        // Keeps reading, so that later output does not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let url = page_socket_url(&address);
        let stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let (socket, _) = tungstenite::client(url, stream).unwrap();
        Self { child, socket, last_id: 0 }
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let ask = json!({"id": self.last_id, "method": method, "params": params});
        self.socket.send(Message::text(ask.to_string())).unwrap();
        loop {
            let Message::Text(text) = self.socket.read().unwrap() else { continue };
            let answer: Value = serde_json::from_str(&text).unwrap();
            if answer["id"] == self.last_id {
                assert!(answer.get("error").is_none(), "{answer}");
                return answer["result"].clone();
            }
        }
    }

    fn evaluate(&mut self, script: &str) -> Value {
        let answer = self.call("Runtime.evaluate", &json!({"expression": script, "returnByValue": true}));
        assert!(answer.get("exceptionDetails").is_none(), "{answer}");
        answer["result"]["value"].clone()
    }

    /// Polls until the script evaluates to true.
    fn wait_until(&mut self, script: &str) {
        let deadline = Instant::now() + TIMEOUT;
        while self.evaluate(script) != true {
            assert!(Instant::now() < deadline, "never {script}; {}", self.evaluate("JSON.stringify(window.received)"));
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// The debugger URL of the browser's one page.
fn page_socket_url(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    write!(stream, "GET /json/list HTTP/1.1\r\nhost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    // The browser may keep the connection open after its response.
    let mut buffer = [0; 4096];
    loop {
        let n = stream.read(&mut buffer).unwrap();
        answer.push_str(&String::from_utf8_lossy(&buffer[..n]));
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        if let Ok(pages) = serde_json::from_str::<Value>(body) {
            let pages = pages.as_array().unwrap();
            let page = pages.iter().find(|page| page["type"] == "page").expect("a page");
            return page["webSocketDebuggerUrl"].as_str().unwrap().to_owned();
        }
        assert_ne!(n, 0, "{answer}");
    }
}

const FOLLOW: &str = r#"
    window.received = [];
    window.sockets = [];
    window.events = new EventSource('/jobs/JOB/events');
    for (const kind of ['status', 'progress', 'log'])
        events.addEventListener(kind, e => received.push([kind, JSON.parse(e.data)]));
    window.socket = new WebSocket(`ws://${location.host}/ws`);
    socket.onopen = () => socket.send(JSON.stringify({subscribe: {jobs: ['JOB']}}));
    socket.onmessage = e => sockets.push(JSON.parse(e.data));
    socket.onclose = e => sockets.push({closed: e.code});
"#;

#[test]
fn a_browser_follows_a_job_and_reconnects_after_a_server_restart() {
    let env = TestEnv::sqlite();
    fs::create_dir_all(env.dir().join("browser")).unwrap();
    let mut browser = Browser::start(&env);
    let mut server = ServerProcess::start(&env);
    let id = server.post("/jobs", &json!({"jobType": "t", "leaseSeconds": 300})).accepted_job_id();
    let home = format!("http://{}/healthz", server.address);
    browser.call("Page.navigate", &json!({"url": home}));
    browser.wait_until(&format!("location.href == '{home}' && document.readyState == 'complete'"));
    browser.evaluate(&FOLLOW.replace("JOB", &id));
    browser.wait_until("received.length == 1 && received[0][1].status == 'PENDING'");
    browser.wait_until("sockets.length == 1 && sockets[0].status == 'PENDING'");
    let token = lease(&server);
    let logs = format!("/worker/leases/{token}/logs");
    let line = |text: &str| json!({"lines": [{"level": "info", "message": text}]});
    assert_eq!(server.post(&logs, &line("one")).status, 200);
    browser.wait_until("received.some(e => e[0] == 'log' && e[1].message == 'one')");
    browser.wait_until("sockets.some(e => e.status == 'RUNNING')");

    server.signal("TERM");
    assert!(server.wait_for_exit().success());
    browser.wait_until("sockets.some(e => e.closed == 1001)");
    let again = env.command(&["server", "--no-auth", "--listen", &server.address]);
    let server = ServerProcess::spawn(again);
    assert_eq!(server.post(&logs, &line("two")).status, 200);
    browser.wait_until("received.some(e => e[0] == 'log' && e[1].message == 'two')");
    assert_eq!(server.post(&format!("/worker/leases/{token}/complete"), &json!({})).status, 200);
    browser.wait_until("received.some(e => e[1].status == 'COMPLETED')");
    browser.evaluate("events.close()");
    let logs = browser.evaluate("received.filter(e => e[0] == 'log').map(e => e[1].message).join()");
    assert_eq!(logs, "one,two", "no line is repeated after the reconnect");
    let statuses = browser.evaluate("received.filter(e => e[0] == 'status').map(e => e[1].status).join()");
    assert_eq!(statuses, "PENDING,RUNNING,RUNNING,COMPLETED", "the status is sent again after the reconnect");
}

const FOLLOW_WITH_KEY: &str = r#"
    window.received = [];
    window.socket = new WebSocket(`ws://${location.host}/ws`, ['orchestrix', 'orchestrix.key.KEY']);
    socket.onopen = () => { received.push({spoken: socket.protocol}); socket.send(JSON.stringify({subscribe: {jobs: ['JOB']}})); };
    socket.onmessage = e => received.push(JSON.parse(e.data));
    socket.onclose = e => received.push({closed: e.code});
"#;

#[test]
fn a_browser_sends_its_key_as_a_protocol_and_it_is_not_logged() {
    let env = TestEnv::sqlite();
    fs::create_dir_all(env.dir().join("browser")).unwrap();
    let mut browser = Browser::start(&env);
    let server = ServerProcess::start_with_auth(&env, &["--log", "trace"]);
    let made = env.run(&["keys", "create", "--role", "client"]).success();
    let key = made.stdout.trim_end();
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let id = server.call("POST", "/jobs", &headers, r#"{"jobType": "t"}"#).accepted_job_id();
    let home = format!("http://{}/healthz", server.address);
    browser.call("Page.navigate", &json!({"url": home}));
    browser.wait_until(&format!("location.href == '{home}' && document.readyState == 'complete'"));
    browser.evaluate(&FOLLOW_WITH_KEY.replace("JOB", &id).replace("KEY", key));
    browser.wait_until("received.length == 2 && received[0].spoken == 'orchestrix' && received[1].status == 'PENDING'");
    browser.evaluate("socket.close()");
    browser.wait_until("received.some(e => e.closed)");
    // With a wrong key or none the handshake fails.
    for wrong in [key.replace("ox_", "ox_0"), "none".to_owned()] {
        browser.evaluate(&FOLLOW_WITH_KEY.replace("JOB", &id).replace("KEY", &wrong));
        browser.wait_until("received.length == 1 && received[0].closed == 1006");
    }
    let secret = key.rsplit('_').next().unwrap();
    let log = server.shut_down();
    assert!(log.iter().any(|line| line.contains("/ws")), "the request is not logged: {log:?}");
    let leaked: Vec<&String> = log.iter().filter(|line| line.contains(secret)).collect();
    assert!(leaked.is_empty(), "{leaked:?}");
}
