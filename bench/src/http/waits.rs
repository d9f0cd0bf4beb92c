//! `waits`: what very many long polls cost that wait at the same time.

use std::{
    io::ErrorKind,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use orchestrix_store::{PageRequest, Store};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use super::{CONNECTIONS, Ground, server::allow_connections, sides::Get};
use crate::{
    arguments::Request, backend, backend::Backend, figure::Figure, postgres::Server, progress::Progress, report::Row,
};

/// Long polls that are open, one half for a job to change and the other for jobs to come.
const WAITS: usize = 5_000;
/// How long they wait, and for how long of that memory is looked at once all of them do.
const WAIT: Duration = Duration::from_secs(60);
const WATCHED: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(250);
/// Queues that workers wait for.
const QUEUES: usize = 100;

/// Opens very many long polls and looks at the server's memory while they wait.
pub(crate) async fn waits(place: &Server, request: &Request, progress: &Progress) -> Result<Row> {
    let (name, count) = (Figure::Waits.name(), request.scale.of(WAITS));
    allow_connections(WAITS)?;
    progress.step(format!("{name}, recording jobs"));
    let get = Get::new(CONNECTIONS, request.scale)?;
    let ground = Ground::prepare(place, &get).await?;
    let store = backend::open(&ground.database.url).await?;
    let ids = std::fs::read_to_string(get.ids()?)?;
    let alone = ground.server.resident()?;

    progress.step(format!("{name}, opening {count}"));
    let begun = Instant::now();
    let mut streams = Vec::with_capacity(count);
    for (n, id) in ids.lines().cycle().take(count).enumerate() {
        let mut stream = TcpStream::connect(ground.server.address()).await?;
        stream.write_all(ask(n, id).as_bytes()).await?;
        streams.push(stream);
    }
    // Workers are known to the store once they are worked on; what looks at jobs does less.
    while known(&*store).await? < count / 2 {
        ensure!(begun.elapsed() < WAIT / 2, "workers are not known in time");
        tokio::time::sleep(LOOK).await;
    }
    progress.step(format!("{name}, watching"));
    let (opened, mut most) = (begun.elapsed(), 0);
    let watched = Instant::now();
    while watched.elapsed() < WATCHED {
        most = most.max(ground.server.resident()?);
        tokio::time::sleep(LOOK).await;
    }
    ensure!(begun.elapsed() < WAIT, "it took too long: the first waits are over");
    for stream in &streams {
        let answered = stream.try_read(&mut [0]);
        ensure!(
            answered.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock),
            "one does not wait any more: {answered:?}"
        );
    }
    drop((streams, store));
    ground.clear(place).await?;
    let each = (most.saturating_sub(alone)) as f64 / count as f64 / 1024.0;
    let megabytes = |bytes: u64| bytes as f64 / 1024.0 / 1024.0;
    let shown = format!("{:.1} MB, {:.1} without; {each:.1} KB for each", megabytes(most), megabytes(alone));
    progress.note(&format!("{name}: {count} waits, {shown}; open after {:.1} s", opened.as_secs_f64()));
    progress.done();
    Ok(Row { figure: name.into(), ours: shown, ..Row::judged(Figure::Waits.target(Backend::Postgres), most as f64) })
}

async fn known(store: &dyn Store) -> Result<usize> {
    let mut page = PageRequest::first(1_000);
    let mut known = 0;
    loop {
        let workers = store.list_workers(&page).await.context("the workers")?;
        known += workers.items.len();
        match workers.next {
            Some(next) => page.cursor = Some(next),
            None => return Ok(known),
        }
    }
}

// The n-th request: every other one looks at a job, the others are workers.
fn ask(n: usize, id: &str) -> String {
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
