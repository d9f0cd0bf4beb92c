//! What happened lately.

use orchestrix_core::{JobId, JobType, Queue, Tenant, Timestamp};
use orchestrix_store::{Glimpse, Recent, Result, StoreError, housekeeping::check_limit, recent::MAX_RECENT};
use tokio_postgres::Row;

use crate::{PostgresStore, row::state, statement::RECENT};

/// The kinds of rows beside the time: leased, recorded, in history, dead.
const KINDS: usize = 4;

pub(crate) async fn recent(store: &PostgresStore, since: Option<Timestamp>, limit: usize) -> Result<Recent> {
    check_limit(limit, MAX_RECENT)?;
    let rows = store.database().query(&RECENT, &[&since, &(limit as i64 + 1)]).await?;
    let mut now = None;
    let mut counts = [0; KINDS + 1];
    let mut jobs = Vec::with_capacity(rows.len());
    for row in &rows {
        let kind = usize::try_from(row.get::<_, i32>(0)).unwrap_or(0).min(KINDS);
        counts[kind] += 1;
        if kind == 0 {
            now = Some(row.get(6));
        } else if counts[kind] <= limit {
            jobs.push(glimpse(row)?);
        }
    }
    let now = now.ok_or_else(|| StoreError::Backend("the time is missing".into()))?;
    Ok(Recent { now, jobs, more: counts[1..].iter().any(|count| *count > limit) })
}

fn glimpse(row: &Row) -> Result<Glimpse> {
    Ok(Glimpse {
        id: JobId::from_uuid(row.get(1)),
        state: state(row.get(2))?,
        job_type: JobType::trusted(row.get(3)),
        queue: Queue::trusted(row.get(4)),
        tenant: Tenant::trusted(row.get(5)),
        at: row.get(6),
    })
}
