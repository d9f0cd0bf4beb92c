//! Attempts at jobs, what lies between them, and what they wrote.

use std::time::Duration;

use orchestrix_core::{AttemptOutcome, AttemptRecord, JobState, RetryPolicy, Timestamp, WorkerName};
use orchestrix_store::LogEntry;
use serde::{Deserialize, Serialize};

#[cfg(feature = "openapi")]
use super::standing::StateWord;
use crate::seconds::seconds;

/// How long to wait between attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RetryView {
    /// After the first attempt.
    pub base_seconds: f64,
    /// So many times longer after each further one.
    pub multiplier: f64,
    /// Never longer than this.
    pub max_seconds: f64,
    /// Up to this share of it more, at random.
    pub jitter: f64,
}

/// One attempt. One without an outcome and an end is under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AttemptView {
    /// Which one, from 1. Attempts that cost nothing share their number with the next.
    pub attempt: u16,
    /// How it ended: `completed`, `failed`, `timed_out`, `lost`, `cancelled`, `released` or `snoozed`; absent while it is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub outcome: Option<AttemptOutcome>,
    /// Where that left the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<StateWord>))]
    pub led_to: Option<JobState>,
    /// Who ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub worker_id: Option<WorkerName>,
    /// When it began.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub started_at: Timestamp,
    /// When it ended; absent while it is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub ended_at: Option<Timestamp>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A line of a job's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LineView {
    /// Grows along the log; a cursor too, for whoever waits for more.
    pub seq: i64,
    /// When it was written.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    /// `trace`, `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// Which attempt wrote it.
    pub attempt: u16,
    /// What it says.
    pub message: String,
}

impl From<RetryPolicy> for RetryView {
    fn from(retry: RetryPolicy) -> Self {
        Self {
            base_seconds: seconds(retry.base),
            multiplier: retry.multiplier,
            max_seconds: seconds(retry.max),
            jitter: retry.jitter,
        }
    }
}

impl From<AttemptRecord> for AttemptView {
    fn from(attempt: AttemptRecord) -> Self {
        Self {
            attempt: attempt.attempt,
            outcome: Some(attempt.outcome),
            led_to: Some(attempt.led_to),
            worker_id: attempt.worker,
            started_at: attempt.started_at,
            ended_at: Some(attempt.ended_at),
            error: attempt.error,
        }
    }
}

impl AttemptView {
    /// How long it took, if it has ended.
    pub fn took(&self) -> Option<Duration> {
        Some(Duration::try_from(self.ended_at?.duration_since(self.started_at)).unwrap_or_default())
    }
}

impl From<LogEntry> for LineView {
    fn from(entry: LogEntry) -> Self {
        let LogEntry { seq, at, level, attempt, message } = entry;
        Self { seq, at, level: level.as_str().into(), attempt, message }
    }
}
