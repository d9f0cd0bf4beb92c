//! Outcomes of attempts: one per request, or a batch.

use orchestrix_core::{FieldError, Invalid, JobStatus, LeaseToken};
use orchestrix_store::{Outcome, OutcomeReport};
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

impl From<&OutcomeReport> for OutcomeRequest {
    fn from(item: &OutcomeReport) -> Self {
        let named =
            |name: &str| Self { lease_token: item.token.to_string(), outcome: Some(name.into()), ..Self::default() };
        match &item.outcome {
            Outcome::Complete { result } => Self { result: result.as_ref().map(raw), ..named("completed") },
            Outcome::Fail { error, retryable, retry_after } => Self {
                error: Some(error.clone()),
                retryable: Some(*retryable),
                retry_after_seconds: retry_after.map(|delay| delay.as_secs_f64()),
                ..named("failed")
            },
            Outcome::Snooze(delay) => Self { seconds: Some(delay.as_secs_f64()), ..named("snoozed") },
            Outcome::Release => named("released"),
            Outcome::Cancelled => named("cancelled"),
            Outcome::TimedOut => named("timed_out"),
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
pub fn parse_outcome(kind: OutcomeKind, text: &str) -> Result<Outcome, RequestError> {
    let mut object = ObjectReader::parse(if text.trim().is_empty() { "{}" } else { text })?;
    let outcome = match kind {
        OutcomeKind::Complete => take_complete(&mut object),
        OutcomeKind::Fail => take_fail(&mut object),
        OutcomeKind::Snooze => take_snooze(&mut object),
        OutcomeKind::Release => Some(Outcome::Release),
    };
    validated(outcome, object)
}

fn validated(outcome: Option<Outcome>, mut object: ObjectReader<'_>) -> Result<Outcome, RequestError> {
    if let Some(Err(error)) = outcome.as_ref().map(Outcome::validate) {
        object.add_error(&error.field, error.message);
    }
    object.finish()?;
    Ok(outcome.unwrap_or(Outcome::Release))
}

fn take_complete(object: &mut ObjectReader<'_>) -> Option<Outcome> {
    Some(Outcome::Complete { result: take_json(object, "result") })
}

fn take_fail(object: &mut ObjectReader<'_>) -> Option<Outcome> {
    let error: Option<String> = object.get("error", "a string");
    let error = object.required("error", error);
    let retryable = object.get("retryable", "true or false").unwrap_or(true);
    let retry_after = object.seconds("retryAfterSeconds");
    Some(Outcome::Fail { error: error?, retryable, retry_after })
}

fn take_snooze(object: &mut ObjectReader<'_>) -> Option<Outcome> {
    let seconds = object.seconds("seconds");
    object.required("seconds", seconds).map(Outcome::Snooze)
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
pub fn parse_outcomes(text: &str) -> Result<Vec<(String, Option<LeaseToken>, Outcome)>, RequestError> {
    let mut object = ObjectReader::parse_batch(text)?;
    let outcomes = object.objects("items", OutcomeReport::MAX_ITEMS, parse_item);
    let outcomes = object.required("items", outcomes);
    object.finish()?;
    Ok(outcomes.unwrap_or_default())
}

fn parse_item(mut object: ObjectReader<'_>) -> Result<(String, Option<LeaseToken>, Outcome), Invalid> {
    let token: Option<String> = object.get("leaseToken", "a string");
    let token = object.required("leaseToken", token);
    let name = object.get::<String>("outcome", "a string").unwrap_or_else(|| "completed".into());
    let outcome = match name.as_str() {
        "completed" => take_complete(&mut object),
        "failed" => take_fail(&mut object),
        "snoozed" => take_snooze(&mut object),
        "released" => Some(Outcome::Release),
        "cancelled" => Some(Outcome::Cancelled),
        "timed_out" => Some(Outcome::TimedOut),
        _ => {
            object.add_error("outcome", "must be completed, failed, snoozed, released, cancelled or timed_out");
            None
        }
    };
    if let Some(Err(error)) = outcome.as_ref().map(Outcome::validate) {
        object.add_error(&error.field, error.message);
    }
    object.finish()?;
    match (token, outcome) {
        (Some(token), Some(outcome)) => {
            let parsed = token.parse().ok();
            Ok((token, parsed, outcome))
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
        let outcomes = [
            Outcome::DONE,
            Outcome::Complete { result: Some(Json::trusted("{\"a\": 1.0}")) },
            Outcome::Fail { error: "x".into(), retryable: false, retry_after: Some(Duration::from_millis(1500)) },
            Outcome::Snooze(Duration::from_secs(3)),
            Outcome::Release,
            Outcome::Cancelled,
            Outcome::TimedOut,
        ];
        let items: Vec<OutcomeReport> = outcomes.into_iter().map(|outcome| OutcomeReport { token, outcome }).collect();
        let request = OutcomesRequest { items: items.iter().map(OutcomeRequest::from).collect() };
        let parsed = parse_outcomes(&serde_json::to_string(&request).unwrap()).unwrap();
        let parsed: Vec<OutcomeReport> =
            parsed.into_iter().map(|(_, token, outcome)| OutcomeReport { token: token.unwrap(), outcome }).collect();
        assert_eq!(parsed, items);
    }

    #[test]
    fn a_malformed_token_does_not_invalidate_the_request() {
        assert_eq!(parse_outcomes(r#"{"items": [{"leaseToken": "x"}]}"#).unwrap()[0].1, None);
    }
}
