//! Reads jobs, logs and queue depths.

use std::{collections::BTreeMap, ops::Range};

use orchestrix_core::{AttemptRecord, Job, JobId, JobState, Queue, WorkerName};
use orchestrix_store::{
    JobFilter, JobSummary, LogEntry, Page, PageRequest, QueueDepth, StoreError, clock::until, inspect::MAX_SCAN,
};
use rusqlite::params;

use crate::{
    columns::{Columns, columns},
    error::{Result, corrupt},
    row::{self, JobRow, job_columns, timestamp},
    session::Session,
    statement::{
        ATTEMPTS, DEPTH, DEPTHS, GET, IS_PAUSED, LIST, LIST_DEAD, LOGS, OLDEST, PARENTS, PAUSED_QUEUES_AFTER, SUMMARY,
        Statement,
    },
};

/// The maximum number of rows in other states that one page skips.
const MAX_SKIPPED: usize = 10 * MAX_SCAN;
/// The maximum number of lanes and ranks that are read for the age of queues.
const MAX_AGE_LOOKUPS: usize = 10_000;

pub(crate) fn job_summaries(session: &Session<'_>, ids: &[JobId]) -> Result<Vec<JobSummary>> {
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        found.extend(session.first(SUMMARY, [id.as_uuid()], row::summary)?);
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
    mod attempt of ATTEMPTS { attempt, lease, outcome, goes_to, worker, started_at, ended_at, error }
}

pub(crate) fn job(session: &Session<'_>, id: JobId) -> Result<Option<Job>> {
    let uuid = id.as_uuid();
    let attempts = session.all(ATTEMPTS, [uuid], |row| {
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
    let parents = session.all(PARENTS, [uuid], |row| Columns(row).id(0))?;
    session.first(GET, [uuid], |row| row::job(row, attempts, parents))
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
    if matches!(states, [JobState::Dead]) { LIST_DEAD } else { LIST }
}

columns! {
    mod log_line of LOGS { seq, at, level, attempt, message }
}

pub(crate) fn job_logs(session: &Session<'_>, id: JobId, page: &PageRequest<i64>) -> Result<Page<LogEntry, i64>> {
    if job_summaries(session, &[id])?.is_empty() {
        return Err(StoreError::JobNotFound(id).into());
    }
    let params = params![id.as_uuid(), page.cursor.unwrap_or(0), page.limit + 1];
    let mut items = session.all(LOGS, params, |row| {
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

columns! {
    mod depth_columns of DEPTH, DEPTHS { queue, state, n }
}

type Depths = BTreeMap<Queue, QueueDepth>;

pub(crate) fn queue_depths(session: &Session<'_>, page: &PageRequest<Queue>) -> Result<Page<QueueDepth, Queue>> {
    let after = page.cursor.as_ref().map_or("", Queue::as_str);
    let mut queues = Depths::new();
    session.each(DEPTHS, [after], |row| {
        let row = Columns(row);
        let queue = Queue::trusted(row.text(depth_columns::queue)?);
        if queues.len() > page.limit && !queues.contains_key(&queue) {
            return Ok(false);
        }
        add_count(&mut queues, queue, &row)?;
        Ok(true)
    })?;
    session.each(PAUSED_QUEUES_AFTER, params![after, page.limit + 1], |row| {
        let queue = Queue::trusted(Columns(row).text(0)?);
        queues.entry(queue.clone()).or_insert_with(|| empty_depth(queue)).paused = true;
        Ok(true)
    })?;
    let next = match queues.keys().nth(page.limit).cloned() {
        Some(beyond) => {
            queues.split_off(&beyond);
            queues.keys().next_back().cloned()
        }
        None => None,
    };
    add_ages(session, &mut queues)?;
    Ok(Page { items: queues.into_values().collect(), next })
}

pub(crate) fn queue_depth(session: &Session<'_>, queue: &Queue) -> Result<Option<QueueDepth>> {
    let mut queues = Depths::new();
    session.each(DEPTH, [queue.as_str()], |row| {
        add_count(&mut queues, queue.clone(), &Columns(row))?;
        Ok(true)
    })?;
    if session.first(IS_PAUSED, [queue.as_str()], |row| Columns(row).get(0))?.unwrap_or(false) {
        queues.entry(queue.clone()).or_insert_with(|| empty_depth(queue.clone())).paused = true;
    }
    add_ages(session, &mut queues)?;
    Ok(queues.into_values().next())
}

fn empty_depth(queue: Queue) -> QueueDepth {
    QueueDepth { queue, paused: false, counts: BTreeMap::new(), oldest: None }
}

fn add_count(queues: &mut Depths, queue: Queue, row: &Columns<'_>) -> Result<()> {
    let depth = queues.entry(queue.clone()).or_insert_with(|| empty_depth(queue));
    depth.counts.insert(row.state(depth_columns::state)?, row.get(depth_columns::n)?);
    Ok(())
}

columns! {
    mod oldest of OLDEST { queue, job_type, rank, eligible_at }
}

// The first job of every lane and rank is the oldest there. Skipping from one to the next through the index makes the
// cost grow with lanes and ranks, not with jobs.
fn add_ages(session: &Session<'_>, queues: &mut Depths) -> Result<()> {
    let (Some(first), Some(last)) = (queues.keys().next(), queues.keys().next_back().cloned()) else { return Ok(()) };
    // No job type is empty, so this sorts before the first lane of the first queue.
    let mut at = (first.to_string(), String::new(), i64::MIN);
    for _ in 0..MAX_AGE_LOOKUPS {
        let found = session.first(OLDEST, (&at.0, &at.1, at.2, last.as_str()), |row| {
            let row = Columns(row);
            let position = (row.get(oldest::queue)?, row.get(oldest::job_type)?, row.get(oldest::rank)?);
            Ok((position, row.get::<i64>(oldest::eligible_at)?))
        })?;
        let Some((position, eligible_at)): Option<((String, String, i64), i64)> = found else { break };
        if let Some(depth) = queues.get_mut(position.0.as_str()) {
            let waited = until(timestamp(eligible_at)?, session.now);
            depth.oldest = Some(depth.oldest.map_or(waited, |longest| longest.max(waited)));
        }
        at = position;
    }
    Ok(())
}
