//! Heartbeats of workers and their leases.

use orchestrix_core::{FieldError, Instance, Invalid, LeaseToken, Timestamp, WorkerName};
use orchestrix_store::{Directive, LeaseStatus, Presence, claim::MAX_TOKENS};
use serde::{Deserialize, Serialize};

use super::{Capacity, take_count, take_slots};
use crate::{ObjectReader, RequestError};

/// A heartbeat of a worker and its leases.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(examples(json!({"workerId": "host-1", "leaseTokens": [], "freeSlots": 3}))))]
pub struct HeartbeatRequest {
    /// The worker's name.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::WorkerId))]
    pub worker_id: String,
    /// The tokens of the leases to extend.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<String>>, max_items = 10000))]
    pub lease_tokens: Vec<String>,
    /// The number of free slots. If omitted, the last reported number stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Slots>))]
    pub free_slots: Option<u32>,
    /// If true, the worker is draining on its own: it claims no jobs and exits when its running jobs are done.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<bool>))]
    pub draining: bool,
    /// The `instanceId` of the registration, if any.
    /// A heartbeat of a replaced instance does not affect the current one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Name>))]
    pub instance_id: Option<String>,
    /// The worker's capacity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,
}

/// A parsed [`HeartbeatRequest`].
#[derive(Debug, Clone, PartialEq)]
pub struct Heartbeat {
    /// The worker's name.
    pub worker: WorkerName,
    /// The tokens to extend, as sent and as parsed. A text that is not a token counts as a lost lease.
    pub tokens: Vec<(String, Option<LeaseToken>)>,
    /// Free slots, draining flag and instance id.
    pub presence: Presence,
    /// The worker's total number of slots.
    pub slots: Option<u32>,
}

impl Heartbeat {
    /// Parses a [`HeartbeatRequest`].
    pub fn parse(text: &str) -> Result<Self, RequestError> {
        let mut object = ObjectReader::parse(text)?;
        let worker = object.string("workerId", |text| WorkerName::new(text));
        let worker = object.required("workerId", worker);
        let token = |text: &str| Ok((text.to_owned(), text.parse().ok()));
        let tokens = object.strings("leaseTokens", MAX_TOKENS, token).unwrap_or_default();
        let free_slots = take_count(&mut object, "freeSlots");
        let draining = object.get("draining", "true or false").unwrap_or_default();
        let instance = object.string("instanceId", |text| Instance::new(text));
        let slots = take_slots(&mut object);
        object.finish()?;
        let worker = worker.ok_or_else(|| Invalid::from(FieldError::new("workerId", "is required")))?;
        Ok(Self { worker, tokens, presence: Presence { free_slots, draining, instance }, slots })
    }
}

/// The response to a heartbeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HeartbeatResponse {
    /// The status of each lease, in the order of the request.
    pub leases: Vec<LeaseStatusView>,
    /// The directive to the worker: `run`, `drain` or `stop`.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::WorkerDirective))]
    pub directive: String,
}

/// The status of one lease.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LeaseStatusView {
    /// The lease token.
    pub lease_token: String,
    /// The state of the lease.
    pub state: LeaseState,
    /// When the lease expires unless it is extended again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub lease_expires_at: Option<Timestamp>,
}

/// The state of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum LeaseState {
    /// The worker holds the lease.
    Held,
    /// The worker holds the lease, and a cancellation was requested: stop the job, then release it.
    Cancel,
    /// The worker no longer holds the lease: stop the job and report nothing.
    Lost,
}

impl LeaseStatusView {
    /// Converts a lease status.
    pub fn new(lease_token: String, status: LeaseStatus) -> Self {
        let (state, lease_expires_at) = match status {
            LeaseStatus::Held(until) | LeaseStatus::Locked(until) => (LeaseState::Held, Some(until)),
            LeaseStatus::Cancel(until) => (LeaseState::Cancel, Some(until)),
            LeaseStatus::Lost => (LeaseState::Lost, None),
        };
        Self { lease_token, state, lease_expires_at }
    }

    /// Converts back to a lease status.
    pub fn status(&self) -> LeaseStatus {
        match (self.state, self.lease_expires_at) {
            (LeaseState::Held, Some(until)) => LeaseStatus::Held(until),
            (LeaseState::Cancel, Some(until)) => LeaseStatus::Cancel(until),
            _ => LeaseStatus::Lost,
        }
    }
}

/// Parses a directive.
pub fn parse_directive(text: &str) -> Option<Directive> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_token_does_not_invalidate_the_request() {
        assert_eq!(Heartbeat::parse(r#"{"workerId": "w", "leaseTokens": ["x"]}"#).unwrap().tokens[0].1, None);
    }
}
