//! What happened query.

use std::{collections::BTreeSet, ops::Bound};

use orchestrix_core::{JobId, JobState, Timestamp};

use crate::{row::Row, tables::Tables};
use orchestrix_store::{
    ChangesPage, ChangesQuery, JobChange, Result,
    changes::{ENQUEUED_FACTOR, LeaseCursor, MAX_CHANGE_IDS},
};

impl Tables {
    pub(crate) fn recent(&self, query: &ChangesQuery, now: Timestamp) -> Result<ChangesPage> {
        query.validate()?;
        let limit = query.limit;
        let mut recent = ChangesPage::none(now);
        let after = query.leased_after.map_or(Bound::Unbounded, |place| Bound::Excluded((place.expires_at, place.id)));
        let mut leases = self.index.leases.range((after, Bound::Unbounded));
        let mut last = None;
        for (expires_at, id) in leases.by_ref().take(limit) {
            recent.leased_from.get_or_insert(*expires_at);
            last = Some(LeaseCursor { expires_at: *expires_at, id: *id });
            recent.jobs.extend(self.find(*id).map(|row| JobChange::from(row.summary())));
        }
        recent.leased_next = last.filter(|_| leases.next().is_some());
        let mut show = |limit: usize, mut rows: &mut dyn Iterator<Item = &Row>| {
            recent.jobs.extend((&mut rows).take(limit).map(|row| JobChange::from(row.summary())));
            recent.more |= rows.next().is_some();
        };
        if let Some(since) = query.enqueued_since {
            show(ENQUEUED_FACTOR * limit, &mut self.from(JobId::floor(since)));
        }
        for (state, ended) in &self.index.finished {
            let reach = query.cancelled_since.filter(|_| *state == JobState::Cancelled);
            if let Some(since) = query.finished_since.into_iter().chain(reach).min() {
                let ended = ended.iter().rev().take_while(|(at, _)| *at >= since);
                show(limit, &mut ended.filter_map(|(_, id)| self.find(*id)));
            }
        }
        if let Some(since) = query.redriven_since {
            let unfinished = |(_, id): &(Timestamp, JobId)| self.find(*id).filter(|row| !row.job.state.is_terminal());
            let mut revived = self.revived.iter().rev().take_while(|(at, _)| *at >= since);
            show(limit, &mut revived.by_ref().take(limit).filter_map(unfinished));
            recent.more |= revived.next().is_some();
        }
        if let Some(after) = query.ids_after {
            let mut rows = self.behind(after);
            for row in rows.by_ref().take(MAX_CHANGE_IDS) {
                recent.ids_next = Some(row.job.id);
                recent.ids.extend(Some(row.job.id).filter(|_| !row.job.state.is_terminal()));
            }
            recent.ids_next = recent.ids_next.filter(|_| rows.next().is_some());
        }
        Ok(recent)
    }
}

/// Jobs that were given another chance, and when.
#[derive(Debug, Default)]
pub(crate) struct Revived(BTreeSet<(Timestamp, JobId)>);

impl Revived {
    pub(crate) fn add(&mut self, now: Timestamp, id: JobId) {
        self.0.insert((now, id));
    }

    fn iter(&self) -> impl DoubleEndedIterator<Item = &(Timestamp, JobId)> {
        self.0.iter()
    }

    /// Forgets up to `limit` of those that were revived at `until` or before; says how many.
    pub(crate) fn prune(&mut self, until: Timestamp, limit: usize) -> usize {
        let past: Vec<_> = self.0.iter().take_while(|(at, _)| *at <= until).take(limit).copied().collect();
        for one in &past {
            self.0.remove(one);
        }
        past.len()
    }

    /// Whether any were revived at `until` or before.
    pub(crate) fn has_any(&self, until: Timestamp) -> bool {
        self.0.first().is_some_and(|(at, _)| *at <= until)
    }
}
