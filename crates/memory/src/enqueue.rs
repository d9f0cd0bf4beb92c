//! Enqueue: first everything that can refuse the call, then the writes.

use std::collections::{HashMap, VecDeque};

use orchestrix_core::{
    Event, Fingerprint, Job, JobId, JobState, NewJob, Readiness, Start, Timestamp,
    enqueue::{
        Call, CallShape, KnownKey, KnownParent, Links, Parents, PlannedJob, PlannedNewJob, check_job, check_jobs,
        is_plain,
    },
    turn::ring_position,
};

use crate::{
    row::Row,
    tables::{KeyOwner, Tables},
};
use orchestrix_store::{
    Enqueued, Result, StoreError,
    clock::{cut, later, whole_millis},
};

impl Tables {
    pub(crate) fn enqueue(&mut self, job: NewJob, now: Timestamp) -> Result<Enqueued> {
        let parents = check_job(&job)?;
        let enqueued = self.record(vec![job], &[parents], CallShape::Single, now)?;
        Ok(enqueued[0])
    }

    pub(crate) fn enqueue_many(&mut self, jobs: Vec<NewJob>, now: Timestamp) -> Result<Vec<Enqueued>> {
        let parents = check_jobs(&jobs)?;
        self.record(jobs, &parents, CallShape::Batch, now)
    }

    fn record(
        &mut self,
        jobs: Vec<NewJob>,
        parents: &[Parents],
        shape: CallShape,
        now: Timestamp,
    ) -> Result<Vec<Enqueued>> {
        if is_plain(&jobs) {
            return Ok(jobs.into_iter().map(|job| self.record_plain(job, now)).collect());
        }
        let ids = jobs.iter().map(|_| self.ids.next(now, rand::random())).collect();
        let plan = Call { jobs: &jobs, parents, shape }.resolve_keys(ids, &self.find_keys(&jobs)?)?;
        let known = plan.existing_parents().iter().filter_map(|id| Some((*id, self.known_parent(*id)?))).collect();
        let plan = plan.resolve_parents(&known)?;
        for (request, planned) in jobs.into_iter().zip(plan.jobs()) {
            if let PlannedJob::New(planned) = planned {
                self.record_one(request, planned, now);
            }
        }
        let mut cancelled = Vec::new();
        for id in plan.cancelled() {
            self.end_waiting(id, Event::Cancel, "dependency_failed", now)?;
            cancelled.push(id);
        }
        self.settle(cancelled, now)?;
        let answers = plan.answers(|id| self.find(id).map(|row| row.job.state));
        answers.ok_or_else(|| StoreError::Backend("a new job has no row".into()))
    }

    fn record_plain(&mut self, request: NewJob, now: Timestamp) -> Enqueued {
        let (links, dependencies) = (Links::default(), Vec::new());
        let id = self.ids.next(now, rand::random());
        let state = self.record_one(request, &PlannedNewJob { id, links, dependencies, cancel: false }, now);
        Enqueued { id, state, duplicate: false }
    }

    // The known keys of the jobs, by position.
    fn find_keys(&self, jobs: &[NewJob]) -> Result<HashMap<usize, KnownKey>> {
        let mut known = HashMap::new();
        for (i, job) in jobs.iter().enumerate() {
            let Some(key) = &job.idempotency_key else { continue };
            let Some(owner) = self.keys.get(&(job.tenant.clone(), job.job_type.clone(), key.clone())) else { continue };
            let (job, fingerprint) = (owner.id, Some(owner.fingerprint));
            known.insert(i, KnownKey { job, fingerprint, state: self.last_state(job)? });
        }
        Ok(known)
    }

    fn known_parent(&self, id: JobId) -> Option<KnownParent> {
        let row = self.find(id)?;
        Some(KnownParent { state: row.job.state.into(), tenant: row.job.tenant.clone() })
    }

    fn record_one(&mut self, request: NewJob, planned: &PlannedNewJob, now: Timestamp) -> JobState {
        if let Some(key) = request.idempotency_key.clone() {
            let owner = KeyOwner { id: planned.id, fingerprint: Fingerprint::of(&request) };
            self.keys.insert((request.tenant.clone(), request.job_type.clone(), key), owner);
        }
        for dependency in planned.dependencies.iter().filter(|dependency| !dependency.met) {
            self.children.entry(dependency.parent).or_default().push(planned.id);
        }
        let hold = request.hold || planned.links.held;
        let depends_on = planned.dependencies.iter().map(|dependency| dependency.parent).collect();
        let mut row = new_row(request, planned.id, depends_on, now);
        row.unmet = planned.links.waits_for;
        row.job.state =
            if hold { JobState::Created } else { Readiness::of(row.unmet > 0, row.job.eligible_at > now).state() };
        let state = row.job.state;
        self.insert(row);
        state
    }

    fn last_state(&self, id: JobId) -> Result<JobState> {
        let state = self.find(id).map(|row| row.job.state);
        state.or_else(|| self.pruned_states.get(&id).copied()).ok_or(StoreError::JobNotFound(id))
    }
}

/// The row of a new job. The caller sets its state.
fn new_row(request: NewJob, id: JobId, depends_on: Vec<JobId>, now: Timestamp) -> Row {
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
    let ring = ring_position(&job.tenant);
    Row { job, ring, secret: None, timeout_at: None, unmet: 0, ended: VecDeque::new() }
}
