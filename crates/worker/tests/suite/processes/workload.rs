//! A steady stream of jobs, and the expected final state of each acknowledged one.

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

/// The interval between two enqueues.
const INTERVAL: Duration = Duration::from_millis(100);

/// The expected final state of each acknowledged job, by its id in hexadecimal.
pub(crate) type ExpectedStates = HashMap<String, &'static str>;

/// Jobs per second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) short: f64,
    pub(crate) long: f64,
    pub(crate) failing: f64,
}

pub(crate) struct Workload {
    stopped: Arc<AtomicBool>,
    expected: Arc<Mutex<ExpectedStates>>,
    producer: JoinHandle<()>,
}

impl Workload {
    pub(crate) fn start(store: Arc<dyn Store>, rate: Rate) -> Self {
        let (stopped, expected) = (Arc::<AtomicBool>::default(), Arc::<Mutex<ExpectedStates>>::default());
        let producer = tokio::spawn(produce(store, rate, Arc::clone(&stopped), Arc::clone(&expected)));
        Self { stopped, expected, producer }
    }

    /// Stops enqueueing. Returns the acknowledged jobs.
    pub(crate) async fn finish(self) -> ExpectedStates {
        self.stopped.store(true, Ordering::Relaxed);
        self.producer.await.unwrap();
        std::mem::take(&mut *self.expected.lock().unwrap())
    }
}

/// Enqueues jobs. Records their expected states if the store acknowledged them.
pub(crate) async fn enqueue(
    store: &dyn Store,
    jobs: Vec<(NewJob, &'static str)>,
    expected: &Mutex<ExpectedStates>,
) -> Result<(), StoreError> {
    let (jobs, states): (Vec<_>, Vec<_>) = jobs.into_iter().unzip();
    let enqueued = store.enqueue_jobs(jobs).await?;
    let ids = enqueued.iter().map(|job| job.id.as_uuid().simple().to_string());
    expected.lock().unwrap().extend(ids.zip(states));
    Ok(())
}

async fn produce(store: Arc<dyn Store>, rate: Rate, stopped: Arc<AtomicBool>, expected: Arc<Mutex<ExpectedStates>>) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !stopped.load(Ordering::Relaxed) {
        ticks.tick().await;
        match enqueue(&*store, due_jobs(rate), &expected).await {
            // If the database is unavailable, the jobs may exist or not: they were not acknowledged.
            Ok(()) | Err(StoreError::Unavailable(_)) => {}
            Err(error) => panic!("an enqueue failed although the database is available: {error:?}"),
        }
    }
}

/// The jobs that are due in one interval, on average.
fn due_jobs(rate: Rate) -> Vec<(NewJob, &'static str)> {
    let due = |rate: f64| {
        let due = rate * INTERVAL.as_secs_f64();
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
