//! Writing the buffered log lines and progress of running jobs.

use std::{sync::Arc, time::Duration};

use orchestrix_core::LeaseToken;
use orchestrix_store::{LogLine, Result, StoreError};
use tokio::sync::mpsc;

use crate::{Context, JobSource, catch_panic::catch_panic, job_event::job_event, log_buffer::PendingWrites};

/// How long log lines are buffered before they are written.
const FLUSH_DELAY: Duration = Duration::from_millis(200);

/// Writes the buffers of all contexts that request a flush, until the last sender is gone.
pub(crate) async fn run(source: Arc<dyn JobSource>, mut flush_requests: mpsc::UnboundedReceiver<Context>) {
    let mut batch = Vec::new();
    while flush_requests.recv_many(&mut batch, 1_000).await > 0 {
        tokio::time::sleep(FLUSH_DELAY).await;
        for context in batch.drain(..) {
            // Only here, not in `write`: a handler that flushes often would send as many requests.
            context.logs().allow_flush_request();
            if let Err(error) = write(&*source, &context).await {
                job_event!(debug, &context, %error, "log lines and progress were not written");
            }
        }
    }
}

/// Writes the buffer of `context`. If the source is unavailable the buffer is kept; if the source refuses, it is
/// discarded.
pub(crate) async fn write(source: &dyn JobSource, context: &Context) -> Result<()> {
    let _guard = context.log_write_lock().lock().await;
    let Some(mut pending) = context.logs().take() else { return Ok(()) };
    let result = catch_panic(write_all(source, context.lease_token(), &mut pending)).await;
    if matches!(result, Err(StoreError::Unavailable(_))) {
        context.logs().put_back(pending);
    }
    result
}

/// Removes from `pending` what it has written, so that what is put back is not written twice.
async fn write_all(source: &dyn JobSource, token: LeaseToken, pending: &mut PendingWrites) -> Result<()> {
    if let Some(progress) = &pending.progress {
        source.record_progress(token, progress.clone()).await?;
        pending.progress = None;
    }
    while !pending.lines.is_empty() {
        // The buffer holds one line above the limit if it reports dropped lines.
        let next = pending.lines.len().min(LogLine::MAX_LINES);
        source.append_logs(token, pending.lines[..next].to_vec()).await?;
        pending.lines.drain(..next);
    }
    Ok(())
}
