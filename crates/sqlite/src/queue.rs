//! Queues: pause, resume, depths.

use std::collections::BTreeMap;

use orchestrix_core::{JobState, JobType, Queue, Tenant};
use orchestrix_store::{Page, PageRequest, QueueDepth, clock::until};
use rusqlite::params;

use crate::{
    columns::{Columns, columns},
    error::Result,
    lanes::Lane,
    row::timestamp,
    session::{Session, Transaction},
    statement::{
        IS_PAUSED, OLDEST_LANES, PAUSE_LANES, PAUSE_QUEUE, PAUSED_QUEUES, PAUSED_QUEUES_AFTER, QUEUE_DEPTH,
        QUEUE_DEPTHS, RESUME_QUEUE,
    },
};

/// The maximum number of lanes that are read for the age of queues.
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
    mod lane of OLDEST_LANES { job_type, tenant, rank, eligible_at }
}

fn add_ages(session: &Session<'_>, queues: &mut Depths) -> Result<()> {
    let mut lookups = MAX_AGE_LOOKUPS;
    for depth in queues.values_mut().filter(|depth| depth.counts.contains_key(&JobState::Pending)) {
        let oldest = oldest(session, &depth.queue, &mut lookups)?;
        depth.oldest = oldest.map(timestamp).transpose()?.map(|eligible_at| until(eligible_at, session.now));
    }
    Ok(())
}

// When the oldest claimable job of a queue became eligible. The key of a lane may be too low, so this reads the first
// jobs of lanes until all keys that follow are later. If that takes too many lookups, a job may be older, or no age is
// known.
fn oldest(session: &Session<'_>, queue: &Queue, lookups: &mut usize) -> Result<Option<i64>> {
    let mut oldest: Option<i64> = None;
    let limit = *lookups;
    session.each(OLDEST_LANES, params![queue.as_str(), limit], |row| {
        let row = Columns(row);
        let not_after: i64 = row.get(lane::eligible_at)?;
        if oldest.is_some_and(|oldest| oldest <= not_after) {
            return Ok(false);
        }
        *lookups -= 1;
        let lane = Lane {
            queue: queue.clone(),
            job_type: JobType::trusted(row.text(lane::job_type)?),
            tenant: Tenant::trusted(row.text(lane::tenant)?),
            rank: row.get(lane::rank)?,
        };
        oldest = oldest.into_iter().chain(lane.first_job(session)?.map(|first| first.eligible_at)).min();
        Ok(true)
    })?;
    Ok(oldest)
}
