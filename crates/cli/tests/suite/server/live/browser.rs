//! The same in a real browser, with what it brings along.

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
    server::http::{LIMIT, Server},
    support::Place,
};

/// A browser without a window, at one page; killed when dropped.
struct Browser {
    child: Child,
    socket: WebSocket<TcpStream>,
    asked: u64,
}

impl Browser {
    fn start(place: &Place) -> Self {
        let command = "apt-get update && apt-get install -y chromium";
        install::ensure_program("chromium", command, || println!("installing chromium")).unwrap();
        let folder = place.folder().join("browser");
        let mut child = Command::new("chromium")
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .args(["--remote-debugging-port=0", &format!("--user-data-dir={}", folder.display()), "about:blank"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let hello = lines.find(|line| line.contains("DevTools listening on ws://")).expect("a browser that starts");
        let address = hello.split("ws://").nth(1).unwrap().split('/').next().unwrap().to_owned();
        // Whatever it says later must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let url = page(&address);
        let stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let (socket, _) = tungstenite::client(url, stream).unwrap();
        Self { child, socket, asked: 0 }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let ask = json!({"id": self.asked, "method": method, "params": params});
        self.socket.send(Message::text(ask.to_string())).unwrap();
        loop {
            let Message::Text(text) = self.socket.read().unwrap() else { continue };
            let answer: Value = serde_json::from_str(&text).unwrap();
            if answer["id"] == self.asked {
                assert!(answer.get("error").is_none(), "{answer}");
                return answer["result"].clone();
            }
        }
    }

    fn run(&mut self, script: &str) -> Value {
        let answer = self.ask("Runtime.evaluate", &json!({"expression": script, "returnByValue": true}));
        assert!(answer.get("exceptionDetails").is_none(), "{answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until the page says so.
    fn until(&mut self, script: &str) {
        let deadline = Instant::now() + LIMIT;
        while self.run(script) != true {
            assert!(Instant::now() < deadline, "never {script}; {}", self.run("JSON.stringify(window.heard)"));
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

// Where its one page is spoken to.
fn page(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    write!(stream, "GET /json/list HTTP/1.1\r\nhost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    // It may leave the connection open after its answer.
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
    window.heard = [];
    window.sockets = [];
    window.events = new EventSource('/jobs/JOB/events');
    for (const kind of ['status', 'progress', 'log'])
        events.addEventListener(kind, e => heard.push([kind, JSON.parse(e.data)]));
    window.socket = new WebSocket(`ws://${location.host}/ws`);
    socket.onopen = () => socket.send(JSON.stringify({subscribe: {jobs: ['JOB']}}));
    socket.onmessage = e => sockets.push(JSON.parse(e.data));
    socket.onclose = e => sockets.push({closed: e.code});
"#;

#[test]
fn a_browser_follows_a_job_and_comes_back_by_itself_when_the_server_was_away() {
    let place = Place::sqlite();
    fs::create_dir_all(place.folder().join("browser")).unwrap();
    let mut browser = Browser::start(&place);
    let mut server = Server::start(&place);
    let id = server.post("/jobs", &json!({"jobType": "t", "leaseSeconds": 300})).accepted();
    let home = format!("http://{}/healthz", server.address);
    browser.ask("Page.navigate", &json!({"url": home}));
    browser.until(&format!("location.href == '{home}' && document.readyState == 'complete'"));
    browser.run(&FOLLOW.replace("JOB", &id));
    browser.until("heard.length == 1 && heard[0][1].status == 'PENDING'");
    browser.until("sockets.length == 1 && sockets[0].status == 'PENDING'");
    let token = lease(&server);
    let logs = format!("/worker/leases/{token}/logs");
    let line = |text: &str| json!({"lines": [{"level": "info", "message": text}]});
    assert_eq!(server.post(&logs, &line("one")).status, 200);
    browser.until("heard.some(e => e[0] == 'log' && e[1].message == 'one')");
    browser.until("sockets.some(e => e.status == 'RUNNING')");

    server.signal("TERM");
    assert!(server.ended().success());
    browser.until("sockets.some(e => e.closed == 1001)");
    let again = place.command(&["server", "--no-auth", "--listen", &server.address]);
    let server = Server::of(again);
    assert_eq!(server.post(&logs, &line("two")).status, 200);
    browser.until("heard.some(e => e[0] == 'log' && e[1].message == 'two')");
    assert_eq!(server.post(&format!("/worker/leases/{token}/complete"), &json!({})).status, 200);
    browser.until("heard.some(e => e[1].status == 'COMPLETED')");
    browser.run("events.close()");
    let logs = browser.run("heard.filter(e => e[0] == 'log').map(e => e[1].message).join()");
    assert_eq!(logs, "one,two", "no line twice, though the connection was lost");
    let statuses = browser.run("heard.filter(e => e[0] == 'status').map(e => e[1].status).join()");
    assert_eq!(statuses, "PENDING,RUNNING,RUNNING,COMPLETED", "told anew after the connection was lost");
}

const FOLLOW_WITH_KEY: &str = r#"
    window.heard = [];
    window.socket = new WebSocket(`ws://${location.host}/ws`, ['orchestrix', 'orchestrix.key.KEY']);
    socket.onopen = () => { heard.push({spoken: socket.protocol}); socket.send(JSON.stringify({subscribe: {jobs: ['JOB']}})); };
    socket.onmessage = e => heard.push(JSON.parse(e.data));
    socket.onclose = e => heard.push({closed: e.code});
"#;

#[test]
fn a_browser_shows_its_key_as_a_protocol_and_nobody_writes_it_down() {
    let place = Place::sqlite();
    fs::create_dir_all(place.folder().join("browser")).unwrap();
    let mut browser = Browser::start(&place);
    let server = Server::start_keyed(&place, &["--log", "trace"]);
    let made = place.run(&["keys", "create", "--role", "client"]).done();
    let key = made.stdout.trim_end();
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let id = server.call("POST", "/jobs", &headers, r#"{"jobType": "t"}"#).accepted();
    let home = format!("http://{}/healthz", server.address);
    browser.ask("Page.navigate", &json!({"url": home}));
    browser.until(&format!("location.href == '{home}' && document.readyState == 'complete'"));
    browser.run(&FOLLOW_WITH_KEY.replace("JOB", &id).replace("KEY", key));
    browser.until("heard.length == 2 && heard[0].spoken == 'orchestrix' && heard[1].status == 'PENDING'");
    browser.run("socket.close()");
    browser.until("heard.some(e => e.closed)");
    // With a wrong one, or none, no connection is made.
    for wrong in [key.replace("ox_", "ox_0"), "none".to_owned()] {
        browser.run(&FOLLOW_WITH_KEY.replace("JOB", &id).replace("KEY", &wrong));
        browser.until("heard.length == 1 && heard[0].closed == 1006");
    }
    let secret = key.rsplit('_').next().unwrap();
    let said = server.last_words();
    assert!(said.iter().any(|line| line.contains("/ws")), "it says that there was such a request: {said:?}");
    let told: Vec<&String> = said.iter().filter(|line| line.contains(secret)).collect();
    assert!(told.is_empty(), "{told:?}");
}
