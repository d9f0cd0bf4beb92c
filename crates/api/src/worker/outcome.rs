//! How attempts ended, one or many.

use orchestrix_core::{FieldError, Invalid, JobStatus, LeaseToken};
use orchestrix_store::{Outcome, OutcomeReport};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{raw, take_json};
use crate::{Code, Object, job::Refusal};

/// How one attempt ended.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OutcomeRequest {
    /// Whose attempt.
    pub lease_token: String,
    /// How: `completed` (unless told otherwise), `failed`, `snoozed`, `released`, `cancelled` or `timed_out`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Of a completed one: what it leaves behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub result: Option<Box<RawValue>>,
    /// Of a failed one: what went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Of a failed one: whether another try may help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// Of a failed one: wait this long instead of the job's own back-off.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Delay>))]
    pub retry_after_seconds: Option<f64>,
    /// Of a snoozed one: after how long to be given it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Delay>))]
    pub seconds: Option<f64>,
}

impl From<&OutcomeReport> for OutcomeRequest {
    fn from(item: &OutcomeReport) -> Self {
        let plain = |outcome: &str| Self {
            lease_token: item.token.to_string(),
            outcome: Some(outcome.into()),
            ..Self::default()
        };
        match &item.outcome {
            Outcome::Complete { result } => Self { result: result.as_ref().map(raw), ..plain("completed") },
            Outcome::Fail { error, retryable, retry_after } => Self {
                error: Some(error.clone()),
                retryable: Some(*retryable),
                retry_after_seconds: retry_after.map(|delay| delay.as_secs_f64()),
                ..plain("failed")
            },
            Outcome::Snooze(delay) => Self { seconds: Some(delay.as_secs_f64()), ..plain("snoozed") },
            Outcome::Release => plain("released"),
            Outcome::Cancelled => plain("cancelled"),
            Outcome::TimedOut => plain("timed_out"),
        }
    }
}

/// How an attempt ended, as a path says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// `/complete`
    Complete,
    /// `/fail`
    Fail,
    /// `/snooze`
    Snooze,
    /// `/release`
    Release,
}

/// Reads how an attempt ended; an empty body has no fields.
pub fn read_outcome(ending: Ending, text: &str) -> Result<Outcome, Refusal> {
    let mut object = Object::read(if text.trim().is_empty() { "{}" } else { text })?;
    let outcome = match ending {
        Ending::Complete => take_complete(&mut object),
        Ending::Fail => take_fail(&mut object),
        Ending::Snooze => take_snooze(&mut object),
        Ending::Release => Some(Outcome::Release),
    };
    checked(outcome, object)
}

fn checked(outcome: Option<Outcome>, mut object: Object<'_>) -> Result<Outcome, Refusal> {
    if let Some(Err(error)) = outcome.as_ref().map(Outcome::validate) {
        object.bad(&error.field, error.message);
    }
    object.end()?;
    Ok(outcome.unwrap_or(Outcome::Release))
}

fn take_complete(object: &mut Object<'_>) -> Option<Outcome> {
    Some(Outcome::Complete { result: take_json(object, "result") })
}

fn take_fail(object: &mut Object<'_>) -> Option<Outcome> {
    let error: Option<String> = object.get("error", "a string");
    let error = object.required("error", error);
    let retryable = object.get("retryable", "true or false").unwrap_or(true);
    let retry_after = object.seconds("retryAfterSeconds");
    Some(Outcome::Fail { error: error?, retryable, retry_after })
}

fn take_snooze(object: &mut Object<'_>) -> Option<Outcome> {
    let seconds = object.seconds("seconds");
    object.required("seconds", seconds).map(Outcome::Snooze)
}

/// Several outcomes.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OutcomesRequest {
    /// Each by itself: one that is refused does not spoil the others.
    #[cfg_attr(feature = "openapi", schema(max_items = 10000))]
    pub items: Vec<OutcomeRequest>,
}

/// Reads several outcomes. A token that is none belongs to no job, and so to a lease that is lost.
pub fn read_outcomes(text: &str) -> Result<Vec<(String, Option<LeaseToken>, Outcome)>, Refusal> {
    let mut object = Object::read_many(text)?;
    let outcomes = object.each("items", OutcomeReport::MAX_ITEMS, read_item);
    let outcomes = object.required("items", outcomes);
    object.end()?;
    Ok(outcomes.unwrap_or_default())
}

fn read_item(mut object: Object<'_>) -> Result<(String, Option<LeaseToken>, Outcome), Invalid> {
    let token: Option<String> = object.get("leaseToken", "a string");
    let token = object.required("leaseToken", token);
    let outcome = object.get::<String>("outcome", "a string").unwrap_or_else(|| "completed".into());
    let outcome = match outcome.as_str() {
        "completed" => take_complete(&mut object),
        "failed" => take_fail(&mut object),
        "snoozed" => take_snooze(&mut object),
        "released" => Some(Outcome::Release),
        "cancelled" => Some(Outcome::Cancelled),
        "timed_out" => Some(Outcome::TimedOut),
        _ => {
            object.bad("outcome", "must be completed, failed, snoozed, released, cancelled or timed_out");
            None
        }
    };
    if let Some(Err(error)) = outcome.as_ref().map(Outcome::validate) {
        object.bad(&error.field, error.message);
    }
    object.end()?;
    match (token, outcome) {
        (Some(token), Some(outcome)) => {
            let parsed = token.parse().ok();
            Ok((token, parsed, outcome))
        }
        _ => Err(FieldError::new("leaseToken", "is required").into()),
    }
}

/// What came of several outcomes, in their order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OutcomesAnswer {
    /// Each by itself.
    pub items: Vec<OutcomeAnswer>,
}

/// What came of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OutcomeAnswer {
    /// Which.
    pub lease_token: String,
    /// Where the job stands now, if it was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::job::Status>))]
    pub status: Option<JobStatus>,
    /// Why it was not, if it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// The same in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use orchestrix_core::Json;

    use super::*;

    #[test]
    fn every_outcome_is_written_and_read_alike() {
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
        let read = read_outcomes(&serde_json::to_string(&request).unwrap()).unwrap();
        let read: Vec<OutcomeReport> =
            read.into_iter().map(|(_, token, outcome)| OutcomeReport { token: token.unwrap(), outcome }).collect();
        assert_eq!(read, items);
    }

    #[test]
    fn a_text_that_is_no_token_is_no_mistake_in_the_request() {
        assert_eq!(read_outcomes(r#"{"items": [{"leaseToken": "x"}]}"#).unwrap()[0].1, None);
    }
}
