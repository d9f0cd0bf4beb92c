//! What happened query.
//!
//! What ended query is found by history_finished, an index of which a range of pages costs a few bytes, nothing where jobs are finished, and
//! a reading of all of the range at every look until it has a summary. The server gives it one when its autovacuum comes to it, a minute
//! later or never: of half a million ends at once every look until then took 150 ms to 230 ms. So whoever looks has it done, every few seconds.

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
    statement::{RECENT, SUMMARIZE},
};

/// The kinds of rows beside the time: leased, recorded, in history, dead, cancelled, revived, and ids alone.
const KINDS: usize = 7;
const LEASED: usize = 1;
const RECORDED: usize = 2;
const IDS: usize = 7;

/// How often summaries are made while somebody looks. Once all have one it takes a few milliseconds.
const SUMMARIZE_EVERY: Duration = Duration::from_secs(5);

/// When summaries were last made.
#[derive(Debug, Default)]
pub(crate) struct Summaries(Mutex<Option<Instant>>);

impl Summaries {
    // Whether they are to be made now; then nobody else will for a while.
    fn due(&self) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = last.is_none_or(|last| last.elapsed() >= SUMMARIZE_EVERY);
        if due {
            *last = Some(Instant::now());
        }
        due
    }
}

pub(crate) async fn recent(store: &PostgresStore, query: &ChangesQuery) -> Result<ChangesPage> {
    query.validate()?;
    if (query.finished_since.is_some() || query.cancelled_since.is_some()) && store.0.summaries.due() {
        // Without it the look is slower, and shows the same: another may be at it, or this user may not own the table.
        if let Err(error) = store.database().query(&SUMMARIZE, &[]).await {
            tracing::debug!(%error, "what ended query could not be summarized");
        }
    }
    let limit = |kind: usize| match kind {
        RECORDED => ENQUEUED_FACTOR * query.limit,
        IDS => MAX_CHANGE_IDS,
        _ => query.limit,
    };
    let (lease, id) = query.leased_after.map(|place| (place.expires_at, place.id.as_uuid())).unzip();
    // Of each kind one more than is shown is asked for: it tells whether there are more.
    let [most, most_recorded, most_ids] = [LEASED, RECORDED, IDS].map(|kind| limit(kind) as i64 + 1);
    let ChangesQuery { enqueued_since, finished_since, cancelled_since, redriven_since, .. } = query;
    let ids_after = query.ids_after.map(|id| id.as_uuid());
    let params: Params<'_> = &[
        enqueued_since,
        &most,
        finished_since,
        cancelled_since,
        &lease,
        &id,
        &most_recorded,
        redriven_since,
        &ids_after,
        &most_ids,
    ];
    let rows = store.database().query(&RECENT, params).await?;
    let mut now = None;
    let mut counts = [0; KINDS + 1];
    let (mut first, mut last) = (None, None);
    let (mut jobs, mut ids) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in &rows {
        let kind = usize::try_from(row.get::<_, i32>(0)).unwrap_or(0).min(KINDS);
        counts[kind] += 1;
        if kind == 0 {
            now = Some(row.get(6));
        } else if counts[kind] > limit(kind) {
            continue;
        } else if row.get::<_, Option<Uuid>>(1).is_none() {
            // Revived, and over again.
        } else if kind == IDS {
            ids.push(JobId::from_uuid(row.get(1)));
        } else {
            let job = glimpse(row)?;
            if kind == LEASED {
                let expires_at = row.get(7);
                first.get_or_insert(expires_at);
                last = Some(LeaseCursor { expires_at, id: job.id });
            }
            jobs.push(job);
        }
    }
    let now: Timestamp = now.ok_or_else(|| StoreError::Backend("the time is missing".into()))?;
    let has_more = |kind: usize| counts[kind] > limit(kind);
    Ok(ChangesPage {
        now,
        jobs,
        more: (RECORDED..IDS).any(has_more),
        ids_next: ids.last().copied().filter(|_| has_more(IDS)),
        ids,
        leased_from: first,
        leased_next: last.filter(|_| has_more(LEASED)),
    })
}

fn glimpse(row: &Row) -> Result<JobChange> {
    Ok(JobChange {
        id: JobId::from_uuid(row.get(1)),
        state: state(row.get(2))?,
        job_type: JobType::trusted(row.get(3)),
        queue: Queue::trusted(row.get(4)),
        tenant: Tenant::trusted(row.get(5)),
        at: row.get(6),
    })
}
