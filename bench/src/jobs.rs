//! The measured jobs: no-ops with a small payload, the same on both sides.

use std::sync::Arc;

use anyhow::Result;
use orchestrix_core::{JobType, Json, NewJob, Queue};
use orchestrix_store::{PageRequest, Store};

/// The type of every job, unless a layout has several.
pub(crate) const JOB_TYPE: &str = "email.send";

/// The payload of the n-th job: about fifty bytes, unique.
pub(crate) fn payload(n: usize) -> String {
    format!(r#"{{"user":{n},"template":"welcome","locale":"en-GB"}}"#)
}

/// The n-th job, with default options.
pub(crate) fn job(n: usize) -> NewJob {
    NewJob { payload: Json::trusted(&payload(n)), ..NewJob::new(JobType::trusted(JOB_TYPE)) }
}

/// The input of each caller, created before the clock starts: creating a job is not part of the measurement.
pub(crate) fn inputs_per_caller<T>(callers: usize, each: usize, make: impl Fn(usize) -> T) -> Vec<Vec<T>> {
    (0..callers).map(|caller| (0..each).map(|n| make(caller * each + n)).collect()).collect()
}

/// Enqueues `count` jobs, thousands per call, from two callers.
pub(crate) async fn fill(store: &Arc<dyn Store>, count: usize) -> Result<()> {
    fill_with(store, count, job).await
}

/// The same with jobs of the caller's own; `make` returns the n-th.
pub(crate) async fn fill_with<F>(store: &Arc<dyn Store>, count: usize, make: F) -> Result<()>
where
    F: Fn(usize) -> NewJob + Clone + Send + 'static,
{
    const CALLERS: usize = 2;
    const CALL: usize = 5_000;
    let callers = (0..CALLERS).map(|caller| {
        let (store, make) = (Arc::clone(store), make.clone());
        tokio::spawn(async move {
            let mine: Vec<usize> = (0..count).skip(caller).step_by(CALLERS).collect();
            for chunk in mine.chunks(CALL) {
                store.enqueue_jobs(chunk.iter().map(|n| make(*n)).collect()).await?;
            }
            anyhow::Ok(())
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await??;
    }
    Ok(())
}

/// The number of unfinished jobs in all queues.
pub(crate) async fn unfinished(store: &Arc<dyn Store>) -> Result<u64> {
    let mut page = PageRequest::first(PageRequest::<Queue>::MAX_LIMIT);
    let mut sum = 0;
    loop {
        let queues = store.queue_depths(&page).await?;
        sum += queues.items.iter().flat_map(|queue| queue.counts.values()).sum::<u64>();
        match queues.next {
            Some(cursor) => page.cursor = Some(cursor),
            None => return Ok(sum),
        }
    }
}
