//! Leasing jobs and keeping leases.

use orchestrix_core::{AttemptOutcome, Failure, JobState, Json, LeaseToken, Tenant, WorkerName};
use orchestrix_store::{ClaimRequest, ClaimedJob, EndedAttempt, LeaseStatus, clock::later};
use rusqlite::params;
use uuid::Uuid;

use crate::{
    error::Result,
    lanes::{self, Candidate},
    row::{Columns, Found, duration, micros, options, priority, timestamp},
    session::Transaction,
    statement::{CHECKPOINT, CLAIM, DEPENDENCY_RESULTS, HEARTBEAT, PAYLOAD},
};

/// How often a claim sweeps away what came too late.
const ROUNDS: usize = 3;

impl Transaction<'_> {
    pub(crate) fn claim(&mut self, request: &ClaimRequest) -> Result<Vec<ClaimedJob>> {
        let mut chosen = lanes::choose(self, request)?;
        for _ in 0..ROUNDS {
            if !chosen.cut_short {
                break;
            }
            // Nobody has swept away what came too late; the work behind it must not wait for that.
            self.expire(lanes::MAX_LATE)?;
            chosen = lanes::choose(self, request)?;
        }
        // One for all of them: a token is a job, a counter and a secret.
        let secret = Uuid::from_u128(rand::random());
        let mut claimed = Vec::with_capacity(chosen.jobs.len());
        for job in chosen.jobs {
            claimed.extend(self.lease(job, secret, &request.worker)?);
        }
        Ok(claimed)
    }

    // None for a job that cannot be worked on: it must not keep its lane from going on.
    fn lease(&mut self, job: Candidate, secret: Uuid, worker: &WorkerName) -> Result<Option<ClaimedJob>> {
        let id = job.id();
        let uuid = id.as_uuid();
        let (lease, timeout) = (duration(job.lease_ms), job.timeout_ms.map(duration));
        let lease_expires_at = later(self.now, lease);
        let timeout_at = timeout.map(|timeout| micros(later(self.now, timeout)));
        let counter = job.counter + 1;
        self.write_one(
            CLAIM,
            params![uuid, counter, secret, worker.as_str(), micros(self.now), micros(lease_expires_at), timeout_at],
        )?;
        self.moved(&job.queue, Some(JobState::Pending), JobState::Running);
        let payload = match job.payload_apart {
            true => self.first(PAYLOAD, [uuid], |row| Ok(Json::trusted(Columns(row).text(0)?)))?,
            false => job.payload.as_deref().map(Json::trusted),
        };
        let Some(payload) = payload else {
            tracing::error!(%id, "a payload is gone; its job is given up");
            let error = Some("its payload is gone".into());
            let end = EndedAttempt { failure: Failure::Fatal, error, ..EndedAttempt::plain(AttemptOutcome::Failed) };
            self.end_attempt(&Found::expect(self, id)?, &end)?;
            self.tell_now()?;
            return Ok(None);
        };
        // Nobody has worked on it before, so nobody has left anything.
        let checkpoint = match counter {
            1 => None,
            _ => self.first(CHECKPOINT, [uuid], |row| Ok(Json::trusted(Columns(row).text(0)?)))?,
        };
        let dependency_results = match job.has_parents {
            true => self.all(DEPENDENCY_RESULTS, [uuid], |row| {
                Ok((Columns(row).id(0)?, Json::trusted(Columns(row).text(1)?)))
            })?,
            false => Vec::new(),
        };
        let options = options(job.options.as_deref())?;
        Ok(Some(ClaimedJob {
            token: LeaseToken { job: id, counter, secret },
            job_type: job.job_type,
            queue: job.queue,
            tenant: Tenant::trusted(&job.tenant),
            priority: priority(job.place.0)?,
            payload,
            attempt: job.attempts + 1,
            max_attempts: job.max_attempts,
            eligible_at: timestamp(job.place.1)?,
            lease_expires_at,
            lease,
            timeout,
            checkpoint,
            correlation_id: options.correlation_id,
            traceparent: options.traceparent,
            dependency_results,
        }))
    }

    pub(crate) fn heartbeat(&mut self, tokens: &[LeaseToken]) -> Result<Vec<LeaseStatus>> {
        tokens.iter().map(|token| self.extend(token)).collect()
    }

    fn extend(&mut self, token: &LeaseToken) -> Result<LeaseStatus> {
        let params = params![token.job.as_uuid(), token.counter, token.secret, micros(self.now)];
        let held = self.first(HEARTBEAT, params, |row| {
            let (until, cancel) = (Columns(row).time(0)?, Columns(row).get(1)?);
            Ok(if cancel { LeaseStatus::Cancel(until) } else { LeaseStatus::Held(until) })
        })?;
        Ok(held.unwrap_or(LeaseStatus::Lost))
    }
}
