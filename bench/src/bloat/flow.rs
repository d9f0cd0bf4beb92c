//! A steady flow of jobs: producers at a fixed rate, and workers that claim and complete.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use orchestrix_core::WorkerName;
use orchestrix_store::{ClaimRequest, Store};
use tokio::{
    sync::Mutex,
    task::JoinSet,
    time::{sleep, sleep_until, timeout},
};

use crate::{
    backend::Backend,
    drain::{CLAIMERS, complete_jobs},
    jobs::job,
};

/// Concurrent producers, and the jobs of each of their calls.
const PRODUCERS: usize = 8;
const CALL: usize = 200;
/// Jobs per claim.
const BATCH: usize = Backend::Postgres.batch();
/// Producers pause while more seconds of the flow than this are unfinished: a machine that is too slow lowers the rate
/// instead of building up a backlog.
const MAX_BACKLOG: f64 = 2.0;
/// The poll interval of an idle worker.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long the last jobs may take.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The times at which calls are due. A late call does not delay the next, but the flow never catches up on more than
/// a second.
#[derive(Debug)]
struct Pacer {
    step: Duration,
    next: Instant,
}

impl Pacer {
    const CATCH_UP: Duration = Duration::from_secs(1);

    fn new(rate: usize, now: Instant) -> Self {
        Self { step: Duration::from_secs_f64(CALL as f64 / rate as f64), next: now }
    }

    /// Returns when the next call is due.
    fn next(&mut self, now: Instant) -> Instant {
        let due = now.checked_sub(Self::CATCH_UP).map_or(self.next, |earliest| self.next.max(earliest));
        self.next = due + self.step;
        due
    }
}

/// The counters that producers and workers share.
#[derive(Debug, Default)]
struct Counters {
    enqueued: AtomicU64,
    finished: AtomicU64,
    stopped: AtomicBool,
}

impl Counters {
    fn unfinished(&self) -> u64 {
        // In this order, so that the difference is never negative.
        let finished = self.finished.load(Ordering::SeqCst);
        self.enqueued.load(Ordering::SeqCst) - finished
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }
}

/// Running producers and workers.
#[derive(Debug)]
pub(super) struct Flow {
    counters: Arc<Counters>,
    tasks: JoinSet<Result<()>>,
}

impl Flow {
    /// Starts producers and workers. `enqueued` jobs are pending already.
    pub(super) fn start(producing: &Arc<dyn Store>, working: &Arc<dyn Store>, rate: usize, enqueued: usize) -> Self {
        let counters = Arc::new(Counters { enqueued: AtomicU64::new(enqueued as u64), ..Counters::default() });
        let mut tasks = JoinSet::new();
        let pacer = Arc::new(Mutex::new(Pacer::new(rate, Instant::now())));
        for _ in 0..PRODUCERS {
            tasks.spawn(produce(Arc::clone(producing), Arc::clone(&counters), Arc::clone(&pacer), rate));
        }
        for n in 0..CLAIMERS {
            tasks.spawn(work(Arc::clone(working), Arc::clone(&counters), n));
        }
        Self { counters, tasks }
    }

    /// Waits, and fails as soon as a producer or a worker fails.
    pub(super) async fn run_for(&mut self, duration: Duration) -> Result<()> {
        tokio::select! {
            () = sleep(duration) => Ok(()),
            Some(ended) = self.tasks.join_next() => {
                ended??;
                bail!("a producer or a worker has stopped")
            }
        }
    }

    pub(super) fn finished(&self) -> u64 {
        self.counters.finished.load(Ordering::SeqCst)
    }

    pub(super) fn unfinished(&self) -> u64 {
        self.counters.unfinished()
    }

    /// Stops the producers, and the workers once all jobs are done.
    pub(super) async fn finish(mut self) -> Result<()> {
        self.counters.stopped.store(true, Ordering::SeqCst);
        let all = async {
            while let Some(ended) = self.tasks.join_next().await {
                ended??;
            }
            anyhow::Ok(())
        };
        timeout(TIMEOUT, all).await??;
        let left = self.counters.unfinished();
        ensure!(left == 0, "{left} jobs were not finished");
        Ok(())
    }
}

/// Enqueues the jobs of one call, numbered from `from`; returns how many.
pub(super) async fn enqueue(store: &Arc<dyn Store>, from: usize) -> Result<usize> {
    store.enqueue_jobs((from..from + CALL).map(job).collect()).await?;
    Ok(CALL)
}

async fn produce(store: Arc<dyn Store>, counters: Arc<Counters>, pacer: Arc<Mutex<Pacer>>, rate: usize) -> Result<()> {
    loop {
        let due = pacer.lock().await.next(Instant::now());
        sleep_until(due.into()).await;
        while counters.unfinished() as f64 > MAX_BACKLOG * rate as f64 && !counters.is_stopped() {
            sleep(Duration::from_millis(5)).await;
        }
        if counters.is_stopped() {
            return Ok(());
        }
        // Counted before the call: a worker may finish a job before the call returns.
        let from = counters.enqueued.fetch_add(CALL as u64, Ordering::SeqCst) as usize;
        enqueue(&store, from).await?;
    }
}

async fn work(store: Arc<dyn Store>, counters: Arc<Counters>, n: usize) -> Result<()> {
    let request = ClaimRequest::any(WorkerName::trusted(&format!("bench-{n}")), BATCH);
    let mut wakeups = store.job_wakeups();
    loop {
        let claimed = store.claim_jobs(&request).await?;
        if !claimed.is_empty() {
            complete_jobs(&store, &claimed).await?;
            counters.finished.fetch_add(claimed.len() as u64, Ordering::SeqCst);
        }
        if counters.is_stopped() && counters.unfinished() == 0 {
            return Ok(());
        }
        if claimed.len() < BATCH {
            let _ = timeout(POLL_INTERVAL, wakeups.next()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_due_at_the_rate() {
        let begun = Instant::now();
        let mut pacer = Pacer::new(20 * CALL, begun);
        let due: Vec<Duration> = (0..3).map(|_| pacer.next(begun) - begun).collect();
        assert_eq!(due, [0, 50, 100].map(Duration::from_millis));
    }

    #[test]
    fn a_late_flow_catches_up_on_one_second() {
        let begun = Instant::now();
        let mut pacer = Pacer::new(CALL, begun);
        let late = begun + Duration::from_secs(10);
        assert_eq!(pacer.next(late), late - Pacer::CATCH_UP);
        assert_eq!(pacer.next(late), late);
    }
}
