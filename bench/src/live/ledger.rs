//! What became of each job, and when each follower heard of it.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use anyhow::{Result, ensure};
use jiff::Timestamp;

/// Those who follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follower {
    ByJob,
    All,
    ByQueue,
    Events,
}

impl Follower {
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

/// What one follower heard of one job.
#[derive(Debug, Clone, Copy, Default)]
struct Heard {
    first: Option<Timestamp>,
    /// Of its end: when it was heard, and when it was by the database's clock.
    end: Option<(Timestamp, Timestamp)>,
    last: usize,
}

#[derive(Debug, Default)]
struct Job {
    /// When the answer came that it is recorded; news may come before.
    accepted: Option<Timestamp>,
    /// Who should hear of it.
    expected: [bool; Follower::ALL.len()],
    heard: [Heard; Follower::ALL.len()],
}

/// All jobs.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    jobs: Mutex<HashMap<String, Job>>,
    /// How often each was told that it lags.
    lags: Mutex<[usize; Follower::ALL.len()]>,
}

/// What is said of the statuses that a job of the load goes through, in this order.
const STATUSES: [&str; 3] = ["PENDING", "RUNNING", "COMPLETED"];

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job was recorded, and these should hear of it.
    pub(super) fn accepted(&self, id: &str, expected: impl Fn(Follower) -> bool) {
        let now = Timestamp::now();
        let mut jobs = self.lock();
        let job = jobs.entry(id.to_owned()).or_default();
        job.accepted = Some(now);
        job.expected = Follower::ALL.map(expected);
    }

    /// Somebody heard of a job. Whether it is at its end; an order that cannot be is an error.
    pub(super) fn heard(&self, who: Follower, id: &str, status: &str, at: Timestamp) -> Result<bool> {
        let now = Timestamp::now();
        let rank = STATUSES.iter().position(|known| *known == status);
        ensure!(rank.is_some(), "job {id} is {status}");
        let rank = rank.unwrap_or_default();
        let mut jobs = self.lock();
        let heard = &mut jobs.entry(id.to_owned()).or_default().heard[who as usize];
        ensure!(rank >= heard.last, "{}: job {id} is {status} after it was {}", who.name(), STATUSES[heard.last]);
        heard.last = rank;
        heard.first.get_or_insert(now);
        let over = rank == STATUSES.len() - 1;
        if over {
            heard.end.get_or_insert((now, at));
        }
        Ok(over)
    }

    pub(super) fn lagged(&self, who: Follower) {
        self.lags.lock().unwrap_or_else(PoisonError::into_inner)[who as usize] += 1;
    }

    /// How many ends somebody should have heard of and has not.
    pub(super) fn missing(&self) -> usize {
        Follower::ALL.into_iter().map(|who| self.seen(who).missed).sum()
    }

    /// What one of them heard.
    pub(super) fn seen(&self, who: Follower) -> Seen {
        let mut seen =
            Seen { lags: self.lags.lock().unwrap_or_else(PoisonError::into_inner)[who as usize], ..Seen::default() };
        for job in self.lock().values().filter(|job| job.expected[who as usize]) {
            let heard = job.heard[who as usize];
            let Some((end, at)) = heard.end else {
                seen.missed += 1;
                continue;
            };
            seen.ends.push(millis(at, end));
            if let (Some(accepted), Some(first)) = (job.accepted, heard.first) {
                seen.first.push(millis(accepted, first));
            }
        }
        seen.first.sort_unstable_by(f64::total_cmp);
        seen.ends.sort_unstable_by(f64::total_cmp);
        seen
    }
}

/// What one follower heard, in milliseconds, the shortest first.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// From the answer that a job is recorded to its first news.
    pub(super) first: Vec<f64>,
    /// From its end, by the database's clock, to the news of it.
    pub(super) ends: Vec<f64>,
    pub(super) missed: usize,
    pub(super) lags: usize,
}

// News may overtake the answer.
fn millis(from: Timestamp, to: Timestamp) -> f64 {
    (to.duration_since(from).as_secs_f64() * 1_000.0).max(0.0)
}
