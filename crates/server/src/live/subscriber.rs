//! A subscriber: the subscriptions of one WebSocket, and what it has received.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use orchestrix_api::Code;
use orchestrix_core::{JobId, KeyId, Queue, Tenant, Timestamp};
use orchestrix_store::clock::earlier;
use tokio::sync::broadcast::{
    self,
    error::{RecvError, TryRecvError},
};

use super::{
    feed::{ChangeBatch, SharedFeed},
    message::Subscription,
    tracker::JobUpdate,
};

/// The most jobs that one subscriber may watch by id.
pub(super) const MAX_JOBS: usize = 1_000;
pub(super) const MAX_QUEUES: usize = 100;

/// How far before its `since` a resumed subscription starts. The client knows the times of the events it received, not
/// of the ones that were on their way, and another server may have published them in another order.
const RESUME_MARGIN: Duration = Duration::from_secs(15);

/// Why a subscriber needs a resync.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ResyncReason {
    /// It lost updates.
    Lagged,
    /// It resumes an earlier subscription.
    Resumed,
}

/// The current state of a subscriber's jobs.
#[derive(Debug)]
pub(super) struct Resync {
    pub(super) updates: Vec<JobUpdate>,
    /// If the resync is incomplete: the time up to which changes may be missing.
    pub(super) incomplete_until: Option<Timestamp>,
}

/// The subscriptions of one client. Each has the number of the last batch before its initial state, and ignores
/// batches up to it.
#[derive(Debug)]
pub(crate) struct Subscriber {
    shared: Arc<SharedFeed>,
    batches: broadcast::Receiver<Arc<ChangeBatch>>,
    jobs: HashMap<JobId, u64>,
    queues: HashMap<Queue, u64>,
    all: Option<u64>,
    tenant: Option<Tenant>,
    key: Option<KeyId>,
    /// The broad subscriptions are current up to this poll.
    current_to: Option<Timestamp>,
    /// The broad subscriptions resume from this time, at the next resync.
    resume_since: Option<Timestamp>,
}

impl Subscriber {
    pub(super) fn new(shared: Arc<SharedFeed>, tenant: Option<Tenant>, key: Option<KeyId>) -> Self {
        let batches = shared.batches.subscribe();
        let (jobs, queues) = (HashMap::new(), HashMap::new());
        Self { shared, batches, jobs, queues, all: None, tenant, key, current_to: None, resume_since: None }
    }

    /// The error of a subscription that would exceed a limit.
    pub(super) fn exceeds_limit(&self, subscription: &Subscription) -> Option<(Code, String)> {
        fn added<'a, T: Eq + std::hash::Hash>(current: &HashMap<T, u64>, requested: &'a [T]) -> Vec<&'a T> {
            requested.iter().filter(|one| !current.contains_key(one)).collect::<HashSet<_>>().into_iter().collect()
        }
        let (jobs, queues) = (added(&self.jobs, &subscription.jobs), added(&self.queues, &subscription.queues));
        if self.jobs.len() + jobs.len() > MAX_JOBS || self.queues.len() + queues.len() > MAX_QUEUES {
            let text =
                format!("one connection may subscribe to {MAX_JOBS} jobs and {MAX_QUEUES} queues, and to all jobs");
            return Some((Code::ValidationFailed, text));
        }
        (!self.shared.lock().tracker.has_room(&jobs, self.key.as_ref())).then(|| {
            let text = "the server or the key has too many subscriptions to single jobs; try again later";
            (Code::RateLimited, text.into())
        })
    }

    /// Adds subscriptions. Returns the updates that were pending, and then the initial state of the new subscriptions
    /// as far as it is known. The rest follows in batches.
    pub(super) fn subscribe(&mut self, subscription: Subscription) -> Result<Vec<JobUpdate>, ResyncReason> {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        // Pending batches are older than the initial state, so they are delivered before it.
        let pending = self.drain_pending();
        let last_batch = state.last_batch;
        let was_broad = self.is_broad();
        let mut initial = Vec::new();
        let mut queues = HashSet::new();
        for queue in subscription.queues {
            if let Entry::Vacant(vacant) = self.queues.entry(queue) {
                queues.insert(vacant.key().clone());
                vacant.insert(last_batch);
            }
        }
        let all = subscription.all && self.all.is_none();
        if all {
            self.all = Some(last_batch);
        }
        if all || !queues.is_empty() {
            match subscription.since {
                Some(_) => self.resume_since = self.resume_since.into_iter().chain(subscription.since).min(),
                None => initial = state.tracker.running(|queue| all || queues.contains(queue)),
            }
        }
        if !was_broad && self.is_broad() {
            state.tracker.add_broad_subscriber();
            self.current_to = state.tracker.polled_at();
        }
        for id in subscription.jobs {
            if let Entry::Vacant(vacant) = self.jobs.entry(id) {
                initial.extend(state.tracker.watch(id, self.key.as_ref()));
                vacant.insert(last_batch);
            }
        }
        drop(state);
        shared.wake();
        let mut updates = Vec::new();
        for batch in pending? {
            updates.extend(self.select(&batch));
        }
        // A job may be covered by several of the subscriptions.
        let mut ids = HashSet::new();
        initial.retain(|update| ids.insert(update.id()));
        updates.extend(self.visible(initial));
        Ok(updates)
    }

    // The batches that were published and not received yet.
    fn drain_pending(&mut self) -> Result<Vec<Arc<ChangeBatch>>, ResyncReason> {
        let mut batches = Vec::new();
        loop {
            match self.batches.try_recv() {
                Ok(batch) if batch.overflowed && self.is_broad() => return Err(ResyncReason::Lagged),
                Ok(batch) => batches.push(batch),
                Err(TryRecvError::Lagged(_)) => return Err(ResyncReason::Lagged),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return Ok(batches),
            }
        }
    }

    /// Removes subscriptions.
    pub(super) fn unsubscribe(&mut self, subscription: &Subscription) {
        let mut state = self.shared.lock();
        let was_broad = self.is_broad();
        for id in &subscription.jobs {
            if self.jobs.remove(id).is_some() {
                state.tracker.unwatch(*id);
            }
        }
        self.queues.retain(|queue, _| !subscription.queues.contains(queue));
        if subscription.all {
            self.all = None;
        }
        if was_broad && !self.is_broad() {
            state.tracker.remove_broad_subscriber();
            (self.current_to, self.resume_since) = (None, None);
        }
    }

    /// Waits for the next batch, or for the need to resync.
    pub(super) async fn next_batch(&mut self) -> Result<Arc<ChangeBatch>, ResyncReason> {
        if self.resume_since.is_some() && self.shared.lock().tracker.polled_at().is_some() {
            return Err(ResyncReason::Resumed);
        }
        match self.batches.recv().await {
            Ok(batch) if batch.overflowed && self.is_broad() => Err(ResyncReason::Lagged),
            Ok(batch) => Ok(batch),
            Err(RecvError::Lagged(_)) => Err(ResyncReason::Lagged),
            // The feed is gone because the server shuts down, which the caller learns elsewhere.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }

    /// Returns the current state of all subscriptions, and continues from there. A broad subscription gets the running
    /// jobs and all changes since it was current; watched jobs are all included.
    pub(super) fn resync(&mut self) -> Resync {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        self.batches = self.batches.resubscribe();
        let (mut updates, mut incomplete_until) = (Vec::new(), None);
        if state.tracker.polled_at().is_none() {
            // A resumed subscription is served after the first poll.
            incomplete_until = self.resume_since;
        } else if self.is_broad() {
            let resumed = self.resume_since.take().map(|since| earlier(since, RESUME_MARGIN));
            // A subscription that has not received a batch yet gets the whole buffer.
            let since = resumed.into_iter().chain(self.current_to).min().unwrap_or(Timestamp::MIN);
            let covers = |update: &JobUpdate| match update {
                JobUpdate::Status(status) => self.all.is_some() || self.queues.contains_key(&status.job.queue),
                JobUpdate::NotFound(_) => false,
            };
            let snapshot = state.snapshot().iter();
            let entries =
                snapshot.filter(|entry| (entry.running || entry.changed_at >= since) && covers(&entry.update));
            updates = entries.map(|entry| entry.update.clone()).collect();
            incomplete_until = state.tracker.incomplete_until(since);
            self.current_to = state.tracker.polled_at();
        }
        let numbers = self.queues.values_mut().chain(self.jobs.values_mut()).chain(&mut self.all);
        numbers.for_each(|number| *number = state.last_batch);
        let included: HashSet<JobId> = updates.iter().map(JobUpdate::id).collect();
        let mut unknown = Vec::new();
        for id in self.jobs.keys().filter(|id| !included.contains(id)) {
            match state.tracker.latest(*id) {
                Some(update) => updates.push(update),
                // It has not been read yet, or the update that it does not exist was lost.
                None => unknown.push(*id),
            }
        }
        state.tracker.requeue_lookups(&unknown);
        drop(state);
        self.shared.wake();
        Resync { updates: self.visible(updates), incomplete_until }
    }

    /// The updates of a batch that this subscriber's subscriptions cover.
    pub(super) fn select(&mut self, batch: &ChangeBatch) -> Vec<JobUpdate> {
        let is_newer = |number: Option<&u64>| number.is_some_and(|number| batch.number > *number);
        // A broad subscription that resumes gets its updates by the resync.
        let broad = self.resume_since.is_none();
        let covers = |update: &&JobUpdate| match update {
            JobUpdate::NotFound(id) => is_newer(self.jobs.get(id)),
            JobUpdate::Status(status) => {
                (broad && (is_newer(self.all.as_ref()) || is_newer(self.queues.get(&status.job.queue))))
                    || is_newer(self.jobs.get(&status.job.id))
            }
        };
        let updates = batch.updates.iter().filter(covers).cloned().collect();
        if broad {
            self.current_to = batch.polled_at.or(self.current_to);
        }
        self.visible(updates)
    }

    // Hides other tenants' jobs: a watched one does not exist for this subscriber, others are skipped. A watched job
    // that does not exist is unsubscribed.
    fn visible(&mut self, updates: Vec<JobUpdate>) -> Vec<JobUpdate> {
        let visible = |update: JobUpdate| {
            let id = update.id();
            match &update {
                JobUpdate::Status(status) if self.tenant.as_ref().is_none_or(|tenant| *tenant == status.job.tenant) => {
                    Some(update)
                }
                JobUpdate::Status(_) | JobUpdate::NotFound(_) => self.jobs.remove(&id).map(|_| {
                    self.shared.lock().tracker.unwatch(id);
                    JobUpdate::NotFound(id)
                }),
            }
        };
        updates.into_iter().filter_map(visible).collect()
    }

    fn is_broad(&self) -> bool {
        self.all.is_some() || !self.queues.is_empty()
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let jobs = self.jobs.keys().copied().collect();
        let queues = self.queues.keys().cloned().collect();
        self.unsubscribe(&Subscription { jobs, queues, all: true, since: None });
    }
}
