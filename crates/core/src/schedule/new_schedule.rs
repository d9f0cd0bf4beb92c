//! A request for a schedule, and its limits.

use std::time::Duration;

use super::{Cadence, Misfire, Overlap, ScheduleName, Timing};
use crate::{FieldError, Invalid, NewJob, Start, Timestamp};

/// A request for a schedule. See [`NewSchedule::new`] for the defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSchedule {
    /// The name.
    pub name: ScheduleName,
    /// The nominal times.
    pub cadence: Cadence,
    /// The job that each occurrence enqueues.
    pub job: NewJob,
    /// What happens while jobs of earlier occurrences are unfinished.
    pub overlap: Overlap,
    /// What happens to late occurrences.
    pub misfire: Misfire,
    /// How many late occurrences [`Misfire::CatchUp`] fires.
    pub catch_up_limit: u32,
    /// The largest delay after a nominal time. It never reaches past the next nominal time.
    pub jitter: Duration,
    /// No occurrence before this.
    pub start_at: Option<Timestamp>,
    /// No occurrence at or after this.
    pub end_at: Option<Timestamp>,
    /// Create it paused: it does not fire until it is resumed.
    pub paused: bool,
    /// A note for operators.
    pub note: Option<String>,
}

impl NewSchedule {
    /// The default catch-up limit.
    pub const DEFAULT_CATCH_UP: u32 = 100;
    /// The largest catch-up limit.
    pub const MAX_CATCH_UP: u32 = 10_000;
    /// The largest jitter: a day.
    pub const MAX_JITTER: Duration = Duration::from_secs(24 * 3600);
    /// The longest note, in characters.
    pub const MAX_NOTE: usize = 1_000;

    /// A schedule with defaults: `overlap` skip, `misfire` fire once, a catch-up limit of 100, no jitter, no start, no
    /// end, not paused.
    pub fn new(name: ScheduleName, cadence: Cadence, job: NewJob) -> Self {
        Self {
            name,
            cadence,
            job,
            overlap: Overlap::default(),
            misfire: Misfire::default(),
            catch_up_limit: Self::DEFAULT_CATCH_UP,
            jitter: Duration::ZERO,
            start_at: None,
            end_at: None,
            paused: false,
            note: None,
        }
    }

    /// The part of the schedule that decides its times.
    pub fn timing(&self) -> Timing<'_> {
        Timing {
            name: &self.name,
            cadence: &self.cadence,
            misfire: self.misfire,
            catch_up_limit: self.catch_up_limit,
            jitter: self.jitter,
            start_at: self.start_at,
            end_at: self.end_at,
        }
    }

    /// Validates what the types do not. Names every bad field, those of the job as `job.…`.
    pub fn validate(&self) -> Result<(), Invalid> {
        let mut errors = Vec::new();
        errors.extend(self.cadence.check().err());
        let mut bad = |field: &str, message: String| errors.push(FieldError::new(field, message));
        if !(1..=Self::MAX_CATCH_UP).contains(&self.catch_up_limit) {
            bad("catchUpLimit", format!("must be from 1 to {}, not {}", Self::MAX_CATCH_UP, self.catch_up_limit));
        }
        match self.cadence {
            Cadence::Every { interval } if self.jitter > interval => {
                bad("jitterSeconds", format!("must not be longer than everySeconds, {}", interval.as_secs_f64()));
            }
            _ if self.jitter > Self::MAX_JITTER => {
                bad("jitterSeconds", format!("must be at most {}", Self::MAX_JITTER.as_secs()));
            }
            _ => {}
        }
        for (field, time) in [("startAt", self.start_at), ("endAt", self.end_at)] {
            if let Some(Err(error)) = time.map(|time| Self::check_time(field, time)) {
                bad(field, error.message);
            }
        }
        if let (Some(start), Some(end)) = (self.start_at, self.end_at)
            && end <= start
        {
            bad("endAt", format!("must be after startAt, {start}"));
        }
        if let Some(Err(error)) = self.note.as_deref().map(Self::check_note) {
            bad("note", error.message);
        }
        self.check_job(&mut bad);
        if let Err(invalid) = self.job.validate() {
            errors.extend(invalid.within("job").errors);
        }
        Invalid::check(errors)
    }

    /// Validates a note.
    pub fn check_note(note: &str) -> Result<(), FieldError> {
        if note.chars().count() > Self::MAX_NOTE || note.contains('\0') {
            let message = format!("must have at most {} characters and no NUL", Self::MAX_NOTE);
            return Err(FieldError::new("note", message));
        }
        Ok(())
    }

    /// Validates that a time lies between the years 2000 and 2200.
    pub fn check_time(field: &str, time: Timestamp) -> Result<(), FieldError> {
        if !(YEAR_2000..YEAR_2200).contains(&time.as_second()) {
            let message = format!("must lie between the years 2000 and 2200, not at {time}");
            return Err(FieldError::new(field, message));
        }
        Ok(())
    }

    // Refuses fields that make sense for one job but not for a series.
    fn check_job(&self, bad: &mut impl FnMut(&str, String)) {
        let job = &self.job;
        if job.idempotency_key.is_some() {
            bad("job.idempotencyKey", "must be absent: it would make every occurrence the same job".into());
        }
        if let Start::At(_) = job.start {
            bad("job.runAt", "must be absent: the schedule decides when; use delaySeconds to delay each job".into());
        }
        if job.expires_at.is_some() {
            bad("job.expiresAt", "must be absent: every job after that time would expire at once".into());
        }
        if !job.depends_on.is_empty() {
            bad("job.dependsOn", "must be absent: a schedule outlives the jobs that it would depend on".into());
        }
        if job.reference.is_some() {
            bad("job.ref", "must be absent: each job is enqueued alone".into());
        }
    }
}

// The same bounds as for jobs: beyond them a time is usually a wrong unit, and not every database can hold it.
const YEAR_2000: i64 = 946_684_800;
const YEAR_2200: i64 = 7_258_118_400;
