//! Setting schedules up, stopping them, letting them go on, and looking at them.

use orchestrix_core::{JobId, NewSchedule, ScheduleName};
use orchestrix_store::{
    Page, PageRequest, PutResult, Schedule, StoreError, TenantScope, in_scope,
    schedule::{check_owner, read_definition, write_definition},
};
use rusqlite::{Row, params};
use uuid::Uuid;

use crate::{
    error::{Fault, Result, corrupt},
    row::{Columns, micros},
    session::{Session, Transaction},
    statement::{
        DELETE_LINES, DELETE_SCHEDULE, FIND_SCHEDULE, KEEP_SCHEDULE, PAUSE_SCHEDULE, SCHEDULES, TENANT_SCHEDULES,
    },
};

/// Lines of a ledger that one operation deletes: others want to write too.
const LEDGER_BATCH: usize = 10_000;
/// The bytes of an id in `open_jobs`.
const ID: usize = 16;

/// Reads what `find_schedule.sql` and `schedules.sql` select.
fn read(row: &Row<'_>) -> Result<Schedule> {
    let definition = read_definition(Columns(row).text(9)?).map_err(|error| corrupt("definition", error))?;
    beside(row, definition)
}

// The same where this program may not be able to read it.
fn attempt(row: &Row<'_>) -> Result<Result<Schedule, StoreError>> {
    match read(row) {
        Ok(schedule) => Ok(Ok(schedule)),
        Err(Fault::Store(error @ StoreError::Backend(_))) => Ok(Err(error)),
        Err(fault) => Err(fault),
    }
}

// What the other columns say, beside a definition. Whether it is paused is theirs to say: whoever cannot read a definition can stop it.
fn beside(row: &Row<'_>, mut definition: NewSchedule) -> Result<Schedule> {
    let row = Columns(row);
    let open: Vec<u8> = row.get(8)?;
    let open = open.chunks(ID).map(|bytes| Uuid::from_slice(bytes).map(JobId::from_uuid));
    definition.paused |= row.get::<bool>(10)?;
    Ok(Schedule {
        definition,
        created_at: row.time(1)?,
        updated_at: row.time(2)?,
        counted_from: row.time(3)?,
        next_nominal: row.time_or_null(4)?,
        next_fire_at: row.time_or_null(5)?,
        last_fired_at: row.time_or_null(6)?,
        open_jobs: open.collect::<Result<_, _>>().map_err(|error| corrupt("open_jobs", error))?,
        tzdb: row.get(7)?,
    })
}

/// The column `open_jobs`.
pub(crate) fn write_open(jobs: &[JobId]) -> Vec<u8> {
    jobs.iter().flat_map(|id| id.as_uuid().into_bytes()).collect()
}

/// Looks a schedule up. Another's is not there, readable or not.
pub(crate) fn find(session: &Session<'_>, within: TenantScope<'_>, name: &ScheduleName) -> Result<Option<Schedule>> {
    let read = |row: &Row<'_>| is_row_within(row, within)?.then(|| read(row)).transpose();
    Ok(session.first(FIND_SCHEDULE, [name.as_str()], read)?.flatten())
}

/// Looks up a schedule that should be there.
pub(crate) fn expect(session: &Session<'_>, within: TenantScope<'_>, name: &ScheduleName) -> Result<Schedule> {
    find(session, within, name)?.ok_or_else(|| unknown(name))
}

/// Whether a schedule is there, readable or not.
pub(crate) fn is_there(session: &Session<'_>, within: TenantScope<'_>, name: &ScheduleName) -> Result<bool> {
    let there = session.first(FIND_SCHEDULE, [name.as_str()], |row| is_row_within(row, within))?;
    Ok(there.unwrap_or(false))
}

// By its column, which is there for definitions too that this program cannot read.
fn is_row_within(row: &Row<'_>, within: TenantScope<'_>) -> Result<bool> {
    Ok(in_scope(Columns(row).text_or_null(11)?, within))
}

fn unknown(name: &ScheduleName) -> Fault {
    StoreError::ScheduleNotFound(name.clone()).into()
}

pub(crate) fn list(
    session: &Session<'_>,
    within: TenantScope<'_>,
    page: &PageRequest<ScheduleName>,
) -> Result<Page<Schedule, ScheduleName>> {
    let after = page.cursor.as_ref().map_or("", ScheduleName::as_str);
    let read = |row: &Row<'_>| Ok((ScheduleName::trusted(Columns(row).text(0)?), attempt(row)?));
    let limit = page.limit + 1;
    let mut found = match within {
        Some(own) => session.all(TENANT_SCHEDULES, params![after, limit, own.as_str()], read)?,
        None => session.all(SCHEDULES, params![after, limit], read)?,
    };
    let more = found.len() > page.limit;
    found.truncate(page.limit);
    let next = found.last().map(|(name, _)| name.clone()).filter(|_| more);
    let readable = |(name, schedule): (ScheduleName, Result<Schedule, StoreError>)| {
        let warn = |error: &StoreError| {
            tracing::warn!(schedule = %name, %error, "left out of a list: this program cannot read it");
        };
        schedule.inspect_err(warn).ok()
    };
    Ok(Page { items: found.into_iter().filter_map(readable).collect(), next })
}

impl Transaction<'_> {
    pub(crate) fn put_schedule(&mut self, within: TenantScope<'_>, definition: NewSchedule) -> Result<PutResult> {
        let known = self.first(FIND_SCHEDULE, [definition.name.as_str()], |row| {
            if !is_row_within(row, within)? {
                return Err(unknown(&definition.name));
            }
            check_owner(Columns(row).text_or_null(11)?, &definition).map_err(StoreError::from)?;
            Ok(match attempt(row)? {
                Ok(schedule) => Ok(schedule),
                Err(error) => Err((error, beside(row, definition.clone())?)),
            })
        })?;
        let (schedule, put) = match known {
            None => (Schedule::new(definition, self.now), PutResult::Created),
            Some(Ok(old)) => {
                let mut schedule = old.clone();
                let Some(passed) = schedule.edit(definition, self.now) else { return Ok(PutResult::Unchanged) };
                if let Some(line) = passed {
                    self.record_line(&old, &line)?;
                }
                (schedule, PutResult::Updated)
            }
            Some(Err((error, was))) => {
                tracing::warn!(schedule = %definition.name, %error, "replaced: this program cannot read it");
                (Schedule::replacing_unreadable(was, self.now), PutResult::Updated)
            }
        };
        self.keep_schedule(&schedule)?;
        Ok(put)
    }

    /// Forgets a schedule with its ledger; whether there was one. `None` while there may be more of its ledger: ask again. A crash in
    /// between leaves the schedule with what is left of it.
    pub(crate) fn delete_schedule(&mut self, within: TenantScope<'_>, name: &ScheduleName) -> Result<Option<bool>> {
        if !is_there(self, within, name)? {
            return Ok(Some(false));
        }
        if self.write(DELETE_LINES, params![name.as_str(), LEDGER_BATCH])? == LEDGER_BATCH {
            return Ok(None);
        }
        Ok(Some(self.write(DELETE_SCHEDULE, [name.as_str()])? > 0))
    }

    pub(crate) fn pause_schedule(
        &mut self,
        within: TenantScope<'_>,
        name: &ScheduleName,
        note: Option<String>,
    ) -> Result<bool> {
        if !is_there(self, within, name)? {
            return Err(unknown(name));
        }
        let known = self
            .first(FIND_SCHEDULE, [name.as_str()], |row| Ok((attempt(row)?, Columns(row).get::<bool>(10)?)))?
            .ok_or_else(|| unknown(name))?;
        match known {
            (Ok(mut schedule), _) => {
                let ran = schedule.pause(note, self.now)?;
                self.keep_schedule(&schedule)?;
                Ok(ran)
            }
            (Err(error), was_paused) => {
                note.as_deref().map_or(Ok(()), NewSchedule::check_note)?;
                tracing::warn!(schedule = %name, %error, note, "paused without its note: this program cannot read it");
                self.write_one(PAUSE_SCHEDULE, params![name.as_str(), micros(self.now)])?;
                Ok(!was_paused)
            }
        }
    }

    pub(crate) fn resume_schedule(&mut self, within: TenantScope<'_>, name: &ScheduleName) -> Result<bool> {
        let mut schedule = expect(self, within, name)?;
        let Some(passed) = schedule.resume(self.now) else { return Ok(false) };
        if let Some(line) = passed {
            self.record_line(&schedule, &line)?;
        }
        self.keep_schedule(&schedule)?;
        Ok(true)
    }

    fn keep_schedule(&mut self, schedule: &Schedule) -> Result<()> {
        let definition = write_definition(&schedule.definition).map_err(|error| corrupt("definition", error))?;
        self.write_one(
            KEEP_SCHEDULE,
            params![
                schedule.definition.name.as_str(),
                schedule.definition.paused,
                micros(schedule.created_at),
                micros(schedule.updated_at),
                micros(schedule.counted_from),
                schedule.next_nominal.map(micros),
                schedule.next_fire_at.map(micros),
                schedule.last_fired_at.map(micros),
                schedule.tzdb,
                write_open(&schedule.open_jobs),
                definition,
            ],
        )?;
        if schedule.next_fire_at.is_some() {
            self.effects.commit.timer_set();
        }
        Ok(())
    }
}
