//! The lines of schedules' ledgers. A nominal time has one.

use orchestrix_core::{JobId, ScheduleName, Timestamp};
use orchestrix_store::{Occurrence, Page, PageRequest, Schedule, StoreError, TenantScope};
use rusqlite::{Row, params};

use crate::{
    error::{Result, corrupt},
    row::{Columns, micros},
    schedule,
    session::{Session, Transaction},
    statement::{FORGET_OCCURRENCE, OCCURRENCE, OCCURRENCES, RECORD_OCCURRENCE},
};

/// Reads what `occurrence.sql` and `occurrences.sql` select.
fn read(row: &Row<'_>) -> Result<Occurrence> {
    let row = Columns(row);
    let reason = row.text_or_null(4)?.map(str::parse).transpose();
    Ok(Occurrence {
        nominal: row.time(0)?,
        until: row.time(1)?,
        count: row.get(2)?,
        outcome: row.text(3)?.parse().map_err(|error| corrupt("outcome", error))?,
        reason: reason.map_err(|error| corrupt("reason", error))?,
        job: row.get::<Option<_>>(5)?.map(JobId::from_uuid),
        at: row.time(6)?,
    })
}

pub(crate) fn find(session: &Session<'_>, name: &ScheduleName, nominal: Timestamp) -> Result<Option<Occurrence>> {
    session.first(OCCURRENCE, params![name.as_str(), micros(nominal)], read)
}

pub(crate) fn list(
    session: &Session<'_>,
    within: TenantScope<'_>,
    name: &ScheduleName,
    page: &PageRequest<Timestamp>,
) -> Result<Page<Occurrence, Timestamp>> {
    if !schedule::is_there(session, within, name)? {
        return Err(StoreError::ScheduleNotFound(name.clone()).into());
    }
    let before = page.cursor.map_or(i64::MAX, micros);
    let mut items = session.all(OCCURRENCES, params![name.as_str(), before, page.limit + 1], read)?;
    let more = items.len() > page.limit;
    items.truncate(page.limit);
    let next = items.last().map(|line| line.nominal).filter(|_| more);
    Ok(Page { items, next })
}

impl Transaction<'_> {
    /// Writes a line. The first for a nominal time stands: of several that were passed over together, those that have one of their own
    /// leave the head of the new line.
    pub(crate) fn record_line(&mut self, schedule: &Schedule, line: &Occurrence) -> Result<()> {
        let name = &schedule.definition.name;
        let mut left = Some(line.clone());
        while let Some(line) = left {
            // One with a job is written in any case: the key refuses it if there is another, and the job with it.
            if line.job.is_some() || find(self, name, line.nominal)?.is_none() {
                return self.insert_line(name, &line);
            }
            left = line.without_first(schedule);
        }
        Ok(())
    }

    /// Writes a line in the place of one that says that nothing was fired then.
    pub(crate) fn replace_line(&mut self, schedule: &Schedule, line: &Occurrence) -> Result<()> {
        let name = &schedule.definition.name;
        let passed = find(self, name, line.nominal)?;
        if passed.is_some() {
            self.write_one(FORGET_OCCURRENCE, params![name.as_str(), micros(line.nominal)])?;
        }
        self.insert_line(name, line)?;
        match passed.and_then(|passed| passed.without_first(schedule)) {
            Some(rest) => self.record_line(schedule, &rest),
            None => Ok(()),
        }
    }

    fn insert_line(&mut self, name: &ScheduleName, line: &Occurrence) -> Result<()> {
        self.write_one(
            RECORD_OCCURRENCE,
            params![
                name.as_str(),
                micros(line.nominal),
                micros(line.until),
                i64::try_from(line.count).unwrap_or(i64::MAX),
                line.outcome.as_str(),
                line.reason.map(|reason| reason.as_str()),
                line.job.map(|id| id.as_uuid()),
                micros(line.at),
            ],
        )
    }
}
