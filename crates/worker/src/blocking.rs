//! Threads for handlers that block: their own, so that they take none from anybody else.

use std::{io, panic::resume_unwind};

use tokio::{
    runtime::{Builder, Handle, Runtime},
    task::AbortHandle,
};

use crate::{Context, JobError};

/// Threads that come when they are needed, up to a number, and go when they have been idle for a while.
pub(crate) struct Pool(Option<Runtime>);

// Whoever waits for a thread and is dropped takes the work back; once it has begun nothing does.
struct TakeBack(AbortHandle);

impl Drop for TakeBack {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Pool {
    pub(crate) fn new(threads: usize) -> io::Result<Self> {
        // Nobody drives this runtime: all that is used of it are its blocking threads.
        let runtime =
            Builder::new_current_thread().max_blocking_threads(threads).thread_name("orchestrix-blocking").build()?;
        Ok(Self(Some(runtime)))
    }

    /// Runs `work` there, in the name of `context`, and within the runtime of whoever calls, for what needs one.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        context: Context,
        work: impl FnOnce(Context) -> Result<T, JobError> + Send + 'static,
    ) -> Result<T, JobError> {
        let Some(runtime) = &self.0 else { return Err(JobError::new("the worker has stopped")) };
        let (span, application) = (tracing::Span::current(), Handle::current());
        let running = runtime.spawn_blocking(move || {
            context.blocks();
            let _entered = application.enter();
            span.in_scope(|| work(context))
        });
        let _take_back = TakeBack(running.abort_handle());
        match running.await {
            Ok(answer) => answer,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_) => Err(JobError::new("the worker has stopped")),
            },
        }
    }
}

// Dropping a runtime waits for its threads, which may be stuck in a handler, and panics inside another runtime.
impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
