//! Outcomes of attempts: one per request, or a batch.

use orchestrix_core::{FieldError, Invalid, JobStatus, LeaseToken};
use orchestrix_store::{Finish, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{raw, take_json};
use crate::{Code, ObjectReader, RequestError};

/// Completes an attempt.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CompleteRequest {
    /// The result of the job: any JSON of at most 1 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub result: Option<Box<RawValue>>,
}

/// Fails an attempt.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FailRequest {
    /// The error. The first 8192 characters are stored.
    pub error: String,
    /// Whether the job may be retried. Defaults to true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// The delay before the next attempt, in seconds. Overrides the job's backoff.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Delay>))]
    pub retry_after_seconds: Option<f64>,
}

/// Snoozes a job.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SnoozeRequest {
    /// The delay before the job is claimable again, in seconds.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Delay))]
    pub seconds: f64,
}

/// Releases a job. The body has no fields.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReleaseRequest {}

/// The outcome of one attempt in a batch.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OutcomeRequest {
    /// The lease token of the attempt.
    pub lease_token: String,
    /// The outcome: `completed` (default), `failed`, `snoozed`, `released`, `cancelled` or `timed_out`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// With `completed`: the result of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub result: Option<Box<RawValue>>,
    /// With `failed`: the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// With `failed`: whether the job may be retried. Defaults to true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// With `failed`: the delay before the next attempt, in seconds. Overrides the job's backoff.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Delay>))]
    pub retry_after_seconds: Option<f64>,
    /// With `snoozed`: the delay before the job is claimable again, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Delay>))]
    pub seconds: Option<f64>,
}

impl From<&Finish> for OutcomeRequest {
    fn from(item: &Finish) -> Self {
        let plain = |outcome: &str| Self {
            lease_token: item.token.to_string(),
            outcome: Some(outcome.into()),
            ..Self::default()
        };
        match &item.verdict {
            Verdict::Complete { result } => Self { result: result.as_ref().map(raw), ..plain("completed") },
            Verdict::Fail { error, retryable, retry_after } => Self {
                error: Some(error.clone()),
                retryable: Some(*retryable),
                retry_after_seconds: retry_after.map(|delay| delay.as_secs_f64()),
                ..plain("failed")
            },
            Verdict::Snooze(delay) => Self { seconds: Some(delay.as_secs_f64()), ..plain("snoozed") },
            Verdict::Release => plain("released"),
            Verdict::Cancelled => plain("cancelled"),
            Verdict::TimedOut => plain("timed_out"),
        }
    }
}

/// The outcome that a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutcomeKind {
    /// `/complete`
    Complete,
    /// `/fail`
    Fail,
    /// `/snooze`
    Snooze,
    /// `/release`
    Release,
}

/// Parses the body of an outcome. The body may be empty.
pub fn parse_outcome(kind: OutcomeKind, text: &str) -> Result<Verdict, RequestError> {
    let mut object = ObjectReader::parse(if text.trim().is_empty() { "{}" } else { text })?;
    let verdict = match kind {
        OutcomeKind::Complete => take_complete(&mut object),
        OutcomeKind::Fail => take_fail(&mut object),
        OutcomeKind::Snooze => take_snooze(&mut object),
        OutcomeKind::Release => Some(Verdict::Release),
    };
    validated(verdict, object)
}

fn validated(verdict: Option<Verdict>, mut object: ObjectReader<'_>) -> Result<Verdict, RequestError> {
    if let Some(Err(error)) = verdict.as_ref().map(Verdict::validate) {
        object.add_error(&error.field, error.message);
    }
    object.finish()?;
    Ok(verdict.unwrap_or(Verdict::Release))
}

fn take_complete(object: &mut ObjectReader<'_>) -> Option<Verdict> {
    Some(Verdict::Complete { result: take_json(object, "result") })
}

fn take_fail(object: &mut ObjectReader<'_>) -> Option<Verdict> {
    let error: Option<String> = object.get("error", "a string");
    let error = object.required("error", error);
    let retryable = object.get("retryable", "true or false").unwrap_or(true);
    let retry_after = object.seconds("retryAfterSeconds");
    Some(Verdict::Fail { error: error?, retryable, retry_after })
}

fn take_snooze(object: &mut ObjectReader<'_>) -> Option<Verdict> {
    let seconds = object.seconds("seconds");
    object.required("seconds", seconds).map(Verdict::Snooze)
}

/// A batch of outcomes.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OutcomesRequest {
    /// The outcomes. Each succeeds or fails independently.
    #[cfg_attr(feature = "openapi", schema(max_items = 10000))]
    pub items: Vec<OutcomeRequest>,
}

/// Parses a batch of outcomes. A text that is not a token counts as a lost lease.
pub fn parse_outcomes(text: &str) -> Result<Vec<(String, Option<LeaseToken>, Verdict)>, RequestError> {
    let mut object = ObjectReader::parse_batch(text)?;
    let outcomes = object.objects("items", Finish::MAX_ITEMS, parse_item);
    let outcomes = object.required("items", outcomes);
    object.finish()?;
    Ok(outcomes.unwrap_or_default())
}

fn parse_item(mut object: ObjectReader<'_>) -> Result<(String, Option<LeaseToken>, Verdict), Invalid> {
    let token: Option<String> = object.get("leaseToken", "a string");
    let token = object.required("leaseToken", token);
    let outcome = object.get::<String>("outcome", "a string").unwrap_or_else(|| "completed".into());
    let verdict = match outcome.as_str() {
        "completed" => take_complete(&mut object),
        "failed" => take_fail(&mut object),
        "snoozed" => take_snooze(&mut object),
        "released" => Some(Verdict::Release),
        "cancelled" => Some(Verdict::Cancelled),
        "timed_out" => Some(Verdict::TimedOut),
        _ => {
            object.add_error("outcome", "must be completed, failed, snoozed, released, cancelled or timed_out");
            None
        }
    };
    if let Some(Err(error)) = verdict.as_ref().map(Verdict::validate) {
        object.add_error(&error.field, error.message);
    }
    object.finish()?;
    match (token, verdict) {
        (Some(token), Some(verdict)) => {
            let parsed = token.parse().ok();
            Ok((token, parsed, verdict))
        }
        _ => Err(FieldError::new("leaseToken", "is required").into()),
    }
}

/// The results of a batch of outcomes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OutcomesResponse {
    /// The results, in the order of the request.
    pub items: Vec<OutcomeResponse>,
}

/// The result of one outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OutcomeResponse {
    /// The lease token.
    pub lease_token: String,
    /// The status of the job, if the outcome was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::JobStatus>))]
    pub status: Option<JobStatus>,
    /// The error code, if the outcome was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// A description of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use orchestrix_core::Json;

    use super::*;

    #[test]
    fn every_outcome_round_trips() {
        let token: LeaseToken = "0199d0a48f3e7c219b1f2f6a3e1c5d70.3.0199d0a48f3e7c219b1f2f6a3e1c5d71".parse().unwrap();
        let verdicts = [
            Verdict::DONE,
            Verdict::Complete { result: Some(Json::trusted("{\"a\": 1.0}")) },
            Verdict::Fail { error: "x".into(), retryable: false, retry_after: Some(Duration::from_millis(1500)) },
            Verdict::Snooze(Duration::from_secs(3)),
            Verdict::Release,
            Verdict::Cancelled,
            Verdict::TimedOut,
        ];
        let items: Vec<Finish> = verdicts.into_iter().map(|verdict| Finish { token, verdict }).collect();
        let request = OutcomesRequest { items: items.iter().map(OutcomeRequest::from).collect() };
        let parsed = parse_outcomes(&serde_json::to_string(&request).unwrap()).unwrap();
        let parsed: Vec<Finish> =
            parsed.into_iter().map(|(_, token, verdict)| Finish { token: token.unwrap(), verdict }).collect();
        assert_eq!(parsed, items);
    }

    #[test]
    fn a_malformed_token_does_not_invalidate_the_request() {
        assert_eq!(parse_outcomes(r#"{"items": [{"leaseToken": "x"}]}"#).unwrap()[0].1, None);
    }
}
