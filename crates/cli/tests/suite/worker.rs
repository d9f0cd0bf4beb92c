//! A worker as a process: how it begins and how it ends.

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

use crate::support::{Place, Ran, bare, places};

/// No test waits longer for anything.
const LIMIT: Duration = Duration::from_secs(60);

/// A worker that runs; killed when dropped.
pub(crate) struct Running {
    child: Child,
    hello: String,
    said: Receiver<String>,
    heard: RefCell<Vec<String>>,
}

impl Running {
    /// Starts a worker that looks for jobs often, and waits until it says that it runs.
    pub(crate) fn start(place: &Place, flags: &[&str]) -> Self {
        Self::of(place.command(&[&["worker", "--poll-interval", "20ms"], flags].concat()))
    }

    /// Starts a worker over a server, and waits until it says that it runs.
    pub(crate) fn over(server: &str, flags: &[&str]) -> Self {
        Self::of(bare(&[&["worker", "--server", server], flags].concat()))
    }

    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (tell, said) = mpsc::channel();
        thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| tell.send(line)));
        let mut running = Self { child, hello: String::new(), said, heard: RefCell::default() };
        running.hello = running.says("worker ");
        running
    }

    /// Waits for a line that holds `text`.
    pub(crate) fn says(&self, text: &str) -> String {
        let deadline = Instant::now() + LIMIT;
        loop {
            let line = self.said.recv_timeout(deadline.saturating_duration_since(Instant::now()));
            match line {
                Ok(line) => {
                    self.heard.borrow_mut().push(line.clone());
                    if line.contains(text) {
                        return line;
                    }
                }
                Err(error) => panic!("the worker did not say {text:?}: {error}"),
            }
        }
    }

    /// What it has said and nobody has read yet; after its end, all of it.
    pub(crate) fn unread(&self) -> Vec<String> {
        self.said.iter().collect()
    }

    /// Ends it, and gives all that it said.
    pub(crate) fn last_words(mut self) -> Vec<String> {
        self.signal("TERM");
        assert_eq!(self.ended(), Some(0));
        let mut lines = self.heard.take();
        lines.extend(self.unread());
        lines
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Waits for its end; the exit code.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        eventually("the worker ends", || self.child.try_wait().unwrap()).code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Looks again and again until there is something.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "in vain: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

impl Place {
    /// Records a built-in job; its id.
    pub(crate) fn builtin(&self, name: &str, payload: &Value, flags: &[&str]) -> String {
        let (name, payload) = (format!("orchestrix.{name}"), payload.to_string());
        self.enqueue(&[&[&name, "--payload", &payload, "--retry-base", "10ms"], flags].concat()).to_string()
    }

    pub(crate) fn job(&self, id: &str) -> Value {
        self.json(&["jobs", "get", id])
    }

    /// Waits until a job is in this state; all of it.
    #[track_caller]
    pub(crate) fn reaches(&self, id: &str, state: &str) -> Value {
        let mut last = Value::Null;
        let deadline = Instant::now() + LIMIT;
        while Instant::now() < deadline {
            last = self.job(id);
            if last["state"] == state {
                return last;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("not {state}: {last:#}");
    }

    /// Waits for a job to die in its first attempt of several; why it did.
    #[track_caller]
    pub(crate) fn dies_at_once(&self, id: &str) -> String {
        let job = self.reaches(id, "dead");
        assert_eq!(job["attempts"].as_array().unwrap().len(), 1, "{job:#}");
        job["attempts"][0]["error"].as_str().unwrap().to_owned()
    }
}

#[test]
fn a_signal_ends_an_idle_worker_with_zero() {
    for place in places() {
        for signal in ["TERM", "INT"] {
            let mut worker = Running::start(&place, &[]);
            worker.signal(signal);
            assert_eq!(worker.ended(), Some(0));
        }
    }
}

#[test]
fn it_says_who_it_is_and_hides_the_password() {
    let database = TestDatabase::create("worker").unwrap();
    let mut url = database.url().to_owned();
    let at = url.find('@').unwrap();
    if !url[..at]["postgres://".len()..].contains(':') {
        url.insert_str(at, ":hunter2");
    }
    let place = Place::sqlite();
    let flags = ["--database", &url, "--worker-name", "w1", "--queues", "email=3,reports", "--concurrency", "4"];
    let worker = Running::start(&place, &flags);
    let hello = &worker.hello;
    assert!(!hello.contains("hunter2"), "{hello}");
    for text in ["worker w1 on PostgreSQL at ", "queues email=3, reports;", "orchestrix.http", "concurrency 4"] {
        assert!(hello.contains(text), "{hello}");
    }
    let listed = eventually("it is listed", || {
        let listed = Ran::of(&mut bare(&["workers", "list", "--output", "json", "--database", &url])).done().json();
        listed["items"].get(0).cloned()
    });
    assert_eq!((&listed["workerId"], &listed["concurrency"]), (&json!("w1"), &json!(4)), "{listed:#}");
}

#[test]
fn settings_may_stand_in_the_environment_and_bad_ones_are_usage_errors() {
    let place = Place::sqlite();
    for (flags, text) in [
        (&["--concurrency", "0"][..], "concurrency"),
        (&["--queues", "a b"], "A-Z a-z 0-9"),
        (&["--queues", "a=0"], "weights must be"),
        (&["--queues", "*,a"], "stands alone"),
        (&["--poll-interval", "0s"], "pollInterval"),
        (&["--dead-node-timeout", "1s"], "deadNodeTimeout"),
        (&["--leader-term", "1ms"], "leaderTerm"),
        (&["--worker-name", "a b"], "visible characters"),
        (&["--database", "memory:"], "ends with the process"),
    ] {
        place.run(&[&["worker"], flags].concat()).ended(2, text);
    }
    let mut command = place.command(&["worker"]);
    Ran::of(command.env("ORCHESTRIX_QUEUES", "a,b=0")).ended(2, "weights must be");
    Ran::of(place.command(&["worker"]).env("ORCHESTRIX_CONCURRENCY", "0")).ended(2, "concurrency");
}

#[test]
fn only_the_named_queues_are_served() {
    let place = Place::sqlite();
    let (theirs, ours) =
        (place.builtin("noop", &json!(null), &[]), place.builtin("noop", &json!(null), &["--queue", "q"]));
    let mut worker = Running::start(&place, &["--queues", "q"]);
    place.reaches(&ours, "completed");
    worker.signal("TERM");
    assert_eq!(worker.ended(), Some(0));
    assert_eq!(place.job(&theirs)["state"], "pending");
}

#[test]
fn a_drain_lets_a_job_finish_and_hands_back_what_takes_too_long() {
    for place in places() {
        let (go, done) = (place.folder().join("go"), place.folder().join("done"));
        let script = format!("while [ ! -e {} ]; do sleep 0.02; done; touch {}", go.display(), done.display());
        let short = place.builtin("command", &json!({"program": "sh", "args": ["-c", script]}), &[]);
        let long = place.builtin("sleep", &json!({"seconds": 600}), &[]);
        let mut worker = Running::start(&place, &["--allow-command", "sh", "--drain-timeout", "4s", "--log", "info"]);
        place.reaches(&short, "running");
        place.reaches(&long, "running");
        worker.signal("TERM");
        worker.says("shutting down");
        fs::write(go, "").unwrap();
        assert_eq!(worker.ended(), Some(0));
        assert!(done.exists());
        assert_eq!(place.job(&short)["state"], "completed");
        let long = place.job(&long);
        assert_eq!((&long["state"], &long["attemptsUsed"]), (&json!("pending"), &json!(0)), "{long:#}");
    }
}

#[test]
fn a_second_signal_ends_it_at_once_with_one() {
    for place in places() {
        let id = place.builtin("sleep", &json!({"seconds": 600}), &[]);
        let mut worker = Running::start(&place, &["--drain-timeout", "10m", "--log", "info"]);
        place.reaches(&id, "running");
        worker.signal("TERM");
        worker.says("shutting down");
        let began = Instant::now();
        worker.signal("INT");
        assert_eq!(worker.ended(), Some(1));
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }
}

#[test]
fn a_server_takes_the_place_of_a_database() {
    let place = Place::sqlite();
    let text = "exclude each other";
    place.run(&["worker", "--server", "http://127.0.0.1:1"]).ended(2, text);
    let over = |flags: &[&str]| Ran::of(&mut bare(&[&["worker", "--connect-timeout", "10ms"], flags].concat()));
    for server in ["nowhere", "ftp://h", "http://me:hunter2@h", "postgres://h/db"] {
        let ran = over(&["--server", server]).ended(2, "server: ");
        assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
    }
    over(&["--server", "http://127.0.0.1:1", "--api-key", "a\nb"]).ended(2, "apiKey: ");
    // Nobody listens on the first port.
    let ran = over(&["--server", "http://127.0.0.1:1", "--api-key", "hunter2"]).ended(5, "is not there");
    assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_over_a_server_does_its_jobs_and_ends_at_a_signal() {
    for place in places() {
        let app = App::new(place.store().await, ServerOptions::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let serving = tokio::spawn(serve(app, listener, std::future::pending()));
        let worked = tokio::task::spawn_blocking(move || {
            let ids = [json!({"a": 1}), json!([2])].map(|payload| place.builtin("echo", &payload, &[]));
            let mut worker = Running::over(&server, &["--worker-name", "w1"]);
            assert!(worker.hello.contains(&format!("worker w1 on {server}")), "{}", worker.hello);
            let done = ids.map(|id| place.reaches(&id, "completed"));
            worker.signal("TERM");
            let begun = Instant::now();
            assert_eq!(worker.ended(), Some(0));
            // Not held up by the request with which it waits for more.
            assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
            done.map(|job| job["result"].clone())
        });
        assert_eq!(worked.await.unwrap(), [json!({"a": 1}), json!([2])]);
        serving.abort();
    }
}
