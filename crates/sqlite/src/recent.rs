//! What happened lately.

use orchestrix_core::{JobId, JobState, JobType, Queue, Tenant, Timestamp};
use orchestrix_store::{Glimpse, Recent};
use rusqlite::Params;

use crate::{
    error::Result,
    row::{Columns, micros},
    session::Session,
    statement::{RECENT_ENDED, RECENT_LEASED, RECENT_RECORDED, Statement},
};

pub(crate) fn recent(session: &Session<'_>, since: Option<Timestamp>, limit: usize) -> Result<Recent> {
    let mut recent = Recent { now: session.now, jobs: Vec::new(), more: false };
    // One more than is shown tells whether there are more.
    show(session, &mut recent, limit, RECENT_LEASED, [limit + 1])?;
    if let Some(since) = since {
        let first = JobId::new(since, [0; 10]).as_uuid();
        show(session, &mut recent, limit, RECENT_RECORDED, (first, limit + 1))?;
        for state in JobState::ALL.into_iter().filter(|state| state.is_terminal()) {
            show(session, &mut recent, limit, RECENT_ENDED, (state.as_str(), micros(since), limit + 1))?;
        }
    }
    Ok(recent)
}

fn show(
    session: &Session<'_>,
    recent: &mut Recent,
    limit: usize,
    statement: Statement,
    params: impl Params,
) -> Result<()> {
    let before = recent.jobs.len();
    session.each(statement, params, |row| {
        if recent.jobs.len() - before == limit {
            recent.more = true;
            return Ok(false);
        }
        let row = Columns(row);
        recent.jobs.push(Glimpse {
            id: row.id(0)?,
            state: row.state(1)?,
            job_type: JobType::trusted(row.text(2)?),
            queue: Queue::trusted(row.text(3)?),
            tenant: Tenant::trusted(row.text(4)?),
            at: row.time(5)?,
        });
        Ok(true)
    })
}
