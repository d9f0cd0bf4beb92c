//! Where the scans of a claim start.
//!
//! A claim scans the ready batches of any queue and type, of one type, of one queue, or of one queue and type, in the
//! order of rank (the negated priority), time of eligibility and id. PostgreSQL keeps the index entries of deleted
//! batches until no old transaction can see them, so a scan from the head may walk many dead entries. A cursor is where
//! the last claim of the same scan ended; the next one starts there.
//!
//! A cursor is only a hint: a transaction that commits late, a job of higher priority or a reprioritized job lands
//! before it. So claims also scan from the head: often while that is cheap, and at least every [`MAX_STALE`].

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use orchestrix_core::{JobType, Queue, Timestamp};
use uuid::Uuid;

/// The longest time between two scans from the head.
pub(crate) const MAX_STALE: Duration = Duration::from_millis(700);
/// Scans from the head may take one part in this many of the time. [`MAX_STALE`] overrides this: slower ones take a
/// larger part.
const HEAD_SHARE: u32 = 20;
/// The most cursors, and the most lanes with jobs of open transactions. A scan without a cursor starts at the head.
const MAX_CURSORS: usize = 10_000;
/// How long a cursor that no claim uses is kept.
const IDLE: Duration = Duration::from_secs(60);
/// The jobs per ready batch that the first claim expects.
const FIRST_FILL: f64 = 8.0;

/// A position in the order of claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClaimKey {
    pub(crate) rank: i16,
    pub(crate) eligible_at: Timestamp,
    pub(crate) id: Uuid,
}

impl ClaimKey {
    /// Before every job.
    pub(crate) const HEAD: Self = Self { rank: i16::MIN, eligible_at: Timestamp::UNIX_EPOCH, id: Uuid::nil() };

    /// Before every job of this rank that became eligible at this time.
    pub(crate) const fn before(rank: i16, eligible_at: Timestamp) -> Self {
        Self { rank, eligible_at, id: Uuid::nil() }
    }
}

/// What a scan selects: one queue or any, one job type or any.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Scan {
    pub(crate) queue: Option<Queue>,
    pub(crate) job_type: Option<JobType>,
    /// A hash of the names by which the claim skips other batches; 0 if it takes all. A cursor of such a claim moves past
    /// batches that other claims take.
    pub(crate) filter: u64,
}

/// A job that a committed transaction made claimable: the next claim must not start beyond it.
#[derive(Debug)]
pub(crate) struct ClaimHint {
    queue: Queue,
    job_type: JobType,
    rank: i16,
    /// `None` for a new job: it is eligible from the commit on, so it follows every claimed job of its rank.
    position: Option<ClaimKey>,
}

impl ClaimHint {
    /// A new job of this rank.
    pub(crate) fn enqueued(queue: &Queue, job_type: &JobType, rank: i16) -> Self {
        Self { queue: queue.clone(), job_type: job_type.clone(), rank, position: None }
    }

    /// A job that is claimable at `position`.
    pub(crate) fn claimable(queue: Queue, job_type: JobType, position: ClaimKey) -> Self {
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

    /// The scans that find the job.
    fn scans(&self) -> [Scan; 4] {
        let (queue, job_type) = (Some(&self.queue), Some(&self.job_type));
        [(None, None), (None, job_type), (queue, None), (queue, job_type)].map(|(queue, job_type)| Scan {
            queue: queue.cloned(),
            job_type: job_type.cloned(),
            filter: 0,
        })
    }
}

#[derive(Debug, Clone, Copy)]
struct Cursor {
    position: ClaimKey,
    /// When the last scan from the head began, and how long it took.
    head_scan: (Instant, Duration),
    used_at: Instant,
}

impl Cursor {
    fn move_back_to(&mut self, hint: &ClaimHint) {
        match hint.position {
            Some(position) => self.position = self.position.min(position),
            None if hint.rank < self.position.rank => {
                self.position = ClaimKey::before(hint.rank, Timestamp::UNIX_EPOCH);
            }
            None => {}
        }
    }
}

/// The cursors of one database, shared by all claims of this process.
#[derive(Debug, Default)]
pub(crate) struct ClaimCursors(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    cursors: HashMap<Scan, Cursor>,
    /// The positions of jobs in callers' transactions that may not have committed yet.
    uncommitted: BTreeMap<(Queue, JobType), ClaimKey>,
    /// How many jobs a ready batch listed, on average over the last claims.
    fill: f64,
}

impl Default for Inner {
    fn default() -> Self {
        Self { cursors: HashMap::new(), uncommitted: BTreeMap::new(), fill: FIRST_FILL }
    }
}

impl ClaimCursors {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic cannot leave these maps inconsistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where each scan starts: at its cursor, or at the head if that is due.
    pub(crate) fn starts(&self, scans: &[Scan], now: Instant) -> Vec<ClaimKey> {
        let mut inner = self.lock();
        if inner.cursors.len() + scans.len() > MAX_CURSORS {
            inner.cursors.retain(|_, cursor| now.duration_since(cursor.used_at) < IDLE);
        }
        let start = |scan: &Scan| {
            if let Some(cursor) = inner.cursors.get_mut(scan) {
                cursor.used_at = now;
                let (at, took) = cursor.head_scan;
                if now.duration_since(at) < (took * HEAD_SHARE).min(MAX_STALE) {
                    return cursor.position;
                }
                // Marked before the scan, so that concurrent claims start at the cursor meanwhile.
                cursor.head_scan = (now, took);
            } else if inner.cursors.len() < MAX_CURSORS {
                // The duration of a first scan is unknown: until it returns, the next one is due after `MAX_STALE`.
                let cursor =
                    Cursor { position: ClaimKey::HEAD, head_scan: (now, MAX_STALE / HEAD_SHARE), used_at: now };
                inner.cursors.insert(scan.clone(), cursor);
            }
            ClaimKey::HEAD
        };
        scans.iter().map(start).collect()
    }

    /// Moves the cursor of a scan to where a claim ended, if the claim got that far. `took` is the duration of the
    /// claim.
    ///
    /// Concurrent claims start at the same position and take different batches. Each may leave jobs at its end, so the
    /// cursor moves to the first of their ends.
    pub(crate) fn claimed_up_to(&self, scan: &Scan, start: ClaimKey, end: Option<ClaimKey>, took: Duration) {
        let mut inner = self.lock();
        let Some(cursor) = inner.cursors.get_mut(scan) else { return };
        if start == ClaimKey::HEAD {
            cursor.head_scan.1 = took;
            cursor.position = end.unwrap_or(cursor.position);
        } else if let Some(end) = end {
            let moved = cursor.position != start;
            cursor.position = if moved { end.min(cursor.position) } else { end };
        }
    }

    /// How many jobs a ready batch lists, on average. An estimate: it decides how many batches a claim reads at once.
    pub(crate) fn fill(&self) -> f64 {
        self.lock().fill
    }

    /// Notes that a claim read `batches` that listed `jobs`.
    pub(crate) fn note_fill(&self, batches: i64, jobs: i64) {
        if batches > 0 {
            let mut inner = self.lock();
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            let fill = jobs as f64 / batches as f64;
            inner.fill += (fill - inner.fill) * 0.3;
        }
    }

    /// Notes a job that a caller's transaction makes claimable at `position` if it commits.
    pub(crate) fn add_uncommitted(&self, queue: &Queue, job_type: &JobType, position: ClaimKey) {
        let mut inner = self.lock();
        let full = inner.uncommitted.len() >= MAX_CURSORS;
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
        self.lock().uncommitted.retain(|lane, position| {
            let other = lane.0 != *queue;
            if !other {
                hints.push(ClaimHint::claimable(lane.0.clone(), lane.1.clone(), *position));
            }
            other
        });
        self.apply(&hints);
    }

    /// Moves all cursors to the head, for jobs that are claimable again at unknown positions.
    pub(crate) fn reset(&self) {
        self.lock().cursors.clear();
    }

    /// Moves cursors back to jobs that this process made claimable.
    pub(crate) fn apply(&self, hints: &[ClaimHint]) {
        let mut inner = self.lock();
        if inner.cursors.is_empty() {
            return;
        }
        for hint in hints {
            for scan in hint.scans() {
                if let Some(cursor) = inner.cursors.get_mut(&scan) {
                    cursor.move_back_to(hint);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(rank: i16, second: i64) -> ClaimKey {
        ClaimKey::before(rank, Timestamp::from_second(second).unwrap())
    }

    fn scan(queue: Option<&str>, job_type: Option<&str>) -> Scan {
        Scan { queue: queue.map(Queue::trusted), job_type: job_type.map(JobType::trusted), filter: 0 }
    }

    fn start(cursors: &ClaimCursors, scan: &Scan, now: Instant) -> ClaimKey {
        cursors.starts(std::slice::from_ref(scan), now)[0]
    }

    #[test]
    fn a_scan_starts_at_its_cursor_until_a_scan_from_the_head_is_due() {
        let (cursors, any, now) = (ClaimCursors::default(), scan(None, None), Instant::now());
        assert_eq!(start(&cursors, &any, now), ClaimKey::HEAD);
        cursors.claimed_up_to(&any, ClaimKey::HEAD, Some(at(0, 10)), Duration::from_millis(2));
        assert_eq!(start(&cursors, &any, now + Duration::from_millis(39)), at(0, 10));
        assert_eq!(start(&cursors, &any, now + Duration::from_millis(40)), ClaimKey::HEAD);
        assert_eq!(start(&cursors, &any, now + Duration::from_millis(41)), at(0, 10), "another claim scans the head");
    }

    #[test]
    fn a_slow_scan_from_the_head_is_repeated_after_the_longest_time() {
        let (cursors, any, now) = (ClaimCursors::default(), scan(None, None), Instant::now());
        start(&cursors, &any, now);
        cursors.claimed_up_to(&any, ClaimKey::HEAD, Some(at(0, 10)), Duration::from_secs(5));
        assert_eq!(start(&cursors, &any, now + MAX_STALE - Duration::from_millis(1)), at(0, 10));
        assert_eq!(start(&cursors, &any, now + MAX_STALE), ClaimKey::HEAD);
    }

    #[test]
    fn a_claimable_job_moves_the_cursors_of_its_four_scans_back() {
        let (cursors, now) = (ClaimCursors::default(), Instant::now());
        let finds = [scan(None, None), scan(None, Some("t")), scan(Some("q"), None), scan(Some("q"), Some("t"))];
        let others = [scan(None, Some("u")), scan(Some("r"), None), scan(Some("q"), Some("u"))];
        for scan in finds.iter().chain(&others) {
            start(&cursors, scan, now);
            cursors.claimed_up_to(scan, ClaimKey::HEAD, Some(at(0, 10)), Duration::from_secs(1));
        }
        cursors.apply(&[ClaimHint::claimable(Queue::trusted("q"), JobType::trusted("t"), at(0, 5))]);
        assert!(finds.iter().all(|scan| start(&cursors, scan, now) == at(0, 5)));
        assert!(others.iter().all(|scan| start(&cursors, scan, now) == at(0, 10)));
        // A new job follows all jobs of its rank, so only a better rank moves a cursor.
        cursors.apply(&[ClaimHint::enqueued(&Queue::trusted("q"), &JobType::trusted("t"), 0)]);
        assert_eq!(start(&cursors, &finds[0], now), at(0, 5));
        cursors.apply(&[ClaimHint::enqueued(&Queue::trusted("q"), &JobType::trusted("t"), -1)]);
        assert_eq!(start(&cursors, &finds[0], now), at(-1, 0));
    }

    #[test]
    fn the_cursor_moves_to_the_first_end_of_concurrent_claims() {
        let (cursors, any, now) = (ClaimCursors::default(), scan(None, None), Instant::now());
        start(&cursors, &any, now);
        let end = |start, end| cursors.claimed_up_to(&any, start, Some(end), Duration::from_secs(1));
        end(ClaimKey::HEAD, at(0, 10));
        end(at(0, 10), at(0, 30));
        assert_eq!(start(&cursors, &any, now), at(0, 30));
        end(at(0, 10), at(0, 20));
        assert_eq!(start(&cursors, &any, now), at(0, 20));
        end(at(0, 10), at(0, 40));
        assert_eq!(start(&cursors, &any, now), at(0, 20));
        end(at(0, 20), at(0, 50));
        assert_eq!(start(&cursors, &any, now), at(0, 50));
    }

    #[test]
    fn an_uncommitted_job_moves_cursors_once_its_commit_is_confirmed() {
        let (cursors, any, now) = (ClaimCursors::default(), scan(None, None), Instant::now());
        start(&cursors, &any, now);
        cursors.claimed_up_to(&any, ClaimKey::HEAD, Some(at(0, 10)), Duration::from_secs(1));
        cursors.add_uncommitted(&Queue::trusted("q"), &JobType::trusted("t"), at(0, 3));
        assert_eq!(start(&cursors, &any, now), at(0, 10));
        cursors.confirm_uncommitted(&Queue::trusted("r"));
        assert_eq!(start(&cursors, &any, now), at(0, 10));
        cursors.confirm_uncommitted(&Queue::trusted("q"));
        assert_eq!(start(&cursors, &any, now), at(0, 3));
    }

    #[test]
    fn cursors_are_bounded_and_idle_ones_make_room() {
        let (cursors, now) = (ClaimCursors::default(), Instant::now());
        let scans: Vec<Scan> = (0..=MAX_CURSORS).map(|n| scan(Some(&format!("q{n}")), None)).collect();
        assert_eq!(cursors.starts(&scans, now).len(), scans.len());
        assert_eq!(cursors.lock().cursors.len(), MAX_CURSORS);
        start(&cursors, &scan(None, None), now + IDLE);
        assert_eq!(cursors.lock().cursors.len(), 1);
    }
}
