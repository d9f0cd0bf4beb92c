//! A worker's word on its own attempt: how it ended, and what it says along the way.

use orchestrix_core::{AttemptOutcome, JobState, LeaseToken};
use orchestrix_store::{EndedAttempt, FinishError, LogLine, OutcomeReport, ProgressUpdate, StoreError, clock::cut};
use rusqlite::params;
use uuid::Uuid;

use crate::{
    error::Result,
    row::{Columns, Found, micros, write_progress},
    session::Transaction,
    statement::{APPEND_LOG, ATTEMPT, KEEP_CHECKPOINT, PROGRESS},
};

impl Transaction<'_> {
    pub(crate) fn finish(&mut self, items: &[OutcomeReport]) -> Result<Vec<Result<JobState, FinishError>>> {
        let mut answers = Vec::with_capacity(items.len());
        for item in items {
            answers.push(match item.outcome.validate() {
                Ok(()) => self.finish_one(item)?,
                Err(error) => Err(FinishError::Invalid(error)),
            });
        }
        self.tell_now()?;
        Ok(answers)
    }

    fn finish_one(&mut self, item: &OutcomeReport) -> Result<Result<JobState, FinishError>> {
        let end = EndedAttempt::from(&item.outcome);
        let Some(job) = Found::read(self, item.token.job)? else { return Ok(Err(FinishError::LeaseLost)) };
        if job.is_owned_by(&item.token) {
            return self.end_attempt(&job, &end).map(Ok);
        }
        Ok(self.repeated(&job, &item.token, &end)?.ok_or(FinishError::LeaseLost))
    }

    /// The state that `end` led to, if `token` ended its attempt just so before: the answer that got lost on the way is
    /// given again.
    fn repeated(&self, job: &Found, token: &LeaseToken, end: &EndedAttempt) -> Result<Option<JobState>> {
        // A first success leaves no record. Being final, it needs none: the job itself tells.
        if end.outcome == AttemptOutcome::Completed {
            let same = job.lifecycle.state == JobState::Completed
                && job.was_leased_to(token)
                && end.has_result(job.result.as_deref());
            return Ok(same.then_some(JobState::Completed));
        }
        let ended = self.first(ATTEMPT, params![token.job.as_uuid(), token.counter], |row| {
            let row = Columns(row);
            let same = row.get::<Uuid>(0)? == token.secret
                && row.text(1)? == end.outcome.as_str()
                && row.text_or_null(3)? == end.error.as_deref();
            Ok(if same { Some(row.state(2)?) } else { None })
        })?;
        Ok(ended.flatten())
    }

    pub(crate) fn progress(&mut self, token: LeaseToken, update: &ProgressUpdate) -> Result<()> {
        let progress = update.progress.as_ref().map(write_progress).transpose()?;
        let id = token.job.as_uuid();
        if self.write(PROGRESS, params![id, token.counter, token.secret, progress])? == 0 {
            return Err(StoreError::LeaseLost.into());
        }
        if let Some(checkpoint) = &update.checkpoint {
            self.write_one(KEEP_CHECKPOINT, params![id, checkpoint.as_str()])?;
        }
        Ok(())
    }

    pub(crate) fn append_logs(&mut self, token: LeaseToken, lines: &[LogLine]) -> Result<()> {
        let owned = Found::read(self, token.job)?.filter(|job| job.is_owned_by(&token));
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
