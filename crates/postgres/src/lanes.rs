//! Where claims start: the lanes that hold work, and how far each has been claimed.
//!
//! A lane is a queue and a type. PostgreSQL keeps claimed rows in the index until no old transaction can see them, so
//! a scan from the head may walk a million dead entries. The place where the last claim ended lets the next one start
//! beyond them. It is only a hint: a transaction that commits late, a higher priority or a re-prioritised job lands
//! behind it. So every lane is looked at from its head again, soon while that is cheap, and at least every
//! [`MAX_STALE`] however dear it is. New lanes are looked for as often, in the gaps between the known ones.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use orchestrix_core::{JobType, Queue, Timestamp};
use orchestrix_store::{ClaimRequest, Queues};
use uuid::Uuid;

/// The longest that a lane goes without being looked at from its head, and that a new lane goes unseen.
pub(crate) const MAX_STALE: Duration = Duration::from_millis(700);
/// Scans from the head, and looks for new lanes, may each take one part in this many of the time.
const HEAD_SHARE: u32 = 20;
/// The most lanes remembered. Past that, lanes that gave nothing for a while make room.
pub(crate) const MAX_LANES: usize = 10_000;
/// How long a lane is remembered that gives nothing.
const IDLE: Duration = Duration::from_secs(10);

/// Where in a lane a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) rank: i16,
    pub(crate) eligible_at: Timestamp,
    pub(crate) id: Uuid,
}

impl Place {
    /// Before every job.
    pub(crate) const HEAD: Self = Self { rank: i16::MIN, eligible_at: Timestamp::UNIX_EPOCH, id: Uuid::nil() };

    /// Before every job of this rank that became eligible then.
    pub(crate) const fn before(rank: i16, eligible_at: Timestamp) -> Self {
        Self { rank, eligible_at, id: Uuid::nil() }
    }
}

#[derive(Debug, Clone, Copy)]
struct Lane {
    reached: Place,
    /// When the lane was last looked at from its head, and how long that took.
    head_scan: Option<(Instant, Duration)>,
    /// When it was found, or last gave a job.
    used_at: Instant,
}

impl Lane {
    fn new(now: Instant) -> Self {
        Self { reached: Place::HEAD, head_scan: None, used_at: now }
    }
}

/// A lane that a claim will look at, and where it starts.
#[derive(Debug, Clone)]
pub(crate) struct Start {
    pub(crate) queue: Queue,
    pub(crate) job_type: JobType,
    pub(crate) place: Place,
}

impl Start {
    pub(crate) fn is_head(&self) -> bool {
        self.place == Place::HEAD
    }
}

/// The lanes of one store, shared by all its claims.
#[derive(Debug, Default)]
pub(crate) struct Lanes(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    lanes: BTreeMap<(Queue, JobType), Lane>,
    /// When lanes were last looked for, and how long that took.
    looked: Option<(Instant, Duration)>,
    /// Whether a hint said that there may be a new one.
    hinted: bool,
    /// Where jobs will stand that have not been committed yet.
    promised: BTreeMap<(Queue, JobType), Place>,
}

impl Lanes {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here can be left half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// If it is time to look for new lanes: those that are known, in order. The caller that gets them is the one to look.
    pub(crate) fn take_turn(&self, now: Instant) -> Option<Vec<(Queue, JobType)>> {
        let mut inner = self.lock();
        let due = inner.looked.is_none_or(|(at, took)| {
            let since = now.duration_since(at);
            since >= MAX_STALE || inner.hinted && since >= took * HEAD_SHARE
        });
        if !due {
            return None;
        }
        let took = inner.looked.map_or(Duration::ZERO, |(_, took)| took);
        inner.looked = Some((now, took));
        inner.hinted = false;
        inner.lanes.retain(|_, lane| now.duration_since(lane.used_at) < IDLE);
        Some(inner.lanes.keys().cloned().collect())
    }

    /// Takes note of new lanes, and of how long it took to find them; an error leaves the turn to the next caller.
    pub(crate) fn found(&self, lanes: Option<Vec<(Queue, JobType)>>, took: Duration) {
        let mut inner = self.lock();
        let Some(lanes) = lanes else {
            inner.looked = None;
            return;
        };
        let now = Instant::now();
        for lane in lanes {
            if inner.lanes.len() < MAX_LANES {
                inner.lanes.entry(lane).or_insert_with(|| Lane::new(now));
            }
        }
        inner.looked = inner.looked.map(|(at, _)| (at, took));
    }

    /// Takes note that there may be a new lane.
    pub(crate) fn hint(&self) {
        self.lock().hinted = true;
    }

    /// Takes note of a job that somebody else's transaction will make claimable at `place`, if it commits.
    pub(crate) fn promised(&self, queue: &Queue, job_type: &JobType, place: Place) {
        let mut inner = self.lock();
        let full = inner.promised.len() >= MAX_LANES;
        let key = (queue.clone(), job_type.clone());
        if let Some(known) = inner.promised.get_mut(&key) {
            *known = place.min(*known);
        } else if !full {
            inner.promised.insert(key, place);
        }
    }

    /// Takes note that such transactions have committed: the next claim does not start beyond what they promised for `queue`.
    pub(crate) fn kept(&self, queue: &Queue) {
        let mut kept = BTreeMap::new();
        let mut inner = self.lock();
        inner.hinted = true;
        inner.promised.retain(|lane, place| {
            let other = lane.0 != *queue;
            if !other {
                kept.insert(lane.clone(), *place);
            }
            other
        });
        drop(inner);
        for ((queue, job_type), place) in kept {
            self.ready(&queue, &job_type, place);
        }
    }

    /// Takes note of a job that this process made claimable at `place`: the next claim does not start beyond it.
    pub(crate) fn ready(&self, queue: &Queue, job_type: &JobType, place: Place) {
        self.adjust(queue, job_type, |lane| lane.reached = lane.reached.min(place));
    }

    /// Takes note of a job that this process recorded. It is eligible from now on by the database's clock, which is after
    /// whatever was claimed, unless it is more urgent.
    pub(crate) fn recorded(&self, queue: &Queue, job_type: &JobType, rank: i16) {
        self.adjust(queue, job_type, |lane| {
            if rank < lane.reached.rank {
                lane.reached = Place::before(rank, Timestamp::UNIX_EPOCH);
            }
        });
    }

    fn adjust(&self, queue: &Queue, job_type: &JobType, change: impl FnOnce(&mut Lane)) {
        let now = Instant::now();
        let mut inner = self.lock();
        let full = inner.lanes.len() >= MAX_LANES;
        let key = (queue.clone(), job_type.clone());
        if let Some(lane) = inner.lanes.get_mut(&key) {
            lane.used_at = now;
            change(lane);
        } else if !full {
            inner.lanes.insert(key, Lane::new(now));
        }
    }

    /// The lanes that `request` may take from, and where to start in each.
    pub(crate) fn starts(&self, request: &ClaimRequest, now: Instant) -> Vec<Start> {
        let queues: Option<HashSet<&Queue>> = match &request.queues {
            Queues::All => None,
            Queues::Named(names) => Some(names.iter().collect()),
        };
        let types: Option<HashSet<&JobType>> = request.job_types.as_ref().map(|types| types.iter().collect());
        let mut inner = self.lock();
        let mut starts = Vec::new();
        for ((queue, job_type), lane) in &mut inner.lanes {
            let wanted = queues.as_ref().is_none_or(|names| names.contains(queue))
                && types.as_ref().is_none_or(|types| types.contains(job_type));
            if !wanted {
                continue;
            }
            let from_head =
                lane.head_scan.is_none_or(|(at, took)| now.duration_since(at) >= (took * HEAD_SHARE).min(MAX_STALE));
            if from_head {
                // Others that claim at the same time go on from where the lane stands.
                let took = lane.head_scan.map_or(MAX_STALE / HEAD_SHARE, |(_, took)| took);
                lane.head_scan = Some((now, took));
            }
            let place = if from_head { Place::HEAD } else { lane.reached };
            starts.push(Start { queue: queue.clone(), job_type: job_type.clone(), place });
        }
        starts
    }

    /// Takes note of how far a claim got in one lane.
    pub(crate) fn reached(&self, start: &Start, last: Option<Place>, took: Duration) {
        let mut inner = self.lock();
        let Some(lane) = inner.lanes.get_mut(&(start.queue.clone(), start.job_type.clone())) else { return };
        if last.is_some() {
            lane.used_at = Instant::now();
        }
        if start.is_head() {
            lane.head_scan = lane.head_scan.map(|(at, _)| (at, took));
            lane.reached = last.unwrap_or(lane.reached);
        } else if let Some(last) = last {
            lane.reached = lane.reached.max(last);
        }
    }
}
