//! Requests of one kind, as fast as they are answered.

use std::{
    cell::RefCell,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use super::{
    server::HttpServer,
    wrk::{Load, Told, send},
};
use crate::{arguments::Scale, backend, jobs::job, measure::Side};

/// How long requests are sent, and how long before the clock starts, in seconds.
fn seconds(scale: Scale) -> usize {
    if scale.is_full() { 10 } else { 2 }
}
const WARM: usize = 1;

async fn start(url: &str, keyed: bool) -> Result<HttpServer> {
    match keyed {
        true => HttpServer::start_keyed(url).await,
        false => HttpServer::start(url).await,
    }
}

/// `POST /jobs`, or something that needs no jobs either.
#[derive(Debug)]
pub(crate) struct Plain {
    what: &'static str,
    connections: usize,
    scale: Scale,
    keyed: bool,
    told: RefCell<Told>,
}

impl Plain {
    /// `POST /jobs`.
    pub(crate) fn post(connections: usize, scale: Scale) -> Self {
        Self { what: "post", connections, scale, keyed: false, told: RefCell::default() }
    }

    /// `GET /healthz`.
    pub(crate) fn health(connections: usize, scale: Scale) -> Self {
        Self { what: "health", ..Self::post(connections, scale) }
    }

    /// The same by whoever shows a key.
    pub(crate) fn with_key(self) -> Self {
        Self { keyed: true, ..self }
    }

    /// What the latest run saw besides jobs.
    pub(crate) fn what_else(&self) -> String {
        let told = *self.told.borrow();
        let ms = |micros: u64| micros as f64 / 1_000.0;
        format!(
            "{} accepted, {} turned away, {} connections broke, {} answers late; p50 {:.1} ms, p99 {:.1} ms",
            told.good(),
            told.refused,
            told.broken,
            told.late,
            ms(told.p50_micros),
            ms(told.p99_micros)
        )
    }

    async fn send(&self, server: &HttpServer, seconds: usize) -> Result<u64> {
        let told = send(server, Load { connections: self.connections, seconds, arguments: &[self.what] }).await?;
        self.told.replace(told);
        Ok(told.good())
    }
}

impl Side for Plain {
    type Session = HttpServer;

    async fn prepare(&self, url: &str) -> Result<()> {
        drop(backend::open(url).await?);
        Ok(())
    }

    async fn open(&self, url: &str) -> Result<HttpServer> {
        start(url, self.keyed).await
    }

    async fn warm(&self, server: &mut HttpServer) -> Result<u64> {
        self.send(server, WARM).await
    }

    async fn run(&self, server: &mut HttpServer) -> Result<u64> {
        self.send(server, seconds(self.scale)).await
    }
}

/// Jobs that are looked at.
const JOBS: usize = 100_000;

/// `GET /jobs/{id}`, of one job after the other.
#[derive(Debug)]
pub(crate) struct Get {
    connections: usize,
    scale: Scale,
    keyed: bool,
    ids: PathBuf,
}

impl Get {
    pub(crate) fn new(connections: usize, scale: Scale) -> Result<Self> {
        let ids = std::env::temp_dir().join(format!("orchestrix-bench-{}.ids", std::process::id()));
        Ok(Self { connections, scale, keyed: false, ids })
    }

    /// The same by whoever shows a key.
    pub(crate) fn with_key(mut self) -> Self {
        self.keyed = true;
        self
    }

    /// The file that holds the ids of the jobs, once they have been recorded.
    pub(crate) fn ids(&self) -> Result<&str> {
        self.ids.to_str().context("the directory for temporary files has a name that is not UTF-8")
    }

    async fn send(&self, server: &HttpServer, seconds: usize) -> Result<u64> {
        let arguments = ["get", self.ids()?];
        let told = send(server, Load { connections: self.connections, seconds, arguments: &arguments }).await?;
        ensure!(told.refused == 0, "{} of {} looks found nothing", told.refused, told.requests);
        Ok(told.good())
    }
}

impl Drop for Get {
    fn drop(&mut self) {
        // Whatever is left is in the directory for temporary files.
        let _ = fs::remove_file(&self.ids);
    }
}

/// Records jobs; their ids go into a file, one a line.
async fn record(url: &str, count: usize, ids: &Path) -> Result<()> {
    let store = backend::open(url).await?;
    let mut lines = String::new();
    for chunk in (0..count).collect::<Vec<_>>().chunks(5_000) {
        for job in store.enqueue_jobs(chunk.iter().map(|n| job(*n)).collect()).await? {
            lines.push_str(&format!("{}\n", job.id));
        }
    }
    fs::write(ids, lines).with_context(|| ids.display().to_string())
}

impl Side for Get {
    type Session = HttpServer;

    async fn prepare(&self, url: &str) -> Result<()> {
        record(url, self.scale.of(JOBS), &self.ids).await
    }

    async fn open(&self, url: &str) -> Result<HttpServer> {
        start(url, self.keyed).await
    }

    async fn warm(&self, server: &mut HttpServer) -> Result<u64> {
        self.send(server, WARM).await
    }

    async fn run(&self, server: &mut HttpServer) -> Result<u64> {
        self.send(server, seconds(self.scale)).await
    }
}
