//! Calls to a source that may panic. A bug in a source fails one call; it does not end the task that made it.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use orchestrix_store::{Result, StoreError};

/// Awaits `call`. A panic becomes an error.
pub(crate) async fn catch_panic<T>(call: impl Future<Output = Result<T>>) -> Result<T> {
    AssertUnwindSafe(call).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("job source panicked");
        Err(StoreError::Backend("the job source panicked".into()))
    })
}
