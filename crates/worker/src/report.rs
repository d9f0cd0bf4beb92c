//! Writing what running jobs say of themselves: lines and progress, now and then.

use std::{sync::Arc, time::Duration};

use orchestrix_core::LeaseToken;
use orchestrix_store::{LogLine, Result, StoreError};
use tokio::sync::mpsc;

use crate::{Context, JobSource, guard::guarded, line::about_job, notes::Taken};

/// How long things said are gathered before they are written.
const GATHER: Duration = Duration::from_millis(200);

/// Where contexts announce that they have something to write.
pub(crate) struct Desk {
    pub(crate) source: Arc<dyn JobSource>,
    // Holds each context at most once, and only contexts of held jobs: as bounded as they are.
    announced: mpsc::UnboundedSender<Context>,
}

impl Desk {
    pub(crate) fn new(source: Arc<dyn JobSource>) -> (Self, mpsc::UnboundedReceiver<Context>) {
        let (announced, announcements) = mpsc::unbounded_channel();
        (Self { source, announced }, announcements)
    }

    pub(crate) fn announce(&self, context: &Context) {
        // Nobody there any more: the end of the attempt writes it.
        let _ = self.announced.send(context.clone());
    }
}

/// Writes for all contexts that announce themselves, until the last desk is gone.
pub(crate) async fn run(source: Arc<dyn JobSource>, mut announcements: mpsc::UnboundedReceiver<Context>) {
    let mut batch = Vec::new();
    while announcements.recv_many(&mut batch, 1_000).await > 0 {
        tokio::time::sleep(GATHER).await;
        for context in batch.drain(..) {
            // Only here: whoever flushes often would be announced as often.
            context.notes().heard();
            if let Err(error) = write(&*source, &context).await {
                about_job!(debug, &context, %error, "what the job said was not written yet");
            }
        }
    }
}

/// Writes what `context` has gathered. What cannot be written now is kept for later; what is refused is gone.
pub(crate) async fn write(source: &dyn JobSource, context: &Context) -> Result<()> {
    let _writing = context.writing().lock().await;
    let Some(mut taken) = context.notes().take() else { return Ok(()) };
    let answer = guarded(write_all(source, context.lease_token(), &mut taken)).await;
    if matches!(answer, Err(StoreError::Unavailable(_))) {
        context.notes().put_back(taken);
    }
    answer
}

// Takes out what was written, so that what is put back is not written twice.
async fn write_all(source: &dyn JobSource, token: LeaseToken, taken: &mut Taken) -> Result<()> {
    if let Some(progress) = &taken.progress {
        source.progress(token, progress.clone()).await?;
        taken.progress = None;
    }
    while !taken.lines.is_empty() {
        // One more than the limit when some were left out.
        let next = taken.lines.len().min(LogLine::MAX_LINES);
        source.append_logs(token, taken.lines[..next].to_vec()).await?;
        taken.lines.drain(..next);
    }
    Ok(())
}
