//! Jobs that were seen leased. However many there are, a look takes in one page of them, and several looks are a round; whatever a
//! whole round did not show is leased no more.

use std::{collections::HashMap, time::Duration};

use orchestrix_core::{JobId, Timestamp};
use orchestrix_store::changes::{LeaseCursor, MAX_CHANGES};
use uuid::Uuid;

/// The most that are followed: ten pages. With more the rest is not seen, which is told as a lag.
const MOST: usize = 10 * MAX_CHANGES;
/// Longer than any statement that leases jobs may take, in any store.
const LONGEST_CLAIM: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Leased {
    /// With the round that showed each last.
    jobs: HashMap<JobId, u64>,
    round: u64,
    /// What a round before this one showed last is leased no more.
    gone_before: u64,
    /// Where the round goes on, and how far it has come.
    next: Option<LeaseCursor>,
    shown: usize,
    /// Before this nothing is leased that the last round did not show, and where the round begins that is under way.
    floor: Option<Timestamp>,
    next_floor: Option<Timestamp>,
    /// When this round began, and the last one that came to its end.
    began: Option<Timestamp>,
    last_began: Option<Timestamp>,
}

impl Leased {
    pub(super) fn insert(&mut self, id: JobId) {
        self.jobs.insert(id, self.round);
    }

    pub(super) fn remove(&mut self, id: JobId) {
        self.jobs.remove(&id);
    }

    pub(super) fn contains(&self, id: JobId) -> bool {
        self.jobs.contains_key(&id)
    }

    /// Where the next look goes on, or begins a round: behind what is left of leases that are over, which a database that cannot clean up
    /// would go through at every look.
    pub(super) fn next(&self) -> Option<LeaseCursor> {
        let floor = || self.floor.map(|expires_at| LeaseCursor { expires_at, id: JobId::from_uuid(Uuid::nil()) });
        self.next.or_else(floor)
    }

    /// Since when whatever is leased all the time has been shown: what was leased then and ended since was seen leased, however long its end
    /// took.
    pub(super) fn all_shown_since(&self) -> Option<Timestamp> {
        self.last_began.or(self.began)
    }

    /// A look at this moment begins, or goes on with, a round; the first lease that it shows runs out then.
    pub(super) fn begin(&mut self, now: Timestamp, first: Option<Timestamp>) {
        if self.began.is_none() {
            self.began = Some(now);
            // One that was given since, or is yet to be committed, runs out later than it was given.
            self.next_floor = Some(first.map_or(now, |first| first.min(now)) - LONGEST_CLAIM);
        }
    }

    /// It has shown a page, after which it goes on there. Whether there are more than are followed.
    pub(super) fn turn(&mut self, next: Option<LeaseCursor>) -> bool {
        self.shown += MAX_CHANGES;
        let too_many = next.is_some() && self.shown >= MOST;
        self.next = next.filter(|_| !too_many);
        if self.next.is_some() {
            return false;
        }
        if too_many {
            // Nobody knows what became of those before.
            let round = self.round;
            self.jobs.retain(|_, shown| *shown == round);
        }
        self.last_began = self.began.take();
        self.floor = self.next_floor.take();
        self.gone_before = self.round;
        (self.round, self.shown) = (self.round + 1, 0);
        too_many
    }

    /// Takes out those that the last round did not show; so many at a time.
    pub(super) fn take_gone(&mut self, most: usize) -> Vec<JobId> {
        let before = self.gone_before;
        let gone: Vec<JobId> =
            self.jobs.iter().filter(|(_, shown)| **shown < before).map(|(id, _)| *id).take(most).collect();
        for id in &gone {
            self.jobs.remove(id);
        }
        gone
    }
}
