//! Claiming jobs.
//!
//! A claim scans ready batches (`migrations/0012_ready.sql`) in the order of claims: all of them, or those of the
//! queues and types it names. It runs in rounds. Each round reads some batches of every scan, leases the first jobs
//! up to where the order over the scans is known, and reads their payloads and the results of their dependencies.
//! [`claim_cursors`](crate::claim_cursors) says where the scans start.

use std::{
    collections::{BTreeSet, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
    time::{Duration, Instant},
};

use orchestrix_core::{JobId, JobType, Json, LeaseToken, Queue, Tenant, Timestamp};
use orchestrix_store::{ClaimRequest, ClaimedJob, Outcome, OutcomeReport, Queues, Result};
use tokio_postgres::{Row, types::ToSql};
use uuid::Uuid;

use crate::{
    PostgresStore,
    claim_cursors::{ClaimKey, Scan},
    finish::finish_attempts,
    row::{count, duration, priority},
    statement::{
        CLAIM_JOBS_BY_LANE, CLAIM_JOBS_BY_QUEUE, CLAIM_JOBS_BY_TYPE, CLAIM_JOBS_OF_ANY, CLAIM_JOBS_SHARED,
        DEPENDENCY_RESULTS, EXTERNAL_PAYLOADS, PARK_BATCHES, Statement, column,
    },
};

/// The most scans for the combinations of named queues and types. A claim that names more scans by queue or by type
/// alone and skips the other batches.
const MAX_COMBINATIONS: usize = 2_000;
/// The most batches that one round reads, but for two of every scan.
const MAX_BATCHES: usize = 20_000;
/// The batches of each paused queue that one claim parks.
const PARK_BATCH: i64 = 1_000;
/// The most rounds of a claim. Rounds double what they read, so only a claim that meets a hundred thousand batches of
/// jobs that it cannot lease ends by this.
const MAX_ROUNDS: u32 = 20;

/// Leases up to `request.limit` jobs in the order of priority and eligibility over all queues and types requested.
pub(crate) async fn claim_jobs(store: &PostgresStore, request: &ClaimRequest) -> Result<Vec<ClaimedJob>> {
    request.validate()?;
    let plan = ScanPlan::of(request);
    if plan.scans.is_empty() {
        return Ok(Vec::new());
    }
    let (first_starts, begun) = (store.claim_cursors().starts(&plan.scans, Instant::now()), Instant::now());
    let mut claimed: Vec<ClaimedJob> = Vec::new();
    let (mut starts, mut shared, mut end) = (first_starts.clone(), false, RoundEnd::default());
    for round in 0..MAX_ROUNDS {
        let left = request.limit - claimed.len();
        let depth = plan.depth(left, round, store.claim_cursors().fill());
        match claim_round(store, request, &plan, Round { starts: &starts, depth, limit: left, shared }).await {
            Ok((jobs, round_end)) => {
                claimed.extend(jobs);
                end = round_end;
            }
            Err(error) if claimed.is_empty() => return Err(error),
            // The jobs of earlier rounds are leased already, so they are returned.
            Err(error) => {
                tracing::warn!(%error, claimed = claimed.len(), "claim ended early");
                break;
            }
        }
        if claimed.len() == request.limit {
            break;
        }
        match end.next {
            // A locked job that was not leased had changed: jobs after it may be left before `next`.
            Some(_) if end.locked == left => {}
            Some(position) => starts.iter_mut().for_each(|start| *start = position.max(*start)),
            // Another claim has locked some batches and may leave jobs of them. Only the last round says so for certain.
            None if end.skipped || round > 0 && !shared => (starts, shared) = (first_starts.clone(), true),
            None => break,
        }
    }
    let end = end.next.filter(|_| claimed.len() < request.limit);
    plan.move_cursors(store, &first_starts, &claimed, end, begun.elapsed());
    if shared {
        // Later rounds began at the start again.
        claimed.sort_unstable_by_key(|job| (std::cmp::Reverse(job.priority), job.eligible_at, job.token.job));
    }
    Ok(claimed)
}

/// What one round of a claim reads.
struct Round<'a> {
    starts: &'a [ClaimKey],
    /// Batches per scan.
    depth: i64,
    /// Jobs wanted.
    limit: usize,
    /// Whether to read batches that another claim has locked.
    shared: bool,
}

/// Where a round ended.
#[derive(Default)]
struct RoundEnd {
    /// Where the next round starts, if there are more batches.
    next: Option<ClaimKey>,
    /// The jobs that were locked. Nearly always all of them were leased.
    locked: usize,
    /// Batches were skipped because another claim has locked them.
    skipped: bool,
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
    fn statement(&self) -> (&'static Statement, i16) {
        match (self.by_queue, self.by_type) {
            (false, false) => (&CLAIM_JOBS_OF_ANY, 0),
            (false, true) => (&CLAIM_JOBS_BY_TYPE, 1),
            (true, false) => (&CLAIM_JOBS_BY_QUEUE, 2),
            (true, true) => (&CLAIM_JOBS_BY_LANE, 3),
        }
    }

    // How many batches to read per scan. The last batch of a scan only marks the horizon, so at least two.
    fn depth(&self, wanted: usize, round: u32, fill: f64) -> i64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an estimate"
        )]
        let batches = (wanted as f64 / fill.max(1.0)).ceil() as usize;
        let scans = self.scans.len().max(1);
        // With several scans the jobs may be spread unevenly.
        let depth = if scans == 1 { batches + 2 } else { 3 + 2 * batches / scans };
        let depth = depth.saturating_mul(1 << round).min((MAX_BATCHES / scans).max(2));
        i64::try_from(depth).unwrap_or(i64::MAX)
    }

    // The scan that found a job of this queue and type.
    fn scan_of(&self, queue: &Queue, job_type: &JobType) -> Scan {
        let filter = self.scans.first().map_or(0, |scan| scan.filter);
        Scan { queue: self.by_queue.then(|| queue.clone()), job_type: self.by_type.then(|| job_type.clone()), filter }
    }

    // Moves the cursor of each scan to the last job that was leased from it; or, of all scans, to where a claim ended
    // that did not find enough.
    fn move_cursors(
        &self,
        store: &PostgresStore,
        starts: &[ClaimKey],
        claimed: &[ClaimedJob],
        end: Option<ClaimKey>,
        took: Duration,
    ) {
        let mut ends: HashMap<Scan, ClaimKey> = HashMap::new();
        if end.is_none() {
            // In order, so that the last job of a scan wins.
            for job in claimed {
                let position = ClaimKey::before(-job.priority.get(), job.eligible_at);
                ends.insert(self.scan_of(&job.queue, &job.job_type), position);
            }
        }
        for (scan, start) in self.scans.iter().zip(starts) {
            store.claim_cursors().claimed_up_to(scan, *start, end.or_else(|| ends.get(scan).copied()), took);
        }
    }
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

// Reads batches and leases jobs. Returns the jobs, in order, and where the round ended.
async fn claim_round(
    store: &PostgresStore,
    request: &ClaimRequest,
    plan: &ScanPlan,
    Round { starts, depth, limit, shared }: Round<'_>,
) -> Result<(Vec<ClaimedJob>, RoundEnd)> {
    let queues: Vec<Option<&str>> = plan.scans.iter().map(|scan| scan.queue.as_ref().map(Queue::as_str)).collect();
    let types: Vec<Option<&str>> = plan.scans.iter().map(|scan| scan.job_type.as_ref().map(JobType::as_str)).collect();
    let ranks: Vec<i16> = starts.iter().map(|start| start.rank).collect();
    let times: Vec<Timestamp> = starts.iter().map(|start| start.eligible_at).collect();
    let ids: Vec<Uuid> = starts.iter().map(|start| start.id).collect();
    let filter_queues: Option<Vec<&str>> = plan.queues.as_ref().map(|names| names.iter().map(Queue::as_str).collect());
    let filter_types: Option<Vec<&str>> =
        plan.job_types.as_ref().map(|names| names.iter().map(JobType::as_str).collect());
    let (limit, worker) = (i64::try_from(limit).unwrap_or(i64::MAX), request.worker.as_str());
    let secret = Uuid::from_u128(rand::random());
    let (statement, kind) = plan.statement();
    let statement = if shared { &CLAIM_JOBS_SHARED } else { statement };
    let params: &[&(dyn ToSql + Sync)] = &[
        &queues,
        &types,
        &ranks,
        &times,
        &ids,
        &depth,
        &limit,
        &worker,
        &secret,
        &filter_queues,
        &filter_types,
        &kind,
    ];
    let mut rows = store.database().query(statement, params).await?;
    let last = rows.pop();
    let end = last.as_ref().map(|row| read_end(store, row)).unwrap_or_default();
    // The jobs are leased from here on: an error must release all of them.
    match read_jobs(store, &rows, secret).await {
        Ok(claimed) => {
            if let Some(row) = last {
                park_batches(store, row.get(column!(CLAIM_JOBS_OF_ANY, paused))).await;
            }
            Ok((claimed, end))
        }
        Err(error) => {
            let tokens = rows.iter().map(|row| token(row, secret));
            let reports: Vec<OutcomeReport> =
                tokens.map(|token| OutcomeReport { token, outcome: Outcome::Release }).collect();
            tracing::warn!(%error, jobs = reports.len(), "released claimed jobs that could not be read");
            finish_attempts(store, &reports).await?;
            Err(error)
        }
    }
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
        .claim_cursors()
        .note_fill(row.get(column!(CLAIM_JOBS_OF_ANY, batches)), row.get(column!(CLAIM_JOBS_OF_ANY, listed)));
    let rank: Option<i16> = row.get(column!(CLAIM_JOBS_OF_ANY, next_rank));
    let next = rank.map(|rank| ClaimKey {
        rank,
        eligible_at: row.get(column!(CLAIM_JOBS_OF_ANY, next_at)),
        id: row.get(column!(CLAIM_JOBS_OF_ANY, next_id)),
    });
    let locked: i64 = row.get(column!(CLAIM_JOBS_OF_ANY, locked));
    RoundEnd {
        next,
        locked: usize::try_from(locked).unwrap_or(0),
        skipped: row.get(column!(CLAIM_JOBS_OF_ANY, skipped)),
    }
}

async fn read_jobs(store: &PostgresStore, rows: &[Row], secret: Uuid) -> Result<Vec<ClaimedJob>> {
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
            Some(payload) => claimed.push(read(row, secret, payload, results.remove(&id).unwrap_or_default())?),
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
    // The statement returns rows in no particular order.
    claimed.sort_unstable_by_key(|job| (std::cmp::Reverse(job.priority), job.eligible_at, job.token.job));
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
