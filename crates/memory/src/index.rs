//! Indexes over jobs.
//!
//! Every index is a function of the rows and the paused queues alone. A row is removed before it changes and added
//! after, so no call needs to know which indexes it affects.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use orchestrix_core::{Event, JobId, JobState, JobType, Priority, Queue, Timestamp};

use crate::row::Row;

/// The sort key of claimable jobs: highest priority, then the tenant's ring position, then longest eligible, then lowest
/// id.
pub(crate) type ClaimOrder = (Reverse<Priority>, i64, Timestamp, JobId);

/// Jobs by a time, earliest first.
pub(crate) type ByTime = BTreeSet<(Timestamp, JobId)>;

/// All indexes over the rows.
#[derive(Debug, Default)]
pub(crate) struct Indexes {
    /// The unfinished jobs of each queue. Queues without any are absent.
    pub(crate) queues: BTreeMap<Queue, QueueIndex>,
    /// Queues that are paused.
    paused: BTreeSet<Queue>,
    /// Claimable jobs of queues that are not paused, in claim order.
    pub(crate) claimable: BTreeSet<ClaimOrder>,
    /// The same jobs by type. Types without any are absent.
    pub(crate) types: BTreeMap<JobType, BTreeSet<ClaimOrder>>,
    /// Jobs that wait for a time, by that time.
    pub(crate) due: ByTime,
    /// Leased jobs, by when their lease expires.
    pub(crate) leases: ByTime,
    /// Leased jobs with a timeout, by when it elapses.
    pub(crate) timeouts: ByTime,
    /// Jobs that have not started, by when they expire.
    pub(crate) expiries: ByTime,
    /// Finished jobs, by when they finished.
    pub(crate) finished: BTreeMap<JobState, ByTime>,
    by_state: BTreeMap<JobState, BTreeSet<JobId>>,
}

/// The unfinished jobs of one queue.
#[derive(Debug, Default)]
pub(crate) struct QueueIndex {
    /// Claimable jobs, in claim order.
    pub(crate) claimable: BTreeSet<ClaimOrder>,
    /// The same jobs by type. Types without any are absent.
    pub(crate) lanes: BTreeMap<JobType, BTreeSet<ClaimOrder>>,
    /// Claimable jobs, by when they became eligible.
    pub(crate) waiting: ByTime,
    /// The number of jobs in each state. States without any are absent.
    pub(crate) counts: BTreeMap<JobState, u64>,
}

impl Indexes {
    pub(crate) fn add(&mut self, row: &Row) {
        let job = &row.job;
        self.by_state.entry(job.state).or_default().insert(job.id);
        self.each_time(row, |times, entry| {
            times.insert(entry);
        });
        if job.state.is_terminal() {
            return;
        }
        let queue = self.queues.entry(job.queue.clone()).or_default();
        *queue.counts.entry(job.state).or_default() += 1;
        if job.state == JobState::Pending {
            let entry = claim_order(row);
            queue.waiting.insert((job.eligible_at, job.id));
            queue.claimable.insert(entry);
            queue.lanes.entry(job.job_type.clone()).or_default().insert(entry);
            if !self.paused.contains(&job.queue) {
                self.claimable.insert(entry);
                self.types.entry(job.job_type.clone()).or_default().insert(entry);
            }
        }
    }

    pub(crate) fn remove(&mut self, row: &Row) {
        let job = &row.job;
        if let Some(ids) = self.by_state.get_mut(&job.state) {
            ids.remove(&job.id);
        }
        self.each_time(row, |times, entry| {
            times.remove(&entry);
        });
        let Some(queue) = self.queues.get_mut(&job.queue) else { return };
        if let Some(count) = queue.counts.get_mut(&job.state) {
            *count -= 1;
        }
        queue.counts.retain(|_, count| *count > 0);
        let entry = claim_order(row);
        remove_typed(&mut queue.lanes, &job.job_type, entry);
        queue.claimable.remove(&entry);
        remove_typed(&mut self.types, &job.job_type, entry);
        self.claimable.remove(&entry);
        queue.waiting.remove(&(job.eligible_at, job.id));
        if queue.counts.is_empty() {
            self.queues.remove(&job.queue);
        }
    }

    /// Excludes the jobs of a queue from claims that name no queue, so that such claims need not skip them.
    pub(crate) fn pause(&mut self, queue: &Queue) {
        self.paused.insert(queue.clone());
        for (job_type, lane) in self.queues.get(queue).iter().flat_map(|queue| &queue.lanes) {
            for entry in lane {
                self.claimable.remove(entry);
                remove_typed(&mut self.types, job_type, *entry);
            }
        }
    }

    /// Undoes [`pause`](Indexes::pause).
    pub(crate) fn resume(&mut self, queue: &Queue) {
        self.paused.remove(queue);
        for (job_type, lane) in self.queues.get(queue).iter().flat_map(|queue| &queue.lanes) {
            self.claimable.extend(lane);
            self.types.entry(job_type.clone()).or_default().extend(lane);
        }
    }

    /// The paused queues, by name.
    pub(crate) const fn paused(&self) -> &BTreeSet<Queue> {
        &self.paused
    }

    // The state machine decides which times matter: a job waits for a time only if its state allows the event.
    fn each_time(&mut self, row: &Row, mut visit: impl FnMut(&mut ByTime, (Timestamp, JobId))) {
        let job = &row.job;
        if job.state.next(Event::Promote).is_ok() {
            visit(&mut self.due, (job.eligible_at, job.id));
        }
        if let Some(time) = job.lease_expires_at {
            visit(&mut self.leases, (time, job.id));
        }
        if let Some(time) = row.timeout_at {
            visit(&mut self.timeouts, (time, job.id));
        }
        if let Some(time) = job.expires_at
            && job.started_at.is_none()
            && job.state.next(Event::Expire).is_ok()
        {
            visit(&mut self.expiries, (time, job.id));
        }
        if let Some(time) = job.finished_at {
            visit(self.finished.entry(job.state).or_default(), (time, job.id));
        }
    }

    /// Ids of jobs in any of `states` (all if empty) within `range`, newest first.
    pub(crate) fn newest(&self, states: &[JobState], range: Range<JobId>) -> impl Iterator<Item = JobId> {
        let sets = self.by_state.iter().filter(|(state, _)| states.is_empty() || states.contains(state));
        let mut sources: Vec<_> = sets.map(|(_, ids)| ids.range(range.clone()).rev().copied().peekable()).collect();
        std::iter::from_fn(move || {
            let newest = (0..sources.len()).max_by_key(|i| sources[*i].peek().copied())?;
            sources[newest].next()
        })
    }
}

fn remove_typed(types: &mut BTreeMap<JobType, BTreeSet<ClaimOrder>>, job_type: &JobType, entry: ClaimOrder) {
    if let Some(jobs) = types.get_mut(job_type) {
        jobs.remove(&entry);
        if jobs.is_empty() {
            types.remove(job_type);
        }
    }
}

fn claim_order(row: &Row) -> ClaimOrder {
    (Reverse(row.job.priority), row.ring, row.job.eligible_at, row.job.id)
}
