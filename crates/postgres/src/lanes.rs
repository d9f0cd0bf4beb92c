//! Where claims start: the lanes that hold jobs, and a cursor into each.
//!
//! A lane is a queue and a job type. Its jobs are claimed by rank (the negated priority), time of eligibility and id.
//! PostgreSQL keeps the index entries of claimed rows until no old transaction can see them, so a scan from the head of
//! a lane may walk a million dead entries. The cursor is where the last claim ended; the next claim starts there.
//!
//! The cursor is only a hint: a transaction that commits late, a job of higher priority or a reprioritized job lands
//! before it. So claims also scan every lane from its head: often while that is cheap, and at least every
//! [`MAX_STALE`]. They search for new lanes at least as often, in the gaps of the index between the known lanes.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use orchestrix_core::{JobType, Queue, Timestamp};
use orchestrix_store::{ClaimRequest, Queues};
use uuid::Uuid;

/// The longest time between two scans of a lane from its head, and between two searches for new lanes.
pub(crate) const MAX_STALE: Duration = Duration::from_millis(700);
/// Head scans may take one part in this many of the time, and so may searches for new lanes. [`MAX_STALE`] overrides
/// this: slower ones take a larger part.
const HEAD_SHARE: u32 = 20;
/// The most lanes tracked. Idle lanes make room for new ones.
pub(crate) const MAX_LANES: usize = 10_000;
/// How long a lane without jobs stays tracked.
const IDLE: Duration = Duration::from_secs(10);

/// A position in the order in which a lane is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LanePosition {
    pub(crate) rank: i16,
    pub(crate) eligible_at: Timestamp,
    pub(crate) id: Uuid,
}

impl LanePosition {
    /// Before every job.
    pub(crate) const HEAD: Self = Self { rank: i16::MIN, eligible_at: Timestamp::UNIX_EPOCH, id: Uuid::nil() };

    /// Before every job of this rank that became eligible at this time.
    pub(crate) const fn before(rank: i16, eligible_at: Timestamp) -> Self {
        Self { rank, eligible_at, id: Uuid::nil() }
    }
}

/// A job that a committed transaction made claimable: the next claim must not start beyond it.
#[derive(Debug)]
pub(crate) struct LaneHint {
    queue: Queue,
    job_type: JobType,
    rank: i16,
    /// `None` for a new job: it is eligible from the commit on, so it follows every claimed job of its rank.
    position: Option<LanePosition>,
}

impl LaneHint {
    /// A new job of this rank.
    pub(crate) fn enqueued(queue: &Queue, job_type: &JobType, rank: i16) -> Self {
        Self { queue: queue.clone(), job_type: job_type.clone(), rank, position: None }
    }

    /// A job that is claimable at `position`.
    pub(crate) fn claimable(queue: Queue, job_type: JobType, position: LanePosition) -> Self {
        Self { queue, job_type, rank: position.rank, position: Some(position) }
    }

    /// Whether a cursor that is moved back for this hint needs no move for `other`.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let at_or_before = match (self.position, other.position) {
            (None, None) => self.rank <= other.rank,
            (Some(own), Some(other)) => own <= other,
            _ => false,
        };
        at_or_before && self.queue == other.queue && self.job_type == other.job_type
    }
}

#[derive(Debug, Clone, Copy)]
struct LaneCursor {
    position: LanePosition,
    /// When the lane was last scanned from its head, and how long that took.
    head_scan: Option<(Instant, Duration)>,
    /// When the lane was found, or last held a job.
    used_at: Instant,
}

impl LaneCursor {
    fn at_head(now: Instant) -> Self {
        Self { position: LanePosition::HEAD, head_scan: None, used_at: now }
    }

    fn move_back_to(&mut self, hint: &LaneHint) {
        match hint.position {
            Some(position) => self.position = self.position.min(position),
            None if hint.rank < self.position.rank => {
                self.position = LanePosition::before(hint.rank, Timestamp::UNIX_EPOCH);
            }
            None => {}
        }
    }
}

/// A lane that a claim scans, and where the scan starts.
#[derive(Debug, Clone)]
pub(crate) struct ClaimStart {
    pub(crate) queue: Queue,
    pub(crate) job_type: JobType,
    pub(crate) position: LanePosition,
}

impl ClaimStart {
    fn is_head(&self) -> bool {
        self.position == LanePosition::HEAD
    }
}

/// The lanes of one database, shared by all claims of this process.
#[derive(Debug, Default)]
pub(crate) struct LaneTracker(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    cursors: BTreeMap<(Queue, JobType), LaneCursor>,
    /// When new lanes were last searched for, and how long that took.
    search: Option<(Instant, Duration)>,
    /// Whether a notification said that there may be a new lane.
    new_lane_expected: bool,
    /// The positions of jobs in callers' transactions that may not have committed yet.
    uncommitted: BTreeMap<(Queue, JobType), LanePosition>,
}

impl LaneTracker {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic cannot leave these maps inconsistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the known lanes, in order, if a search for new ones is due. The caller that gets them must search.
    pub(crate) fn begin_search(&self, now: Instant) -> Option<Vec<(Queue, JobType)>> {
        let mut inner = self.lock();
        let due = inner.search.is_none_or(|(at, took)| {
            let since = now.duration_since(at);
            since >= MAX_STALE || inner.new_lane_expected && since >= took * HEAD_SHARE
        });
        if !due {
            return None;
        }
        let took = inner.search.map_or(Duration::ZERO, |(_, took)| took);
        inner.search = Some((now, took));
        inner.new_lane_expected = false;
        inner.cursors.retain(|_, cursor| now.duration_since(cursor.used_at) < IDLE);
        Some(inner.cursors.keys().cloned().collect())
    }

    /// Adds the new lanes of a search that took this long. After a failed search, `None`, the next claim searches
    /// again.
    pub(crate) fn end_search(&self, lanes: Option<Vec<(Queue, JobType)>>, took: Duration) {
        let mut inner = self.lock();
        let Some(lanes) = lanes else {
            inner.search = None;
            return;
        };
        let now = Instant::now();
        for lane in lanes {
            if inner.cursors.len() < MAX_LANES {
                inner.cursors.entry(lane).or_insert_with(|| LaneCursor::at_head(now));
            }
        }
        inner.search = inner.search.map(|(at, _)| (at, took));
    }

    /// Makes the next search for new lanes due sooner.
    pub(crate) fn expect_new_lane(&self) {
        self.lock().new_lane_expected = true;
    }

    /// Notes a job that a caller's transaction makes claimable at `position` if it commits.
    pub(crate) fn add_uncommitted(&self, queue: &Queue, job_type: &JobType, position: LanePosition) {
        let mut inner = self.lock();
        let full = inner.uncommitted.len() >= MAX_LANES;
        let lane = (queue.clone(), job_type.clone());
        if let Some(known) = inner.uncommitted.get_mut(&lane) {
            *known = position.min(*known);
        } else if !full {
            inner.uncommitted.insert(lane, position);
        }
    }

    /// Notes that the callers' transactions with jobs of `queue` have committed.
    pub(crate) fn confirm_uncommitted(&self, queue: &Queue) {
        let mut hints = Vec::new();
        let mut inner = self.lock();
        inner.new_lane_expected = true;
        inner.uncommitted.retain(|lane, position| {
            let other = lane.0 != *queue;
            if !other {
                hints.push(LaneHint::claimable(lane.0.clone(), lane.1.clone(), *position));
            }
            other
        });
        drop(inner);
        self.apply(hints);
    }

    /// Moves cursors back to jobs that this process made claimable.
    pub(crate) fn apply(&self, hints: Vec<LaneHint>) {
        if hints.is_empty() {
            return;
        }
        let now = Instant::now();
        let mut inner = self.lock();
        for hint in hints {
            let full = inner.cursors.len() >= MAX_LANES;
            let lane = (hint.queue.clone(), hint.job_type.clone());
            if let Some(cursor) = inner.cursors.get_mut(&lane) {
                cursor.used_at = now;
                cursor.move_back_to(&hint);
            } else if !full {
                inner.cursors.insert(lane, LaneCursor::at_head(now));
            }
        }
    }

    /// The lanes that `request` may claim from, and where to start in each.
    pub(crate) fn claim_starts(&self, request: &ClaimRequest, now: Instant) -> Vec<ClaimStart> {
        let queues: Option<HashSet<&Queue>> = match &request.queues {
            Queues::All => None,
            Queues::Named(names) => Some(names.iter().collect()),
        };
        let types: Option<HashSet<&JobType>> = request.job_types.as_ref().map(|types| types.iter().collect());
        let mut inner = self.lock();
        let mut starts = Vec::new();
        for ((queue, job_type), cursor) in &mut inner.cursors {
            let requested = queues.as_ref().is_none_or(|names| names.contains(queue))
                && types.as_ref().is_none_or(|types| types.contains(job_type));
            if !requested {
                continue;
            }
            let from_head =
                cursor.head_scan.is_none_or(|(at, took)| now.duration_since(at) >= (took * HEAD_SHARE).min(MAX_STALE));
            if from_head {
                // Marked before the scan, so that concurrent claims start at the cursor meanwhile. The duration of a
                // first scan is unknown: until it returns, the next one is due after `MAX_STALE`.
                let took = cursor.head_scan.map_or(MAX_STALE / HEAD_SHARE, |(_, took)| took);
                cursor.head_scan = Some((now, took));
            }
            let position = if from_head { LanePosition::HEAD } else { cursor.position };
            starts.push(ClaimStart { queue: queue.clone(), job_type: job_type.clone(), position });
        }
        starts
    }

    /// Moves the cursor of a lane to the last job that a claim took there, if any. A scan from the head may move it
    /// back, a scan from the cursor only forward. `took` is the duration of the claim statement.
    pub(crate) fn claimed_up_to(&self, start: &ClaimStart, last: Option<LanePosition>, took: Duration) {
        let mut inner = self.lock();
        let Some(cursor) = inner.cursors.get_mut(&(start.queue.clone(), start.job_type.clone())) else { return };
        if last.is_some() {
            cursor.used_at = Instant::now();
        }
        if start.is_head() {
            cursor.head_scan = cursor.head_scan.map(|(at, _)| (at, took));
            cursor.position = last.unwrap_or(cursor.position);
        } else if let Some(last) = last {
            cursor.position = cursor.position.max(last);
        }
    }
}
