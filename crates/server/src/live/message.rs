//! What is said over a WebSocket, in both directions.

use orchestrix_api::Code;
use orchestrix_core::{JobId, Queue, Timestamp};
use orchestrix_store::JobChange;
use serde::Deserialize;
use serde_json::json;

use super::listener::MOST_JOBS;
use crate::jobs::parse_id;

/// The longest message that is read, in bytes.
pub(super) const LONGEST: usize = 64 * 1024;

/// What somebody follows, or no longer.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) jobs: Vec<JobId>,
    pub(super) queues: Vec<Queue>,
    pub(super) all: bool,
    /// He has followed them before, and heard all until then.
    pub(super) since: Option<Timestamp>,
}

/// What is asked for.
#[derive(Debug, Default)]
pub(super) struct Ask {
    pub(super) unsubscribe: Wanted,
    pub(super) subscribe: Wanted,
    /// What is no id, so that no job has it.
    pub(super) unknown: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with subscribe or unsubscribe")]
struct Asked {
    subscribe: Option<Named>,
    unsubscribe: Option<Named>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "an object with jobs, queues or all")]
struct Named {
    jobs: Vec<String>,
    queues: Vec<Queue>,
    all: bool,
    since: Option<Timestamp>,
}

/// Reads a message; what is wrong with it.
pub(super) fn read(text: &str) -> Result<Ask, (Code, String)> {
    let asked: Asked = serde_json::from_str(text).map_err(|error| {
        let code = if error.is_data() { Code::ValidationFailed } else { Code::MalformedRequest };
        (code, error.to_string())
    })?;
    if asked.subscribe.is_none() && asked.unsubscribe.is_none() {
        return Err((Code::ValidationFailed, "says neither subscribe nor unsubscribe".into()));
    }
    let mut unknown = Vec::new();
    let mut wanted = |named: Option<Named>| {
        let Named { jobs, queues, all, since } = named.unwrap_or_default();
        let mut known = Vec::with_capacity(jobs.len());
        for text in jobs {
            match parse_id(&text) {
                Ok(id) => known.push(id),
                Err(_) => unknown.push(text),
            }
        }
        Wanted { jobs: known, queues, all, since }
    };
    let (unsubscribe, subscribe) = (wanted(asked.unsubscribe), wanted(asked.subscribe));
    // Each is answered by itself.
    if unknown.len() > MOST_JOBS {
        return Err((Code::ValidationFailed, "too many of these are no ids of jobs".into()));
    }
    Ok(Ask { unsubscribe, subscribe, unknown })
}

/// What is told of a job, but for the number and the end: those are each listener's own.
pub(super) fn status(job: &JobChange) -> String {
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

/// All is told that has changed, but for what changed until then.
pub(super) fn synced(lacks: Option<Timestamp>) -> String {
    match lacks {
        None => r#"{"event":"synced","complete":true}"#.into(),
        Some(until) => format!(r#"{{"event":"synced","complete":false,"since":"{until}"}}"#),
    }
}

pub(super) fn error(code: Code, message: &str) -> String {
    json!({"event": "error", "code": code, "message": message}).to_string()
}

pub(super) fn unknown(id: &str) -> String {
    let message = format!("there is no job {id}");
    json!({"event": "error", "code": Code::JobNotFound, "message": message, "jobId": id}).to_string()
}
