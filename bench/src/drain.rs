//! `drain`: claiming and completing until nothing is left; here the loop of our store, and the bare statements.

use std::{
    hint::black_box,
    mem,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use orchestrix_core::WorkerName;
use orchestrix_postgres::PostgresStore;
use orchestrix_store::{ClaimRequest, Finish, Store, Verdict};
use tokio_postgres::{Client, Statement};
use uuid::Uuid;

use crate::{arguments::Scale, measure::Side, server::connect};

/// Who claims at once.
pub(crate) const CLAIMERS: usize = 4;
/// How many jobs a claim asks for, unless a figure says otherwise.
pub(crate) const BATCH: usize = 1_000;
/// How many jobs are drained while the clock runs, unless a figure says otherwise.
pub(crate) const JOBS: usize = 100_000;
/// How many jobs are drained before it starts: after five executions a statement has got its lasting plan.
pub(crate) const WARM: usize = 6 * CLAIMERS * BATCH;

/// How long claims may find nothing although there is something.
const PATIENCE: Duration = Duration::from_secs(20);

/// Jobs that claimers share out among themselves, so that together they drain an exact number.
#[derive(Debug, Clone)]
struct Share(Arc<AtomicUsize>);

impl Share {
    fn new(jobs: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(jobs)))
    }

    /// Takes up to `batch`; none is left when it answers zero.
    fn take(&self, batch: usize) -> usize {
        let take = |left: usize| Some(left.saturating_sub(batch));
        let left = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).unwrap_or_default();
        left.min(batch)
    }

    /// Gives back what was taken and not found.
    fn give_back(&self, jobs: usize) {
        self.0.fetch_add(jobs, Ordering::Relaxed);
    }
}

/// Somebody who drains batch by batch.
trait Claimer: Send + 'static {
    /// Claims and completes up to `batch` jobs; answers how many it were.
    fn work(&self, batch: usize) -> impl Future<Output = Result<usize>> + Send;
}

/// Drains exactly `jobs` with all claimers at once, and gives them back.
async fn drain_all<C: Claimer>(claimers: Vec<C>, batch: usize, jobs: usize) -> Result<Vec<C>> {
    let share = Share::new(jobs);
    let tasks = claimers.into_iter().map(|claimer| {
        let share = share.clone();
        tokio::spawn(async move {
            let mut found = Instant::now();
            loop {
                let wanted = share.take(batch);
                if wanted == 0 {
                    return anyhow::Ok(claimer);
                }
                let done = claimer.work(wanted).await?;
                share.give_back(wanted - done);
                if done > 0 {
                    found = Instant::now();
                } else {
                    ensure!(found.elapsed() < PATIENCE, "claims find nothing, though there are jobs");
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        })
    });
    let mut claimers = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        claimers.push(task.await??);
    }
    Ok(claimers)
}

/// A claimer of our store.
struct StoreClaimer {
    store: PostgresStore,
    worker: WorkerName,
}

impl Claimer for StoreClaimer {
    async fn work(&self, batch: usize) -> Result<usize> {
        let claimed = self.store.claim(&ClaimRequest::any(self.worker.clone(), batch)).await?;
        if claimed.is_empty() {
            return Ok(0);
        }
        let items = claimed.iter().map(|job| Finish { token: job.token, verdict: Verdict::DONE }).collect();
        for answer in self.store.finish(items).await? {
            answer?;
        }
        Ok(claimed.len())
    }
}

/// Claims and completes `jobs` jobs through the store, by four claimers.
pub(crate) async fn drain(store: &PostgresStore, batch: usize, jobs: usize) -> Result<u64> {
    let claimer = |n| StoreClaimer { store: store.clone(), worker: WorkerName::trusted(&format!("bench-{n}")) };
    drain_all((0..CLAIMERS).map(claimer).collect(), batch, jobs).await?;
    Ok(jobs as u64)
}

/// The bare statements: claim, ship, move to history.
pub(crate) struct BareDrain {
    jobs: usize,
}

pub(crate) fn limit(scale: Scale) -> BareDrain {
    BareDrain { jobs: scale.of(JOBS) }
}

pub(crate) struct BareClaimer {
    client: Client,
    claim: Statement,
    complete: Statement,
}

impl BareClaimer {
    async fn connect(url: &str) -> Result<Self> {
        let client = connect(url).await?;
        // The tables were never analyzed: without these the limit would depend on what the planner makes of that.
        client
            .batch_execute(
                "SET jit = off; SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off",
            )
            .await?;
        let claim = client.prepare(include_str!("sql/bare_claim.sql")).await?;
        let complete = client.prepare(include_str!("sql/bare_complete.sql")).await?;
        Ok(Self { client, claim, complete })
    }
}

impl Claimer for BareClaimer {
    async fn work(&self, batch: usize) -> Result<usize> {
        let secret = Uuid::now_v7();
        let rows = self.client.query(&self.claim, &[&"default", &(batch as i64), &secret]).await?;
        let mut ids: Vec<Uuid> = rows.iter().map(|row| row.get(0)).collect();
        black_box(rows.iter().map(|row| row.get::<_, &str>(4).len()).sum::<usize>());
        if ids.is_empty() {
            return Ok(0);
        }
        ids.sort_unstable();
        let kept = self.client.query(&self.complete, &[&ids, &secret]).await?;
        ensure!(kept.len() == ids.len(), "{} of {} jobs were kept", kept.len(), ids.len());
        Ok(ids.len())
    }
}

impl Side for BareDrain {
    type Session = Vec<BareClaimer>;

    async fn prepare(&self, url: &str) -> Result<()> {
        let client = connect(url).await?;
        client.batch_execute(include_str!("sql/bare_schema.sql")).await?;
        // As for our store: a transaction per few thousand, so that ids and rows lie alike.
        let fill = client.prepare(include_str!("sql/bare_fill.sql")).await?;
        let total = WARM + self.jobs;
        for begin in (0..total).step_by(5_000) {
            client.execute(&fill, &[&((total - begin).min(5_000) as i64)]).await?;
        }
        Ok(())
    }

    async fn open(&self, url: &str) -> Result<Vec<BareClaimer>> {
        let mut claimers = Vec::new();
        for _ in 0..CLAIMERS {
            claimers.push(BareClaimer::connect(url).await?);
        }
        Ok(claimers)
    }

    async fn warm(&self, claimers: &mut Vec<BareClaimer>) -> Result<u64> {
        *claimers = drain_all(mem::take(claimers), BATCH, WARM).await?;
        Ok(WARM as u64)
    }

    async fn run(&self, claimers: &mut Vec<BareClaimer>) -> Result<u64> {
        *claimers = drain_all(mem::take(claimers), BATCH, self.jobs).await?;
        Ok(self.jobs as u64)
    }
}
