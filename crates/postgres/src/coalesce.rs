//! Coalescing: concurrent single enqueues share a statement.
//!
//! A job joins the batch that is filling, and its caller gets an answer after that batch has committed. While batches
//! are being written the next one fills, so batches grow with the load, and a single caller does not wait.

use std::{
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use orchestrix_core::NewJob;
use orchestrix_store::{Enqueued, Result, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::{
    database::Database,
    effects::{Effects, Publisher},
    enqueue::enqueue_each,
};

/// The most jobs in one batch.
const MAX_BATCH: usize = 1_000;
/// The payload bytes after which a batch takes no further job.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// How long a batch may take before it stops setting the minimum size of the next: it may wait for another
/// transaction.
const SLOW: Duration = Duration::from_millis(25);
/// The most jobs that wait for a batch. Further callers wait for a permit.
const MAX_WAITING: usize = 4 * MAX_BATCH;

struct WaitingJob {
    job: NewJob,
    answer: oneshot::Sender<Result<Enqueued>>,
    // Released when the job leaves the queue.
    _permit: OwnedSemaphorePermit,
}

/// Gathers single jobs into batches.
///
/// Jobs with an idempotency key have a queue of their own: they wait for other transactions that insert the same key,
/// and jobs without a key must not wait with them.
#[derive(Debug, Clone)]
pub(crate) struct Coalescer {
    plain: Arc<BatchQueue>,
    keyed: Arc<BatchQueue>,
}

impl Coalescer {
    pub(crate) fn new(database: &Database, publisher: &Publisher) -> Self {
        let queue = || BatchQueue::new(database.clone(), publisher.clone());
        Self { plain: queue(), keyed: queue() }
    }

    /// Enqueues `job` with other jobs; returns after the commit.
    pub(crate) async fn enqueue(&self, job: NewJob) -> Result<Enqueued> {
        let queue = if job.idempotency_key.is_some() { &self.keyed } else { &self.plain };
        queue.enqueue(job).await
    }
}

struct BatchQueue {
    database: Database,
    publisher: Publisher,
    permits: Arc<Semaphore>,
    state: Mutex<QueueState>,
}

impl std::fmt::Debug for BatchQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchQueue").finish_non_exhaustive()
    }
}

/// The jobs that wait for a batch, and the sizes of the batches in flight. A slow batch counts as size 0.
#[derive(Default)]
struct QueueState {
    waiting: Vec<WaitingJob>,
    in_flight: Vec<usize>,
}

impl QueueState {
    // Two batches are in flight at most: one is written while the other waits for the disk. The second must be at
    // least as large as the first, so that more jobs share the cost of a transaction. Jobs left behind join the next
    // batch.
    fn may_start(&self) -> bool {
        match self.in_flight[..] {
            [] => !self.waiting.is_empty(),
            [size] => self.waiting.len() >= size.clamp(1, MAX_BATCH),
            _ => false,
        }
    }

    fn start_batch(&mut self) -> Option<Vec<WaitingJob>> {
        if !self.may_start() {
            return None;
        }
        let mut bytes = 0;
        let fits = |waiting: &&WaitingJob| {
            let fits = bytes < MAX_BYTES;
            bytes += waiting.job.payload.as_str().len();
            fits
        };
        let size = self.waiting.iter().take(MAX_BATCH).take_while(fits).count();
        self.in_flight.push(size);
        Some(self.waiting.drain(..size).collect())
    }

    // A slow batch no longer sets the minimum size of the next.
    fn mark_slow(&mut self, size: usize) {
        if let Some(in_flight) = self.in_flight.iter_mut().find(|in_flight| **in_flight == size) {
            *in_flight = 0;
        }
    }

    fn end_batch(&mut self, size: usize) {
        if let Some(i) = self.in_flight.iter().position(|in_flight| *in_flight == size) {
            self.in_flight.swap_remove(i);
        }
    }
}

impl BatchQueue {
    fn new(database: Database, publisher: Publisher) -> Arc<Self> {
        let permits = Arc::new(Semaphore::new(MAX_WAITING));
        Arc::new(Self { database, publisher, permits, state: Mutex::default() })
    }

    async fn enqueue(self: &Arc<Self>, job: NewJob) -> Result<Enqueued> {
        let aborted = || StoreError::Unavailable("the job was not enqueued: its batch was aborted".into());
        let _permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| aborted())?;
        let (answer, receiver) = oneshot::channel();
        self.with_state(|state| state.waiting.push(WaitingJob { job, answer, _permit }));
        self.spawn_batch();
        receiver.await.map_err(|_| aborted())?
    }

    fn spawn_batch(self: &Arc<Self>) {
        if let Some(batch) = self.start_batch() {
            tokio::spawn(write_batches(batch));
        }
    }

    fn start_batch(self: &Arc<Self>) -> Option<Batch> {
        let jobs = self.with_state(QueueState::start_batch)?;
        Some(Batch { queue: Arc::clone(self), size: jobs.len(), jobs, written: false })
    }

    fn with_state<T>(&self, access: impl FnOnce(&mut QueueState) -> T) -> T {
        access(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

// Writes a batch, then the jobs that gathered meanwhile, until no batch may start.
async fn write_batches(mut batch: Batch) {
    loop {
        let queue = Arc::clone(&batch.queue);
        batch.write().await;
        drop(batch);
        match queue.start_batch() {
            Some(next) => batch = next,
            None => return,
        }
    }
}

/// A batch in flight. Dropping it ends it, also when the runtime shuts down or a panic unwinds.
struct Batch {
    queue: Arc<BatchQueue>,
    jobs: Vec<WaitingJob>,
    size: usize,
    written: bool,
}

impl Batch {
    async fn write(&mut self) {
        let (jobs, answers): (Vec<_>, Vec<_>) =
            self.jobs.drain(..).map(|waiting| (waiting.job, waiting.answer)).unzip();
        let queue = Arc::clone(&self.queue);
        let results = {
            let mut enqueued = pin!(enqueue_each(&queue.database, &jobs));
            match tokio::time::timeout(SLOW, &mut enqueued).await {
                Ok(results) => results,
                Err(_) => {
                    queue.with_state(|state| state.mark_slow(self.size));
                    self.size = 0;
                    queue.spawn_batch();
                    enqueued.await
                }
            }
        };
        // The batch publishes, and not the callers, since a caller may have been dropped.
        let enqueued = jobs.iter().zip(&results).filter_map(|(job, result)| Some((job, result.as_ref().ok()?)));
        queue.publisher.publish(Effects::of_enqueued(enqueued));
        for (answer, result) in answers.into_iter().zip(results) {
            // A dropped caller gets no answer; its job is enqueued all the same.
            let _ = answer.send(result);
        }
        // Callers answered together tend to enqueue again together: let all of them join the next batch.
        tokio::task::yield_now().await;
        self.written = true;
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.queue.with_state(|state| {
            state.end_batch(self.size);
            // No task would start a batch for the waiting jobs: their callers get an error.
            if !self.written {
                state.waiting.clear();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_core::{JobType, Json};

    use super::*;

    impl QueueState {
        fn add(&mut self, n: usize, bytes: usize) {
            let permits = Arc::new(Semaphore::new(n));
            for _ in 0..n {
                let mut job = NewJob::new(JobType::new("t").unwrap());
                job.payload = Json::of("payload", &"x".repeat(bytes - 2)).unwrap();
                let _permit = Arc::clone(&permits).try_acquire_owned().unwrap();
                self.waiting.push(WaitingJob { job, answer: oneshot::channel().0, _permit });
            }
        }

        fn start(&mut self) -> Option<usize> {
            self.start_batch().map(|batch| batch.len())
        }
    }

    #[test]
    fn the_first_batch_starts_at_once_and_a_second_one_when_it_is_as_large() {
        let mut state = QueueState::default();
        assert_eq!(state.start(), None);
        state.add(3, 10);
        assert_eq!(state.start(), Some(3));
        state.add(2, 10);
        assert_eq!(state.start(), None, "smaller than the batch in flight");
        state.add(1, 10);
        assert_eq!(state.start(), Some(3));
        state.add(50, 10);
        assert_eq!(state.start(), None, "two batches are in flight");
        state.end_batch(3);
        assert_eq!(state.start(), Some(50));
        state.add(10, 10);
        state.end_batch(3);
        assert_eq!(state.start(), None, "smaller than the fifty");
        state.end_batch(50);
        assert_eq!(state.start(), Some(10), "at once with no batch in flight");
    }

    #[test]
    fn a_batch_is_limited_in_jobs_and_bytes() {
        let mut state = QueueState::default();
        state.add(MAX_BATCH + 1, 10);
        assert_eq!(state.start(), Some(MAX_BATCH));
        state.end_batch(MAX_BATCH);
        assert_eq!(state.start(), Some(1));
        state.end_batch(1);
        let large = 1024 * 1024;
        state.add(20, large);
        assert_eq!(state.start(), Some(MAX_BYTES / large));
    }

    #[test]
    fn a_slow_batch_does_not_set_the_minimum_size_of_the_next() {
        let mut state = QueueState::default();
        state.add(30, 10);
        assert_eq!(state.start(), Some(30));
        state.add(1, 10);
        assert_eq!(state.start(), None);
        state.mark_slow(30);
        assert_eq!(state.start(), Some(1));
        state.add(1, 10);
        assert_eq!(state.start(), None, "two batches are in flight");
        state.end_batch(0);
        assert_eq!(state.start(), Some(1));
        assert_eq!(state.in_flight, [1, 1]);
    }

    #[test]
    fn an_aborted_batch_frees_its_slot_and_fails_the_jobs_behind_it() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let queue = {
            let _entered = runtime.enter();
            let options = crate::PostgresOptions::new("postgres://nobody@127.0.0.1:1/none");
            let database = Database::new(options).unwrap();
            let publisher = Publisher::start(&database, Arc::default(), Default::default());
            BatchQueue::new(database, publisher)
        };
        // The runtime is dropped before it polls the batch.
        queue.with_state(|state| state.add(1, 10));
        runtime.block_on(async { queue.spawn_batch() });
        queue.with_state(|state| state.add(3, 10));
        assert_eq!(queue.with_state(|state| (state.waiting.len(), state.in_flight.len())), (3, 1));
        drop(runtime);
        assert_eq!(queue.with_state(|state| (state.waiting.len(), state.in_flight.len())), (0, 0));
    }
}
