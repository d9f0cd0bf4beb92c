//! HandlerRegistry, and the registry from job type to handler.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context as Poller, Poll},
};

use orchestrix_client::Job;
use orchestrix_core::{JobType, Json};
use serde::de::DeserializeOwned;
use tower::Service;

use crate::{Context, JobError, JobResult, blocking_pool::BlockingPool, context::serialize_output};

/// A job with an async handler.
///
/// ```
/// # use orchestrix_client::Job;
/// # #[derive(serde::Serialize, serde::Deserialize)] struct Greet { whom: String }
/// # impl Job for Greet { type Output = String; const TYPE: &'static str = "greet"; }
/// use orchestrix_worker::{Context, JobResult, Run};
///
/// impl Run for Greet {
///     async fn run(self, ctx: Context) -> JobResult<String> {
///         ctx.info(format_args!("attempt {}", ctx.attempt()));
///         Ok(format!("Hello, {}!", self.whom))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no handler: it does not implement `Run`",
    label = "this job has no `run`",
    note = "write `impl Run for {Self} {{ async fn run(self, ctx: Context) -> JobResult {{ … }} }}`",
    note = "or register a function: `.handler(|job: {Self}, ctx: Context| async move {{ … }})`"
)]
pub trait Run: Job {
    /// Does the job's work. May run more than once for one job: after a failure, or after a worker died before it
    /// reported the outcome.
    fn run(self, ctx: Context) -> impl Future<Output = JobResult<Self::Output>> + Send;
}

/// A job with a handler that blocks its thread: long computations, synchronous I/O. It runs on a separate thread pool.
///
/// The worker cannot interrupt it: check [`Context::is_cancelled`] regularly. Until it returns it keeps its slot, and
/// no other worker gets the job. [`Context::block_on`] runs async code.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no handler: it does not implement `RunBlocking`",
    label = "this job has no blocking `run`",
    note = "write `impl RunBlocking for {Self} {{ fn run(self, ctx: Context) -> JobResult {{ … }} }}`"
)]
pub trait RunBlocking: Job {
    /// Does the job's work.
    fn run(self, ctx: Context) -> JobResult<Self::Output>;
}

/// One call of a handler: the request type of the [handler service](crate::HandlerService).
#[derive(Debug, Clone)]
pub struct JobCall {
    /// The attempt.
    pub context: Context,
    /// The job's payload.
    pub payload: Json,
}

/// The result of a handler, with its output serialized: the response type of the handler service.
pub type HandlerResult = JobResult<Option<Json>>;

pub(crate) type HandlerFuture = Pin<Box<dyn Future<Output = HandlerResult> + Send>>;

pub(crate) type Handler = Arc<dyn Fn(JobCall) -> HandlerFuture + Send + Sync>;

/// The handlers of a worker by job type. It is the innermost service; middleware wraps it.
#[derive(Clone, Default)]
pub struct HandlerRegistry(Arc<BTreeMap<JobType, Handler>>);

impl HandlerRegistry {
    pub(crate) fn new(handlers: BTreeMap<JobType, Handler>) -> Self {
        Self(Arc::new(handlers))
    }

    /// The job types that have a handler.
    pub fn job_types(&self) -> impl Iterator<Item = &JobType> {
        self.0.keys()
    }
}

impl fmt::Debug for HandlerRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Service<JobCall> for HandlerRegistry {
    type Response = Option<Json>;
    type Error = JobError;
    type Future = HandlerFuture;

    fn poll_ready(&mut self, _: &mut Poller<'_>) -> Poll<Result<(), JobError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: JobCall) -> HandlerFuture {
        match self.0.get(call.context.job_type()) {
            Some(handler) => handler(call),
            // A worker claims only job types that it has handlers for, so a source that gives it another is faulty.
            None => {
                let text = format!("this worker has no handler for jobs of type {}", call.context.job_type());
                Box::pin(async { Err(JobError::new(text)) })
            }
        }
    }
}

pub(crate) fn async_handler<J, F, W>(function: F) -> Handler
where
    J: Job,
    F: Fn(J, Context) -> W + Send + Sync + 'static,
    W: Future<Output = JobResult<J::Output>> + Send + 'static,
{
    let function = Arc::new(function);
    Arc::new(move |call: JobCall| -> HandlerFuture {
        let function = Arc::clone(&function);
        Box::pin(async move {
            let job = parse_payload(&call.payload)?;
            drop(call.payload);
            serialize_output(&function(job, call.context).await?)
        })
    })
}

pub(crate) fn blocking_handler<J: RunBlocking>(pool: Arc<BlockingPool>) -> Handler {
    Arc::new(move |call: JobCall| -> HandlerFuture {
        let pool = Arc::clone(&pool);
        Box::pin(async move {
            let job: J = parse_payload(&call.payload)?;
            pool.run(call.context, move |context| serialize_output(&job.run(context)?)).await
        })
    })
}

pub(crate) fn raw_handler<F, W>(function: F) -> Handler
where
    F: Fn(JobCall) -> W + Send + Sync + 'static,
    W: Future<Output = HandlerResult> + Send + 'static,
{
    Arc::new(move |call: JobCall| -> HandlerFuture { Box::pin(function(call)) })
}

/// Deserializes a payload as a `T`. The error is fatal, because retrying cannot help, and names the field.
pub(crate) fn parse_payload<T: DeserializeOwned>(payload: &Json) -> JobResult<T> {
    // Tracking the path costs more, so it is done only to describe an error.
    payload.to().map_err(|plain| {
        let mut reader = serde_json::Deserializer::from_str(payload.as_str());
        match serde_path_to_error::deserialize::<_, T>(&mut reader) {
            Err(error) if error.path().iter().next().is_some() => {
                JobError::fatal(format!("the payload is invalid at `{}`: {}", error.path(), error.inner()))
            }
            _ => JobError::fatal(format!("the payload is invalid: {plain}")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct Mail {
        #[allow(dead_code)]
        to: Vec<Address>,
    }

    #[derive(Debug, serde::Deserialize)]
    struct Address {
        #[allow(dead_code)]
        name: String,
    }

    fn refused(payload: &str) -> String {
        let error = parse_payload::<Mail>(&Json::trusted(payload)).unwrap_err();
        assert!(error.is_fatal());
        error.to_string()
    }

    #[test]
    fn an_invalid_payload_is_fatal_and_the_error_names_the_field() {
        let text = refused(r#"{"to": [{"name": "Ada"}, {"name": 7}]}"#);
        assert!(text.contains("`to[1].name`") && text.contains("expected a string"), "{text}");
        assert!(refused(r#"{"too": []}"#).contains("missing field `to`"));
        assert!(refused("{}").contains("missing field `to`"));
    }
}
