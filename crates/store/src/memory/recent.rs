//! What happened lately.

use orchestrix_core::{JobId, Timestamp};

use super::{row::Row, tables::Tables};
use crate::{Glimpse, Recent, Result, housekeeping::check_limit, recent::MAX_RECENT};

impl Tables {
    pub(super) fn recent(&self, since: Option<Timestamp>, limit: usize, now: Timestamp) -> Result<Recent> {
        check_limit(limit, MAX_RECENT)?;
        let mut recent = Recent { now, jobs: Vec::new(), more: false };
        let mut show = |mut rows: &mut dyn Iterator<Item = &Row>| {
            recent.jobs.extend((&mut rows).take(limit).map(|row| Glimpse::from(row.summary())));
            recent.more |= rows.next().is_some();
        };
        show(&mut self.index.leases.iter().filter_map(|(_, id)| self.find(*id)));
        if let Some(since) = since {
            show(&mut self.from(JobId::new(since, [0; 10])));
            for ended in self.index.finished.values() {
                show(&mut ended.iter().rev().take_while(|(at, _)| *at >= since).filter_map(|(_, id)| self.find(*id)));
            }
        }
        Ok(recent)
    }
}
