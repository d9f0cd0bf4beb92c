//! Schedules as steps put them.

use std::time::Duration;

use orchestrix_core::{Cadence, Cron, Misfire, NewJob, NewSchedule, Overlap, ScheduleName, Start, Timestamp, ZoneName};

use crate::{
    request,
    step::{Request, Time},
};

/// A schedule to set up.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What it is called.
    pub name: &'static str,
    /// When it is due.
    pub turns: Turns,
    /// What happens while earlier jobs are unfinished.
    pub overlap: Overlap,
    /// What happens to late occurrences.
    pub misfire: Misfire,
    /// How many late ones are caught up with.
    pub catch_up: u32,
    /// How far occurrences are spread.
    pub jitter: Duration,
    /// No occurrence before this.
    pub start: Option<Time>,
    /// No occurrence from this on.
    pub end: Option<Time>,
    /// Whether it is paused.
    pub paused: bool,
    /// What it creates.
    pub job: Request,
    /// How long after it is due a job may start.
    pub delay: Duration,
}

/// When a schedule is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turns {
    /// Every so many seconds.
    Every(u64),
    /// At the times of an expression, in Berlin.
    Cron(&'static str),
}

pub(crate) fn name(name: &str) -> ScheduleName {
    ScheduleName::trusted(name)
}

/// The schedule in the store's words.
pub(crate) fn new_schedule(series: &Series, start: Timestamp) -> NewSchedule {
    let every = |seconds| Cadence::Every { interval: Duration::from_secs(seconds) };
    let cadence = match series.turns {
        Turns::Every(seconds) => every(seconds),
        Turns::Cron(text) => match (Cron::new(text), ZoneName::new("Europe/Berlin")) {
            (Ok(cron), Ok(zone)) => Cadence::Cron { cron, zone },
            _ => every(60),
        },
    };
    let job = request::new_job(&series.job, Vec::new(), start);
    NewSchedule {
        overlap: series.overlap,
        misfire: series.misfire,
        catch_up_limit: series.catch_up,
        jitter: series.jitter,
        start_at: series.start.map(|time| request::at(start, time)),
        end_at: series.end.map(|time| request::at(start, time)),
        paused: series.paused,
        ..NewSchedule::new(
            name(series.name),
            cadence,
            NewJob { start: if series.delay.is_zero() { Start::Now } else { Start::After(series.delay) }, ..job },
        )
    }
}
