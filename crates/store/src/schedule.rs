//! Schedules as stores keep them, and what firing one means. Every store decides by this; how it is written down is its own.
//!
//! An occurrence is one line of a schedule's ledger: a nominal time, or several that were passed over together. Creating a job
//! for one, recording it and moving the schedule on are one transaction, in the name of the leader.

mod definition;
mod firing;

use orchestrix_core::{
    FieldError, JobId, Timestamp,
    schedule::{NewSchedule, Outcome, Overlap, Reason, Span, plan},
};

pub use definition::{read_definition, write_definition};
pub use firing::Firing;

/// A schedule as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// What was asked for, with `paused` and `note` as they are now.
    pub definition: NewSchedule,
    /// When it was first put.
    pub created_at: Timestamp,
    /// When it was last edited, paused or resumed.
    pub updated_at: Timestamp,
    /// Nominal times up to this one are dealt with: the latest of the last that was fired or passed over, the last edit and the
    /// last resume.
    pub counted_from: Timestamp,
    /// The nominal time that comes next; none when paused or past its end.
    pub next_nominal: Option<Timestamp>,
    /// When the leader looks at it next: that time and its jitter.
    pub next_fire_at: Option<Timestamp>,
    /// When a job of it was last created.
    pub last_fired_at: Option<Timestamp>,
    /// Its latest jobs that may be unfinished, oldest first, at most [`Schedule::MAX_OPEN`]; kept where overlaps matter.
    pub open_jobs: Vec<JobId>,
    /// The version of the time-zone database that the next time was computed by.
    pub tzdb: String,
}

impl Schedule {
    /// The most jobs that are remembered as unfinished.
    pub const MAX_OPEN: usize = 1_000;
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

    /// Puts a new definition in its place, at `now`; whether anything changed. Times are counted from now on, so that an edit fires
    /// nothing by itself; what is the same keeps its times. What an operator has paused stays paused until it is resumed: programs
    /// declare their schedules anew at every start.
    pub fn edit(&mut self, mut definition: NewSchedule, now: Timestamp) -> bool {
        if self.definition.paused {
            definition.paused = true;
            definition.note = definition.note.or_else(|| self.definition.note.clone());
        }
        if self.definition == definition {
            return false;
        }
        self.definition = definition;
        self.updated_at = now;
        self.count_from(now);
        true
    }

    /// Stops it; whether it ran. The note is kept until it is resumed.
    pub fn pause(&mut self, note: Option<String>, now: Timestamp) -> bool {
        let ran = !self.definition.paused;
        self.definition.paused = true;
        self.definition.note = note.or(self.definition.note.take());
        if ran {
            self.updated_at = now;
            (self.next_nominal, self.next_fire_at) = (None, None);
        }
        ran
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
        Some(passed.map(|span| Occurrence::passed(span, Outcome::Skipped, Reason::Paused, now)))
    }

    /// Computes the next time anew, counting from where it stands: after the time-zone database has changed.
    pub fn recompute(&mut self) {
        self.count_from(self.counted_from);
    }

    fn count_from(&mut self, from: Timestamp) {
        self.counted_from = from;
        let timing = self.definition.timing();
        self.next_nominal = match self.definition.paused {
            true => None,
            false => timing.upcoming(from, 1).pop(),
        };
        self.next_fire_at = self.next_nominal.map(|nominal| timing.due(nominal));
        self.tzdb = orchestrix_core::schedule::tzdb_version().to_owned();
    }

    /// What is to be done about it at `now`, firing at most `limit` occurrences. `unfinished` are those of
    /// [`open_jobs`](Schedule::open_jobs) that are not finished, oldest first.
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
            firing.lines.push(Occurrence::passed(*span, Outcome::Missed, Reason::Late, now));
        }
        let last = planned.fire.len().saturating_sub(1);
        for (i, due) in planned.fire.iter().enumerate() {
            firing.admit(due.nominal, due.reason, i == last);
        }
        let mut after = self.clone();
        after.counted_from = planned.counted_from;
        after.next_nominal = planned.next_nominal;
        after.next_fire_at = planned.next_fire_at;
        if firing.fires() {
            after.last_fired_at = Some(now);
        }
        firing.after = Some(after);
        firing
    }

    /// One job now, outside of all times. The time it stands for is `now`.
    pub fn trigger(&self, now: Timestamp) -> Firing {
        let mut firing = Firing::new(&self.definition, Overlap::Allow, &[], now);
        firing.admit(now, Some(Reason::Trigger), true);
        let after = Self { last_fired_at: Some(now), ..self.clone() };
        firing.after = Some(after);
        firing
    }

    /// Jobs for past nominal times from `from` until before `to`, which the ledger may know already: stores leave out those that it
    /// knows as fired.
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
        if self.definition.overlap == Overlap::Allow {
            self.open_jobs.clear();
            return;
        }
        self.open_jobs = unfinished;
        self.open_jobs.extend(created);
        let surplus = self.open_jobs.len().saturating_sub(Self::MAX_OPEN);
        self.open_jobs.drain(..surplus);
    }
}

/// What became of a schedule that was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// There was none of that name.
    Created,
    /// It was another.
    Updated,
    /// It was the same: nothing changed.
    Unchanged,
}

/// A past range that should be filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backfill {
    /// From this nominal time on.
    pub from: Timestamp,
    /// Until before this.
    pub to: Timestamp,
    /// What to do while jobs are unfinished; the schedule's own policy unless said otherwise.
    pub overlap: Option<Overlap>,
}

impl Backfill {
    /// The most occurrences one call may fill.
    pub const MAX: usize = 10_000;

    /// The nominal times to fill.
    pub fn times(&self, schedule: &Schedule) -> Result<Vec<Timestamp>, FieldError> {
        if self.to <= self.from {
            return Err(FieldError::new("to", format!("must be after from, {}", self.from)));
        }
        let times = schedule.definition.cadence.between(self.from, self.to, Self::MAX + 1);
        if times.len() > Self::MAX {
            return Err(FieldError::new(
                "to",
                format!("the range holds more than {} times: fill it in parts", Self::MAX),
            ));
        }
        Ok(times)
    }
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
    pub outcome: Outcome,
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

    fn passed(span: Span, outcome: Outcome, reason: Reason, at: Timestamp) -> Self {
        let Span { from, to, count } = span;
        Self { nominal: from, until: to, count, outcome, reason: Some(reason), job: None, at }
    }
}
