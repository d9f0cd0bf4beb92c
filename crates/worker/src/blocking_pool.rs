//! Threads for blocking handlers, separate from the blocking threads of the application's runtime.

use std::{io, panic::resume_unwind};

use tokio::{
    runtime::{Builder, Handle, Runtime},
    task::AbortHandle,
};

use crate::{Context, JobError};

/// A pool that starts threads on demand, up to a limit, and ends idle ones.
pub(crate) struct BlockingPool(Option<Runtime>);

/// Cancels work that has no thread yet when its future is dropped. Work that has started runs to its end.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl BlockingPool {
    pub(crate) fn new(threads: usize) -> io::Result<Self> {
        // No task runs on this runtime: only its blocking threads are used.
        let runtime =
            Builder::new_current_thread().max_blocking_threads(threads).thread_name("orchestrix-blocking").build()?;
        Ok(Self(Some(runtime)))
    }

    /// Runs `work` on a thread of the pool, inside the caller's runtime and span.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        context: Context,
        work: impl FnOnce(Context) -> Result<T, JobError> + Send + 'static,
    ) -> Result<T, JobError> {
        let Some(runtime) = &self.0 else { return Err(JobError::new("the worker has stopped")) };
        let (span, application) = (tracing::Span::current(), Handle::current());
        let running = runtime.spawn_blocking(move || {
            context.mark_blocking();
            let _entered = application.enter();
            span.in_scope(|| work(context))
        });
        let _abort_on_drop = AbortOnDrop(running.abort_handle());
        match running.await {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_) => Err(JobError::new("the worker has stopped")),
            },
        }
    }
}

// Dropping a runtime waits for its threads, which may be stuck in a handler. Inside another runtime it panics.
impl Drop for BlockingPool {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
