//! Recent changes of jobs.
//!
//! Finished jobs are found by history_finished, a BRIN index: it costs a few bytes for each range of pages and nothing
//! when a job finishes, but a range without a summary is read wholly by every query. Autovacuum summarizes ranges a
//! minute later or never; after half a million jobs finished at once, every query until then took 150 ms to 230 ms. So
//! the readers summarize the index themselves, every few seconds.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use orchestrix_core::{JobId, JobType, Queue, Tenant, Timestamp};
use orchestrix_store::{
    ChangesPage, ChangesQuery, JobChange, Result, StoreError,
    changes::{ENQUEUED_FACTOR, LeaseCursor, MAX_CHANGE_IDS},
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    PostgresStore,
    database::Params,
    row::state,
    statement::{RECENT_CHANGES, SUMMARIZE_HISTORY, column},
};

/// The kinds of rows in `recent_changes.sql`. Kinds 3 to 6 are finished, dead, cancelled and redriven jobs.
const NOW: usize = 0;
const LEASED: usize = 1;
const ENQUEUED: usize = 2;
const IDS: usize = 7;

/// How often the index is summarized. Without new ranges that takes a few milliseconds.
const SUMMARIZE_EVERY: Duration = Duration::from_secs(5);

/// When the index was last summarized.
#[derive(Debug, Default)]
pub(crate) struct SummaryTimer(Mutex<Option<Instant>>);

impl SummaryTimer {
    // Whether the caller must summarize now. Restarts the timer.
    fn is_due(&self) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = last.is_none_or(|last| last.elapsed() >= SUMMARIZE_EVERY);
        if due {
            *last = Some(Instant::now());
        }
        due
    }
}

pub(crate) async fn recent_changes(store: &PostgresStore, query: &ChangesQuery) -> Result<ChangesPage> {
    query.validate()?;
    if (query.finished_since.is_some() || query.cancelled_since.is_some()) && store.0.summary_timer.is_due() {
        // Another session may be at it, or this role may not own the table. Then the query is slower.
        if let Err(error) = store.database().query(&SUMMARIZE_HISTORY, &[]).await {
            tracing::debug!(%error, "history_finished not summarized");
        }
    }
    let limit = |kind: usize| match kind {
        ENQUEUED => ENQUEUED_FACTOR * query.limit,
        IDS => MAX_CHANGE_IDS,
        _ => query.limit,
    };
    let (lease, id) = query.leased_after.map(|cursor| (cursor.expires_at, cursor.id.as_uuid())).unzip();
    // One more row of each kind than the page holds tells whether there are more.
    let [most, most_enqueued, most_ids] = [LEASED, ENQUEUED, IDS].map(|kind| limit(kind) as i64 + 1);
    let ChangesQuery { enqueued_since, finished_since, cancelled_since, redriven_since, .. } = query;
    let ids_after = query.ids_after.map(|id| id.as_uuid());
    let params: Params<'_> = &[
        enqueued_since,
        &most,
        finished_since,
        cancelled_since,
        &lease,
        &id,
        &most_enqueued,
        redriven_since,
        &ids_after,
        &most_ids,
    ];
    let rows = store.database().query(&RECENT_CHANGES, params).await?;
    let mut now = None;
    let mut counts = [0; IDS + 1];
    let (mut first, mut last) = (None, None);
    let (mut jobs, mut ids) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in &rows {
        let kind = usize::try_from(row.get::<_, i32>(column!(RECENT_CHANGES, kind))).unwrap_or(NOW).min(IDS);
        counts[kind] += 1;
        if kind == NOW {
            now = Some(row.get(column!(RECENT_CHANGES, at)));
            continue;
        }
        // A redriven job that has finished again has no id.
        let Some(id) = row.get::<_, Option<Uuid>>(column!(RECENT_CHANGES, id)) else { continue };
        if counts[kind] > limit(kind) {
            continue;
        }
        let id = JobId::from_uuid(id);
        if kind == IDS {
            ids.push(id);
            continue;
        }
        if kind == LEASED {
            let expires_at = row.get(column!(RECENT_CHANGES, lease));
            first.get_or_insert(expires_at);
            last = Some(LeaseCursor { expires_at, id });
        }
        jobs.push(read(row, id)?);
    }
    let now: Timestamp =
        now.ok_or_else(|| StoreError::Backend("recent_changes.sql returned no row with the server's time".into()))?;
    let has_more = |kind: usize| counts[kind] > limit(kind);
    Ok(ChangesPage {
        now,
        jobs,
        more: (ENQUEUED..IDS).any(has_more),
        ids_next: ids.last().copied().filter(|_| has_more(IDS)),
        ids,
        leased_from: first,
        leased_next: last.filter(|_| has_more(LEASED)),
    })
}

fn read(row: &Row, id: JobId) -> Result<JobChange> {
    Ok(JobChange {
        id,
        state: state(row.get(column!(RECENT_CHANGES, state)))?,
        job_type: JobType::trusted(row.get(column!(RECENT_CHANGES, job_type))),
        queue: Queue::trusted(row.get(column!(RECENT_CHANGES, queue))),
        tenant: Tenant::trusted(row.get(column!(RECENT_CHANGES, tenant))),
        at: row.get(column!(RECENT_CHANGES, at)),
    })
}
