//! Leases: claim, extend, finish.

use async_trait::async_trait;
use orchestrix_core::{JobState, LeaseToken};

use crate::{ClaimRequest, ClaimedJob, FinishError, LeaseStatus, LogLine, OutcomeReport, ProgressUpdate, Result};

/// Leases jobs to workers. Every call about a leased job carries its [`LeaseToken`].
#[async_trait]
pub trait LeaseStore: Send + Sync {
    /// Leases up to [`ClaimRequest::limit`] jobs to a worker, in the order of claims.
    ///
    /// Higher priorities come first. Within a priority tenants [take turns](orchestrix_core::turn), by their weights.
    /// Within a tenant the longest eligible job comes first, over all queues and types requested.
    async fn claim_jobs(&self, request: &ClaimRequest) -> Result<Vec<ClaimedJob>>;

    /// Extends leases, each by its job's own lease duration from now. Returns one status per token, in order.
    async fn extend_leases(&self, tokens: &[LeaseToken]) -> Result<Vec<LeaseStatus>>;

    /// Ends up to [`OutcomeReport::MAX_ITEMS`] attempts. Returns one answer per report, in order.
    ///
    /// Each report stands alone: a refused one does not affect the others.
    /// Repeating an accepted outcome returns the first answer again.
    async fn finish_attempts(&self, reports: Vec<OutcomeReport>) -> Result<Vec<Result<JobState, FinishError>>>;

    /// Records the progress of a running job and the checkpoint for its next attempt.
    async fn record_progress(&self, token: LeaseToken, update: ProgressUpdate) -> Result<()>;

    /// Appends lines to the log of a running job.
    async fn append_logs(&self, token: LeaseToken, lines: Vec<LogLine>) -> Result<()>;
}
