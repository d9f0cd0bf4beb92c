//! Queues: pause, resume, depths.

use std::collections::BTreeMap;

use orchestrix_core::Queue;
use orchestrix_store::{Page, PageRequest, QueueDepth, clock::until};
use rusqlite::params;

use crate::{
    columns::{Columns, columns},
    error::Result,
    row::timestamp,
    session::{Session, Transaction},
    statement::{
        IS_PAUSED, OLDEST_CLAIMABLE, PAUSE_LANES, PAUSE_QUEUE, PAUSED_QUEUES, PAUSED_QUEUES_AFTER, QUEUE_DEPTH,
        QUEUE_DEPTHS, RESUME_QUEUE,
    },
};

/// The maximum number of lanes and ranks that are read for the age of queues.
const MAX_AGE_LOOKUPS: usize = 10_000;

impl Transaction<'_> {
    pub(crate) fn pause_queue(&mut self, queue: &Queue) -> Result<()> {
        self.write_one(PAUSE_QUEUE, [queue.as_str()])?;
        self.write(PAUSE_LANES, params![queue.as_str(), true])?;
        Ok(())
    }

    pub(crate) fn resume_queue(&mut self, queue: &Queue) -> Result<()> {
        self.write(RESUME_QUEUE, [queue.as_str()])?;
        self.write(PAUSE_LANES, params![queue.as_str(), false])?;
        self.effects.commit.queue_claimable(queue.clone());
        Ok(())
    }
}

pub(crate) fn list_paused(session: &Session<'_>) -> Result<Vec<Queue>> {
    session.all(PAUSED_QUEUES, (), |row| Ok(Queue::trusted(Columns(row).text(0)?)))
}

columns! {
    mod depth_columns of QUEUE_DEPTH, QUEUE_DEPTHS { queue, state, n }
}

type Depths = BTreeMap<Queue, QueueDepth>;

pub(crate) fn depths(session: &Session<'_>, page: &PageRequest<Queue>) -> Result<Page<QueueDepth, Queue>> {
    let after = page.cursor.as_ref().map_or("", Queue::as_str);
    let mut queues = Depths::new();
    session.each(QUEUE_DEPTHS, [after], |row| {
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

pub(crate) fn depth(session: &Session<'_>, queue: &Queue) -> Result<Option<QueueDepth>> {
    let mut queues = Depths::new();
    session.each(QUEUE_DEPTH, [queue.as_str()], |row| {
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
    mod oldest of OLDEST_CLAIMABLE { queue, job_type, rank, eligible_at }
}

// The first job of every lane and rank is the oldest there. Skipping from one to the next through the index makes the
// cost grow with lanes and ranks, not with jobs.
fn add_ages(session: &Session<'_>, queues: &mut Depths) -> Result<()> {
    let (Some(first), Some(last)) = (queues.keys().next(), queues.keys().next_back().cloned()) else { return Ok(()) };
    // No job type is empty, so this sorts before the first lane of the first queue.
    let mut at = (first.to_string(), String::new(), i64::MIN);
    for _ in 0..MAX_AGE_LOOKUPS {
        let found = session.first(OLDEST_CLAIMABLE, (&at.0, &at.1, at.2, last.as_str()), |row| {
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
