//! The Python worker of `examples/`, as a process.

use std::{path::Path, process::Stdio};

use orchestrix_core::{JobId, JobState, JobType, Json, NewJob};
use orchestrix_store::PageRequest;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStderr, ChildStdout, Command},
};

use crate::remote_worker::test_cluster::{FAST_RETRY, TIMEOUT, TestCluster, on_both_databases, wait_until};

struct Python {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    errors: Lines<BufReader<ChildStderr>>,
}

impl Python {
    async fn start(cluster: &TestCluster, flags: &[&str]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/python/worker.py");
        let mut child = Command::new("python3")
            .arg(script)
            .args(["--server", &cluster.url(), "--worker-name", "snake", "--heartbeat", "0.2"])
            .args(flags)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let errors = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut python = Self { child, lines, errors };
        python.wait_for_output("worker snake").await;
        python
    }

    async fn wait_for_output(&mut self, text: &str) {
        let found = tokio::time::timeout(TIMEOUT, async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                if line.contains(text) {
                    return true;
                }
            }
            false
        });
        assert!(found.await.unwrap_or(false), "the worker did not print {text:?}");
    }

    async fn next_error(&mut self) -> String {
        let line = tokio::time::timeout(TIMEOUT, self.errors.next_line()).await.expect("the worker prints an error");
        line.unwrap().expect("the worker is running")
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().expect("the worker is running").to_string();
        assert!(std::process::Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    async fn exit_code(&mut self) -> Option<i32> {
        tokio::time::timeout(TIMEOUT, self.child.wait()).await.expect("the worker exits").unwrap().code()
    }
}

impl TestCluster {
    async fn enqueue_example(&self, kind: &str, payload: &Value) -> JobId {
        let mut job = NewJob::new(JobType::new(format!("example.{kind}")).unwrap());
        job.payload = Json::of("payload", payload).unwrap();
        job.retry = FAST_RETRY;
        job.max_attempts = 2;
        self.store().enqueue_job(job).await.unwrap().id
    }
}

on_both_databases! {
    it_runs_jobs_and_reports_failures
    a_cancellation_stops_a_job
    sigterm_finishes_short_jobs_and_releases_the_others
    it_survives_a_restart_of_the_server
}

async fn it_runs_jobs_and_reports_failures(cluster: TestCluster) {
    let mut python = Python::start(&cluster, &[]).await;
    let mut sums = Vec::new();
    for n in 0..20 {
        sums.push(cluster.enqueue_example("add", &json!({ "a": n, "b": 1 })).await);
    }
    let fails = cluster.enqueue_example("fail", &json!({ "message": "broken" })).await;
    let fatal = cluster.enqueue_example("fail", &json!({ "message": "beyond repair", "retryable": false })).await;
    let counts = cluster.enqueue_example("count", &json!({ "n": 3, "seconds": 0.01 })).await;
    // The escaped result exceeds the size limit.
    let large = cluster.enqueue_example("add", &json!({ "a": "é".repeat(200_000), "b": "" })).await;
    for (n, id) in sums.into_iter().enumerate() {
        let job = cluster.wait_for_state(id, JobState::Completed).await;
        assert_eq!(job.result.unwrap().as_str(), (n + 1).to_string());
    }
    let job = cluster.wait_for_state(fails, JobState::Dead).await;
    let errors: Vec<_> = job.attempt_log.iter().map(|attempt| attempt.error.as_deref().unwrap()).collect();
    assert_eq!(errors, ["RuntimeError: broken"; 2]);
    let job = cluster.wait_for_state(fatal, JobState::Dead).await;
    assert_eq!((job.attempts, job.attempt_log[0].error.as_deref()), (1, Some("Fatal: beyond repair")));
    let job = cluster.wait_for_state(large, JobState::Dead).await;
    let error = job.attempt_log[0].error.as_deref().unwrap();
    assert!(job.attempts == 1 && error.contains("refused") && error.contains("413"), "{error}");
    let job = cluster.wait_for_state(counts, JobState::Completed).await;
    assert_eq!((job.result.unwrap().as_str(), job.checkpoint.unwrap().as_str()), ("3", "3"));
    assert_eq!(job.progress.unwrap().message.as_deref(), Some("3 counted"));
    let lines = cluster.store().job_logs(counts, &PageRequest::first(10)).await.unwrap().items;
    assert_eq!(lines[0].message, "counted to 3");
    let listed = cluster.store().list_workers(&PageRequest::first(10)).await.unwrap().items;
    assert_eq!(listed[0].info.job_types.as_ref().map(Vec::len), Some(3), "{listed:?}");
    python.signal("TERM");
    assert_eq!(python.exit_code().await, Some(0));
    cluster.shutdown().await;
}

async fn a_cancellation_stops_a_job(cluster: TestCluster) {
    let mut python = Python::start(&cluster, &[]).await;
    let id = cluster.enqueue_example("count", &json!({ "n": 1_000_000, "seconds": 0.05 })).await;
    wait_until("the job counts", async || cluster.job(id).await.checkpoint.is_some()).await;
    cluster.store().cancel_job(id).await.unwrap();
    cluster.wait_for_state(id, JobState::Cancelled).await;
    python.signal("INT");
    assert_eq!(python.exit_code().await, Some(0));
    cluster.shutdown().await;
}

async fn sigterm_finishes_short_jobs_and_releases_the_others(cluster: TestCluster) {
    let mut python = Python::start(&cluster, &["--drain-timeout", "4"]).await;
    let long = cluster.enqueue_example("count", &json!({ "n": 1_000_000, "seconds": 0.05 })).await;
    let short = cluster.enqueue_example("count", &json!({ "n": 10, "seconds": 0.1 })).await;
    for id in [long, short] {
        wait_until("the job counts", async || cluster.job(id).await.checkpoint.is_some()).await;
    }
    python.signal("TERM");
    assert_eq!(python.exit_code().await, Some(0));
    assert_eq!(cluster.job(short).await.state, JobState::Completed);
    let job = cluster.job(long).await;
    assert_eq!(
        (job.state, job.attempts),
        (JobState::Pending, 0),
        "the job is released and the attempt does not count: {job:?}"
    );
    assert!(cluster.store().list_workers(&PageRequest::first(10)).await.unwrap().items.is_empty(), "the worker left");
    // Another worker continues from the checkpoint.
    let done: u64 = job.checkpoint.unwrap().to().unwrap();
    let python = Python::start(&cluster, &[]).await;
    wait_until("the job continues to count", async || {
        cluster.job(long).await.checkpoint.unwrap().to::<u64>().unwrap() > done
    })
    .await;
    drop(python);
    cluster.shutdown().await;
}

async fn it_survives_a_restart_of_the_server(mut cluster: TestCluster) {
    let mut python = Python::start(&cluster, &[]).await;
    let id = cluster.enqueue_example("count", &json!({ "n": 20, "seconds": 0.05 })).await;
    wait_until("the job counts", async || cluster.job(id).await.checkpoint.is_some()).await;
    cluster.stop_server().await;
    assert!(python.next_error().await.contains("refused"));
    let more = cluster.enqueue_example("add", &json!({ "a": 1, "b": 1 })).await;
    cluster.start_server().await;
    let job = cluster.wait_for_state(id, JobState::Completed).await;
    assert_eq!((job.attempts, job.leases), (1, 1), "{job:?}");
    cluster.wait_for_state(more, JobState::Completed).await;
    python.signal("TERM");
    assert_eq!(python.exit_code().await, Some(0));
    cluster.shutdown().await;
}
