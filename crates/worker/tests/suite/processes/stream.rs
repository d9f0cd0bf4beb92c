//! Jobs that keep coming, and a list of those that were acknowledged.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use orchestrix_client::Job;
use orchestrix_core::NewJob;
use orchestrix_store::{Store, StoreError};
use tokio::{task::JoinHandle, time::MissedTickBehavior};

use super::jobs::{Failing, Long, Short};

/// How often jobs are recorded.
const PAUSE: Duration = Duration::from_millis(100);

/// What must become of each acknowledged job, by its id in hexadecimal.
pub(crate) type Ledger = HashMap<String, &'static str>;

/// Jobs of a second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) short: f64,
    pub(crate) long: f64,
    pub(crate) failing: f64,
}

pub(crate) struct Stream {
    stopped: Arc<AtomicBool>,
    ledger: Arc<Mutex<Ledger>>,
    producer: JoinHandle<()>,
}

impl Stream {
    pub(crate) fn start(store: Arc<dyn Store>, rate: Rate) -> Self {
        let (stopped, ledger) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Ledger>>::default());
        let producer = tokio::spawn(produce(store, rate, Arc::clone(&stopped), Arc::clone(&ledger)));
        Self { stopped, ledger, producer }
    }

    /// Records no more; answers with what was acknowledged.
    pub(crate) async fn finish(self) -> Ledger {
        self.stopped.store(true, Ordering::Relaxed);
        self.producer.await.unwrap();
        std::mem::take(&mut *self.ledger.lock().unwrap())
    }
}

/// Records jobs, and notes what must become of them if they were acknowledged.
pub(crate) async fn record(
    store: &dyn Store,
    jobs: Vec<(NewJob, &'static str)>,
    ledger: &Mutex<Ledger>,
) -> Result<(), StoreError> {
    let (jobs, ends): (Vec<_>, Vec<_>) = jobs.into_iter().unzip();
    let recorded = store.enqueue_jobs(jobs).await?;
    let ids = recorded.iter().map(|job| job.id.as_uuid().simple().to_string());
    ledger.lock().unwrap().extend(ids.zip(ends));
    Ok(())
}

async fn produce(store: Arc<dyn Store>, rate: Rate, stopped: Arc<AtomicBool>, ledger: Arc<Mutex<Ledger>>) {
    let mut ticks = tokio::time::interval(PAUSE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !stopped.load(Ordering::Relaxed) {
        ticks.tick().await;
        match record(&*store, some(rate), &ledger).await {
            // The database may be away; whether they were recorded is then unknown, and nobody was told that they were.
            Ok(()) | Err(StoreError::Unavailable(_)) => {}
            Err(error) => panic!("not what a caller would wait out: {error:?}"),
        }
    }
}

// As many of each as are due, on average.
fn some(rate: Rate) -> Vec<(NewJob, &'static str)> {
    let due = |rate: f64| {
        let due = rate * PAUSE.as_secs_f64();
        due as usize + usize::from(rand::random_bool(due.fract()))
    };
    let mut jobs = Vec::new();
    for _ in 0..due(rate.short) {
        jobs.push((Short { ms: rand::random_range(1..10) }.request().build().unwrap(), "completed"));
    }
    for _ in 0..due(rate.long) {
        let (ms, stubborn) = (rand::random_range(1_200..4_000), rand::random_bool(0.3));
        jobs.push((Long { ms, again_ms: ms, stubborn }.request().build().unwrap(), "completed"));
    }
    for _ in 0..due(rate.failing) {
        jobs.push(if rand::random_bool(0.5) {
            (Failing { times: rand::random_range(1..4) }.request().build().unwrap(), "completed")
        } else {
            (Failing { times: u16::MAX }.request().max_attempts(3).build().unwrap(), "dead")
        });
    }
    jobs
}
