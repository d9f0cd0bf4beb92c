//! Reads jobs and their logs.

use std::ops::Range;

use orchestrix_core::{AttemptRecord, Job, JobId, JobState, WorkerName};
use orchestrix_store::{JobFilter, JobSummary, LogEntry, Page, PageRequest, StoreError, inspect::MAX_SCAN};
use rusqlite::params;

use crate::{
    columns::{Columns, columns},
    error::{Result, corrupt},
    row::{self, JobRow, job_columns},
    session::Session,
    statement::{GET_JOB, JOB_LOGS, JOB_SUMMARY, LIST_ATTEMPTS, LIST_DEAD_JOBS, LIST_JOBS, LIST_PARENTS, Statement},
};

/// The maximum number of rows in other states that one page skips.
const MAX_SKIPPED: usize = 10 * MAX_SCAN;

pub(crate) fn job_summaries(session: &Session<'_>, ids: &[JobId]) -> Result<Vec<JobSummary>> {
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        found.extend(session.first(JOB_SUMMARY, [id.as_uuid()], row::summary)?);
    }
    Ok(found)
}

pub(crate) fn job_states(session: &Session<'_>, ids: &[JobId]) -> Result<Vec<(JobId, JobState)>> {
    let mut states = Vec::with_capacity(ids.len());
    for id in ids {
        states.extend(JobRow::find_state(session, *id)?.map(|state| (*id, state)));
    }
    Ok(states)
}

columns! {
    mod attempt of LIST_ATTEMPTS { attempt, lease, outcome, goes_to, worker, started_at, ended_at, error }
}

pub(crate) fn job(session: &Session<'_>, id: JobId) -> Result<Option<Job>> {
    let uuid = id.as_uuid();
    let attempts = session.all(LIST_ATTEMPTS, [uuid], |row| {
        let row = Columns(row);
        Ok(AttemptRecord {
            attempt: row.get(attempt::attempt)?,
            lease: row.get(attempt::lease)?,
            outcome: row.text(attempt::outcome)?.parse().map_err(|error| corrupt("outcome", error))?,
            led_to: row.state(attempt::goes_to)?,
            worker: row.text_or_null(attempt::worker)?.map(WorkerName::trusted),
            started_at: row.time(attempt::started_at)?,
            ended_at: row.time(attempt::ended_at)?,
            error: row.get(attempt::error)?,
        })
    })?;
    let parents = session.all(LIST_PARENTS, [uuid], |row| Columns(row).id(0))?;
    session.first(GET_JOB, [uuid], |row| row::job(row, attempts, parents))
}

pub(crate) fn list_jobs(
    session: &Session<'_>,
    filter: &JobFilter,
    page: &PageRequest<JobId>,
) -> Result<Page<JobSummary, JobId>> {
    let Range { start, end } = filter.id_range(page.cursor);
    let mut items = Vec::new();
    let mut last: Option<JobId> = None;
    let (mut scanned, mut skipped) = (0, 0);
    let mut next = None;
    session.each(list_statement(&filter.states), [end.as_uuid(), start.as_uuid()], |row| {
        let columns = Columns(row);
        let id = columns.id(job_columns::id)?;
        if items.len() == page.limit || scanned == MAX_SCAN || skipped == MAX_SKIPPED {
            // The cursor lies between the two ids, so it discloses neither: the filter may exclude both.
            next = last.map(|last| last.cursor_above(id));
            return Ok(false);
        }
        last = Some(id);
        if !filter.states.is_empty() && !filter.states.contains(&columns.state(job_columns::state)?) {
            skipped += 1;
            return Ok(true);
        }
        scanned += 1;
        items.extend(Some(row::summary(row)?).filter(|job| filter.matches(job)));
        Ok(true)
    })?;
    Ok(Page { items, next })
}

// There is no index of unfinished jobs: it would cost every job more than lists are worth. Skipping rows in other
// states is cheap, and the newest jobs come first. Dead jobs are few among all jobs that ever were, so they have an
// index.
fn list_statement(states: &[JobState]) -> Statement {
    if matches!(states, [JobState::Dead]) { LIST_DEAD_JOBS } else { LIST_JOBS }
}

columns! {
    mod log_line of JOB_LOGS { seq, at, level, attempt, message }
}

pub(crate) fn job_logs(session: &Session<'_>, id: JobId, page: &PageRequest<i64>) -> Result<Page<LogEntry, i64>> {
    if job_summaries(session, &[id])?.is_empty() {
        return Err(StoreError::JobNotFound(id).into());
    }
    let params = params![id.as_uuid(), page.cursor.unwrap_or(0), page.limit + 1];
    let mut items = session.all(JOB_LOGS, params, |row| {
        let row = Columns(row);
        Ok(LogEntry {
            seq: row.get(log_line::seq)?,
            at: row.time(log_line::at)?,
            level: row.text(log_line::level)?.parse().map_err(|error| corrupt("level", error))?,
            attempt: row.get(log_line::attempt)?,
            message: row.get(log_line::message)?,
        })
    })?;
    let more = items.len() > page.limit;
    items.truncate(page.limit);
    let next = items.last().map(|line| line.seq).filter(|_| more);
    Ok(Page { items, next })
}
