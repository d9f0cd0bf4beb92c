//! Which tenants have claimable jobs, as far as this process knows.
//!
//! A claim visits the tenants of a scan (any queue and type, one type, one queue, or one queue and type) in the order of
//! turns. Finding them costs a statement of its own (`find_turns_*.sql`), and PostgreSQL keeps the index entries of
//! deleted batches until no old transaction can see them, so a search from the head may walk many dead entries.
//! Therefore a process remembers the tenants of each scan, and where each tenant's jobs begin.
//!
//! What it remembers is only a hint: another process, a transaction that commits late, a job of higher priority or a
//! reprioritized job may add a tenant or an earlier job. So a claim searches again if it does not find as many jobs as it
//! wants, and otherwise often while that is cheap, and at least every [`MAX_STALE`].

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use orchestrix_core::{JobType, Queue, Tenant, Timestamp, Turn, Turns, turn::ring_position};
use uuid::Uuid;

/// The longest time between two searches for the tenants of a scan.
pub(crate) const MAX_STALE: Duration = Duration::from_millis(700);
/// Claims that search may take one part in this many of the time. [`MAX_STALE`] overrides this: slower ones take a larger
/// part.
const SEARCH_SHARE: u32 = 20;
/// The most scans, and the most lanes with jobs of open transactions. Other scans are searched at each claim.
const MAX_SCANS: usize = 10_000;
/// How long a scan that no claim uses is kept.
const IDLE: Duration = Duration::from_secs(60);
/// The jobs per ready batch that the first claim expects.
const FIRST_FILL: f64 = 8.0;
/// The jobs that a tenant has in its turn, as the first claim expects.
const FIRST_JOBS_PER_TURN: f64 = 8.0;

/// The jobs of one priority (as its rank) and one tenant (as its ring position).
pub(crate) type TurnKey = (i16, i64);

/// A position in the jobs of one priority and tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) eligible_at: Timestamp,
    pub(crate) id: Uuid,
}

impl Position {
    /// Before every job.
    pub(crate) const HEAD: Self = Self { eligible_at: Timestamp::UNIX_EPOCH, id: Uuid::nil() };

    /// Before every job that became eligible at this time.
    pub(crate) const fn before(eligible_at: Timestamp) -> Self {
        Self { eligible_at, id: Uuid::nil() }
    }
}

/// What a scan selects: one queue or any, one job type or any.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Scan {
    pub(crate) queue: Option<Queue>,
    pub(crate) job_type: Option<JobType>,
    /// A hash of the names by which the claim skips other batches; 0 if it takes all. Such a claim moves past batches that
    /// other claims take.
    pub(crate) filter: u64,
}

/// A job that a committed transaction made claimable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClaimHint {
    queue: Queue,
    job_type: JobType,
    /// The rank and tenant of a new job, which follows all jobs of its tenant and rank. `None` for a job that is claimable
    /// again, perhaps before others.
    new: Option<(i16, Tenant)>,
}

impl ClaimHint {
    /// A new job of this rank.
    pub(crate) fn enqueued(queue: &Queue, job_type: &JobType, rank: i16, tenant: &Tenant) -> Self {
        Self { queue: queue.clone(), job_type: job_type.clone(), new: Some((rank, tenant.clone())) }
    }

    /// A job that is claimable again.
    pub(crate) const fn claimable(queue: Queue, job_type: JobType) -> Self {
        Self { queue, job_type, new: None }
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

/// What is known of one scan.
#[derive(Debug)]
struct Known {
    /// Where the jobs of each priority and tenant begin. All of them, as of the last search.
    starts: BTreeMap<TurnKey, Position>,
    /// When the last search began, and how long the claim took that began with it. `None` if a search is due.
    searched: Option<(Instant, Duration)>,
    /// When a search found too many tenants to remember them.
    many_at: Option<Instant>,
    used_at: Instant,
}

/// The known tenants of one database, shared by all claims of this process.
#[derive(Debug, Default)]
pub(crate) struct KnownTurns(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    scans: HashMap<Scan, Known>,
    turns: Turns,
    /// Lanes with jobs in callers' transactions that may not have committed yet.
    uncommitted: BTreeSet<(Queue, JobType)>,
    /// How many jobs a ready batch listed, on average over the last claims.
    fill: f64,
    /// How many jobs a tenant had in its turn, on average over the last claims of several tenants.
    jobs_per_turn: f64,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            scans: HashMap::new(),
            turns: Turns::default(),
            uncommitted: BTreeSet::new(),
            fill: FIRST_FILL,
            jobs_per_turn: FIRST_JOBS_PER_TURN,
        }
    }
}

impl KnownTurns {
    /// Nothing is known, and turns begin at this ring position.
    pub(crate) fn starting_at(position: i64) -> Self {
        Self(Mutex::new(Inner { turns: Turns::starting_at(position), ..Inner::default() }))
    }

    /// Whose turn it is in a priority, for claims of a scope.
    pub(crate) fn turn(&self, scope: u64, rank: i16) -> Turn {
        self.lock().turns.get(scope, rank)
    }

    /// Makes it the turn `new` in a priority if it is the turn `old`. Returns whether it was.
    pub(crate) fn replace_turn(&self, scope: u64, rank: i16, old: Turn, new: Turn) -> bool {
        let mut inner = self.lock();
        let is_old = inner.turns.get(scope, rank) == old;
        if is_old {
            inner.turns.set(scope, rank, new);
        }
        is_old
    }

    /// Notes the jobs of a claim, in order: the rank and the ring position of each, and the allowance of its tenant.
    pub(crate) fn note_claimed(&self, scope: u64, jobs: impl Iterator<Item = (i16, i64, usize)>) {
        self.lock().turns.note_claimed(scope, jobs);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic cannot leave these maps inconsistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the jobs of each priority and tenant begin, or `None` if a search is due.
    pub(crate) fn starts(&self, scan: &Scan, now: Instant) -> Option<BTreeMap<TurnKey, Position>> {
        let mut inner = self.lock();
        let known = inner.scans.get_mut(scan)?;
        known.used_at = now;
        let (at, took) = known.searched?;
        if now.duration_since(at) < (took * SEARCH_SHARE).min(MAX_STALE) {
            return Some(known.starts.clone());
        }
        // Marked before the search, so that concurrent claims use what is known meanwhile.
        known.searched = Some((now, took));
        None
    }

    /// Remembers the result of a search that found all tenants of a scan.
    pub(crate) fn found(&self, scan: &Scan, starts: BTreeMap<TurnKey, Position>, begun: Instant) {
        let searched = Some((begun, begun.elapsed()));
        self.remember(scan, Known { starts, searched, many_at: None, used_at: begun }, begun);
    }

    /// Notes that a scan has too many tenants to remember them.
    pub(crate) fn found_many(&self, scan: &Scan, begun: Instant) {
        let many_at = self.lock().scans.get(scan).and_then(|known| known.many_at);
        // A search that looked for all tenants is the one that counts.
        let many_at = many_at.filter(|at| begun.duration_since(*at) < MAX_STALE).or(Some(begun));
        self.remember(scan, Known { starts: BTreeMap::new(), searched: None, many_at, used_at: begun }, begun);
    }

    /// Whether a scan had too many tenants to remember them a moment ago.
    pub(crate) fn has_many(&self, scan: &Scan, now: Instant) -> bool {
        let at = self.lock().scans.get(scan).and_then(|known| known.many_at);
        at.is_some_and(|at| now.duration_since(at) < MAX_STALE)
    }

    fn remember(&self, scan: &Scan, known: Known, now: Instant) {
        let mut inner = self.lock();
        if inner.scans.len() >= MAX_SCANS {
            inner.scans.retain(|_, known| now.duration_since(known.used_at) < IDLE);
        }
        if inner.scans.len() < MAX_SCANS || inner.scans.contains_key(scan) {
            inner.scans.insert(scan.clone(), known);
        }
    }

    /// Notes how long the claim took whose search began at `begun`. It may have read many jobs that cannot be claimed, which
    /// claims from the known starts do not read again.
    pub(crate) fn claimed_from_search(&self, scan: &Scan, begun: Instant) {
        if let Some(known) = self.lock().scans.get_mut(scan)
            && let Some((at, took)) = &mut known.searched
            && *at == begun
        {
            *took = begun.elapsed();
        }
    }

    /// Moves the start of a tenant's jobs from `from`, where a claim began, to `to`, where it ended, or removes a tenant
    /// without more jobs.
    ///
    /// Concurrent claims begin at the same position and take different batches. Each may leave jobs at its end, so the
    /// start moves to the first of their ends.
    pub(crate) fn claimed(&self, scan: &Scan, key: TurnKey, from: Position, to: Option<Position>) {
        let mut inner = self.lock();
        let Some(known) = inner.scans.get_mut(scan) else { return };
        let Some(start) = known.starts.get_mut(&key) else { return };
        match to {
            Some(to) => *start = if *start == from { to } else { to.min(*start) },
            None if *start == from => {
                known.starts.remove(&key);
            }
            None => {}
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

    /// How many jobs a tenant has in its turn, on average. An estimate: it decides how many tenants a claim visits.
    pub(crate) fn jobs_per_turn(&self) -> f64 {
        self.lock().jobs_per_turn
    }

    /// Notes that `turns` tenants had `jobs` in their turns.
    pub(crate) fn note_jobs_per_turn(&self, jobs: usize, turns: usize) {
        let mut inner = self.lock();
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let jobs_per_turn = jobs as f64 / turns as f64;
        inner.jobs_per_turn += (jobs_per_turn - inner.jobs_per_turn) * 0.3;
    }

    /// Notes a job that a caller's transaction makes claimable if it commits.
    pub(crate) fn add_uncommitted(&self, queue: &Queue, job_type: &JobType) {
        let mut inner = self.lock();
        if inner.uncommitted.len() < MAX_SCANS {
            inner.uncommitted.insert((queue.clone(), job_type.clone()));
        }
    }

    /// Notes that the callers' transactions with jobs of `queue` have committed.
    pub(crate) fn confirm_uncommitted(&self, queue: &Queue) {
        let mut hints = Vec::new();
        self.lock().uncommitted.retain(|(other, job_type)| {
            let is_confirmed = other == queue;
            if is_confirmed {
                hints.push(ClaimHint::claimable(other.clone(), job_type.clone()));
            }
            !is_confirmed
        });
        self.apply(&hints);
    }

    /// Makes a search due for all scans, for jobs that are claimable again anywhere.
    pub(crate) fn reset(&self) {
        self.lock().scans.clear();
    }

    /// Adds the tenants of jobs that this process made claimable, or makes a search due.
    pub(crate) fn apply(&self, hints: &[ClaimHint]) {
        let mut inner = self.lock();
        if inner.scans.is_empty() {
            return;
        }
        for hint in hints {
            let key = hint.new.as_ref().map(|(rank, tenant)| (*rank, ring_position(tenant)));
            for scan in hint.scans() {
                let Some(known) = inner.scans.get_mut(&scan).filter(|known| known.many_at.is_none()) else { continue };
                match key {
                    // A new job is eligible from the commit on, so it follows every claimed job of its tenant.
                    Some(key) => {
                        known.starts.entry(key).or_insert(Position::HEAD);
                    }
                    None => known.searched = None,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Position {
        Position::before(Timestamp::from_second(second).unwrap())
    }

    fn scan(queue: Option<&str>, job_type: Option<&str>) -> Scan {
        Scan { queue: queue.map(Queue::trusted), job_type: job_type.map(JobType::trusted), filter: 0 }
    }

    fn default_tenant() -> TurnKey {
        (0, ring_position(&Tenant::default()))
    }

    fn known(turns: &KnownTurns, scan: &Scan, position: Position, now: Instant, took: Duration) {
        turns.found(scan, BTreeMap::from([(default_tenant(), position)]), now);
        turns.lock().scans.get_mut(scan).unwrap().searched = Some((now, took));
    }

    fn start(turns: &KnownTurns, scan: &Scan, now: Instant) -> Option<Position> {
        turns.starts(scan, now).and_then(|starts| starts.get(&default_tenant()).copied())
    }

    const SLOW: Duration = Duration::from_secs(5);

    #[test]
    fn what_is_known_serves_until_a_search_is_due() {
        let (turns, any, now) = (KnownTurns::default(), scan(None, None), Instant::now());
        assert_eq!(start(&turns, &any, now), None);
        known(&turns, &any, at(10), now, Duration::from_millis(2));
        assert_eq!(start(&turns, &any, now + Duration::from_millis(39)), Some(at(10)));
        assert_eq!(start(&turns, &any, now + Duration::from_millis(40)), None);
        assert_eq!(start(&turns, &any, now + Duration::from_millis(41)), Some(at(10)), "another claim searches");
    }

    #[test]
    fn a_slow_search_is_repeated_after_the_longest_time() {
        let (turns, any, now) = (KnownTurns::default(), scan(None, None), Instant::now());
        known(&turns, &any, at(10), now, SLOW);
        assert_eq!(start(&turns, &any, now + MAX_STALE - Duration::from_millis(1)), Some(at(10)));
        assert_eq!(start(&turns, &any, now + MAX_STALE), None);
    }

    #[test]
    fn a_new_job_adds_its_tenant_to_its_four_scans() {
        let (turns, now) = (KnownTurns::default(), Instant::now());
        let finds = [scan(None, None), scan(None, Some("t")), scan(Some("q"), None), scan(Some("q"), Some("t"))];
        let others = [scan(None, Some("u")), scan(Some("r"), None), scan(Some("q"), Some("u"))];
        for scan in finds.iter().chain(&others) {
            known(&turns, scan, at(10), now, SLOW);
        }
        let (queue, job_type, tenant) = (Queue::trusted("q"), JobType::trusted("t"), Tenant::trusted("new"));
        turns.apply(&[ClaimHint::enqueued(&queue, &job_type, -3, &tenant)]);
        turns.apply(&[ClaimHint::enqueued(&queue, &job_type, 0, &Tenant::default())]);
        let key = (-3, ring_position(&tenant));
        for scan in &finds {
            let starts = turns.starts(scan, now).unwrap();
            assert_eq!((starts.get(&key), starts.get(&default_tenant())), (Some(&Position::HEAD), Some(&at(10))));
        }
        assert!(others.iter().all(|scan| turns.starts(scan, now).unwrap().len() == 1));
    }

    #[test]
    fn a_job_that_is_claimable_again_makes_a_search_due() {
        let (turns, now) = (KnownTurns::default(), Instant::now());
        let (any, other) = (scan(None, None), scan(Some("r"), None));
        known(&turns, &any, at(10), now, SLOW);
        known(&turns, &other, at(10), now, SLOW);
        turns.apply(&[ClaimHint::claimable(Queue::trusted("q"), JobType::trusted("t"))]);
        assert_eq!((start(&turns, &any, now), start(&turns, &other, now)), (None, Some(at(10))));
    }

    #[test]
    fn the_start_moves_to_the_first_end_of_concurrent_claims() {
        let (turns, any, now) = (KnownTurns::default(), scan(None, None), Instant::now());
        known(&turns, &any, at(10), now, SLOW);
        let end = |from, to| turns.claimed(&any, default_tenant(), from, to);
        end(at(10), Some(at(30)));
        assert_eq!(start(&turns, &any, now), Some(at(30)));
        end(at(10), Some(at(20)));
        assert_eq!(start(&turns, &any, now), Some(at(20)));
        end(at(10), Some(at(40)));
        assert_eq!(start(&turns, &any, now), Some(at(20)));
        end(at(10), None);
        assert_eq!(start(&turns, &any, now), Some(at(20)), "another claim has moved the start since");
        end(at(20), None);
        assert_eq!(turns.starts(&any, now), Some(BTreeMap::new()));
    }

    #[test]
    fn an_uncommitted_job_makes_a_search_due_once_its_commit_is_confirmed() {
        let (turns, any, now) = (KnownTurns::default(), scan(None, None), Instant::now());
        known(&turns, &any, at(10), now, SLOW);
        turns.add_uncommitted(&Queue::trusted("q"), &JobType::trusted("t"));
        turns.confirm_uncommitted(&Queue::trusted("r"));
        assert_eq!(start(&turns, &any, now), Some(at(10)));
        turns.confirm_uncommitted(&Queue::trusted("q"));
        assert_eq!(start(&turns, &any, now), None);
    }

    #[test]
    fn scans_are_bounded_and_idle_ones_make_room() {
        let (turns, now) = (KnownTurns::default(), Instant::now());
        for n in 0..=MAX_SCANS {
            known_or_full(&turns, &scan(Some(&format!("q{n}")), None), now);
        }
        assert_eq!(turns.lock().scans.len(), MAX_SCANS);
        known_or_full(&turns, &scan(None, None), now + IDLE);
        assert_eq!(turns.lock().scans.len(), 1);
    }

    fn known_or_full(turns: &KnownTurns, scan: &Scan, now: Instant) {
        turns.found(scan, BTreeMap::new(), now);
    }
}
