//! Schedules: put, delete, pause, resume, read.
//!
//! A newer version may have written a definition that this program cannot read. Such a schedule can still be paused,
//! replaced and deleted, and lists omit it with a warning.

use orchestrix_core::{JobId, NewSchedule, ScheduleName, Tenant};
use orchestrix_store::{
    Page, PageRequest, PutResult, Schedule, StoreError, TenantScope, in_scope,
    schedule::{check_owner, read_definition, write_definition},
};
use rusqlite::{Row, params};
use uuid::Uuid;

use crate::{
    columns::{Columns, columns},
    error::{Error, Result, corrupt},
    row::micros,
    session::{Session, Transaction},
    statement::{
        DELETE_OCCURRENCES, DELETE_SCHEDULE, FIND_SCHEDULE, LIST_SCHEDULES, LIST_TENANT_SCHEDULES, PAUSE_SCHEDULE,
        PUT_SCHEDULE,
    },
};

/// The number of occurrences that one operation deletes. Other operations get their turn in between.
const LEDGER_BATCH: usize = 10_000;
/// The length of an id in the column `open_jobs`.
const ID_BYTES: usize = 16;

columns! {
    mod schedule_columns of FIND_SCHEDULE, LIST_SCHEDULES, LIST_TENANT_SCHEDULES {
        name, created_at, updated_at, counted_from, next_nominal, next_fire_at, last_fired_at, tzdb, open_jobs,
        definition, paused, tenant,
    }
}

fn read(row: &Row<'_>) -> Result<Schedule> {
    let definition = Columns(row).text(schedule_columns::definition)?;
    let definition = read_definition(definition).map_err(|error| corrupt("definition", error))?;
    read_with_definition(row, definition)
}

// Returns the inner error if only the definition cannot be read.
fn try_read(row: &Row<'_>) -> Result<Result<Schedule, StoreError>> {
    match read(row) {
        Ok(schedule) => Ok(Ok(schedule)),
        Err(Error::Store(error @ StoreError::Backend(_))) => Ok(Err(error)),
        Err(error) => Err(error),
    }
}

// The other columns, with the given definition. The column `paused` wins over the definition: it also pauses a
// schedule whose definition cannot be read.
fn read_with_definition(row: &Row<'_>, mut definition: NewSchedule) -> Result<Schedule> {
    let row = Columns(row);
    let open: Vec<u8> = row.get(schedule_columns::open_jobs)?;
    let open = open.chunks(ID_BYTES).map(|bytes| Uuid::from_slice(bytes).map(JobId::from_uuid));
    definition.paused |= row.get::<bool>(schedule_columns::paused)?;
    Ok(Schedule {
        definition,
        created_at: row.time(schedule_columns::created_at)?,
        updated_at: row.time(schedule_columns::updated_at)?,
        counted_from: row.time(schedule_columns::counted_from)?,
        next_nominal: row.time_or_null(schedule_columns::next_nominal)?,
        next_fire_at: row.time_or_null(schedule_columns::next_fire_at)?,
        last_fired_at: row.time_or_null(schedule_columns::last_fired_at)?,
        open_jobs: open.collect::<Result<_, _>>().map_err(|error| corrupt("open_jobs", error))?,
        tzdb: row.get(schedule_columns::tzdb)?,
    })
}

/// The value of the column `open_jobs`.
pub(crate) fn write_open_jobs(jobs: &[JobId]) -> Vec<u8> {
    jobs.iter().flat_map(|id| id.as_uuid().into_bytes()).collect()
}

// The scope is part of the WHERE clause: a schedule of another tenant is not found, whether or not it can be read.
fn find_row<T>(
    session: &Session<'_>,
    scope: TenantScope<'_>,
    name: &ScheduleName,
    read: impl FnOnce(&Row<'_>) -> Result<T>,
) -> Result<Option<T>> {
    session.first(FIND_SCHEDULE, params![name.as_str(), scope.map(Tenant::as_str)], read)
}

pub(crate) fn find(session: &Session<'_>, scope: TenantScope<'_>, name: &ScheduleName) -> Result<Option<Schedule>> {
    find_row(session, scope, name, read)
}

/// The schedule, or `ScheduleNotFound`.
pub(crate) fn require(session: &Session<'_>, scope: TenantScope<'_>, name: &ScheduleName) -> Result<Schedule> {
    find(session, scope, name)?.ok_or_else(|| not_found(name))
}

/// Whether the schedule exists. Its definition need not be readable.
pub(crate) fn exists(session: &Session<'_>, scope: TenantScope<'_>, name: &ScheduleName) -> Result<bool> {
    Ok(find_row(session, scope, name, |_| Ok(()))?.is_some())
}

fn not_found(name: &ScheduleName) -> Error {
    StoreError::ScheduleNotFound(name.clone()).into()
}

pub(crate) fn list(
    session: &Session<'_>,
    scope: TenantScope<'_>,
    page: &PageRequest<ScheduleName>,
) -> Result<Page<Schedule, ScheduleName>> {
    let after = page.cursor.as_ref().map_or("", ScheduleName::as_str);
    let read = |row: &Row<'_>| {
        let name = ScheduleName::trusted(Columns(row).text(schedule_columns::name)?);
        Ok((name, try_read(row)?))
    };
    let limit = page.limit + 1;
    let mut listed = match scope {
        Some(tenant) => session.all(LIST_TENANT_SCHEDULES, params![after, limit, tenant.as_str()], read)?,
        None => session.all(LIST_SCHEDULES, params![after, limit], read)?,
    };
    let more = listed.len() > page.limit;
    listed.truncate(page.limit);
    let next = listed.last().map(|(name, _)| name.clone()).filter(|_| more);
    let readable = |(name, schedule): (ScheduleName, Result<Schedule, StoreError>)| {
        let warn = |error: &StoreError| {
            tracing::warn!(schedule = %name, %error, "a schedule that cannot be read was omitted from a list");
        };
        schedule.inspect_err(warn).ok()
    };
    Ok(Page { items: listed.into_iter().filter_map(readable).collect(), next })
}

impl Transaction<'_> {
    pub(crate) fn put_schedule(&mut self, scope: TenantScope<'_>, definition: NewSchedule) -> Result<PutResult> {
        // Read in every scope: the name of another tenant's schedule is taken, and must not be overwritten.
        let existing = find_row(self, None, &definition.name, |row| {
            let tenant = Columns(row).text_or_null(schedule_columns::tenant)?;
            if !in_scope(tenant, scope) {
                return Err(not_found(&definition.name));
            }
            check_owner(tenant, &definition).map_err(StoreError::from)?;
            Ok(match try_read(row)? {
                Ok(schedule) => Ok(schedule),
                Err(error) => Err((error, read_with_definition(row, definition.clone())?)),
            })
        })?;
        let (schedule, result) = match existing {
            None => (Schedule::new(definition, self.now), PutResult::Created),
            Some(Ok(old)) => {
                let mut schedule = old.clone();
                let Some(passed) = schedule.edit(definition, self.now) else { return Ok(PutResult::Unchanged) };
                if let Some(occurrence) = passed {
                    self.record_occurrence(&old, &occurrence)?;
                }
                (schedule, PutResult::Updated)
            }
            Some(Err((error, old))) => {
                tracing::warn!(schedule = %definition.name, %error, "a schedule that cannot be read was replaced");
                (Schedule::replacing_unreadable(old, self.now), PutResult::Updated)
            }
        };
        self.write_schedule(&schedule)?;
        Ok(result)
    }

    /// Deletes a schedule and its occurrences. Returns whether it existed, or `None` if occurrences are left and the
    /// caller must call again. A crash in between leaves the schedule with its remaining occurrences.
    pub(crate) fn delete_schedule(&mut self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<Option<bool>> {
        if !exists(self, scope, name)? {
            return Ok(Some(false));
        }
        if self.write(DELETE_OCCURRENCES, params![name.as_str(), LEDGER_BATCH])? == LEDGER_BATCH {
            return Ok(None);
        }
        Ok(Some(self.write(DELETE_SCHEDULE, [name.as_str()])? > 0))
    }

    pub(crate) fn pause_schedule(
        &mut self,
        scope: TenantScope<'_>,
        name: &ScheduleName,
        note: Option<String>,
    ) -> Result<bool> {
        let found = find_row(self, scope, name, |row| {
            Ok((try_read(row)?, Columns(row).get::<bool>(schedule_columns::paused)?))
        })?;
        match found.ok_or_else(|| not_found(name))? {
            (Ok(mut schedule), _) => {
                let was_running = schedule.pause(note, self.now)?;
                self.write_schedule(&schedule)?;
                Ok(was_running)
            }
            (Err(error), was_paused) => {
                note.as_deref().map_or(Ok(()), NewSchedule::check_note)?;
                tracing::warn!(
                    schedule = %name, %error, note,
                    "a schedule that cannot be read was paused; its note is not stored"
                );
                self.write_one(PAUSE_SCHEDULE, params![name.as_str(), micros(self.now)])?;
                Ok(!was_paused)
            }
        }
    }

    pub(crate) fn resume_schedule(&mut self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<bool> {
        let mut schedule = require(self, scope, name)?;
        let Some(passed) = schedule.resume(self.now) else { return Ok(false) };
        if let Some(occurrence) = passed {
            self.record_occurrence(&schedule, &occurrence)?;
        }
        self.write_schedule(&schedule)?;
        Ok(true)
    }

    fn write_schedule(&mut self, schedule: &Schedule) -> Result<()> {
        let definition = write_definition(&schedule.definition).map_err(|error| corrupt("definition", error))?;
        self.write_one(
            PUT_SCHEDULE,
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
                write_open_jobs(&schedule.open_jobs),
                definition,
            ],
        )?;
        if schedule.next_fire_at.is_some() {
            self.effects.commit.timer_set();
        }
        Ok(())
    }
}
