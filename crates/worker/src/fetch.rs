//! The fetcher: claims as many jobs as there is room for, when some may be claimable.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use orchestrix_core::{Backoff, JobType, Queue, WorkerName};
use orchestrix_store::{ClaimRequest, ClaimedJob, PollInterval, Queues, Result, StoreError, Wakeup, Wakeups};
use tokio::sync::watch;

use crate::{JobSource, catch_panic::catch_panic, options::WorkerOptions, worker::WorkerShared};

/// The pause after a first failed claim. It doubles with each failure, up to the poll interval.
const FIRST_RETRY: Duration = Duration::from_millis(100);
/// How long to ignore wake-ups after one that led to no job. It doubles each time, up to the longest.
const FIRST_WAKEUP_DELAY: Duration = Duration::from_millis(2);
const LONGEST_WAKEUP_DELAY: Duration = Duration::from_millis(50);
/// How long a prefetched job may wait for a slot before it is released.
const MAX_QUEUED_TIME: Duration = Duration::from_secs(1);

/// Decides which queues to claim from, and how many jobs from each.
pub(crate) struct ClaimPlanner {
    worker: WorkerName,
    served: Queues,
    job_types: Vec<JobType>,
    /// The weighted queues. Empty if no queue has a weight.
    weighted: Vec<WeightedQueue>,
}

struct WeightedQueue {
    queue: Queue,
    /// The queue's weight divided by the sum of all weights.
    share: f64,
    /// The part of its share that the queue has not received yet, in jobs.
    credit: f64,
}

impl ClaimPlanner {
    pub(crate) fn new(options: &WorkerOptions, job_types: Vec<JobType>) -> Self {
        let has_weights = options.queues.iter().any(|(_, weight)| weight.is_some());
        let sum: u32 = options.queues.iter().map(|(_, weight)| weight.unwrap_or(1)).sum();
        let share = |weight: Option<u32>| f64::from(weight.unwrap_or(1)) / f64::from(sum);
        let weighted = options.queues.iter().filter(|_| has_weights).map(|(queue, weight)| WeightedQueue {
            queue: queue.clone(),
            share: share(*weight),
            credit: 0.0,
        });
        let weighted = weighted.collect();
        Self { worker: options.name.clone(), served: options.served_queues(), job_types, weighted }
    }

    fn request(&self, queues: Queues, limit: usize) -> ClaimRequest {
        ClaimRequest { worker: self.worker.clone(), queues, job_types: Some(self.job_types.clone()), limit }
    }

    /// Claims up to `limit` jobs and returns how many. Passes them to `accept` as they arrive, because their leases run
    /// already.
    ///
    /// With weights, each queue first gets its share of `limit` plus its credit. The rest is claimed from all queues,
    /// in their common order.
    pub(crate) async fn claim(
        &mut self,
        source: &dyn JobSource,
        limit: usize,
        mut accept: impl FnMut(Vec<ClaimedJob>, Instant),
    ) -> Result<usize> {
        let mut claimed = 0;
        for i in 0..self.weighted.len() {
            let WeightedQueue { queue, share, credit } = &self.weighted[i];
            // The credit is bounded, so that no queue gets a monopoly after an outage.
            let credit = (credit + share * limit as f64).min(limit as f64);
            let quota = (credit as usize).min(limit - claimed);
            let got = match quota {
                0 => 0,
                _ => {
                    let request = self.request(Queues::Named(vec![queue.clone()]), quota);
                    claim_now(source, &request, &mut accept).await?
                }
            };
            // An empty queue keeps no credit: it would crowd out the others when it fills again.
            self.weighted[i].credit = if got < quota { 0.0 } else { credit - quota as f64 };
            claimed += got;
        }
        let rest = limit - claimed;
        if rest > 0 {
            // One claim at a time: concurrent claims would skip the rows that the others have locked.
            let request = self.request(self.served.clone(), rest);
            claimed += claim_now(source, &request, &mut accept).await?;
        }
        Ok(claimed)
    }

    /// Claims up to `room` jobs by a long poll and returns how many. `None` if the source has no long poll.
    async fn long_poll(
        &self,
        source: &dyn JobSource,
        room: usize,
        accept: impl FnOnce(Vec<ClaimedJob>, Instant),
    ) -> Result<Option<usize>> {
        if room == 0 {
            return Ok(None);
        }
        let request = self.request(self.served.clone(), room.min(ClaimRequest::MAX_LIMIT));
        let Some((jobs, claimed_at)) = catch_panic(source.long_poll_jobs(&request)).await? else { return Ok(None) };
        let got = jobs.len();
        accept(jobs, claimed_at);
        Ok(Some(got))
    }

    fn concerns(&self, wakeup: &Wakeup) -> bool {
        match wakeup {
            Wakeup::Anything => true,
            Wakeup::Queue(queue) => self.served.contains(queue),
        }
    }
}

async fn claim_now(
    source: &dyn JobSource,
    request: &ClaimRequest,
    accept: &mut impl FnMut(Vec<ClaimedJob>, Instant),
) -> Result<usize> {
    let claimed_at = Instant::now();
    let jobs = catch_panic(source.claim_jobs(request)).await?;
    let got = jobs.len();
    accept(jobs, claimed_at);
    Ok(got)
}

/// Decides how many jobs to prefetch: as many as the slots finish in [`HORIZON`](Self::HORIZON) at the current rate.
///
/// A worker of long jobs prefetches none, so it keeps no job from other workers. A worker of short jobs never waits for
/// the next claim.
struct PrefetchController {
    /// Jobs finished per second, smoothed when it falls.
    rate: f64,
    finished: u64,
    measured_at: Instant,
    /// The latest decision. It grows at most fourfold at a time, so that a few short jobs do not bring in many long
    /// ones.
    prefetch: usize,
    slots: usize,
    max: usize,
}

impl PrefetchController {
    const HORIZON: Duration = Duration::from_millis(100);
    const MIN_MEASUREMENT: Duration = Duration::from_millis(2);

    fn new(slots: usize, max: usize) -> Self {
        Self { rate: 0.0, finished: 0, measured_at: Instant::now(), prefetch: 0, slots, max }
    }

    /// The number of jobs to prefetch, given how many jobs the slots have finished so far.
    fn update(&mut self, finished: u64) -> usize {
        let elapsed = self.measured_at.elapsed();
        if elapsed >= Self::MIN_MEASUREMENT {
            let rate = (finished - self.finished) as f64 / elapsed.as_secs_f64();
            self.rate = if rate > self.rate { rate } else { 0.5 * self.rate + 0.5 * rate };
            (self.finished, self.measured_at) = (finished, Instant::now());
        }
        let wanted = (self.rate * Self::HORIZON.as_secs_f64()) as usize;
        self.prefetch = wanted.min(4 * (self.prefetch + self.slots)).min(self.max);
        self.prefetch
    }
}

/// Growing pauses between failed claims. Logs the first failure and the recovery.
struct ClaimBackoff {
    failing: bool,
    backoff: Backoff,
}

impl ClaimBackoff {
    fn new(longest: Duration) -> Self {
        Self { failing: false, backoff: Backoff::new(FIRST_RETRY, longest) }
    }

    fn succeeded(&mut self) {
        if std::mem::replace(&mut self.failing, false) {
            tracing::info!("claiming jobs succeeds again");
        }
        self.backoff.reset();
    }

    async fn wait(&mut self, error: &StoreError, stop: &mut watch::Receiver<bool>) {
        if !std::mem::replace(&mut self.failing, true) {
            tracing::warn!(%error, "claiming jobs failed; retrying");
        }
        let _ = tokio::time::timeout(self.backoff.next_delay(), stop.changed()).await;
    }
}

/// Fetches jobs until `stop` becomes true.
///
/// A claim in flight is awaited, because its jobs would stay leased until their leases expire. A long poll is dropped:
/// the source releases what it claimed for it.
pub(crate) async fn run(
    shared: Arc<WorkerShared>,
    source: Arc<dyn JobSource>,
    mut planner: ClaimPlanner,
    mut wakeups: Wakeups,
    mut stop: watch::Receiver<bool>,
) {
    let mut poll_interval = PollInterval::new(shared.options.poll_interval);
    let mut prefetch = PrefetchController::new(shared.options.concurrency, shared.options.prefetch);
    let mut backoff = ClaimBackoff::new(shared.options.poll_interval);
    let mut wakeup_backoff = Backoff::new(FIRST_WAKEUP_DELAY, LONGEST_WAKEUP_DELAY);
    while !*stop.borrow_and_update() {
        shared.slots.set_prefetch(prefetch.update(shared.slots.finished()));
        // Capped to one claim: after a claim that is full up to the cap the loop claims again at once.
        let wanted = shared.slots.wanted().min(ClaimRequest::MAX_LIMIT);
        if wanted == 0 {
            tokio::select! {
                () = shared.slots.has_room.notified() => {}
                () = tokio::time::sleep(MAX_QUEUED_TIME / 2), if shared.slots.has_queued() => {
                    // The running jobs take longer than predicted: another worker may have a free slot.
                    shared.release_jobs(shared.slots.take_overdue(MAX_QUEUED_TIME)).await;
                }
                _ = stop.changed() => {}
            }
            continue;
        }
        // The claim below answers all wake-ups received so far.
        wakeups.drain();
        let got = match planner.claim(&*source, wanted, |jobs, at| shared.accept_jobs(jobs, at)).await {
            Ok(got) => got,
            Err(error) => {
                backoff.wait(&error, &mut stop).await;
                continue;
            }
        };
        backoff.succeeded();
        // A wake-up names a queue, not a job type, and reaches every worker of the queue. The more of them lead to no
        // job, the longer the fetcher ignores them.
        let wakeup_delay = match got {
            0 => wakeup_backoff.next_delay(),
            _ => {
                wakeup_backoff.reset();
                poll_interval.reset();
                Duration::ZERO
            }
        };
        if got == wanted {
            continue;
        }
        let poll_started = Instant::now();
        // Only for the free slots: a job that would have to queue here is better left to other workers.
        let long_poll = planner.long_poll(&*source, shared.slots.free(), |jobs, at| shared.accept_jobs(jobs, at));
        let polled = tokio::select! {
            // The poll comes first, so that jobs that have arrived are never dropped.
            biased;
            polled = long_poll => polled,
            _ = stop.changed() => continue,
        };
        match polled {
            Ok(Some(1..)) => {
                wakeup_backoff.reset();
                poll_interval.reset();
            }
            // A long poll that timed out has waited long enough. One that returned too early must not become a busy
            // loop.
            Ok(Some(0)) if poll_started.elapsed() >= shared.options.poll_interval.min(MAX_QUEUED_TIME) => {}
            Ok(_) => tokio::select! {
                () = wait_for_wakeup(&mut wakeups, &planner, &mut poll_interval, wakeup_delay) => {}
                _ = stop.changed() => {}
            },
            Err(error) => backoff.wait(&error, &mut stop).await,
        }
    }
}

/// Waits for a wake-up that concerns this worker, or for the poll interval. Ignores wake-ups for the first `delay`.
async fn wait_for_wakeup(
    wakeups: &mut Wakeups,
    planner: &ClaimPlanner,
    poll_interval: &mut PollInterval,
    delay: Duration,
) {
    let pause = poll_interval.next_delay();
    let woken = async {
        tokio::time::sleep(delay.min(pause)).await;
        while !planner.concerns(&wakeups.next().await) {}
    };
    let _ = tokio::time::timeout(pause, woken).await;
}
