//! Occurrences of schedules: one row for every nominal time that was fired, or for a span of times that were not.

use orchestrix_core::{JobId, ScheduleName, Timestamp};
use orchestrix_store::{Occurrence, Page, PageRequest, Schedule, StoreError, TenantScope};
use rusqlite::{Row, params};

use crate::{
    columns::{Columns, columns},
    error::{Result, corrupt},
    row::micros,
    schedule,
    session::{Session, Transaction},
    statement::{DELETE_OCCURRENCE, FIND_OCCURRENCE, INSERT_OCCURRENCE, LIST_OCCURRENCES},
};

columns! {
    mod occurrence_columns of FIND_OCCURRENCE, LIST_OCCURRENCES { nominal, until, count, outcome, reason, job, at }
}

fn read(row: &Row<'_>) -> Result<Occurrence> {
    let row = Columns(row);
    let reason = row.text_or_null(occurrence_columns::reason)?.map(str::parse).transpose();
    Ok(Occurrence {
        nominal: row.time(occurrence_columns::nominal)?,
        until: row.time(occurrence_columns::until)?,
        count: row.get(occurrence_columns::count)?,
        outcome: row.text(occurrence_columns::outcome)?.parse().map_err(|error| corrupt("outcome", error))?,
        reason: reason.map_err(|error| corrupt("reason", error))?,
        job: row.get::<Option<_>>(occurrence_columns::job)?.map(JobId::from_uuid),
        at: row.time(occurrence_columns::at)?,
    })
}

/// The occurrence that begins at a nominal time.
pub(crate) fn find(session: &Session<'_>, name: &ScheduleName, nominal: Timestamp) -> Result<Option<Occurrence>> {
    session.first(FIND_OCCURRENCE, params![name.as_str(), micros(nominal)], read)
}

pub(crate) fn list(
    session: &Session<'_>,
    scope: TenantScope<'_>,
    name: &ScheduleName,
    page: &PageRequest<Timestamp>,
) -> Result<Page<Occurrence, Timestamp>> {
    if !schedule::exists(session, scope, name)? {
        return Err(StoreError::ScheduleNotFound(name.clone()).into());
    }
    let before = page.cursor.map_or(i64::MAX, micros);
    let mut items = session.all(LIST_OCCURRENCES, params![name.as_str(), before, page.limit + 1], read)?;
    let more = items.len() > page.limit;
    items.truncate(page.limit);
    let next = items.last().map(|occurrence| occurrence.nominal).filter(|_| more);
    Ok(Page { items, next })
}

impl Transaction<'_> {
    /// Records an occurrence. The first one of a nominal time wins: where a span of times that were not fired begins
    /// with times that have an occurrence already, these are cut off.
    pub(crate) fn record_occurrence(&mut self, schedule: &Schedule, occurrence: &Occurrence) -> Result<()> {
        let name = &schedule.definition.name;
        let mut left = Some(occurrence.clone());
        while let Some(occurrence) = left {
            // One with a job is inserted in any case. If its time is taken, the primary key refuses it, and the job
            // with it.
            if occurrence.job.is_some() || find(self, name, occurrence.nominal)?.is_none() {
                return self.insert_occurrence(name, &occurrence);
            }
            left = occurrence.without_first(schedule);
        }
        Ok(())
    }

    /// Records an occurrence in place of one that did not fire. The rest of a replaced span stays.
    pub(crate) fn replace_occurrence(&mut self, schedule: &Schedule, occurrence: &Occurrence) -> Result<()> {
        let name = &schedule.definition.name;
        let replaced = find(self, name, occurrence.nominal)?;
        if replaced.is_some() {
            self.write_one(DELETE_OCCURRENCE, params![name.as_str(), micros(occurrence.nominal)])?;
        }
        self.insert_occurrence(name, occurrence)?;
        match replaced.and_then(|replaced| replaced.without_first(schedule)) {
            Some(rest) => self.record_occurrence(schedule, &rest),
            None => Ok(()),
        }
    }

    fn insert_occurrence(&mut self, name: &ScheduleName, occurrence: &Occurrence) -> Result<()> {
        self.write_one(
            INSERT_OCCURRENCE,
            params![
                name.as_str(),
                micros(occurrence.nominal),
                micros(occurrence.until),
                i64::try_from(occurrence.count).unwrap_or(i64::MAX),
                occurrence.outcome.as_str(),
                occurrence.reason.map(|reason| reason.as_str()),
                occurrence.job.map(|id| id.as_uuid()),
                micros(occurrence.at),
            ],
        )
    }
}
