//! Schedules of steps, and their conversion to the types of the store.

use std::time::Duration;

use orchestrix_core::{Cadence, Cron, Misfire, NewJob, NewSchedule, Overlap, ScheduleName, Start, Timestamp, ZoneName};

use crate::{
    convert,
    step::{JobSpec, TimeSpec},
};

/// A schedule to put.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleSpec {
    /// The name.
    pub name: &'static str,
    /// When it is due.
    pub cadence: CadenceSpec,
    /// The overlap policy.
    pub overlap: Overlap,
    /// The misfire policy.
    pub misfire: Misfire,
    /// The maximum number of missed occurrences to catch up with.
    pub catch_up: u32,
    /// The maximum jitter.
    pub jitter: Duration,
    /// The earliest occurrence.
    pub start: Option<TimeSpec>,
    /// The end: no occurrence from this time on.
    pub end: Option<TimeSpec>,
    /// Whether it is paused.
    pub paused: bool,
    /// The job that it enqueues.
    pub job: JobSpec,
    /// How long after its occurrence a job becomes eligible.
    pub delay: Duration,
}

/// When a schedule is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CadenceSpec {
    /// Every n seconds.
    Every(u64),
    /// A cron expression in the time zone of Berlin.
    Cron(&'static str),
}

pub(crate) fn name(name: &str) -> ScheduleName {
    ScheduleName::trusted(name)
}

/// Converts a spec to the schedule to put.
pub(crate) fn new_schedule(spec: &ScheduleSpec, start: Timestamp) -> NewSchedule {
    let every = |seconds| Cadence::Every { interval: Duration::from_secs(seconds) };
    let cadence = match spec.cadence {
        CadenceSpec::Every(seconds) => every(seconds),
        CadenceSpec::Cron(text) => match (Cron::new(text), ZoneName::new("Europe/Berlin")) {
            (Ok(cron), Ok(zone)) => Cadence::Cron { cron, zone },
            _ => every(60),
        },
    };
    let job = convert::new_job(&spec.job, Vec::new(), start);
    NewSchedule {
        overlap: spec.overlap,
        misfire: spec.misfire,
        catch_up_limit: spec.catch_up,
        jitter: spec.jitter,
        start_at: spec.start.map(|time| convert::at(start, time)),
        end_at: spec.end.map(|time| convert::at(start, time)),
        paused: spec.paused,
        ..NewSchedule::new(
            name(spec.name),
            cadence,
            NewJob { start: if spec.delay.is_zero() { Start::Now } else { Start::After(spec.delay) }, ..job },
        )
    }
}
