//! Who did what, as rows.

use orchestrix_core::Tenant;
use orchestrix_store::{
    AuditEntry, AuditFilter, NewAuditEntry, Page, PageRequest, Result, StoreError, audit::check_outcome,
    inspect::MAX_SCAN,
};
use tokio_postgres::{Row, types::ToSql};

use crate::{
    PostgresStore,
    inspect::bound,
    statement::{AUDIT, AUDIT_PLACE, BEGIN_AUDIT, END_AUDIT, TENANT_AUDIT},
};

pub(crate) async fn begin(store: &PostgresStore, entry: &NewAuditEntry) -> Result<i64> {
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
    let cursor = match page.cursor {
        Some(seq) => match store.database().query(&AUDIT_PLACE, &[&seq]).await?.first() {
            Some(row) => Some((row.get(0), seq)),
            // All that came before it is forgotten.
            None => return Ok(Page { items: Vec::new(), next: None }),
        },
        None => None,
    };
    let (time, number) = filter.before(cursor);
    let time = bound(time);
    let from = filter.from.map(bound);
    let scan = if filter.is_exact() { page.limit + 1 } else { MAX_SCAN };
    let (look, give) = (scan as i64, page.limit as i64 + 1);
    let AuditFilter { actor, action, target, .. } = filter;
    let rows = match &filter.tenant {
        Some(own) => {
            let params: [&(dyn ToSql + Sync); 9] =
                [&time, &number, &from, &look, actor, action, target, &give, &own.as_str()];
            store.database().query(&TENANT_AUDIT, &params).await?
        }
        None => store.database().query(&AUDIT, &[&time, &number, &from, &look, actor, action, target, &give]).await?,
    };
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
