//! A server process, and a minimal HTTP client that sends exactly the given bytes.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Mutex,
        mpsc::{self, Receiver},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::harness::TestEnv;

/// The limit of every wait in these tests.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A running server; killed when dropped.
pub(crate) struct ServerProcess {
    child: Child,
    lines: Mutex<Receiver<String>>,
    seen: Mutex<Vec<String>>,
    pub(crate) address: String,
}

impl ServerProcess {
    /// Starts a server without auth on a free port.
    pub(crate) fn start(env: &TestEnv) -> Self {
        Self::start_with(env, &[])
    }

    /// The same with more arguments.
    pub(crate) fn start_with(env: &TestEnv, arguments: &[&str]) -> Self {
        Self::spawn(env.command(&[&["server", "--no-auth", "--listen", "127.0.0.1:0"], arguments].concat()))
    }

    /// Starts a server that requires API keys.
    pub(crate) fn start_with_auth(env: &TestEnv, arguments: &[&str]) -> Self {
        Self::spawn(env.command(&[&["server", "--listen", "127.0.0.1:0"], arguments].concat()))
    }

    pub(crate) fn spawn(command: Command) -> Self {
        Self::spawn_with_scheme("http://", command)
    }

    /// Starts a server and reads its address from the line that contains `scheme`.
    pub(crate) fn spawn_with_scheme(scheme: &str, mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || stderr.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut server = Self { child, lines: Mutex::new(lines), seen: Mutex::default(), address: String::new() };
        let line = server.wait_for_line(scheme);
        // In a JSON line a quotation mark or an escaped line break follows.
        let address = line.split(scheme).nth(1).unwrap().split([';', ' ', '/', '"', '\\']).next().unwrap();
        server.address = address.to_owned();
        server
    }

    pub(crate) fn wait_for_line(&self, text: &str) -> String {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            match self.lines.lock().unwrap().recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    self.seen.lock().unwrap().push(line.clone());
                    if line.contains(text) {
                        return line;
                    }
                }
                Err(error) => panic!("the server did not write {text:?}: {error}"),
            }
        }
    }

    /// Stops it with SIGTERM; returns everything that it wrote to standard error.
    pub(crate) fn shut_down(mut self) -> Vec<String> {
        self.signal("TERM");
        assert_eq!(self.wait_for_exit().code(), Some(0));
        let mut lines = std::mem::take(&mut *self.seen.lock().unwrap());
        lines.extend(self.lines.lock().unwrap().iter());
        lines
    }

    /// Counts its open files and sockets.
    pub(crate) fn open_descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Waits for the process to exit.
    pub(crate) fn wait_for_exit(&mut self) -> ExitStatus {
        let deadline = Instant::now() + TIMEOUT;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("the server does not exit");
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.call("GET", path, &[], "")
    }

    /// Sends JSON.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Response {
        self.send("POST", path, &body.to_string())
    }

    pub(crate) fn send(&self, method: &str, path: &str, body: &str) -> Response {
        self.call(method, path, &[("content-type", "application/json")], body)
    }

    pub(crate) fn call(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
        let mut text = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.address);
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() || method != "GET" {
            text.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        text.push_str("\r\n");
        self.send_raw(&[text.as_bytes(), body.as_bytes()].concat())
    }

    /// Opens a connection and sends nothing.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream
    }

    /// Sends these bytes, and reads until the server closes the connection.
    pub(crate) fn send_raw(&self, bytes: &[u8]) -> Response {
        let mut stream = self.connect();
        // A body over its limit may be answered before it is sent.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        Response::read(&answer)
    }

    /// Waits until a job has this status.
    pub(crate) fn wait_for_status(&self, id: &str, status: &str) -> Value {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let job = self.get(&format!("/jobs/{id}?waitSeconds=5")).json();
            if job["status"] == status {
                return job;
            }
            assert!(Instant::now() < deadline, "{job} is not {status}");
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no response: {text:?}"));
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        Self { status, headers, body: body.to_owned() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts that it is a complete problem document with this code; returns its JSON.
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        let problem = self.json();
        assert_eq!((&problem["code"], &problem["status"]), (&code.into(), &status.into()), "{problem}");
        for field in ["type", "title", "detail", "requestId"] {
            assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "{field} in {problem}");
        }
        assert_eq!(problem["requestId"], self.header("x-request-id").unwrap());
        problem
    }

    /// The fields that a validation problem names, sorted.
    pub(crate) fn invalid_fields(&self) -> Vec<String> {
        let problem = self.problem(422, "validation_failed");
        let errors = problem["errors"].as_array().unwrap().iter();
        let mut fields: Vec<String> = errors.map(|error| error["field"].as_str().unwrap().to_owned()).collect();
        fields.sort_unstable();
        fields
    }

    /// The id of the job that was accepted.
    pub(crate) fn accepted_job_id(&self) -> String {
        assert_eq!(self.status, 202, "{self:?}");
        let id = self.json()["jobId"].as_str().unwrap().to_owned();
        if let Some(location) = self.header("location") {
            assert_eq!(location, format!("/jobs/{id}"));
        }
        id
    }
}
