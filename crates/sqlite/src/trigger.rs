//! Firing a schedule on request: once now (trigger), or for a past range (backfill).

use std::time::Duration;

use orchestrix_core::{FieldError, Overlap, ScheduleName, enqueue::MAX_CALL_BYTES, schedule::OccurrenceOutcome};
use orchestrix_store::{Backfill, Enqueued, StoreError, TenantScope};

use crate::{
    error::Result,
    firing::{payload_bytes, unfinished_jobs},
    occurrences, schedule,
    session::Transaction,
};

impl Transaction<'_> {
    pub(crate) fn trigger_schedule(&mut self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<Enqueued> {
        let schedule = schedule::require(self, scope, name)?;
        let mut nominal = schedule.off_schedule_time(self.now);
        while occurrences::find(self, name, nominal)?.is_some() {
            nominal = schedule.off_schedule_time(nominal + Duration::from_micros(1));
        }
        let unfinished = unfinished_jobs(self, &schedule, Overlap::Allow)?;
        let enqueued = self.carry_out(schedule.trigger(nominal, self.now), unfinished, Self::record_occurrence)?;
        enqueued.first().copied().ok_or_else(|| StoreError::Backend("the trigger enqueued no job".into()).into())
    }

    pub(crate) fn backfill_schedule(
        &mut self,
        scope: TenantScope<'_>,
        name: &ScheduleName,
        range: &Backfill,
    ) -> Result<usize> {
        let schedule = schedule::require(self, scope, name)?;
        let range = range.until_now(self.now)?;
        let mut times = Vec::new();
        for time in range.times(&schedule)? {
            let existing = occurrences::find(self, name, time)?;
            if existing.is_none_or(|occurrence| occurrence.outcome != OccurrenceOutcome::Fired) {
                times.push(time);
            }
        }
        if times.len().saturating_mul(payload_bytes(&schedule)) > MAX_CALL_BYTES {
            let message = format!("the jobs would hold more than {MAX_CALL_BYTES} bytes of payload");
            return Err(FieldError::new("to", message).into());
        }
        let overlap = range.overlap.unwrap_or(schedule.definition.overlap);
        let unfinished = unfinished_jobs(self, &schedule, overlap)?;
        let firing = schedule.backfill(&times, overlap, &unfinished, self.now);
        Ok(self.carry_out(firing, unfinished, Self::replace_occurrence)?.len())
    }
}
