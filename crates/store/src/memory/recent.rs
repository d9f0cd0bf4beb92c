//! What happened lately.

use std::ops::Bound;

use orchestrix_core::{JobId, JobState, Timestamp};

use super::{row::Row, tables::Tables};
use crate::{
    Glimpse, Lately, Recent, Result,
    recent::{LeasePlace, RECORDED_TIMES},
};

impl Tables {
    pub(super) fn recent(&self, lately: &Lately, now: Timestamp) -> Result<Recent> {
        lately.validate()?;
        let limit = lately.limit;
        let mut recent = Recent { now, jobs: Vec::new(), more: false, leased_from: None, leased_next: None };
        let after = lately.leased_after.map_or(Bound::Unbounded, |place| Bound::Excluded((place.expires_at, place.id)));
        let mut leases = self.index.leases.range((after, Bound::Unbounded));
        let mut last = None;
        for (expires_at, id) in leases.by_ref().take(limit) {
            recent.leased_from.get_or_insert(*expires_at);
            last = Some(LeasePlace { expires_at: *expires_at, id: *id });
            recent.jobs.extend(self.find(*id).map(|row| Glimpse::from(row.summary())));
        }
        recent.leased_next = last.filter(|_| leases.next().is_some());
        let mut show = |limit: usize, mut rows: &mut dyn Iterator<Item = &Row>| {
            recent.jobs.extend((&mut rows).take(limit).map(|row| Glimpse::from(row.summary())));
            recent.more |= rows.next().is_some();
        };
        if let Some(since) = lately.recorded_since {
            show(RECORDED_TIMES * limit, &mut self.from(JobId::floor(since)));
        }
        for (state, ended) in &self.index.finished {
            let reach = lately.cancelled_since.filter(|_| *state == JobState::Cancelled);
            if let Some(since) = lately.ended_since.into_iter().chain(reach).min() {
                let ended = ended.iter().rev().take_while(|(at, _)| *at >= since);
                show(limit, &mut ended.filter_map(|(_, id)| self.find(*id)));
            }
        }
        Ok(recent)
    }
}
