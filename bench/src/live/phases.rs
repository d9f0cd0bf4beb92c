//! The measurements on one database, one after the other.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use jiff::Timestamp;
use orchestrix_core::JobId;
use orchestrix_store::{ChangesQuery, Store, changes::MAX_CHANGES};
use serde_json::json;

use super::{
    Request,
    ledger::{EventLedger, SubscriberKind},
    load::{Load, queue},
    subscribers::{self, Tasks},
    table::{Table, TableRow},
    worker::Worker,
};
use crate::{
    backend::{self, Backend},
    http::HttpServer,
    measure::DatabaseHost,
    postgres::set_autovacuum,
    progress::Progress,
};

/// Steps of the progress bar.
pub(super) const STEPS: usize = 4;
/// How long to wait for the last ends after the last job was enqueued.
const TIMEOUT: Duration = Duration::from_secs(30);
/// One in this many jobs is followed by server-sent events.
const EVENTS: usize = 10;
/// Queues of the measured load, and of the load for many connections.
const QUEUES: usize = 4;
const MANY_QUEUES: usize = 100;
/// The load for many connections: half of them receive three events per job.
const CROWD: Load = Load { rate: 40, seconds: 20, queues: MANY_QUEUES };
/// How often memory and the store are sampled.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);
/// Jobs that end in one transaction of the burst.
const JOBS_PER_TRANSACTION: usize = 10_000;

/// Runs all measurements.
pub(super) async fn all<P: DatabaseHost>(
    host: &P,
    request: &Request,
    table: &mut Table<'_>,
    progress: &Progress,
) -> Result<()> {
    let name = match P::BACKEND {
        Backend::Postgres => "PostgreSQL",
        Backend::Sqlite => "SQLite",
    };
    let database = host.create_database().await?;
    let server = HttpServer::start(&database.url).await?;
    let _worker = Worker::start(&database.url)?;
    let full = Load { rate: request.rate, seconds: request.seconds, queues: QUEUES };

    progress.step(format!("{name}, warming up"));
    follow(&server, Load { seconds: 2, ..full }).await?;
    progress.done();
    progress.step(format!("{name}, {} jobs a second for {} s", full.rate, full.seconds));
    table.add_ledger(name, &*follow(&server, full).await?, progress);
    progress.done();
    progress.step(format!("{name}, {} WebSockets", request.sockets));
    table.add(peak_memory(name, &server, request).await?, progress);
    progress.done();
    if P::BACKEND == Backend::Postgres && request.burst > 0 {
        progress.step(format!("{name}, {} ends at once", request.burst));
        // Off, because its timing would be random.
        set_autovacuum(&database.url, false).await?;
        let after =
            Burst { name: format!("{name}, after {} ends at once", request.burst), count: request.burst, load: full };
        let measured = after.measure(&database.url, &server, table, progress).await;
        set_autovacuum(&database.url, true).await?;
        measured?;
    }
    progress.done();
    drop((server, _worker));
    host.drop_database(database).await
}

/// A load after many jobs have just ended.
struct Burst {
    name: String,
    count: usize,
    load: Load,
}

impl Burst {
    async fn measure(&self, url: &str, server: &HttpServer, table: &mut Table<'_>, progress: &Progress) -> Result<()> {
        for _ in 0..self.count.div_ceil(JOBS_PER_TRANSACTION) {
            backend::fill_finished(url, JOBS_PER_TRANSACTION.min(self.count)).await?;
        }
        // Waits until the last transaction is older than the window of recent changes.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let queries = tokio::spawn(recent_changes_millis(
            backend::open(url).await?,
            Duration::from_secs(self.load.seconds as u64),
        ));
        table.add_ledger(&self.name, &*follow(server, self.load).await?, progress);
        table.add(TableRow::recent_changes_millis(&self.name, &queries.await??), progress);
        Ok(())
    }
}

// Runs a load with every kind of subscriber; returns what they received.
async fn follow(server: &HttpServer, load: Load) -> Result<Arc<EventLedger>> {
    let (ledger, mut tasks, address) = (Arc::<EventLedger>::default(), Tasks::new(), server.address());
    subscribers::subscribe_broadly(&mut tasks, address, SubscriberKind::All, &json!({"all": true}), &ledger).await?;
    subscribers::subscribe_broadly(
        &mut tasks,
        address,
        SubscriberKind::ByQueue,
        &json!({"queues": [queue(0)]}),
        &ledger,
    )
    .await?;
    let ids = subscribers::subscribe_by_id(&mut tasks, address, &ledger).await?;
    let (recorded, home) = (Arc::clone(&ledger), address.to_owned());
    let sent = load
        .send(address, move |job| {
            recorded.accepted(&job.id, |kind| match kind {
                SubscriberKind::ByJob | SubscriberKind::All => true,
                SubscriberKind::ByQueue => job.queue == 0,
                SubscriberKind::Events => job.n.is_multiple_of(EVENTS),
            });
            // The receiver is gone only after an error, which is reported below.
            let _ = ids.send(job.id.clone());
            if job.n.is_multiple_of(EVENTS) {
                tokio::spawn(subscribers::follow_events(home.clone(), job.id.clone(), Arc::clone(&recorded)));
            }
        })
        .await?;
    ensure!(sent > 0, "no job was enqueued");
    let begun = Instant::now();
    while ledger.missing() > 0 && begun.elapsed() < TIMEOUT {
        subscribers::check(&mut tasks)?;
        tokio::time::sleep(SAMPLE_INTERVAL).await;
    }
    subscribers::check(&mut tasks)?;
    Ok(ledger)
}

// The server's peak memory with many subscribers.
async fn peak_memory(name: &str, server: &HttpServer, request: &Request) -> Result<TableRow> {
    let (mut tasks, alone) = (Tasks::new(), server.resident()?);
    for n in 0..request.sockets {
        let wanted = match n.is_multiple_of(2) {
            true => json!({"all": true}),
            false => json!({"queues": [queue(n % MANY_QUEUES)]}),
        };
        subscribers::subscribe_and_discard(&mut tasks, server.address(), &wanted).await?;
    }
    let load = Load { seconds: CROWD.seconds.min(request.seconds), ..CROWD };
    let sending = load.send(server.address(), |_| {});
    tokio::pin!(sending);
    let mut most = 0;
    loop {
        tokio::select! {
            sent = &mut sending => {
                sent?;
                break;
            }
            () = tokio::time::sleep(SAMPLE_INTERVAL) => most = most.max(server.resident()?),
        }
    }
    subscribers::check(&mut tasks)?;
    Ok(TableRow::memory(&format!("{name}, {} WebSockets", request.sockets), most, alone))
}

// Milliseconds that queries for recent changes take meanwhile.
async fn recent_changes_millis(store: Arc<dyn Store>, long: Duration) -> Result<Vec<f64>> {
    let begun = Instant::now();
    let mut took = Vec::new();
    while begun.elapsed() < long {
        let since = Some(Timestamp::now() - Duration::from_millis(700));
        let ids_after = Some(JobId::floor(Timestamp::now() - Duration::from_secs(60)));
        let leased = ChangesQuery::leased(MAX_CHANGES);
        let lately =
            ChangesQuery { enqueued_since: since, finished_since: since, redriven_since: since, ids_after, ..leased };
        let clock = Instant::now();
        store.recent_changes(&lately).await?;
        took.push(clock.elapsed().as_secs_f64() * 1_000.0);
        tokio::time::sleep(SAMPLE_INTERVAL).await;
    }
    took.sort_unstable_by(f64::total_cmp);
    Ok(took)
}
