//! `orchestrix.sleep {seconds}`: waits, and stops waiting when the job is cancelled.

use std::time::Duration;

use orchestrix_worker::{HandlerResult, JobCall, JobError};
use serde::{Deserialize, Deserializer, de::Error};

use crate::{INTERRUPTED, payload};

pub(crate) const TYPE: &str = "orchestrix.sleep";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sleep {
    #[serde(deserialize_with = "seconds")]
    seconds: Duration,
}

fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    Duration::try_from_secs_f64(f64::deserialize(deserializer)?)
        .map_err(|_| D::Error::custom("must be a number of seconds, zero or more"))
}

pub(crate) async fn run(call: JobCall) -> HandlerResult {
    let Sleep { seconds } = payload::read(&call.payload)?;
    tokio::select! {
        () = tokio::time::sleep(seconds) => Ok(None),
        () = call.context.cancelled() => Err(JobError::new(INTERRUPTED)),
    }
}
