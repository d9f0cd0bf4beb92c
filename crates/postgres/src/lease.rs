//! The store's verbs on leases: claiming jobs, keeping their leases, and reporting on attempts.

use std::collections::HashMap;

use async_trait::async_trait;
use orchestrix_core::{JobId, JobState, LeaseToken};
use orchestrix_store::{
    ClaimRequest, ClaimedJob, FinishError, LeaseStatus, LeaseStore, LogLine, OutcomeReport, ProgressUpdate, Result,
    StoreError, claim::check_tokens,
};
use serde_json::json;
use uuid::Uuid;

use crate::{
    PostgresStore, claim, finish,
    statement::{APPEND_LOGS, EXTEND_LEASES, RECORD_PROGRESS, column},
};

#[async_trait]
impl LeaseStore for PostgresStore {
    async fn claim_jobs(&self, request: &ClaimRequest) -> Result<Vec<ClaimedJob>> {
        claim::claim_jobs(self, request).await
    }

    async fn extend_leases(&self, tokens: &[LeaseToken]) -> Result<Vec<LeaseStatus>> {
        check_tokens(tokens)?;
        if tokens.is_empty() {
            return Ok(Vec::new());
        }
        let mut sorted = tokens.to_vec();
        sorted.sort_unstable();
        let (ids, counters, secrets) = token_columns(sorted.iter());
        let rows = self.database().query(&EXTEND_LEASES, &[&ids, &counters, &secrets]).await?;
        let mut statuses: HashMap<LeaseToken, LeaseStatus> = HashMap::with_capacity(tokens.len());
        for row in &rows {
            let token = LeaseToken {
                job: JobId::from_uuid(row.get(column!(EXTEND_LEASES, id))),
                counter: row.get(column!(EXTEND_LEASES, lease_counter)),
                secret: row.get(column!(EXTEND_LEASES, lease_secret)),
            };
            let until = row.get(column!(EXTEND_LEASES, lease_expires_at));
            let renewed = row.get(column!(EXTEND_LEASES, renewed));
            match (renewed, row.get(column!(EXTEND_LEASES, cancel_requested))) {
                (true, true) => drop(statuses.insert(token, LeaseStatus::Cancel(until))),
                (true, false) => drop(statuses.insert(token, LeaseStatus::Held(until))),
                // Every current lease is listed, also those that were renewed.
                (false, _) => drop(statuses.entry(token).or_insert(LeaseStatus::Locked(until))),
            }
        }
        Ok(tokens.iter().map(|token| statuses.get(token).copied().unwrap_or(LeaseStatus::Lost)).collect())
    }

    async fn finish_attempts(&self, reports: Vec<OutcomeReport>) -> Result<Vec<Result<JobState, FinishError>>> {
        finish::finish_attempts(self, &reports).await
    }

    async fn record_progress(&self, token: LeaseToken, update: ProgressUpdate) -> Result<()> {
        update.validate()?;
        let progress =
            update.progress.as_ref().map(|p| json!({"percent": p.percent, "message": p.message}).to_string());
        let checkpoint = update.checkpoint.as_ref().map(|json| json.as_str());
        let rows = self
            .database()
            .query(&RECORD_PROGRESS, &[&token.job.as_uuid(), &token.counter, &token.secret, &progress, &checkpoint])
            .await?;
        if rows.is_empty() { Err(StoreError::LeaseLost) } else { Ok(()) }
    }

    async fn append_logs(&self, token: LeaseToken, lines: Vec<LogLine>) -> Result<()> {
        LogLine::validate(&lines)?;
        let times: Vec<_> = lines.iter().map(|line| line.at).collect();
        let levels: Vec<&str> = lines.iter().map(|line| line.level.as_str()).collect();
        let messages: Vec<&str> = lines.iter().map(|line| line.message.as_str()).collect();
        let rows = self
            .database()
            .query(&APPEND_LOGS, &[&token.job.as_uuid(), &token.counter, &token.secret, &times, &levels, &messages])
            .await?;
        if rows.is_empty() { Err(StoreError::LeaseLost) } else { Ok(()) }
    }
}

/// Tokens as parameters of a statement: ids, counters and secrets.
pub(crate) fn token_columns<'a>(tokens: impl Iterator<Item = &'a LeaseToken>) -> (Vec<Uuid>, Vec<i32>, Vec<Uuid>) {
    let mut columns = (Vec::new(), Vec::new(), Vec::new());
    for token in tokens {
        columns.0.push(token.job.as_uuid());
        columns.1.push(token.counter);
        columns.2.push(token.secret);
    }
    columns
}
