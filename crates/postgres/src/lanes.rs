//! Where claims start: the lanes that hold work, and how far each has been claimed.
//!
//! A lane is a queue and a type. PostgreSQL keeps claimed rows in the index until no old transaction can see them, so
//! a scan from the head may walk a million dead entries. The place where the last claim ended lets the next one start
//! beyond them. It is only a hint: a transaction that commits late, a higher priority or a re-prioritised job lands
//! behind it. So every lane is looked at from its head again, soon while that is cheap, and at least every
//! [`MAX_STALE`] however dear it is.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use orchestrix_core::{JobType, Queue, Timestamp};
use orchestrix_store::ClaimRequest;
use uuid::Uuid;

/// The longest that a lane goes without being looked at from its head, and that a new lane goes unseen.
pub(crate) const MAX_STALE: Duration = Duration::from_millis(700);
/// Scans from the head may take one part in this many of the time.
const HEAD_SHARE: u32 = 20;
/// The most lanes remembered.
pub(crate) const MAX_LANES: usize = 10_000;

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
}

#[derive(Debug, Clone, Copy)]
struct Lane {
    reached: Place,
    /// When the lane was last looked at from its head, and how long that took.
    head_scan: Option<(Instant, Duration)>,
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
    lanes: HashMap<(Queue, JobType), Lane>,
    listed_at: Option<Instant>,
}

impl Lanes {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here can be left half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the list of lanes is due to be read again; the caller that is told so is the one to do it.
    pub(crate) fn take_listing_turn(&self, now: Instant) -> bool {
        let mut inner = self.lock();
        let due = inner.listed_at.is_none_or(|at| now.duration_since(at) >= MAX_STALE);
        if due {
            inner.listed_at = Some(now);
        }
        due
    }

    /// Replaces the list by what the database holds; lanes that stay keep their place.
    pub(crate) fn listed(&self, found: impl IntoIterator<Item = (Queue, JobType)>) {
        let mut inner = self.lock();
        let mut lanes = HashMap::new();
        for key in found {
            let lane = inner.lanes.remove(&key).unwrap_or(Lane { reached: Place::HEAD, head_scan: None });
            lanes.insert(key, lane);
        }
        inner.lanes = lanes;
    }

    /// Makes the next claim read the list again, for a hint that came from elsewhere.
    pub(crate) fn relist(&self) {
        self.lock().listed_at = None;
    }

    /// Takes note that some job of a queue became claimable: its lanes are looked at from the head, and the list is read
    /// again in case its lane is new.
    pub(crate) fn queue_ready(&self, queue: &Queue) {
        let mut inner = self.lock();
        inner.listed_at = None;
        for (_, lane) in inner.lanes.iter_mut().filter(|((name, _), _)| name == queue) {
            lane.reached = Place::HEAD;
        }
    }

    /// Takes note of a job that this process recorded.
    pub(crate) fn recorded(&self, queue: &Queue, job_type: &JobType, rank: i16) {
        let mut inner = self.lock();
        if let Some(lane) = inner.lanes.get_mut(&(queue.clone(), job_type.clone())) {
            if rank < lane.reached.rank {
                lane.reached = Place::HEAD;
            }
        } else if inner.lanes.len() < MAX_LANES {
            inner.lanes.insert((queue.clone(), job_type.clone()), Lane { reached: Place::HEAD, head_scan: None });
        }
    }

    /// The lanes that `request` may take from, and where to start in each.
    pub(crate) fn starts(&self, request: &ClaimRequest, now: Instant) -> Vec<Start> {
        let mut inner = self.lock();
        let mut starts = Vec::new();
        for ((queue, job_type), lane) in &mut inner.lanes {
            let wanted = request.queues.contains(queue)
                && request.job_types.as_ref().is_none_or(|types| types.contains(job_type));
            if !wanted {
                continue;
            }
            let from_head =
                lane.head_scan.is_none_or(|(at, took)| now.duration_since(at) >= (took * HEAD_SHARE).min(MAX_STALE));
            if from_head {
                // Others that claim at the same time go on from where the lane stands.
                lane.head_scan = Some((now, lane.head_scan.map_or(MAX_STALE / HEAD_SHARE, |(_, took)| took)));
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
        if start.is_head() {
            lane.head_scan = lane.head_scan.map(|(at, _)| (at, took));
            lane.reached = last.unwrap_or(lane.reached);
        } else if let Some(last) = last {
            lane.reached = lane.reached.max(last);
        }
    }
}
