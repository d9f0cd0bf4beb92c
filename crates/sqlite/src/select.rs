//! Selects the jobs of a claim: rank by rank, the tenants of each rank in turns round the ring, and the jobs of each
//! tenant in the order of their claim keys. `orchestrix_core::turn` describes the turns.
//!
//! A claim reads lazily, so it reads no more lanes than it selects jobs, however many there are. It finds the tenants
//! of a rank by the first lane at each ring position. The jobs of a tenant are a merge of two kinds of sorted lists:
//! its lanes by the key of their first job, and the jobs of each lane that the claim has reached.
//!
//! The key of a lane may be too low: its first job may have been claimed. A claim that reads such a lane in vain raises
//! its key, so each claimed job costs at most one more read.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    ops::Range,
};

use orchestrix_core::{
    JobId,
    turn::{Turn, Turns, allowance},
};
use orchestrix_store::ClaimRequest;
use rusqlite::{Row, params};

use crate::{
    columns::{Columns, columns},
    error::Result,
    lane_list::{LaneList, Position, Wanted},
    lanes::{ClaimKey, EmptyLanes, Lane},
    row::micros,
    session::{Session, Transaction},
    statement::CLAIMABLE_JOBS,
};

/// The maximum number of expired jobs that one claim skips.
pub(crate) const MAX_EXPIRED: usize = 1_000;
/// The maximum number of jobs beyond those that a claim may need that one statement reads.
const MAX_PAGE: usize = 64;
/// A claim that took jobs from more lanes than this raises the keys of all of them. With fewer it leaves the keys
/// alone: a write to every claim would cost more than the next claim's reads in vain.
const MAX_LOW_KEYS: usize = 16;

/// What a process remembers between claims. Losing it breaks no promise.
#[derive(Debug)]
pub(crate) struct ClaimHints {
    pub(crate) turns: Turns,
    pub(crate) empty_lanes: EmptyLanes,
}

impl ClaimHints {
    /// Remembers nothing. Turns start at this position of the ring.
    pub(crate) fn starting_at(position: i64) -> Self {
        Self { turns: Turns::starting_at(position), empty_lanes: EmptyLanes::default() }
    }
}

columns! {
    mod claimable of CLAIMABLE_JOBS {
        id, eligible_at, lease_ms, timeout_ms, lease_counter, attempts, max_attempts, has_parents, payload_apart,
        options, payload, expired,
    }
}

/// A claimable job, with everything that its worker receives.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) lane: Lane,
    pub(crate) key: ClaimKey,
    pub(crate) lease_ms: i64,
    pub(crate) timeout_ms: Option<i64>,
    pub(crate) counter: i32,
    pub(crate) attempts: u16,
    pub(crate) max_attempts: u16,
    pub(crate) has_parents: bool,
    pub(crate) payload_apart: bool,
    pub(crate) options: Option<String>,
    pub(crate) payload: Option<String>,
}

impl Candidate {
    pub(crate) fn id(&self) -> JobId {
        JobId::from_uuid(self.key.id)
    }

    fn read(row: &Row<'_>, lane: &Lane) -> Result<Self> {
        let row = Columns(row);
        Ok(Self {
            lane: lane.clone(),
            key: ClaimKey { eligible_at: row.get(claimable::eligible_at)?, id: row.get(claimable::id)? },
            lease_ms: row.get(claimable::lease_ms)?,
            timeout_ms: row.get(claimable::timeout_ms)?,
            counter: row.get(claimable::lease_counter)?,
            attempts: row.get(claimable::attempts)?,
            max_attempts: row.get(claimable::max_attempts)?,
            has_parents: row.get(claimable::has_parents)?,
            payload_apart: row.get(claimable::payload_apart)?,
            options: row.get(claimable::options)?,
            payload: row.get(claimable::payload)?,
        })
    }
}

/// A lane whose jobs a claim reads.
struct OpenLane {
    lane: Lane,
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
    fn new(lane: Lane) -> Self {
        Self {
            lane,
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
            let ClaimKey { eligible_at, id } = self.last_read;
            let Lane { queue, job_type, tenant, rank } = &self.lane;
            let (queue, job_type, tenant) = (queue.as_str(), job_type.as_str(), tenant.as_str());
            let (mut read, mut stopped, least) = (0, false, self.least);
            let at_most = least.max(limit + 1);
            let params = params![queue, job_type, tenant, rank, eligible_at, id, micros(session.now), at_most];
            session.each(CLAIMABLE_JOBS, params, |row| {
                read += 1;
                let job = Candidate::read(row, &self.lane)?;
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

/// What precedes everything of a tenant that was not read yet.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// The next lane of a list.
    Lanes(usize),
    /// The next job of an open lane.
    Jobs(usize),
}

/// A tenant whose turn has come, with the jobs that a claim has not selected yet.
struct WaitingTenant<'a> {
    position: Position,
    /// How many jobs it gets in one turn.
    allowance: usize,
    /// The lanes of the tenant that were not opened yet.
    lists: Vec<LaneList<'a>>,
    next: BinaryHeap<Reverse<(ClaimKey, Source)>>,
}

/// The tenants with lanes of one rank, once round the ring, lazily.
struct Ring<'r, 'a> {
    session: &'r Session<'r>,
    wanted: &'r Wanted<'a>,
    lists: &'r mut [LaneList<'a>],
    start: Position,
    /// The parts of each list that are left, the current one last.
    parts: Vec<Vec<Range<Position>>>,
    /// The current position of each list, by its distance from the start.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    /// Lists whose current position is not in `next` yet.
    moved: Vec<usize>,
}

impl<'r, 'a> Ring<'r, 'a> {
    /// Begins at a position. No list has a lane of a lower rank ahead.
    fn new(
        session: &'r Session<'r>,
        wanted: &'r Wanted<'a>,
        lists: &'r mut [LaneList<'a>],
        start: Position,
    ) -> Result<Self> {
        let end = Position::start_of(start.rank + 1);
        let mut parts = Vec::with_capacity(lists.len());
        for list in &mut *lists {
            let first = list.peek(session, wanted)?.map(|lane| lane.position).filter(|first| *first < end);
            let from_start = first.map(|_| start..end);
            let before_start = first.filter(|first| *first < start).map(|first| first..start);
            if from_start.is_some() {
                list.seek(start);
            }
            parts.push(before_start.into_iter().chain(from_start).collect());
        }
        let moved = (0..lists.len()).collect();
        Ok(Self { session, wanted, lists, start, parts, next: BinaryHeap::new(), moved })
    }

    fn has_next(&mut self) -> Result<bool> {
        while let Some(i) = self.moved.pop() {
            let list = &mut self.lists[i];
            while let Some(part) = self.parts[i].last() {
                let lane = list.peek(self.session, self.wanted)?;
                if let Some(lane) = lane.filter(|lane| lane.position < part.end) {
                    let distance = lane.position.ring.wrapping_sub(self.start.ring).cast_unsigned();
                    self.next.push(Reverse((distance, i)));
                    break;
                }
                self.parts[i].pop();
                if let Some(part) = self.parts[i].last() {
                    list.seek(part.start);
                }
            }
        }
        Ok(!self.next.is_empty())
    }

    /// The next tenant. `limit` is that of the claim.
    fn next(&mut self, limit: usize) -> Result<Option<WaitingTenant<'a>>> {
        if !self.has_next()? {
            return Ok(None);
        }
        let mut tenant: Option<WaitingTenant<'a>> = None;
        let nearest = self.next.peek().map(|Reverse((distance, _))| *distance);
        while let Some(Reverse((distance, i))) = self.next.peek().copied()
            && Some(distance) == nearest
        {
            self.next.pop();
            self.moved.push(i);
            let Some(lane) = self.lists[i].peek(self.session, self.wanted)? else { continue };
            let (position, key, weight) = (lane.position, lane.key, lane.weight);
            let tenant = tenant.get_or_insert_with(|| WaitingTenant {
                position,
                allowance: allowance(weight, limit),
                lists: Vec::new(),
                next: BinaryHeap::new(),
            });
            tenant.next.push(Reverse((key, Source::Lanes(tenant.lists.len()))));
            tenant.lists.push(self.lists[i].take_position(position));
        }
        Ok(tenant)
    }
}

/// The jobs that a claim selected.
#[derive(Default)]
pub(crate) struct Selection {
    /// In claim order.
    pub(crate) jobs: Vec<Candidate>,
    /// The rank and the ring position of each job, and the allowance of its tenant.
    pub(crate) turns: Vec<(i16, i64, usize)>,
    /// The lanes that it read.
    lanes: Vec<OpenLane>,
    /// The number of expired jobs that it met.
    expired: usize,
}

impl Selection {
    /// Whether the claim stopped early because it met too many expired jobs.
    pub(crate) const fn truncated(&self) -> bool {
        self.expired >= MAX_EXPIRED
    }

    /// Goes round the ring of one rank until `limit` jobs are selected or the rank has no more jobs.
    fn select_in_turns(&mut self, mut ring: Ring<'_, '_>, turn: Turn, limit: usize) -> Result<()> {
        let mut waiting = VecDeque::new();
        // The first round finds the tenants.
        while self.jobs.len() < limit
            && !self.truncated()
            && let Some(mut tenant) = ring.next(limit)?
        {
            let left = limit - self.jobs.len();
            let taken = if tenant.position.ring == turn.position { turn.taken } else { 0 };
            let mut share = tenant.allowance.saturating_sub(taken).min(left);
            // A tenant without competitors has one turn after the other.
            if share < left && waiting.is_empty() && !ring.has_next()? {
                share = left;
            }
            self.take(&ring, &mut tenant, share)?;
            if !tenant.next.is_empty() {
                waiting.push_back(tenant);
            }
        }
        while self.jobs.len() < limit
            && let Some(mut tenant) = waiting.pop_front()
        {
            let left = limit - self.jobs.len();
            let share = if waiting.is_empty() { left } else { tenant.allowance.min(left) };
            self.take(&ring, &mut tenant, share)?;
            if !tenant.next.is_empty() {
                waiting.push_back(tenant);
            }
        }
        Ok(())
    }

    /// Selects up to `share` jobs of a tenant.
    fn take(&mut self, ring: &Ring<'_, '_>, tenant: &mut WaitingTenant<'_>, share: usize) -> Result<()> {
        let Ring { session, wanted, .. } = *ring;
        let mut left = share;
        while left > 0
            && let Some(Reverse((_, source))) = tenant.next.pop()
        {
            let i = match source {
                Source::Lanes(i) => {
                    let list = &mut tenant.lists[i];
                    self.lanes.extend(list.take().map(|found| OpenLane::new(found.lane)));
                    let next = list.peek(session, wanted)?.map(|found| found.key);
                    tenant.next.extend(next.map(|key| Reverse((key, Source::Lanes(i)))));
                    self.lanes.len() - 1
                }
                Source::Jobs(i) => {
                    if let Some(job) = self.lanes[i].ahead.pop_front() {
                        self.lanes[i].selected += 1;
                        self.jobs.push(job);
                        self.turns.push((tenant.position.rank, tenant.position.ring, tenant.allowance));
                        left -= 1;
                    }
                    i
                }
            };
            let lane = &mut self.lanes[i];
            if left > 0 {
                let until = tenant.next.peek().map(|Reverse((key, _))| *key);
                lane.read_ahead(session, until, left, &mut self.expired)?;
            }
            let next = match lane.ahead.front() {
                Some(job) => Some(job.key),
                // Its next turn reads on.
                None => (left == 0 && !lane.ended).then_some(lane.last_read),
            };
            tenant.next.extend(next.map(|key| Reverse((key, Source::Jobs(i)))));
        }
        Ok(())
    }
}

/// Selects jobs for `request`, in claim order. `turn` says whose turn it is within a rank.
pub(crate) fn select(session: &Session<'_>, request: &ClaimRequest, turn: impl Fn(i16) -> Turn) -> Result<Selection> {
    let wanted = Wanted::of(request);
    let mut lists = wanted.lists(session)?;
    let mut selection = Selection::default();
    while selection.jobs.len() < request.limit && !selection.truncated() {
        let mut first: Option<Position> = None;
        for list in &mut lists {
            let position = list.peek(session, &wanted)?.map(|lane| lane.position);
            first = first.into_iter().chain(position).min();
        }
        let Some(Position { rank, .. }) = first else { break };
        let turn = turn(rank);
        let start = Position { rank, ring: turn.position };
        let ring = Ring::new(session, &wanted, &mut lists, start)?;
        selection.select_in_turns(ring, turn, request.limit)?;
        for list in &mut lists {
            list.leave(rank);
        }
    }
    Ok(selection)
}

impl Transaction<'_> {
    /// Raises the keys of the lanes that a claim read, so that later claims do not read them in vain.
    pub(crate) fn raise_lanes(&mut self, selection: &Selection) -> Result<()> {
        let many = selection.lanes.len() > MAX_LOW_KEYS;
        for open in &selection.lanes {
            let write = many || open.selected == 0;
            match open.key() {
                Some(Some(key)) if write => open.lane.raise(self, key)?,
                Some(None) if write => open.lane.delete(self)?,
                _ if open.ahead.is_empty() && !open.has_expired => {
                    if let Some(oldest) = self.hints.empty_lanes.add(&open.lane)
                        && oldest.first_job(self)?.is_none()
                    {
                        oldest.delete(self)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}
