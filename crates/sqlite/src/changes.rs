//! Recent changes of jobs, for subscribers that follow many jobs.

use orchestrix_core::{JobId, JobState, JobType, Queue, Tenant};
use orchestrix_store::{
    ChangesPage, ChangesQuery, JobChange,
    changes::{ENQUEUED_FACTOR, LeaseCursor, MAX_CHANGE_IDS},
};
use rusqlite::Row;
use uuid::Uuid;

use crate::{
    columns::{Columns, columns},
    error::Result,
    row::micros,
    session::Session,
    statement::{CHANGES_ENQUEUED, CHANGES_FINISHED, CHANGES_IDS, CHANGES_LEASED, CHANGES_REDRIVEN},
};

columns! {
    mod change of CHANGES_ENQUEUED, CHANGES_FINISHED, CHANGES_LEASED, CHANGES_REDRIVEN {
        id, state, job_type, queue, tenant, updated_at, lease_expires_at,
    }
}
columns! {
    mod unfinished of CHANGES_IDS { id, finished }
}

/// Reads each kind of change that the query asks for. Each statement selects one row more than the limit: the extra
/// row shows that there are more.
pub(crate) fn recent_changes(session: &Session<'_>, query: &ChangesQuery) -> Result<ChangesPage> {
    let mut page = ChangesPage::none(session.now);
    let limit = query.limit;
    let (expires_at, after) = match query.leased_after {
        Some(cursor) => (micros(cursor.expires_at), cursor.id.as_uuid()),
        None => (0, Uuid::nil()),
    };
    let mut last = None;
    session.each(CHANGES_LEASED, (expires_at, after, limit + 1), |row| {
        if page.jobs.len() == limit {
            page.leased_next = last;
            return Ok(false);
        }
        let job = read_change(row)?;
        let expires_at = Columns(row).time(change::lease_expires_at)?;
        page.leased_from.get_or_insert(expires_at);
        last = Some(LeaseCursor { expires_at, id: job.id });
        page.jobs.push(job);
        Ok(true)
    })?;
    let mut add = |added: usize, limit: usize, row: &Row<'_>| {
        let has_room = added < limit;
        match has_room {
            true => page.jobs.push(read_change(row)?),
            false => page.more = true,
        }
        Ok(has_room)
    };
    if let Some(since) = query.enqueued_since {
        let (mut read, limit) = (0, ENQUEUED_FACTOR * limit);
        session.each(CHANGES_ENQUEUED, (JobId::floor(since).as_uuid(), limit + 1), |row| {
            read += 1;
            add(read - 1, limit, row)
        })?;
    }
    for state in JobState::ALL.into_iter().filter(|state| state.is_terminal()) {
        let cancelled_since = query.cancelled_since.filter(|_| state == JobState::Cancelled);
        let Some(since) = query.finished_since.into_iter().chain(cancelled_since).min() else { continue };
        let mut read = 0;
        session.each(CHANGES_FINISHED, (state.as_str(), micros(since), limit + 1), |row| {
            read += 1;
            add(read - 1, limit, row)
        })?;
    }
    if let Some(since) = query.redriven_since {
        let mut read = 0;
        session.each(CHANGES_REDRIVEN, (micros(since), limit + 1), |row| {
            read += 1;
            // Jobs that have finished again count towards the limit, so that the number of rows read is bounded.
            let finished_again = Columns(row).get::<Option<Uuid>>(change::id)?.is_none();
            if finished_again && read <= limit { Ok(true) } else { add(read - 1, limit, row) }
        })?;
    }
    if let Some(after) = query.ids_after {
        let (mut read, mut last) = (0, None);
        session.each(CHANGES_IDS, (after.as_uuid(), MAX_CHANGE_IDS + 1), |row| {
            if read == MAX_CHANGE_IDS {
                page.ids_next = last;
                return Ok(false);
            }
            read += 1;
            let row = Columns(row);
            let (id, finished): (JobId, bool) = (row.id(unfinished::id)?, row.get(unfinished::finished)?);
            last = Some(id);
            page.ids.extend(last.filter(|_| !finished));
            Ok(true)
        })?;
    }
    Ok(page)
}

fn read_change(row: &Row<'_>) -> Result<JobChange> {
    let row = Columns(row);
    Ok(JobChange {
        id: row.id(change::id)?,
        state: row.state(change::state)?,
        job_type: JobType::trusted(row.text(change::job_type)?),
        queue: Queue::trusted(row.text(change::queue)?),
        tenant: Tenant::trusted(row.text(change::tenant)?),
        at: row.time(change::updated_at)?,
    })
}
