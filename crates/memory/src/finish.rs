//! Outcomes, progress and log lines from workers.

use orchestrix_core::{JobState, LeaseToken, Timestamp};

use crate::tables::Tables;
use orchestrix_store::{EndedAttempt, FinishError, LogLine, OutcomeReport, ProgressUpdate, Result};

impl Tables {
    pub(crate) fn finish(
        &mut self,
        items: &[OutcomeReport],
        now: Timestamp,
    ) -> Result<Vec<Result<JobState, FinishError>>> {
        OutcomeReport::validate(items)?;
        let touched = items.iter().map(|item| item.token.job).collect();
        let answers = items.iter().map(|item| self.finish_one(item, now)).collect();
        self.settle(touched, now)?;
        Ok(answers)
    }

    fn finish_one(&mut self, item: &OutcomeReport, now: Timestamp) -> Result<JobState, FinishError> {
        item.outcome.validate().map_err(FinishError::Invalid)?;
        let end = EndedAttempt::from(&item.outcome);
        let Some(row) = self.find(item.token.job) else { return Err(FinishError::LeaseLost) };
        if !row.is_owned_by(&item.token) {
            return row.repeated(&item.token, &end).ok_or(FinishError::LeaseLost);
        }
        // An owned job allows every outcome, so there is no other error to distinguish.
        self.end_attempt(item.token.job, end, now).map_err(|_| FinishError::LeaseLost)
    }

    pub(crate) fn progress(&mut self, token: LeaseToken, update: ProgressUpdate) -> Result<()> {
        update.validate()?;
        self.owned(&token)?;
        self.update(token.job, |row| {
            row.job.progress = update.progress.or(row.job.progress.take());
            row.job.checkpoint = update.checkpoint.or(row.job.checkpoint.take());
        })
    }

    pub(crate) fn append_logs(&mut self, token: LeaseToken, lines: Vec<LogLine>, now: Timestamp) -> Result<()> {
        LogLine::validate(&lines)?;
        let attempt = self.owned(&token)?.job.attempts + 1;
        self.logs.append(token.job, attempt, lines, now);
        Ok(())
    }
}
