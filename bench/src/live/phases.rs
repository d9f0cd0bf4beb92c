//! What is measured on one database, one after the other.

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
    followers::{self, Tasks},
    ledger::{Follower, Ledger},
    load::{Load, queue},
    table::{Line, Table},
    worker::Worker,
};
use crate::{
    backend::{self, Backend},
    http::HttpServer,
    measure::Place,
    postgres::set_autovacuum,
    progress::Progress,
};

/// Steps of the progress bar.
pub(super) const STEPS: usize = 4;
/// How long the last ends may take to be heard of, once the last job is recorded.
const PATIENCE: Duration = Duration::from_secs(30);
/// One job in so many is followed by its events.
const EVENTS: usize = 10;
/// Queues of the load that is followed, and of the one beside very many connections.
const QUEUES: usize = 4;
const MANY_QUEUES: usize = 100;
/// What is recorded while very many follow: every job is told to half of them, three times.
const CROWD: Load = Load { rate: 40, seconds: 20, queues: MANY_QUEUES };
/// How often memory is looked at, and the store.
const LOOK: Duration = Duration::from_millis(200);
/// How many jobs end in one transaction of the burst.
const AT_ONCE: usize = 10_000;

/// Measures all of it.
pub(super) async fn all<P: Place>(
    place: &P,
    request: &Request,
    table: &mut Table<'_>,
    progress: &Progress,
) -> Result<()> {
    let name = match P::BACKEND {
        Backend::Postgres => "PostgreSQL",
        Backend::Sqlite => "SQLite",
    };
    let database = place.create_database().await?;
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
    table.add(crowd(name, &server, request).await?, progress);
    progress.done();
    if P::BACKEND == Backend::Postgres && request.burst > 0 {
        progress.step(format!("{name}, {} ends at once", request.burst));
        // Nothing is promised of when it comes, so it does not.
        set_autovacuum(&database.url, false).await?;
        let after =
            Burst { name: format!("{name}, after {} ends at once", request.burst), count: request.burst, load: full };
        let measured = after.measure(&database.url, &server, table, progress).await;
        set_autovacuum(&database.url, true).await?;
        measured?;
    }
    progress.done();
    drop((server, _worker));
    place.drop_database(database).await
}

/// A load where very many jobs have just ended.
struct Burst {
    name: String,
    count: usize,
    load: Load,
}

impl Burst {
    async fn measure(&self, url: &str, server: &HttpServer, table: &mut Table<'_>, progress: &Progress) -> Result<()> {
        for _ in 0..self.count.div_ceil(AT_ONCE) {
            backend::fill_finished(url, AT_ONCE.min(self.count)).await?;
        }
        // Those of the last transaction are no longer among what ended lately.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let looks = tokio::spawn(looks(backend::open(url).await?, Duration::from_secs(self.load.seconds as u64)));
        table.add_ledger(&self.name, &*follow(server, self.load).await?, progress);
        table.add(Line::looks(&self.name, &looks.await??), progress);
        Ok(())
    }
}

// Follows a load in every way; who heard what.
async fn follow(server: &HttpServer, load: Load) -> Result<Arc<Ledger>> {
    let (ledger, mut tasks, address) = (Arc::<Ledger>::default(), Tasks::new(), server.address());
    followers::broad(&mut tasks, address, Follower::All, &json!({"all": true}), &ledger).await?;
    followers::broad(&mut tasks, address, Follower::ByQueue, &json!({"queues": [queue(0)]}), &ledger).await?;
    let ids = followers::by_job(&mut tasks, address, &ledger).await?;
    let (noted, home) = (Arc::clone(&ledger), address.to_owned());
    let sent = load
        .send(address, move |job| {
            noted.accepted(&job.id, |who| match who {
                Follower::ByJob | Follower::All => true,
                Follower::ByQueue => job.queue == 0,
                Follower::Events => job.n.is_multiple_of(EVENTS),
            });
            // Whoever takes them is gone only when something is wrong, which is seen below.
            let _ = ids.send(job.id.clone());
            if job.n.is_multiple_of(EVENTS) {
                tokio::spawn(followers::events(home.clone(), job.id.clone(), Arc::clone(&noted)));
            }
        })
        .await?;
    ensure!(sent > 0, "no job was recorded");
    let begun = Instant::now();
    while ledger.missing() > 0 && begun.elapsed() < PATIENCE {
        followers::check(&mut tasks)?;
        tokio::time::sleep(LOOK).await;
    }
    followers::check(&mut tasks)?;
    Ok(ledger)
}

// The most memory of the server while very many follow.
async fn crowd(name: &str, server: &HttpServer, request: &Request) -> Result<Line> {
    let (mut tasks, alone) = (Tasks::new(), server.resident()?);
    for n in 0..request.sockets {
        let wanted = match n.is_multiple_of(2) {
            true => json!({"all": true}),
            false => json!({"queues": [queue(n % MANY_QUEUES)]}),
        };
        followers::crowd(&mut tasks, server.address(), &wanted).await?;
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
            () = tokio::time::sleep(LOOK) => most = most.max(server.resident()?),
        }
    }
    followers::check(&mut tasks)?;
    Ok(Line::memory(&format!("{name}, {} WebSockets", request.sockets), most, alone))
}

// How long looks at what happened lately take meanwhile, in milliseconds.
async fn looks(store: Arc<dyn Store>, long: Duration) -> Result<Vec<f64>> {
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
        tokio::time::sleep(LOOK).await;
    }
    took.sort_unstable_by(f64::total_cmp);
    Ok(took)
}
