//! The JSON messages of the WebSocket, in both directions.

use orchestrix_api::Code;
use orchestrix_core::{JobId, Queue, Timestamp};
use orchestrix_store::JobChange;
use serde::Deserialize;
use serde_json::json;

use super::subscriber::MAX_JOBS;
use crate::jobs::parse_id;

/// The longest message of a client, in bytes.
pub(super) const MAX_MESSAGE_BYTES: usize = 64 * 1024;

/// What a client subscribes to or unsubscribes from.
#[derive(Debug, Default)]
pub(super) struct Subscription {
    pub(super) jobs: Vec<JobId>,
    pub(super) queues: Vec<Queue>,
    pub(super) all: bool,
    /// Resumes an earlier subscription that received all events before this time.
    pub(super) since: Option<Timestamp>,
}

/// A message of a client.
#[derive(Debug, Default)]
pub(super) struct ClientMessage {
    pub(super) unsubscribe: Subscription,
    pub(super) subscribe: Subscription,
    /// Strings in place of job ids that are no ids.
    pub(super) malformed_ids: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with subscribe or unsubscribe")]
struct RawMessage {
    subscribe: Option<RawSubscription>,
    unsubscribe: Option<RawSubscription>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "an object with jobs, queues or all")]
struct RawSubscription {
    jobs: Vec<String>,
    queues: Vec<Queue>,
    all: bool,
    since: Option<Timestamp>,
}

/// Parses a message of a client, or returns the code and text of the error.
pub(super) fn parse(text: &str) -> Result<ClientMessage, (Code, String)> {
    let raw: RawMessage = serde_json::from_str(text).map_err(|error| {
        let code = if error.is_data() { Code::ValidationFailed } else { Code::MalformedRequest };
        (code, error.to_string())
    })?;
    if raw.subscribe.is_none() && raw.unsubscribe.is_none() {
        return Err((Code::ValidationFailed, "must contain subscribe or unsubscribe".into()));
    }
    let mut malformed_ids = Vec::new();
    let mut subscription = |raw: Option<RawSubscription>| {
        let RawSubscription { jobs, queues, all, since } = raw.unwrap_or_default();
        let mut ids = Vec::with_capacity(jobs.len());
        for text in jobs {
            match parse_id(&text) {
                Ok(id) => ids.push(id),
                Err(_) => malformed_ids.push(text),
            }
        }
        Subscription { jobs: ids, queues, all, since }
    };
    let (unsubscribe, subscribe) = (subscription(raw.unsubscribe), subscription(raw.subscribe));
    // Each malformed id gets its own response.
    if malformed_ids.len() > MAX_JOBS {
        return Err((Code::ValidationFailed, "contains too many malformed job ids".into()));
    }
    Ok(ClientMessage { unsubscribe, subscribe, malformed_ids })
}

/// A `status` event without its sequence number and closing brace, which differ between subscribers.
pub(super) fn status_prefix(job: &JobChange) -> String {
    // Names need no escapes: see their rules in `core`.
    format!(
        r#"{{"event":"status","jobId":"{}","jobType":"{}","queue":"{}","status":"{}","at":"{}","seq":"#,
        job.id,
        job.job_type,
        job.queue,
        job.status(),
        job.at
    )
}

pub(super) const LAGGED: &str = r#"{"event":"lagged"}"#;

/// The end of a resync. If it is incomplete, changes up to this time may be missing.
pub(super) fn synced(incomplete_until: Option<Timestamp>) -> String {
    match incomplete_until {
        None => r#"{"event":"synced","complete":true}"#.into(),
        Some(until) => format!(r#"{{"event":"synced","complete":false,"since":"{until}"}}"#),
    }
}

pub(super) fn error(code: Code, message: &str) -> String {
    json!({"event": "error", "code": code, "message": message}).to_string()
}

pub(super) fn job_not_found(id: &str) -> String {
    let message = format!("there is no job {id}");
    json!({"event": "error", "code": Code::JobNotFound, "message": message, "jobId": id}).to_string()
}
