//! Recording jobs: first everything that could refuse the call, then the writing.

use std::collections::{HashMap, HashSet, VecDeque, hash_map::Entry};

use orchestrix_core::{
    FieldError, Fingerprint, Invalid, Job, JobId, JobState, NewJob, Readiness, Start, Timestamp,
    graph::{self, Parents},
};

use crate::{
    row::Row,
    tables::{Keyed, Tables},
};
use orchestrix_store::{
    Enqueued, Result, StoreError,
    clock::{cut, later, whole_millis},
    enqueue::check_alone,
};

/// What one job of a call comes to.
struct Planned {
    id: JobId,
    /// Whether its key already stands for a job, here or earlier in the same call.
    duplicate: bool,
    fingerprint: Option<Fingerprint>,
}

impl Tables {
    pub(crate) fn enqueue(&mut self, job: NewJob, now: Timestamp) -> Result<Enqueued> {
        let parents = check_alone(&job)?;
        let enqueued = self.record(vec![job], &[parents], |_| "dependsOn".into(), now)?;
        Ok(enqueued[0])
    }

    pub(crate) fn enqueue_many(&mut self, jobs: Vec<NewJob>, now: Timestamp) -> Result<Vec<Enqueued>> {
        let parents = graph::resolve(&jobs)?;
        self.record(jobs, &parents, |i| format!("jobs[{i}].dependsOn"), now)
    }

    // Keys come before parents: a repeat is answered with the first job even when what that one waited for is gone.
    fn record(
        &mut self,
        jobs: Vec<NewJob>,
        graph: &[Parents],
        field: impl Fn(usize) -> String,
        now: Timestamp,
    ) -> Result<Vec<Enqueued>> {
        let plan = self.plan(&jobs, now)?;
        let parents = self.parents(&jobs, &plan, graph, field)?;
        // A parent that is over will not end again, so its end is dealt out here.
        let over = parents.iter().flatten().copied().filter(|parent| self.is_over(*parent)).collect();
        for ((job, planned), parents) in jobs.into_iter().zip(&plan).zip(parents) {
            if !planned.duplicate {
                self.record_one(job, planned, parents, now);
            }
        }
        self.settle(over, now)?;
        plan.iter()
            .map(|planned| {
                let state = self.last_state(planned.id)?;
                Ok(Enqueued { id: planned.id, state, duplicate: planned.duplicate })
            })
            .collect()
    }

    fn plan(&mut self, jobs: &[NewJob], now: Timestamp) -> Result<Vec<Planned>> {
        let mut inside = HashMap::new();
        let mut plan = Vec::with_capacity(jobs.len());
        for job in jobs {
            let id = self.ids.next(now, rand::random());
            let Some(key) = job.idempotency_key.clone() else {
                plan.push(Planned { id, duplicate: false, fingerprint: None });
                continue;
            };
            let key = (job.tenant.clone(), job.job_type.clone(), key);
            let fingerprint = Fingerprint::of(job);
            let first = match (self.keys.get(&key), inside.entry(key)) {
                (Some(keyed), _) => Some((keyed.id, keyed.fingerprint)),
                (None, Entry::Occupied(first)) => Some(*first.get()),
                (None, Entry::Vacant(vacant)) => {
                    vacant.insert((id, fingerprint));
                    None
                }
            };
            plan.push(match first {
                None => Planned { id, duplicate: false, fingerprint: Some(fingerprint) },
                Some((id, same)) if same == fingerprint => Planned { id, duplicate: true, fingerprint: None },
                Some((existing, _)) => return Err(StoreError::IdempotencyKeyReused { existing }),
            });
        }
        Ok(plan)
    }

    /// The ids that each job to be recorded waits for, in order. Refuses parents that its tenant does not know.
    fn parents(
        &self,
        jobs: &[NewJob],
        plan: &[Planned],
        graph: &[Parents],
        field: impl Fn(usize) -> String,
    ) -> Result<Vec<Vec<JobId>>> {
        let fresh: HashSet<JobId> =
            plan.iter().filter(|planned| !planned.duplicate).map(|planned| planned.id).collect();
        let mut errors = Vec::new();
        let mut all = vec![Vec::new(); plan.len()];
        for (i, parents) in graph.iter().enumerate().filter(|(i, _)| !plan[*i].duplicate) {
            let inside = parents.inside.iter().map(|position| plan[*position].id);
            all[i].extend(inside.chain(parents.outside.iter().copied()));
            all[i].sort_unstable();
            all[i].dedup();
            let known = |id: JobId| self.find(id).is_some_and(|row| row.job.tenant == jobs[i].tenant);
            for id in all[i].iter().filter(|id| !fresh.contains(id) && !known(**id)) {
                errors.push(FieldError::new(field(i), format!("there is no job {id}")));
            }
        }
        Invalid::check(errors)?;
        Ok(all)
    }

    fn record_one(&mut self, request: NewJob, planned: &Planned, parents: Vec<JobId>, now: Timestamp) {
        let hold = request.hold;
        let mut row = recorded(request, planned.id, parents, now);
        for parent in &row.job.depends_on {
            // One without a row is about to be recorded by this call.
            if self.find(*parent).is_none_or(|row| row.job.state != JobState::Completed) {
                row.unmet += 1;
                self.children.entry(*parent).or_default().push(row.job.id);
            }
        }
        row.job.state =
            if hold { JobState::Created } else { Readiness::of(row.unmet > 0, row.job.eligible_at > now).state() };
        if let (Some(key), Some(fingerprint)) = (row.job.idempotency_key.clone(), planned.fingerprint) {
            let key = (row.job.tenant.clone(), row.job.job_type.clone(), key);
            self.keys.insert(key, Keyed { id: row.job.id, fingerprint });
        }
        self.insert(row);
    }

    fn is_over(&self, id: JobId) -> bool {
        self.find(id).is_some_and(|row| row.job.state.is_terminal())
    }

    fn last_state(&self, id: JobId) -> Result<JobState> {
        let state = self.find(id).map(|row| row.job.state);
        state.or_else(|| self.gone.get(&id).copied()).ok_or(StoreError::JobNotFound(id))
    }
}

/// A job that was just written down; its state is for the caller to decide.
fn recorded(request: NewJob, id: JobId, depends_on: Vec<JobId>, now: Timestamp) -> Row {
    let eligible_at = match request.start {
        Start::Now => now,
        Start::After(delay) => later(now, delay),
        Start::At(time) => cut(time).max(now),
    };
    let job = Job {
        id,
        state: JobState::Created,
        job_type: request.job_type,
        queue: request.queue,
        tenant: request.tenant,
        priority: request.priority,
        attempts: 0,
        max_attempts: request.max_attempts,
        losses: 0,
        created_at: now,
        updated_at: now,
        eligible_at,
        started_at: None,
        finished_at: None,
        expires_at: request.expires_at.map(cut),
        lease_expires_at: None,
        worker: None,
        leases: 0,
        cancel_requested: false,
        timeout: request.timeout.map(whole_millis),
        lease: whole_millis(request.lease),
        retry: request.retry,
        payload: request.payload,
        result: None,
        progress: None,
        checkpoint: None,
        reason: None,
        attempt_log: Vec::new(),
        depends_on,
        on_dependency_failure: request.on_dependency_failure,
        idempotency_key: request.idempotency_key,
        concurrency_key: request.concurrency_key,
        rate_limit_key: request.rate_limit_key,
        resources: request.resources,
        tags: request.tags,
        correlation_id: request.correlation_id,
        traceparent: request.traceparent,
    };
    Row { job, secret: None, timeout_at: None, unmet: 0, ended: VecDeque::new() }
}
