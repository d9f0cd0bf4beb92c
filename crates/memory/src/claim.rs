//! Claims jobs and extends leases.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap, btree_set},
};

use orchestrix_core::{Event, JobId, JobState, JobType, Json, LeaseToken, Queue, Timestamp, WorkerName};
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
        let chosen: Vec<JobId> = merge(self.lists_of(request))
            .filter(|id| self.find(*id).is_some_and(|row| !has_expired(row, now)))
            .take(request.limit)
            .collect();
        chosen.into_iter().map(|id| self.lease(id, &request.worker, now)).collect()
    }

    /// Lists that together hold every requested job of a queue that is not paused, once. Their number grows with the
    /// names in the request, not with the lanes that exist.
    fn lists_of(&self, request: &ClaimRequest) -> Vec<btree_set::Iter<'_, ClaimOrder>> {
        // A name that is given twice must not yield its jobs twice.
        let types: Option<BTreeSet<&JobType>> = request.job_types.as_ref().map(|types| types.iter().collect());
        let Queues::Named(queues) = &request.queues else {
            return match types {
                None => vec![self.index.claimable.iter()],
                Some(types) => types.into_iter().filter_map(|name| Some(self.index.types.get(name)?.iter())).collect(),
            };
        };
        let names: BTreeSet<&Queue> = queues.iter().filter(|name| !self.index.paused().contains(*name)).collect();
        let queues = names.into_iter().filter_map(|name| self.index.queues.get(name));
        match types {
            None => queues.map(|queue| queue.claimable.iter()).collect(),
            Some(types) => queues.flat_map(|queue| queue.lanes_of(&types)).collect(),
        }
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

impl QueueIndex {
    /// The lanes of these types: looked up or filtered, whichever is less.
    fn lanes_of<'a>(&'a self, types: &BTreeSet<&JobType>) -> Vec<btree_set::Iter<'a, ClaimOrder>> {
        if types.len() < self.lanes.len() {
            types.iter().filter_map(|name| Some(self.lanes.get(*name)?.iter())).collect()
        } else {
            self.lanes.iter().filter(|(name, _)| types.contains(name)).map(|(_, lane)| lane.iter()).collect()
        }
    }
}

/// Whether the job expired before it started. The expiry sweep will cancel it.
fn has_expired(row: &Row, now: Timestamp) -> bool {
    row.job.started_at.is_none() && row.job.expires_at.is_some_and(|time| time <= now)
}

/// Merges lists into one claim order, lazily.
fn merge(mut lists: Vec<btree_set::Iter<'_, ClaimOrder>>) -> impl Iterator<Item = JobId> {
    let mut heads: BinaryHeap<Reverse<(ClaimOrder, usize)>> =
        lists.iter_mut().enumerate().filter_map(|(i, list)| Some(Reverse((*list.next()?, i)))).collect();
    std::iter::from_fn(move || {
        let Reverse(((_, _, id), i)) = heads.pop()?;
        heads.extend(lists[i].next().map(|entry| Reverse((*entry, i))));
        Some(id)
    })
}
