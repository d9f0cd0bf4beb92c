//! Claims jobs and extends leases.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap, btree_set},
};

use orchestrix_core::{Event, JobId, JobState, Json, LeaseToken, Queue, Timestamp, WorkerName};
use uuid::Uuid;

use crate::{
    index::{ClaimOrder, QueueIndex},
    row::Row,
    tables::Tables,
};
use orchestrix_store::{ClaimRequest, ClaimedJob, LeaseStatus, Queues, Result, claim::check_tokens, clock::later};

impl Tables {
    pub(crate) fn claim(&mut self, request: &ClaimRequest, now: Timestamp) -> Result<Vec<ClaimedJob>> {
        request.validate()?;
        let chosen: Vec<JobId> = merge_lanes(self.lanes_of(request))
            .filter(|id| self.find(*id).is_some_and(|row| !has_expired(row, now)))
            .take(request.limit)
            .collect();
        chosen.into_iter().map(|id| self.lease(id, &request.worker, now)).collect()
    }

    /// The lanes of every requested queue and type. A paused queue costs nothing, however full it is.
    fn lanes_of(&self, request: &ClaimRequest) -> Vec<btree_set::Iter<'_, ClaimOrder>> {
        let queues: Vec<(&Queue, &QueueIndex)> = match &request.queues {
            Queues::All => self.index.queues.iter().collect(),
            Queues::Named(names) => {
                // A queue that is named twice must not yield its jobs twice.
                let names: BTreeSet<&Queue> = names.iter().collect();
                names.into_iter().filter_map(|name| self.index.queues.get_key_value(name)).collect()
            }
        };
        let types: Option<BTreeSet<_>> = request.job_types.as_ref().map(|types| types.iter().collect());
        queues
            .into_iter()
            .filter(|(queue, _)| !self.paused.contains(*queue))
            .flat_map(|(_, queue)| &queue.lanes)
            .filter(|(job_type, _)| types.as_ref().is_none_or(|types| types.contains(job_type)))
            .map(|(_, lane)| lane.iter())
            .collect()
    }

    fn lease(&mut self, id: JobId, worker: &WorkerName, now: Timestamp) -> Result<ClaimedJob> {
        let row = self.row(id)?;
        let next = row.lifecycle().apply(Event::Claim)?;
        let dependency_results = self.results(&row.job.depends_on);
        let secret = Uuid::from_u128(rand::random());
        self.update(id, |row| {
            row.apply(next, now);
            row.secret = Some(secret);
            let job = &mut row.job;
            let lease_expires_at = later(now, job.lease);
            job.leases += 1;
            job.worker = Some(worker.clone());
            job.started_at = Some(now);
            job.lease_expires_at = Some(lease_expires_at);
            job.progress = None;
            row.timeout_at = job.timeout.map(|timeout| later(now, timeout));
            ClaimedJob {
                token: LeaseToken { job: id, counter: job.leases, secret },
                job_type: job.job_type.clone(),
                queue: job.queue.clone(),
                tenant: job.tenant.clone(),
                priority: job.priority,
                payload: job.payload.clone(),
                attempt: job.attempts + 1,
                max_attempts: job.max_attempts,
                eligible_at: job.eligible_at,
                lease_expires_at,
                lease: job.lease,
                timeout: job.timeout,
                checkpoint: job.checkpoint.clone(),
                correlation_id: job.correlation_id.clone(),
                traceparent: job.traceparent.clone(),
                dependency_results,
            }
        })
    }

    fn results(&self, parents: &[JobId]) -> Vec<(JobId, Json)> {
        let completed =
            parents.iter().filter_map(|id| self.find(*id)).filter(|row| row.job.state == JobState::Completed);
        completed.filter_map(|row| Some((row.job.id, row.job.result.clone()?))).collect()
    }

    pub(crate) fn heartbeat(&mut self, tokens: &[LeaseToken], now: Timestamp) -> Result<Vec<LeaseStatus>> {
        check_tokens(tokens)?;
        tokens.iter().map(|token| self.extend(token, now)).collect()
    }

    fn extend(&mut self, token: &LeaseToken, now: Timestamp) -> Result<LeaseStatus> {
        if self.owned(token).is_err() {
            return Ok(LeaseStatus::Lost);
        }
        self.update(token.job, |row| {
            let until = later(now, row.job.lease);
            row.job.lease_expires_at = Some(until);
            if row.job.cancel_requested { LeaseStatus::Cancel(until) } else { LeaseStatus::Held(until) }
        })
    }
}

/// Whether the job expired before it started. The expiry sweep will cancel it.
fn has_expired(row: &Row, now: Timestamp) -> bool {
    row.job.started_at.is_none() && row.job.expires_at.is_some_and(|time| time <= now)
}

/// Merges lanes into one claim order, lazily.
fn merge_lanes(mut lanes: Vec<btree_set::Iter<'_, ClaimOrder>>) -> impl Iterator<Item = JobId> {
    let mut heads: BinaryHeap<Reverse<(ClaimOrder, usize)>> =
        lanes.iter_mut().enumerate().filter_map(|(i, lane)| Some(Reverse((*lane.next()?, i)))).collect();
    std::iter::from_fn(move || {
        let Reverse(((_, _, id), i)) = heads.pop()?;
        heads.extend(lanes[i].next().map(|entry| Reverse((*entry, i))));
        Some(id)
    })
}
