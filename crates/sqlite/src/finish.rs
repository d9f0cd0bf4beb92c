//! What a worker reports about its attempt: the outcome, progress, a checkpoint, log lines.

use orchestrix_core::{AttemptOutcome, JobState, LeaseToken};
use orchestrix_store::{EndedAttempt, FinishError, LogLine, OutcomeReport, ProgressUpdate, StoreError, clock::cut};
use rusqlite::params;
use uuid::Uuid;

use crate::{
    columns::{Columns, columns},
    error::Result,
    row::{JobRow, micros, write_progress},
    session::Transaction,
    statement::{APPEND_LOG, FIND_ENDED_ATTEMPT, PUT_CHECKPOINT, RECORD_PROGRESS},
};

columns! {
    mod attempt of FIND_ENDED_ATTEMPT { secret, outcome, goes_to, error }
}

impl Transaction<'_> {
    pub(crate) fn finish_attempts(&mut self, reports: &[OutcomeReport]) -> Result<Vec<Result<JobState, FinishError>>> {
        let mut results = Vec::with_capacity(reports.len());
        for report in reports {
            results.push(match report.outcome.validate() {
                Ok(()) => self.finish_attempt(report)?,
                Err(error) => Err(FinishError::Invalid(error)),
            });
        }
        self.resolve_pending_dependents()?;
        Ok(results)
    }

    fn finish_attempt(&mut self, report: &OutcomeReport) -> Result<Result<JobState, FinishError>> {
        let end = EndedAttempt::from(&report.outcome);
        let Some(job) = JobRow::find(self, report.token.job)? else { return Ok(Err(FinishError::LeaseLost)) };
        if job.is_owned_by(&report.token) {
            return self.end_attempt(&job, &end).map(Ok);
        }
        Ok(self.repeated_report(&job, &report.token, &end)?.ok_or(FinishError::LeaseLost))
    }

    /// The state that an identical earlier report of `token` led to. A worker that lost the reply gets it again.
    fn repeated_report(&self, job: &JobRow, token: &LeaseToken, end: &EndedAttempt) -> Result<Option<JobState>> {
        // A job that completes at its first attempt has no attempt record. Completion is final, so the job's row is
        // enough.
        if end.outcome == AttemptOutcome::Completed {
            let same = job.lifecycle.state == JobState::Completed
                && job.was_leased_to(token)
                && end.has_result(job.result.as_deref());
            return Ok(same.then_some(JobState::Completed));
        }
        let state = self.first(FIND_ENDED_ATTEMPT, params![token.job.as_uuid(), token.counter], |row| {
            let row = Columns(row);
            let same = row.get::<Uuid>(attempt::secret)? == token.secret
                && row.text(attempt::outcome)? == end.outcome.as_str()
                && row.text_or_null(attempt::error)? == end.error.as_deref();
            Ok(if same { Some(row.state(attempt::goes_to)?) } else { None })
        })?;
        Ok(state.flatten())
    }

    pub(crate) fn record_progress(&mut self, token: LeaseToken, update: &ProgressUpdate) -> Result<()> {
        let progress = update.progress.as_ref().map(write_progress).transpose()?;
        let id = token.job.as_uuid();
        if self.write(RECORD_PROGRESS, params![id, token.counter, token.secret, progress])? == 0 {
            return Err(StoreError::LeaseLost.into());
        }
        if let Some(checkpoint) = &update.checkpoint {
            self.write_one(PUT_CHECKPOINT, params![id, checkpoint.as_str()])?;
        }
        Ok(())
    }

    pub(crate) fn append_logs(&mut self, token: LeaseToken, lines: &[LogLine]) -> Result<()> {
        let owned = JobRow::find(self, token.job)?.filter(|job| job.is_owned_by(&token));
        let attempt = owned.ok_or(StoreError::LeaseLost)?.lifecycle.attempts + 1;
        let now = self.now;
        for LogLine { at, level, message } in lines {
            let at = at.map_or(now, cut);
            self.write_one(
                APPEND_LOG,
                params![token.job.as_uuid(), micros(now), micros(at), attempt, level.as_str(), message],
            )?;
        }
        Ok(())
    }
}
