//! Backfills: enqueuing jobs for nominal times of a past range.

use std::time::Duration;

use orchestrix_core::{
    FieldError, Invalid, Timestamp,
    schedule::{NewSchedule, Overlap},
};

use super::Schedule;
use crate::clock::until;

/// A past range to backfill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backfill {
    /// The start, inclusive.
    pub from: Timestamp,
    /// The end, exclusive. Must not be in the future.
    pub to: Timestamp,
    /// The overlap policy; `None` for the schedule's own.
    pub overlap: Option<Overlap>,
}

impl Backfill {
    /// The most occurrences per call.
    pub const MAX: usize = 10_000;
    /// How far the caller's clock may be ahead of the store's. Nominal times in the future are not enqueued anyway.
    pub const SKEW: Duration = Duration::from_secs(60);

    /// Validates the range and ends it at `now`. Names every bad bound.
    pub fn until_now(&self, now: Timestamp) -> Result<Self, Invalid> {
        let mut errors = Vec::new();
        errors.extend(NewSchedule::check_time("from", self.from).err());
        if self.to <= self.from {
            errors.push(FieldError::new("to", format!("must be after from, {}", self.from)));
        } else if until(now, self.to) > Self::SKEW {
            errors.push(FieldError::new("to", format!("is after now, {now}: future times fire by themselves")));
        }
        Invalid::check(errors)?;
        Ok(Self { to: self.to.min(now), ..self.clone() })
    }

    /// The nominal times of the range, within the schedule's start and end. Unless the schedule is paused, times that
    /// it has not processed yet are left out: it will fire them itself.
    pub fn times(&self, schedule: &Schedule) -> Result<Vec<Timestamp>, FieldError> {
        if self.to <= self.from {
            return Err(FieldError::new("to", format!("must be after from, {}", self.from)));
        }
        let mut times = schedule.definition.timing().between(self.from, self.to, Self::MAX + 1);
        if !schedule.definition.paused {
            times.retain(|time| *time <= schedule.counted_from);
        }
        if times.len() > Self::MAX {
            let message = format!("the range has more than {} times: backfill it in parts", Self::MAX);
            return Err(FieldError::new("to", message));
        }
        Ok(times)
    }
}
