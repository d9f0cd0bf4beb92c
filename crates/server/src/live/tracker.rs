//! The job tracker: decides what to poll for, compares the results with what it knows, and returns the updates to
//! publish. It is pure computation; `feed` queries the store and publishes the updates.

use std::{
    collections::HashSet,
    sync::{Arc, OnceLock},
    time::Duration,
};

use orchestrix_core::{JobId, JobState, KeyId, Queue, Timestamp};
use orchestrix_store::{ChangesPage, ChangesQuery, JobChange, JobSummary, changes::MAX_CHANGES};

use uuid::Uuid;

use super::{
    lease_scan::LeaseScan,
    message,
    replay_buffer::{ReplayBuffer, Snapshot},
    watched_jobs::WatchedJobs,
};

/// How far a poll reads back before the previous one.
const LOOKBACK: Duration = Duration::from_millis(500);
/// How far the first poll reads back, and every [`LONG_LOOKBACK_EVERY`]th one, for changes whose commit was late.
/// Longer than any statement may take, in any store, and than clocks should differ.
const LONG_LOOKBACK: Duration = Duration::from_secs(60);
const LONG_LOOKBACK_EVERY: u64 = 25;
/// Every so many polls a scan of the unfinished jobs begins, and an overflow is reported: about once a second.
const SCAN_EVERY: u64 = 5;
/// Every so many polls a batch is sent even if it is empty, so that subscribers know the time up to which they are
/// current.
const EMPTY_BATCH_EVERY: u64 = 50;

/// The status of a job, with its serialized event.
#[derive(Debug)]
pub(super) struct StatusUpdate {
    pub(super) job: Arc<JobChange>,
    text: OnceLock<String>,
}

impl StatusUpdate {
    /// The event without its sequence number and end. Serialized once for all subscribers.
    pub(super) fn text(&self) -> &str {
        self.text.get_or_init(|| message::status_prefix(&self.job))
    }
}

/// An update of one job, for its subscribers.
#[derive(Debug, Clone)]
pub(super) enum JobUpdate {
    Status(Arc<StatusUpdate>),
    NotFound(JobId),
}

impl JobUpdate {
    pub(super) fn status(job: &Arc<JobChange>) -> Self {
        Self::Status(Arc::new(StatusUpdate { text: OnceLock::new(), job: Arc::clone(job) }))
    }

    pub(super) fn id(&self) -> JobId {
        match self {
            Self::Status(update) => update.job.id,
            Self::NotFound(id) => *id,
        }
    }
}

/// What the server knows about the jobs that are subscribed to.
#[derive(Debug, Default)]
pub(super) struct JobTracker {
    watched: WatchedJobs,
    /// Watched jobs to read before the next poll.
    watched_lookups: HashSet<JobId>,
    /// Other jobs to read before the next poll.
    other_lookups: HashSet<JobId>,
    /// The number of subscribers with a broad subscription: to queues or all jobs.
    broad_subscribers: usize,
    replay: ReplayBuffer,
    leases: LeaseScan,
    /// Where the scan of the unfinished jobs continues.
    unfinished_cursor: Option<JobId>,
    /// The store's time of the last poll. Before the first poll, the time when it begins.
    now: Option<Timestamp>,
    /// Whether the next poll is the first one.
    first_poll: bool,
    /// Whether the first poll has ended and no batch reports it yet.
    first_poll_ended: bool,
    polls: u64,
    /// Whether a poll found more changes than it could return, and no batch reports it yet.
    overflowed: bool,
}

impl JobTracker {
    /// Whether there is no subscription.
    pub(super) fn is_idle(&self) -> bool {
        self.watched.is_empty() && self.broad_subscribers == 0
    }

    fn is_broad(&self) -> bool {
        self.broad_subscribers > 0
    }

    /// Whether a key may watch these jobs. Jobs that are watched already cost nothing.
    pub(super) fn has_room(&self, ids: &[&JobId], key: Option<&KeyId>) -> bool {
        ids.iter().filter(|id| !self.watched.contains(id)).count() <= self.watched.room(key)
    }

    /// Adds a subscription to a job. Returns its status if it is known; otherwise the job is read at once.
    pub(super) fn watch(&mut self, id: JobId, key: Option<&KeyId>) -> Option<JobUpdate> {
        self.watched.add(id, key);
        let latest = self.latest(id);
        if latest.is_none() {
            self.watched_lookups.insert(id);
        }
        latest
    }

    /// Removes a subscription that [`Self::watch`] added.
    pub(super) fn unwatch(&mut self, id: JobId) {
        if self.watched.remove(id) {
            self.watched_lookups.remove(&id);
            // For broad subscriptions it stays in the replay buffer until it is evicted.
            if !self.is_broad() {
                self.replay.remove(id);
            }
        }
    }

    /// Whether any subscription may cover this job.
    fn is_relevant(&self, id: JobId) -> bool {
        self.is_broad() || self.watched.contains(&id)
    }

    pub(super) fn add_broad_subscriber(&mut self) {
        self.broad_subscribers += 1;
    }

    pub(super) fn remove_broad_subscriber(&mut self) {
        self.broad_subscribers -= 1;
        if self.broad_subscribers == 0 {
            // The next broad subscriber starts afresh, because what is known now will be out of date by then.
            let watched = &self.watched;
            self.replay.retain_only(|id| watched.contains(id));
            self.other_lookups.clear();
            self.leases = LeaseScan::default();
            (self.now, self.overflowed, self.first_poll_ended, self.unfinished_cursor) = (None, false, false, None);
        }
    }

    /// Queues jobs to be read for broad subscriptions.
    pub(super) fn queue_lookups(&mut self, ids: &[JobId]) {
        if self.is_broad() {
            let room = MAX_CHANGES.saturating_sub(self.other_lookups.len());
            self.other_lookups.extend(ids.iter().take(room));
        }
    }

    /// Queues jobs again that could not be read, or that a resync did not find.
    pub(super) fn requeue_lookups(&mut self, ids: &[JobId]) {
        let (watched, others): (Vec<JobId>, Vec<JobId>) = ids.iter().partition(|id| self.watched.contains(id));
        self.watched_lookups.extend(watched);
        self.queue_lookups(&others);
    }

    /// Removes and returns the queued jobs.
    pub(super) fn take_lookups(&mut self) -> Vec<JobId> {
        let watched = std::mem::take(&mut self.watched_lookups).into_iter();
        watched.chain(std::mem::take(&mut self.other_lookups)).collect()
    }

    fn is_running(&self, job: &JobChange) -> bool {
        job.state.is_leased() || self.leases.contains(job.id)
    }

    /// The running jobs in the queues that the filter accepts.
    pub(super) fn running(&self, in_queue: impl Fn(&Queue) -> bool) -> Vec<JobUpdate> {
        // Searches the replay buffer, not the lease scan: a watched job may be running without having been scanned.
        self.replay.jobs().filter(|job| in_queue(&job.queue) && self.is_running(job)).map(JobUpdate::status).collect()
    }

    /// All jobs in the replay buffer, for a resync.
    pub(super) fn snapshot(&self) -> Snapshot {
        self.replay.snapshot(|job| self.is_running(job))
    }

    /// If the snapshot lacks changes after `since`: the time up to which changes may be missing.
    pub(super) fn incomplete_until(&self, since: Timestamp) -> Option<Timestamp> {
        self.now.and_then(|now| self.replay.incomplete_until(since, now))
    }

    /// The last known status of a job.
    pub(super) fn latest(&self, id: JobId) -> Option<JobUpdate> {
        self.replay.get(id).map(JobUpdate::status)
    }

    /// The time of the last poll for broad subscriptions; `None` before the first one.
    pub(super) fn polled_at(&self) -> Option<Timestamp> {
        self.now.filter(|_| !self.first_poll)
    }

    /// Whether the store's time must be read before the first poll.
    pub(super) fn needs_time(&self) -> bool {
        self.is_broad() && self.now.is_none()
    }

    pub(super) fn set_time(&mut self, now: Timestamp) {
        if self.needs_time() {
            (self.now, self.first_poll) = (Some(now), true);
        }
    }

    /// Begins a poll, and returns the query of recent changes for broad subscriptions.
    ///
    /// The first poll reads back as far as any later one might. Its results fill the replay buffer, so that later
    /// polls do not publish them as changes.
    pub(super) fn begin_poll(&mut self) -> Option<ChangesQuery> {
        self.polls += 1;
        let now = self.now.filter(|_| self.is_broad())?;
        let lookback = if self.first_poll { LONG_LOOKBACK } else { LOOKBACK };
        let scanned_since = self.leases.complete_since().unwrap_or(now).min(now);
        let long = self.first_poll || self.polls.is_multiple_of(LONG_LOOKBACK_EVERY);
        // The first poll reads all enqueued jobs of the last minute itself. Later scans are not run at every poll,
        // because they visit index entries of finished jobs.
        let begins_scan = !self.first_poll && self.polls.is_multiple_of(SCAN_EVERY);
        let nil = JobId::from_uuid(Uuid::nil());
        let floor = JobId::floor(now - LONG_LOOKBACK).max(self.replay.evicted_through().unwrap_or(nil));
        Some(ChangesQuery {
            enqueued_since: Some(now - lookback),
            finished_since: Some(scanned_since - lookback),
            cancelled_since: long.then(|| now - LONG_LOOKBACK),
            redriven_since: Some(now - if long { LONG_LOOKBACK } else { LOOKBACK }),
            ids_after: self.unfinished_cursor.or(begins_scan.then_some(floor)).map(|after| after.max(floor)),
            leased_after: self.leases.cursor(),
            limit: MAX_CHANGES,
        })
    }

    /// The watched jobs that may still change, to be read by id. Jobs without a known status are among the lookups.
    pub(super) fn watched_ids(&self) -> Vec<JobId> {
        let may_change = |id: &&JobId| self.replay.get(**id).is_some_and(|job| job.state != JobState::Completed);
        self.watched.ids().filter(may_change).copied().collect()
    }

    /// Applies the result of a query of recent changes. Returns the updates, and the jobs to read by id.
    pub(super) fn apply_changes(&mut self, query: &ChangesQuery, recent: ChangesPage) -> (Vec<JobUpdate>, Vec<JobId>) {
        // The last broad subscriber left during the query, and the next one starts afresh.
        if self.now.is_none() || !self.is_broad() || query.leased_after != self.leases.cursor() {
            return (Vec::new(), Vec::new());
        }
        let now = recent.now;
        let previous = self.now.take();
        let first = std::mem::take(&mut self.first_poll);
        self.first_poll_ended |= first;
        self.leases.begin_page(now, recent.leased_from);
        let mut updates = Vec::new();
        for job in recent.jobs {
            // The first poll publishes no change from before the subscription, except of running and watched jobs.
            let new = Some(job.at) >= previous.map(|previous| previous - LOOKBACK);
            let publish = !first || new || job.state.is_leased() || self.watched.contains(&job.id);
            updates.extend(self.record(job, now).filter(|_| publish));
        }
        if first {
            self.replay.mark_incomplete(now - LONG_LOOKBACK);
        }
        if first && recent.more {
            // The poll may lack waiting jobs that are older than the ones it returned.
            let floor = JobId::floor(now - LONG_LOOKBACK);
            let is_waiting = |job: &&Arc<JobChange>| !job.state.is_leased() && !job.state.is_terminal();
            let waiting = self.replay.jobs().filter(is_waiting).map(|job| job.id);
            if let Some(oldest) = waiting.filter(|id| *id >= floor && !self.watched.contains(id)).min() {
                self.replay.mark_evicted_through(oldest);
            }
        }
        let overflowed = self.leases.end_page(recent.leased_next) || recent.more;
        if overflowed {
            self.replay.mark_incomplete(now);
        }
        self.overflowed |= overflowed && !first;
        self.now = Some(now);
        let mut lookups = self.leases.take_ended(MAX_CHANGES);
        lookups.extend(recent.ids.into_iter().filter(|id| self.replay.get(*id).is_none()));
        self.unfinished_cursor = recent.ids_next;
        (updates, lookups)
    }

    /// Applies the states of watched jobs. Returns an update for each job that no longer exists, and the jobs whose
    /// status has changed, to be read by id.
    pub(super) fn apply_states(&mut self, ids: &[JobId], states: &[(JobId, JobState)]) -> (Vec<JobUpdate>, Vec<JobId>) {
        let status = |id: &JobId| self.replay.get(*id).map(|job| job.status());
        let changed =
            states.iter().filter(|(id, state)| status(id) != Some(state.status())).map(|(id, _)| *id).collect();
        let existing: HashSet<JobId> = states.iter().map(|(id, _)| *id).collect();
        (self.remove_missing(ids, &existing), changed)
    }

    /// Applies jobs that were read by id. Returns the updates.
    pub(super) fn apply_jobs(&mut self, ids: &[JobId], jobs: Vec<JobSummary>) -> Vec<JobUpdate> {
        let existing: HashSet<JobId> = jobs.iter().map(|job| job.id).collect();
        let mut updates = self.remove_missing(ids, &existing);
        for job in jobs {
            // Before the first poll the time is unknown, and nothing is evicted by it.
            let now = self.now.unwrap_or(job.updated_at);
            updates.extend(self.record(job.into(), now));
        }
        updates
    }

    // The subscriber ends its subscription when it receives the update: see `Subscriber`. Until then the job is not
    // read again.
    fn remove_missing(&mut self, ids: &[JobId], existing: &HashSet<JobId>) -> Vec<JobUpdate> {
        let missing = ids.iter().filter(|id| !existing.contains(id));
        missing
            .filter_map(|id| {
                self.replay.remove(*id);
                self.leases.remove(*id);
                self.watched.contains(id).then_some(JobUpdate::NotFound(*id))
            })
            .collect()
    }

    // Records a job's status. Returns an update if it has changed.
    fn record(&mut self, job: JobChange, now: Timestamp) -> Option<JobUpdate> {
        // Its last subscriber left while it was read.
        if !self.is_relevant(job.id) {
            return None;
        }
        if self.is_broad() && job.state.is_leased() {
            self.leases.insert(job.id);
        } else {
            self.leases.remove(job.id);
        }
        self.replay.record(job, now).as_ref().map(JobUpdate::status)
    }

    /// Ends a poll: evicts old and surplus jobs from the replay buffer.
    pub(super) fn evict(&mut self) {
        let Self { watched, leases, replay, now: Some(now), .. } = self else { return };
        replay.evict(*now, |id| watched.contains(id) || leases.contains(*id));
    }

    /// Whether to report an overflow to broad subscribers now; at most about once a second.
    pub(super) fn take_overflow(&mut self) -> bool {
        let overflowed = self.polls.is_multiple_of(SCAN_EVERY) && std::mem::take(&mut self.overflowed);
        if let Some(now) = self.now.filter(|_| overflowed) {
            // Subscribers have received batches of later polls than the one that overflowed.
            self.replay.mark_incomplete(now);
        }
        overflowed
    }

    /// Whether to send a batch even if it is empty: after the first poll, which resuming subscribers wait for, and
    /// once in a while.
    pub(super) fn takes_empty_batch(&mut self) -> bool {
        std::mem::take(&mut self.first_poll_ended) || (self.is_broad() && self.polls.is_multiple_of(EMPTY_BATCH_EVERY))
    }
}
