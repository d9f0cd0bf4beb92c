//! Leasing jobs to workers.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use orchestrix_core::{JobId, JobType, Json, LeaseToken, Queue, Tenant, Timestamp};
use orchestrix_store::{ClaimRequest, Claimed, LeaseStatus, Result, StoreError, claim::check_tokens};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    PostgresStore,
    lanes::{MAX_LANES, Place, Start},
    row::{count, duration, priority},
    statement::{CLAIM, DEPENDENCY_RESULTS, HEARTBEAT, LANES, SURVEY},
};

pub(crate) async fn claim(store: &PostgresStore, request: &ClaimRequest) -> Result<Vec<Claimed>> {
    request.validate()?;
    let begun = Instant::now();
    if store.lanes().take_listing_turn(begun) {
        list_lanes(store).await?;
    }
    let starts = store.lanes().starts(request, Instant::now());
    let quotas = quotas(store, &starts, request.limit).await?;
    if quotas.is_empty() {
        return Ok(Vec::new());
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
    let mut claimed = read(&rows, secret)?;
    let waited: Vec<Uuid> = rows.iter().filter(|row| row.get(9)).map(|row| row.get(0)).collect();
    if !waited.is_empty() {
        add_results(store, &mut claimed, &waited).await?;
    }
    // The statement hands rows back in the order of the table.
    claimed.sort_unstable_by_key(|job| (std::cmp::Reverse(job.priority), job.eligible_at, job.token.job));
    Ok(claimed)
}

async fn list_lanes(store: &PostgresStore) -> Result<()> {
    let rows = store.database().query(&LANES, &[&(MAX_LANES as i64)]).await;
    match rows {
        Ok(rows) => {
            store.lanes().listed(rows.iter().map(|row| (Queue::trusted(row.get(0)), JobType::trusted(row.get(1)))));
            Ok(())
        }
        Err(error) => {
            store.lanes().relist();
            Err(error)
        }
    }
}

// How many to take from which lane. One lane needs no look; several are looked at so that the order is one over all.
async fn quotas(store: &PostgresStore, starts: &[Start], limit: usize) -> Result<Vec<(usize, i32)>> {
    let limit = i32::try_from(limit).unwrap_or(i32::MAX);
    if starts.len() < 2 {
        return Ok((0..starts.len()).map(|i| (i, limit)).collect());
    }
    let (queues, types, ranks, times, ids) = columns(starts);
    let rows = store.database().query(&SURVEY, &[&queues, &types, &ranks, &times, &ids, &limit]).await?;
    Ok(rows.iter().map(|row| (usize::try_from(row.get::<_, i64>(0) - 1).unwrap_or(0), row.get(1))).collect())
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

fn read(rows: &[Row], secret: Uuid) -> Result<Vec<Claimed>> {
    rows.iter()
        .map(|row| {
            let id = JobId::from_uuid(row.get(0));
            Ok(Claimed {
                token: LeaseToken { job: id, counter: row.get(1), secret },
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
                payload: match row.get::<_, Option<&str>>(16) {
                    Some(payload) => Json::trusted(payload),
                    None => return Err(StoreError::Backend(format!("the payload of job {id} is gone").into())),
                },
                dependency_results: Vec::new(),
            })
        })
        .collect()
}

async fn add_results(store: &PostgresStore, claimed: &mut [Claimed], waited: &[Uuid]) -> Result<()> {
    let mut results: HashMap<Uuid, Vec<(JobId, Json)>> = HashMap::new();
    for row in store.database().query(&DEPENDENCY_RESULTS, &[&waited]).await? {
        results.entry(row.get(0)).or_default().push((JobId::from_uuid(row.get(1)), Json::trusted(row.get(2))));
    }
    for job in claimed {
        job.dependency_results = results.remove(&job.id().as_uuid()).unwrap_or_default();
    }
    Ok(())
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
    let held: HashMap<LeaseToken, LeaseStatus> = rows
        .iter()
        .map(|row| {
            let until = row.get(2);
            let status = if row.get(3) { LeaseStatus::Cancel(until) } else { LeaseStatus::Held(until) };
            (LeaseToken { job: JobId::from_uuid(row.get(0)), counter: row.get(1), secret: row.get(4) }, status)
        })
        .collect();
    Ok(tokens.iter().map(|token| held.get(token).copied().unwrap_or(LeaseStatus::Lost)).collect())
}
