//! Reading jobs, logs and depths.

use std::{collections::BTreeMap, ops::Range};

use orchestrix_core::{AttemptRecord, Job, JobId, JobState, Queue, WorkerName};
use orchestrix_store::{
    JobFilter, JobSummary, LogEntry, Page, PageRequest, QueueDepth, StoreError, clock::until, inspect::MAX_SCAN,
};
use rusqlite::params;

use crate::{
    error::{Result, corrupt},
    row::{self, Columns, timestamp},
    session::Session,
    statement::{
        ATTEMPTS, DEPTH, DEPTHS, FIND, GET, IS_PAUSED, LIST, LIST_DEAD, LOGS, NEXT_PAUSED, OLDEST, PARENTS, SUMMARY,
        Statement,
    },
};

/// The rows in other states that are passed over for one page.
const MAX_PASSED: usize = 10 * MAX_SCAN;
/// The lanes and ranks looked at for the age of queues.
const MAX_HOPS: usize = 10_000;

pub(crate) fn summaries(session: &Session<'_>, ids: &[JobId]) -> Result<Vec<JobSummary>> {
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        found.extend(session.first(SUMMARY, [id.as_uuid()], row::summary)?);
    }
    Ok(found)
}

pub(crate) fn states(session: &Session<'_>, ids: &[JobId]) -> Result<Vec<(JobId, JobState)>> {
    let mut states = Vec::with_capacity(ids.len());
    for id in ids {
        states.extend(session.first(FIND, [id.as_uuid()], |row| Ok((*id, Columns(row).state(0)?)))?);
    }
    Ok(states)
}

pub(crate) fn get(session: &Session<'_>, id: JobId) -> Result<Option<Job>> {
    let uuid = id.as_uuid();
    let attempts = session.all(ATTEMPTS, [uuid], |row| {
        let row = Columns(row);
        Ok(AttemptRecord {
            attempt: row.get(0)?,
            lease: row.get(1)?,
            outcome: row.text(2)?.parse().map_err(|error| corrupt("outcome", error))?,
            led_to: row.state(3)?,
            worker: row.text_or_null(4)?.map(WorkerName::trusted),
            started_at: row.time(5)?,
            ended_at: row.time(6)?,
            error: row.get(7)?,
        })
    })?;
    let parents = session.all(PARENTS, [uuid], |row| Columns(row).id(0))?;
    session.first(GET, [uuid], |row| row::job(row, attempts, parents))
}

pub(crate) fn list(
    session: &Session<'_>,
    filter: &JobFilter,
    page: &PageRequest<JobId>,
) -> Result<Page<JobSummary, JobId>> {
    let Range { start, end } = filter.id_range(page.cursor);
    let mut items = Vec::new();
    let mut last: Option<JobId> = None;
    let (mut looked, mut passed) = (0, 0);
    let mut next = None;
    session.each(source(&filter.states), [end.as_uuid(), start.as_uuid()], |row| {
        let id = Columns(row).id(0)?;
        if items.len() == page.limit || looked == MAX_SCAN || passed == MAX_PASSED {
            // Neither may be one of those that were asked for.
            next = last.map(|last| last.cursor_above(id));
            return Ok(false);
        }
        last = Some(id);
        if !filter.states.is_empty() && !filter.states.contains(&Columns(row).state(1)?) {
            passed += 1;
            return Ok(true);
        }
        looked += 1;
        items.extend(Some(row::summary(row)?).filter(|job| filter.matches(job)));
        Ok(true)
    })?;
    Ok(Page { items, next })
}

// An index of what is not finished would cost every job more than lists are worth: rows in other states are passed over,
// which is cheap, and the newest come first. The dead are few, and looked for among all that ever were.
fn source(states: &[JobState]) -> Statement {
    if matches!(states, [JobState::Dead]) { LIST_DEAD } else { LIST }
}

pub(crate) fn logs(session: &Session<'_>, id: JobId, page: &PageRequest<i64>) -> Result<Page<LogEntry, i64>> {
    if summaries(session, &[id])?.is_empty() {
        return Err(StoreError::JobNotFound(id).into());
    }
    let params = params![id.as_uuid(), page.cursor.unwrap_or(0), page.limit + 1];
    let mut items = session.all(LOGS, params, |row| {
        let row = Columns(row);
        Ok(LogEntry {
            seq: row.get(0)?,
            at: row.time(1)?,
            level: row.text(2)?.parse().map_err(|error| corrupt("level", error))?,
            attempt: row.get(3)?,
            message: row.get(4)?,
        })
    })?;
    let more = items.len() > page.limit;
    items.truncate(page.limit);
    let next = items.last().map(|line| line.seq).filter(|_| more);
    Ok(Page { items, next })
}

pub(crate) fn depths(session: &Session<'_>, page: &PageRequest<Queue>) -> Result<Page<QueueDepth, Queue>> {
    let after = page.cursor.as_ref().map_or("", Queue::as_str);
    let mut queues: BTreeMap<Queue, QueueDepth> = BTreeMap::new();
    session.each(DEPTHS, [after], |row| {
        let row = Columns(row);
        let queue = Queue::trusted(row.text(0)?);
        if queues.len() > page.limit && !queues.contains_key(&queue) {
            return Ok(false);
        }
        count(&mut queues, queue, &row)?;
        Ok(true)
    })?;
    session.each(NEXT_PAUSED, params![after, page.limit + 1], |row| {
        let queue = Queue::trusted(Columns(row).text(0)?);
        queues.entry(queue.clone()).or_insert_with(|| empty(queue)).paused = true;
        Ok(true)
    })?;
    let next = match queues.keys().nth(page.limit).cloned() {
        Some(beyond) => {
            queues.split_off(&beyond);
            queues.keys().next_back().cloned()
        }
        None => None,
    };
    age(session, &mut queues)?;
    Ok(Page { items: queues.into_values().collect(), next })
}

pub(crate) fn depth(session: &Session<'_>, queue: &Queue) -> Result<Option<QueueDepth>> {
    let mut queues: BTreeMap<Queue, QueueDepth> = BTreeMap::new();
    session.each(DEPTH, [queue.as_str()], |row| {
        count(&mut queues, queue.clone(), &Columns(row))?;
        Ok(true)
    })?;
    if session.first(IS_PAUSED, [queue.as_str()], |row| Columns(row).get(0))?.unwrap_or(false) {
        queues.entry(queue.clone()).or_insert_with(|| empty(queue.clone())).paused = true;
    }
    age(session, &mut queues)?;
    Ok(queues.into_values().next())
}

fn empty(queue: Queue) -> QueueDepth {
    QueueDepth { queue, paused: false, counts: BTreeMap::new(), oldest: None }
}

fn count(queues: &mut BTreeMap<Queue, QueueDepth>, queue: Queue, row: &Columns<'_>) -> Result<()> {
    let depth = queues.entry(queue.clone()).or_insert_with(|| empty(queue));
    depth.counts.insert(row.state(1)?, row.get(2)?);
    Ok(())
}

// The first of every lane and rank is the oldest there, and the index is hopped through from the first of the queues to the last, so
// the cost grows with lanes and ranks, not with jobs.
fn age(session: &Session<'_>, queues: &mut BTreeMap<Queue, QueueDepth>) -> Result<()> {
    let (Some(first), Some(last)) = (queues.keys().next(), queues.keys().next_back().cloned()) else { return Ok(()) };
    // No type is empty, so this is before the first lane of that queue.
    let mut at = (first.to_string(), String::new(), i64::MIN);
    for _ in 0..MAX_HOPS {
        let found = session.first(OLDEST, (&at.0, &at.1, at.2, last.as_str()), |row| {
            let row = Columns(row);
            Ok(((row.get(0)?, row.get(1)?, row.get(2)?), row.get::<i64>(3)?))
        })?;
        let Some((place, eligible_at)): Option<((String, String, i64), i64)> = found else { break };
        if let Some(depth) = queues.get_mut(place.0.as_str()) {
            let waited = until(timestamp(eligible_at)?, session.now);
            depth.oldest = Some(depth.oldest.map_or(waited, |longest| longest.max(waited)));
        }
        at = place;
    }
    Ok(())
}
