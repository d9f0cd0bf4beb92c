//! The scan over all leased jobs. Each poll reads one page, and several polls make a scan. A job that a complete scan
//! did not show is no longer leased.

use std::{collections::HashMap, time::Duration};

use orchestrix_core::{JobId, Timestamp};
use orchestrix_store::changes::{LeaseCursor, MAX_CHANGES};
use uuid::Uuid;

/// The most leases that a scan covers: ten pages. Leases beyond that are not seen, and subscribers receive `lagged`.
const MAX_LEASES: usize = 10 * MAX_CHANGES;
/// Longer than any claim may take, in any store.
const LONGEST_CLAIM: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct LeaseScan {
    /// The leased jobs, with the scan that showed each last.
    jobs: HashMap<JobId, u64>,
    scan: u64,
    /// Jobs that were last shown by an earlier scan than this are no longer leased.
    ended_before: u64,
    /// Where the next page of this scan starts.
    cursor: Option<LeaseCursor>,
    /// How many leases this scan has covered.
    covered: usize,
    /// The last complete scan showed all leases that expire before this time.
    floor: Option<Timestamp>,
    /// The `floor` that holds once this scan is complete.
    next_floor: Option<Timestamp>,
    began_at: Option<Timestamp>,
    last_began_at: Option<Timestamp>,
}

impl LeaseScan {
    pub(super) fn insert(&mut self, id: JobId) {
        self.jobs.insert(id, self.scan);
    }

    pub(super) fn remove(&mut self, id: JobId) {
        self.jobs.remove(&id);
    }

    pub(super) fn contains(&self, id: JobId) -> bool {
        self.jobs.contains_key(&id)
    }

    /// Where the next page starts. A new scan starts at `floor`, to skip dead index entries of expired leases: a
    /// database that cannot vacuum would visit them at every poll.
    pub(super) fn cursor(&self) -> Option<LeaseCursor> {
        let floor = || self.floor.map(|expires_at| LeaseCursor { expires_at, id: JobId::from_uuid(Uuid::nil()) });
        self.cursor.or_else(floor)
    }

    /// Jobs that were leased at this time and have ended since were shown leased, however long their end took to
    /// commit.
    pub(super) fn complete_since(&self) -> Option<Timestamp> {
        self.last_began_at.or(self.began_at)
    }

    /// Begins a page, and with the first page a scan. `first_expiry` is the expiry of the page's first lease.
    pub(super) fn begin_page(&mut self, now: Timestamp, first_expiry: Option<Timestamp>) {
        if self.began_at.is_none() {
            self.began_at = Some(now);
            // A lease that is not committed yet was granted at most LONGEST_CLAIM ago, and expires later than it was
            // granted.
            self.next_floor = Some(first_expiry.map_or(now, |first| first.min(now)) - LONGEST_CLAIM);
        }
    }

    /// Ends a page, and with the last page the scan. Returns whether there are more leases than a scan may cover.
    pub(super) fn end_page(&mut self, next: Option<LeaseCursor>) -> bool {
        self.covered += MAX_CHANGES;
        let too_many = next.is_some() && self.covered >= MAX_LEASES;
        self.cursor = next.filter(|_| !too_many);
        if self.cursor.is_some() {
            return false;
        }
        if too_many {
            // The scan is incomplete, so it cannot say whether the other jobs are still leased.
            let scan = self.scan;
            self.jobs.retain(|_, shown_by| *shown_by == scan);
        }
        self.last_began_at = self.began_at.take();
        self.floor = self.next_floor.take();
        self.ended_before = self.scan;
        (self.scan, self.covered) = (self.scan + 1, 0);
        too_many
    }

    /// Removes and returns up to `max` jobs that the last scan did not show.
    pub(super) fn take_ended(&mut self, max: usize) -> Vec<JobId> {
        let before = self.ended_before;
        let ended: Vec<JobId> =
            self.jobs.iter().filter(|(_, shown_by)| **shown_by < before).map(|(id, _)| *id).take(max).collect();
        for id in &ended {
            self.jobs.remove(id);
        }
        ended
    }
}
