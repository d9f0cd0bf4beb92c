//! Which subscriber received which event, and when.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use anyhow::{Result, ensure};
use jiff::Timestamp;

/// The kinds of subscribers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SubscriberKind {
    ByJob,
    All,
    ByQueue,
    Events,
}

impl SubscriberKind {
    pub(super) const ALL: [Self; 4] = [Self::ByJob, Self::All, Self::ByQueue, Self::Events];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::ByJob => "WebSocket, jobs by id",
            Self::All => "WebSocket, all jobs",
            Self::ByQueue => "WebSocket, a queue",
            Self::Events => "events of a job",
        }
    }
}

/// What one subscriber received for one job.
#[derive(Debug, Clone, Copy, Default)]
struct ReceivedEvents {
    first: Option<Timestamp>,
    /// The end of the job: when it was received, and its time by the database's clock.
    end: Option<(Timestamp, Timestamp)>,
    last: usize,
}

#[derive(Debug, Default)]
struct Job {
    /// When the 202 arrived; events may come before.
    accepted: Option<Timestamp>,
    /// Which subscribers should receive its events.
    expected: [bool; SubscriberKind::ALL.len()],
    received: [ReceivedEvents; SubscriberKind::ALL.len()],
}

/// All jobs and their events.
#[derive(Debug, Default)]
pub(super) struct EventLedger {
    jobs: Mutex<HashMap<String, Job>>,
    /// How often each subscriber received `lagged`.
    lags: Mutex<[usize; SubscriberKind::ALL.len()]>,
}

/// The statuses of a job, in order.
const STATUSES: [&str; 3] = ["PENDING", "RUNNING", "COMPLETED"];

impl EventLedger {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a job was accepted, and which subscribers should see it.
    pub(super) fn accepted(&self, id: &str, expected: impl Fn(SubscriberKind) -> bool) {
        let now = Timestamp::now();
        let mut jobs = self.lock();
        let job = jobs.entry(id.to_owned()).or_default();
        job.accepted = Some(now);
        job.expected = SubscriberKind::ALL.map(expected);
    }

    /// Records an event; returns whether it is the job's end. An impossible order is an error.
    pub(super) fn received(&self, kind: SubscriberKind, id: &str, status: &str, at: Timestamp) -> Result<bool> {
        let now = Timestamp::now();
        let rank = STATUSES.iter().position(|known| *known == status);
        ensure!(rank.is_some(), "job {id} is {status}");
        let rank = rank.unwrap_or_default();
        let mut jobs = self.lock();
        let received = &mut jobs.entry(id.to_owned()).or_default().received[kind as usize];
        ensure!(
            rank >= received.last,
            "{}: job {id} is {status} after it was {}",
            kind.name(),
            STATUSES[received.last]
        );
        received.last = rank;
        received.first.get_or_insert(now);
        let over = rank == STATUSES.len() - 1;
        if over {
            received.end.get_or_insert((now, at));
        }
        Ok(over)
    }

    pub(super) fn lagged(&self, kind: SubscriberKind) {
        self.lags.lock().unwrap_or_else(PoisonError::into_inner)[kind as usize] += 1;
    }

    /// The number of ends that some subscriber should have received but has not.
    pub(super) fn missing(&self) -> usize {
        SubscriberKind::ALL.into_iter().map(|kind| self.timings(kind).missed).sum()
    }

    /// The timings of one subscriber.
    pub(super) fn timings(&self, kind: SubscriberKind) -> SubscriberTimings {
        let mut timings = SubscriberTimings {
            lags: self.lags.lock().unwrap_or_else(PoisonError::into_inner)[kind as usize],
            ..SubscriberTimings::default()
        };
        for job in self.lock().values().filter(|job| job.expected[kind as usize]) {
            let received = job.received[kind as usize];
            let Some((end, at)) = received.end else {
                timings.missed += 1;
                continue;
            };
            timings.ends.push(millis(at, end));
            if let (Some(accepted), Some(first)) = (job.accepted, received.first) {
                timings.first.push(millis(accepted, first));
            }
        }
        timings.first.sort_unstable_by(f64::total_cmp);
        timings.ends.sort_unstable_by(f64::total_cmp);
        timings
    }
}

/// The timings of one subscriber in milliseconds, sorted.
#[derive(Debug, Default)]
pub(super) struct SubscriberTimings {
    /// From the 202 to the first event.
    pub(super) first: Vec<f64>,
    /// From the job's end, by the database's clock, to its event.
    pub(super) ends: Vec<f64>,
    pub(super) missed: usize,
    pub(super) lags: usize,
}

// An event may come before the 202.
fn millis(from: Timestamp, to: Timestamp) -> f64 {
    (to.duration_since(from).as_secs_f64() * 1_000.0).max(0.0)
}
