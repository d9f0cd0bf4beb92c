//! Claiming jobs.
//!
//! A claim takes jobs of the highest priority first, and within a priority lets tenants take turns
//! ([`orchestrix_core::turn`]). Ready batches (`migrations/0014_turns.sql`) are indexed in this order: all of them, and
//! those of each type, queue, or both. A claim scans the names it asks for. It runs in rounds:
//!
//! 1. [`known_turns`](crate::known_turns) says which tenants have jobs, or `find_turns_*.sql` finds them.
//! 2. A statement reads some batches of each priority and tenant, leases the first jobs in the order of turns, as far as
//!    this order is known, and says where it ended.
//! 3. Two more statements read large payloads and the results of dependencies.
//!
//! A claim that finds too few jobs searches for tenants before it gives up, and takes jobs that other claims leave.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
    time::Instant,
};

use orchestrix_core::{JobId, JobType, Json, LeaseToken, Queue, Tenant, Timestamp, Turn, turn::quantum};
use orchestrix_store::{ClaimRequest, ClaimedJob, Outcome, OutcomeReport, Queues, Result};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use crate::{
    PostgresStore,
    finish::finish_attempts,
    known_turns::{Position, Scan, TurnKey},
    row::{count, duration, priority},
    statement::{
        CLAIM_JOBS_BY_LANE, CLAIM_JOBS_BY_QUEUE, CLAIM_JOBS_BY_TYPE, CLAIM_JOBS_OF_ANY, CLAIM_JOBS_SHARED,
        CLAIM_TURN_BY_LANE, CLAIM_TURN_BY_QUEUE, CLAIM_TURN_BY_TYPE, CLAIM_TURN_OF_ANY, DEPENDENCY_RESULTS,
        EXTERNAL_PAYLOADS, FIND_TURNS_BY_LANE, FIND_TURNS_BY_QUEUE, FIND_TURNS_BY_TYPE, FIND_TURNS_OF_ANY,
        PARK_BATCHES, Statement, column,
    },
};

/// The most scans for the combinations of named queues and types. A claim that names more scans by queue or by type
/// alone and skips the other batches.
const MAX_COMBINATIONS: usize = 2_000;
/// The most batches that one round reads, but for two of every visit.
const MAX_BATCHES: usize = 20_000;
/// The most priorities and tenants that one search of a scan finds, and all scans of a claim together (but for some of
/// every scan). They double with each round.
const MAX_FOUND: usize = 256;
const MAX_FOUND_BY_ALL: usize = 4_096;
const LEAST_FOUND: usize = 4;
/// The batches of each paused queue that one claim parks.
const PARK_BATCH: i64 = 1_000;
/// The most rounds of a claim. Rounds double what they read, so only a claim that meets a hundred thousand batches of
/// jobs that it cannot lease ends by this.
const MAX_ROUNDS: u32 = 20;

/// Leases up to `request.limit` jobs, in the order of turns over all queues and types requested.
pub(crate) async fn claim_jobs(store: &PostgresStore, request: &ClaimRequest) -> Result<Vec<ClaimedJob>> {
    request.validate()?;
    let plan = ScanPlan::of(request);
    if plan.scans.is_empty() {
        return Ok(Vec::new());
    }
    let mut claim = Claim::new(store, request, &plan);
    for round in 0..MAX_ROUNDS {
        match claim.round(round).await {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) if claim.claimed.is_empty() => return Err(error),
            // The jobs of earlier rounds are leased already, so they are returned.
            Err(error) => {
                tracing::warn!(%error, claimed = claim.claimed.len(), "claim ended early");
                break;
            }
        }
    }
    for (scan, begun) in &claim.searches {
        store.known_turns().claimed_from_search(&plan.scans[*scan], *begun);
    }
    Ok(claim.claimed)
}

/// A claim in progress.
struct Claim<'a> {
    store: &'a PostgresStore,
    request: &'a ClaimRequest,
    plan: &'a ScanPlan,
    scope: u64,
    /// The jobs leased so far, in order.
    claimed: Vec<ClaimedJob>,
    /// The tenants of each scan. `None` if a search is due.
    found: Vec<Option<Found>>,
    /// Whose turn it was in each priority when the round first asked. Concurrent claims move the turns on, and what an
    /// incomplete search found is in order only from the turn at which it began.
    turns: HashMap<i16, Turn>,
    /// Whether this claim itself searched for all tenants that it visits.
    searched: bool,
    /// The scans that this claim searched, and when.
    searches: Vec<(usize, Instant)>,
    /// Whether a round ended at its horizon. Such a round does not know whether it skipped locked batches.
    was_cut: bool,
    /// Whether to read batches that another claim has locked.
    shared: bool,
}

/// The priorities and tenants of one scan.
#[derive(Debug, Clone, Default)]
struct Found {
    /// Where the jobs of each begin.
    starts: BTreeMap<TurnKey, Position>,
    /// If the scan has more: the last place in the order of turns up to which all are found.
    known_up_to: Option<RingPlace>,
}

/// A place in the order of turns: the rank, whether it is in the second lap of the ring (before the position at which the
/// turns begin), and the ring position.
type RingPlace = (i16, bool, i64);

/// What one round reads of one priority and tenant in one scan.
struct Visit {
    scan: usize,
    key: TurnKey,
    start: Position,
    /// The number of its turn in the order of claims, which visits of other scans may share.
    turn: i32,
    /// The jobs that the tenant has had in its turn before.
    taken: i64,
}

/// The turns of a priority that a round visits while others follow.
struct Reservation {
    rank: i16,
    begin: Turn,
    end: Turn,
}

/// A leased job and its place among the others.
struct Leased {
    job: ClaimedJob,
    visit: usize,
    allowance: usize,
}

/// Where a round ended.
#[derive(Default)]
struct RoundEnd {
    /// There are more jobs, whose order is not known yet.
    more: bool,
    /// Batches were skipped because another claim has locked them.
    skipped: bool,
    /// Visits without more jobs.
    ended: Vec<usize>,
    /// Visits whose jobs are all leased so far, and where their next ones begin.
    passed: Vec<(usize, Position)>,
}

impl<'a> Claim<'a> {
    fn new(store: &'a PostgresStore, request: &'a ClaimRequest, plan: &'a ScanPlan) -> Self {
        let (known, now) = (store.known_turns(), Instant::now());
        let found = plan
            .scans
            .iter()
            .map(|scan| known.starts(scan, now).map(|starts| Found { starts, known_up_to: None }))
            .collect();
        Self {
            store,
            request,
            plan,
            scope: request.scope(),
            claimed: Vec::with_capacity(request.limit.min(1_000)),
            found,
            turns: HashMap::new(),
            searched: false,
            searches: Vec::new(),
            was_cut: false,
            shared: false,
        }
    }

    /// Runs one round. Returns whether another one may find more jobs.
    async fn round(&mut self, round: u32) -> Result<bool> {
        self.turns.clear();
        if self.found.iter().any(Option::is_none) {
            self.search(round).await?;
        }
        let (visits, last_known) = self.visits(self.max_turns(round));
        if visits.is_empty() {
            return Ok(self.search_again());
        }
        let left = self.request.limit - self.claimed.len();
        let depth = self.depth(left, &visits, round);
        let reservation = last_known.and_then(|_| self.reserve_turns(&visits));
        let result = self.lease(&visits, last_known, depth, left).await;
        let moved_on = reservation.filter(|reservation| !self.release_turns(reservation)).map(|moved_on| moved_on.rank);
        let (leased, end) = result?;
        let is_full = leased.len() == left;
        self.note_jobs_per_turn(&visits, &leased);
        self.note(&visits, leased, &end, moved_on);
        if is_full {
            return Ok(false);
        }
        if end.more {
            self.was_cut = true;
            // The next turns may belong to tenants that were not found.
            self.forget_partly_found();
            return Ok(true);
        }
        if (end.skipped || self.was_cut) && !self.shared {
            // Another claim may have locked some batches, and leave jobs of them.
            self.shared = true;
            self.found.fill(None);
            return Ok(true);
        }
        Ok(self.search_again())
    }

    /// Makes a search due unless this claim has searched everything already. Returns whether it has not.
    fn search_again(&mut self) -> bool {
        let again = !self.searched;
        self.searched = true;
        self.found.fill(None);
        again
    }

    fn forget_partly_found(&mut self) {
        for found in &mut self.found {
            if found.as_ref().is_some_and(|found| found.known_up_to.is_some()) {
                *found = None;
            }
        }
    }

    fn turn(&mut self, rank: i16) -> Turn {
        *self.turns.entry(rank).or_insert_with(|| self.store.known_turns().turn(self.scope, rank))
    }

    /// Lets concurrent claims begin after the tenants that this round visits.
    fn reserve_turns(&mut self, visits: &[Visit]) -> Option<Reservation> {
        let (rank, ring) = visits.last()?.key;
        let (begin, end) = (self.turn(rank), Turn { position: ring.wrapping_add(1), taken: 0 });
        self.store.known_turns().replace_turn(self.scope, rank, begin, end);
        Some(Reservation { rank, begin, end })
    }

    /// Returns false if another claim has moved the turn on since. It then stays there.
    fn release_turns(&self, reservation: &Reservation) -> bool {
        let Reservation { rank, begin, end } = *reservation;
        self.store.known_turns().replace_turn(self.scope, rank, end, begin)
    }

    /// How many tenants a round visits: enough for the jobs that are left, as far as the last claims tell.
    fn max_turns(&self, round: u32) -> usize {
        let left = self.request.limit - self.claimed.len();
        let turns = div_ceil(left, self.store.known_turns().jobs_per_turn()) + 1;
        turns.saturating_mul(1 << round).min(MAX_BATCHES)
    }

    /// How many jobs the turn of a tenant may have. Tenants with a weight have longer turns, which the last claims tell.
    fn jobs_in_turn(&self) -> usize {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate")]
        let usual = self.store.known_turns().jobs_per_turn() as usize;
        quantum(self.request.limit).max(usual)
    }

    /// Notes how many jobs the tenants of a round had in their turns. Tenants without any are left out: other claims may
    /// have locked their batches.
    fn note_jobs_per_turn(&self, visits: &[Visit], leased: &[Leased]) {
        let turns: BTreeSet<i32> = leased.iter().map(|leased| visits[leased.visit].turn).collect();
        // A lone tenant says nothing of turns.
        if turns.len() > 1 {
            self.store.known_turns().note_jobs_per_turn(leased.len(), turns.len());
        }
    }

    /// How many batches to read per visit. The last batch of a visit only marks how far its jobs are known, so at least
    /// two.
    fn depth(&self, wanted: usize, visits: &[Visit], round: u32) -> i64 {
        let known = self.store.known_turns();
        let batches = div_ceil(wanted, known.fill());
        let count = visits.len().max(1);
        let turns = visits.last().map_or(1, |visit| visit.turn + 1);
        let depth = match (count, turns) {
            (1, _) => batches + 2,
            // The jobs of one tenant may be spread unevenly over several scans.
            (_, 1) => 3 + 2 * batches / count,
            // Enough for a turn of each tenant, and for equal shares. The order of later turns is not known before the
            // turn of each tenant is.
            _ => 1 + batches.div_ceil(count).max(1 + div_ceil(self.jobs_in_turn(), known.fill()).min(batches)),
        };
        let depth = depth.saturating_mul(1 << round).min((MAX_BATCHES / count).max(2));
        i64::try_from(depth).unwrap_or(i64::MAX)
    }

    /// The visits of a round in the order of turns, of at most `max_turns` tenants. If there are more tenants, also the
    /// last turn before them.
    fn visits(&mut self, max_turns: usize) -> (Vec<Visit>, Option<i32>) {
        let ranks: BTreeSet<i16> =
            self.found.iter().flatten().flat_map(|found| found.starts.keys()).map(|key| key.0).collect();
        let turns: HashMap<i16, Turn> = ranks.into_iter().map(|rank| (rank, self.turn(rank))).collect();
        let found = || self.found.iter().flatten();
        let known_up_to = found().filter_map(|found| found.known_up_to).min();
        let mut places: Vec<(RingPlace, Position, usize)> = Vec::new();
        for (scan, found) in self.found.iter().enumerate() {
            for (&(rank, ring), &start) in found.iter().flat_map(|found| &found.starts) {
                let turn = turns.get(&rank).copied().unwrap_or_default();
                let place = (rank, ring < turn.position, ring);
                if known_up_to.is_none_or(|end| place <= end) {
                    places.push((place, start, scan));
                }
            }
        }
        places.sort_unstable();
        let mut number = -1;
        let mut before = None;
        let mut visits: Vec<Visit> = places
            .into_iter()
            .map(|(place @ (rank, _, ring), start, scan)| {
                number += i32::from(before != Some(place));
                before = Some(place);
                let turn = turns.get(&rank).copied().unwrap_or_default();
                let taken = if turn.position == ring { i64::try_from(turn.taken).unwrap_or(i64::MAX) } else { 0 };
                Visit { scan, key: (rank, ring), start, turn: number, taken }
            })
            .collect();
        let max_turns = i32::try_from(max_turns).unwrap_or(i32::MAX);
        let is_cut = number >= max_turns;
        if is_cut {
            visits.truncate(visits.partition_point(|visit| visit.turn < max_turns));
        }
        let last = visits.last().filter(|_| is_cut || known_up_to.is_some()).map(|visit| visit.turn);
        (visits, last)
    }

    /// Finds the tenants of all scans for which this is due.
    async fn search(&mut self, round: u32) -> Result<()> {
        let due: Vec<usize> = (0..self.found.len()).filter(|scan| self.found[*scan].is_none()).collect();
        self.searched |= due.len() == self.found.len();
        let limit = (MAX_FOUND_BY_ALL / due.len()).clamp(LEAST_FOUND, MAX_FOUND) << round;
        let limit = limit.min(MAX_BATCHES);
        let begun = Instant::now();
        let known = self.store.known_turns();
        let (head_limit, turn_limit) = match due.iter().all(|scan| known.has_many(&self.plan.scans[*scan], begun)) {
            true => (LEAST_FOUND << round, self.max_turns(round).clamp(LEAST_FOUND, limit)),
            false => (limit, limit),
        };
        let from_head: Vec<(usize, TurnKey)> = due.iter().map(|scan| (*scan, (i16::MIN, i64::MIN))).collect();
        let heads = self.find_turns(&from_head, head_limit).await?;
        // Where there are too many tenants, the search goes on from the tenant whose turn it is.
        let from_turn: Vec<(usize, TurnKey)> = due
            .iter()
            .zip(&heads)
            .filter(|(_, starts)| starts.len() >= head_limit)
            .filter_map(|(scan, starts)| {
                let ((rank, _), _) = starts.first_key_value()?;
                Some((*scan, (*rank, self.turn(*rank).position)))
            })
            .collect();
        let mut next = match from_turn.is_empty() {
            true => Vec::new(),
            false => self.find_turns(&from_turn, turn_limit).await?,
        }
        .into_iter();
        for (scan, starts) in due.into_iter().zip(heads) {
            self.found[scan] = Some(if starts.len() >= head_limit {
                known.found_many(&self.plan.scans[scan], begun);
                let from_turn = next.next().unwrap_or_default();
                let is_cut = from_turn.len() >= turn_limit;
                Found::partly(starts, from_turn, is_cut)
            } else {
                known.found(&self.plan.scans[scan], starts.clone(), begun);
                self.searches.push((scan, begun));
                Found { starts, known_up_to: None }
            });
        }
        Ok(())
    }

    /// The first `limit` priorities and tenants of each scan, from a key on.
    async fn find_turns(&self, from: &[(usize, TurnKey)], limit: usize) -> Result<Vec<BTreeMap<TurnKey, Position>>> {
        let scans = || from.iter().map(|(scan, _)| &self.plan.scans[*scan]);
        let queues: Vec<Option<&str>> = scans().map(|scan| scan.queue.as_ref().map(Queue::as_str)).collect();
        let types: Vec<Option<&str>> = scans().map(|scan| scan.job_type.as_ref().map(JobType::as_str)).collect();
        let ranks: Vec<i16> = from.iter().map(|(_, (rank, _))| *rank).collect();
        let rings: Vec<i64> = from.iter().map(|(_, (_, ring))| *ring).collect();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let statement = self.plan.search_statement();
        let rows = self.store.database().query(statement, &[&queues, &types, &ranks, &rings, &limit]).await?;
        let mut found = vec![BTreeMap::new(); from.len()];
        for row in &rows {
            let n = usize::try_from(row.get::<_, i64>(column!(FIND_TURNS_OF_ANY, n)) - 1).unwrap_or(0);
            let key = (row.get(column!(FIND_TURNS_OF_ANY, rank)), row.get(column!(FIND_TURNS_OF_ANY, ring)));
            let position = Position {
                eligible_at: row.get(column!(FIND_TURNS_OF_ANY, eligible_at)),
                id: row.get(column!(FIND_TURNS_OF_ANY, first_id)),
            };
            found[n].insert(key, position);
        }
        Ok(found)
    }

    /// Reads batches and leases jobs. Returns the jobs, in order, and where the round ended.
    async fn lease(
        &self,
        visits: &[Visit],
        last_known: Option<i32>,
        depth: i64,
        limit: usize,
    ) -> Result<(Vec<Leased>, RoundEnd)> {
        let scan = |visit: &Visit| &self.plan.scans[visit.scan];
        let queues: Vec<Option<&str>> =
            visits.iter().map(|visit| scan(visit).queue.as_ref().map(Queue::as_str)).collect();
        let types: Vec<Option<&str>> =
            visits.iter().map(|visit| scan(visit).job_type.as_ref().map(JobType::as_str)).collect();
        let ranks: Vec<i16> = visits.iter().map(|visit| visit.key.0).collect();
        let rings: Vec<i64> = visits.iter().map(|visit| visit.key.1).collect();
        let times: Vec<Timestamp> = visits.iter().map(|visit| visit.start.eligible_at).collect();
        let ids: Vec<Uuid> = visits.iter().map(|visit| visit.start.id).collect();
        let turns: Vec<i32> = visits.iter().map(|visit| visit.turn).collect();
        let taken: Vec<i64> = visits.iter().map(|visit| visit.taken).collect();
        let filter_queues: Option<Vec<&str>> =
            self.plan.queues.as_ref().map(|names| names.iter().map(Queue::as_str).collect());
        let filter_types: Option<Vec<&str>> =
            self.plan.job_types.as_ref().map(|names| names.iter().map(JobType::as_str).collect());
        let (limit, worker) = (i64::try_from(limit).unwrap_or(i64::MAX), self.request.worker.as_str());
        let quantum = i64::try_from(quantum(self.request.limit)).unwrap_or(i64::MAX);
        let secret = Uuid::from_u128(rand::random());
        let is_one_turn = last_known.is_none() && visits.iter().all(|visit| visit.turn == 0);
        let (statement, kind) = self.plan.statement(is_one_turn);
        let statement = if self.shared { &CLAIM_JOBS_SHARED } else { statement };
        let params: &[&(dyn ToSql + Sync)] = &[
            &queues,
            &types,
            &ranks,
            &rings,
            &times,
            &ids,
            &turns,
            &taken,
            &depth,
            &quantum,
            &limit,
            &worker,
            &secret,
            &filter_queues,
            &filter_types,
            &last_known,
            &kind,
        ];
        let mut rows = self.store.database().query(statement, params).await?;
        let last = rows.pop();
        let end = last.as_ref().map(|row| read_end(self.store, row)).unwrap_or_default();
        // The statement returns rows in no particular order.
        rows.sort_by_cached_key(|row| -> (i16, i64, i32, Timestamp, Uuid) {
            (
                row.get(column!(CLAIM_JOBS_OF_ANY, rank)),
                row.get(column!(CLAIM_JOBS_OF_ANY, round)),
                row.get(column!(CLAIM_JOBS_OF_ANY, turn)),
                row.get(column!(CLAIM_JOBS_OF_ANY, eligible_at)),
                id(row),
            )
        });
        // The jobs are leased from here on: an error must release all of them.
        match read_jobs(self.store, &rows, secret).await {
            Ok(leased) => {
                if let Some(row) = last {
                    park_batches(self.store, row.get(column!(CLAIM_JOBS_OF_ANY, paused))).await;
                }
                Ok((leased, end))
            }
            Err(error) => {
                let tokens = rows.iter().map(|row| token(row, secret));
                let reports: Vec<OutcomeReport> =
                    tokens.map(|token| OutcomeReport { token, outcome: Outcome::Release }).collect();
                tracing::warn!(%error, jobs = reports.len(), "released claimed jobs that could not be read");
                finish_attempts(self.store, &reports).await?;
                Err(error)
            }
        }
    }

    /// Notes whose turn it is now, but for the rank `moved_on`, and where the jobs of each visit begin.
    fn note(&mut self, visits: &[Visit], leased: Vec<Leased>, end: &RoundEnd, moved_on: Option<i16>) {
        let known = self.store.known_turns();
        let turns = leased.iter().map(|leased| {
            let (rank, ring) = visits[leased.visit].key;
            (rank, ring, leased.allowance)
        });
        known.note_claimed(self.scope, turns.filter(|(rank, ..)| Some(*rank) != moved_on));
        let mut ends: BTreeMap<usize, Option<Position>> = BTreeMap::new();
        for leased in &leased {
            // In order, so that the last job of a visit wins.
            ends.insert(leased.visit, Some(Position::before(leased.job.eligible_at)));
        }
        ends.extend(end.passed.iter().map(|(visit, position)| (*visit, Some(*position))));
        // Only a round that reads all batches knows whether it skipped locked ones, which may list more jobs. This claim
        // looks at those last.
        let is_certain = !end.more && !end.skipped;
        ends.extend(end.ended.iter().map(|visit| (*visit, None)));
        for (visit, to) in ends {
            let Visit { scan, key, start, .. } = visits[visit];
            if to.is_some() || is_certain {
                known.claimed(&self.plan.scans[scan], key, start, to);
            }
            let Some(found) = &mut self.found[scan] else { continue };
            match to {
                Some(to) => {
                    found.starts.insert(key, to);
                }
                None => {
                    found.starts.remove(&key);
                }
            }
        }
        self.claimed.extend(leased.into_iter().map(|leased| leased.job));
    }
}

impl Found {
    /// What two incomplete searches found: one from the head, and one from the turn of its first priority.
    fn partly(
        from_head: BTreeMap<TurnKey, Position>,
        from_turn: BTreeMap<TurnKey, Position>,
        from_turn_is_cut: bool,
    ) -> Self {
        let first_rank = from_head.first_key_value().map_or(i16::MIN, |((rank, _), _)| *rank);
        let last = |starts: &BTreeMap<TurnKey, Position>| starts.last_key_value().map(|(key, _)| *key);
        let known_up_to = match (last(&from_turn), last(&from_head)) {
            (Some((rank, ring)), _) if from_turn_is_cut && rank == first_rank => (rank, false, ring),
            (_, Some((rank, ring))) if rank == first_rank => (rank, true, ring),
            // All higher priorities are found.
            (_, Some((rank, _))) => (rank.saturating_sub(1), true, i64::MAX),
            (_, None) => (first_rank, true, i64::MAX),
        };
        let mut starts = from_head;
        starts.extend(from_turn);
        Self { starts, known_up_to: Some(known_up_to) }
    }
}

/// How a claim finds its jobs.
struct ScanPlan {
    scans: Vec<Scan>,
    /// Whether every scan selects a queue, and whether it selects a type.
    by_queue: bool,
    by_type: bool,
    /// Queues or types to skip other batches by, for a claim that names too many combinations.
    queues: Option<Vec<Queue>>,
    job_types: Option<Vec<JobType>>,
}

impl ScanPlan {
    fn of(request: &ClaimRequest) -> Self {
        // Each scan once, and always in the same order.
        let queues: Option<Vec<Queue>> = match &request.queues {
            Queues::All => None,
            Queues::Named(names) => Some(names.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect()),
        };
        let types = request.job_types.as_ref().map(|types| types.iter().cloned().collect::<BTreeSet<_>>());
        let types: Option<Vec<JobType>> = types.map(|types| types.into_iter().collect());
        let combinations = queues.as_ref().map_or(1, Vec::len) * types.as_ref().map_or(1, Vec::len);
        let (mut filter_queues, mut filter_types) = (None, None);
        let (queues, types) = match (queues, types) {
            (Some(queues), Some(types)) if combinations > MAX_COMBINATIONS && queues.len() < types.len() => {
                filter_types = Some(types);
                (Some(queues), None)
            }
            (Some(queues), types @ Some(_)) if combinations > MAX_COMBINATIONS => {
                filter_queues = Some(queues);
                (None, types)
            }
            all => all,
        };
        let (by_queue, by_type) = (queues.is_some(), types.is_some());
        let filter = hash(&filter_queues, &filter_types);
        let queues: Vec<Option<Queue>> = queues.map_or(vec![None], |names| names.into_iter().map(Some).collect());
        let types: Vec<Option<JobType>> = types.map_or(vec![None], |names| names.into_iter().map(Some).collect());
        let scans = queues
            .iter()
            .flat_map(|queue| {
                types.iter().map(|job_type| Scan { queue: queue.clone(), job_type: job_type.clone(), filter })
            })
            .collect();
        Self { scans, by_queue, by_type, queues: filter_queues, job_types: filter_types }
    }

    // The statement, and how `claim_jobs_shared.sql` numbers its kind of scan.
    fn statement(&self, is_one_turn: bool) -> (&'static Statement, i16) {
        let (in_turns, in_one_turn, kind) = match (self.by_queue, self.by_type) {
            (false, false) => (&CLAIM_JOBS_OF_ANY, &CLAIM_TURN_OF_ANY, 0),
            (false, true) => (&CLAIM_JOBS_BY_TYPE, &CLAIM_TURN_BY_TYPE, 1),
            (true, false) => (&CLAIM_JOBS_BY_QUEUE, &CLAIM_TURN_BY_QUEUE, 2),
            (true, true) => (&CLAIM_JOBS_BY_LANE, &CLAIM_TURN_BY_LANE, 3),
        };
        (if is_one_turn { in_one_turn } else { in_turns }, kind)
    }

    // The statement that finds tenants.
    fn search_statement(&self) -> &'static Statement {
        match (self.by_queue, self.by_type) {
            (false, false) => &FIND_TURNS_OF_ANY,
            (false, true) => &FIND_TURNS_BY_TYPE,
            (true, false) => &FIND_TURNS_BY_QUEUE,
            (true, true) => &FIND_TURNS_BY_LANE,
        }
    }
}

// At least one, and as many as `jobs` need with `each` of them in one.
fn div_ceil(jobs: usize, each: f64) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an estimate"
    )]
    let count = (jobs as f64 / each.max(1.0)).ceil() as usize;
    count.max(1)
}

// 0 without a filter.
fn hash(queues: &Option<Vec<Queue>>, job_types: &Option<Vec<JobType>>) -> u64 {
    if queues.is_none() && job_types.is_none() {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    (queues, job_types).hash(&mut hasher);
    hasher.finish().max(1)
}

// Takes batches of paused queues out of the order of claims. Only later claims gain by it, so an error is not returned.
async fn park_batches(store: &PostgresStore, paused: Vec<&str>) {
    if !paused.is_empty()
        && let Err(error) = store.database().query(&PARK_BATCHES, &[&paused, &PARK_BATCH]).await
    {
        tracing::debug!(%error, queues = paused.len(), "cannot park the batches of paused queues");
    }
}

// Reads the last row of the statement.
fn read_end(store: &PostgresStore, row: &Row) -> RoundEnd {
    store
        .known_turns()
        .note_fill(row.get(column!(CLAIM_JOBS_OF_ANY, batches)), row.get(column!(CLAIM_JOBS_OF_ANY, listed)));
    let index = |n: i64| usize::try_from(n - 1).unwrap_or(0);
    let ended: Vec<i64> = row.get(column!(CLAIM_JOBS_OF_ANY, ended));
    let passed: Option<Vec<i64>> = row.get(column!(CLAIM_JOBS_OF_ANY, passed));
    let passed_at: Option<Vec<Timestamp>> = row.get(column!(CLAIM_JOBS_OF_ANY, passed_at));
    let passed_id: Option<Vec<Uuid>> = row.get(column!(CLAIM_JOBS_OF_ANY, passed_id));
    let positions = passed_at.into_iter().flatten().zip(passed_id.into_iter().flatten());
    let positions = positions.map(|(eligible_at, id)| Position { eligible_at, id });
    RoundEnd {
        more: row.get(column!(CLAIM_JOBS_OF_ANY, more)),
        skipped: row.get(column!(CLAIM_JOBS_OF_ANY, skipped)),
        ended: ended.into_iter().map(index).collect(),
        passed: passed.into_iter().flatten().map(index).zip(positions).collect(),
    }
}

async fn read_jobs(store: &PostgresStore, rows: &[Row], secret: Uuid) -> Result<Vec<Leased>> {
    let external: Vec<Uuid> =
        rows.iter().filter(|row| row.get(column!(CLAIM_JOBS_OF_ANY, payload_apart))).map(id).collect();
    let mut payloads: HashMap<Uuid, Json> = HashMap::new();
    if !external.is_empty() {
        let rows = store.database().query(&EXTERNAL_PAYLOADS, &[&external]).await?;
        payloads.extend(rows.iter().map(|row| (row.get("id"), Json::trusted(row.get("body")))));
    }
    let children: Vec<Uuid> =
        rows.iter().filter(|row| row.get(column!(CLAIM_JOBS_OF_ANY, has_parents))).map(id).collect();
    let mut results: HashMap<Uuid, Vec<(JobId, Json)>> = HashMap::new();
    if !children.is_empty() {
        for row in store.database().query(&DEPENDENCY_RESULTS, &[&children]).await? {
            let result = (JobId::from_uuid(row.get("parent")), Json::trusted(row.get("result")));
            results.entry(row.get("child")).or_default().push(result);
        }
    }
    let (mut claimed, mut broken) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        let id = id(row);
        let inline = row.get::<_, Option<&str>>(column!(CLAIM_JOBS_OF_ANY, payload)).map(Json::trusted);
        match inline.or_else(|| payloads.remove(&id)) {
            Some(payload) => claimed.push(Leased {
                job: read(row, secret, payload, results.remove(&id).unwrap_or_default())?,
                visit: usize::try_from(row.get::<_, i64>(column!(CLAIM_JOBS_OF_ANY, visit)) - 1).unwrap_or(0),
                allowance: usize::try_from(row.get::<_, i64>(column!(CLAIM_JOBS_OF_ANY, allowance)))
                    .unwrap_or(1)
                    .max(1),
            }),
            None => broken.push(OutcomeReport {
                token: token(row, secret),
                outcome: Outcome::Fail { error: "its payload is gone".into(), retryable: false, retry_after: None },
            }),
        }
    }
    if !broken.is_empty() {
        tracing::error!(jobs = broken.len(), "failed claimed jobs whose payload is missing");
        finish_attempts(store, &broken).await?;
    }
    Ok(claimed)
}

fn id(row: &Row) -> Uuid {
    row.get(column!(CLAIM_JOBS_OF_ANY, id))
}

fn token(row: &Row, secret: Uuid) -> LeaseToken {
    LeaseToken { job: JobId::from_uuid(id(row)), counter: row.get(column!(CLAIM_JOBS_OF_ANY, lease_counter)), secret }
}

fn read(row: &Row, secret: Uuid, payload: Json, dependency_results: Vec<(JobId, Json)>) -> Result<ClaimedJob> {
    Ok(ClaimedJob {
        token: token(row, secret),
        lease: duration(row.get::<_, i32>(column!(CLAIM_JOBS_OF_ANY, lease_ms)).into()),
        timeout: row.get::<_, Option<i64>>(column!(CLAIM_JOBS_OF_ANY, timeout_ms)).map(duration),
        lease_expires_at: row.get(column!(CLAIM_JOBS_OF_ANY, lease_expires_at)),
        eligible_at: row.get(column!(CLAIM_JOBS_OF_ANY, eligible_at)),
        priority: priority(row.get(column!(CLAIM_JOBS_OF_ANY, rank)))?,
        attempt: count(row.get(column!(CLAIM_JOBS_OF_ANY, attempts))) + 1,
        max_attempts: count(row.get(column!(CLAIM_JOBS_OF_ANY, max_attempts))),
        queue: Queue::trusted(row.get(column!(CLAIM_JOBS_OF_ANY, queue))),
        job_type: JobType::trusted(row.get(column!(CLAIM_JOBS_OF_ANY, job_type))),
        tenant: Tenant::trusted(row.get(column!(CLAIM_JOBS_OF_ANY, tenant))),
        correlation_id: row.get(column!(CLAIM_JOBS_OF_ANY, correlation_id)),
        traceparent: row.get(column!(CLAIM_JOBS_OF_ANY, traceparent)),
        checkpoint: row.get::<_, Option<&str>>(column!(CLAIM_JOBS_OF_ANY, checkpoint)).map(Json::trusted),
        payload,
        dependency_results,
    })
}
