//! A past range that should be filled, and which times that means.

use std::time::Duration;

use orchestrix_core::{
    FieldError, Invalid, Timestamp,
    schedule::{NewSchedule, Overlap},
};

use super::Schedule;
use crate::clock::until;

/// A past range that should be filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backfill {
    /// From this nominal time on.
    pub from: Timestamp,
    /// Until before this, which must not lie ahead.
    pub to: Timestamp,
    /// What to do while jobs are unfinished; the schedule's own policy unless said otherwise.
    pub overlap: Option<Overlap>,
}

impl Backfill {
    /// The most occurrences one call may fill.
    pub const MAX: usize = 10_000;
    /// How far ahead of the store's clock "now" may be on a caller's. Nothing that lies ahead is filled for it.
    pub const SKEW: Duration = Duration::from_secs(60);

    /// The range as the store may fill it at `now`, no further than until now. Names every bad bound.
    pub fn until_now(&self, now: Timestamp) -> Result<Self, Invalid> {
        let mut errors = Vec::new();
        errors.extend(NewSchedule::check_time("from", self.from).err());
        if self.to <= self.from {
            errors.push(FieldError::new("to", format!("must be after from, {}", self.from)));
        } else if until(now, self.to) > Self::SKEW {
            errors.push(FieldError::new("to", format!("lies ahead of now, {now}: those times fire by themselves")));
        }
        Invalid::check(errors)?;
        Ok(Self { to: self.to.min(now), ..self.clone() })
    }

    /// The nominal times to fill: those of the range that the schedule's start and end allow. What the schedule itself has not dealt
    /// with yet is left to it, unless it is paused.
    pub fn times(&self, schedule: &Schedule) -> Result<Vec<Timestamp>, FieldError> {
        if self.to <= self.from {
            return Err(FieldError::new("to", format!("must be after from, {}", self.from)));
        }
        let mut times = schedule.definition.timing().between(self.from, self.to, Self::MAX + 1);
        if !schedule.definition.paused {
            times.retain(|time| *time <= schedule.counted_from);
        }
        if times.len() > Self::MAX {
            let message = format!("the range holds more than {} times: fill it in parts", Self::MAX);
            return Err(FieldError::new("to", message));
        }
        Ok(times)
    }
}
