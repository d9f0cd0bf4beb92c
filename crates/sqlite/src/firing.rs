//! Carries out a decided [`Firing`]: enqueues jobs, cancels jobs, records occurrences and advances the schedule, all
//! of it or nothing.

use orchestrix_core::{JobId, Overlap, schedule::OccurrenceOutcome};
use orchestrix_store::{Enqueued, Firing, Occurrence, Schedule};
use rusqlite::params;

use crate::{
    enqueue,
    error::Result,
    row::{JobRow, micros},
    schedule,
    session::{Session, Transaction},
    statement::ADVANCE_SCHEDULE,
};

/// How an occurrence is written: recorded, or in place of one that did not fire.
type WriteOccurrence<'a> = fn(&mut Transaction<'a>, &Schedule, &Occurrence) -> Result<()>;

/// The schedule's unfinished jobs, as far as the overlap policy needs them. It returns all open jobs where the policy
/// does not.
pub(crate) fn unfinished_jobs(session: &Session<'_>, schedule: &Schedule, overlap: Overlap) -> Result<Vec<JobId>> {
    if schedule.jobs_to_check(overlap).is_empty() {
        return Ok(schedule.open_jobs.clone());
    }
    let mut unfinished = Vec::new();
    for id in &schedule.open_jobs {
        if JobRow::find_state(session, *id)?.is_some_and(|state| !state.is_terminal()) {
            unfinished.push(*id);
        }
    }
    Ok(unfinished)
}

/// The length of the payload that each job of the schedule gets.
pub(crate) fn payload_bytes(schedule: &Schedule) -> usize {
    schedule.definition.job.payload.as_str().len()
}

impl<'a> Transaction<'a> {
    /// Writes a firing and returns the enqueued jobs.
    pub(crate) fn carry_out(
        &mut self,
        firing: Firing,
        unfinished: Vec<JobId>,
        write: WriteOccurrence<'a>,
    ) -> Result<Vec<Enqueued>> {
        let Some(mut schedule) = firing.after else { return Ok(Vec::new()) };
        // Jobs come first: only they can be refused, and then nothing has been written yet.
        let enqueued = match firing.jobs.is_empty() {
            true => Vec::new(),
            false => self.enqueue(&enqueue::check_many(firing.jobs)?)?,
        };
        for id in firing.cancel {
            self.cancel_job(id)?;
        }
        let mut created = enqueued.iter().map(|job| job.id);
        schedule.set_open_jobs(unfinished, created.clone());
        for mut occurrence in firing.lines {
            if occurrence.outcome == OccurrenceOutcome::Fired {
                occurrence.job = created.next();
            }
            let name = &schedule.definition.name;
            self.effects.commit.schedule_fired(name, occurrence.outcome, occurrence.count);
            write(self, &schedule, &occurrence)?;
        }
        self.advance_schedule(&schedule)?;
        Ok(enqueued)
    }

    /// Writes the next time, the latest firing and the open jobs of a schedule.
    pub(crate) fn advance_schedule(&mut self, schedule: &Schedule) -> Result<()> {
        self.write_one(
            ADVANCE_SCHEDULE,
            params![
                schedule.definition.name.as_str(),
                micros(schedule.counted_from),
                schedule.next_nominal.map(micros),
                schedule.next_fire_at.map(micros),
                schedule.last_fired_at.map(micros),
                schedule.tzdb,
                schedule::write_open_jobs(&schedule.open_jobs),
            ],
        )
    }
}
