//! Attempts, their backoff and their log lines.

use std::time::Duration;

use orchestrix_core::{AttemptOutcome, AttemptRecord, JobState, RetryPolicy, Timestamp, WorkerName};
use orchestrix_store::LogEntry;
use serde::{Deserialize, Serialize};

use crate::seconds::seconds;

/// The backoff between attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RetryPolicyView {
    /// The delay after the first attempt, in seconds.
    pub base_seconds: f64,
    /// The factor by which each further delay grows.
    pub multiplier: f64,
    /// The longest delay, in seconds.
    pub max_seconds: f64,
    /// The random extra delay, as a fraction of the delay.
    pub jitter: f64,
}

/// An attempt to run a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AttemptView {
    /// The number of the attempt, starting at 1.
    /// A released, snoozed or cancelled attempt does not count, so the next one has the same number.
    pub attempt: u16,
    /// The outcome: `completed`, `failed`, `timed_out`, `lost`, `cancelled`, `released` or `snoozed`.
    /// Absent while the attempt runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub outcome: Option<AttemptOutcome>,
    /// The state of the job after the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::JobState>))]
    pub led_to: Option<JobState>,
    /// The worker that ran the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub worker_id: Option<WorkerName>,
    /// When the attempt started.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub started_at: Timestamp,
    /// When the attempt ended. Absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub ended_at: Option<Timestamp>,
    /// The error of a failed attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A log line of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LogLineView {
    /// The sequence number. Increases along the log and serves as a cursor.
    pub seq: i64,
    /// When the line was written.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    /// The severity: `trace`, `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// The attempt that wrote the line.
    pub attempt: u16,
    /// The message.
    pub message: String,
}

impl From<RetryPolicy> for RetryPolicyView {
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
    /// The duration of the attempt, if it has ended.
    pub fn duration(&self) -> Option<Duration> {
        Some(Duration::try_from(self.ended_at?.duration_since(self.started_at)).unwrap_or_default())
    }
}

impl From<LogEntry> for LogLineView {
    fn from(entry: LogEntry) -> Self {
        let LogEntry { seq, at, level, attempt, message } = entry;
        Self { seq, at, level: level.as_str().into(), attempt, message }
    }
}
