//! The jobs that are measured: no-ops with a small payload, the same for both sides.

use std::sync::Arc;

use anyhow::Result;
use orchestrix_core::{JobType, Json, NewJob};
use orchestrix_store::Store;

/// What every job is called.
pub(crate) const JOB_TYPE: &str = "email.send";

/// The payload of the n-th job: some fifty bytes, no two alike.
pub(crate) fn payload(n: usize) -> String {
    format!(r#"{{"user":{n},"template":"welcome","locale":"en-GB"}}"#)
}

/// The n-th job, with every default.
pub(crate) fn job(n: usize) -> NewJob {
    NewJob { payload: Json::trusted(&payload(n)), ..NewJob::new(JobType::trusted(JOB_TYPE)) }
}

/// What `lanes` callers will ask for, `each` so many times, made before the clock starts: making a job is the caller's affair.
pub(crate) fn lots<T>(lanes: usize, each: usize, make: impl Fn(usize) -> T) -> Vec<Vec<T>> {
    (0..lanes).map(|lane| (0..each).map(|n| make(lane * each + n)).collect()).collect()
}

/// Records `count` jobs, thousands at a time, on two lanes.
pub(crate) async fn fill(store: &Arc<dyn Store>, count: usize) -> Result<()> {
    const LANES: usize = 2;
    const CALL: usize = 5_000;
    let lanes = (0..LANES).map(|lane| {
        let store = Arc::clone(store);
        tokio::spawn(async move {
            let mine: Vec<usize> = (0..count).skip(lane).step_by(LANES).collect();
            for chunk in mine.chunks(CALL) {
                store.enqueue_jobs(chunk.iter().map(|n| job(*n)).collect()).await?;
            }
            anyhow::Ok(())
        })
    });
    for lane in lanes.collect::<Vec<_>>() {
        lane.await??;
    }
    Ok(())
}
