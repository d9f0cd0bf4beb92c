//! The worker as a process: start, drain and exit.

use std::{
    cell::RefCell,
    fs,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use orchestrix_server::{App, ServerOptions, serve};
use orchestrix_testkit::TestDatabase;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::harness::{CliOutput, TestEnv, each_database, on_each_database, orchestrix};

/// The limit of every wait in these tests.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running worker; killed when dropped.
pub(crate) struct WorkerProcess {
    child: Child,
    startup_line: String,
    lines: Receiver<String>,
    seen: RefCell<Vec<String>>,
}

impl WorkerProcess {
    /// Starts a worker with a short poll interval, and waits for its startup line.
    pub(crate) fn start(env: &TestEnv, flags: &[&str]) -> Self {
        Self::spawn(env.command(&[&["worker", "--poll-interval", "20ms"], flags].concat()))
    }

    /// Starts a worker over a server, and waits for its startup line.
    pub(crate) fn start_over_server(server: &str, flags: &[&str]) -> Self {
        Self::spawn(orchestrix(&[&["worker", "--server", server], flags].concat()))
    }

    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap()).lines();
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || stderr.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut running = Self { child, startup_line: String::new(), lines, seen: RefCell::default() };
        running.startup_line = running.wait_for_line("worker ");
        running
    }

    /// Waits for a line that contains `text`.
    pub(crate) fn wait_for_line(&self, text: &str) -> String {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let line = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now()));
            match line {
                Ok(line) => {
                    self.seen.borrow_mut().push(line.clone());
                    if line.contains(text) {
                        return line;
                    }
                }
                Err(error) => panic!("the worker did not write {text:?}: {error}"),
            }
        }
    }

    /// The lines that were not read yet; after its exit, all that are left.
    pub(crate) fn remaining_lines(&self) -> Vec<String> {
        self.lines.iter().collect()
    }

    /// Stops it with SIGTERM; returns everything that it wrote to standard error.
    pub(crate) fn shut_down(mut self) -> Vec<String> {
        self.signal("TERM");
        assert_eq!(self.wait_for_exit(), Some(0));
        let mut lines = self.seen.take();
        lines.extend(self.remaining_lines());
        lines
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Waits for the process to exit; returns its exit code.
    pub(crate) fn wait_for_exit(&mut self) -> Option<i32> {
        eventually("the worker exits", || self.child.try_wait().unwrap()).code()
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Polls until `look` returns something.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "timed out waiting until {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

impl TestEnv {
    /// Enqueues a built-in job that retries quickly; returns its id.
    pub(crate) fn enqueue_builtin(&self, name: &str, payload: &Value, flags: &[&str]) -> String {
        let (name, payload) = (format!("orchestrix.{name}"), payload.to_string());
        self.enqueue(&[&[&name, "--payload", &payload, "--retry-base", "10ms"], flags].concat()).to_string()
    }

    pub(crate) fn job(&self, id: &str) -> Value {
        self.json(&["jobs", "get", id])
    }

    /// Waits until a job is in this state; returns the whole job.
    #[track_caller]
    pub(crate) fn wait_for_state(&self, id: &str, state: &str) -> Value {
        let mut last = Value::Null;
        let deadline = Instant::now() + TIMEOUT;
        while Instant::now() < deadline {
            last = self.job(id);
            if last["state"] == state {
                return last;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("not {state}: {last:#}");
    }

    /// Waits for a job to die in its first attempt; returns the attempt's error.
    #[track_caller]
    pub(crate) fn wait_for_fatal_error(&self, id: &str) -> String {
        let job = self.wait_for_state(id, "dead");
        assert_eq!(job["attempts"].as_array().unwrap().len(), 1, "{job:#}");
        job["attempts"][0]["error"].as_str().unwrap().to_owned()
    }
}

#[test]
fn a_signal_ends_an_idle_worker_with_exit_code_0() {
    for env in each_database() {
        for signal in ["TERM", "INT"] {
            let mut worker = WorkerProcess::start(&env, &[]);
            worker.signal(signal);
            assert_eq!(worker.wait_for_exit(), Some(0));
        }
    }
}

#[test]
fn the_startup_line_names_the_worker_and_hides_the_password() {
    let database = TestDatabase::create("worker").unwrap();
    let mut url = database.url().to_owned();
    let at = url.find('@').unwrap();
    if !url[..at]["postgres://".len()..].contains(':') {
        url.insert_str(at, ":hunter2");
    }
    let env = TestEnv::sqlite();
    let flags = ["--database", &url, "--worker-name", "w1", "--queues", "email=3,reports", "--concurrency", "4"];
    let worker = WorkerProcess::start(&env, &flags);
    let startup_line = &worker.startup_line;
    assert!(!startup_line.contains("hunter2"), "{startup_line}");
    for text in ["worker w1 on PostgreSQL", "queues email=3, reports;", "orchestrix.http", "concurrency 4"] {
        assert!(startup_line.contains(text), "{startup_line}");
    }
    let listed = eventually("the worker is listed", || {
        let listed = CliOutput::run(&mut orchestrix(&["workers", "list", "--output", "json", "--database", &url]))
            .success()
            .json();
        listed["items"].get(0).cloned()
    });
    assert_eq!((&listed["workerId"], &listed["concurrency"]), (&json!("w1"), &json!(4)), "{listed:#}");
}

#[test]
fn settings_come_from_the_environment_and_invalid_ones_are_usage_errors() {
    let env = TestEnv::sqlite();
    for (flags, text) in [
        (&["--concurrency", "0"][..], "concurrency"),
        (&["--queues", "a b"], "A-Z a-z 0-9"),
        (&["--queues", "a=0"], "weight"),
        (&["--queues", "*,a"], "*"),
        (&["--poll-interval", "0s"], "pollInterval"),
        (&["--dead-node-timeout", "1s"], "deadNodeTimeout"),
        (&["--leader-term", "1ms"], "leaderTerm"),
        (&["--worker-name", "a b"], "workerId"),
        (&["--database", "memory:"], "memory:"),
    ] {
        env.run(&[&["worker"], flags].concat()).exits_with(2, text);
    }
    let mut command = env.command(&["worker"]);
    CliOutput::run(command.env("ORCHESTRIX_QUEUES", "a,b=0")).exits_with(2, "weight");
    CliOutput::run(env.command(&["worker"]).env("ORCHESTRIX_CONCURRENCY", "0")).exits_with(2, "concurrency");
}

#[test]
fn a_worker_serves_only_its_queues() {
    let env = TestEnv::sqlite();
    let (theirs, ours) =
        (env.enqueue_builtin("noop", &json!(null), &[]), env.enqueue_builtin("noop", &json!(null), &["--queue", "q"]));
    let mut worker = WorkerProcess::start(&env, &["--queues", "q"]);
    env.wait_for_state(&ours, "completed");
    worker.signal("TERM");
    assert_eq!(worker.wait_for_exit(), Some(0));
    assert_eq!(env.job(&theirs)["state"], "pending");
}

#[test]
fn a_drain_finishes_short_jobs_and_releases_long_ones() {
    on_each_database(|env| {
        let (go, done) = (env.dir().join("go"), env.dir().join("done"));
        let script = format!("while [ ! -e {} ]; do sleep 0.02; done; touch {}", go.display(), done.display());
        let short = env.enqueue_builtin("command", &json!({"program": "sh", "args": ["-c", script]}), &[]);
        let long = env.enqueue_builtin("sleep", &json!({"seconds": 600}), &[]);
        let mut worker =
            WorkerProcess::start(&env, &["--allow-command", "sh", "--drain-timeout", "2s", "--log", "info"]);
        env.wait_for_state(&short, "running");
        env.wait_for_state(&long, "running");
        worker.signal("TERM");
        worker.wait_for_line("shutting down");
        fs::write(go, "").unwrap();
        assert_eq!(worker.wait_for_exit(), Some(0));
        assert!(done.exists());
        assert_eq!(env.job(&short)["state"], "completed");
        let long = env.job(&long);
        assert_eq!((&long["state"], &long["attemptsUsed"]), (&json!("pending"), &json!(0)), "{long:#}");
    });
}

#[test]
fn a_second_signal_ends_the_worker_at_once_with_exit_code_1() {
    for env in each_database() {
        let id = env.enqueue_builtin("sleep", &json!({"seconds": 600}), &[]);
        let mut worker = WorkerProcess::start(&env, &["--drain-timeout", "10m", "--log", "info"]);
        env.wait_for_state(&id, "running");
        worker.signal("TERM");
        worker.wait_for_line("shutting down");
        let began = Instant::now();
        worker.signal("INT");
        assert_eq!(worker.wait_for_exit(), Some(1));
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }
}

#[test]
fn server_and_database_exclude_each_other() {
    let env = TestEnv::sqlite();
    let text = "--server";
    env.run(&["worker", "--server", "http://127.0.0.1:1"]).exits_with(2, text);
    let over =
        |flags: &[&str]| CliOutput::run(&mut orchestrix(&[&["worker", "--connect-timeout", "10ms"], flags].concat()));
    for server in ["nowhere", "ftp://h", "http://me:hunter2@h", "postgres://h/db"] {
        let ran = over(&["--server", server]).exits_with(2, "server: ");
        assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
    }
    over(&["--server", "http://127.0.0.1:1", "--api-key", "a\nb"]).exits_with(2, "apiKey: ");
    // No process listens on port 1.
    let ran = over(&["--server", "http://127.0.0.1:1", "--api-key", "hunter2"]).exits_with(5, "http://127.0.0.1:1");
    assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_remote_worker_runs_jobs_and_drains_on_a_signal() {
    for env in each_database() {
        let app = App::new(env.store().await, ServerOptions::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let serving = tokio::spawn(serve(app, listener, std::future::pending()));
        let worked = tokio::task::spawn_blocking(move || {
            let ids = [json!({"a": 1}), json!([2])].map(|payload| env.enqueue_builtin("echo", &payload, &[]));
            let mut worker = WorkerProcess::start_over_server(&server, &["--worker-name", "w1"]);
            assert!(worker.startup_line.contains(&format!("worker w1 on {server}")), "{}", worker.startup_line);
            let done = ids.map(|id| env.wait_for_state(&id, "completed"));
            worker.signal("TERM");
            let begun = Instant::now();
            assert_eq!(worker.wait_for_exit(), Some(0));
            // Its long poll for more jobs does not delay the exit.
            assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
            done.map(|job| job["result"].clone())
        });
        assert_eq!(worked.await.unwrap(), [json!({"a": 1}), json!([2])]);
        serving.abort();
    }
}
