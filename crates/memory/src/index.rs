//! The orders in which jobs are looked for.
//!
//! Every index is a function of the row alone: a row is taken out before it changes and put back after, so no verb
//! has to remember which of them it touches.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use orchestrix_core::{Event, JobId, JobState, JobType, Priority, Queue, Timestamp};

use crate::row::Row;

/// Where a job stands in the order of claims: highest priority, then longest eligible, then lowest id.
pub(crate) type Place = (Reverse<Priority>, Timestamp, JobId);

/// Jobs by a time, earliest first.
pub(crate) type ByTime = BTreeSet<(Timestamp, JobId)>;

/// All indexes over the rows.
#[derive(Debug, Default)]
pub(crate) struct Indexes {
    /// What each queue holds; queues without unfinished jobs are absent.
    pub(crate) queues: BTreeMap<Queue, QueueIndex>,
    /// Jobs that wait for a time, by it.
    pub(crate) due: ByTime,
    /// Leased jobs, by when their lease ends.
    pub(crate) leases: ByTime,
    /// Leased jobs with a timeout, by when it strikes.
    pub(crate) timeouts: ByTime,
    /// Jobs that have yet to start, by when it is too late.
    pub(crate) expiries: ByTime,
    /// Finished jobs, by when they finished.
    pub(crate) finished: BTreeMap<JobState, ByTime>,
    by_state: BTreeMap<JobState, BTreeSet<JobId>>,
}

/// The unfinished jobs of one queue.
#[derive(Debug, Default)]
pub(crate) struct QueueIndex {
    /// Claimable jobs by type, in the order of claims; types without any are absent.
    pub(crate) lanes: BTreeMap<JobType, BTreeSet<Place>>,
    /// Claimable jobs by when they became so.
    pub(crate) waiting: ByTime,
    /// How many there are in each state; states without any are absent.
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
            queue.waiting.insert((job.eligible_at, job.id));
            queue.lanes.entry(job.job_type.clone()).or_default().insert(place(row));
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
        if let Some(lane) = queue.lanes.get_mut(&job.job_type) {
            lane.remove(&place(row));
            if lane.is_empty() {
                queue.lanes.remove(&job.job_type);
            }
        }
        queue.waiting.remove(&(job.eligible_at, job.id));
        if queue.counts.is_empty() {
            self.queues.remove(&job.queue);
        }
    }

    // The state machine says which times matter: only a job that could take the event waits for its time.
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

    /// Ids of jobs in any of `states` (all, if empty), newest first, within `span`.
    pub(crate) fn newest(&self, states: &[JobState], span: Range<JobId>) -> impl Iterator<Item = JobId> {
        let wanted = self.by_state.iter().filter(|(state, _)| states.is_empty() || states.contains(state));
        let mut sources: Vec<_> = wanted.map(|(_, ids)| ids.range(span.clone()).rev().copied().peekable()).collect();
        std::iter::from_fn(move || {
            let newest = (0..sources.len()).max_by_key(|i| sources[*i].peek().copied())?;
            sources[newest].next()
        })
    }
}

fn place(row: &Row) -> Place {
    (Reverse(row.job.priority), row.job.eligible_at, row.job.id)
}
