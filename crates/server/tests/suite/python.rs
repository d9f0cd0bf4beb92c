//! The Python worker of `examples/`, as a process.

use std::{path::Path, process::Stdio};

use orchestrix_core::{JobId, JobState, JobType, Json, NewJob};
use orchestrix_store::PageRequest;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStderr, ChildStdout, Command},
};

use crate::remote_worker::ground::{Ground, PATIENCE, SOON, on_both, until};

struct Python {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    complaints: Lines<BufReader<ChildStderr>>,
}

impl Python {
    async fn start(ground: &Ground, flags: &[&str]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/python/worker.py");
        let mut child = Command::new("python3")
            .arg(script)
            .args(["--server", &ground.url(), "--worker-name", "snake", "--heartbeat", "0.2"])
            .args(flags)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let complaints = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut python = Self { child, lines, complaints };
        python.says("worker snake").await;
        python
    }

    async fn says(&mut self, text: &str) {
        let said = tokio::time::timeout(PATIENCE, async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                if line.contains(text) {
                    return true;
                }
            }
            false
        });
        assert!(said.await.unwrap_or(false), "it did not say {text:?}");
    }

    async fn complains(&mut self) -> String {
        let line = tokio::time::timeout(PATIENCE, self.complaints.next_line()).await.expect("it complains");
        line.unwrap().expect("it runs")
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().expect("it runs").to_string();
        assert!(std::process::Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    async fn ended(&mut self) -> Option<i32> {
        tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("it ends").unwrap().code()
    }
}

impl Ground {
    async fn example(&self, kind: &str, payload: &Value) -> JobId {
        let mut job = NewJob::new(JobType::new(format!("example.{kind}")).unwrap());
        job.payload = Json::of("payload", payload).unwrap();
        job.retry = SOON;
        job.max_attempts = 2;
        self.store().enqueue_job(job).await.unwrap().id
    }
}

on_both! {
    it_does_jobs_and_tells_how_they_failed
    a_cancel_stops_a_job
    a_signal_lets_jobs_finish_and_hands_back_the_rest
    it_outlives_its_server
}

async fn it_does_jobs_and_tells_how_they_failed(ground: Ground) {
    let mut python = Python::start(&ground, &[]).await;
    let mut sums = Vec::new();
    for n in 0..20 {
        sums.push(ground.example("add", &json!({ "a": n, "b": 1 })).await);
    }
    let fails = ground.example("fail", &json!({ "message": "broken" })).await;
    let fatal = ground.example("fail", &json!({ "message": "beyond repair", "retryable": false })).await;
    let counts = ground.example("count", &json!({ "n": 3, "seconds": 0.01 })).await;
    // What it returns is written with escapes, and so larger than a result may be.
    let large = ground.example("add", &json!({ "a": "é".repeat(200_000), "b": "" })).await;
    for (n, id) in sums.into_iter().enumerate() {
        let job = ground.reaches(id, JobState::Completed).await;
        assert_eq!(job.result.unwrap().as_str(), (n + 1).to_string());
    }
    let job = ground.reaches(fails, JobState::Dead).await;
    let errors: Vec<_> = job.attempt_log.iter().map(|attempt| attempt.error.as_deref().unwrap()).collect();
    assert_eq!(errors, ["RuntimeError: broken"; 2]);
    let job = ground.reaches(fatal, JobState::Dead).await;
    assert_eq!((job.attempts, job.attempt_log[0].error.as_deref()), (1, Some("Fatal: beyond repair")));
    let job = ground.reaches(large, JobState::Dead).await;
    let error = job.attempt_log[0].error.as_deref().unwrap();
    assert!(job.attempts == 1 && error.contains("refused") && error.contains("413"), "{error}");
    let job = ground.reaches(counts, JobState::Completed).await;
    assert_eq!((job.result.unwrap().as_str(), job.checkpoint.unwrap().as_str()), ("3", "3"));
    assert_eq!(job.progress.unwrap().message.as_deref(), Some("3 counted"));
    let lines = ground.store().job_logs(counts, &PageRequest::first(10)).await.unwrap().items;
    assert_eq!(lines[0].message, "counted to 3");
    let listed = ground.store().list_workers(&PageRequest::first(10)).await.unwrap().items;
    assert_eq!(listed[0].info.job_types.as_ref().map(Vec::len), Some(3), "{listed:?}");
    python.signal("TERM");
    assert_eq!(python.ended().await, Some(0));
    ground.end().await;
}

async fn a_cancel_stops_a_job(ground: Ground) {
    let mut python = Python::start(&ground, &[]).await;
    let id = ground.example("count", &json!({ "n": 1_000_000, "seconds": 0.05 })).await;
    until("it counts", async || ground.job(id).await.checkpoint.is_some()).await;
    ground.store().cancel_job(id).await.unwrap();
    ground.reaches(id, JobState::Cancelled).await;
    python.signal("INT");
    assert_eq!(python.ended().await, Some(0));
    ground.end().await;
}

async fn a_signal_lets_jobs_finish_and_hands_back_the_rest(ground: Ground) {
    let mut python = Python::start(&ground, &["--drain-timeout", "4"]).await;
    let long = ground.example("count", &json!({ "n": 1_000_000, "seconds": 0.05 })).await;
    let short = ground.example("count", &json!({ "n": 10, "seconds": 0.1 })).await;
    for id in [long, short] {
        until("it counts", async || ground.job(id).await.checkpoint.is_some()).await;
    }
    python.signal("TERM");
    assert_eq!(python.ended().await, Some(0));
    assert_eq!(ground.job(short).await.state, JobState::Completed);
    let job = ground.job(long).await;
    assert_eq!((job.state, job.attempts), (JobState::Pending, 0), "handed back at no cost: {job:?}");
    assert!(ground.store().list_workers(&PageRequest::first(10)).await.unwrap().items.is_empty(), "it took leave");
    // Another goes on where it stopped.
    let done: u64 = job.checkpoint.unwrap().to().unwrap();
    let python = Python::start(&ground, &[]).await;
    until("it counts on", async || ground.job(long).await.checkpoint.unwrap().to::<u64>().unwrap() > done).await;
    drop(python);
    ground.end().await;
}

async fn it_outlives_its_server(mut ground: Ground) {
    let mut python = Python::start(&ground, &[]).await;
    let id = ground.example("count", &json!({ "n": 20, "seconds": 0.05 })).await;
    until("it counts", async || ground.job(id).await.checkpoint.is_some()).await;
    ground.stop().await;
    assert!(python.complains().await.contains("refused"));
    let more = ground.example("add", &json!({ "a": 1, "b": 1 })).await;
    ground.serve().await;
    let job = ground.reaches(id, JobState::Completed).await;
    assert_eq!((job.attempts, job.leases), (1, 1), "{job:?}");
    ground.reaches(more, JobState::Completed).await;
    python.signal("TERM");
    assert_eq!(python.ended().await, Some(0));
    ground.end().await;
}
