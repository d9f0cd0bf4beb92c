//! Claiming jobs.
//!
//! A claim runs in rounds. Each round searches for new lanes if that is due, decides how many jobs to take from each
//! lane, leases those jobs in one statement, and reads their payloads and the results of their dependencies.
//! [`lanes`](crate::lanes) says where the scan of each lane starts.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use orchestrix_core::{JobId, JobType, Json, LeaseToken, Queue, Tenant, Timestamp};
use orchestrix_store::{ClaimRequest, ClaimedJob, Outcome, OutcomeReport, Result};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    PostgresStore,
    finish::finish_attempts,
    lanes::{ClaimStart, LanePosition, MAX_LANES},
    queue::lane,
    row::{count, duration, priority},
    statement::{CLAIM_JOBS, CLAIM_QUOTAS, CLAIMABLE_LANES, DEPENDENCY_RESULTS, EXTERNAL_PAYLOADS, column},
};

/// Leases up to `request.limit` jobs in the order of priority and eligibility over all lanes.
pub(crate) async fn claim_jobs(store: &PostgresStore, request: &ClaimRequest) -> Result<Vec<ClaimedJob>> {
    request.validate()?;
    let (mut claimed, mut more) = claim_round(store, request).await?;
    // The first further round that claims no job is the last, so rounds are bounded by the jobs requested.
    while more && claimed.len() < request.limit {
        let rest = ClaimRequest { limit: request.limit - claimed.len(), ..request.clone() };
        match claim_round(store, &rest).await {
            Ok((jobs, cut_short)) => {
                more = cut_short && !jobs.is_empty();
                claimed.extend(jobs);
            }
            // The jobs of earlier rounds are leased already, so they are returned.
            Err(error) => {
                tracing::warn!(%error, claimed = claimed.len(), "claim ended early");
                break;
            }
        }
    }
    Ok(claimed)
}

// Claims up to `request.limit` jobs, as far as one call of `quotas` knows their order over the lanes. Returns the jobs,
// and whether more may be claimable.
async fn claim_round(store: &PostgresStore, request: &ClaimRequest) -> Result<(Vec<ClaimedJob>, bool)> {
    if let Some(known) = store.lanes().begin_search(Instant::now()) {
        search_lanes(store, &known).await?;
    }
    let starts = store.lanes().claim_starts(request, Instant::now());
    let (quotas, cut_short) = quotas(store, &starts, request.limit).await?;
    if quotas.is_empty() {
        return Ok((Vec::new(), false));
    }
    let (starts, quotas): (Vec<ClaimStart>, Vec<i32>) =
        quotas.into_iter().map(|(i, quota)| (starts[i].clone(), quota)).unzip();
    let secret = Uuid::from_u128(rand::random());
    let (queues, types, ranks, times, ids) = columns(&starts);
    let scan = Instant::now();
    let rows = store
        .database()
        .query(&CLAIM_JOBS, &[&queues, &types, &ranks, &times, &ids, &quotas, &request.worker.as_str(), &secret])
        .await?;
    move_cursors(store, &starts, &rows, scan.elapsed());
    // The jobs are leased from here on: an error must release all of them.
    match read_jobs(store, &rows, secret).await {
        Ok(claimed) => Ok((claimed, cut_short)),
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

async fn search_lanes(store: &PostgresStore, known: &[(Queue, JobType)]) -> Result<()> {
    let queues: Vec<&str> = known.iter().map(|(queue, _)| queue.as_str()).collect();
    let types: Vec<&str> = known.iter().map(|(_, job_type)| job_type.as_str()).collect();
    let begun = Instant::now();
    let rows = store.database().query(&CLAIMABLE_LANES, &[&queues, &types, &(MAX_LANES as i64)]).await;
    let lanes = rows.as_ref().ok().map(|rows| rows.iter().map(lane).collect());
    store.lanes().end_search(lanes, begun.elapsed());
    rows.map(drop)
}

// Decides how many jobs to take from which lane: pairs of an index into `starts` and a quota. Also returns whether the
// quotas stop short of `limit` because the order beyond them is unknown. A single lane needs no query.
async fn quotas(store: &PostgresStore, starts: &[ClaimStart], limit: usize) -> Result<(Vec<(usize, i32)>, bool)> {
    let limit = i32::try_from(limit).unwrap_or(i32::MAX);
    if starts.len() < 2 {
        return Ok(((0..starts.len()).map(|i| (i, limit)).collect(), false));
    }
    let (queues, types, ranks, times, ids) = columns(starts);
    let rows = store.database().query(&CLAIM_QUOTAS, &[&queues, &types, &ranks, &times, &ids, &limit]).await?;
    let cut_short = rows.first().is_some_and(|row| row.get("cut_short"));
    let quota = |row: &Row| (usize::try_from(row.get::<_, i64>("n") - 1).unwrap_or(0), row.get("quota"));
    Ok((rows.iter().map(quota).collect(), cut_short))
}

type Columns<'a> = (Vec<&'a str>, Vec<&'a str>, Vec<i16>, Vec<Timestamp>, Vec<Uuid>);

fn columns(starts: &[ClaimStart]) -> Columns<'_> {
    let mut columns = Columns::default();
    for start in starts {
        columns.0.push(start.queue.as_str());
        columns.1.push(start.job_type.as_str());
        columns.2.push(start.position.rank);
        columns.3.push(start.position.eligible_at);
        columns.4.push(start.position.id);
    }
    columns
}

fn move_cursors(store: &PostgresStore, starts: &[ClaimStart], rows: &[Row], took: Duration) {
    let mut last: HashMap<(&str, &str), LanePosition> = HashMap::new();
    for row in rows {
        let position = LanePosition {
            rank: row.get(column!(CLAIM_JOBS, rank)),
            eligible_at: row.get(column!(CLAIM_JOBS, eligible_at)),
            id: id(row),
        };
        last.entry((row.get(column!(CLAIM_JOBS, queue)), row.get(column!(CLAIM_JOBS, job_type))))
            .and_modify(|known| *known = position.max(*known))
            .or_insert(position);
    }
    for start in starts {
        let last = last.get(&(start.queue.as_str(), start.job_type.as_str())).copied();
        store.lanes().claimed_up_to(start, last, took);
    }
}

async fn read_jobs(store: &PostgresStore, rows: &[Row], secret: Uuid) -> Result<Vec<ClaimedJob>> {
    let external: Vec<Uuid> = rows.iter().filter(|row| row.get(column!(CLAIM_JOBS, payload_apart))).map(id).collect();
    let mut payloads: HashMap<Uuid, Json> = HashMap::new();
    if !external.is_empty() {
        let rows = store.database().query(&EXTERNAL_PAYLOADS, &[&external]).await?;
        payloads.extend(rows.iter().map(|row| (row.get("id"), Json::trusted(row.get("body")))));
    }
    let children: Vec<Uuid> = rows.iter().filter(|row| row.get(column!(CLAIM_JOBS, has_parents))).map(id).collect();
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
        let inline = row.get::<_, Option<&str>>(column!(CLAIM_JOBS, payload)).map(Json::trusted);
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
    row.get(column!(CLAIM_JOBS, id))
}

fn token(row: &Row, secret: Uuid) -> LeaseToken {
    LeaseToken { job: JobId::from_uuid(id(row)), counter: row.get(column!(CLAIM_JOBS, lease_counter)), secret }
}

fn read(row: &Row, secret: Uuid, payload: Json, dependency_results: Vec<(JobId, Json)>) -> Result<ClaimedJob> {
    Ok(ClaimedJob {
        token: token(row, secret),
        lease: duration(row.get::<_, i32>(column!(CLAIM_JOBS, lease_ms)).into()),
        timeout: row.get::<_, Option<i64>>(column!(CLAIM_JOBS, timeout_ms)).map(duration),
        lease_expires_at: row.get(column!(CLAIM_JOBS, lease_expires_at)),
        eligible_at: row.get(column!(CLAIM_JOBS, eligible_at)),
        priority: priority(row.get(column!(CLAIM_JOBS, rank)))?,
        attempt: count(row.get(column!(CLAIM_JOBS, attempts))) + 1,
        max_attempts: count(row.get(column!(CLAIM_JOBS, max_attempts))),
        queue: Queue::trusted(row.get(column!(CLAIM_JOBS, queue))),
        job_type: JobType::trusted(row.get(column!(CLAIM_JOBS, job_type))),
        tenant: Tenant::trusted(row.get(column!(CLAIM_JOBS, tenant))),
        correlation_id: row.get(column!(CLAIM_JOBS, correlation_id)),
        traceparent: row.get(column!(CLAIM_JOBS, traceparent)),
        checkpoint: row.get::<_, Option<&str>>(column!(CLAIM_JOBS, checkpoint)).map(Json::trusted),
        payload,
        dependency_results,
    })
}
