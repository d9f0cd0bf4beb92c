//! Reading jobs and their logs.

use std::collections::HashSet;

use orchestrix_core::{Job, JobId, JobState, Timestamp};
use orchestrix_store::{
    JobFilter, JobSummary, LogEntry, Page, PageRequest, Result, StoreError, housekeeping::check_limit,
    inspect::MAX_SCAN,
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    PostgresStore,
    database::Params,
    row::{self, corrupt, count, state},
    statement::{
        CURRENT_TIME, GET_JOB, JOB_LOGS, JOB_STATES, JOB_SUMMARIES, JOB_SUMMARY, LIST_JOBS, LIST_LEASED_JOBS,
        LIST_WAITING_JOBS, LOGS_AFTER, Statement, UNFINISHED_JOB_STATES, UNFINISHED_JOB_SUMMARIES,
    },
};

/// The server's time.
pub(crate) async fn now(store: &PostgresStore) -> Result<Timestamp> {
    read_time(&store.database().query(&CURRENT_TIME, &[]).await?)
}

/// Reads the row of `current_time.sql`.
pub(crate) fn read_time(rows: &[Row]) -> Result<Timestamp> {
    let row = rows.first().ok_or_else(|| StoreError::Backend("current_time.sql returned no row".into()))?;
    Ok(row.get("now"))
}

pub(crate) async fn job_summaries(store: &PostgresStore, ids: &[JobId]) -> Result<Vec<JobSummary>> {
    let rows = match ids {
        // For a single id the server searches one partition of history; for a list, all of them.
        [id] => store.database().query(&JOB_SUMMARY, &[&id.as_uuid()]).await?,
        ids => find(store, &UNFINISHED_JOB_SUMMARIES, &JOB_SUMMARIES, ids).await?,
    };
    rows.iter().map(row::summary).collect()
}

pub(crate) async fn job_states(store: &PostgresStore, ids: &[JobId]) -> Result<Vec<(JobId, JobState)>> {
    let rows = find(store, &UNFINISHED_JOB_STATES, &JOB_STATES, ids).await?;
    rows.iter().map(|row| Ok((JobId::from_uuid(row.get("id")), state(row.get("state"))?))).collect()
}

// Most requested jobs are unfinished, and searching every partition of history for each of them costs more than all
// the rest. Ids not found there are searched in all tables, the unfinished jobs included: an operator may have
// redriven one meanwhile.
async fn find(store: &PostgresStore, unfinished: &Statement, all: &Statement, ids: &[JobId]) -> Result<Vec<Row>> {
    let mut ids: Vec<Uuid> = ids.iter().map(JobId::as_uuid).collect();
    let mut rows = store.database().query(unfinished, &[&ids]).await?;
    if rows.len() < ids.len() {
        let found: HashSet<Uuid> = rows.iter().map(|row| row.get("id")).collect();
        ids.retain(|id| !found.contains(id));
        if !ids.is_empty() {
            rows.extend(store.database().query(all, &[&ids]).await?);
        }
    }
    Ok(rows)
}

pub(crate) async fn job(store: &PostgresStore, id: JobId) -> Result<Option<Job>> {
    let rows = store.database().query(&GET_JOB, &[&id.as_uuid()]).await?;
    rows.first().map(row::job).transpose()
}

pub(crate) async fn list_jobs(
    store: &PostgresStore,
    filter: &JobFilter,
    page: &PageRequest<JobId>,
) -> Result<Page<JobSummary, JobId>> {
    page.validate()?;
    // No text in the database holds a NUL, and the server refuses one as a parameter.
    if filter.text.as_ref().is_some_and(|text| text.contains('\0')) {
        return Ok(Page { items: Vec::new(), next: None });
    }
    let span = filter.id_range(page.cursor);
    let (before, start) = (span.end.as_uuid(), span.start.as_uuid());
    let waiting = are_waiting(&filter.states);
    // Where every row scanned matches, the scan need not be longer than the page.
    let all = JobFilter { states: if waiting { filter.states.clone() } else { Vec::new() }, ..JobFilter::default() };
    let scan = if *filter == all { page.limit + 1 } else { MAX_SCAN } as i64;
    let states: Option<Vec<&str>> =
        (!filter.states.is_empty()).then(|| filter.states.iter().map(|state| state.as_str()).collect());
    let queue = filter.queue.as_ref().map(AsRef::<str>::as_ref);
    let job_type = filter.job_type.as_ref().map(AsRef::<str>::as_ref);
    let tenant = filter.tenant.as_ref().map(AsRef::<str>::as_ref);
    let tag = filter.tag.as_ref().map(AsRef::<str>::as_ref);
    let (from, to) = (filter.from.map(bound), filter.to.map(bound));
    let (tables, limit) = (tables(&filter.states), page.limit as i64 + 1);
    let rows = if are_leased(&filter.states) {
        let params: Params<'_> =
            &[&before, &states, &queue, &job_type, &tenant, &tag, &filter.text, &from, &to, &limit, &start];
        store.database().query(&LIST_LEASED_JOBS, params).await?
    } else if waiting {
        let params: Params<'_> =
            &[&before, &scan, &states, &queue, &job_type, &tenant, &tag, &filter.text, &from, &to, &limit, &start];
        store.database().query(&LIST_WAITING_JOBS, params).await?
    } else {
        let params: Params<'_> = &[
            &before,
            &scan,
            &states,
            &queue,
            &job_type,
            &tenant,
            &tag,
            &filter.text,
            &from,
            &to,
            &limit,
            &tables,
            &start,
        ];
        store.database().query(&LIST_JOBS, params).await?
    };
    let mut items = Vec::new();
    let mut scan_end: Vec<JobId> = Vec::new();
    for row in &rows {
        match row.get::<_, Option<Uuid>>("last") {
            Some(id) => scan_end.push(JobId::from_uuid(id)),
            None => items.push(row::summary(row)?),
        }
    }
    scan_end.sort_unstable();
    let next = if items.len() > page.limit {
        items.truncate(page.limit);
        items.last().map(|job| job.id)
    } else {
        match scan_end[..] {
            // A cursor between the two: neither id may belong to a job that the client may not see.
            [next, last] => Some(last.cursor_above(next)),
            _ => None,
        }
    };
    Ok(Page { items, next })
}

/// Rounds a time up to whole microseconds within what the server can hold, which is nothing before 4713 BC.
pub(crate) fn bound(time: Timestamp) -> Timestamp {
    let micros = time.as_nanosecond().div_euclid(1_000) + i128::from(time.as_nanosecond().rem_euclid(1_000) > 0);
    let micros = i64::try_from(micros).unwrap_or(i64::MAX);
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX).max(Timestamp::UNIX_EPOCH)
}

// Whether jobs in these states have a lease.
fn are_leased(states: &[JobState]) -> bool {
    !states.is_empty() && states.iter().all(|state| matches!(state, JobState::Dispatched | JobState::Running))
}

// Whether jobs in these states wait for a time, a parent or a release.
fn are_waiting(states: &[JobState]) -> bool {
    use JobState::{Blocked, Created, Retrying, Scheduled};
    !states.is_empty() && states.iter().all(|state| matches!(state, Created | Blocked | Scheduled | Retrying))
}

// The tables that hold jobs in these states: a list of dead jobs must not scan millions of completed ones.
fn tables(states: &[JobState]) -> Vec<&'static str> {
    let table = |state: &JobState| match state {
        JobState::Dead => "dead",
        JobState::Completed | JobState::Cancelled => "history",
        _ => "job",
    };
    let mut tables: Vec<&str> = match states {
        [] => JobState::ALL.iter().map(table).collect(),
        some => some.iter().map(table).collect(),
    };
    tables.sort_unstable();
    tables.dedup();
    tables
}

pub(crate) async fn job_logs(store: &PostgresStore, id: JobId, page: &PageRequest<i64>) -> Result<Page<LogEntry, i64>> {
    page.validate()?;
    let after = page.cursor.unwrap_or(0);
    let rows = store.database().query(&JOB_LOGS, &[&id.as_uuid(), &after, &(page.limit as i64 + 1)]).await?;
    if job_summaries(store, &[id]).await?.is_empty() {
        return Err(StoreError::JobNotFound(id));
    }
    let items = rows.iter().take(page.limit).map(log_entry).collect::<Result<Vec<LogEntry>>>()?;
    let next = (rows.len() > page.limit).then(|| items.last().map(|entry| entry.seq)).flatten();
    Ok(Page { items, next })
}

pub(crate) async fn logs_after(
    store: &PostgresStore,
    cursors: &[(JobId, i64)],
    limit: usize,
) -> Result<Vec<((JobId, i64), LogEntry)>> {
    check_limit(limit, PageRequest::<i64>::MAX_LIMIT)?;
    let (ids, after): (Vec<Uuid>, Vec<i64>) = cursors.iter().map(|(id, after)| (id.as_uuid(), *after)).unzip();
    let rows = store.database().query(&LOGS_AFTER, &[&ids, &after, &(limit as i64)]).await?;
    rows.iter().map(|row| Ok(((JobId::from_uuid(row.get("id")), row.get("after")), log_entry(row)?))).collect()
}

fn log_entry(row: &Row) -> Result<LogEntry> {
    Ok(LogEntry {
        seq: row.get("seq"),
        at: row.get("at"),
        level: row.get::<_, &str>("level").parse().map_err(|error| corrupt("level", error))?,
        attempt: count(row.get("attempt")),
        message: row.get("message"),
    })
}
