//! Claims jobs and extends leases.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap, VecDeque, btree_set},
    iter::Peekable,
    ops::Bound,
};

use orchestrix_core::{
    Event, JobId, JobState, JobType, Json, LeaseToken, Priority, Queue, Timestamp, WorkerName, turn,
};
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
        let chosen = self.choose(request, now);
        self.turns.note_claimed(request.scope(), chosen.iter().map(|chosen| chosen.turn));
        chosen.into_iter().map(|chosen| self.lease(chosen.id, &request.worker, now)).collect()
    }

    /// The jobs of a claim, in order.
    fn choose(&self, request: &ClaimRequest, now: Timestamp) -> Vec<Chosen> {
        let lists = self.lists_of(request);
        let mut chosen = Vec::new();
        let mut priority = None;
        while let Some(next) = next_priority(&lists, priority)
            && chosen.len() < request.limit
        {
            priority = Some(next);
            self.choose_in_turns(&Ring { lists: &lists, priority: next }, request, now, &mut chosen);
        }
        chosen
    }

    /// Goes around the ring of one priority until the claim is full or the priority has no more jobs.
    fn choose_in_turns(&self, ring: &Ring<'_>, request: &ClaimRequest, now: Timestamp, chosen: &mut Vec<Chosen>) {
        let rank = -ring.priority.0.get();
        let turn = self.turns.get(request.scope(), rank);
        let mut tenants: VecDeque<WaitingTenant<'_>> = VecDeque::new();
        // The first round finds the tenants.
        for position in ring.positions_from(turn.position) {
            if chosen.len() == request.limit {
                return;
            }
            let mut tenant = WaitingTenant { position, jobs: self.claimable_at(ring, position, now).peekable() };
            let taken = if position == turn.position { turn.taken } else { 0 };
            self.take_turn(&mut tenant, taken, rank, request.limit, chosen);
            tenants.push_back(tenant);
        }
        while chosen.len() < request.limit
            && let Some(mut tenant) = tenants.pop_front()
        {
            if tenant.jobs.peek().is_some() {
                self.take_turn(&mut tenant, 0, rank, request.limit, chosen);
                tenants.push_back(tenant);
            }
        }
    }

    /// Gives a tenant its turn, in which it has had `taken` jobs before.
    fn take_turn(
        &self,
        tenant: &mut WaitingTenant<'_>,
        taken: usize,
        rank: i16,
        limit: usize,
        chosen: &mut Vec<Chosen>,
    ) {
        let Some(first) = tenant.jobs.peek() else { return };
        let allowance = turn::allowance(self.tenants.settings(&first.job.tenant).weight, limit);
        let left = allowance.saturating_sub(taken).min(limit - chosen.len());
        let turn = (rank, tenant.position, allowance);
        chosen.extend(tenant.jobs.by_ref().take(left).map(|row| Chosen { id: row.job.id, turn }));
    }

    /// The claimable jobs of the tenant at a position, the longest eligible first, lazily.
    fn claimable_at<'a>(
        &'a self,
        ring: &Ring<'a>,
        position: i64,
        now: Timestamp,
    ) -> Box<dyn Iterator<Item = &'a Row> + 'a> {
        let rows = ring.jobs_at(position).filter_map(|id| self.find(id));
        Box::new(rows.filter(move |row| !has_expired(row, now)))
    }

    /// Lists that together hold every requested job of a queue that is not paused, once. Their number grows with the
    /// names in the request, not with the lanes that exist.
    fn lists_of(&self, request: &ClaimRequest) -> Vec<&BTreeSet<ClaimOrder>> {
        // A name that is given twice must not yield its jobs twice.
        let types: Option<BTreeSet<&JobType>> = request.job_types.as_ref().map(|types| types.iter().collect());
        let Queues::Named(queues) = &request.queues else {
            return match types {
                None => vec![&self.index.claimable],
                Some(types) => types.into_iter().filter_map(|name| self.index.types.get(name)).collect(),
            };
        };
        let names: BTreeSet<&Queue> = queues.iter().filter(|name| !self.index.paused().contains(*name)).collect();
        let queues = names.into_iter().filter_map(|name| self.index.queues.get(name));
        match types {
            None => queues.map(|queue| &queue.claimable).collect(),
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
    fn lanes_of(&self, types: &BTreeSet<&JobType>) -> Vec<&BTreeSet<ClaimOrder>> {
        if types.len() < self.lanes.len() {
            types.iter().filter_map(|name| self.lanes.get(*name)).collect()
        } else {
            self.lanes.iter().filter(|(name, _)| types.contains(name)).map(|(_, lane)| lane).collect()
        }
    }
}

/// Whether the job expired before it started. The expiry sweep will cancel it.
fn has_expired(row: &Row, now: Timestamp) -> bool {
    row.job.started_at.is_none() && row.job.expires_at.is_some_and(|time| time <= now)
}

/// A job that a claim chose: its rank, the ring position of its tenant, and the allowance of that tenant.
struct Chosen {
    id: JobId,
    turn: (i16, i64, usize),
}

/// A tenant with jobs that a claim did not choose yet.
struct WaitingTenant<'a> {
    position: i64,
    jobs: Peekable<Box<dyn Iterator<Item = &'a Row> + 'a>>,
}

/// The highest priority of a claimable job, after `priority`.
fn next_priority(lists: &[&BTreeSet<ClaimOrder>], priority: Option<Reverse<Priority>>) -> Option<Reverse<Priority>> {
    let after = priority.map_or(Bound::Unbounded, |priority| {
        Bound::Excluded((priority, i64::MAX, Timestamp::MAX, JobId::from_uuid(Uuid::max())))
    });
    lists.iter().filter_map(|list| Some(list.range((after, Bound::Unbounded)).next()?.0)).min()
}

/// The tenants with claimable jobs of one priority, by their ring positions.
struct Ring<'a> {
    lists: &'a [&'a BTreeSet<ClaimOrder>],
    priority: Reverse<Priority>,
}

impl<'a> Ring<'a> {
    /// The positions with jobs, once around the ring, lazily.
    fn positions_from(&self, start: i64) -> impl Iterator<Item = i64> {
        let from_start = self.positions(start, i64::MAX);
        from_start.chain(start.checked_sub(1).into_iter().flat_map(move |end| self.positions(i64::MIN, end)))
    }

    fn positions(&self, from: i64, to: i64) -> impl Iterator<Item = i64> {
        std::iter::successors(self.next_position(from, to), move |position| {
            self.next_position(position.checked_add(1)?, to)
        })
    }

    /// The first position from `from` to `to` with a job.
    fn next_position(&self, from: i64, to: i64) -> Option<i64> {
        let first = |list: &&BTreeSet<ClaimOrder>| {
            let bound = (self.priority, from, Timestamp::MIN, JobId::from_uuid(Uuid::nil()));
            let (priority, position, _, _) = *list.range(bound..).next()?;
            (priority == self.priority && position <= to).then_some(position)
        };
        self.lists.iter().filter_map(first).min()
    }

    /// The jobs at a position, the longest eligible first, lazily.
    fn jobs_at(&self, position: i64) -> impl Iterator<Item = JobId> + use<'a> {
        let from = (self.priority, position, Timestamp::MIN, JobId::from_uuid(Uuid::nil()));
        let to = (self.priority, position, Timestamp::MAX, JobId::from_uuid(Uuid::max()));
        merge(self.lists.iter().map(|list| list.range(from..=to)).collect())
    }
}

/// Merges lists into one claim order, lazily.
fn merge(mut lists: Vec<btree_set::Range<'_, ClaimOrder>>) -> impl Iterator<Item = JobId> {
    let mut heads: BinaryHeap<Reverse<(ClaimOrder, usize)>> =
        lists.iter_mut().enumerate().filter_map(|(i, list)| Some(Reverse((*list.next()?, i)))).collect();
    std::iter::from_fn(move || {
        let Reverse(((_, _, _, id), i)) = heads.pop()?;
        heads.extend(lists[i].next().map(|entry| Reverse((*entry, i))));
        Some(id)
    })
}
