//! Lanes: a queue and a job type with claimable jobs, one row each, for claims over very many of them.
//!
//! Every claimable job has a lane whose claim key does not come after its own. Jobs that enter a lane may lower the key,
//! in the transaction that makes them claimable. A claim raises it when it reads the lane in vain.

use std::collections::BTreeMap;

use orchestrix_core::{JobId, JobType, Queue, Timestamp};
use rusqlite::params;
use uuid::Uuid;

use crate::{
    columns::{Columns, columns},
    error::Result,
    row::micros,
    session::Session,
    statement::{DELETE_LANE, FIRST_OF_LANE, LOWER_LANE, NEXT_LANE},
};

/// A queue and a job type.
pub(crate) type LaneName = (Queue, JobType);

/// The position of a job in the claim order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClaimKey {
    /// The negated priority.
    pub(crate) rank: i64,
    pub(crate) eligible_at: i64,
    pub(crate) id: Uuid,
}

impl ClaimKey {
    pub(crate) const FIRST: Self = Self { rank: i64::MIN, eligible_at: i64::MIN, id: Uuid::nil() };

    pub(crate) fn new(rank: i64, eligible_at: Timestamp, id: JobId) -> Self {
        Self { rank, eligible_at: micros(eligible_at), id: id.as_uuid() }
    }
}

/// How the lanes change with the jobs that an operation, or all operations of a transaction, made claimable or
/// cancelled. Written once per lane.
#[derive(Debug, Default)]
pub(crate) struct LaneChanges(BTreeMap<LaneName, LaneChange>);

#[derive(Debug, Clone, Copy)]
enum LaneChange {
    /// Jobs entered. The first of them has this key.
    Entered(ClaimKey),
    /// A job left other than by a claim, or moved within the lane.
    Left,
}

columns! {
    mod first_job of FIRST_OF_LANE { rank, eligible_at, id }
}

impl LaneChanges {
    /// Notes a job that became claimable.
    pub(crate) fn entered(&mut self, queue: &Queue, job_type: &JobType, key: ClaimKey) {
        self.add((queue.clone(), job_type.clone()), LaneChange::Entered(key));
    }

    /// Notes a claimable job that was cancelled or got another priority.
    pub(crate) fn left(&mut self, queue: &Queue, job_type: &JobType) {
        self.add((queue.clone(), job_type.clone()), LaneChange::Left);
    }

    fn add(&mut self, lane: LaneName, change: LaneChange) {
        let known = self.0.entry(lane).or_insert(change);
        *known = match (*known, change) {
            (LaneChange::Entered(a), LaneChange::Entered(b)) => LaneChange::Entered(a.min(b)),
            _ => LaneChange::Left,
        };
    }

    /// Adds the changes of a later operation of the same transaction.
    pub(crate) fn merge(&mut self, later: Self) {
        for (lane, change) in later.0 {
            self.add(lane, change);
        }
    }

    /// Writes the changes. Writing them again has no further effect.
    pub(crate) fn write(&self, session: &Session<'_>) -> Result<()> {
        for ((queue, job_type), change) in &self.0 {
            let lane = (queue.as_str(), job_type.as_str());
            let key = match change {
                LaneChange::Entered(key) => Some(*key),
                LaneChange::Left => {
                    session.execute(DELETE_LANE, lane)?;
                    session.first(FIRST_OF_LANE, lane, |row| {
                        let row = Columns(row);
                        Ok(ClaimKey {
                            rank: row.get(first_job::rank)?,
                            eligible_at: row.get(first_job::eligible_at)?,
                            id: row.get(first_job::id)?,
                        })
                    })?
                }
            };
            if let Some(ClaimKey { rank, eligible_at, id }) = key {
                session.execute(LOWER_LANE, params![lane.0, lane.1, rank, eligible_at, id])?;
            }
        }
        Ok(())
    }
}

columns! {
    mod lane of NEXT_LANE { queue, job_type }
}

/// The first lane with claimable jobs at or after a queue and job type.
fn next_lane(session: &Session<'_>, queue: &str, job_type: &str) -> Result<Option<LaneName>> {
    session.first(NEXT_LANE, (queue, job_type), |row| {
        let row = Columns(row);
        Ok((Queue::trusted(row.text(lane::queue)?), JobType::trusted(row.text(lane::job_type)?)))
    })
}

/// The first `limit` lanes with claimable jobs, by name. A row of a lane may outlive its jobs, so this reads jobs.
pub(crate) fn list(session: &Session<'_>, limit: usize) -> Result<Vec<LaneName>> {
    let mut lanes: Vec<LaneName> = Vec::new();
    while lanes.len() < limit {
        // The smallest name that sorts after the last one.
        let from = lanes.last().map(|(queue, job_type)| (queue.as_str(), format!("{job_type}\0")));
        let (queue, job_type) = from.unwrap_or_default();
        let Some(lane) = next_lane(session, queue, &job_type)? else { break };
        lanes.push(lane);
    }
    Ok(lanes)
}
