//! Workloads of one kind of request, at full speed.

use std::{
    cell::RefCell,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use super::{
    server::HttpServer,
    wrk::{Load, LoadResult, send},
};
use crate::{arguments::Scale, backend, jobs::job, measure::Workload};

/// How long requests are sent, in seconds, and how long before the clock starts.
fn seconds(scale: Scale) -> usize {
    if scale.is_full() { 10 } else { 2 }
}
const WARM: usize = 1;

async fn start(url: &str, with_auth: bool) -> Result<HttpServer> {
    match with_auth {
        true => HttpServer::start_with_auth(url).await,
        false => HttpServer::start(url).await,
    }
}

/// `POST /jobs` or `GET /healthz`: requests that need no jobs.
#[derive(Debug)]
pub(crate) struct SimpleRequests {
    what: &'static str,
    connections: usize,
    scale: Scale,
    with_auth: bool,
    result: RefCell<LoadResult>,
}

impl SimpleRequests {
    /// `POST /jobs`.
    pub(crate) fn post(connections: usize, scale: Scale) -> Self {
        Self { what: "post", connections, scale, with_auth: false, result: RefCell::default() }
    }

    /// `GET /healthz`.
    pub(crate) fn health(connections: usize, scale: Scale) -> Self {
        Self { what: "health", ..Self::post(connections, scale) }
    }

    /// The same with authentication.
    pub(crate) fn with_key(self) -> Self {
        Self { with_auth: true, ..self }
    }

    /// The latest run in words: rejections, errors and latency.
    pub(crate) fn summary(&self) -> String {
        let result = *self.result.borrow();
        let ms = |micros: u64| micros as f64 / 1_000.0;
        format!(
            "{} accepted, {} rejected, {} connections broke, {} timed out; p50 {:.1} ms, p99 {:.1} ms",
            result.succeeded(),
            result.refused,
            result.broken,
            result.late,
            ms(result.p50_micros),
            ms(result.p99_micros)
        )
    }

    async fn send(&self, server: &HttpServer, seconds: usize) -> Result<u64> {
        let result = send(server, Load { connections: self.connections, seconds, arguments: &[self.what] }).await?;
        self.result.replace(result);
        Ok(result.succeeded())
    }
}

impl Workload for SimpleRequests {
    type Session = HttpServer;

    async fn prepare(&self, url: &str) -> Result<()> {
        drop(backend::open(url).await?);
        Ok(())
    }

    async fn open(&self, url: &str) -> Result<HttpServer> {
        start(url, self.with_auth).await
    }

    async fn warm(&self, server: &mut HttpServer) -> Result<u64> {
        self.send(server, WARM).await
    }

    async fn run(&self, server: &mut HttpServer) -> Result<u64> {
        self.send(server, seconds(self.scale)).await
    }
}

/// Jobs to read.
const JOBS: usize = 100_000;

/// `GET /jobs/{id}`, one job after the other.
#[derive(Debug)]
pub(crate) struct JobReads {
    connections: usize,
    scale: Scale,
    with_auth: bool,
    ids: PathBuf,
}

impl JobReads {
    pub(crate) fn new(connections: usize, scale: Scale) -> Result<Self> {
        let ids = std::env::temp_dir().join(format!("orchestrix-bench-{}.ids", std::process::id()));
        Ok(Self { connections, scale, with_auth: false, ids })
    }

    /// The same with authentication.
    pub(crate) fn with_key(mut self) -> Self {
        self.with_auth = true;
        self
    }

    /// The file with the ids of the enqueued jobs.
    pub(crate) fn ids(&self) -> Result<&str> {
        self.ids.to_str().context("the temporary directory has a name that is not UTF-8")
    }

    async fn send(&self, server: &HttpServer, seconds: usize) -> Result<u64> {
        let arguments = ["get", self.ids()?];
        let result = send(server, Load { connections: self.connections, seconds, arguments: &arguments }).await?;
        ensure!(result.refused == 0, "{} of {} reads failed", result.refused, result.requests);
        Ok(result.succeeded())
    }
}

impl Drop for JobReads {
    fn drop(&mut self) {
        // Best effort: the file is in the temporary directory.
        let _ = fs::remove_file(&self.ids);
    }
}

/// Enqueues jobs and writes their ids to a file, one per line.
async fn enqueue_jobs(url: &str, count: usize, ids: &Path) -> Result<()> {
    let store = backend::open(url).await?;
    let mut lines = String::new();
    for chunk in (0..count).collect::<Vec<_>>().chunks(5_000) {
        for job in store.enqueue_jobs(chunk.iter().map(|n| job(*n)).collect()).await? {
            lines.push_str(&format!("{}\n", job.id));
        }
    }
    fs::write(ids, lines).with_context(|| ids.display().to_string())
}

impl Workload for JobReads {
    type Session = HttpServer;

    async fn prepare(&self, url: &str) -> Result<()> {
        enqueue_jobs(url, self.scale.of(JOBS), &self.ids).await
    }

    async fn open(&self, url: &str) -> Result<HttpServer> {
        start(url, self.with_auth).await
    }

    async fn warm(&self, server: &mut HttpServer) -> Result<u64> {
        self.send(server, WARM).await
    }

    async fn run(&self, server: &mut HttpServer) -> Result<u64> {
        self.send(server, seconds(self.scale)).await
    }
}
