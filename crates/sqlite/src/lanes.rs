//! Lanes: the claimable jobs of one queue, type, tenant and priority, one row each, for claims over very many of them.
//!
//! Every claimable job has a lane whose claim key does not come after its own. Jobs that enter a lane may lower the
//! key, in the transaction that makes them claimable. A claim raises it when it reads the lane in vain.

use std::collections::{BTreeMap, VecDeque};

use orchestrix_core::{JobId, JobType, Queue, Tenant, Timestamp, turn::ring_position};
use rusqlite::params;
use uuid::Uuid;

use crate::{
    columns::{Columns, columns},
    error::Result,
    row::micros,
    session::Session,
    statement::{DELETE_LANE, FIRST_OF_LANE, LOWER_LANE, NEXT_LANE, RAISE_LANE},
};

/// The maximum number of lanes that a process leaves empty before it deletes them.
const MAX_EMPTY_LANES: usize = 64;

/// A queue, a job type, a tenant and a priority.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lane {
    pub(crate) queue: Queue,
    pub(crate) job_type: JobType,
    pub(crate) tenant: Tenant,
    /// The negated priority.
    pub(crate) rank: i16,
}

/// The position of a job in the order of its tenant's jobs of one priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClaimKey {
    pub(crate) eligible_at: i64,
    pub(crate) id: Uuid,
}

impl ClaimKey {
    pub(crate) const FIRST: Self = Self { eligible_at: i64::MIN, id: Uuid::nil() };

    pub(crate) fn new(eligible_at: Timestamp, id: JobId) -> Self {
        Self { eligible_at: micros(eligible_at), id: id.as_uuid() }
    }
}

columns! {
    mod first_job of FIRST_OF_LANE { eligible_at, id }
}

impl Lane {
    /// The claim key of its first job.
    pub(crate) fn first_job(&self, session: &Session<'_>) -> Result<Option<ClaimKey>> {
        let params = params![self.queue.as_str(), self.job_type.as_str(), self.tenant.as_str(), self.rank];
        session.first(FIRST_OF_LANE, params, |row| {
            let row = Columns(row);
            Ok(ClaimKey { eligible_at: row.get(first_job::eligible_at)?, id: row.get(first_job::id)? })
        })
    }

    /// Deletes its row.
    pub(crate) fn delete(&self, session: &Session<'_>) -> Result<()> {
        let (queue, job_type, tenant) = (self.queue.as_str(), self.job_type.as_str(), self.tenant.as_str());
        session.execute(DELETE_LANE, params![queue, job_type, self.rank, ring_position(&self.tenant), tenant])?;
        Ok(())
    }

    /// Creates its row, or lowers the key to `key`.
    fn lower(&self, session: &Session<'_>, key: ClaimKey) -> Result<()> {
        let (queue, job_type, tenant) = (self.queue.as_str(), self.job_type.as_str(), self.tenant.as_str());
        let ring = ring_position(&self.tenant);
        session.execute(LOWER_LANE, params![queue, job_type, self.rank, ring, tenant, key.eligible_at, key.id])?;
        Ok(())
    }

    /// Raises the key to that of its first job.
    pub(crate) fn raise(&self, session: &Session<'_>, first: ClaimKey) -> Result<()> {
        let (queue, job_type, tenant) = (self.queue.as_str(), self.job_type.as_str(), self.tenant.as_str());
        let ring = ring_position(&self.tenant);
        session.execute(RAISE_LANE, params![queue, job_type, self.rank, ring, tenant, first.eligible_at, first.id])?;
        Ok(())
    }
}

/// How the lanes change with the jobs that an operation, or all operations of a transaction, made claimable or
/// cancelled. Written once per lane.
#[derive(Debug, Default)]
pub(crate) struct LaneChanges(BTreeMap<Lane, LaneChange>);

#[derive(Debug, Clone, Copy)]
enum LaneChange {
    /// Jobs entered. The first of them has this key.
    Entered(ClaimKey),
    /// A job left other than by a claim.
    Left,
}

impl LaneChanges {
    /// Notes a job that became claimable.
    pub(crate) fn entered(&mut self, lane: Lane, key: ClaimKey) {
        self.add(lane, LaneChange::Entered(key));
    }

    /// Notes a claimable job that was cancelled or got another priority.
    pub(crate) fn left(&mut self, lane: Lane) {
        self.add(lane, LaneChange::Left);
    }

    fn add(&mut self, lane: Lane, change: LaneChange) {
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
        for (lane, change) in &self.0 {
            let key = match change {
                LaneChange::Entered(key) => Some(*key),
                LaneChange::Left => {
                    lane.delete(session)?;
                    lane.first_job(session)?
                }
            };
            if let Some(key) = key {
                lane.lower(session, key)?;
            }
        }
        Ok(())
    }
}

/// The lanes that claims of this process may have emptied and left in the file, the latest last.
///
/// A lane is left because its next job would only write it again. Their number is bounded because a claim that goes
/// round the ring would read all of them in vain.
#[derive(Debug, Default)]
pub(crate) struct EmptyLanes(VecDeque<Lane>);

impl EmptyLanes {
    /// Adds a lane. Returns another one to check, if there are too many.
    pub(crate) fn add(&mut self, lane: &Lane) -> Option<Lane> {
        let known = self.0.iter().position(|known| known == lane).and_then(|i| self.0.remove(i));
        self.0.push_back(known.unwrap_or_else(|| lane.clone()));
        if self.0.len() > MAX_EMPTY_LANES { self.0.pop_front() } else { None }
    }
}

columns! {
    mod lane of NEXT_LANE { queue, job_type }
}

/// The first queue and type with claimable jobs at or after these.
fn next_lane(session: &Session<'_>, queue: &str, job_type: &str) -> Result<Option<(Queue, JobType)>> {
    session.first(NEXT_LANE, (queue, job_type), |row| {
        let row = Columns(row);
        Ok((Queue::trusted(row.text(lane::queue)?), JobType::trusted(row.text(lane::job_type)?)))
    })
}

/// The first `limit` queues and types with claimable jobs, by name. A row of a lane may outlive its jobs, so this reads
/// jobs.
pub(crate) fn list(session: &Session<'_>, limit: usize) -> Result<Vec<(Queue, JobType)>> {
    let mut lanes: Vec<(Queue, JobType)> = Vec::new();
    while lanes.len() < limit {
        // The smallest name that sorts after the last one.
        let from = lanes.last().map(|(queue, job_type)| (queue.as_str(), format!("{job_type}\0")));
        let (queue, job_type) = from.unwrap_or_default();
        let Some(lane) = next_lane(session, queue, &job_type)? else { break };
        lanes.push(lane);
    }
    Ok(lanes)
}
