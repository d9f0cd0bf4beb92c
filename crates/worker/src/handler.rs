//! From a job's type to the function that does its work.

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

use crate::{Context, JobError, JobResult, blocking::Pool, context::result_of};

/// A job that knows how to do its own work.
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
    message = "`{Self}` does not say how it is run",
    label = "this job has no `run`",
    note = "write `impl Run for {Self} {{ async fn run(self, ctx: Context) -> JobResult {{ … }} }}`",
    note = "the work may also stand apart from the type: `.handler(|job: {Self}, ctx: Context| async move {{ … }})`"
)]
pub trait Run: Job {
    /// Does the work. May run more than once for one job: when it failed, or when a worker died before it could say that
    /// it was done.
    fn run(self, ctx: Context) -> impl Future<Output = JobResult<Self::Output>> + Send;
}

/// A job whose work blocks its thread: long computations, synchronous IO. It runs on a pool of its own.
///
/// It cannot be stopped from outside: look at [`Context::is_cancelled`] now and then. Until it returns it keeps its
/// slot, and its job is not handed on. [`Context::block_on`] waits for what is async.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how it is run",
    label = "this job has no blocking `run`",
    note = "write `impl RunBlocking for {Self} {{ fn run(self, ctx: Context) -> JobResult {{ … }} }}`"
)]
pub trait RunBlocking: Job {
    /// Does the work.
    fn run(self, ctx: Context) -> JobResult<Self::Output>;
}

/// One job on its way to its handler, as middleware sees it.
#[derive(Debug, Clone)]
pub struct Call {
    /// The job.
    pub context: Context,
    /// What it works on.
    pub payload: Json,
}

/// What a handler leaves behind, as middleware sees it.
pub type Answer = JobResult<Option<Json>>;

pub(crate) type Work = Pin<Box<dyn Future<Output = Answer> + Send>>;

pub(crate) type Handler = Arc<dyn Fn(Call) -> Work + Send + Sync>;

/// The handlers of a worker, by type. The innermost service; middleware is wrapped around it.
#[derive(Clone, Default)]
pub struct Handlers(Arc<BTreeMap<JobType, Handler>>);

impl Handlers {
    pub(crate) fn new(handlers: BTreeMap<JobType, Handler>) -> Self {
        Self(Arc::new(handlers))
    }

    /// The types that are known.
    pub fn job_types(&self) -> impl Iterator<Item = &JobType> {
        self.0.keys()
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Service<Call> for Handlers {
    type Response = Option<Json>;
    type Error = JobError;
    type Future = Work;

    fn poll_ready(&mut self, _: &mut Poller<'_>) -> Poll<Result<(), JobError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Work {
        match self.0.get(call.context.job_type()) {
            Some(handler) => handler(call),
            // A worker asks for the types it knows; whoever gives it another is told.
            None => {
                let text = format!("this worker does not know jobs of type {}", call.context.job_type());
                Box::pin(async { Err(JobError::new(text)) })
            }
        }
    }
}

pub(crate) fn of_function<J, F, W>(function: F) -> Handler
where
    J: Job,
    F: Fn(J, Context) -> W + Send + Sync + 'static,
    W: Future<Output = JobResult<J::Output>> + Send + 'static,
{
    let function = Arc::new(function);
    Arc::new(move |call: Call| -> Work {
        let function = Arc::clone(&function);
        Box::pin(async move {
            let job = read(&call.payload)?;
            drop(call.payload);
            result_of(&function(job, call.context).await?)
        })
    })
}

pub(crate) fn blocking<J: RunBlocking>(pool: Arc<Pool>) -> Handler {
    Arc::new(move |call: Call| -> Work {
        let pool = Arc::clone(&pool);
        Box::pin(async move {
            let job: J = read(&call.payload)?;
            pool.run(call.context, move |context| result_of(&job.run(context)?)).await
        })
    })
}

pub(crate) fn raw<F, W>(function: F) -> Handler
where
    F: Fn(Call) -> W + Send + Sync + 'static,
    W: Future<Output = Answer> + Send + 'static,
{
    Arc::new(move |call: Call| -> Work { Box::pin(function(call)) })
}

/// Reads a payload as a `T`. One that does not fit never will: the error is fatal, and names the place.
pub(crate) fn read<T: DeserializeOwned>(payload: &Json) -> JobResult<T> {
    // The way that knows where it is costs more, so it is taken only to say what is wrong.
    payload.to().map_err(|plain| {
        let mut reader = serde_json::Deserializer::from_str(payload.as_str());
        match serde_path_to_error::deserialize::<_, T>(&mut reader) {
            Err(error) if error.path().iter().next().is_some() => {
                JobError::fatal(format!("the payload does not fit at `{}`: {}", error.path(), error.inner()))
            }
            _ => JobError::fatal(format!("the payload does not fit: {plain}")),
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
        let error = read::<Mail>(&Json::trusted(payload)).unwrap_err();
        assert!(error.is_fatal());
        error.to_string()
    }

    #[test]
    fn a_payload_that_does_not_fit_is_fatal_and_names_the_field() {
        let text = refused(r#"{"to": [{"name": "Ada"}, {"name": 7}]}"#);
        assert!(text.contains("`to[1].name`") && text.contains("expected a string"), "{text}");
        assert!(refused(r#"{"too": []}"#).contains("missing field `to`"));
        assert!(refused("{}").contains("missing field `to`"));
    }
}
