//! The change feed: polls the store for all subscribers, and publishes the changes to them.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use orchestrix_core::{JobId, Timestamp};
use orchestrix_store::{ChangesQuery, Result, Store};
use tokio::{
    sync::{Notify, broadcast},
    time::Instant,
};

use super::{
    replay_buffer::Snapshot,
    subscriber::Subscriber,
    tracker::{JobTracker, JobUpdate},
};
use crate::auth::principal::Principal;

/// The most jobs in one query.
const MAX_IDS_PER_QUERY: usize = 1_000;
/// The most updates in one batch. The buffer of a slow subscriber is counted in batches.
const MAX_UPDATES_PER_BATCH: usize = 500;
/// How long a poll on behalf of a new subscription waits for others, to read their jobs together.
const COALESCE: Duration = Duration::from_millis(10);

/// The changes that one poll found, or a part of them.
#[derive(Debug)]
pub(super) struct ChangeBatch {
    /// Rises with every batch.
    pub(super) number: u64,
    pub(super) updates: Vec<JobUpdate>,
    /// The poll found more changes than it could return.
    pub(super) overflowed: bool,
    /// The store's time of the poll, while there are broad subscriptions.
    pub(super) polled_at: Option<Timestamp>,
}

/// What the polling task and the subscribers share.
#[derive(Debug)]
pub(super) struct SharedFeed {
    state: Mutex<FeedState>,
    pub(super) batches: broadcast::Sender<Arc<ChangeBatch>>,
    /// Wakes the polling task when a subscription begins.
    wake: Notify,
}

/// The tracker, and the number of the last batch that reports its changes. One lock guards both, so that a new
/// subscription knows which batches are older than its initial state.
#[derive(Debug, Default)]
pub(super) struct FeedState {
    pub(super) tracker: JobTracker,
    pub(super) last_batch: u64,
    /// The snapshot after the batch of this number. Many subscribers may resync at once.
    snapshot: Option<(u64, Snapshot)>,
}

impl FeedState {
    /// All jobs in the replay buffer, for a resync.
    pub(super) fn snapshot(&mut self) -> &Snapshot {
        let Self { tracker, last_batch, snapshot } = self;
        let cached = snapshot.take().filter(|(number, _)| number == last_batch);
        &snapshot.insert(cached.unwrap_or_else(|| (*last_batch, tracker.snapshot()))).1
    }
}

impl SharedFeed {
    pub(super) fn lock(&self) -> MutexGuard<'_, FeedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the polling task.
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Applies the result of a query to the tracker, and publishes the updates that follow from it.
    pub(super) fn publish<R>(&self, apply: impl FnOnce(&mut JobTracker) -> (Vec<JobUpdate>, R)) -> R {
        let mut state = self.lock();
        let (mut updates, result) = apply(&mut state.tracker);
        while !updates.is_empty() {
            let rest = updates.split_off(updates.len().min(MAX_UPDATES_PER_BATCH));
            self.send(&mut state, updates, false);
            updates = rest;
        }
        result
    }

    fn send(&self, state: &mut FeedState, updates: Vec<JobUpdate>, overflowed: bool) {
        state.last_batch += 1;
        state.snapshot = None;
        let polled_at = state.tracker.polled_at();
        // The send fails when the last subscriber has just left, which is fine.
        let _ = self.batches.send(Arc::new(ChangeBatch { number: state.last_batch, updates, overflowed, polled_at }));
    }
}

/// Publishes the changes of jobs to subscribers.
pub(crate) struct ChangeFeed(pub(super) Arc<SharedFeed>);

impl ChangeFeed {
    /// Polls every `interval`, and buffers up to `buffer` batches for a slow subscriber. The polling task ends when
    /// the feed is dropped.
    pub(crate) fn new(store: Arc<dyn Store>, interval: Duration, buffer: usize) -> Self {
        let shared = Arc::new(SharedFeed {
            state: Mutex::default(),
            batches: broadcast::Sender::new(buffer.max(1)),
            wake: Notify::new(),
        });
        tokio::spawn(poll_loop(store, Arc::downgrade(&shared), interval));
        Self(shared)
    }

    /// A subscriber without subscriptions. It sees only the jobs that the caller may see.
    pub(crate) fn subscriber(&self, caller: &Principal) -> Subscriber {
        Subscriber::new(Arc::clone(&self.0), caller.tenant().cloned(), caller.key().cloned())
    }
}

async fn poll_loop(store: Arc<dyn Store>, shared: Weak<SharedFeed>, interval: Duration) {
    let mut next_poll = Instant::now();
    loop {
        let Some(shared) = shared.upgrade() else { return };
        let (idle, lookups) = {
            let mut state = shared.lock();
            (state.tracker.is_idle(), state.tracker.take_lookups())
        };
        if idle {
            // The timeout makes the task notice within a second that the feed was dropped.
            let _ = tokio::time::timeout(Duration::from_secs(1), shared.wake.notified()).await;
            continue;
        }
        let result = match next_poll <= Instant::now() {
            true => {
                let started_at = Instant::now();
                let result = poll(&*store, &shared, lookups).await;
                // A slow store gets a pause as long as the poll took.
                next_poll = (started_at + interval).max(Instant::now() + started_at.elapsed());
                result
            }
            false => look_up(&*store, &shared, lookups).await,
        };
        if let Err(error) = result {
            tracing::debug!(%error, "could not poll the changes of subscribed jobs");
            next_poll = Instant::now() + interval;
        }
        tokio::select! {
            () = tokio::time::sleep_until(next_poll) => {}
            () = shared.wake.notified() => tokio::time::sleep(COALESCE).await,
        }
    }
}

async fn poll(store: &dyn Store, shared: &SharedFeed, mut lookups: Vec<JobId>) -> Result<()> {
    if shared.lock().tracker.needs_time() {
        let recent = store
            .recent_changes(&ChangesQuery::leased(1))
            .await
            .inspect_err(|_| shared.lock().tracker.requeue_lookups(&lookups))?;
        shared.lock().tracker.set_time(recent.now);
    }
    let (query, watched) = {
        let tracker = &mut shared.lock().tracker;
        (tracker.begin_poll(), tracker.watched_ids())
    };
    if let Some(query) = query {
        let recent =
            store.recent_changes(&query).await.inspect_err(|_| shared.lock().tracker.requeue_lookups(&lookups))?;
        lookups.extend(shared.publish(|tracker| tracker.apply_changes(&query, recent)));
    }
    for ids in watched.chunks(MAX_IDS_PER_QUERY) {
        let states = store.job_states(ids).await.inspect_err(|_| shared.lock().tracker.requeue_lookups(&lookups))?;
        lookups.extend(shared.publish(|tracker| tracker.apply_states(ids, &states)));
    }
    look_up(store, shared, lookups).await?;
    let mut state = shared.lock();
    state.tracker.evict();
    let overflowed = state.tracker.take_overflow();
    if state.tracker.takes_empty_batch() || overflowed {
        shared.send(&mut state, Vec::new(), overflowed);
    }
    Ok(())
}

// Reads jobs by id. Ids that could not be read are queued again.
async fn look_up(store: &dyn Store, shared: &SharedFeed, mut ids: Vec<JobId>) -> Result<()> {
    ids.sort_unstable();
    ids.dedup();
    for (n, chunk) in ids.chunks(MAX_IDS_PER_QUERY).enumerate() {
        let requeue = |_: &_| shared.lock().tracker.requeue_lookups(&ids[n * MAX_IDS_PER_QUERY..]);
        let jobs = store.job_summaries(chunk).await.inspect_err(requeue)?;
        shared.publish(|tracker| (tracker.apply_jobs(chunk, jobs), ()));
    }
    Ok(())
}
