//! Selects the jobs of a claim.
//!
//! A lane is a queue and a job type. Claimable jobs are indexed by lane, so that jobs which a worker does not ask for
//! cost its claims nothing, however many there are. The claim order is one order over all lanes: a claim reads the
//! head of each lane and merges them.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap, VecDeque},
};

use orchestrix_core::{JobId, JobType, Queue};
use orchestrix_store::{ClaimRequest, Queues};
use rusqlite::{Row, params};
use uuid::Uuid;

use crate::{
    columns::{Columns, columns},
    error::Result,
    row::micros,
    session::Session,
    statement::{CLAIMABLE_JOBS, NEXT_LANE, PAUSED_QUEUES},
};

/// The maximum number of lanes that one claim reads. Lanes beyond it are read once others are empty.
const MAX_LANES: usize = 10_000;
/// The maximum number of index lookups to find them.
const MAX_LOOKUPS: usize = 20_000;
/// The maximum number of expired jobs that one claim skips.
pub(crate) const MAX_EXPIRED: usize = 1_000;

/// The position of a job in the claim order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClaimKey {
    /// The negated priority.
    pub(crate) rank: i64,
    pub(crate) eligible_at: i64,
    pub(crate) id: Uuid,
}

impl ClaimKey {
    const FIRST: Self = Self { rank: i64::MIN, eligible_at: i64::MIN, id: Uuid::nil() };
}

columns! {
    mod claimable of CLAIMABLE_JOBS {
        id, rank, eligible_at, lease_ms, timeout_ms, lease_counter, attempts, max_attempts, has_parents, payload_apart,
        tenant, options, payload, expired,
    }
}

/// A claimable job, with everything that its worker receives.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) key: ClaimKey,
    pub(crate) queue: Queue,
    pub(crate) job_type: JobType,
    pub(crate) lease_ms: i64,
    pub(crate) timeout_ms: Option<i64>,
    pub(crate) counter: i32,
    pub(crate) attempts: u16,
    pub(crate) max_attempts: u16,
    pub(crate) has_parents: bool,
    pub(crate) payload_apart: bool,
    pub(crate) tenant: String,
    pub(crate) options: Option<String>,
    pub(crate) payload: Option<String>,
}

impl Candidate {
    pub(crate) fn id(&self) -> JobId {
        JobId::from_uuid(self.key.id)
    }

    fn read(row: &Row<'_>, queue: &Queue, job_type: &JobType) -> Result<Self> {
        let row = Columns(row);
        Ok(Self {
            key: ClaimKey {
                rank: row.get(claimable::rank)?,
                eligible_at: row.get(claimable::eligible_at)?,
                id: row.get(claimable::id)?,
            },
            queue: queue.clone(),
            job_type: job_type.clone(),
            lease_ms: row.get(claimable::lease_ms)?,
            timeout_ms: row.get(claimable::timeout_ms)?,
            counter: row.get(claimable::lease_counter)?,
            attempts: row.get(claimable::attempts)?,
            max_attempts: row.get(claimable::max_attempts)?,
            has_parents: row.get(claimable::has_parents)?,
            payload_apart: row.get(claimable::payload_apart)?,
            tenant: row.get(claimable::tenant)?,
            options: row.get(claimable::options)?,
            payload: row.get(claimable::payload)?,
        })
    }
}

/// A lane that is read in small batches.
struct Lane {
    queue: Queue,
    job_type: JobType,
    /// Jobs that were read and not selected yet.
    ahead: VecDeque<Candidate>,
    /// The last job that was read.
    last_read: ClaimKey,
    exhausted: bool,
}

impl Lane {
    fn new(queue: Queue, job_type: JobType) -> Self {
        Self { queue, job_type, ahead: VecDeque::new(), last_read: ClaimKey::FIRST, exhausted: false }
    }

    fn read_ahead(&mut self, session: &Session<'_>, n: usize, expired: &mut usize) -> Result<()> {
        while !self.exhausted && self.ahead.is_empty() {
            let ClaimKey { rank, eligible_at, id } = self.last_read;
            let (queue, job_type) = (self.queue.as_str(), self.job_type.as_str());
            let params = params![queue, job_type, rank, eligible_at, id, micros(session.now), n];
            let mut read = 0;
            session.each(CLAIMABLE_JOBS, params, |row| {
                read += 1;
                let job = Candidate::read(row, &self.queue, &self.job_type)?;
                self.last_read = job.key;
                if Columns(row).get(claimable::expired)? {
                    *expired += 1;
                } else {
                    self.ahead.push_back(job);
                }
                Ok(true)
            })?;
            self.exhausted = read < n || *expired >= MAX_EXPIRED;
        }
        Ok(())
    }
}

/// The jobs that a claim selected.
pub(crate) struct Selection {
    /// In claim order.
    pub(crate) jobs: Vec<Candidate>,
    /// Whether the claim stopped early because it met too many expired jobs.
    pub(crate) truncated: bool,
}

/// Selects jobs for `request`, in claim order.
pub(crate) fn select(session: &Session<'_>, request: &ClaimRequest) -> Result<Selection> {
    let mut lanes = matching_lanes(session, request)?;
    // A claim takes about its share of every lane. Reading twice that avoids most second reads.
    let step = if lanes.len() == 1 { request.limit } else { 1 + 2 * request.limit / lanes.len().max(1) };
    let mut expired = 0;
    let mut heads = BinaryHeap::with_capacity(lanes.len());
    for (i, lane) in lanes.iter_mut().enumerate() {
        lane.read_ahead(session, step, &mut expired)?;
        heads.extend(lane.ahead.front().map(|first| Reverse((first.key, i))));
    }
    let mut jobs = Vec::new();
    while jobs.len() < request.limit
        && let Some(Reverse((_, i))) = heads.pop()
    {
        let lane = &mut lanes[i];
        jobs.extend(lane.ahead.pop_front());
        if jobs.len() < request.limit {
            lane.read_ahead(session, step, &mut expired)?;
        }
        heads.extend(lane.ahead.front().map(|first| Reverse((first.key, i))));
    }
    Ok(Selection { jobs, truncated: expired >= MAX_EXPIRED })
}

// Skips from lane to lane through the index, past those that the request does not ask for. The cost grows with the
// number of lanes in the requested queues, not with the number of jobs.
fn matching_lanes(session: &Session<'_>, request: &ClaimRequest) -> Result<Vec<Lane>> {
    let paused: BTreeSet<String> = session.all(PAUSED_QUEUES, (), |row| Columns(row).get(0))?.into_iter().collect();
    let queues: Option<BTreeSet<&str>> = match &request.queues {
        Queues::All => None,
        Queues::Named(names) => Some(names.iter().map(Queue::as_str).collect()),
    };
    let types: Option<BTreeSet<&str>> =
        request.job_types.as_ref().map(|types| types.iter().map(JobType::as_str).collect());
    let first_requested = |names: &Option<BTreeSet<&str>>, from: &str| match names {
        None => Some(from.to_owned()),
        Some(names) => names.range(from..).next().map(|name| (*name).to_owned()),
    };
    let mut lanes = Vec::new();
    let (Some(first_queue), Some(first_type)) = (first_requested(&queues, ""), first_requested(&types, "")) else {
        return Ok(lanes);
    };
    let mut at = (first_queue, first_type.clone());
    for _ in 0..MAX_LOOKUPS {
        if lanes.len() == MAX_LANES {
            break;
        }
        let Some((queue, job_type)) = next_lane(session, &at.0, &at.1)? else { break };
        let next_queue = first_requested(&queues, &queue).filter(|name| !paused.contains(name));
        let next_type = first_requested(&types, &job_type);
        at = match (next_queue, next_type) {
            (Some(name), Some(kind)) if name == queue && kind == job_type => {
                lanes.push(Lane::new(Queue::trusted(&queue), JobType::trusted(&job_type)));
                (queue, successor(&job_type))
            }
            (Some(name), Some(kind)) if name == queue => (queue, kind),
            (Some(name), _) if name != queue => (name, first_type.clone()),
            // This queue is paused, or has no more lanes of the requested types.
            _ => match first_requested(&queues, &successor(&queue)) {
                Some(name) => (name, first_type.clone()),
                None => break,
            },
        };
    }
    Ok(lanes)
}

columns! {
    mod lane of NEXT_LANE { queue, job_type }
}

/// The first lane at or after a queue and job type.
fn next_lane(session: &Session<'_>, queue: &str, job_type: &str) -> Result<Option<(String, String)>> {
    session.first(NEXT_LANE, (queue, job_type), |row| {
        let row = Columns(row);
        Ok((row.get(lane::queue)?, row.get(lane::job_type)?))
    })
}

/// The first `limit` lanes with claimable jobs, in order.
pub(crate) fn list(session: &Session<'_>, limit: usize) -> Result<Vec<(Queue, JobType)>> {
    let mut lanes: Vec<(Queue, JobType)> = Vec::new();
    while lanes.len() < limit {
        let from = lanes.last().map(|(queue, job_type)| (queue.as_str(), successor(job_type.as_str())));
        let (queue, job_type) = from.unwrap_or_default();
        let Some((queue, job_type)) = next_lane(session, queue, &job_type)? else { break };
        lanes.push((Queue::trusted(&queue), JobType::trusted(&job_type)));
    }
    Ok(lanes)
}

/// The smallest name that sorts after `name`.
fn successor(name: &str) -> String {
    format!("{name}\0")
}
