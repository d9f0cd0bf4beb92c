//! The handler's view of its job.

use std::{
    fmt,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use orchestrix_client::{Job, Request};
use orchestrix_core::{Backoff, JobId, JobType, Json, LeaseToken, NewJob, Queue, Tenant};
use orchestrix_store::{ClaimedJob, Enqueued, LogLevel, ProgressUpdate, Store, StoreError};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    JobError, JobResult, JobSource,
    log_buffer::LogBuffer,
    log_writer,
    shared_state::SharedState,
    source::JobBackend,
    stop_signal::{StopReason, StopSignal},
};

/// One attempt of a job, as its handler sees it: the job's properties, cancellation, logging, progress, checkpoints and
/// child jobs. Clones refer to the same attempt.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    claimed: ClaimedJob,
    /// When the claim request was sent, by this machine's clock. Deadlines count from here.
    claimed_at: Instant,
    stop: StopSignal,
    logs: LogBuffer,
    checkpoint: Mutex<Option<Json>>,
    /// The trace context of the job's own span, if spans are exported.
    span_traceparent: OnceLock<String>,
    /// Set if the handler completes the job in its own transaction.
    completion: Mutex<Option<Completion>>,
    /// Whether the handler runs on a blocking thread.
    blocking: AtomicBool,
    /// Held while the log buffer is written, so that the outcome does not overtake the last lines.
    log_write_lock: tokio::sync::Mutex<()>,
    /// Whether the attempt's outcome has been submitted.
    ended: AtomicBool,
    shared: Arc<ContextShared>,
}

/// What all contexts of one worker share.
pub(crate) struct ContextShared {
    pub(crate) source: Arc<dyn JobSource>,
    store: Option<Arc<dyn Store>>,
    /// Holds each context at most once, and only contexts of held jobs, so it is bounded like they are.
    flush_requests: mpsc::UnboundedSender<Context>,
    state: SharedState,
}

impl ContextShared {
    /// Also returns the receiver of contexts whose log buffer should be written.
    pub(crate) fn new(backend: &JobBackend, state: SharedState) -> (Self, mpsc::UnboundedReceiver<Context>) {
        let (flush_requests, receiver) = mpsc::unbounded_channel();
        (Self { source: backend.source(), store: backend.store().cloned(), flush_requests, state }, receiver)
    }
}

/// The write that completes a job in the handler's own transaction.
#[derive(Debug, Clone)]
pub struct Completion {
    /// The lease token, which proves ownership of the job.
    pub token: LeaseToken,
    /// The job's result.
    pub result: Option<Json>,
}

impl Context {
    pub(crate) fn new(claimed: ClaimedJob, claimed_at: Instant, shared: Arc<ContextShared>) -> Self {
        let checkpoint = Mutex::new(claimed.checkpoint.clone());
        Self(Arc::new(Inner {
            claimed,
            claimed_at,
            stop: StopSignal::default(),
            logs: LogBuffer::default(),
            checkpoint,
            span_traceparent: OnceLock::new(),
            completion: Mutex::new(None),
            blocking: AtomicBool::new(false),
            log_write_lock: tokio::sync::Mutex::new(()),
            ended: AtomicBool::new(false),
            shared,
        }))
    }

    /// The job's id.
    pub fn id(&self) -> JobId {
        self.0.claimed.id()
    }

    /// The job's type.
    pub fn job_type(&self) -> &JobType {
        &self.0.claimed.job_type
    }

    /// The queue that the job was claimed from.
    pub fn queue(&self) -> &Queue {
        &self.0.claimed.queue
    }

    /// The job's tenant.
    pub fn tenant(&self) -> &Tenant {
        &self.0.claimed.tenant
    }

    /// The number of this attempt, from 1.
    pub fn attempt(&self) -> u16 {
        self.0.claimed.attempt
    }

    /// The maximum number of attempts.
    pub fn max_attempts(&self) -> u16 {
        self.0.claimed.max_attempts
    }

    /// Whether this is the last attempt: a failure makes the job dead.
    pub fn is_last_attempt(&self) -> bool {
        self.attempt() >= self.max_attempts()
    }

    /// When the attempt times out, if the job has a timeout.
    pub fn deadline(&self) -> Option<Instant> {
        self.0.claimed.timeout.map(|timeout| self.0.claimed_at + timeout)
    }

    /// The application's id for the larger unit of work, such as an order.
    pub fn correlation_id(&self) -> Option<&str> {
        self.0.claimed.correlation_id.as_deref()
    }

    /// The W3C trace context to propagate: that of the job's own span if the worker exports spans, else that of the
    /// enqueue request.
    pub fn traceparent(&self) -> Option<&str> {
        self.0.span_traceparent.get().or(self.0.claimed.traceparent.as_ref()).map(String::as_str)
    }

    pub(crate) fn set_span_traceparent(&self, traceparent: String) {
        let _ = self.0.span_traceparent.set(traceparent);
    }

    /// The id of the trace that the job is part of.
    pub(crate) fn trace_id(&self) -> Option<&str> {
        let id = self.traceparent()?.get(3..35)?;
        id.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(id)
    }

    /// The results of the jobs that this job depends on. Jobs without a result are not listed.
    pub fn dependency_results(&self) -> &[(JobId, Json)] {
        &self.0.claimed.dependency_results
    }

    /// The lease token. Use it to fence side effects: its counter grows with every lease of the job, so a system that
    /// remembers the highest counter can reject a worker that has lost the job.
    pub fn lease_token(&self) -> LeaseToken {
        self.0.claimed.token
    }

    /// The shared value of type `T` that the worker was built with.
    ///
    /// # Errors
    /// If the worker was built without `.state(…)` for this type. The error is retryable: another worker may have the
    /// value.
    pub fn state<T: Send + Sync + 'static>(&self) -> JobResult<&T> {
        self.0.shared.state.get().ok_or_else(|| {
            let name = std::any::type_name::<T>();
            JobError::new(format!("this worker has no state of type {name}: build it with .state(…)"))
        })
    }

    // ---- cancellation ----

    /// Whether the handler should stop. [`stop_reason`](Context::stop_reason) returns the reason.
    pub fn is_cancelled(&self) -> bool {
        self.0.stop.requested().is_cancelled()
    }

    /// Waits until the handler should stop. A handler that goes on is dropped after the grace period, at its next
    /// `await`.
    pub async fn cancelled(&self) {
        self.0.stop.requested().cancelled().await;
    }

    /// The token that is cancelled when the handler should stop.
    pub fn cancellation(&self) -> &CancellationToken {
        self.0.stop.requested()
    }

    /// Why the handler should stop.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.0.stop.reason()
    }

    // ---- progress and logs ----

    /// Reports progress in percent. Cheap: the worker writes only the latest value, periodically.
    pub fn progress(&self, percent: f64) {
        self.request_flush_if(self.0.logs.set_progress(Some(percent), None));
    }

    /// Reports progress in percent, with a message.
    pub fn progress_with(&self, percent: f64, message: impl fmt::Display) {
        self.request_flush_if(self.0.logs.set_progress(Some(percent), Some(&message.to_string())));
    }

    /// Appends a line to the job's log. Cheap: the worker buffers lines and writes them periodically.
    pub fn log(&self, level: LogLevel, message: impl fmt::Display) {
        self.request_flush_if(self.0.logs.push_line(level, &message.to_string()));
    }

    /// Appends a line with fields, which follow the message as JSON.
    pub fn log_with(&self, level: LogLevel, message: impl fmt::Display, fields: &impl Serialize) {
        let fields =
            serde_json::to_string(fields).unwrap_or_else(|error| format!("(fields cannot be serialized: {error})"));
        self.log(level, format_args!("{message} {fields}"));
    }

    /// Appends a line at level `debug`.
    pub fn debug(&self, message: impl fmt::Display) {
        self.log(LogLevel::Debug, message);
    }

    /// Appends a line at level `info`.
    pub fn info(&self, message: impl fmt::Display) {
        self.log(LogLevel::Info, message);
    }

    /// Appends a line at level `warn`.
    pub fn warn(&self, message: impl fmt::Display) {
        self.log(LogLevel::Warn, message);
    }

    /// Appends a line at level `error`.
    pub fn error(&self, message: impl fmt::Display) {
        self.log(LogLevel::Error, message);
    }

    /// Writes the buffered lines and progress now. Needed only by handlers that log faster than the buffer of a
    /// thousand lines is written.
    pub async fn flush(&self) -> JobResult {
        Ok(log_writer::write(&*self.0.shared.source, self).await?)
    }

    /// Runs a future to completion from a blocking handler. Panics in an async handler: use `.await` there.
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::runtime::Handle::current().block_on(work)
    }

    // ---- checkpoints ----

    /// The latest [saved](Context::save_checkpoint) checkpoint, of this attempt or an earlier one.
    pub fn checkpoint<T: DeserializeOwned>(&self) -> JobResult<Option<T>> {
        let saved = self.0.checkpoint.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match saved {
            None => Ok(None),
            Some(json) => Ok(json.to().map_err(|error| format!("the checkpoint cannot be deserialized: {error}"))?),
        }
    }

    /// Saves `value` for the next attempt. Durable when this returns. Retries while the database is unavailable.
    ///
    /// # Errors
    /// If the lease is lost: another worker may own the job, so the handler should stop.
    pub async fn save_checkpoint(&self, value: &impl Serialize) -> JobResult {
        let json = Json::of("checkpoint", value).map_err(JobError::fatal)?;
        let update = ProgressUpdate { progress: None, checkpoint: Some(json.clone()) };
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));
        loop {
            match self.0.shared.source.record_progress(self.lease_token(), update.clone()).await {
                Ok(()) => break,
                Err(StoreError::Unavailable(_)) if !self.is_cancelled() => {
                    tokio::time::sleep(backoff.next_delay()).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
        *self.0.checkpoint.lock().unwrap_or_else(PoisonError::into_inner) = Some(json);
        Ok(())
    }

    // ---- other jobs ----

    /// Enqueues a child job, by default with the tenant, the correlation id and the trace of this one. The handler may
    /// run again: give the child an idempotency key if it must be enqueued only once.
    pub async fn enqueue<J: Job>(&self, request: impl Into<Request<J>>) -> JobResult<Enqueued> {
        let enqueued = self.enqueue_all(vec![request.into().build()?]).await?;
        enqueued.first().copied().ok_or_else(|| JobError::new("the store returned no id for the enqueued job"))
    }

    /// Enqueues all child jobs or none. Build them with [`Request::build`]. A job with the tenant `default` gets the
    /// tenant of this job. A job can depend only on jobs of its own tenant.
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
        Ok(self.0.shared.source.enqueue_jobs(jobs).await?)
    }

    // ---- the handler's own transaction ----

    /// Prepares to complete the job in the handler's own transaction. The caller writes the returned completion there.
    /// If the handler then succeeds, the job completes with this output, whatever the handler returns.
    pub fn completing(&self, output: &impl Serialize) -> JobResult<Completion> {
        let completion = Completion { token: self.lease_token(), result: serialize_output(output)? };
        *self.0.completion.lock().unwrap_or_else(PoisonError::into_inner) = Some(completion.clone());
        Ok(completion)
    }

    /// The worker's store. `None` if the worker claims its jobs from a server.
    pub fn store(&self) -> Option<&Arc<dyn Store>> {
        self.0.shared.store.as_ref()
    }

    // ---- for the runtime ----

    fn request_flush_if(&self, needed: bool) {
        if needed {
            // The receiver is gone if the worker has ended; the buffer is then written with the outcome, if at all.
            let _ = self.0.shared.flush_requests.send(self.clone());
        }
    }

    /// Marks the attempt as ended. Returns true only for the first caller, which must submit the outcome.
    pub(crate) fn try_end(&self) -> bool {
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

    pub(crate) fn claimed_at(&self) -> Instant {
        self.0.claimed_at
    }

    pub(crate) fn logs(&self) -> &LogBuffer {
        &self.0.logs
    }

    pub(crate) fn stop(&self) -> &StopSignal {
        &self.0.stop
    }

    /// Records that the handler occupies a blocking thread from now on.
    pub(crate) fn mark_blocking(&self) {
        self.0.blocking.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_blocking(&self) -> bool {
        self.0.blocking.load(Ordering::SeqCst)
    }

    pub(crate) fn log_write_lock(&self) -> &tokio::sync::Mutex<()> {
        &self.0.log_write_lock
    }

    pub(crate) fn completion(&self) -> Option<Completion> {
        self.0.completion.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Serializes a handler's output. `None` if it serializes to `null`, like `()`.
pub(crate) fn serialize_output(output: &impl Serialize) -> JobResult<Option<Json>> {
    let json = Json::of("result", output).map_err(JobError::fatal)?;
    Ok((json.as_str() != "null").then_some(json))
}

// Without the payload, which may be confidential.
impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("id", &self.id())
            .field("job_type", self.job_type())
            .field("attempt", &self.attempt())
            .finish_non_exhaustive()
    }
}
