//! Signs of life, and what is answered to them.

use orchestrix_core::{FieldError, Instance, Invalid, LeaseToken, Timestamp, WorkerName};
use orchestrix_store::{Directive, LeaseStatus, Presence, claim::MAX_TOKENS};
use serde::{Deserialize, Serialize};

use super::{Capacity, take_count, take_slots};
use crate::{Object, job::Refusal};

/// A sign of life, for a worker and its leases.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(examples(json!({"workerId": "host-1", "leaseTokens": [], "freeSlots": 3}))))]
pub struct HeartbeatRequest {
    /// Who lives.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::WorkerId))]
    pub worker_id: String,
    /// The leases to extend.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<String>>, max_items = 10000))]
    pub lease_tokens: Vec<String>,
    /// How many more jobs it could run; what it last said unless told otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Slots>))]
    pub free_slots: Option<u32>,
    /// Whether it takes nothing new any more, of its own accord: it ends when what it runs is done.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<bool>))]
    pub draining: bool,
    /// Which start of it this is, if it said so when it registered: one whose name another start has taken changes nothing of that one's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Name>))]
    pub instance_id: Option<String>,
    /// What it has to offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,
}

/// A sign of life, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Beat {
    /// Who lives.
    pub worker: WorkerName,
    /// The leases to extend. A text that is no token is one that is lost.
    pub tokens: Vec<(String, Option<LeaseToken>)>,
    /// What it shows of itself.
    pub presence: Presence,
    /// How many it runs at once.
    pub slots: Option<u32>,
}

impl Beat {
    /// Reads a [`HeartbeatRequest`].
    pub fn read(text: &str) -> Result<Self, Refusal> {
        let mut object = Object::read(text)?;
        let worker = object.text("workerId", |text| WorkerName::new(text));
        let worker = object.required("workerId", worker);
        // A text that is no token is no mistake in the request.
        let token = |text: &str| Ok((text.to_owned(), text.parse().ok()));
        let tokens = object.texts("leaseTokens", MAX_TOKENS, token).unwrap_or_default();
        let free_slots = take_count(&mut object, "freeSlots");
        let draining = object.get("draining", "true or false").unwrap_or_default();
        let instance = object.text("instanceId", |text| Instance::new(text));
        let slots = take_slots(&mut object);
        object.end()?;
        let worker = worker.ok_or_else(|| Invalid::from(FieldError::new("workerId", "is required")))?;
        Ok(Self { worker, tokens, presence: Presence { free_slots, draining, instance }, slots })
    }
}

/// What a heartbeat learns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HeartbeatAnswer {
    /// In the order of the request.
    pub leases: Vec<LeaseState>,
    /// What the worker should do: `run`, `drain` or `stop`.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::WorkerDirective))]
    pub directive: String,
}

/// One lease after a heartbeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LeaseState {
    /// Which.
    pub lease_token: String,
    /// What became of it.
    pub state: HeldState,
    /// Until when the worker may be silent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub lease_expires_at: Option<Timestamp>,
}

/// What became of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum HeldState {
    /// Still held.
    Held,
    /// Held, and somebody wants the job cancelled: stop, then release it.
    Cancel,
    /// Not held any more: stop, and say nothing.
    Lost,
}

impl LeaseState {
    /// Puts a lease into the words of the API.
    pub fn new(lease_token: String, status: LeaseStatus) -> Self {
        let (state, lease_expires_at) = match status {
            LeaseStatus::Held(until) | LeaseStatus::Locked(until) => (HeldState::Held, Some(until)),
            LeaseStatus::Cancel(until) => (HeldState::Cancel, Some(until)),
            LeaseStatus::Lost => (HeldState::Lost, None),
        };
        Self { lease_token, state, lease_expires_at }
    }

    /// What they say.
    pub fn status(&self) -> LeaseStatus {
        match (self.state, self.lease_expires_at) {
            (HeldState::Held, Some(until)) => LeaseStatus::Held(until),
            (HeldState::Cancel, Some(until)) => LeaseStatus::Cancel(until),
            _ => LeaseStatus::Lost,
        }
    }
}

/// Reads a directive.
pub fn directive(text: &str) -> Option<Directive> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_no_token_is_no_mistake_in_the_request() {
        assert_eq!(Beat::read(r#"{"workerId": "w", "leaseTokens": ["x"]}"#).unwrap().tokens[0].1, None);
    }
}
