//! What workers of any language ask and say.
//!
//! | module | what it owns |
//! |---|---|
//! | [`register`] | what they say of themselves when they start |
//! | `lease` | asking for jobs, and being given them |
//! | `heartbeat` | signs of life, and what is answered to them |
//! | [`ending`] | the bodies of one attempt's end, where the path says how it ended |
//! | `outcome` | how attempts ended, one or many, written and read |
//! | `progress`, `logs` | what a running job tells of itself |

use orchestrix_core::{FieldError, Json, Queue};
use orchestrix_store::{ClaimRequest, Queues};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::Object;

pub mod ending;
mod heartbeat;
mod lease;
mod logs;
mod outcome;
mod progress;
pub mod register;

pub use heartbeat::{Beat, HeartbeatAnswer, HeartbeatRequest, HeldState, LeaseState, directive};
pub use lease::{Ask, LeaseRequest, LeaseView, Leases, MAX_WAIT};
pub use logs::{LineRequest, LogsRequest, MAX_LINES, read_logs};
pub use outcome::{
    Ending, OutcomeAnswer, OutcomeRequest, OutcomesAnswer, OutcomesRequest, read_outcome, read_outcomes,
};
pub use progress::{ProgressRequest, read_progress};

/// What a worker has to offer.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Capacity {
    /// Jobs at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Slots>))]
    pub slots: Option<u32>,
}

/// Queues by name; `*` stands for all.
pub fn queue_names(queues: &Queues) -> Vec<String> {
    match queues {
        Queues::All => vec!["*".into()],
        Queues::Named(names) => names.iter().map(ToString::to_string).collect(),
    }
}

// `*` among others stands for all of them.
fn take_queues(object: &mut Object<'_>) -> Queues {
    let queue = |text: &str| if text == "*" { Ok(None) } else { Queue::new(text).map(Some) };
    let queues = object.texts("queues", ClaimRequest::MAX_NAMES, queue).unwrap_or_else(|| vec![None]);
    queues.into_iter().collect::<Option<Vec<Queue>>>().map_or(Queues::All, Queues::Named)
}

fn take_slots(object: &mut Object<'_>) -> Option<u32> {
    let mut inner = object.object("capacity")?;
    let slots = take_count(&mut inner, "slots");
    object.take_in("capacity", inner.end());
    slots
}

fn take_count(object: &mut Object<'_>, field: &str) -> Option<u32> {
    let count = object.whole(field)?;
    object
        .keep(field, u32::try_from(count).map_err(|_| FieldError::new("", "must not be negative, nor over 4294967295")))
}

// Checked when it was recorded, so it is JSON.
fn raw(json: &Json) -> Box<RawValue> {
    RawValue::from_string(json.as_str().to_owned()).unwrap_or_default()
}

fn take_json(object: &mut Object<'_>, field: &str) -> Option<Json> {
    let raw = object.take(field)?;
    object.keep(field, Json::parse(field, raw.get()))
}
