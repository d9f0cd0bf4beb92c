//! Selects the jobs of a claim, in claim order.
//!
//! The best `k` jobs lie in at most `k` lanes, those with the first keys. A claim therefore merges two kinds of sorted
//! lists lazily: lanes by the key of their first job, and the jobs of each lane that it has reached. It reads no lane
//! behind the last job that it selects, however many there are.
//!
//! The key of a lane may be too low: its first job may have been claimed. A claim that reads such a lane in vain raises
//! its key, so each claimed job costs at most one more read.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap, VecDeque},
};

use orchestrix_core::{JobId, JobType, Queue};
use orchestrix_store::{ClaimRequest, Queues};
use rusqlite::{Row, params};

use crate::{
    columns::{Columns, columns},
    error::Result,
    lanes::{ClaimKey, LaneName},
    row::micros,
    session::{Session, Transaction},
    statement::{
        CLAIMABLE_JOBS, DELETE_LANE, FIND_LANE, NEXT_LANES, NEXT_LANES_OF_QUEUE, NEXT_LANES_OF_TYPE, RAISE_LANE,
    },
};

/// The maximum number of expired jobs that one claim skips.
pub(crate) const MAX_EXPIRED: usize = 1_000;
/// The maximum number of named pairs of a queue and a type that a claim looks up one by one.
const MAX_PAIRS: usize = 1_000;
/// The maximum number of lanes, or of jobs beyond those that a claim may need, that one statement reads.
const MAX_PAGE: usize = 64;
/// A claim that took jobs from more lanes than this raises the keys of all of them. With fewer it leaves the keys
/// alone: a write to every claim would cost more than the next claim's reads in vain.
const MAX_LOW_KEYS: usize = 16;

columns! {
    mod claimable of CLAIMABLE_JOBS {
        id, rank, eligible_at, lease_ms, timeout_ms, lease_counter, attempts, max_attempts, has_parents, payload_apart,
        tenant, options, payload, expired,
    }
}
columns! {
    mod lane of NEXT_LANES, NEXT_LANES_OF_QUEUE, NEXT_LANES_OF_TYPE, FIND_LANE {
        rank, eligible_at, id, queue, job_type,
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

    fn read(row: &Row<'_>, (queue, job_type): &LaneName) -> Result<Self> {
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

/// A lane, and a key that no claimable job of it precedes.
type KeyedLane = (ClaimKey, LaneName);

/// The lanes of one index range, read in pages.
struct LaneList<'a> {
    range: Range<'a>,
    ahead: VecDeque<KeyedLane>,
    last_read: ClaimKey,
    page: usize,
    exhausted: bool,
}

/// What a list of lanes contains.
enum Range<'a> {
    All,
    Type(&'a JobType),
    Queue(&'a Queue),
    /// Lanes that were looked up one by one.
    Found,
}

impl<'a> LaneList<'a> {
    fn new(range: Range<'a>) -> Self {
        Self { range, ahead: VecDeque::new(), last_read: ClaimKey::FIRST, page: 1, exhausted: false }
    }

    fn found(mut lanes: Vec<KeyedLane>) -> Self {
        lanes.sort_unstable_by_key(|(key, _)| *key);
        Self { ahead: lanes.into(), exhausted: true, ..Self::new(Range::Found) }
    }

    /// The key of the next lane that `wanted` accepts.
    fn next_key(&mut self, session: &Session<'_>, wanted: &Wanted<'_>) -> Result<Option<ClaimKey>> {
        while self.ahead.is_empty() && !self.exhausted {
            self.read_page(session, wanted)?;
        }
        Ok(self.ahead.front().map(|(key, _)| *key))
    }

    fn read_page(&mut self, session: &Session<'_>, wanted: &Wanted<'_>) -> Result<()> {
        let (after, limit) = (self.last_read, self.page);
        let mut read = 0;
        let visit = |row: &Row<'_>| {
            read += 1;
            let (key, name) = read_lane(row)?;
            self.last_read = key;
            if wanted.accepts(&name) {
                self.ahead.push_back((key, name));
            }
            Ok(true)
        };
        let (rank, eligible_at, id) = (after.rank, after.eligible_at, after.id);
        match self.range {
            Range::All => session.each(NEXT_LANES, params![rank, eligible_at, id, limit], visit)?,
            Range::Type(job_type) => {
                session.each(NEXT_LANES_OF_TYPE, params![rank, eligible_at, id, limit, job_type.as_str()], visit)?;
            }
            Range::Queue(queue) => {
                session.each(NEXT_LANES_OF_QUEUE, params![rank, eligible_at, id, limit, queue.as_str()], visit)?;
            }
            Range::Found => {}
        }
        self.exhausted = read < limit;
        self.page = (2 * self.page).min(MAX_PAGE);
        Ok(())
    }
}

fn read_lane(row: &Row<'_>) -> Result<KeyedLane> {
    let row = Columns(row);
    let key = ClaimKey { rank: row.get(lane::rank)?, eligible_at: row.get(lane::eligible_at)?, id: row.get(lane::id)? };
    Ok((key, (Queue::trusted(row.text(lane::queue)?), JobType::trusted(row.text(lane::job_type)?))))
}

/// The names that a request asks for, each once. `None` asks for all.
struct Wanted<'a> {
    queues: Option<BTreeSet<&'a Queue>>,
    types: Option<BTreeSet<&'a JobType>>,
}

impl<'a> Wanted<'a> {
    fn of(request: &'a ClaimRequest) -> Self {
        let queues = match &request.queues {
            Queues::All => None,
            Queues::Named(names) => Some(names.iter().collect()),
        };
        Self { queues, types: request.job_types.as_ref().map(|types| types.iter().collect()) }
    }

    fn accepts(&self, (queue, job_type): &LaneName) -> bool {
        self.queues.as_ref().is_none_or(|queues| queues.contains(queue))
            && self.types.as_ref().is_none_or(|types| types.contains(job_type))
    }

    /// Lists that together contain every lane once.
    fn lists(&self, session: &Session<'_>) -> Result<Vec<LaneList<'a>>> {
        Ok(match (&self.queues, &self.types) {
            (None, None) => vec![LaneList::new(Range::All)],
            (None, Some(types)) => types.iter().map(|name| LaneList::new(Range::Type(name))).collect(),
            (Some(queues), None) => queues.iter().map(|name| LaneList::new(Range::Queue(name))).collect(),
            (Some(queues), Some(types)) if queues.len() * types.len() <= MAX_PAIRS => {
                vec![LaneList::found(find_lanes(session, queues, types)?)]
            }
            // A request with so many names matches most lanes of its queues, so few are read in vain.
            (Some(queues), Some(types)) if queues.len() > types.len() => {
                types.iter().map(|name| LaneList::new(Range::Type(name))).collect()
            }
            (Some(queues), Some(_)) => queues.iter().map(|name| LaneList::new(Range::Queue(name))).collect(),
        })
    }
}

// Skips through the lanes of each queue, from one named type to the next that exists.
fn find_lanes(session: &Session<'_>, queues: &BTreeSet<&Queue>, types: &BTreeSet<&JobType>) -> Result<Vec<KeyedLane>> {
    let mut lanes = Vec::new();
    for queue in queues {
        let mut left = types.iter().copied().peekable();
        while let Some(job_type) = left.peek().copied() {
            let params = (queue.as_str(), job_type.as_str());
            let Some(next) = session.first(FIND_LANE, params, read_lane)? else { break };
            while left.next_if(|job_type| **job_type < next.1.1).is_some() {}
            if left.next_if(|job_type| **job_type == next.1.1).is_some() {
                lanes.push(next);
            }
        }
    }
    Ok(lanes)
}

/// A lane whose jobs a claim reads.
struct OpenLane {
    name: LaneName,
    /// Jobs that were read and not selected yet.
    ahead: VecDeque<Candidate>,
    /// The last job that was read.
    last_read: ClaimKey,
    /// The minimum number of jobs that the next statement reads.
    least: usize,
    /// Whether the lane holds no more jobs.
    ended: bool,
    has_expired: bool,
    selected: usize,
}

impl OpenLane {
    fn new(name: LaneName) -> Self {
        Self {
            name,
            ahead: VecDeque::new(),
            last_read: ClaimKey::FIRST,
            least: 1,
            ended: false,
            has_expired: false,
            selected: 0,
        }
    }

    /// Reads jobs while they precede `until`, at most `limit`, and one more: the key of the lane afterwards.
    fn read_ahead(
        &mut self,
        session: &Session<'_>,
        until: Option<ClaimKey>,
        limit: usize,
        expired: &mut usize,
    ) -> Result<()> {
        while !self.ended && self.ahead.is_empty() && *expired < MAX_EXPIRED {
            let ClaimKey { rank, eligible_at, id } = self.last_read;
            let (queue, job_type) = (self.name.0.as_str(), self.name.1.as_str());
            let (mut read, mut stopped, least) = (0, false, self.least);
            let at_most = least.max(limit + 1);
            let params = params![queue, job_type, rank, eligible_at, id, micros(session.now), at_most];
            session.each(CLAIMABLE_JOBS, params, |row| {
                read += 1;
                let job = Candidate::read(row, &self.name)?;
                self.last_read = job.key;
                stopped = read >= least && until.is_some_and(|until| job.key > until);
                if Columns(row).get(claimable::expired)? {
                    self.has_expired = true;
                    *expired += 1;
                } else {
                    self.ahead.push_back(job);
                }
                Ok(!stopped)
            })?;
            self.ended = !stopped && read < at_most;
            self.least = (2 * least).min(MAX_PAGE);
        }
        Ok(())
    }

    /// The key to store, if it is known. `Some(None)`: the lane is empty.
    fn key(&self) -> Option<Option<ClaimKey>> {
        match self.ahead.front() {
            // The expiry sweep changes the key when it cancels them.
            _ if self.has_expired => None,
            Some(job) => Some(Some(job.key)),
            None => self.ended.then_some(None),
        }
    }
}

/// The jobs that a claim selected.
pub(crate) struct Selection {
    /// In claim order.
    pub(crate) jobs: Vec<Candidate>,
    /// Whether the claim stopped early because it met too many expired jobs.
    pub(crate) truncated: bool,
    /// The lanes that it read.
    lanes: Vec<OpenLane>,
}

/// What precedes everything that was not read yet.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// The next lane of a list.
    Lanes(usize),
    /// The next job of an open lane.
    Jobs(usize),
}

/// Selects jobs for `request`, in claim order.
pub(crate) fn select(session: &Session<'_>, request: &ClaimRequest) -> Result<Selection> {
    let wanted = Wanted::of(request);
    let mut lists = wanted.lists(session)?;
    let mut lanes: Vec<OpenLane> = Vec::new();
    let mut jobs = Vec::new();
    let mut expired = 0;
    let mut next = BinaryHeap::with_capacity(lists.len());
    for (i, list) in lists.iter_mut().enumerate() {
        next.extend(list.next_key(session, &wanted)?.map(|key| Reverse((key, Source::Lanes(i)))));
    }
    while jobs.len() < request.limit
        && let Some(Reverse((_, source))) = next.pop()
    {
        let i = match source {
            Source::Lanes(i) => {
                let list = &mut lists[i];
                lanes.extend(list.ahead.pop_front().map(|(_, name)| OpenLane::new(name)));
                next.extend(list.next_key(session, &wanted)?.map(|key| Reverse((key, Source::Lanes(i)))));
                lanes.len() - 1
            }
            Source::Jobs(i) => {
                lanes[i].selected += 1;
                jobs.extend(lanes[i].ahead.pop_front());
                i
            }
        };
        let limit = request.limit - jobs.len();
        if limit > 0 {
            let until = next.peek().map(|Reverse((key, _))| *key);
            lanes[i].read_ahead(session, until, limit, &mut expired)?;
        }
        next.extend(lanes[i].ahead.front().map(|job| Reverse((job.key, Source::Jobs(i)))));
    }
    Ok(Selection { jobs, truncated: expired >= MAX_EXPIRED, lanes })
}

impl Transaction<'_> {
    /// Raises the keys of the lanes that a claim read, so that later claims do not read them in vain.
    pub(crate) fn raise_lanes(&mut self, selection: &Selection) -> Result<()> {
        let many = selection.lanes.len() > MAX_LOW_KEYS;
        for lane in selection.lanes.iter().filter(|lane| many || lane.selected == 0) {
            let (queue, job_type) = (lane.name.0.as_str(), lane.name.1.as_str());
            match lane.key() {
                Some(Some(ClaimKey { rank, eligible_at, id })) => {
                    self.write_one(RAISE_LANE, params![queue, job_type, rank, eligible_at, id])?;
                }
                Some(None) => self.write_one(DELETE_LANE, [queue, job_type])?,
                None => {}
            }
        }
        Ok(())
    }
}
