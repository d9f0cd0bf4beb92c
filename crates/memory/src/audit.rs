//! The audit log.

use std::collections::BTreeMap;

use orchestrix_core::Timestamp;

use orchestrix_store::{
    AuditEntry, AuditFilter, NewAuditEntry, Page, PageRequest, Result, audit::check_outcome, inspect::MAX_SCAN,
};

/// Entries by time and sequence number, and the time of each sequence number.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    entries: BTreeMap<(Timestamp, i64), AuditEntry>,
    times: BTreeMap<i64, Timestamp>,
    last: i64,
}

impl Audit {
    pub(crate) fn begin(&mut self, entry: NewAuditEntry, now: Timestamp) -> Result<i64> {
        entry.validate()?;
        self.last += 1;
        let NewAuditEntry { actor, tenant, action, target, detail, request_id } = entry;
        let (seq, at, outcome) = (self.last, now, None);
        let entry = AuditEntry { seq, at, actor, tenant, action, target, detail, request_id, outcome };
        self.entries.insert((at, seq), entry);
        self.times.insert(seq, at);
        Ok(seq)
    }

    pub(crate) fn end(&mut self, seq: i64, outcome: &str) -> Result<bool> {
        check_outcome(outcome)?;
        let Some(at) = self.times.get(&seq) else { return Ok(false) };
        let open = self.entries.get_mut(&(*at, seq)).filter(|entry| entry.outcome.is_none());
        let Some(entry) = open else { return Ok(false) };
        entry.outcome = Some(outcome.into());
        Ok(true)
    }

    pub(crate) fn page(&self, filter: &AuditFilter, page: &PageRequest<i64>) -> Result<Page<AuditEntry, i64>> {
        page.validate()?;
        let cursor = match page.cursor {
            Some(seq) => match self.times.range(..=seq).next_back() {
                Some((_, at)) => Some((*at, seq)),
                // All entries before the cursor have been pruned.
                None => return Ok(Page { items: Vec::new(), next: None }),
            },
            None => None,
        };
        let entries = self.entries.range(..filter.before(cursor)).rev().map(|(_, entry)| entry);
        let entries = entries.take_while(|entry| filter.from.is_none_or(|from| entry.at >= from));
        let own = |entry: &&AuditEntry| filter.tenant.is_none() || entry.tenant == filter.tenant;
        let mut entries = entries.filter(own);
        let mut items = Vec::new();
        let mut last = None;
        for entry in entries.by_ref().take(MAX_SCAN) {
            last = Some(entry.seq);
            items.extend(filter.matches(entry).then(|| entry.clone()));
            if items.len() == page.limit {
                break;
            }
        }
        Ok(Page { items, next: entries.next().and(last) })
    }

    /// Deletes up to `limit` entries up to and including `until`. Returns how many.
    pub(crate) fn prune(&mut self, until: Timestamp, limit: usize) -> usize {
        let mut count = 0;
        while count < limit && self.has_any(until) {
            if let Some(((_, seq), _)) = self.entries.pop_first() {
                self.times.remove(&seq);
            }
            count += 1;
        }
        count
    }

    /// Whether there are entries up to and including `until`.
    pub(crate) fn has_any(&self, until: Timestamp) -> bool {
        self.entries.first_key_value().is_some_and(|((at, _), _)| *at <= until)
    }
}
