//! Calls to a source that may panic: a bug there is a failed call, not the end of whoever made it.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use orchestrix_store::{Result, StoreError};

/// The answer of `call`, or an error if it panicked.
pub(crate) async fn guarded<T>(call: impl Future<Output = Result<T>>) -> Result<T> {
    AssertUnwindSafe(call).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("a source of jobs panicked");
        Err(StoreError::Backend("the source of jobs panicked".into()))
    })
}
