//! Schedules as stores keep them, and what firing one means. Every store decides by this; how it is written down is its own.
//!
//! An occurrence is one line of a schedule's ledger: a nominal time, or several that were passed over together. Creating a job
//! for one, recording it and moving the schedule on are one transaction, in the name of the leader.

mod backfill;
mod definition;
mod firing;

use std::time::Duration;

use orchestrix_core::{
    FieldError, JobId, Timestamp,
    schedule::{NewSchedule, OccurrenceOutcome, Overlap, Reason, Span, plan},
};

use crate::{StoreError, TenantScope};

pub use backfill::Backfill;
pub use definition::{read_definition, write_definition};
pub use firing::Firing;

/// Checks what is to be put: within a tenant, only what is that tenant's.
pub fn check_put(within: TenantScope<'_>, definition: &NewSchedule) -> Result<(), StoreError> {
    definition.validate()?;
    match within {
        Some(own) if *own != definition.job.tenant => Err(FieldError::new("job.tenant", "must be their own").into()),
        _ => Ok(()),
    }
}

/// Checks what takes the place of a schedule whose jobs are `owner`'s: its tenant's it stays, since its ledger and its unfinished jobs are.
/// What is nobody's, since its definition names none, may become anybody's.
pub fn check_owner(owner: Option<&str>, definition: &NewSchedule) -> Result<(), FieldError> {
    match owner {
        Some(owner) if owner != definition.job.tenant.as_str() => {
            let message = format!("is `{owner}` for as long as the schedule is there: delete it first");
            Err(FieldError::new("job.tenant", message))
        }
        _ => Ok(()),
    }
}

/// A schedule as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// What was asked for, with `paused` and `note` as they are now.
    pub definition: NewSchedule,
    /// When it was first put.
    pub created_at: Timestamp,
    /// When it was last edited, paused or resumed.
    pub updated_at: Timestamp,
    /// Nominal times up to this one are dealt with: the latest of the last that was fired or passed over, the last edit of its
    /// times and the last resume. It never goes back.
    pub counted_from: Timestamp,
    /// The nominal time that comes next; none when paused or past its end.
    pub next_nominal: Option<Timestamp>,
    /// When the leader looks at it next: that time and its jitter, or later if it has to wait for its turn.
    pub next_fire_at: Option<Timestamp>,
    /// When a job of it was last created.
    pub last_fired_at: Option<Timestamp>,
    /// Its latest jobs that may be unfinished, oldest first, at most [`Schedule::MAX_OPEN`]. Where overlaps are allowed finished
    /// ones stay in it until there are more than [`Schedule::ASK_OVER`].
    pub open_jobs: Vec<JobId>,
    /// The version of the time-zone database that the next time was computed by.
    pub tzdb: String,
}

impl Schedule {
    /// The most jobs that are remembered as unfinished. Of more, which only [`Overlap::Allow`] lets come about, the oldest are
    /// forgotten: they hold up nothing, and nothing cancels them.
    pub const MAX_OPEN: usize = 1_000;
    /// Where overlaps are allowed nobody asks which of its jobs are finished before there are more than this.
    pub const ASK_OVER: usize = 100;
    /// The most occurrences that one step fires.
    pub const MAX_FIRED: usize = 100;

    /// A schedule that was put at `now`.
    pub fn new(definition: NewSchedule, now: Timestamp) -> Self {
        let mut schedule = Self {
            definition,
            created_at: now,
            updated_at: now,
            counted_from: now,
            next_nominal: None,
            next_fire_at: None,
            last_fired_at: None,
            open_jobs: Vec::new(),
            tzdb: String::new(),
        };
        schedule.count_from(now);
        schedule
    }

    /// Puts a new definition in its place, at `now`; `None` if it is the same. What an operator has paused stays paused until it is
    /// resumed: programs declare their schedules anew at every start.
    ///
    /// Where its nominal times and when they are due stay the same, it goes on from where it stood. Otherwise the new times are counted
    /// from now on, so that an edit fires nothing by itself; what had passed of the old ones, and was not dealt with, is one line for
    /// the ledger, counted by the old definition.
    pub fn edit(&mut self, mut definition: NewSchedule, now: Timestamp) -> Option<Option<Occurrence>> {
        let was_paused = self.definition.paused;
        if was_paused {
            definition.paused = true;
            definition.note = definition.note.or_else(|| self.definition.note.clone());
        }
        if self.definition == definition {
            return None;
        }
        let old = std::mem::replace(&mut self.definition, definition);
        self.updated_at = now;
        if old.timing().keeps_the_times_of(&self.definition.timing()) {
            self.recompute();
            return Some(None);
        }
        let passed = old.timing().passed_over(self.counted_from, now);
        self.count_from(now);
        let (outcome, reason) = match was_paused {
            true => (OccurrenceOutcome::Skipped, Reason::Paused),
            false => (OccurrenceOutcome::Missed, Reason::Late),
        };
        Some(passed.map(|span| Occurrence::passed(span, outcome, reason, now)))
    }

    /// Takes the place of a schedule that this program cannot read, at `now`: all that is known of it are its columns, `was`, whose
    /// definition is the new one. What had passed of its times cannot be told.
    #[must_use]
    pub fn in_place_of(was: Self, now: Timestamp) -> Self {
        let mut schedule = Self { updated_at: now, ..was };
        schedule.count_from(now);
        schedule
    }

    /// Stops it; whether it ran. The note is kept until it is resumed.
    pub fn pause(&mut self, note: Option<String>, now: Timestamp) -> Result<bool, FieldError> {
        note.as_deref().map_or(Ok(()), NewSchedule::check_note)?;
        let ran = !self.definition.paused;
        self.definition.paused = true;
        self.definition.note = note.or(self.definition.note.take());
        if ran {
            self.updated_at = now;
            (self.next_nominal, self.next_fire_at) = (None, None);
        }
        Ok(ran)
    }

    /// Lets it go on from `now`; the occurrences of the pause as one line for the ledger. `None` if it ran.
    pub fn resume(&mut self, now: Timestamp) -> Option<Option<Occurrence>> {
        if !self.definition.paused {
            return None;
        }
        let passed = self.definition.timing().passed_over(self.counted_from, now);
        self.definition.paused = false;
        self.definition.note = None;
        self.updated_at = now;
        self.count_from(now);
        Some(passed.map(|span| Occurrence::passed(span, OccurrenceOutcome::Skipped, Reason::Paused, now)))
    }

    /// Computes the next time anew, counting from where it stands: after the time-zone database has changed.
    pub fn recompute(&mut self) {
        self.count_from(self.counted_from);
    }

    // Never from an earlier time than before: what was dealt with stays so, whatever a clock says.
    fn count_from(&mut self, from: Timestamp) {
        self.counted_from = self.counted_from.max(from);
        let timing = self.definition.timing();
        self.next_nominal = match self.definition.paused {
            true => None,
            false => timing.upcoming(self.counted_from, 1).pop(),
        };
        self.next_fire_at = self.next_nominal.map(|nominal| timing.due(nominal));
        self.tzdb = orchestrix_core::schedule::tzdb_version().to_owned();
    }

    /// Those of [`open_jobs`](Schedule::open_jobs) of which a firing by the rule `overlap` must know whether they are finished; the
    /// others count as unfinished.
    pub fn to_ask_about(&self, overlap: Overlap) -> &[JobId] {
        match overlap {
            Overlap::Allow if self.open_jobs.len() <= Self::ASK_OVER => &[],
            _ => &self.open_jobs,
        }
    }

    /// What is to be done about it at `now`, firing at most `limit` occurrences. `unfinished` are those of
    /// [`open_jobs`](Schedule::open_jobs) that are not finished, oldest first. What the limit leaves waits for its turn behind
    /// all that is due by now: a backlog keeps no other schedule waiting.
    pub fn fire(&self, unfinished: &[JobId], now: Timestamp, limit: usize) -> Firing {
        self.fire_unless(|_| false, unfinished, now, limit)
    }

    /// The same, leaving out nominal times that have a line in the ledger already, such as of a backfill that came first.
    pub fn fire_unless(
        &self,
        known: impl Fn(Timestamp) -> bool,
        unfinished: &[JobId],
        now: Timestamp,
        limit: usize,
    ) -> Firing {
        let mut planned = plan(&self.definition.timing(), self.counted_from, now, limit);
        planned.fire.retain(|due| !known(due.nominal));
        let mut firing = Firing::new(&self.definition, self.definition.overlap, unfinished, now);
        for span in &planned.missed {
            firing.lines.push(Occurrence::passed(*span, OccurrenceOutcome::Missed, Reason::Late, now));
        }
        let last = planned.fire.len().saturating_sub(1);
        for (i, due) in planned.fire.iter().enumerate() {
            firing.admit(due.nominal, due.reason, i == last);
        }
        let mut after = self.clone();
        after.counted_from = planned.counted_from;
        after.next_nominal = planned.next_nominal;
        after.next_fire_at = planned.next_fire_at.map(|time| time.max(now));
        if firing.fires() {
            after.last_fired_at = Some(now);
        }
        firing.after = Some(after);
        firing
    }

    /// A time that a job by hand may stand for: `time`, or just after if that is a nominal time, whose line the job would take.
    pub fn beside_its_times(&self, time: Timestamp) -> Timestamp {
        match self.definition.cadence.has(time) {
            true => time + Duration::from_micros(1),
            false => time,
        }
    }

    /// One job at `now`, outside of all times. The time it stands for is `nominal`, of which the ledger has no line.
    pub fn trigger(&self, nominal: Timestamp, now: Timestamp) -> Firing {
        let mut firing = Firing::new(&self.definition, Overlap::Allow, &[], now);
        firing.admit(nominal, Some(Reason::Trigger), true);
        let after = Self { last_fired_at: Some(now), ..self.clone() };
        firing.after = Some(after);
        firing
    }

    /// Jobs for past nominal times, [those](Backfill::times) of a range that the ledger does not know as fired.
    pub fn backfill(&self, times: &[Timestamp], overlap: Overlap, unfinished: &[JobId], now: Timestamp) -> Firing {
        let mut firing = Firing::new(&self.definition, overlap, unfinished, now);
        let last = times.len().saturating_sub(1);
        for (i, nominal) in times.iter().enumerate() {
            firing.admit(*nominal, Some(Reason::Backfill), i == last);
        }
        let fires = firing.fires();
        let after = Self { last_fired_at: fires.then_some(now).or(self.last_fired_at), ..self.clone() };
        firing.after = Some(after);
        firing
    }

    /// Takes note of the jobs that a firing created, after `unfinished` ones.
    pub fn remember(&mut self, unfinished: Vec<JobId>, created: impl IntoIterator<Item = JobId>) {
        self.open_jobs = unfinished;
        self.open_jobs.extend(created);
        let surplus = self.open_jobs.len().saturating_sub(Self::MAX_OPEN);
        self.open_jobs.drain(..surplus);
    }
}

/// What became of a schedule that was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutResult {
    /// There was none of that name.
    Created,
    /// It was another.
    Updated,
    /// It was the same: nothing changed.
    Unchanged,
}

/// One line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// The nominal time; of several that were passed over together, the first.
    pub nominal: Timestamp,
    /// The last of them; the same if there is only one.
    pub until: Timestamp,
    /// How many nominal times it stands for.
    pub count: u64,
    /// What became of it.
    pub outcome: OccurrenceOutcome,
    /// Why.
    pub reason: Option<Reason>,
    /// The job that was created.
    pub job: Option<JobId>,
    /// When it was recorded.
    pub at: Timestamp,
}

impl Occurrence {
    /// What is left of a line over several times when the first of them gets one of its own.
    #[must_use]
    pub fn without_first(&self, schedule: &Schedule) -> Option<Self> {
        let count = self.count.checked_sub(1).filter(|count| *count > 0)?;
        let nominal = schedule.definition.cadence.next_after(self.nominal).filter(|next| *next <= self.until)?;
        Some(Self { nominal, count, ..self.clone() })
    }

    fn passed(span: Span, outcome: OccurrenceOutcome, reason: Reason, at: Timestamp) -> Self {
        let Span { from, to, count } = span;
        Self { nominal: from, until: to, count, outcome, reason: Some(reason), job: None, at }
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_core::{Cadence, JobType, NewJob, ScheduleName};

    use super::*;

    fn at(time: &str) -> Timestamp {
        format!("2026-05-05T{time}Z").parse().unwrap()
    }

    fn hourly() -> NewSchedule {
        let cadence = Cadence::every(Duration::from_secs(3600)).unwrap();
        NewSchedule::new(ScheduleName::trusted("s"), cadence, NewJob::new(JobType::trusted("t")))
    }

    #[test]
    fn what_was_dealt_with_stays_so_when_a_clock_goes_back() {
        let mut schedule = Schedule::new(hourly(), at("10:00:00"));
        let edited = NewSchedule { jitter: Duration::from_secs(1), ..hourly() };
        assert_eq!(schedule.edit(edited, at("08:30:00")), Some(None));
        assert_eq!((schedule.counted_from, schedule.next_nominal), (at("10:00:00"), Some(at("11:00:00"))));
        schedule.pause(None, at("08:40:00")).unwrap();
        assert_eq!(schedule.resume(at("08:50:00")), Some(None));
        assert_eq!((schedule.counted_from, schedule.next_nominal), (at("10:00:00"), Some(at("11:00:00"))));
        let replaced = Schedule::in_place_of(schedule.clone(), at("08:55:00"));
        assert_eq!(replaced.counted_from, schedule.counted_from);
    }

    #[test]
    fn a_pause_looks_at_its_note_alone() {
        let broken = NewSchedule { catch_up_limit: 0, ..hourly() };
        assert!(broken.validate().is_err(), "a rule that is newer than the schedule");
        let mut schedule = Schedule::new(broken, at("10:00:00"));
        let long = "x".repeat(NewSchedule::MAX_NOTE + 1);
        let before = schedule.clone();
        assert_eq!(schedule.pause(Some(long), at("10:30:00")).unwrap_err().field, "note");
        assert_eq!(schedule, before);
        assert!(schedule.pause(Some("why".into()), at("10:30:00")).unwrap());
    }
}
