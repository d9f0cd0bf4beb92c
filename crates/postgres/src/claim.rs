//! Leasing jobs to workers.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use orchestrix_core::{JobId, JobType, Json, LeaseToken, Queue, Tenant, Timestamp};
use orchestrix_store::{ClaimRequest, ClaimedJob, LeaseStatus, Outcome, OutcomeReport, Result, claim::check_tokens};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    PostgresStore,
    finish::finish,
    lanes::{MAX_LANES, Place, Start},
    row::{count, duration, priority},
    statement::{CLAIM, DEPENDENCY_RESULTS, HEARTBEAT, LANES, PAYLOADS, SURVEY},
};

pub(crate) async fn claim(store: &PostgresStore, request: &ClaimRequest) -> Result<Vec<ClaimedJob>> {
    request.validate()?;
    let (mut claimed, mut more) = claim_some(store, request).await?;
    // Each round takes something, so there are no more rounds than jobs that were asked for.
    while more && claimed.len() < request.limit {
        let rest = ClaimRequest { limit: request.limit - claimed.len(), ..request.clone() };
        match claim_some(store, &rest).await {
            Ok((jobs, cut_short)) => {
                more = cut_short && !jobs.is_empty();
                claimed.extend(jobs);
            }
            // Their leases run already: better some than none.
            Err(error) => {
                tracing::warn!(%error, jobs = claimed.len(), "fewer jobs were claimed than there may be");
                break;
            }
        }
    }
    Ok(claimed)
}

// Claims what one survey can put in order, and says whether there may be more.
async fn claim_some(store: &PostgresStore, request: &ClaimRequest) -> Result<(Vec<ClaimedJob>, bool)> {
    if let Some(known) = store.lanes().take_turn(Instant::now()) {
        find_lanes(store, &known).await?;
    }
    let starts = store.lanes().starts(request, Instant::now());
    let (quotas, cut_short) = quotas(store, &starts, request.limit).await?;
    if quotas.is_empty() {
        return Ok((Vec::new(), false));
    }
    let (starts, quotas): (Vec<Start>, Vec<i32>) =
        quotas.into_iter().map(|(i, quota)| (starts[i].clone(), quota)).unzip();
    let secret = Uuid::from_u128(rand::random());
    let (queues, types, ranks, times, ids) = columns(&starts);
    let scan = Instant::now();
    let rows = store
        .database()
        .query(&CLAIM, &[&queues, &types, &ranks, &times, &ids, &quotas, &request.worker.as_str(), &secret])
        .await?;
    note_places(store, &starts, &rows, scan.elapsed());
    // From here on the jobs are leased: whatever goes wrong with one of them must not cost the others their leases.
    match read_all(store, &rows, secret).await {
        Ok(claimed) => Ok((claimed, cut_short)),
        Err(error) => {
            let tokens = rows.iter().map(|row| token(row, secret));
            let items: Vec<OutcomeReport> =
                tokens.map(|token| OutcomeReport { token, outcome: Outcome::Release }).collect();
            tracing::warn!(%error, jobs = items.len(), "claimed jobs could not be read and are handed back");
            finish(store, &items).await?;
            Err(error)
        }
    }
}

async fn find_lanes(store: &PostgresStore, known: &[(Queue, JobType)]) -> Result<()> {
    let queues: Vec<&str> = known.iter().map(|(queue, _)| queue.as_str()).collect();
    let types: Vec<&str> = known.iter().map(|(_, job_type)| job_type.as_str()).collect();
    let begun = Instant::now();
    let rows = store.database().query(&LANES, &[&queues, &types, &(MAX_LANES as i64)]).await;
    let lanes = rows
        .as_ref()
        .ok()
        .map(|rows| rows.iter().map(|row| (Queue::trusted(row.get(0)), JobType::trusted(row.get(1)))).collect());
    store.lanes().found(lanes, begun.elapsed());
    rows.map(drop)
}

// How many to take from which lane, and whether a lane was cut short. One lane needs no look; several are looked at so
// that the order is one over all.
async fn quotas(store: &PostgresStore, starts: &[Start], limit: usize) -> Result<(Vec<(usize, i32)>, bool)> {
    let limit = i32::try_from(limit).unwrap_or(i32::MAX);
    if starts.len() < 2 {
        return Ok(((0..starts.len()).map(|i| (i, limit)).collect(), false));
    }
    let (queues, types, ranks, times, ids) = columns(starts);
    let rows = store.database().query(&SURVEY, &[&queues, &types, &ranks, &times, &ids, &limit]).await?;
    let cut_short = rows.first().is_some_and(|row| row.get(2));
    let quotas = rows.iter().map(|row| (usize::try_from(row.get::<_, i64>(0) - 1).unwrap_or(0), row.get(1))).collect();
    Ok((quotas, cut_short))
}

type Columns<'a> = (Vec<&'a str>, Vec<&'a str>, Vec<i16>, Vec<Timestamp>, Vec<Uuid>);

fn columns(starts: &[Start]) -> Columns<'_> {
    let mut columns = Columns::default();
    for start in starts {
        columns.0.push(start.queue.as_str());
        columns.1.push(start.job_type.as_str());
        columns.2.push(start.place.rank);
        columns.3.push(start.place.eligible_at);
        columns.4.push(start.place.id);
    }
    columns
}

fn note_places(store: &PostgresStore, starts: &[Start], rows: &[Row], took: Duration) {
    let mut last: HashMap<(&str, &str), Place> = HashMap::new();
    for row in rows {
        let place = Place { rank: row.get(6), eligible_at: row.get(5), id: row.get(0) };
        last.entry((row.get(10), row.get(11))).and_modify(|known| *known = place.max(*known)).or_insert(place);
    }
    for start in starts {
        store.lanes().reached(start, last.get(&(start.queue.as_str(), start.job_type.as_str())).copied(), took);
    }
}

async fn read_all(store: &PostgresStore, rows: &[Row], secret: Uuid) -> Result<Vec<ClaimedJob>> {
    let apart: Vec<Uuid> = rows.iter().filter(|row| row.get(17)).map(|row| row.get(0)).collect();
    let mut bodies: HashMap<Uuid, Json> = HashMap::new();
    if !apart.is_empty() {
        let rows = store.database().query(&PAYLOADS, &[&apart]).await?;
        bodies.extend(rows.iter().map(|row| (row.get(0), Json::trusted(row.get(1)))));
    }
    let waited: Vec<Uuid> = rows.iter().filter(|row| row.get(9)).map(|row| row.get(0)).collect();
    let mut results: HashMap<Uuid, Vec<(JobId, Json)>> = HashMap::new();
    if !waited.is_empty() {
        for row in store.database().query(&DEPENDENCY_RESULTS, &[&waited]).await? {
            results.entry(row.get(0)).or_default().push((JobId::from_uuid(row.get(1)), Json::trusted(row.get(2))));
        }
    }
    let (mut claimed, mut broken) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        let id = row.get(0);
        let inline = row.get::<_, Option<&str>>(16).map(Json::trusted);
        match inline.or_else(|| bodies.remove(&id)) {
            Some(payload) => claimed.push(read(row, secret, payload, results.remove(&id).unwrap_or_default())?),
            None => broken.push(OutcomeReport {
                token: token(row, secret),
                outcome: Outcome::Fail { error: "its payload is gone".into(), retryable: false, retry_after: None },
            }),
        }
    }
    if !broken.is_empty() {
        tracing::error!(jobs = broken.len(), "jobs without their payload are given up");
        finish(store, &broken).await?;
    }
    // The statement hands rows back in the order of the table.
    claimed.sort_unstable_by_key(|job| (std::cmp::Reverse(job.priority), job.eligible_at, job.token.job));
    Ok(claimed)
}

fn token(row: &Row, secret: Uuid) -> LeaseToken {
    LeaseToken { job: JobId::from_uuid(row.get(0)), counter: row.get(1), secret }
}

fn read(row: &Row, secret: Uuid, payload: Json, dependency_results: Vec<(JobId, Json)>) -> Result<ClaimedJob> {
    Ok(ClaimedJob {
        token: token(row, secret),
        lease: duration(row.get::<_, i32>(2).into()),
        timeout: row.get::<_, Option<i64>>(3).map(duration),
        lease_expires_at: row.get(4),
        eligible_at: row.get(5),
        priority: priority(row.get(6))?,
        attempt: count(row.get(7)) + 1,
        max_attempts: count(row.get(8)),
        queue: Queue::trusted(row.get(10)),
        job_type: JobType::trusted(row.get(11)),
        tenant: Tenant::trusted(row.get(12)),
        correlation_id: row.get(13),
        traceparent: row.get(14),
        checkpoint: row.get::<_, Option<&str>>(15).map(Json::trusted),
        payload,
        dependency_results,
    })
}

/// Extends leases; answers in the order of `tokens`.
pub(crate) async fn heartbeat(store: &PostgresStore, tokens: &[LeaseToken]) -> Result<Vec<LeaseStatus>> {
    check_tokens(tokens)?;
    if tokens.is_empty() {
        return Ok(Vec::new());
    }
    let mut sorted = tokens.to_vec();
    sorted.sort_unstable();
    let ids: Vec<Uuid> = sorted.iter().map(|token| token.job.as_uuid()).collect();
    let counters: Vec<i32> = sorted.iter().map(|token| token.counter).collect();
    let secrets: Vec<Uuid> = sorted.iter().map(|token| token.secret).collect();
    let rows = store.database().query(&HEARTBEAT, &[&ids, &counters, &secrets]).await?;
    let mut held: HashMap<LeaseToken, LeaseStatus> = HashMap::with_capacity(tokens.len());
    for row in &rows {
        let token = LeaseToken { job: JobId::from_uuid(row.get(0)), counter: row.get(1), secret: row.get(4) };
        let until = row.get(2);
        match (row.get(5), row.get(3)) {
            (true, true) => drop(held.insert(token, LeaseStatus::Cancel(until))),
            (true, false) => drop(held.insert(token, LeaseStatus::Held(until))),
            (false, _) => drop(held.entry(token).or_insert(LeaseStatus::Locked(until))),
        }
    }
    Ok(tokens.iter().map(|token| held.get(token).copied().unwrap_or(LeaseStatus::Lost)).collect())
}
