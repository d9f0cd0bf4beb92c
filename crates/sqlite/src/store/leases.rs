//! [`LeaseStore`] on SQLite.

use async_trait::async_trait;
use orchestrix_core::{JobState, LeaseToken};
use orchestrix_store::{
    ClaimRequest, ClaimedJob, FinishError, LeaseStatus, LeaseStore, LogLine, OutcomeReport, ProgressUpdate, Result,
    claim::check_tokens,
};

use super::SqliteStore;

#[async_trait]
impl LeaseStore for SqliteStore {
    async fn claim_jobs(&self, request: &ClaimRequest) -> Result<Vec<ClaimedJob>> {
        request.validate()?;
        let request = request.clone();
        self.database().write(move |transaction| transaction.claim_jobs(&request)).await
    }

    async fn extend_leases(&self, tokens: &[LeaseToken]) -> Result<Vec<LeaseStatus>> {
        check_tokens(tokens)?;
        let tokens = tokens.to_vec();
        self.database().write(move |transaction| transaction.extend_leases(&tokens)).await
    }

    async fn finish_attempts(&self, reports: Vec<OutcomeReport>) -> Result<Vec<Result<JobState, FinishError>>> {
        OutcomeReport::validate(&reports)?;
        self.database().write(move |transaction| transaction.finish_attempts(&reports)).await
    }

    async fn record_progress(&self, token: LeaseToken, update: ProgressUpdate) -> Result<()> {
        update.validate()?;
        self.database().write(move |transaction| transaction.record_progress(token, &update)).await
    }

    async fn append_logs(&self, token: LeaseToken, lines: Vec<LogLine>) -> Result<()> {
        LogLine::validate(&lines)?;
        self.database().write(move |transaction| transaction.append_logs(token, &lines)).await
    }
}
