//! The leader's sweep over schedules: fires those that are due.

use std::{cell::Cell, collections::HashSet, time::Duration};

use orchestrix_core::{JobId, ScheduleName, tzdb_version};
use orchestrix_store::{
    Firing, Schedule, StoreError, SweepResult,
    clock::{later, until},
};
use rusqlite::{ErrorCode, Row, params};

use crate::{
    columns::Columns,
    error::{Error, Result},
    firing::{payload_bytes, unfinished_jobs},
    occurrences,
    row::micros,
    schedule,
    session::{Session, Transaction},
    statement::{DUE_SCHEDULES, NEXT_FIRING, POSTPONE_SCHEDULE, STALE_TZDB_SCHEDULES},
};

/// A sweep starts no further schedule after this many jobs or bytes of payload. Other operations want to write too.
const MAX_SWEEP_JOBS: usize = 5_000;
const MAX_SWEEP_BYTES: usize = 32 * 1024 * 1024;
/// How long a schedule that this program cannot fire is postponed.
const POSTPONEMENT: Duration = Duration::from_secs(60);

/// How long until a schedule is due or must be recomputed.
pub(crate) fn next_in(session: &Session<'_>) -> Result<Option<Duration>> {
    if session.first(STALE_TZDB_SCHEDULES, params![tzdb_version(), 1], |_| Ok(()))?.is_some() {
        return Ok(Some(Duration::ZERO));
    }
    let next = session.first(NEXT_FIRING, (), |row| Columns(row).time(0))?;
    Ok(next.map(|time| until(session.now, time)))
}

// Decides what the schedule fires. A nominal time that has an occurrence already gets no job.
fn decide(session: &Session<'_>, schedule: &Schedule, unfinished: &[JobId]) -> Result<Firing> {
    let failure = Cell::new(None);
    let has_occurrence = |nominal| match occurrences::find(session, &schedule.definition.name, nominal) {
        Ok(found) => found.is_some(),
        Err(error) => {
            failure.set(Some(error));
            true
        }
    };
    let limit = (MAX_SWEEP_BYTES / payload_bytes(schedule).max(1)).clamp(1, Schedule::MAX_FIRED);
    let firing = schedule.fire_unless(has_occurrence, unfinished, session.now, limit);
    failure.into_inner().map_or(Ok(firing), Err)
}

// Whether the stored data of one schedule caused the error. Otherwise the file or the machine did, and every other
// schedule would fail too.
fn is_caused_by_schedule(error: &Error) -> bool {
    match error {
        Error::Store(error) => !matches!(error, StoreError::Unavailable(_)),
        Error::Sqlite(error) => error.sqlite_error_code().is_none_or(|code| code == ErrorCode::ConstraintViolation),
    }
}

impl Transaction<'_> {
    pub(crate) fn fire_schedules(&mut self, limit: usize) -> Result<SweepResult> {
        let (mut jobs, mut bytes, mut count) = (0, 0, 0);
        for name in self.schedules_to_fire(limit)? {
            if jobs >= MAX_SWEEP_JOBS || bytes >= MAX_SWEEP_BYTES {
                break;
            }
            count += 1;
            let Some(schedule) = self.find_readable(&name)? else { continue };
            let fired = match self.savepoint(|transaction| transaction.fire_schedule(&schedule)) {
                Err(error) if is_caused_by_schedule(&error) => {
                    self.postpone(&name, &error.into_store_error(&self.options.path))?;
                    continue;
                }
                fired => fired?,
            };
            jobs += fired;
            bytes += fired * payload_bytes(&schedule);
        }
        Ok(SweepResult { count, next_in: next_in(self)? })
    }

    // Due schedules first, then those whose next time was computed with another time-zone database. Each appears once.
    fn schedules_to_fire(&self, limit: usize) -> Result<Vec<ScheduleName>> {
        let name = |row: &Row<'_>| Ok(ScheduleName::trusted(Columns(row).text(0)?));
        let mut names = self.all(DUE_SCHEDULES, params![micros(self.now), limit], name)?;
        if names.len() < limit {
            let due: HashSet<ScheduleName> = names.iter().cloned().collect();
            let stale = self.all(STALE_TZDB_SCHEDULES, params![tzdb_version(), limit], name)?;
            let left = limit - names.len();
            names.extend(stale.into_iter().filter(|name| !due.contains(name)).take(left));
        }
        Ok(names)
    }

    // The schedule, with its next time by this program's time-zone database. One that cannot be read is postponed: a
    // newer version may have written it, and it must not hold up the others.
    fn find_readable(&mut self, name: &ScheduleName) -> Result<Option<Schedule>> {
        match schedule::require(self, None, name) {
            Ok(mut schedule) => {
                if schedule.tzdb != tzdb_version() {
                    schedule.recompute();
                }
                Ok(Some(schedule))
            }
            Err(Error::Store(error @ StoreError::Backend(_))) => {
                self.postpone(name, &error)?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn postpone(&mut self, name: &ScheduleName, error: &StoreError) -> Result<()> {
        tracing::error!(schedule = %name, %error, postponed = ?POSTPONEMENT, "a schedule could not be fired");
        let until = micros(later(self.now, POSTPONEMENT));
        self.write_one(POSTPONE_SCHEDULE, params![name.as_str(), until, tzdb_version()])
    }

    // Returns how many jobs it enqueued.
    fn fire_schedule(&mut self, schedule: &Schedule) -> Result<usize> {
        if schedule.next_fire_at.is_none_or(|time| time > self.now) {
            self.advance_schedule(schedule)?;
            return Ok(0);
        }
        let unfinished = unfinished_jobs(self, schedule, schedule.definition.overlap)?;
        let firing = decide(self, schedule, &unfinished)?;
        Ok(self.carry_out(firing, unfinished, Self::record_occurrence)?.len())
    }
}
