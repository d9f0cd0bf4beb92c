//! The worker API, for workers in any language.
//!
//! | module | contents |
//! |---|---|
//! | `registration` | registers a worker at its start |
//! | `lease` | leases jobs |
//! | `heartbeat` | extends leases and returns directives |
//! | `outcome` | reports how attempts ended, one or a batch |
//! | `progress`, `logs` | progress, checkpoints and log lines of running jobs |

use orchestrix_core::{FieldError, Json, Queue};
use orchestrix_store::{ClaimRequest, Queues};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::ObjectReader;

mod heartbeat;
mod lease;
mod logs;
mod outcome;
mod progress;
mod registration;

pub use heartbeat::{Heartbeat, HeartbeatRequest, HeartbeatResponse, LeaseState, LeaseStatusView, parse_directive};
pub use lease::{LeasePoll, LeaseRequest, LeaseResponse, LeaseView, MAX_WAIT};
pub use logs::{LogLineRequest, LogsRequest, MAX_LINES, parse_logs};
pub use outcome::{
    CompleteRequest, FailRequest, OutcomeKind, OutcomeRequest, OutcomeResponse, OutcomesRequest, OutcomesResponse,
    ReleaseRequest, SnoozeRequest, parse_outcome, parse_outcomes,
};
pub use progress::{ProgressRequest, parse_progress};
pub use registration::{RegisterRequest, RegisterResponse, parse_registration};

/// The capacity of a worker.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Capacity {
    /// The number of jobs the worker runs concurrently.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Slots>))]
    pub slots: Option<u32>,
}

/// Names the queues as the API spells them. `*` means all queues.
pub fn queue_names(queues: &Queues) -> Vec<String> {
    match queues {
        Queues::All => vec!["*".into()],
        Queues::Named(names) => names.iter().map(ToString::to_string).collect(),
    }
}

// A `*` anywhere in the list means all queues.
fn take_queues(object: &mut ObjectReader<'_>) -> Queues {
    let queue = |text: &str| if text == "*" { Ok(None) } else { Queue::new(text).map(Some) };
    let queues = object.strings("queues", ClaimRequest::MAX_NAMES, queue).unwrap_or_else(|| vec![None]);
    queues.into_iter().collect::<Option<Vec<Queue>>>().map_or(Queues::All, Queues::Named)
}

fn take_slots(object: &mut ObjectReader<'_>) -> Option<u32> {
    let mut inner = object.object("capacity")?;
    let slots = take_count(&mut inner, "slots");
    object.add_nested_errors("capacity", inner.finish());
    slots
}

fn take_count(object: &mut ObjectReader<'_>, field: &str) -> Option<u32> {
    let count = object.integer(field)?;
    object.record(field, u32::try_from(count).map_err(|_| FieldError::new("", "must be from 0 to 4294967295")))
}

// The store holds validated JSON, so the conversion cannot fail.
pub(crate) fn raw(json: &Json) -> Box<RawValue> {
    RawValue::from_string(json.as_str().to_owned()).unwrap_or_default()
}

fn take_json(object: &mut ObjectReader<'_>, field: &str) -> Option<Json> {
    let raw = object.take(field)?;
    object.record(field, Json::parse(field, raw.get()))
}
