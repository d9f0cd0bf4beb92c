//! Single enqueues that come at the same time share a statement.
//!
//! A caller's job joins whatever batch is gathering; it is answered after that batch is committed. While batches are
//! on their way to the disk the next one gathers, so batches grow with the load and a lone caller waits for nobody.

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
    enqueue::{enqueue_effects, record_each},
};

/// The most jobs of one batch.
const MAX_BATCH: usize = 1_000;
/// The most bytes of payload of one batch, past which it takes no further job.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// How long a batch takes at most before others no longer wait to be as many: it may be waiting for somebody's transaction.
const SLOW: Duration = Duration::from_millis(25);
/// The most jobs that gather; whoever comes then waits for room.
const MAX_WAITING: usize = 4 * MAX_BATCH;

struct Waiting {
    job: NewJob,
    answer: oneshot::Sender<Result<Enqueued>>,
    // Given back when the job leaves.
    _room: OwnedSemaphorePermit,
}

/// Gathers single jobs into batches.
///
/// Jobs with an idempotency key gather by themselves: whoever is recording the same key in a long transaction must be
/// waited for, and jobs without a key should not have to.
#[derive(Debug, Clone)]
pub(crate) struct Coalescer {
    plain: Arc<Lane>,
    keyed: Arc<Lane>,
}

impl Coalescer {
    pub(crate) fn new(database: &Database) -> Self {
        Self { plain: Lane::new(database.clone()), keyed: Lane::new(database.clone()) }
    }

    /// Records `job` with whatever else is being recorded; answers after the commit.
    pub(crate) async fn record(&self, job: NewJob) -> Result<Enqueued> {
        let lane = if job.idempotency_key.is_some() { &self.keyed } else { &self.plain };
        lane.record(job).await
    }
}

struct Lane {
    database: Database,
    room: Arc<Semaphore>,
    gathering: Mutex<Gathering>,
}

impl std::fmt::Debug for Lane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lane").finish_non_exhaustive()
    }
}

/// Jobs that wait for a batch to leave with, and the sizes of the batches under way; of one that is slow, none.
#[derive(Default)]
struct Gathering {
    waiting: Vec<Waiting>,
    under_way: Vec<usize>,
}

impl Gathering {
    // One writes while the other waits for the disk. The second leaves only when it is as large as the first: what a
    // transaction costs is shared by more, and whoever is left behind goes with the next as soon as one is back.
    fn may_leave(&self) -> bool {
        match self.under_way[..] {
            [] => !self.waiting.is_empty(),
            [size] => self.waiting.len() >= size.clamp(1, MAX_BATCH),
            _ => false,
        }
    }

    fn leave(&mut self) -> Option<Vec<Waiting>> {
        if !self.may_leave() {
            return None;
        }
        let mut bytes = 0;
        let fits = |waiting: &&Waiting| {
            let fits = bytes < MAX_BYTES;
            bytes += waiting.job.payload.as_str().len();
            fits
        };
        let size = self.waiting.iter().take(MAX_BATCH).take_while(fits).count();
        self.under_way.push(size);
        Some(self.waiting.drain(..size).collect())
    }

    // Nobody waits to be as many as a batch of which nobody knows when it comes back.
    fn is_slow(&mut self, size: usize) {
        if let Some(under_way) = self.under_way.iter_mut().find(|under_way| **under_way == size) {
            *under_way = 0;
        }
    }

    fn is_back(&mut self, size: usize) {
        if let Some(i) = self.under_way.iter().position(|under_way| *under_way == size) {
            self.under_way.swap_remove(i);
        }
    }
}

impl Lane {
    fn new(database: Database) -> Arc<Self> {
        Arc::new(Self { database, room: Arc::new(Semaphore::new(MAX_WAITING)), gathering: Mutex::default() })
    }

    async fn record(self: &Arc<Self>, job: NewJob) -> Result<Enqueued> {
        let broken_off = || StoreError::Unavailable("the job was not recorded: its batch broke off".into());
        let _room = Arc::clone(&self.room).acquire_owned().await.map_err(|_| broken_off())?;
        let (answer, receiver) = oneshot::channel();
        self.with(|gathering| gathering.waiting.push(Waiting { job, answer, _room }));
        self.send_off();
        receiver.await.map_err(|_| broken_off())?
    }

    fn send_off(self: &Arc<Self>) {
        if let Some(batch) = self.leave() {
            tokio::spawn(write(batch));
        }
    }

    fn leave(self: &Arc<Self>) -> Option<Batch> {
        let jobs = self.with(Gathering::leave)?;
        Some(Batch { lane: Arc::clone(self), size: jobs.len(), jobs, ended: false })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Gathering) -> T) -> T {
        act(&mut self.gathering.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

// Goes on with what has gathered until it is another's turn.
async fn write(mut batch: Batch) {
    loop {
        let lane = Arc::clone(&batch.lane);
        batch.record().await;
        drop(batch);
        match lane.leave() {
            Some(next) => batch = next,
            None => return,
        }
    }
}

/// A batch under way, until this is dropped: also by a runtime that ends, or a panic.
struct Batch {
    lane: Arc<Lane>,
    jobs: Vec<Waiting>,
    size: usize,
    ended: bool,
}

impl Batch {
    async fn record(&mut self) {
        let (jobs, answers): (Vec<_>, Vec<_>) =
            self.jobs.drain(..).map(|waiting| (waiting.job, waiting.answer)).unzip();
        let lane = Arc::clone(&self.lane);
        let results = {
            let mut recorded = pin!(record_each(&lane.database, &jobs));
            match tokio::time::timeout(SLOW, &mut recorded).await {
                Ok(results) => results,
                Err(_) => {
                    lane.with(|gathering| gathering.is_slow(self.size));
                    self.size = 0;
                    lane.send_off();
                    recorded.await
                }
            }
        };
        // Here, since whoever asked may have gone away.
        enqueue_effects(jobs.iter().zip(&results).filter_map(|(job, result)| Some((job, result.as_ref().ok()?))))
            .record_metrics();
        for (answer, result) in answers.into_iter().zip(results) {
            // A caller that went away does not need to know; its job is recorded all the same.
            let _ = answer.send(result);
        }
        // Callers that were answered together come back together: let them all in before the next batch leaves.
        tokio::task::yield_now().await;
        self.ended = true;
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.lane.with(|gathering| {
            gathering.is_back(self.size);
            // Nobody would send off those who have gathered.
            if !self.ended {
                gathering.waiting.clear();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_core::{JobType, Json};

    use super::*;

    impl Gathering {
        fn come(&mut self, n: usize, bytes: usize) {
            let room = Arc::new(Semaphore::new(n));
            for _ in 0..n {
                let mut job = NewJob::new(JobType::new("t").unwrap());
                job.payload = Json::of("payload", &"x".repeat(bytes - 2)).unwrap();
                let _room = Arc::clone(&room).try_acquire_owned().unwrap();
                self.waiting.push(Waiting { job, answer: oneshot::channel().0, _room });
            }
        }

        fn left(&mut self) -> Option<usize> {
            self.leave().map(|batch| batch.len())
        }
    }

    #[test]
    fn the_first_leaves_at_once_and_a_second_beside_it_when_it_is_as_large() {
        let mut gathering = Gathering::default();
        assert_eq!(gathering.left(), None);
        gathering.come(3, 10);
        assert_eq!(gathering.left(), Some(3));
        gathering.come(2, 10);
        assert_eq!(gathering.left(), None, "smaller than the one under way");
        gathering.come(1, 10);
        assert_eq!(gathering.left(), Some(3));
        gathering.come(50, 10);
        assert_eq!(gathering.left(), None, "two are under way");
        gathering.is_back(3);
        assert_eq!(gathering.left(), Some(50));
        gathering.come(10, 10);
        gathering.is_back(3);
        assert_eq!(gathering.left(), None, "smaller than the fifty");
        gathering.is_back(50);
        assert_eq!(gathering.left(), Some(10), "and with nobody under way, at once");
    }

    #[test]
    fn a_batch_takes_so_many_jobs_and_so_many_bytes() {
        let mut gathering = Gathering::default();
        gathering.come(MAX_BATCH + 1, 10);
        assert_eq!(gathering.left(), Some(MAX_BATCH));
        gathering.is_back(MAX_BATCH);
        assert_eq!(gathering.left(), Some(1));
        gathering.is_back(1);
        let large = 1024 * 1024;
        gathering.come(20, large);
        assert_eq!(gathering.left(), Some(MAX_BYTES / large));
    }

    #[test]
    fn nobody_waits_to_be_as_many_as_a_batch_that_is_slow() {
        let mut gathering = Gathering::default();
        gathering.come(30, 10);
        assert_eq!(gathering.left(), Some(30));
        gathering.come(1, 10);
        assert_eq!(gathering.left(), None);
        gathering.is_slow(30);
        assert_eq!(gathering.left(), Some(1));
        gathering.come(1, 10);
        assert_eq!(gathering.left(), None, "two are under way");
        gathering.is_back(0);
        assert_eq!(gathering.left(), Some(1));
        assert_eq!(gathering.under_way, [1, 1]);
    }

    fn lane() -> Arc<Lane> {
        Lane::new(Database::new(crate::PostgresOptions::new("postgres://nobody@127.0.0.1:1/none")).unwrap())
    }

    #[test]
    fn a_batch_that_nobody_finishes_makes_room_and_tells_those_who_gathered_behind_it() {
        let lane = lane();
        // A runtime that is gone before it has looked at the batch.
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        lane.with(|gathering| gathering.come(1, 10));
        runtime.block_on(async { lane.send_off() });
        lane.with(|gathering| gathering.come(3, 10));
        assert_eq!(lane.with(|gathering| (gathering.waiting.len(), gathering.under_way.len())), (3, 1));
        drop(runtime);
        assert_eq!(lane.with(|gathering| (gathering.waiting.len(), gathering.under_way.len())), (0, 0));
    }
}
