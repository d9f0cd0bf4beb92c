//! Audit entries.

use orchestrix_core::Tenant;
use orchestrix_store::{AuditEntry, AuditFilter, NewAuditEntry, Page, PageRequest, inspect::MAX_SCAN};
use rusqlite::{Row, params};

use crate::{
    columns::{Columns, columns},
    error::{Result, corrupt},
    row::micros,
    session::{Session, Transaction},
    statement::{
        AUDIT_ENTRY_TIME, BEGIN_AUDIT_ENTRY, FINISH_AUDIT_ENTRY, LIST_AUDIT_ENTRIES, LIST_TENANT_AUDIT_ENTRIES,
    },
};

impl Transaction<'_> {
    pub(crate) fn begin_audit_entry(&mut self, entry: &NewAuditEntry) -> Result<i64> {
        let params = params![
            micros(self.now),
            entry.actor,
            entry.tenant.as_ref().map(Tenant::as_str),
            entry.action,
            entry.target,
            entry.detail,
            entry.request_id,
        ];
        let seq = self.first(BEGIN_AUDIT_ENTRY, params, |row| Columns(row).get(0))?;
        Ok(seq.ok_or_else(|| corrupt("audit", "the insert returned no number"))?)
    }

    pub(crate) fn finish_audit_entry(&mut self, seq: i64, outcome: &str) -> Result<bool> {
        Ok(self.write(FINISH_AUDIT_ENTRY, params![seq, outcome])? > 0)
    }
}

pub(crate) fn list(
    session: &Session<'_>,
    filter: &AuditFilter,
    page: &PageRequest<i64>,
) -> Result<Page<AuditEntry, i64>> {
    let cursor = match page.cursor {
        Some(seq) => match session.first(AUDIT_ENTRY_TIME, [seq], |row| Columns(row).time(0))? {
            Some(at) => Some((at, seq)),
            // Every entry up to the cursor was pruned.
            None => return Ok(Page { items: Vec::new(), next: None }),
        },
        None => None,
    };
    let (time, number) = filter.before(cursor);
    let (time, from) = (micros(time), filter.from.map_or(i64::MIN, micros));
    let mut items = Vec::new();
    let mut last = None;
    let mut scanned = 0;
    let mut more = false;
    let visit = |row: &Row<'_>| {
        if items.len() == page.limit || scanned == MAX_SCAN {
            more = true;
            return Ok(false);
        }
        let entry = read(row)?;
        last = Some(entry.seq);
        scanned += 1;
        items.extend(Some(entry).filter(|entry| filter.matches(entry)));
        Ok(true)
    };
    match &filter.tenant {
        Some(tenant) => session.each(LIST_TENANT_AUDIT_ENTRIES, params![time, number, from, tenant.as_str()], visit)?,
        None => session.each(LIST_AUDIT_ENTRIES, params![time, number, from], visit)?,
    }
    Ok(Page { items, next: last.filter(|_| more) })
}

columns! {
    mod entry of LIST_AUDIT_ENTRIES, LIST_TENANT_AUDIT_ENTRIES {
        seq, at, actor, tenant, action, target, detail, request_id, outcome,
    }
}

fn read(row: &Row<'_>) -> Result<AuditEntry> {
    let row = Columns(row);
    Ok(AuditEntry {
        seq: row.get(entry::seq)?,
        at: row.time(entry::at)?,
        actor: row.get(entry::actor)?,
        tenant: row.text_or_null(entry::tenant)?.map(Tenant::trusted),
        action: row.get(entry::action)?,
        target: row.get(entry::target)?,
        detail: row.get(entry::detail)?,
        request_id: row.get(entry::request_id)?,
        outcome: row.get(entry::outcome)?,
    })
}
