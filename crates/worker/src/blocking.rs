//! Threads for handlers that block: their own, so that they take none from anybody else.

use std::{io, panic::resume_unwind};

use tokio::runtime::{Builder, Runtime};

use crate::JobError;

/// Threads that come when they are needed, up to a number, and go when they have been idle for a while.
pub(crate) struct Pool(Option<Runtime>);

impl Pool {
    pub(crate) fn new(threads: usize) -> io::Result<Self> {
        // Nobody drives this runtime: all that is used of it are its blocking threads.
        let runtime =
            Builder::new_current_thread().max_blocking_threads(threads).thread_name("orchestrix-blocking").build()?;
        Ok(Self(Some(runtime)))
    }

    /// Runs `work` there. It goes on to its end even if nobody waits for it any more.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, JobError> + Send + 'static,
    ) -> Result<T, JobError> {
        let Some(runtime) = &self.0 else { return Err(JobError::new("the worker has stopped")) };
        let span = tracing::Span::current();
        match runtime.spawn_blocking(move || span.in_scope(work)).await {
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
