//! Claiming jobs and extending their leases.

use std::mem;

use orchestrix_core::{AttemptOutcome, Failure, JobState, Json, LeaseToken, WorkerName};
use orchestrix_store::{ClaimRequest, ClaimedJob, EndedAttempt, LeaseStatus, clock::later};
use rusqlite::params;
use uuid::Uuid;

use crate::{
    columns::{Columns, columns},
    error::Result,
    row::{JobRow, duration, micros, options, priority, timestamp},
    select::{Candidate, MAX_EXPIRED, select},
    session::Transaction,
    statement::{CLAIM_JOB, DEPENDENCY_RESULTS, EXTEND_LEASE, FIND_CHECKPOINT, FIND_PAYLOAD},
};

/// How often a claim expires jobs that are in its way.
const MAX_EXPIRY_ROUNDS: usize = 3;

columns! {
    mod dependency of DEPENDENCY_RESULTS { id, result }
}
columns! {
    mod lease of EXTEND_LEASE { lease_expires_at, cancel_requested }
}

impl Transaction<'_> {
    pub(crate) fn claim_jobs(&mut self, request: &ClaimRequest) -> Result<Vec<ClaimedJob>> {
        self.write_earlier_lanes()?;
        let scope = request.scope();
        let mut selection = select(self, request, |rank| self.hints.turns.get(scope, rank))?;
        for _ in 0..MAX_EXPIRY_ROUNDS {
            if !selection.truncated() {
                break;
            }
            // The leader's sweep is behind. Jobs after the expired ones must not wait for it.
            self.expire_jobs(MAX_EXPIRED)?;
            selection = select(self, request, |rank| self.hints.turns.get(scope, rank))?;
        }
        self.raise_lanes(&selection)?;
        // A transaction that is rolled back leaves the turns as they are here: a tenant loses at most one.
        self.hints.turns.note_claimed(scope, mem::take(&mut selection.turns));
        // All leases of one claim share a secret. A token is a job, a counter and a secret, so it is still unique.
        let secret = Uuid::from_u128(rand::random());
        let mut claimed = Vec::with_capacity(selection.jobs.len());
        for job in selection.jobs {
            claimed.extend(self.lease(job, secret, &request.worker)?);
        }
        Ok(claimed)
    }

    // Returns none for a job that no worker can run. It fails here, so that it does not block its lane.
    fn lease(&mut self, job: Candidate, secret: Uuid, worker: &WorkerName) -> Result<Option<ClaimedJob>> {
        let id = job.id();
        let uuid = id.as_uuid();
        let (lease, timeout) = (duration(job.lease_ms), job.timeout_ms.map(duration));
        let lease_expires_at = later(self.now, lease);
        let timeout_at = timeout.map(|timeout| micros(later(self.now, timeout)));
        let counter = job.counter + 1;
        self.write_one(
            CLAIM_JOB,
            params![uuid, counter, secret, worker.as_str(), micros(self.now), micros(lease_expires_at), timeout_at],
        )?;
        self.effects.state_changed(&job.lane.queue, Some(JobState::Pending), JobState::Running);
        let payload = match job.payload_apart {
            true => self.first(FIND_PAYLOAD, [uuid], |row| Ok(Json::trusted(Columns(row).text(0)?)))?,
            false => job.payload.as_deref().map(Json::trusted),
        };
        let Some(payload) = payload else {
            tracing::error!(%id, "the payload of a job is missing; the job is dead");
            let error = Some("the payload is missing from the database".into());
            let end = EndedAttempt { failure: Failure::Fatal, error, ..EndedAttempt::plain(AttemptOutcome::Failed) };
            self.end_attempt(&JobRow::require(self, id)?, &end)?;
            self.resolve_pending_dependents()?;
            return Ok(None);
        };
        // Only an earlier attempt can have left a checkpoint.
        let checkpoint = match counter {
            1 => None,
            _ => self.first(FIND_CHECKPOINT, [uuid], |row| Ok(Json::trusted(Columns(row).text(0)?)))?,
        };
        let dependency_results = match job.has_parents {
            true => self.all(DEPENDENCY_RESULTS, [uuid], |row| {
                let row = Columns(row);
                Ok((row.id(dependency::id)?, Json::trusted(row.text(dependency::result)?)))
            })?,
            false => Vec::new(),
        };
        let options = options(job.options.as_deref())?;
        Ok(Some(ClaimedJob {
            token: LeaseToken { job: id, counter, secret },
            priority: priority(job.lane.rank)?,
            job_type: job.lane.job_type,
            queue: job.lane.queue,
            tenant: job.lane.tenant,
            payload,
            attempt: job.attempts + 1,
            max_attempts: job.max_attempts,
            eligible_at: timestamp(job.key.eligible_at)?,
            lease_expires_at,
            lease,
            timeout,
            checkpoint,
            correlation_id: options.correlation_id,
            traceparent: options.traceparent,
            dependency_results,
        }))
    }

    pub(crate) fn extend_leases(&mut self, tokens: &[LeaseToken]) -> Result<Vec<LeaseStatus>> {
        tokens.iter().map(|token| self.extend_lease(token)).collect()
    }

    fn extend_lease(&mut self, token: &LeaseToken) -> Result<LeaseStatus> {
        let params = params![token.job.as_uuid(), token.counter, token.secret, micros(self.now)];
        let extended = self.first(EXTEND_LEASE, params, |row| {
            let row = Columns(row);
            let expires_at = row.time(lease::lease_expires_at)?;
            Ok(match row.get(lease::cancel_requested)? {
                true => LeaseStatus::Cancel(expires_at),
                false => LeaseStatus::Held(expires_at),
            })
        })?;
        Ok(extended.unwrap_or(LeaseStatus::Lost))
    }
}
