//! `waits`: the memory of many concurrent long polls.

use std::{
    io::ErrorKind,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use orchestrix_store::{PageRequest, Store};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use super::{CONNECTIONS, FilledServer, server::allow_connections, workloads::JobReads};
use crate::{
    arguments::Request, backend, backend::Backend, figure::Figure, postgres::Server, progress::Progress, report::Row,
};

/// Open long polls: one half waits for a status change, the other for jobs.
const WAITS: usize = 5_000;
/// How long they wait, and for how long memory is sampled once all wait.
const WAIT: Duration = Duration::from_secs(60);
const OBSERVED: Duration = Duration::from_secs(10);
const SAMPLE_INTERVAL: Duration = Duration::from_millis(250);
/// Queues that workers wait for.
const QUEUES: usize = 100;

/// Opens many long polls and samples the server's memory while they wait.
pub(crate) async fn waits(host: &Server, request: &Request, progress: &Progress) -> Result<Row> {
    let (name, count) = (Figure::Waits.name(), request.scale.of(WAITS));
    allow_connections(WAITS)?;
    progress.step(format!("{name}, enqueueing jobs"));
    let get = JobReads::new(CONNECTIONS, request.scale)?;
    let filled = FilledServer::prepare(host, &get).await?;
    let store = backend::open(&filled.database.url).await?;
    let ids = std::fs::read_to_string(get.ids()?)?;
    let alone = filled.server.resident()?;

    progress.step(format!("{name}, opening {count}"));
    let begun = Instant::now();
    let mut streams = Vec::with_capacity(count);
    for (n, id) in ids.lines().cycle().take(count).enumerate() {
        let mut stream = TcpStream::connect(filled.server.address()).await?;
        stream.write_all(long_poll_request(n, id).as_bytes()).await?;
        streams.push(stream);
    }
    // A worker is registered once its request is in progress; reads of jobs are cheaper.
    while registered_workers(&*store).await? < count / 2 {
        ensure!(begun.elapsed() < WAIT / 2, "workers are not registered in time");
        tokio::time::sleep(SAMPLE_INTERVAL).await;
    }
    progress.step(format!("{name}, observing"));
    let (opened, mut most) = (begun.elapsed(), 0);
    let watched = Instant::now();
    while watched.elapsed() < OBSERVED {
        most = most.max(filled.server.resident()?);
        tokio::time::sleep(SAMPLE_INTERVAL).await;
    }
    ensure!(begun.elapsed() < WAIT, "it took too long: the first long polls have ended");
    for stream in &streams {
        let answered = stream.try_read(&mut [0]);
        ensure!(
            answered.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock),
            "a long poll has ended: {answered:?}"
        );
    }
    drop((streams, store));
    filled.tear_down(host).await?;
    let each = (most.saturating_sub(alone)) as f64 / count as f64 / 1024.0;
    let megabytes = |bytes: u64| bytes as f64 / 1024.0 / 1024.0;
    let shown = format!("{:.1} MB, {:.1} without; {each:.1} KB for each", megabytes(most), megabytes(alone));
    progress.note(&format!("{name}: {count} waits, {shown}; open after {:.1} s", opened.as_secs_f64()));
    progress.done();
    Ok(Row {
        figure: name.into(),
        ours: shown,
        ..Row::with_target(Figure::Waits.target(Backend::Postgres), most as f64)
    })
}

async fn registered_workers(store: &dyn Store) -> Result<usize> {
    let mut page = PageRequest::first(1_000);
    let mut known = 0;
    loop {
        let workers = store.list_workers(&page).await.context("cannot list the workers")?;
        known += workers.items.len();
        match workers.next {
            Some(next) => page.cursor = Some(next),
            None => return Ok(known),
        }
    }
}

// The n-th request: even ones wait for a status change, odd ones for jobs.
fn long_poll_request(n: usize, id: &str) -> String {
    let seconds = WAIT.as_secs();
    if n.is_multiple_of(2) {
        return format!("GET /jobs/{id}?waitSeconds={seconds} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
    }
    let body =
        format!(r#"{{"workerId":"bench-{n}","queues":["nothing-{}"],"max":1,"waitSeconds":{seconds}}}"#, n % QUEUES);
    format!(
        "POST /worker/leases HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}
