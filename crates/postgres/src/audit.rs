//! Who did what, as rows.

use orchestrix_core::Tenant;
use orchestrix_store::{
    AuditEntry, AuditFilter, NewAudit, Page, PageRequest, Result, StoreError, audit::check_outcome, inspect::MAX_SCAN,
};
use tokio_postgres::Row;

use crate::{
    PostgresStore,
    inspect::bound,
    statement::{AUDIT, BEGIN_AUDIT, END_AUDIT},
};

pub(crate) async fn begin(store: &PostgresStore, entry: &NewAudit) -> Result<i64> {
    entry.validate()?;
    let tenant = entry.tenant.as_ref().map(Tenant::as_str);
    let rows = store
        .database()
        .query(&BEGIN_AUDIT, &[&entry.actor, &tenant, &entry.action, &entry.target, &entry.detail, &entry.request_id])
        .await?;
    rows.first().map(|row| row.get(0)).ok_or_else(|| StoreError::Backend("an entry was not recorded".into()))
}

pub(crate) async fn end(store: &PostgresStore, seq: i64, outcome: &str) -> Result<bool> {
    check_outcome(outcome)?;
    Ok(!store.database().query(&END_AUDIT, &[&seq, &outcome]).await?.is_empty())
}

pub(crate) async fn list(
    store: &PostgresStore,
    filter: &AuditFilter,
    page: &PageRequest<i64>,
) -> Result<Page<AuditEntry, i64>> {
    page.validate()?;
    // No text in the database holds a NUL, and the server refuses to be asked about one.
    let texts = [&filter.actor, &filter.action, &filter.target];
    if texts.into_iter().flatten().any(|text| text.contains('\0')) {
        return Ok(Page { items: Vec::new(), next: None });
    }
    let scan = if *filter == AuditFilter::default() { page.limit + 1 } else { MAX_SCAN };
    let rows = store
        .database()
        .query(
            &AUDIT,
            &[
                &page.cursor.unwrap_or(i64::MAX),
                &(scan as i64),
                &filter.actor,
                &filter.tenant.as_ref().map(Tenant::as_str),
                &filter.action,
                &filter.target,
                &filter.from.map(bound),
                &filter.to.map(bound),
                &(page.limit as i64 + 1),
            ],
        )
        .await?;
    let mut items = Vec::new();
    let mut last_looked: Option<i64> = None;
    let mut looked = 0;
    for row in &rows {
        if let Some(n) = row.get::<_, Option<i64>>(9) {
            looked = usize::try_from(n).unwrap_or(0);
            last_looked = row.get(0);
        } else {
            items.push(read(row));
        }
    }
    let next = if items.len() > page.limit {
        items.truncate(page.limit);
        items.last().map(|entry| entry.seq)
    } else {
        last_looked.filter(|_| looked >= scan)
    };
    Ok(Page { items, next })
}

fn read(row: &Row) -> AuditEntry {
    AuditEntry {
        seq: row.get(0),
        at: row.get(1),
        actor: row.get(2),
        tenant: row.get::<_, Option<&str>>(3).map(Tenant::trusted),
        action: row.get(4),
        target: row.get(5),
        detail: row.get(6),
        request_id: row.get(7),
        outcome: row.get(8),
    }
}
