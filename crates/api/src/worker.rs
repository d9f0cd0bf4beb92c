//! What workers of any language ask and say.

use std::{collections::BTreeMap, time::Duration};

use orchestrix_core::{
    FieldError, Instance, Invalid, JobId, JobStatus, JobType, Json, LeaseToken, Priority, Progress, Queue, Tenant,
    Timestamp, WorkerName,
};
use orchestrix_store::{
    ClaimRequest, Claimed, Directive, Finish, LeaseStatus, LogLevel, LogLine, Presence, ProgressUpdate, Queues,
    Verdict, claim::MAX_TOKENS,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Code, Object, job::Refusal};

/// How long one may ask to wait: for jobs, or for a job to change.
pub const MAX_WAIT: Duration = Duration::from_secs(60);
/// The most lines in one call.
pub const MAX_LINES: usize = 1_000;

/// A request for jobs.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(examples(json!({"workerId": "host-1", "queues": ["mail"], "max": 10, "waitSeconds": 0}))))]
pub struct LeaseRequest {
    /// Who asks: a name of its own.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::WorkerId))]
    pub worker_id: String,
    /// From which queues; `["*"]`, the default, is all of them.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<crate::schema::QueueOrAll>>, max_items = 1000))]
    pub queues: Vec<String>,
    /// How many jobs at most; 1 unless told otherwise.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u32>, minimum = 1, maximum = 10000))]
    pub max: usize,
    /// How long to wait for the first; not at all unless told otherwise.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>, minimum = 0, maximum = 60))]
    pub wait_seconds: f64,
    /// Only these types; all unless told otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<crate::schema::TypeName>>, max_items = 1000))]
    pub job_types: Option<Vec<String>>,
    /// How many jobs it runs at once in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Capacity>))]
    pub capacity: Option<Capacity>,
}

/// What a worker has to offer.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Capacity {
    /// Jobs at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Slots>))]
    pub slots: Option<u32>,
}

/// A request for jobs, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// What is asked for.
    pub claim: ClaimRequest,
    /// How long to wait.
    pub wait: Duration,
    /// How many jobs the worker runs at once, if it says so.
    pub slots: Option<u32>,
}

impl Ask {
    /// Reads a [`LeaseRequest`].
    pub fn read(text: &str) -> Result<Self, Refusal> {
        let mut object = Object::read(text)?;
        let worker = object.text("workerId", |text| WorkerName::new(text));
        let worker = object.required("workerId", worker);
        let queues = take_queues(&mut object);
        let limit = object.whole("max").map_or(1, |n| usize::try_from(n).unwrap_or(0));
        let wait = object.seconds("waitSeconds").unwrap_or_default();
        if wait > MAX_WAIT {
            object.bad("waitSeconds", format!("must be at most {}", MAX_WAIT.as_secs()));
        }
        let job_types = object.texts("jobTypes", ClaimRequest::MAX_NAMES, |text| JobType::new(text));
        let slots = take_slots(&mut object);
        let claim = worker.map(|worker| ClaimRequest { worker, queues, job_types, limit });
        if let Some(Err(invalid)) = claim.as_ref().map(ClaimRequest::validate) {
            for error in invalid.errors {
                object.bad(&error.field, error.message);
            }
        }
        object.end()?;
        let claim = claim.ok_or_else(|| Invalid::from(FieldError::new("workerId", "is required")))?;
        Ok(Self { claim, wait, slots })
    }
}

/// Queues by name; `*` stands for all.
pub fn queue_names(queues: &Queues) -> Vec<String> {
    match queues {
        Queues::All => vec!["*".into()],
        Queues::Named(names) => names.iter().map(ToString::to_string).collect(),
    }
}

// `*` among others stands for all of them.
pub(crate) fn take_queues(object: &mut Object<'_>) -> Queues {
    let queue = |text: &str| if text == "*" { Ok(None) } else { Queue::new(text).map(Some) };
    let queues = object.texts("queues", ClaimRequest::MAX_NAMES, queue).unwrap_or_else(|| vec![None]);
    queues.into_iter().collect::<Option<Vec<Queue>>>().map_or(Queues::All, Queues::Named)
}

pub(crate) fn take_slots(object: &mut Object<'_>) -> Option<u32> {
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

/// A job that a worker now owns.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LeaseView {
    /// The job's id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uuid"))]
    pub job_id: JobId,
    /// What kind of work it is.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub job_type: JobType,
    /// What to work on.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub payload: Box<RawValue>,
    /// Which attempt this is, from 1.
    pub attempt: u16,
    /// How many there may be.
    pub max_attempts: u16,
    /// Proof of ownership, for every call about the job.
    pub lease_token: String,
    /// Until when the worker may be silent.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub lease_expires_at: Timestamp,
    /// How long that was from the claim, for the worker's own clock.
    pub lease_seconds: f64,
    /// How long the attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
    /// What the previous attempt left for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub checkpoint: Option<Box<RawValue>>,
    /// What the jobs it waited for left behind, by their ids.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, serde_json::Value>))]
    pub dependency_results: BTreeMap<String, Box<RawValue>>,
    /// The caller's id for the larger whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// W3C trace context of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// Whose it is.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub tenant: Tenant,
    /// Where it waited.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub queue: Queue,
    /// How urgent it is.
    #[cfg_attr(feature = "openapi", schema(value_type = i16))]
    pub priority: Priority,
    /// When it became eligible.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub eligible_at: Timestamp,
}

// Checked when it was recorded, so it is JSON.
fn raw(json: &Json) -> Box<RawValue> {
    RawValue::from_string(json.as_str().to_owned()).unwrap_or_default()
}

impl From<Claimed> for LeaseView {
    fn from(job: Claimed) -> Self {
        Self {
            job_id: job.id(),
            payload: raw(&job.payload),
            attempt: job.attempt,
            max_attempts: job.max_attempts,
            lease_token: job.token.to_string(),
            lease_expires_at: job.lease_expires_at,
            lease_seconds: job.lease.as_secs_f64(),
            timeout_seconds: job.timeout.map(|timeout| timeout.as_secs_f64()),
            checkpoint: job.checkpoint.as_ref().map(raw),
            dependency_results: job.dependency_results.iter().map(|(id, json)| (id.to_string(), raw(json))).collect(),
            job_type: job.job_type,
            correlation_id: job.correlation_id,
            traceparent: job.traceparent,
            tenant: job.tenant,
            queue: job.queue,
            priority: job.priority,
            eligible_at: job.eligible_at,
        }
    }
}

impl TryFrom<LeaseView> for Claimed {
    type Error = FieldError;

    fn try_from(view: LeaseView) -> Result<Self, FieldError> {
        let seconds = |field: &str, value: f64| {
            Duration::try_from_secs_f64(value).map_err(|_| FieldError::new(field, "is not a number of seconds"))
        };
        let dependency = |(id, json): (String, Box<RawValue>)| {
            let id = id.parse().map_err(|_| FieldError::new("dependencyResults", "has a key that is no id"))?;
            Ok((id, Json::trusted(json.get())))
        };
        Ok(Self {
            token: view.lease_token.parse()?,
            job_type: view.job_type,
            queue: view.queue,
            tenant: view.tenant,
            priority: view.priority,
            payload: Json::trusted(view.payload.get()),
            attempt: view.attempt,
            max_attempts: view.max_attempts,
            eligible_at: view.eligible_at,
            lease_expires_at: view.lease_expires_at,
            lease: seconds("leaseSeconds", view.lease_seconds)?,
            timeout: view.timeout_seconds.map(|value| seconds("timeoutSeconds", value)).transpose()?,
            checkpoint: view.checkpoint.map(|json| Json::trusted(json.get())),
            correlation_id: view.correlation_id,
            traceparent: view.traceparent,
            dependency_results: view.dependency_results.into_iter().map(dependency).collect::<Result<_, _>>()?,
        })
    }
}

/// Jobs that a worker now owns.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Leases {
    /// None after the wait, if there were none.
    pub leases: Vec<LeaseView>,
    /// How long the request had waited when they were leased: the leases run from then on, not from when it was sent.
    #[serde(default)]
    pub waited_seconds: f64,
}

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
pub fn read_outcome(ending: Ending, text: &str) -> Result<Verdict, Refusal> {
    let mut object = Object::read(if text.trim().is_empty() { "{}" } else { text })?;
    let verdict = match ending {
        Ending::Complete => take_complete(&mut object),
        Ending::Fail => take_fail(&mut object),
        Ending::Snooze => take_snooze(&mut object),
        Ending::Release => Some(Verdict::Release),
    };
    checked(verdict, object)
}

fn checked(verdict: Option<Verdict>, mut object: Object<'_>) -> Result<Verdict, Refusal> {
    if let Some(Err(error)) = verdict.as_ref().map(Verdict::validate) {
        object.bad(&error.field, error.message);
    }
    object.end()?;
    Ok(verdict.unwrap_or(Verdict::Release))
}

fn take_json(object: &mut Object<'_>, field: &str) -> Option<Json> {
    let raw = object.take(field)?;
    object.keep(field, Json::parse(field, raw.get()))
}

fn take_complete(object: &mut Object<'_>) -> Option<Verdict> {
    Some(Verdict::Complete { result: take_json(object, "result") })
}

fn take_fail(object: &mut Object<'_>) -> Option<Verdict> {
    let error: Option<String> = object.get("error", "a string");
    let error = object.required("error", error);
    let retryable = object.get("retryable", "true or false").unwrap_or(true);
    let retry_after = object.seconds("retryAfterSeconds");
    Some(Verdict::Fail { error: error?, retryable, retry_after })
}

fn take_snooze(object: &mut Object<'_>) -> Option<Verdict> {
    let seconds = object.seconds("seconds");
    object.required("seconds", seconds).map(Verdict::Snooze)
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
pub fn read_outcomes(text: &str) -> Result<Vec<(String, Option<LeaseToken>, Verdict)>, Refusal> {
    let mut object = Object::read_many(text)?;
    let outcomes = object.each("items", Finish::MAX_ITEMS, read_item);
    let outcomes = object.required("items", outcomes);
    object.end()?;
    Ok(outcomes.unwrap_or_default())
}

fn read_item(mut object: Object<'_>) -> Result<(String, Option<LeaseToken>, Verdict), Invalid> {
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
            object.bad("outcome", "must be completed, failed, snoozed, released, cancelled or timed_out");
            None
        }
    };
    if let Some(Err(error)) = verdict.as_ref().map(Verdict::validate) {
        object.bad(&error.field, error.message);
    }
    object.end()?;
    match (token, verdict) {
        (Some(token), Some(verdict)) => {
            let parsed = token.parse().ok();
            Ok((token, parsed, verdict))
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

/// How far a running job has come.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProgressRequest {
    /// From 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 100))]
    pub percent: Option<f64>,
    /// In words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Message>))]
    pub message: Option<String>,
    /// What the next attempt should get back.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub checkpoint: Option<Box<RawValue>>,
}

impl From<&ProgressUpdate> for ProgressRequest {
    fn from(update: &ProgressUpdate) -> Self {
        Self {
            percent: update.progress.as_ref().and_then(|progress| progress.percent),
            message: update.progress.as_ref().and_then(|progress| progress.message.clone()),
            checkpoint: update.checkpoint.as_ref().map(raw),
        }
    }
}

/// Reads how far a job has come.
pub fn read_progress(text: &str) -> Result<ProgressUpdate, Refusal> {
    let mut object = Object::read(text)?;
    // No store keeps the sign of nothing.
    let percent = object.get::<f64>("percent", "a number").map(|percent| percent + 0.0);
    let message = object.get("message", "a string");
    let checkpoint = take_json(&mut object, "checkpoint");
    let said = percent.is_some() || message.is_some();
    let update = ProgressUpdate { progress: said.then_some(Progress { percent, message }), checkpoint };
    if let Err(error) = update.validate() {
        object.bad(&error.field, error.message);
    }
    object.end()?;
    Ok(update)
}

/// Lines of a job's log.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LogsRequest {
    /// In the order in which they were written.
    #[cfg_attr(feature = "openapi", schema(max_items = 1000))]
    pub lines: Vec<LineRequest>,
}

/// One line.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LineRequest {
    /// When it was written; now, unless told otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub at: Option<Timestamp>,
    /// `trace`, `debug`, `info` (unless told otherwise), `warn` or `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Level>))]
    pub level: Option<String>,
    /// What it says.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::LogText))]
    pub message: String,
}

impl From<&LogLine> for LineRequest {
    fn from(line: &LogLine) -> Self {
        Self { at: line.at, level: Some(line.level.to_string()), message: line.message.clone() }
    }
}

/// Reads lines of a log.
pub fn read_logs(text: &str) -> Result<Vec<LogLine>, Refusal> {
    let mut object = Object::read(text)?;
    let lines = object.each("lines", MAX_LINES, read_line);
    let lines = object.required("lines", lines).unwrap_or_default();
    if let Err(error) = LogLine::validate(&lines) {
        object.bad(&error.field, error.message);
    }
    object.end()?;
    Ok(lines)
}

fn read_line(mut object: Object<'_>) -> Result<LogLine, Invalid> {
    let at = object.time("at");
    let level = object.text("level", |text| text.parse()).unwrap_or(LogLevel::Info);
    let message: Option<String> = object.get("message", "a string");
    let message = object.required("message", message);
    object.end()?;
    Ok(LogLine { at, level, message: message.unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_for_jobs_has_defaults() {
        let ask = Ask::read(r#"{"workerId": "w"}"#).unwrap();
        assert_eq!(ask.claim, ClaimRequest { limit: 1, ..ClaimRequest::any(WorkerName::trusted("w"), 1) });
        assert_eq!((ask.wait, ask.slots), (Duration::ZERO, None));
        let ask = Ask::read(
            r#"{"workerId": "w", "queues": ["a"], "max": 5, "waitSeconds": 2.5, "jobTypes": ["t"], "capacity": {"slots": 9}}"#,
        );
        let ask = ask.unwrap();
        assert_eq!(ask.claim.queues, Queues::Named(vec![Queue::trusted("a")]));
        assert_eq!((ask.claim.limit, ask.wait, ask.slots), (5, Duration::from_millis(2500), Some(9)));
    }

    #[test]
    fn what_is_wrong_with_a_request_is_named() {
        let text = r#"{"queues": ["a b"], "max": 0, "waitSeconds": 61, "jobTypes": [" "], "capacity": {"x": 1}}"#;
        let Err(Refusal::Invalid(invalid)) = Ask::read(text) else { panic!("taken") };
        let mut fields: Vec<&str> = invalid.errors.iter().map(|error| error.field.as_str()).collect();
        fields.sort_unstable();
        assert_eq!(fields, ["capacity.x", "jobTypes[0]", "queues[0]", "waitSeconds", "workerId"]);
    }

    #[test]
    fn every_outcome_is_written_and_read_alike() {
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
        let read = read_outcomes(&serde_json::to_string(&request).unwrap()).unwrap();
        let read: Vec<Finish> =
            read.into_iter().map(|(_, token, verdict)| Finish { token: token.unwrap(), verdict }).collect();
        assert_eq!(read, items);
    }

    #[test]
    fn a_text_that_is_no_token_is_no_mistake_in_the_request() {
        assert_eq!(read_outcomes(r#"{"items": [{"leaseToken": "x"}]}"#).unwrap()[0].1, None);
        assert_eq!(Beat::read(r#"{"workerId": "w", "leaseTokens": ["x"]}"#).unwrap().tokens[0].1, None);
    }

    #[test]
    fn lines_have_places() {
        let Err(Refusal::Invalid(invalid)) = read_logs(r#"{"lines": [{"message": "a"}, {"level": "loud"}]}"#) else {
            panic!("taken")
        };
        let fields: Vec<&str> = invalid.errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["lines[1].level", "lines[1].message"]);
    }
}
