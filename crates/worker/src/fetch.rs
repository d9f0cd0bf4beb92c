//! Getting jobs: as many as there is room for, when there may be any.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use orchestrix_core::{JobType, Queue, WorkerName};
use orchestrix_store::{ClaimRequest, Claimed, Polling, Queues, Result, Wakeup, Wakeups};
use tokio::sync::watch;

use crate::{JobSource, options::WorkerOptions, worker::Shop};

/// How long after a failure to try again; doubled each time, up to the poll interval.
const TRY_AGAIN: Duration = Duration::from_millis(100);

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
        let sum: u32 = options.queues.iter().map(|(_, weight)| weight).sum();
        let even = options.queues.windows(2).all(|pair| pair[0].1 == pair[1].1);
        let shares = match even {
            true => Vec::new(),
            false => options.queues.iter().map(|(q, w)| (q.clone(), f64::from(*w) / f64::from(sum), 0.0)).collect(),
        };
        Self { worker: options.name.clone(), served: options.served(), job_types, shares }
    }

    fn request(&self, queues: Queues, limit: usize) -> ClaimRequest {
        ClaimRequest { worker: self.worker.clone(), queues, job_types: Some(self.job_types.clone()), limit }
    }

    /// Up to `limit` jobs. With weights each queue first gets its share, of this claim and of what it was owed; what
    /// is left goes to whoever has jobs, in the order of all.
    pub(crate) async fn claim(&mut self, source: &dyn JobSource, limit: usize) -> Result<Vec<Claimed>> {
        let limit = limit.min(ClaimRequest::MAX_LIMIT);
        let mut claimed = Vec::new();
        for i in 0..self.shares.len() {
            let (queue, share, credit) = &mut self.shares[i];
            *credit += *share * limit as f64;
            let quota = (*credit as usize).min(limit - claimed.len());
            if quota == 0 {
                continue;
            }
            let queues = Queues::Named(vec![queue.clone()]);
            let got = match source.lease(&self.request(queues, quota)).await {
                Ok(got) => got,
                Err(error) if claimed.is_empty() => return Err(error),
                // Those that were given are leased already: better some than none.
                Err(_) => return Ok(claimed),
            };
            // An empty queue saves nothing up: it would flood the others when it fills again.
            let credit = &mut self.shares[i].2;
            *credit = if got.len() < quota { 0.0 } else { *credit - quota as f64 };
            claimed.extend(got);
        }
        if claimed.len() < limit {
            let rest = self.request(self.served.clone(), limit - claimed.len());
            match source.lease(&rest).await {
                Ok(got) => claimed.extend(got),
                Err(error) if claimed.is_empty() => return Err(error),
                Err(_) => {}
            }
        }
        Ok(claimed)
    }

    fn concerns(&self, wakeup: &Wakeup) -> bool {
        match wakeup {
            Wakeup::Anything => true,
            Wakeup::Queue(queue) => self.served.contains(queue),
        }
    }
}

/// How many jobs to hold ready beyond those that run: what ended in the last moments, for as long ahead. A worker of
/// long jobs holds none back from others, however many it begins at once; one of short jobs never waits for the next claim.
struct Pace {
    rate: f64,
    seen: u64,
    at: Instant,
    /// What was held ready at the last look; it grows by no more than twofold at a time, so that a few quick jobs do
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
        self.held = wanted.min(2 * (self.held + self.slots)).min(self.most);
        self.held
    }
}

/// Fetches until `stop` becomes true. A claim that is under way is waited for: what it gives would be lost for the time
/// of a lease.
pub(crate) async fn run(shop: Arc<Shop>, mut demand: Demand, mut wakeups: Wakeups, mut stop: watch::Receiver<bool>) {
    let mut polling = Polling::new(shop.options.poll_interval);
    let (slots, most) = (shop.options.concurrency, shop.options.prefetch);
    let mut pace = Pace { rate: 0.0, seen: 0, at: Instant::now(), held: 0, slots, most };
    let mut pause = TRY_AGAIN;
    let mut failing = false;
    while !*stop.borrow_and_update() {
        shop.floor.keep_ahead(pace.ahead(shop.floor.ended()));
        let wanted = if shop.is_draining() { 0 } else { shop.floor.wanted() };
        if wanted == 0 {
            tokio::select! {
                () = shop.floor.room.notified() => {}
                () = shop.directed.notified() => {}
                _ = stop.changed() => {}
            }
            continue;
        }
        // Hints from before this look are answered by it.
        wakeups.drain();
        let begun = Instant::now();
        let got = match demand.claim(&*shop.source, wanted).await {
            Ok(claimed) => {
                if std::mem::replace(&mut failing, false) {
                    tracing::info!("jobs can be claimed again");
                }
                pause = TRY_AGAIN.min(shop.options.poll_interval);
                let got = claimed.len();
                shop.take(claimed, begun);
                got
            }
            Err(error) => {
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(%error, "jobs cannot be claimed now; trying on");
                }
                let _ = tokio::time::timeout(pause, stop.changed()).await;
                pause = (pause * 2).min(shop.options.poll_interval);
                continue;
            }
        };
        if got > 0 {
            polling.found();
        }
        if got < wanted {
            tokio::select! {
                () = hint(&mut wakeups, &demand, &mut polling) => {}
                _ = stop.changed() => {}
            }
        }
    }
}

async fn hint(wakeups: &mut Wakeups, demand: &Demand, polling: &mut Polling) {
    let pause = polling.pause();
    let concerned = async { while !demand.concerns(&wakeups.next().await) {} };
    // Time to look without a hint.
    let _ = tokio::time::timeout(pause, concerned).await;
}
