//! Lanes in one order. Work stands in lanes, a lane being a queue and a type, so that jobs which a worker does not want,
//! however many, cost its claims nothing. The order of claims is one over all of them.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap, VecDeque},
};

use orchestrix_core::{JobId, JobType, Queue};
use orchestrix_store::{ClaimRequest, Queues};
use rusqlite::{Row, params};
use uuid::Uuid;

use crate::{
    error::Result,
    row::{Columns, micros},
    session::Session,
    statement::{CLAIMABLE, LANE, PAUSED_QUEUES},
};

/// The most lanes one claim looks at; those past it wait until others fall empty.
const MAX_LANES: usize = 10_000;
/// The most hops on the way to them.
const MAX_HOPS: usize = 20_000;
/// The most jobs that came too late that one claim looks at.
pub(crate) const MAX_LATE: usize = 1_000;

/// Where a job stands in the order of claims: rank, time of eligibility, id.
pub(crate) type Place = (i64, i64, Uuid);

/// A claimable job, with all that its worker is handed.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) place: Place,
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
        JobId::from_uuid(self.place.2)
    }

    fn read(row: &Row<'_>, queue: &Queue, job_type: &JobType) -> Result<Self> {
        let row = Columns(row);
        Ok(Self {
            place: (row.get(1)?, row.get(2)?, row.get(0)?),
            queue: queue.clone(),
            job_type: job_type.clone(),
            lease_ms: row.get(3)?,
            timeout_ms: row.get(4)?,
            counter: row.get(5)?,
            attempts: row.get(6)?,
            max_attempts: row.get(7)?,
            has_parents: row.get(8)?,
            payload_apart: row.get(9)?,
            tenant: row.get(10)?,
            options: row.get(11)?,
            payload: row.get(12)?,
        })
    }
}

/// A lane, read ahead a little at a time.
struct Lane {
    queue: Queue,
    job_type: JobType,
    /// Read and not taken yet.
    ahead: VecDeque<Candidate>,
    /// The last that was read.
    after: Place,
    exhausted: bool,
}

impl Lane {
    fn new(queue: Queue, job_type: JobType) -> Self {
        let before_all = (i64::MIN, i64::MIN, Uuid::nil());
        Self { queue, job_type, ahead: VecDeque::new(), after: before_all, exhausted: false }
    }

    fn read_ahead(&mut self, session: &Session<'_>, n: usize, late: &mut usize) -> Result<()> {
        while !self.exhausted && self.ahead.is_empty() {
            let (rank, eligible_at, id) = self.after;
            let (queue, job_type) = (self.queue.as_str(), self.job_type.as_str());
            let params = params![queue, job_type, rank, eligible_at, id, micros(session.now), n];
            let mut looked = 0;
            session.each(CLAIMABLE, params, |row| {
                looked += 1;
                let job = Candidate::read(row, &self.queue, &self.job_type)?;
                self.after = job.place;
                if Columns(row).get(13)? {
                    *late += 1;
                } else {
                    self.ahead.push_back(job);
                }
                Ok(true)
            })?;
            self.exhausted = looked < n || *late >= MAX_LATE;
        }
        Ok(())
    }
}

/// What a claim found.
pub(crate) struct Chosen {
    /// In the order of claims.
    pub(crate) jobs: Vec<Candidate>,
    /// So many jobs came too late that it did not look behind them.
    pub(crate) cut_short: bool,
}

/// The jobs that `request` is to be given, in the order of claims.
pub(crate) fn choose(session: &Session<'_>, request: &ClaimRequest) -> Result<Chosen> {
    let mut lanes = lanes(session, request)?;
    // A claim takes about its share of every lane; twice that saves most of the second reads.
    let step = if lanes.len() == 1 { request.limit } else { 1 + 2 * request.limit / lanes.len().max(1) };
    let mut late = 0;
    let mut heads = BinaryHeap::with_capacity(lanes.len());
    for (i, lane) in lanes.iter_mut().enumerate() {
        lane.read_ahead(session, step, &mut late)?;
        heads.extend(lane.ahead.front().map(|first| Reverse((first.place, i))));
    }
    let mut jobs = Vec::new();
    while jobs.len() < request.limit
        && let Some(Reverse((_, i))) = heads.pop()
    {
        let lane = &mut lanes[i];
        jobs.extend(lane.ahead.pop_front());
        if jobs.len() < request.limit {
            lane.read_ahead(session, step, &mut late)?;
        }
        heads.extend(lane.ahead.front().map(|first| Reverse((first.place, i))));
    }
    Ok(Chosen { jobs, cut_short: late >= MAX_LATE })
}

// Hops from lane to lane, past whatever is not wanted. The cost grows with the lanes there are in the queues that are asked
// for, not with their jobs.
fn lanes(session: &Session<'_>, request: &ClaimRequest) -> Result<Vec<Lane>> {
    let paused: BTreeSet<String> = session.all(PAUSED_QUEUES, (), |row| Columns(row).get(0))?.into_iter().collect();
    let queues: Option<BTreeSet<&str>> = match &request.queues {
        Queues::All => None,
        Queues::Named(names) => Some(names.iter().map(Queue::as_str).collect()),
    };
    let types: Option<BTreeSet<&str>> =
        request.job_types.as_ref().map(|types| types.iter().map(JobType::as_str).collect());
    let wanted = |names: &Option<BTreeSet<&str>>, from: &str| match names {
        None => Some(from.to_owned()),
        Some(names) => names.range(from..).next().map(|name| (*name).to_owned()),
    };
    let mut lanes = Vec::new();
    let (Some(first_queue), Some(first_type)) = (wanted(&queues, ""), wanted(&types, "")) else { return Ok(lanes) };
    let mut at = (first_queue, first_type.clone());
    for _ in 0..MAX_HOPS {
        if lanes.len() == MAX_LANES {
            break;
        }
        let found = session.first(LANE, (&at.0, &at.1), |row| Ok((Columns(row).get(0)?, Columns(row).get(1)?)))?;
        let Some((queue, job_type)): Option<(String, String)> = found else { break };
        let next_queue = wanted(&queues, &queue).filter(|name| !paused.contains(name));
        let next_type = wanted(&types, &job_type);
        at = match (next_queue, next_type) {
            (Some(name), Some(kind)) if name == queue && kind == job_type => {
                lanes.push(Lane::new(Queue::trusted(&queue), JobType::trusted(&job_type)));
                (queue, after(&job_type))
            }
            (Some(name), Some(kind)) if name == queue => (queue, kind),
            (Some(name), _) if name != queue => (name, first_type.clone()),
            // This queue is paused, or has no more of the types that are wanted.
            _ => match wanted(&queues, &after(&queue)) {
                Some(name) => (name, first_type.clone()),
                None => break,
            },
        };
    }
    Ok(lanes)
}

/// The first lanes that there are, in order.
pub(crate) fn list(session: &Session<'_>, limit: usize) -> Result<Vec<(Queue, JobType)>> {
    let mut lanes: Vec<(Queue, JobType)> = Vec::new();
    while lanes.len() < limit {
        let from = lanes.last().map(|(queue, job_type)| (queue.as_str().to_owned(), after(job_type.as_str())));
        let (queue, job_type) = from.unwrap_or_default();
        let next = session.first(LANE, (&queue, &job_type), |row| {
            Ok((Queue::trusted(Columns(row).text(0)?), JobType::trusted(Columns(row).text(1)?)))
        })?;
        let Some(next) = next else { break };
        lanes.push(next);
    }
    Ok(lanes)
}

/// The name that comes next, whatever it may be.
fn after(name: &str) -> String {
    format!("{name}\0")
}
