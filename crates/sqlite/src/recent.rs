//! What happened query.

use orchestrix_core::{JobId, JobState, JobType, Queue, Tenant};
use orchestrix_store::{
    ChangesPage, ChangesQuery, JobChange,
    changes::{ENQUEUED_FACTOR, LeaseCursor, MAX_CHANGE_IDS},
};
use rusqlite::Row;
use uuid::Uuid;

use crate::{
    error::Result,
    row::{Columns, micros},
    session::Session,
    statement::{RECENT_ENDED, RECENT_IDS, RECENT_LEASED, RECENT_RECORDED, RECENT_REVIVED},
};

pub(crate) fn recent(session: &Session<'_>, query: &ChangesQuery) -> Result<ChangesPage> {
    let mut recent = ChangesPage::none(session.now);
    let limit = query.limit;
    let (expires_at, after) = match query.leased_after {
        Some(place) => (micros(place.expires_at), place.id.as_uuid()),
        None => (0, Uuid::nil()),
    };
    let mut last = None;
    // Of each kind one more than is shown is asked for: it tells whether there are more.
    session.each(RECENT_LEASED, (expires_at, after, limit + 1), |row| {
        if recent.jobs.len() == limit {
            recent.leased_next = last;
            return Ok(false);
        }
        let job = glimpse(row)?;
        let expires_at = Columns(row).time(6)?;
        recent.leased_from.get_or_insert(expires_at);
        last = Some(LeaseCursor { expires_at, id: job.id });
        recent.jobs.push(job);
        Ok(true)
    })?;
    let mut show = |shown: usize, limit: usize, row: &Row<'_>| {
        let room = shown < limit;
        match room {
            true => recent.jobs.push(glimpse(row)?),
            false => recent.more = true,
        }
        Ok(room)
    };
    if let Some(since) = query.enqueued_since {
        let (mut shown, limit) = (0, ENQUEUED_FACTOR * limit);
        session.each(RECENT_RECORDED, (JobId::floor(since).as_uuid(), limit + 1), |row| {
            shown += 1;
            show(shown - 1, limit, row)
        })?;
    }
    for state in JobState::ALL.into_iter().filter(|state| state.is_terminal()) {
        let reach = query.cancelled_since.filter(|_| state == JobState::Cancelled);
        let Some(since) = query.finished_since.into_iter().chain(reach).min() else { continue };
        let mut shown = 0;
        session.each(RECENT_ENDED, (state.as_str(), micros(since), limit + 1), |row| {
            shown += 1;
            show(shown - 1, limit, row)
        })?;
    }
    if let Some(since) = query.redriven_since {
        let mut shown = 0;
        session.each(RECENT_REVIVED, (micros(since), limit + 1), |row| {
            shown += 1;
            let over = Columns(row).get::<Option<Uuid>>(0)?.is_none();
            if over && shown <= limit { Ok(true) } else { show(shown - 1, limit, row) }
        })?;
    }
    if let Some(after) = query.ids_after {
        let (mut looked, mut last) = (0, None);
        session.each(RECENT_IDS, (after.as_uuid(), MAX_CHANGE_IDS + 1), |row| {
            if looked == MAX_CHANGE_IDS {
                recent.ids_next = last;
                return Ok(false);
            }
            looked += 1;
            let row = Columns(row);
            let (id, over): (JobId, bool) = (row.id(0)?, row.get(1)?);
            last = Some(id);
            recent.ids.extend(last.filter(|_| !over));
            Ok(true)
        })?;
    }
    Ok(recent)
}

fn glimpse(row: &Row<'_>) -> Result<JobChange> {
    let row = Columns(row);
    Ok(JobChange {
        id: row.id(0)?,
        state: row.state(1)?,
        job_type: JobType::trusted(row.text(2)?),
        queue: Queue::trusted(row.text(3)?),
        tenant: Tenant::trusted(row.text(4)?),
        at: row.time(5)?,
    })
}
