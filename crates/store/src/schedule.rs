//! Schedules as stores keep them, and what firing one does. Every store decides with this module and only writes the
//! result.
//!
//! The ledger of a schedule holds its occurrences: one row per nominal time, or one for several that passed together.
//! Recording an occurrence, enqueuing its job and moving the schedule on is one transaction, fenced by the leader's
//! epoch.

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

/// Validates a definition. A scoped call may only put schedules of its own tenant.
pub fn check_put(scope: TenantScope<'_>, definition: &NewSchedule) -> Result<(), StoreError> {
    definition.validate()?;
    match scope {
        Some(own) if *own != definition.job.tenant => {
            Err(FieldError::new("job.tenant", "must be the tenant that the caller is bound to").into())
        }
        _ => Ok(()),
    }
}

/// Checks a new definition for a schedule of the tenant `owner`. A schedule keeps its tenant, since its ledger and
/// jobs belong to that tenant. A schedule whose stored definition names no tenant may get any.
pub fn check_owner(owner: Option<&str>, definition: &NewSchedule) -> Result<(), FieldError> {
    match owner {
        Some(owner) if owner != definition.job.tenant.as_str() => {
            let message = format!("must stay `{owner}`: delete the schedule to change its tenant");
            Err(FieldError::new("job.tenant", message))
        }
        _ => Ok(()),
    }
}

/// A stored schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// The definition, with the current `paused` and `note`.
    pub definition: NewSchedule,
    /// When it was first put.
    pub created_at: Timestamp,
    /// When it was last edited, paused or resumed.
    pub updated_at: Timestamp,
    /// Nominal times up to this one are processed: the latest of the last nominal time that fired, was skipped or
    /// missed, the last edit of its times, and the last resume. It never goes back.
    pub counted_from: Timestamp,
    /// The next nominal time; `None` while paused or past its end.
    pub next_nominal: Option<Timestamp>,
    /// When the leader processes it next: the next nominal time plus jitter, or later if it waits for its turn.
    pub next_fire_at: Option<Timestamp>,
    /// When it last enqueued a job.
    pub last_fired_at: Option<Timestamp>,
    /// Its latest jobs that may be unfinished, oldest first, at most [`Schedule::MAX_OPEN`]. If overlaps are allowed,
    /// finished ones stay listed until there are more than [`Schedule::MAX_UNCHECKED`].
    pub open_jobs: Vec<JobId>,
    /// The version of the time zone database that computed the next time.
    pub tzdb: String,
}

impl Schedule {
    /// The most jobs listed as unfinished. Only [`Overlap::Allow`] can produce more; the oldest are dropped, since
    /// they neither delay nor get cancelled by later occurrences.
    pub const MAX_OPEN: usize = 1_000;
    /// If overlaps are allowed, stores check which jobs are finished only when more than this are listed.
    pub const MAX_UNCHECKED: usize = 100;
    /// The most occurrences that one step fires.
    pub const MAX_FIRED: usize = 100;

    /// A schedule that is created at `now`.
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

    /// Replaces the definition at `now`. Returns `None` if it is the same.
    ///
    /// A paused schedule stays paused until it is resumed, since programs put their schedules again at every start.
    ///
    /// If its nominal times and jitter stay the same, the schedule continues where it was. Otherwise the new times
    /// count from `now`, so that an edit fires nothing by itself. Unprocessed nominal times of the old definition
    /// become one occurrence for the ledger.
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
        if old.timing().same_times_as(&self.definition.timing()) {
            self.recompute();
            return Some(None);
        }
        let passed = old.timing().span_between(self.counted_from, now);
        self.count_from(now);
        let (outcome, reason) = match was_paused {
            true => (OccurrenceOutcome::Skipped, Reason::Paused),
            false => (OccurrenceOutcome::Missed, Reason::Late),
        };
        Some(passed.map(|span| Occurrence::of_span(span, outcome, reason, now)))
    }

    /// Replaces a schedule whose stored definition this version cannot read, at `now`. `was` holds its columns and
    /// the new definition. Unprocessed nominal times of the old definition are unknown and lost.
    #[must_use]
    pub fn replacing_unreadable(was: Self, now: Timestamp) -> Self {
        let mut schedule = Self { updated_at: now, ..was };
        schedule.count_from(now);
        schedule
    }

    /// Pauses the schedule. Returns whether it was active. The note is kept until it is resumed.
    pub fn pause(&mut self, note: Option<String>, now: Timestamp) -> Result<bool, FieldError> {
        note.as_deref().map_or(Ok(()), NewSchedule::check_note)?;
        let was_active = !self.definition.paused;
        self.definition.paused = true;
        self.definition.note = note.or(self.definition.note.take());
        if was_active {
            self.updated_at = now;
            (self.next_nominal, self.next_fire_at) = (None, None);
        }
        Ok(was_active)
    }

    /// Resumes the schedule from `now`. Returns the nominal times of the pause as one occurrence, or `None` if it was
    /// active.
    pub fn resume(&mut self, now: Timestamp) -> Option<Option<Occurrence>> {
        if !self.definition.paused {
            return None;
        }
        let passed = self.definition.timing().span_between(self.counted_from, now);
        self.definition.paused = false;
        self.definition.note = None;
        self.updated_at = now;
        self.count_from(now);
        Some(passed.map(|span| Occurrence::of_span(span, OccurrenceOutcome::Skipped, Reason::Paused, now)))
    }

    /// Recomputes the next time, after the time zone database has changed.
    pub fn recompute(&mut self) {
        self.count_from(self.counted_from);
    }

    // Never moves back, even if the clock does: what was processed stays processed.
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

    /// Those of [`open_jobs`](Schedule::open_jobs) whose states a firing under `overlap` needs. The others count as
    /// unfinished.
    pub fn jobs_to_check(&self, overlap: Overlap) -> &[JobId] {
        match overlap {
            Overlap::Allow if self.open_jobs.len() <= Self::MAX_UNCHECKED => &[],
            _ => &self.open_jobs,
        }
    }

    /// Fires up to `limit` occurrences that are due at `now`.
    ///
    /// `unfinished` are the unfinished ones of [`open_jobs`](Schedule::open_jobs), oldest first. Occurrences beyond
    /// the limit wait behind all other schedules that are due now, so a backlog delays no other schedule.
    pub fn fire(&self, unfinished: &[JobId], now: Timestamp, limit: usize) -> Firing {
        self.fire_unless(|_| false, unfinished, now, limit)
    }

    /// Like [`fire`](Schedule::fire), without nominal times that the ledger already has (`known`), such as those of a
    /// backfill.
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
            firing.lines.push(Occurrence::of_span(*span, OccurrenceOutcome::Missed, Reason::Late, now));
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

    /// The nominal time for a manual trigger: `time`, or a microsecond later if `time` is a nominal time of the
    /// schedule, whose occurrence the trigger would replace.
    pub fn off_schedule_time(&self, time: Timestamp) -> Timestamp {
        match self.definition.cadence.contains(time) {
            true => time + Duration::from_micros(1),
            false => time,
        }
    }

    /// Fires one job at `now`, by a manual trigger. Its nominal time is `nominal`, which the ledger does not have.
    pub fn trigger(&self, nominal: Timestamp, now: Timestamp) -> Firing {
        let mut firing = Firing::new(&self.definition, Overlap::Allow, &[], now);
        firing.admit(nominal, Some(Reason::Trigger), true);
        let after = Self { last_fired_at: Some(now), ..self.clone() };
        firing.after = Some(after);
        firing
    }

    /// Fires past nominal times, [those](Backfill::times) of a range that did not fire before.
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

    /// Sets the open jobs: the `unfinished` ones, then those that a firing `created`.
    pub fn set_open_jobs(&mut self, unfinished: Vec<JobId>, created: impl IntoIterator<Item = JobId>) {
        self.open_jobs = unfinished;
        self.open_jobs.extend(created);
        let surplus = self.open_jobs.len().saturating_sub(Self::MAX_OPEN);
        self.open_jobs.drain(..surplus);
    }
}

/// The result of putting a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutResult {
    /// The schedule is new.
    Created,
    /// The definition changed.
    Updated,
    /// The definition is the same; nothing changed.
    Unchanged,
}

/// An occurrence: one entry of a schedule's ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// The nominal time; of several, the first.
    pub nominal: Timestamp,
    /// The last nominal time; equal to `nominal` if there is only one.
    pub until: Timestamp,
    /// The number of nominal times.
    pub count: u64,
    /// The outcome.
    pub outcome: OccurrenceOutcome,
    /// The reason; `None` if it fired on time.
    pub reason: Option<Reason>,
    /// The job that it enqueued.
    pub job: Option<JobId>,
    /// When it was recorded.
    pub at: Timestamp,
}

impl Occurrence {
    /// The rest of an occurrence of several nominal times after the first gets an occurrence of its own.
    #[must_use]
    pub fn without_first(&self, schedule: &Schedule) -> Option<Self> {
        let count = self.count.checked_sub(1).filter(|count| *count > 0)?;
        let nominal = schedule.definition.cadence.next_after(self.nominal).filter(|next| *next <= self.until)?;
        Some(Self { nominal, count, ..self.clone() })
    }

    fn of_span(span: Span, outcome: OccurrenceOutcome, reason: Reason, at: Timestamp) -> Self {
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
    fn processed_times_stay_processed_when_the_clock_goes_back() {
        let mut schedule = Schedule::new(hourly(), at("10:00:00"));
        let edited = NewSchedule { jitter: Duration::from_secs(1), ..hourly() };
        assert_eq!(schedule.edit(edited, at("08:30:00")), Some(None));
        assert_eq!((schedule.counted_from, schedule.next_nominal), (at("10:00:00"), Some(at("11:00:00"))));
        schedule.pause(None, at("08:40:00")).unwrap();
        assert_eq!(schedule.resume(at("08:50:00")), Some(None));
        assert_eq!((schedule.counted_from, schedule.next_nominal), (at("10:00:00"), Some(at("11:00:00"))));
        let replaced = Schedule::replacing_unreadable(schedule.clone(), at("08:55:00"));
        assert_eq!(replaced.counted_from, schedule.counted_from);
    }

    #[test]
    fn a_pause_validates_only_its_note() {
        let broken = NewSchedule { catch_up_limit: 0, ..hourly() };
        assert!(broken.validate().is_err(), "a rule that is newer than the stored schedule");
        let mut schedule = Schedule::new(broken, at("10:00:00"));
        let long = "x".repeat(NewSchedule::MAX_NOTE + 1);
        let before = schedule.clone();
        assert_eq!(schedule.pause(Some(long), at("10:30:00")).unwrap_err().field, "note");
        assert_eq!(schedule, before);
        assert!(schedule.pause(Some("why".into()), at("10:30:00")).unwrap());
    }
}
