//! Lists of lanes that a claim reads, page by page, in the order of ranks and ring positions.

use std::collections::{BTreeSet, VecDeque};

use orchestrix_core::{JobType, Queue, Tenant, Weight};
use orchestrix_store::{ClaimRequest, Queues};
use rusqlite::{Row, params};

use crate::{
    columns::{Columns, columns},
    error::{Result, corrupt},
    lanes::{ClaimKey, Lane},
    session::Session,
    statement::{FIND_LANE, NEXT_LANES, NEXT_LANES_OF_PAIR, NEXT_LANES_OF_QUEUE, NEXT_LANES_OF_TYPE},
};

/// The maximum number of named pairs of a queue and a type that a claim looks up one by one.
const MAX_PAIRS: usize = 1_000;
/// The number of lanes that the first statement of a list reads. It suffices for most files.
const FIRST_PAGE: usize = 4;
/// The maximum number of lanes that one statement reads.
const MAX_PAGE: usize = 64;

columns! {
    mod lane of NEXT_LANES, NEXT_LANES_OF_QUEUE, NEXT_LANES_OF_TYPE, NEXT_LANES_OF_PAIR {
        queue, job_type, rank, ring, tenant, eligible_at, id, weight,
    }
}
columns! {
    mod pair of FIND_LANE { job_type, paused }
}

/// A rank, and a position on the ring of its tenants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) rank: i16,
    pub(crate) ring: i64,
}

impl Position {
    /// The first position of a rank.
    pub(crate) const fn start_of(rank: i16) -> Self {
        Self { rank, ring: i64::MIN }
    }

    /// The position after this one.
    pub(crate) const fn next(self) -> Self {
        match self.ring.checked_add(1) {
            Some(ring) => Self { rank: self.rank, ring },
            None => Self::start_of(self.rank + 1),
        }
    }
}

/// A lane that was read from the file.
#[derive(Debug)]
pub(crate) struct FoundLane {
    pub(crate) lane: Lane,
    pub(crate) position: Position,
    /// No claimable job of the lane precedes it.
    pub(crate) key: ClaimKey,
    /// The weight of its tenant.
    pub(crate) weight: Weight,
}

impl FoundLane {
    fn read(row: &Row<'_>) -> Result<Self> {
        let row = Columns(row);
        let lane = Lane {
            queue: Queue::trusted(row.text(lane::queue)?),
            job_type: JobType::trusted(row.text(lane::job_type)?),
            tenant: Tenant::trusted(row.text(lane::tenant)?),
            rank: row.get(lane::rank)?,
        };
        Ok(Self {
            position: Position { rank: lane.rank, ring: row.get(lane::ring)? },
            key: ClaimKey { eligible_at: row.get(lane::eligible_at)?, id: row.get(lane::id)? },
            weight: Weight::new(row.get(lane::weight)?).map_err(|error| corrupt("weight", error))?,
            lane,
        })
    }
}

/// The end of what a list has read.
#[derive(Debug, Clone)]
struct LastRead {
    position: Position,
    key: ClaimKey,
    /// The tenant of the last lane. None if no lane of the position was read.
    tenant: Option<Tenant>,
}

impl LastRead {
    /// The end before anything of a position was read.
    const fn before(position: Position) -> Self {
        Self { position, key: ClaimKey::FIRST, tenant: None }
    }
}

/// What a list of lanes contains.
#[derive(Debug, Clone, Copy)]
enum Range<'a> {
    All,
    Type(&'a JobType),
    Queue(&'a Queue),
    Pair(&'a Queue, &'a JobType),
}

/// The lanes of one index range.
#[derive(Debug)]
pub(crate) struct LaneList<'a> {
    range: Range<'a>,
    /// Lanes that were read. No lane between `start` and `last_read` is missing, except those that were taken.
    lanes: VecDeque<FoundLane>,
    /// The current one of them.
    next: usize,
    start: Position,
    last_read: LastRead,
    /// The list ends before this position.
    end: Option<Position>,
    page: usize,
    /// Whether the list has no lane after `last_read`.
    exhausted: bool,
}

impl<'a> LaneList<'a> {
    fn new(range: Range<'a>) -> Self {
        let start = Position::start_of(i16::MIN);
        Self {
            range,
            lanes: VecDeque::new(),
            next: 0,
            start,
            last_read: LastRead::before(start),
            end: None,
            page: FIRST_PAGE,
            exhausted: false,
        }
    }

    /// The current lane.
    pub(crate) fn peek(&mut self, session: &Session<'_>, wanted: &Wanted<'_>) -> Result<Option<&FoundLane>> {
        while self.next == self.lanes.len() && !self.exhausted {
            self.read_page(session, wanted)?;
        }
        Ok(self.lanes.get(self.next))
    }

    /// Takes the current lane, if it was read.
    pub(crate) fn take(&mut self) -> Option<FoundLane> {
        self.lanes.remove(self.next)
    }

    /// Moves to the first lane at or after a position, forwards or back.
    pub(crate) fn seek(&mut self, to: Position) {
        if self.start <= to && (self.exhausted || to <= self.last_read.position) {
            self.next = self.lanes.partition_point(|lane| lane.position < to);
        } else {
            *self = Self { start: to, last_read: LastRead::before(to), ..Self::new(self.range) };
        }
    }

    /// Moves past the lanes of a rank, unless the list is beyond it already.
    pub(crate) fn leave(&mut self, rank: i16) {
        let left = self.lanes.get(self.next).map_or(self.exhausted, |lane| lane.position.rank > rank);
        if !left {
            self.seek(Position::start_of(rank + 1));
        }
    }

    /// Takes all lanes of a position, of which the current lane is the first.
    pub(crate) fn take_position(&mut self, position: Position) -> Self {
        let end = self.lanes.partition_point(|lane| lane.position <= position);
        let exhausted = self.exhausted || end < self.lanes.len();
        let taken = Self {
            lanes: self.lanes.drain(self.next..end).collect(),
            start: position,
            last_read: self.last_read.clone(),
            end: Some(position.next()),
            page: self.page,
            exhausted,
            ..Self::new(self.range)
        };
        if !exhausted {
            let page = self.page;
            self.seek(position.next());
            self.page = page;
        }
        taken
    }

    fn read_page(&mut self, session: &Session<'_>, wanted: &Wanted<'_>) -> Result<()> {
        let LastRead { position: Position { rank, ring }, key: ClaimKey { eligible_at, id }, tenant } =
            self.last_read.clone();
        let (limit, mut read, mut ended) = (self.page, 0, false);
        let visit = |row: &Row<'_>| {
            let found = FoundLane::read(row)?;
            ended = self.end.is_some_and(|end| end <= found.position);
            if ended {
                return Ok(false);
            }
            read += 1;
            let tenant = Some(found.lane.tenant.clone());
            self.last_read = LastRead { position: found.position, key: found.key, tenant };
            if wanted.accepts(&found.lane) {
                self.lanes.push_back(found);
            }
            Ok(true)
        };
        match self.range {
            Range::All => session.each(NEXT_LANES, params![rank, ring, eligible_at, id, limit], visit)?,
            Range::Type(name) => {
                session.each(NEXT_LANES_OF_TYPE, params![rank, ring, eligible_at, id, limit, name.as_str()], visit)?;
            }
            Range::Queue(name) => {
                session.each(NEXT_LANES_OF_QUEUE, params![rank, ring, eligible_at, id, limit, name.as_str()], visit)?;
            }
            Range::Pair(queue, job_type) => {
                let tenant = tenant.as_ref().map_or("", Tenant::as_str);
                let params = params![rank, ring, tenant, limit, queue.as_str(), job_type.as_str()];
                session.each(NEXT_LANES_OF_PAIR, params, visit)?;
            }
        }
        self.exhausted = ended || read < limit;
        self.page = (2 * self.page).min(MAX_PAGE);
        Ok(())
    }
}

/// The names that a request asks for, each once. `None` asks for all.
pub(crate) struct Wanted<'a> {
    queues: Option<BTreeSet<&'a Queue>>,
    types: Option<BTreeSet<&'a JobType>>,
}

impl<'a> Wanted<'a> {
    pub(crate) fn of(request: &'a ClaimRequest) -> Self {
        let queues = match &request.queues {
            Queues::All => None,
            Queues::Named(names) => Some(names.iter().collect()),
        };
        Self { queues, types: request.job_types.as_ref().map(|types| types.iter().collect()) }
    }

    fn accepts(&self, lane: &Lane) -> bool {
        self.queues.as_ref().is_none_or(|queues| queues.contains(&lane.queue))
            && self.types.as_ref().is_none_or(|types| types.contains(&lane.job_type))
    }

    /// Lists that together contain every lane once.
    pub(crate) fn lists(&self, session: &Session<'_>) -> Result<Vec<LaneList<'a>>> {
        Ok(match (&self.queues, &self.types) {
            (None, None) => vec![LaneList::new(Range::All)],
            (None, Some(types)) => of_types(types),
            (Some(queues), None) => of_queues(queues),
            (Some(queues), Some(types)) if queues.len() * types.len() <= MAX_PAIRS => of_pairs(session, queues, types)?,
            // A request with so many names matches most lanes of its queues, so few are read in vain.
            (Some(queues), Some(types)) if queues.len() > types.len() => of_types(types),
            (Some(queues), Some(_)) => of_queues(queues),
        })
    }
}

fn of_types<'a>(types: &BTreeSet<&'a JobType>) -> Vec<LaneList<'a>> {
    types.iter().map(|name| LaneList::new(Range::Type(name))).collect()
}

fn of_queues<'a>(queues: &BTreeSet<&'a Queue>) -> Vec<LaneList<'a>> {
    queues.iter().map(|name| LaneList::new(Range::Queue(name))).collect()
}

// Skips through the lanes of each queue, from one named type to the next that exists.
fn of_pairs<'a>(
    session: &Session<'_>,
    queues: &BTreeSet<&'a Queue>,
    types: &BTreeSet<&'a JobType>,
) -> Result<Vec<LaneList<'a>>> {
    let mut lists = Vec::new();
    for queue in queues {
        let mut left = types.iter().copied().peekable();
        while let Some(job_type) = left.peek().copied() {
            let next = session.first(FIND_LANE, (queue.as_str(), job_type.as_str()), |row| {
                let row = Columns(row);
                Ok((JobType::trusted(row.text(pair::job_type)?), row.get(pair::paused)?))
            })?;
            // All lanes of a queue are paused, or none.
            let Some((next, false)) = next else { break };
            while left.next_if(|job_type| **job_type < next).is_some() {}
            lists.extend(
                left.next_if(|job_type| **job_type == next).map(|name| LaneList::new(Range::Pair(queue, name))),
            );
        }
    }
    Ok(lists)
}
