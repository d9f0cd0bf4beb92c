//! Who did what, as rows.

use orchestrix_core::Tenant;
use orchestrix_store::{AuditEntry, AuditFilter, NewAuditEntry, Page, PageRequest, inspect::MAX_SCAN};
use rusqlite::{Row, params};

use crate::{
    error::{Result, corrupt},
    row::{Columns, micros},
    session::{Session, Transaction},
    statement::{AUDIT, AUDIT_PLACE, BEGIN_AUDIT, END_AUDIT, TENANT_AUDIT},
};

impl Transaction<'_> {
    pub(crate) fn begin_audit(&mut self, entry: &NewAuditEntry) -> Result<i64> {
        let params = params![
            micros(self.now),
            entry.actor,
            entry.tenant.as_ref().map(Tenant::as_str),
            entry.action,
            entry.target,
            entry.detail,
            entry.request_id,
        ];
        let seq = self.first(BEGIN_AUDIT, params, |row| Columns(row).get(0))?;
        Ok(seq.ok_or_else(|| corrupt("audit", "an entry was not recorded"))?)
    }

    pub(crate) fn end_audit(&mut self, seq: i64, outcome: &str) -> Result<bool> {
        Ok(self.write(END_AUDIT, params![seq, outcome])? > 0)
    }
}

pub(crate) fn list(
    session: &Session<'_>,
    filter: &AuditFilter,
    page: &PageRequest<i64>,
) -> Result<Page<AuditEntry, i64>> {
    let cursor = match page.cursor {
        Some(seq) => match session.first(AUDIT_PLACE, [seq], |row| Columns(row).time(0))? {
            Some(at) => Some((at, seq)),
            // All that came before it is forgotten.
            None => return Ok(Page { items: Vec::new(), next: None }),
        },
        None => None,
    };
    let (time, number) = filter.before(cursor);
    let (time, from) = (micros(time), filter.from.map_or(i64::MIN, micros));
    let mut items = Vec::new();
    let mut last = None;
    let mut looked = 0;
    let mut more = false;
    let visit = |row: &Row<'_>| {
        if items.len() == page.limit || looked == MAX_SCAN {
            more = true;
            return Ok(false);
        }
        let entry = read(row)?;
        last = Some(entry.seq);
        looked += 1;
        items.extend(Some(entry).filter(|entry| filter.matches(entry)));
        Ok(true)
    };
    match &filter.tenant {
        Some(own) => session.each(TENANT_AUDIT, params![time, number, from, own.as_str()], visit)?,
        None => session.each(AUDIT, params![time, number, from], visit)?,
    }
    Ok(Page { items, next: last.filter(|_| more) })
}

fn read(row: &Row<'_>) -> Result<AuditEntry> {
    let row = Columns(row);
    Ok(AuditEntry {
        seq: row.get(0)?,
        at: row.time(1)?,
        actor: row.get(2)?,
        tenant: row.text_or_null(3)?.map(Tenant::trusted),
        action: row.get(4)?,
        target: row.get(5)?,
        detail: row.get(6)?,
        request_id: row.get(7)?,
        outcome: row.get(8)?,
    })
}
