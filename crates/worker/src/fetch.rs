//! Getting jobs: as many as there is room for, when there may be any.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use orchestrix_core::{JobType, Queue, WorkerName};
use orchestrix_store::{ClaimRequest, ClaimedJob, PollInterval, Queues, Result, StoreError, Wakeup, Wakeups};
use tokio::sync::watch;

use crate::{JobSource, guard::guarded, options::WorkerOptions, worker::Shop};

/// How long after a failure to try again; doubled each time, up to the poll interval.
const TRY_AGAIN: Duration = Duration::from_millis(100);
/// How long to look away after a hint that led nowhere; doubled each time.
const CALM: Duration = Duration::from_millis(2);
const LONGEST_CALM: Duration = Duration::from_millis(50);
/// How long a job waits for a slot before it is handed back.
const WAIT: Duration = Duration::from_secs(1);

/// Which queues to ask, and for how much.
pub(crate) struct Demand {
    worker: WorkerName,
    served: Queues,
    job_types: Vec<JobType>,
    /// Queues with a weight and the credit they have left, where weights differ.
    shares: Vec<(Queue, f64, f64)>,
}

impl Demand {
    pub(crate) fn new(options: &WorkerOptions, job_types: Vec<JobType>) -> Self {
        let weighted = options.queues.iter().any(|(_, weight)| weight.is_some());
        let sum: u32 = options.queues.iter().map(|(_, weight)| weight.unwrap_or(1)).sum();
        let share = |weight: Option<u32>| f64::from(weight.unwrap_or(1)) / f64::from(sum);
        let shares = options.queues.iter().filter(|_| weighted);
        let shares = shares.map(|(queue, weight)| (queue.clone(), share(*weight), 0.0)).collect();
        Self { worker: options.name.clone(), served: options.served(), job_types, shares }
    }

    fn request(&self, queues: Queues, limit: usize) -> ClaimRequest {
        ClaimRequest { worker: self.worker.clone(), queues, job_types: Some(self.job_types.clone()), limit }
    }

    /// Up to `limit` jobs, which are given to `take` as they come: their leases run already. Answers how many it were.
    /// With weights each queue first gets its share, of this claim and of what it was owed; what is left goes to whoever has
    /// jobs, in the order of all.
    pub(crate) async fn claim(
        &mut self,
        source: &dyn JobSource,
        limit: usize,
        mut take: impl FnMut(Vec<ClaimedJob>, Instant),
    ) -> Result<usize> {
        let mut claimed = 0;
        for i in 0..self.shares.len() {
            let (queue, share, credit) = &self.shares[i];
            // What a queue is owed is bounded: an outage must not give it a monopoly afterwards.
            let credit = (credit + share * limit as f64).min(limit as f64);
            let quota = (credit as usize).min(limit - claimed);
            let got = match quota {
                0 => 0,
                _ => {
                    let request = self.request(Queues::Named(vec![queue.clone()]), quota);
                    lease(source, &request, &mut take).await?
                }
            };
            // An empty queue saves nothing up: it would flood the others when it fills again.
            self.shares[i].2 = if got < quota { 0.0 } else { credit - quota as f64 };
            claimed += got;
        }
        let rest = limit - claimed;
        if rest > 0 {
            // One claim at a time: several at once would step over the rows that the others have locked.
            let request = self.request(self.served.clone(), rest);
            claimed += lease(source, &request, &mut take).await?;
        }
        Ok(claimed)
    }

    /// Waits at the source for up to `room` jobs. Answers how many it were, or `None` where nobody can wait there.
    async fn wait(
        &self,
        source: &dyn JobSource,
        room: usize,
        take: impl FnOnce(Vec<ClaimedJob>, Instant),
    ) -> Result<Option<usize>> {
        if room == 0 {
            return Ok(None);
        }
        let request = self.request(self.served.clone(), room.min(ClaimRequest::MAX_LIMIT));
        let Some((claimed, begun)) = guarded(source.await_jobs(&request)).await? else { return Ok(None) };
        let got = claimed.len();
        take(claimed, begun);
        Ok(Some(got))
    }

    fn concerns(&self, wakeup: &Wakeup) -> bool {
        match wakeup {
            Wakeup::Anything => true,
            Wakeup::Queue(queue) => self.served.contains(queue),
        }
    }
}

async fn lease(
    source: &dyn JobSource,
    request: &ClaimRequest,
    take: &mut impl FnMut(Vec<ClaimedJob>, Instant),
) -> Result<usize> {
    let begun = Instant::now();
    let claimed = guarded(source.lease(request)).await?;
    let got = claimed.len();
    take(claimed, begun);
    Ok(got)
}

/// How many jobs to hold ready beyond those that run: what ended in the last moments, for as long ahead. A worker of
/// long jobs holds none back from others, however many it begins at once; one of short jobs never waits for the next claim.
struct Pace {
    rate: f64,
    seen: u64,
    at: Instant,
    /// What was held ready at the last look; it grows by no more than fourfold at a time, so that a few quick jobs do
    /// not bring in many long ones.
    held: usize,
    slots: usize,
    most: usize,
}

impl Pace {
    const AHEAD: Duration = Duration::from_millis(100);
    const SHORTEST: Duration = Duration::from_millis(2);

    fn ahead(&mut self, ended: u64) -> usize {
        let elapsed = self.at.elapsed();
        if elapsed >= Self::SHORTEST {
            let rate = (ended - self.seen) as f64 / elapsed.as_secs_f64();
            self.rate = if rate > self.rate { rate } else { 0.5 * self.rate + 0.5 * rate };
            (self.seen, self.at) = (ended, Instant::now());
        }
        let wanted = (self.rate * Self::AHEAD.as_secs_f64()) as usize;
        self.held = wanted.min(4 * (self.held + self.slots)).min(self.most);
        self.held
    }
}

/// Claims that fail: said once, and tried again after growing pauses.
struct Trouble {
    failing: bool,
    pause: Duration,
    longest: Duration,
}

impl Trouble {
    fn new(longest: Duration) -> Self {
        Self { failing: false, pause: TRY_AGAIN.min(longest), longest }
    }

    fn over(&mut self) {
        if std::mem::replace(&mut self.failing, false) {
            tracing::info!("jobs can be claimed again");
        }
        self.pause = TRY_AGAIN.min(self.longest);
    }

    async fn wait(&mut self, error: &StoreError, stop: &mut watch::Receiver<bool>) {
        if !std::mem::replace(&mut self.failing, true) {
            tracing::warn!(%error, "jobs cannot be claimed now; trying on");
        }
        let _ = tokio::time::timeout(self.pause, stop.changed()).await;
        self.pause = (self.pause * 2).min(self.longest);
    }
}

/// Fetches until `stop` becomes true. A claim that is under way is waited for: what it gives would be lost for the time
/// of a lease. One that waits at the source for jobs to come is dropped.
pub(crate) async fn run(
    shop: Arc<Shop>,
    source: Arc<dyn JobSource>,
    mut demand: Demand,
    mut wakeups: Wakeups,
    mut stop: watch::Receiver<bool>,
) {
    let mut polling = PollInterval::new(shop.options.poll_interval);
    let (slots, most) = (shop.options.concurrency, shop.options.prefetch);
    let mut pace = Pace { rate: 0.0, seen: 0, at: Instant::now(), held: 0, slots, most };
    let mut trouble = Trouble::new(shop.options.poll_interval);
    let mut calm = Duration::ZERO;
    while !*stop.borrow_and_update() {
        shop.floor.keep_ahead(pace.ahead(shop.floor.ended()));
        // No more than one claim may ask for: one that gave all of that is no sign that nothing is left.
        let wanted = shop.floor.wanted().min(ClaimRequest::MAX_LIMIT);
        if wanted == 0 {
            tokio::select! {
                () = shop.floor.room.notified() => {}
                () = tokio::time::sleep(WAIT / 2), if shop.floor.has_ready() => {
                    // The jobs before them take longer than expected: somebody else may have a slot free.
                    shop.release(shop.floor.overdue(WAIT)).await;
                }
                _ = stop.changed() => {}
            }
            continue;
        }
        // Hints from before this look are answered by it.
        wakeups.drain();
        let got = match demand.claim(&*source, wanted, |claimed, begun| shop.take(claimed, begun)).await {
            Ok(got) => got,
            Err(error) => {
                trouble.wait(&error, &mut stop).await;
                continue;
            }
        };
        trouble.over();
        // Hints name a queue, not a type, and reach every worker of it: those that lead nowhere are followed ever less eagerly.
        calm = if got > 0 { Duration::ZERO } else { (calm * 2).clamp(CALM, LONGEST_CALM) };
        if got > 0 {
            polling.reset();
        }
        if got == wanted {
            continue;
        }
        let begun = Instant::now();
        // For the free slots alone: what would have to wait for one may wait where others can have it.
        let waited = tokio::select! {
            // First, so that jobs that are here are never dropped.
            biased;
            waited = demand.wait(&*source, shop.floor.free(), |claimed, begun| shop.take(claimed, begun)) => waited,
            _ = stop.changed() => continue,
        };
        match waited {
            Ok(Some(1..)) => {
                calm = Duration::ZERO;
                polling.reset();
            }
            // It was waited for there; a source that answers sooner is not asked without end.
            Ok(Some(0)) if begun.elapsed() >= shop.options.poll_interval.min(WAIT) => {}
            Ok(_) => tokio::select! {
                () = hint(&mut wakeups, &demand, &mut polling, calm) => {}
                _ = stop.changed() => {}
            },
            Err(error) => trouble.wait(&error, &mut stop).await,
        }
    }
}

async fn hint(wakeups: &mut Wakeups, demand: &Demand, polling: &mut PollInterval, calm: Duration) {
    let pause = polling.next_delay();
    let concerned = async {
        // Not before this, whatever is hinted.
        tokio::time::sleep(calm.min(pause)).await;
        while !demand.concerns(&wakeups.next().await) {}
    };
    // Time to look without a hint.
    let _ = tokio::time::timeout(pause, concerned).await;
}
