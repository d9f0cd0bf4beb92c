//! The replay buffer: the last known status of each job, and when it changed. It detects changes, and serves resyncs.
//!
//! It is bounded by time and by number. It knows what it has dropped, so that a resync can say whether it is complete.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use orchestrix_core::{JobId, Timestamp};
use orchestrix_store::JobChange;

use super::tracker::JobUpdate;

/// How long a job is kept after the last poll that returned it. Longer than any poll reads back.
const RETENTION: Duration = Duration::from_secs(90);
/// The most finished jobs.
const MAX_FINISHED: usize = 100_000;
/// The most waiting jobs.
const MAX_WAITING: usize = 50_000;

#[derive(Debug)]
struct BufferedJob {
    job: Arc<JobChange>,
    /// The store's time of the first poll that returned this status.
    changed_at: Timestamp,
    /// The store's time of the last poll that returned the job.
    seen_at: Timestamp,
}

#[derive(Debug, Default)]
pub(super) struct ReplayBuffer {
    jobs: HashMap<JobId, BufferedJob>,
    /// Changes up to this time may be missing.
    incomplete_until: Option<Timestamp>,
    /// Waiting jobs up to this id may be missing.
    evicted_through: Option<JobId>,
}

/// A job in a [`Snapshot`].
#[derive(Debug)]
pub(super) struct SnapshotEntry {
    pub(super) changed_at: Timestamp,
    pub(super) running: bool,
    pub(super) update: JobUpdate,
}

/// All jobs in the buffer, the oldest change first. Shared by all subscribers that resync at the same time.
pub(super) type Snapshot = Vec<SnapshotEntry>;

impl ReplayBuffer {
    pub(super) fn get(&self, id: JobId) -> Option<&Arc<JobChange>> {
        self.jobs.get(&id).map(|buffered| &buffered.job)
    }

    pub(super) fn jobs(&self) -> impl Iterator<Item = &Arc<JobChange>> {
        self.jobs.values().map(|buffered| &buffered.job)
    }

    /// Records a job that a poll returned. Returns it if its status has changed.
    pub(super) fn record(&mut self, job: JobChange, now: Timestamp) -> Option<Arc<JobChange>> {
        let entry = self.jobs.entry(job.id);
        if let Entry::Occupied(mut occupied) = entry {
            let buffered = occupied.get_mut();
            buffered.seen_at = now;
            if buffered.job.status() == job.status() {
                return None;
            }
            (buffered.job, buffered.changed_at) = (Arc::new(job), now);
            return Some(Arc::clone(&buffered.job));
        }
        let job = Arc::new(job);
        entry.or_insert(BufferedJob { job: Arc::clone(&job), changed_at: now, seen_at: now });
        Some(job)
    }

    pub(super) fn remove(&mut self, id: JobId) {
        self.jobs.remove(&id);
    }

    /// Notes that changes up to this time may be missing.
    pub(super) fn mark_incomplete(&mut self, until: Timestamp) {
        self.incomplete_until = self.incomplete_until.max(Some(until));
    }

    /// Notes that waiting jobs up to this id may be missing.
    pub(super) fn mark_evicted_through(&mut self, id: JobId) {
        self.evicted_through = self.evicted_through.max(Some(id));
    }

    /// Waiting jobs after this id are all in the buffer.
    pub(super) fn evicted_through(&self) -> Option<JobId> {
        self.evicted_through
    }

    /// If the buffer lacks changes after `since`: the time up to which changes may be missing.
    pub(super) fn incomplete_until(&self, since: Timestamp, now: Timestamp) -> Option<Timestamp> {
        self.incomplete_until.max(Some(now - RETENTION)).filter(|until| *until >= since)
    }

    /// Removes all other jobs, and forgets what is missing.
    pub(super) fn retain_only(&mut self, keep: impl Fn(&JobId) -> bool) {
        self.jobs.retain(|id, _| keep(id));
        (self.incomplete_until, self.evicted_through) = (None, None);
    }

    pub(super) fn snapshot(&self, is_running: impl Fn(&JobChange) -> bool) -> Snapshot {
        let entries = self.jobs.values().map(|buffered| SnapshotEntry {
            changed_at: buffered.changed_at,
            running: is_running(&buffered.job),
            update: JobUpdate::status(&buffered.job),
        });
        let mut snapshot: Snapshot = entries.collect();
        snapshot.sort_unstable_by_key(|entry| entry.changed_at);
        snapshot
    }

    /// Evicts jobs that no poll will return again, and the oldest of those beyond the limits, except pinned ones.
    pub(super) fn evict(&mut self, now: Timestamp, is_pinned: impl Fn(&JobId) -> bool) {
        let oldest = now - RETENTION;
        self.jobs.retain(|id, buffered| buffered.seen_at >= oldest || is_pinned(id));
        for (finished, max) in [(true, MAX_FINISHED), (false, MAX_WAITING)] {
            let evictable = |(id, buffered): &(&JobId, &BufferedJob)| {
                buffered.job.state.is_terminal() == finished && !is_pinned(id)
            };
            let count = self.jobs.iter().filter(evictable).count();
            if count <= max {
                continue;
            }
            // Evicts a tenth more than necessary, so that not every poll has to select the oldest.
            let surplus = count - max + max / 10;
            let mut oldest: Vec<(Timestamp, JobId, Timestamp)> = self
                .jobs
                .iter()
                .filter(evictable)
                .map(|(id, buffered)| (buffered.seen_at, *id, buffered.changed_at))
                .collect();
            oldest.select_nth_unstable(surplus - 1);
            for (_, id, changed_at) in &oldest[..surplus] {
                self.jobs.remove(id);
                self.mark_incomplete(*changed_at);
                if !finished {
                    self.mark_evicted_through(*id);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_core::{JobState, JobType, Queue, Tenant};
    use uuid::Uuid;

    use super::*;

    fn job(n: usize, state: JobState) -> JobChange {
        JobChange {
            id: JobId::from_uuid(Uuid::from_u128(n as u128)),
            job_type: JobType::new("t").unwrap(),
            queue: Queue::new("q").unwrap(),
            tenant: Tenant::default(),
            state,
            at: Timestamp::UNIX_EPOCH,
        }
    }

    fn at(millis: usize) -> Timestamp {
        Timestamp::from_millisecond(1_000_000_000 + millis as i64).unwrap()
    }

    #[test]
    fn an_unchanged_status_is_no_update_and_keeps_its_time() {
        let mut buffer = ReplayBuffer::default();
        assert!(buffer.record(job(1, JobState::Pending), at(0)).is_some());
        assert!(
            buffer.record(job(1, JobState::Scheduled), at(5)).is_none(),
            "clients see both states as the same status"
        );
        assert!(buffer.record(job(1, JobState::Running), at(10)).is_some());
        assert!(buffer.record(job(1, JobState::Running), at(20)).is_none());
        let snapshot = buffer.snapshot(|job| job.state.is_leased());
        assert!(matches!(snapshot[..], [SnapshotEntry { changed_at, running: true, .. }] if changed_at == at(10)));
    }

    #[test]
    fn evicted_changes_are_reported_as_missing() {
        let (mut buffer, none_pinned) = (ReplayBuffer::default(), |_: &JobId| false);
        assert_eq!(buffer.incomplete_until(at(0), at(1)), None);
        for n in 0..MAX_FINISHED + MAX_WAITING / 2 {
            buffer.record(job(n, JobState::Completed), at(n / 10));
        }
        buffer.evict(at(20_000), none_pinned);
        let until = buffer.incomplete_until(at(0), at(20_000)).expect("more jobs finished than the buffer holds");
        assert_eq!(buffer.incomplete_until(until + Duration::from_millis(1), at(20_000)), None);
        assert_eq!(buffer.evicted_through(), None, "no waiting job was evicted");
        let left = buffer.snapshot(|_| false);
        assert!(
            left.len() <= MAX_FINISHED && left.iter().all(|entry| entry.changed_at >= until),
            "the newest are kept"
        );
        // Later all of them are evicted by age.
        buffer.evict(at(200_000), none_pinned);
        assert_eq!(buffer.jobs().count(), 0);
        assert_eq!(buffer.incomplete_until(at(150_000), at(200_000)), None);
        assert!(buffer.incomplete_until(at(100_000), at(200_000)).is_some());
    }

    #[test]
    fn surplus_waiting_jobs_are_evicted_up_to_an_id_and_pinned_ones_are_kept() {
        let mut buffer = ReplayBuffer::default();
        for n in 0..MAX_WAITING + 2 {
            buffer.record(job(n, JobState::Pending), at(n));
        }
        let pinned = job(3, JobState::Pending).id;
        buffer.evict(at(MAX_WAITING), |id| *id == pinned);
        let evicted = buffer.evicted_through().expect("there were too many");
        assert!(buffer.get(pinned).is_some());
        assert!(buffer.jobs().all(|job| job.id > evicted || job.id == pinned));
        buffer.retain_only(|id| *id == pinned);
        assert_eq!((buffer.jobs().count(), buffer.evicted_through()), (1, None));
    }
}
