//! Firing schedules: because they are due, because somebody asked for it now, or for a past range.
//!
//! Each is one operation: it reads schedules, lets the store's rules decide, and writes jobs, requests to cancel, lines of the ledgers
//! and where the schedules stand then; all of it or nothing.

use std::{cell::Cell, collections::HashSet, time::Duration};

use orchestrix_core::{
    FieldError, JobId, Overlap, ScheduleName, enqueue::MAX_CALL_BYTES, schedule::OccurrenceOutcome, tzdb_version,
};
use orchestrix_store::{
    Backfill, Enqueued, Firing, Occurrence, Schedule, StoreError, SweepResult, TenantScope,
    clock::{later, until},
};
use rusqlite::params;

use crate::{
    enqueue,
    error::{Fault, Result},
    ledger,
    row::{Columns, Found, micros},
    schedule,
    session::{Session, Transaction},
    statement::{DUE_SCHEDULES, MOVE_SCHEDULE, NEXT_FIRE, OTHER_ZONES, POSTPONE_SCHEDULE},
};

/// Jobs and bytes of payload after which a step takes no further schedule: others want to write too.
const STEP_JOBS: usize = 5_000;
const STEP_BYTES: usize = 32 * 1024 * 1024;
/// How long a schedule that this program cannot fire is left alone.
const POSTPONED: Duration = Duration::from_secs(60);

/// How a line gets into the ledger.
type Write<'a> = fn(&mut Transaction<'a>, &Schedule, &Occurrence) -> Result<()>;

/// How long until a schedule is due, or has to be computed anew.
pub(crate) fn next_in(session: &Session<'_>) -> Result<Option<Duration>> {
    if session.first(OTHER_ZONES, params![tzdb_version(), 1], |_| Ok(()))?.is_some() {
        return Ok(Some(Duration::ZERO));
    }
    let next = session.first(NEXT_FIRE, (), |row| Columns(row).time(0))?;
    Ok(next.map(|time| until(session.now, time)))
}

// Those of its earlier jobs that are not finished, as far as the rule about overlaps has to know.
fn unfinished(session: &Session<'_>, schedule: &Schedule, overlap: Overlap) -> Result<Vec<JobId>> {
    if schedule.jobs_to_check(overlap).is_empty() {
        return Ok(schedule.open_jobs.clone());
    }
    let mut unfinished = Vec::new();
    for id in &schedule.open_jobs {
        if Found::read(session, *id)?.is_some_and(|job| !job.lifecycle.state.is_terminal()) {
            unfinished.push(*id);
        }
    }
    Ok(unfinished)
}

// A nominal time that has a line already gets no job.
fn decide(session: &Session<'_>, schedule: &Schedule, unfinished: &[JobId]) -> Result<Firing> {
    let fault = Cell::new(None);
    let known = |nominal| match ledger::find(session, &schedule.definition.name, nominal) {
        Ok(line) => line.is_some(),
        Err(error) => {
            fault.set(Some(error));
            true
        }
    };
    let most = (STEP_BYTES / payload_bytes(schedule).max(1)).clamp(1, Schedule::MAX_FIRED);
    let firing = schedule.fire_unless(known, unfinished, session.now, most);
    fault.into_inner().map_or(Ok(firing), Err)
}

// Whether a schedule failed by what is stored of it, and not by the state of the file or the machine, which every other would meet too.
fn is_its_own(fault: &Fault) -> bool {
    match fault {
        Fault::Store(error) => !matches!(error, StoreError::Unavailable(_)),
        Fault::Sqlite(error) => {
            error.sqlite_error_code().is_none_or(|code| code == rusqlite::ErrorCode::ConstraintViolation)
        }
    }
}

fn payload_bytes(schedule: &Schedule) -> usize {
    schedule.definition.job.payload.as_str().len()
}

impl<'a> Transaction<'a> {
    pub(crate) fn fire(&mut self, limit: usize) -> Result<SweepResult> {
        let (mut jobs, mut bytes, mut count) = (0, 0, 0);
        for name in self.to_fire(limit)? {
            if jobs >= STEP_JOBS || bytes >= STEP_BYTES {
                break;
            }
            count += 1;
            let Some(schedule) = self.readable(&name)? else { continue };
            let fired = match self.apart(|transaction| transaction.fire_one(&schedule)) {
                Err(fault) if is_its_own(&fault) => {
                    self.postpone(&name, &fault.at(&self.options.path))?;
                    continue;
                }
                fired => fired?,
            };
            jobs += fired;
            bytes += fired * payload_bytes(&schedule);
        }
        Ok(SweepResult { count, next_in: next_in(self)? })
    }

    // Those that are due, and then those whose next time another time-zone database gave; each once.
    fn to_fire(&self, limit: usize) -> Result<Vec<ScheduleName>> {
        let name = |row: &rusqlite::Row<'_>| Ok(ScheduleName::trusted(Columns(row).text(0)?));
        let mut names = self.all(DUE_SCHEDULES, params![micros(self.now), limit], name)?;
        if names.len() < limit {
            let due: HashSet<ScheduleName> = names.iter().cloned().collect();
            let others = self.all(OTHER_ZONES, params![tzdb_version(), limit], name)?;
            let left = limit - names.len();
            names.extend(others.into_iter().filter(|name| !due.contains(name)).take(left));
        }
        Ok(names)
    }

    // With its next time by this program's time-zone database. One that this program cannot read is put off: a newer one may have
    // written it, and it must not keep the others waiting.
    fn readable(&mut self, name: &ScheduleName) -> Result<Option<Schedule>> {
        match schedule::expect(self, None, name) {
            Ok(mut schedule) => {
                if schedule.tzdb != tzdb_version() {
                    schedule.recompute();
                }
                Ok(Some(schedule))
            }
            Err(Fault::Store(error @ StoreError::Backend(_))) => {
                self.postpone(name, &error)?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn postpone(&mut self, name: &ScheduleName, error: &StoreError) -> Result<()> {
        tracing::error!(schedule = %name, %error, "cannot be fired by this program; left for a minute");
        let until = micros(later(self.now, POSTPONED));
        self.write_one(POSTPONE_SCHEDULE, params![name.as_str(), until, tzdb_version()])
    }

    // Answers how many jobs it came to.
    fn fire_one(&mut self, schedule: &Schedule) -> Result<usize> {
        if schedule.next_fire_at.is_none_or(|time| time > self.now) {
            self.move_on(schedule)?;
            return Ok(0);
        }
        let unfinished = unfinished(self, schedule, schedule.definition.overlap)?;
        let firing = decide(self, schedule, &unfinished)?;
        Ok(self.carry_out(firing, unfinished, Self::record_line)?.len())
    }

    pub(crate) fn trigger_schedule(&mut self, within: TenantScope<'_>, name: &ScheduleName) -> Result<Enqueued> {
        let schedule = schedule::expect(self, within, name)?;
        let mut nominal = schedule.off_schedule_time(self.now);
        while ledger::find(self, name, nominal)?.is_some() {
            nominal = schedule.off_schedule_time(nominal + Duration::from_micros(1));
        }
        let unfinished = unfinished(self, &schedule, Overlap::Allow)?;
        let recorded = self.carry_out(schedule.trigger(nominal, self.now), unfinished, Self::record_line)?;
        recorded.first().copied().ok_or_else(|| StoreError::Backend("a job was not recorded".into()).into())
    }

    pub(crate) fn backfill_schedule(
        &mut self,
        within: TenantScope<'_>,
        name: &ScheduleName,
        range: &Backfill,
    ) -> Result<usize> {
        let schedule = schedule::expect(self, within, name)?;
        let range = range.until_now(self.now)?;
        let mut times = Vec::new();
        for time in range.times(&schedule)? {
            if ledger::find(self, name, time)?.is_none_or(|line| line.outcome != OccurrenceOutcome::Fired) {
                times.push(time);
            }
        }
        if times.len().saturating_mul(payload_bytes(&schedule)) > MAX_CALL_BYTES {
            let message = format!("the jobs would hold more than {MAX_CALL_BYTES} bytes of payload");
            return Err(FieldError::new("to", message).into());
        }
        let overlap = range.overlap.unwrap_or(schedule.definition.overlap);
        let unfinished = unfinished(self, &schedule, overlap)?;
        let firing = schedule.backfill(&times, overlap, &unfinished, self.now);
        Ok(self.carry_out(firing, unfinished, Self::replace_line)?.len())
    }

    // The jobs come first: they are all that could be refused, and then nothing is written.
    fn carry_out(&mut self, firing: Firing, unfinished: Vec<JobId>, write: Write<'a>) -> Result<Vec<Enqueued>> {
        let Some(mut schedule) = firing.after else { return Ok(Vec::new()) };
        let recorded = match firing.jobs.is_empty() {
            true => Vec::new(),
            false => self.enqueue(&enqueue::check_many(firing.jobs)?)?,
        };
        for id in firing.cancel {
            self.cancel(id)?;
        }
        let mut created = recorded.iter().map(|job| job.id);
        schedule.set_open_jobs(unfinished, created.clone());
        for mut line in firing.lines {
            if line.outcome == OccurrenceOutcome::Fired {
                line.job = created.next();
            }
            self.effects.commit.schedule_fired(&schedule.definition.name, line.outcome, line.count);
            write(self, &schedule, &line)?;
        }
        self.move_on(&schedule)?;
        Ok(recorded)
    }

    fn move_on(&mut self, schedule: &Schedule) -> Result<()> {
        self.write_one(
            MOVE_SCHEDULE,
            params![
                schedule.definition.name.as_str(),
                micros(schedule.counted_from),
                schedule.next_nominal.map(micros),
                schedule.next_fire_at.map(micros),
                schedule.last_fired_at.map(micros),
                schedule.tzdb,
                schedule::write_open(&schedule.open_jobs),
            ],
        )
    }
}
