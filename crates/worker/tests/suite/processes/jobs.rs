//! Job types, and handlers that write their start and end to the journal.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use orchestrix_client::{Defaults, Job};
use orchestrix_core::RetryPolicy;
use orchestrix_worker::{Context, JobError, JobResult, WorkerBuilder};
use serde::{Deserialize, Serialize};

use super::journal::Journal;

/// Short enough for a test to wait for its expiry, long enough for a busy machine.
pub(crate) const LEASE: Duration = Duration::from_secs(2);

/// Options of a job that survives many lost leases. The store keeps a record of all of its up to 100 attempts.
const RETRY_OFTEN: Defaults = Defaults {
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

/// The result of a handler: the counter of the lease that completed the job.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) lease: i32,
}

/// Takes a few milliseconds.
#[derive(Serialize, Deserialize)]
pub(crate) struct Short {
    pub(crate) ms: u64,
}

/// Takes long, and less if it runs again. Stops when it is cancelled, unless it is stubborn.
#[derive(Serialize, Deserialize)]
pub(crate) struct Long {
    pub(crate) ms: u64,
    pub(crate) again_ms: u64,
    pub(crate) stubborn: bool,
}

/// Fails in its first `times` attempts.
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
    const DEFAULTS: Defaults = RETRY_OFTEN;
}

impl Job for Long {
    type Output = Done;
    const TYPE: &'static str = "long";
    const DEFAULTS: Defaults = RETRY_OFTEN;
}

impl Job for Failing {
    type Output = Done;
    const TYPE: &'static str = "failing";
    const DEFAULTS: Defaults = RETRY_OFTEN;
}

impl Job for Spin {
    type Output = Done;
    const TYPE: &'static str = "spin";
    /// The shortest possible lease.
    const DEFAULTS: Defaults = Defaults { lease: Duration::from_secs(1), ..RETRY_OFTEN };
}

pub(crate) fn handlers(worker: WorkerBuilder) -> WorkerBuilder {
    worker
        .handler(|job: Short, ctx| {
            journaled(ctx, async move |_| {
                sleep(job.ms).await;
                Ok(())
            })
        })
        .handler(|job: Long, ctx| journaled(ctx, |ctx| job.run(ctx)))
        .handler(|job: Failing, ctx| {
            journaled(ctx, async move |ctx| {
                sleep(5).await;
                if ctx.attempt() <= job.times { Err("not yet".into()) } else { Ok(()) }
            })
        })
        .handler(|job: Spin, ctx| {
            journaled(ctx, async move |_| {
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
            () = ctx.cancelled() => Err(JobError::new("cancelled")),
        }
    }
}

async fn sleep(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// Runs `work` and writes its start and end to the journal.
async fn journaled<W: Future<Output = JobResult>>(ctx: Context, work: impl FnOnce(Context) -> W) -> JobResult<Done> {
    let entry = ctx.state::<Journal>()?.start(&ctx);
    let result = work(ctx.clone()).await;
    entry.end(match &result {
        Ok(()) => "done",
        Err(_) if ctx.is_cancelled() => "cancelled",
        Err(_) => "failed",
    });
    result.map(|()| Done { lease: ctx.lease_token().counter })
}
