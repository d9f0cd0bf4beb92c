//! Kinds of jobs, and handlers that write down when they begin and end.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use orchestrix_client::{Defaults, Job};
use orchestrix_core::RetryPolicy;
use orchestrix_worker::{Context, JobError, JobResult, WorkerBuilder};
use serde::{Deserialize, Serialize};

use super::journal::Journal;

/// Short enough to be waited for, long enough for a machine that is busy.
pub(crate) const LEASE: Duration = Duration::from_secs(2);

/// A job that any number of lost leases does not wear out. All its attempts are kept: a hundred are.
const PATIENT: Defaults = Defaults {
    lease: LEASE,
    max_attempts: 100,
    retry: RetryPolicy {
        base: Duration::from_millis(100),
        multiplier: 1.0,
        max: Duration::from_millis(100),
        jitter: 0.1,
    },
    ..Defaults::NEW
};

/// What a handler leaves as the result: by which lease it was done.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) lease: i32,
}

/// Takes a few milliseconds.
#[derive(Serialize, Deserialize)]
pub(crate) struct Short {
    pub(crate) ms: u64,
}

/// Takes long, and less if it runs again. Stops when asked to, unless it is stubborn.
#[derive(Serialize, Deserialize)]
pub(crate) struct Long {
    pub(crate) ms: u64,
    pub(crate) again_ms: u64,
    pub(crate) stubborn: bool,
}

/// Fails in so many attempts.
#[derive(Serialize, Deserialize)]
pub(crate) struct Failing {
    pub(crate) times: u16,
}

/// Keeps its thread busy and never awaits.
#[derive(Serialize, Deserialize)]
pub(crate) struct Spin {
    pub(crate) ms: u64,
}

impl Job for Short {
    type Output = Done;
    const TYPE: &'static str = "short";
    const DEFAULTS: Defaults = PATIENT;
}

impl Job for Long {
    type Output = Done;
    const TYPE: &'static str = "long";
    const DEFAULTS: Defaults = PATIENT;
}

impl Job for Failing {
    type Output = Done;
    const TYPE: &'static str = "failing";
    const DEFAULTS: Defaults = PATIENT;
}

impl Job for Spin {
    type Output = Done;
    const TYPE: &'static str = "spin";
    /// The shortest there is.
    const DEFAULTS: Defaults = Defaults { lease: Duration::from_secs(1), ..PATIENT };
}

pub(crate) fn handlers(worker: WorkerBuilder) -> WorkerBuilder {
    worker
        .handler(|job: Short, ctx| {
            written(ctx, async move |_| {
                sleep(job.ms).await;
                Ok(())
            })
        })
        .handler(|job: Long, ctx| written(ctx, |ctx| job.run(ctx)))
        .handler(|job: Failing, ctx| {
            written(ctx, async move |ctx| {
                sleep(5).await;
                if ctx.attempt() <= job.times { Err("not yet".into()) } else { Ok(()) }
            })
        })
        .handler(|job: Spin, ctx| {
            written(ctx, async move |_| {
                let end = Instant::now() + Duration::from_millis(job.ms);
                while Instant::now() < end {
                    std::hint::spin_loop();
                }
                Ok(())
            })
        })
}

impl Long {
    async fn run(self, ctx: Context) -> JobResult {
        let work = sleep(if ctx.lease_token().counter == 1 { self.ms } else { self.again_ms });
        if self.stubborn {
            work.await;
            return Ok(());
        }
        tokio::select! {
            () = work => Ok(()),
            () = ctx.cancelled() => Err(JobError::new("asked to stop")),
        }
    }
}

async fn sleep(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

async fn written<W: Future<Output = JobResult>>(ctx: Context, work: impl FnOnce(Context) -> W) -> JobResult<Done> {
    let begun = ctx.state::<Journal>()?.begin(&ctx);
    let answer = work(ctx.clone()).await;
    begun.end(match &answer {
        Ok(()) => "done",
        Err(_) if ctx.is_cancelled() => "stopped",
        Err(_) => "failed",
    });
    answer.map(|()| Done { lease: ctx.lease_token().counter })
}
