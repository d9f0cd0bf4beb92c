//! A new job as a row.

use orchestrix_core::{JobId, JobState, NewJob, Readiness, Start};
use orchestrix_store::{
    JobOptions,
    clock::{cut, later},
};
use rusqlite::params;
use uuid::Uuid;

use crate::{
    error::{Result, corrupt},
    row::{micros, millis},
    session::Transaction,
    statement::{RECORD, RECORD_KEY, RECORD_PAYLOAD},
};

/// What the row of a new job says about dependencies.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Links {
    /// Parents that have not finished.
    pub(crate) waits_for: usize,
    /// Whether it has parents at all.
    pub(crate) has_parents: bool,
    /// Whether jobs of the same call wait for it.
    pub(crate) has_dependents: bool,
    /// A parent failed already and the job is to be held.
    pub(crate) held: bool,
}

impl Transaction<'_> {
    /// Writes the row, its key and a large payload; answers where the job stands.
    pub(crate) fn record(
        &mut self,
        id: JobId,
        job: &NewJob,
        fingerprint: Option<Uuid>,
        links: Links,
    ) -> Result<JobState> {
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
        let apart = payload.len() > self.options.inline_payload;
        self.write_one(
            RECORD,
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
                apart,
                job.concurrency_key.as_ref().map(AsRef::<str>::as_ref),
                job.rate_limit_key.as_ref().map(AsRef::<str>::as_ref),
                options,
                (!apart).then_some(payload),
            ],
        )?;
        if apart {
            self.write_one(RECORD_PAYLOAD, params![id.as_uuid(), payload])?;
        }
        if let Some(key) = &job.idempotency_key {
            self.write_one(
                RECORD_KEY,
                params![job.tenant.as_str(), job.job_type.as_str(), key.as_str(), id.as_uuid(), fingerprint],
            )?;
        }
        self.moved(&job.queue, None, state);
        self.effects.commit.job_enqueued(&job.queue, &job.job_type);
        Ok(state)
    }
}
