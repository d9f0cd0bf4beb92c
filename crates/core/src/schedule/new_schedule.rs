//! A request to run something again and again, and the limits it must keep.

use std::time::Duration;

use super::{Cadence, Misfire, Overlap, ScheduleName, Timing};
use crate::{FieldError, Invalid, NewJob, Start, Timestamp};

/// A schedule as it is asked for. See [`NewSchedule::new`] for the defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSchedule {
    /// What it is called.
    pub name: ScheduleName,
    /// When it is due.
    pub cadence: Cadence,
    /// What it creates each time.
    pub job: NewJob,
    /// What happens while earlier jobs of it are unfinished.
    pub overlap: Overlap,
    /// What happens to late occurrences.
    pub misfire: Misfire,
    /// How many late ones [`Misfire::CatchUp`] fires.
    pub catch_up_limit: u32,
    /// How far occurrences are spread; never past the next nominal time.
    pub jitter: Duration,
    /// No occurrence before this.
    pub start_at: Option<Timestamp>,
    /// No occurrence at or after this.
    pub end_at: Option<Timestamp>,
    /// Set up, but not fired until resumed.
    pub paused: bool,
    /// A remark for people.
    pub note: Option<String>,
}

impl NewSchedule {
    /// How many late occurrences are caught up unless the schedule says otherwise.
    pub const DEFAULT_CATCH_UP: u32 = 100;
    /// The most that may be caught up.
    pub const MAX_CATCH_UP: u32 = 10_000;
    /// The widest spread: a day.
    pub const MAX_JITTER: Duration = Duration::from_secs(24 * 3600);
    /// The longest note, in characters.
    pub const MAX_NOTE: usize = 1_000;

    /// A schedule with every default: `overlap` skip, `misfire` fire once, a catch-up limit of 100, no jitter, no start
    /// and no end, not paused.
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

    /// What of it decides about its times.
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

    /// Checks what types alone do not. Names every bad field, those of the job as `job.…`.
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

    /// Checks a remark by itself.
    pub fn check_note(note: &str) -> Result<(), FieldError> {
        if note.chars().count() > Self::MAX_NOTE || note.contains('\0') {
            let message = format!("must have at most {} characters and no NUL", Self::MAX_NOTE);
            return Err(FieldError::new("note", message));
        }
        Ok(())
    }

    /// Checks that a time which somebody named lies where schedules may have times.
    pub fn check_time(field: &str, time: Timestamp) -> Result<(), FieldError> {
        if !(YEAR_2000..YEAR_2200).contains(&time.as_second()) {
            let message = format!("must lie between the years 2000 and 2200, not at {time}");
            return Err(FieldError::new(field, message));
        }
        Ok(())
    }

    // What makes sense for one job and not for a series of them.
    fn check_job(&self, bad: &mut impl FnMut(&str, String)) {
        let job = &self.job;
        if job.idempotency_key.is_some() {
            bad("job.idempotencyKey", "must be absent: it would make every occurrence the same job".into());
        }
        if let Start::At(_) = job.start {
            bad("job.runAt", "must be absent: the schedule says when; delaySeconds may put each job off".into());
        }
        if job.expires_at.is_some() {
            bad("job.expiresAt", "must be absent: every job after that time would be born expired".into());
        }
        if !job.depends_on.is_empty() {
            bad("job.dependsOn", "must be absent: the jobs it names are gone one day, the schedule is not".into());
        }
        if job.reference.is_some() {
            bad("job.ref", "must be absent: each job is created by itself".into());
        }
    }
}

// Beyond these a time is a slip of a unit, or a date that not every database holds; jobs have the same bounds.
const YEAR_2000: i64 = 946_684_800;
const YEAR_2200: i64 = 7_258_118_400;
