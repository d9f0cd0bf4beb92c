//! What a handler knows of the job it works on, and what it can say about it.

use std::{
    fmt,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use orchestrix_client::{Job, Request};
use orchestrix_core::{JobId, JobType, Json, LeaseToken, NewJob, Queue, Tenant};
use orchestrix_store::{ClaimedJob, Enqueued, LogLevel, ProgressUpdate, Store, StoreError};
use serde::{Serialize, de::DeserializeOwned};
use tokio_util::sync::CancellationToken;

use crate::{
    JobError, JobResult,
    notes::Notes,
    report::{self, Desk},
    state::States,
    stop::{Stop, StopReason},
};

/// The job that a handler works on. Clones are the same.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    claimed: ClaimedJob,
    /// When the lease was asked for, on this node's clock: deadlines are measured from here.
    begun: Instant,
    stop: Stop,
    notes: Notes,
    checkpoint: Mutex<Option<Json>>,
    /// The trace context of the job's own span, where spans have one.
    own_trace: OnceLock<String>,
    /// What was recorded as the result in a transaction of the handler's own.
    completion: Mutex<Option<Completion>>,
    /// Whether the handler has begun to block a thread.
    blocking: AtomicBool,
    /// Held while notes are being written, so that the last are not overtaken by the end of the attempt.
    writing: tokio::sync::Mutex<()>,
    /// Whether somebody has said how the attempt ended.
    ended: AtomicBool,
    desk: Arc<Desk>,
    states: Arc<States>,
}

/// What completes a job in a transaction of the handler's own.
#[derive(Debug, Clone)]
pub struct Completion {
    /// Proof of ownership.
    pub token: LeaseToken,
    /// What the job leaves behind.
    pub result: Option<Json>,
}

impl Context {
    pub(crate) fn new(claimed: ClaimedJob, begun: Instant, desk: Arc<Desk>, states: Arc<States>) -> Self {
        let checkpoint = Mutex::new(claimed.checkpoint.clone());
        Self(Arc::new(Inner {
            claimed,
            begun,
            stop: Stop::default(),
            notes: Notes::default(),
            checkpoint,
            own_trace: OnceLock::new(),
            completion: Mutex::new(None),
            blocking: AtomicBool::new(false),
            writing: tokio::sync::Mutex::new(()),
            ended: AtomicBool::new(false),
            desk,
            states,
        }))
    }

    /// The job's id.
    pub fn id(&self) -> JobId {
        self.0.claimed.id()
    }

    /// What kind of job it is.
    pub fn job_type(&self) -> &JobType {
        &self.0.claimed.job_type
    }

    /// Where it waited.
    pub fn queue(&self) -> &Queue {
        &self.0.claimed.queue
    }

    /// Whose it is.
    pub fn tenant(&self) -> &Tenant {
        &self.0.claimed.tenant
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u16 {
        self.0.claimed.attempt
    }

    /// How many attempts there may be.
    pub fn max_attempts(&self) -> u16 {
        self.0.claimed.max_attempts
    }

    /// Whether a failure now would be the last.
    pub fn is_last_attempt(&self) -> bool {
        self.attempt() >= self.max_attempts()
    }

    /// Until when the attempt should be over, if the job has a timeout.
    pub fn deadline(&self) -> Option<Instant> {
        self.0.claimed.timeout.map(|timeout| self.0.begun + timeout)
    }

    /// Your id for the larger whole.
    pub fn correlation_id(&self) -> Option<&str> {
        self.0.claimed.correlation_id.as_deref()
    }

    /// The W3C trace context to go on with: of the job's own span where the worker ties it to a trace, else of the request.
    pub fn traceparent(&self) -> Option<&str> {
        self.0.own_trace.get().or(self.0.claimed.traceparent.as_ref()).map(String::as_str)
    }

    pub(crate) fn belongs_to(&self, traceparent: String) {
        let _ = self.0.own_trace.set(traceparent);
    }

    /// The trace that it is part of.
    pub(crate) fn trace_id(&self) -> Option<&str> {
        let id = self.traceparent()?.get(3..35)?;
        id.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(id)
    }

    /// What the jobs it waited for left behind; those without a result are not listed.
    pub fn dependency_results(&self) -> &[(JobId, Json)] {
        &self.0.claimed.dependency_results
    }

    /// Proof of ownership, to fence effects outside with: its counter grows with every lease of the job, so a system
    /// that remembers the highest it has seen can refuse an owner that was replaced.
    pub fn lease_token(&self) -> LeaseToken {
        self.0.claimed.token
    }

    /// What the worker was given for all handlers, by its type.
    ///
    /// # Errors
    /// If the worker was built without a `.state(…)` of this type. The job is tried again: another worker may have it.
    pub fn state<T: Send + Sync + 'static>(&self) -> JobResult<&T> {
        self.0.states.get().ok_or_else(|| {
            let name = std::any::type_name::<T>();
            JobError::new(format!("this worker has no state of type {name}: build it with .state(…)"))
        })
    }

    // ---- being stopped ----

    /// Whether the handler should stop; [`stop_reason`](Context::stop_reason) says why.
    pub fn is_cancelled(&self) -> bool {
        self.0.stop.token().is_cancelled()
    }

    /// Waits until the handler should stop. A handler that does not is dropped after a grace, at its next `await`.
    pub async fn cancelled(&self) {
        self.0.stop.token().cancelled().await;
    }

    /// The same as a token, for whatever takes one.
    pub fn cancellation(&self) -> &CancellationToken {
        self.0.stop.token()
    }

    /// Why the handler should stop.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.0.stop.reason()
    }

    // ---- saying how it goes ----

    /// Says how far the job has come, in percent. Cheap: only the latest is written, now and then.
    pub fn progress(&self, percent: f64) {
        self.announce(self.0.notes.progress(Some(percent), None));
    }

    /// The same, with words.
    pub fn progress_with(&self, percent: f64, message: impl fmt::Display) {
        self.announce(self.0.notes.progress(Some(percent), Some(&message.to_string())));
    }

    /// Adds a line to the job's log. Cheap: lines are gathered and written now and then.
    pub fn log(&self, level: LogLevel, message: impl fmt::Display) {
        self.announce(self.0.notes.line(level, &message.to_string()));
    }

    /// Adds a line with fields, kept as JSON after the message.
    pub fn log_with(&self, level: LogLevel, message: impl fmt::Display, fields: &impl Serialize) {
        let fields = serde_json::to_string(fields).unwrap_or_else(|error| format!("(unreadable fields: {error})"));
        self.log(level, format_args!("{message} {fields}"));
    }

    /// Adds a line for whoever looks for a fault.
    pub fn debug(&self, message: impl fmt::Display) {
        self.log(LogLevel::Debug, message);
    }

    /// Adds a line that says what happened.
    pub fn info(&self, message: impl fmt::Display) {
        self.log(LogLevel::Info, message);
    }

    /// Adds a line that somebody should look at.
    pub fn warn(&self, message: impl fmt::Display) {
        self.log(LogLevel::Warn, message);
    }

    /// Adds a line about what went wrong.
    pub fn error(&self, message: impl fmt::Display) {
        self.log(LogLevel::Error, message);
    }

    /// Writes now what was said, for handlers that say more than is kept by itself (a thousand lines at a time).
    pub async fn flush(&self) -> JobResult {
        Ok(report::write(&*self.0.desk.source, self).await?)
    }

    /// Waits for what is async in a handler that blocks. In an async handler it would panic: use `.await` there.
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::runtime::Handle::current().block_on(work)
    }

    // ---- checkpoints ----

    /// What [`save_checkpoint`](Context::save_checkpoint) kept last, in this attempt or an earlier one.
    pub fn checkpoint<T: DeserializeOwned>(&self) -> JobResult<Option<T>> {
        let kept = self.0.checkpoint.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match kept {
            None => Ok(None),
            Some(json) => Ok(json.to().map_err(|error| format!("the checkpoint does not fit: {error}"))?),
        }
    }

    /// Keeps `value` for the next attempt. Durable when this returns; waits while the database is away.
    ///
    /// # Errors
    /// If the lease is lost: somebody else owns the job, so stop.
    pub async fn save_checkpoint(&self, value: &impl Serialize) -> JobResult {
        let json = Json::of("checkpoint", value).map_err(JobError::fatal)?;
        let update = ProgressUpdate { progress: None, checkpoint: Some(json.clone()) };
        let mut pause = Duration::from_millis(50);
        loop {
            match self.0.desk.source.progress(self.lease_token(), update.clone()).await {
                Ok(()) => break,
                Err(StoreError::Unavailable(_)) if !self.is_cancelled() => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(1));
                }
                Err(error) => return Err(error.into()),
            }
        }
        *self.0.checkpoint.lock().unwrap_or_else(PoisonError::into_inner) = Some(json);
        Ok(())
    }

    // ---- other jobs ----

    /// Records another job, for the same tenant and in the same trace unless it says otherwise. This handler may run
    /// again: give the child an idempotency key if there must be only one.
    pub async fn enqueue<J: Job>(&self, request: impl Into<Request<J>>) -> JobResult<Enqueued> {
        let recorded = self.enqueue_all(vec![request.into().build()?]).await?;
        recorded.first().copied().ok_or_else(|| JobError::new("the job was not recorded"))
    }

    /// Records several jobs, all or none. Build them with [`Request::build`]. One whose tenant is `default` has said nothing of it: it
    /// belongs to the tenant of this job, whose jobs alone it can wait for.
    pub async fn enqueue_all(&self, mut jobs: Vec<NewJob>) -> JobResult<Vec<Enqueued>> {
        let claimed = &self.0.claimed;
        for job in &mut jobs {
            if job.tenant == Tenant::default() {
                job.tenant = claimed.tenant.clone();
            }
            if job.correlation_id.is_none() {
                job.correlation_id.clone_from(&claimed.correlation_id);
            }
            if job.traceparent.is_none() {
                job.traceparent = self.traceparent().map(str::to_owned);
            }
        }
        Ok(self.0.desk.source.enqueue(jobs).await?)
    }

    // ---- a transaction of the handler's own ----

    /// Prepares to complete the job in a transaction of the handler's own: whoever knows the database writes it there. If
    /// the handler then succeeds, the job is completed with this output, whatever it returns.
    pub fn completing(&self, output: &impl Serialize) -> JobResult<Completion> {
        let completion = Completion { token: self.lease_token(), result: result_of(output)? };
        *self.0.completion.lock().unwrap_or_else(PoisonError::into_inner) = Some(completion.clone());
        Ok(completion)
    }

    /// The store itself, where the worker is in touch with one.
    pub fn store(&self) -> Option<&Arc<dyn Store>> {
        self.0.desk.source.store()
    }

    // ---- for the runtime ----

    fn announce(&self, first: bool) {
        if first {
            self.0.desk.announce(self);
        }
    }

    /// Takes the right to say how the attempt ended; whether one is the first to.
    pub(crate) fn end(&self) -> bool {
        !self.0.ended.swap(true, Ordering::SeqCst)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.0.ended.load(Ordering::SeqCst)
    }

    pub(crate) fn payload(&self) -> &Json {
        &self.0.claimed.payload
    }

    pub(crate) fn lease(&self) -> Duration {
        self.0.claimed.lease
    }

    pub(crate) fn begun(&self) -> Instant {
        self.0.begun
    }

    pub(crate) fn notes(&self) -> &Notes {
        &self.0.notes
    }

    pub(crate) fn stop(&self) -> &Stop {
        &self.0.stop
    }

    /// Takes note that the handler blocks a thread from here on.
    pub(crate) fn blocks(&self) {
        self.0.blocking.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_blocking(&self) -> bool {
        self.0.blocking.load(Ordering::SeqCst)
    }

    pub(crate) fn writing(&self) -> &tokio::sync::Mutex<()> {
        &self.0.writing
    }

    pub(crate) fn completion(&self) -> Option<Completion> {
        self.0.completion.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A result as it is stored; nothing for `()` and the like.
pub(crate) fn result_of(output: &impl Serialize) -> JobResult<Option<Json>> {
    let json = Json::of("result", output).map_err(JobError::fatal)?;
    Ok((json.as_str() != "null").then_some(json))
}

// Names the job; never its payload.
impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("id", &self.id())
            .field("job_type", self.job_type())
            .field("attempt", &self.attempt())
            .finish_non_exhaustive()
    }
}
