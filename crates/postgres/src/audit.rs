//! Audit entries, as rows.

use orchestrix_core::Tenant;
use orchestrix_store::{
    AuditEntry, AuditFilter, NewAuditEntry, Page, PageRequest, Result, StoreError, audit::check_outcome,
    inspect::MAX_SCAN,
};
use tokio_postgres::Row;

use crate::{
    PostgresStore,
    database::Params,
    inspect::bound,
    statement::{
        AUDIT_ENTRY_TIME, BEGIN_AUDIT_ENTRY, FINISH_AUDIT_ENTRY, LIST_AUDIT_ENTRIES, LIST_TENANT_AUDIT_ENTRIES,
    },
};

pub(crate) async fn begin(store: &PostgresStore, entry: &NewAuditEntry) -> Result<i64> {
    entry.validate()?;
    let tenant = entry.tenant.as_ref().map(Tenant::as_str);
    let params: Params<'_> = &[&entry.actor, &tenant, &entry.action, &entry.target, &entry.detail, &entry.request_id];
    let rows = store.database().query(&BEGIN_AUDIT_ENTRY, params).await?;
    let row = rows.first().ok_or_else(|| StoreError::Backend("begin_audit_entry.sql returned no row".into()))?;
    Ok(row.get("seq"))
}

pub(crate) async fn finish(store: &PostgresStore, seq: i64, outcome: &str) -> Result<bool> {
    check_outcome(outcome)?;
    Ok(!store.database().query(&FINISH_AUDIT_ENTRY, &[&seq, &outcome]).await?.is_empty())
}

pub(crate) async fn list(
    store: &PostgresStore,
    filter: &AuditFilter,
    page: &PageRequest<i64>,
) -> Result<Page<AuditEntry, i64>> {
    page.validate()?;
    // No text in the database holds a NUL, and the server refuses one as a parameter.
    let texts = [&filter.actor, &filter.action, &filter.target];
    if texts.into_iter().flatten().any(|text| text.contains('\0')) {
        return Ok(Page { items: Vec::new(), next: None });
    }
    let cursor = match page.cursor {
        Some(seq) => match store.database().query(&AUDIT_ENTRY_TIME, &[&seq]).await?.first() {
            Some(row) => Some((row.get("at"), seq)),
            // All earlier entries were pruned.
            None => return Ok(Page { items: Vec::new(), next: None }),
        },
        None => None,
    };
    let (time, seq) = filter.before(cursor);
    let time = bound(time);
    let from = filter.from.map(bound);
    let scan = if filter.is_exact() { page.limit + 1 } else { MAX_SCAN };
    let (max_scanned, limit) = (scan as i64, page.limit as i64 + 1);
    let AuditFilter { actor, action, target, .. } = filter;
    let rows = match &filter.tenant {
        Some(tenant) => {
            let params: Params<'_> =
                &[&time, &seq, &from, &max_scanned, actor, action, target, &limit, &tenant.as_str()];
            store.database().query(&LIST_TENANT_AUDIT_ENTRIES, params).await?
        }
        None => {
            let params: Params<'_> = &[&time, &seq, &from, &max_scanned, actor, action, target, &limit];
            store.database().query(&LIST_AUDIT_ENTRIES, params).await?
        }
    };
    let mut items = Vec::new();
    let mut last_scanned: Option<i64> = None;
    let mut scanned = 0;
    for row in &rows {
        if let Some(n) = row.get::<_, Option<i64>>("scanned") {
            scanned = usize::try_from(n).unwrap_or(0);
            last_scanned = row.get("seq");
        } else {
            items.push(read(row));
        }
    }
    let next = if items.len() > page.limit {
        items.truncate(page.limit);
        items.last().map(|entry| entry.seq)
    } else {
        last_scanned.filter(|_| scanned >= scan)
    };
    Ok(Page { items, next })
}

fn read(row: &Row) -> AuditEntry {
    AuditEntry {
        seq: row.get("seq"),
        at: row.get("at"),
        actor: row.get("actor"),
        tenant: row.get::<_, Option<&str>>("tenant").map(Tenant::trusted),
        action: row.get("action"),
        target: row.get("target"),
        detail: row.get("detail"),
        request_id: row.get("request_id"),
        outcome: row.get("outcome"),
    }
}
