//! Who did what.

use std::{collections::BTreeMap, ops::Bound};

use orchestrix_core::Timestamp;

use crate::{AuditEntry, AuditFilter, NewAudit, Page, PageRequest, Result, audit::check_outcome, inspect::MAX_SCAN};

/// Entries by number, which is the order they were begun in.
#[derive(Debug, Default)]
pub(super) struct Audit {
    entries: BTreeMap<i64, AuditEntry>,
    last: i64,
}

impl Audit {
    pub(super) fn begin(&mut self, entry: NewAudit, now: Timestamp) -> Result<i64> {
        entry.validate()?;
        self.last += 1;
        let NewAudit { actor, tenant, action, target, detail, request_id } = entry;
        let (seq, at, outcome) = (self.last, now, None);
        let entry = AuditEntry { seq, at, actor, tenant, action, target, detail, request_id, outcome };
        self.entries.insert(seq, entry);
        Ok(seq)
    }

    pub(super) fn end(&mut self, seq: i64, outcome: &str) -> Result<bool> {
        check_outcome(outcome)?;
        let Some(entry) = self.entries.get_mut(&seq).filter(|entry| entry.outcome.is_none()) else { return Ok(false) };
        entry.outcome = Some(outcome.into());
        Ok(true)
    }

    pub(super) fn page(&self, filter: &AuditFilter, page: &PageRequest<i64>) -> Result<Page<AuditEntry, i64>> {
        page.validate()?;
        let before = page.cursor.map_or(Bound::Unbounded, Bound::Excluded);
        let mut entries = self.entries.range((Bound::Unbounded, before)).rev();
        let mut items = Vec::new();
        let mut last = None;
        for (seq, entry) in entries.by_ref().take(MAX_SCAN) {
            last = Some(*seq);
            items.extend(filter.matches(entry).then(|| entry.clone()));
            if items.len() == page.limit {
                break;
            }
        }
        Ok(Page { items, next: entries.next().and(last) })
    }

    /// Forgets up to `limit` entries from `until` and before; says how many.
    pub(super) fn prune(&mut self, until: Timestamp, limit: usize) -> usize {
        let mut count = 0;
        while count < limit && self.has_any(until) {
            self.entries.pop_first();
            count += 1;
        }
        count
    }

    /// Whether there are entries from `until` or before.
    pub(super) fn has_any(&self, until: Timestamp) -> bool {
        self.entries.first_key_value().is_some_and(|(_, entry)| entry.at <= until)
    }
}
