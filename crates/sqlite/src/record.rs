//! Writes a new job as a row.

use orchestrix_core::{Fingerprint, JobId, JobState, NewJob, Readiness, Start, enqueue::Links};
use orchestrix_store::{
    JobOptions,
    clock::{cut, later},
};
use rusqlite::params;
use uuid::Uuid;

use crate::{
    error::{Result, corrupt},
    lanes::{ClaimKey, Lane},
    row::{micros, millis},
    session::Transaction,
    statement::{ENQUEUE_JOB, INSERT_IDEMPOTENCY_KEY, INSERT_PAYLOAD},
};

impl Transaction<'_> {
    /// Writes the row, its idempotency key and, if it is large, its payload. Returns the state of the job.
    pub(crate) fn record(&mut self, id: JobId, job: &NewJob, links: Links) -> Result<JobState> {
        let now = self.now;
        let eligible_at = match job.start {
            Start::Now => now,
            Start::After(delay) => later(now, delay),
            Start::At(time) => cut(time).max(now),
        };
        let state = if job.hold || links.held {
            JobState::Created
        } else {
            Readiness::of(links.waits_for > 0, eligible_at > now).state()
        };
        let options = JobOptions::of(job).map(|options| serde_json::to_string(&options)).transpose();
        let options = options.map_err(|error| corrupt("options", error))?;
        let payload = job.payload.as_str();
        let external = payload.len() > self.options.inline_payload;
        self.write_one(
            ENQUEUE_JOB,
            params![
                id.as_uuid(),
                state.as_str(),
                job.queue.as_str(),
                job.job_type.as_str(),
                job.tenant.as_str(),
                -job.priority.get(),
                job.max_attempts,
                millis(job.lease),
                job.timeout.map(millis),
                micros(now),
                micros(eligible_at),
                job.expires_at.map(micros),
                links.waits_for,
                links.has_parents,
                links.has_dependents,
                external,
                job.concurrency_key.as_ref().map(AsRef::<str>::as_ref),
                job.rate_limit_key.as_ref().map(AsRef::<str>::as_ref),
                options,
                (!external).then_some(payload),
            ],
        )?;
        if external {
            self.write_one(INSERT_PAYLOAD, params![id.as_uuid(), payload])?;
        }
        if let Some(key) = &job.idempotency_key {
            let fingerprint = Uuid::from_u128(Fingerprint::of(job).0);
            self.write_one(
                INSERT_IDEMPOTENCY_KEY,
                params![job.tenant.as_str(), job.job_type.as_str(), key.as_str(), id.as_uuid(), fingerprint],
            )?;
        }
        let lane = Lane {
            queue: job.queue.clone(),
            job_type: job.job_type.clone(),
            tenant: job.tenant.clone(),
            rank: -job.priority.get(),
        };
        self.state_changed(&lane, ClaimKey::new(eligible_at, id), None, state);
        self.effects.commit.job_enqueued(&job.queue, &job.job_type);
        Ok(state)
    }
}
