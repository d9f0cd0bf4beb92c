//! Schedules: their nominal times, which occurrences fire, and what a client may ask for.
//!
//! A schedule has a [`Cadence`], a cron expression in a time zone or an interval, which names its *nominal times*.
//! For each nominal time the leader records one *occurrence*: [fired](OccurrenceOutcome::Fired), with a job;
//! [skipped](OccurrenceOutcome::Skipped), by a policy; or [missed](OccurrenceOutcome::Missed), because no leader was
//! there in time. Three policies decide:
//!
//! - [`Misfire`]: what happens to occurrences that are found late.
//! - [`Overlap`]: what happens while jobs of earlier occurrences are unfinished.
//! - jitter: how far after its nominal time an occurrence is due, so that schedules do not all fire at once.
//!
//! All of it is arithmetic. `now` is passed in, the time zones are compiled in, and [`jitter()`] is a hash, so every
//! node decides the same way. Storing an occurrence, enqueuing its job and moving the schedule on is up to the stores.
//!
//! | module | contents |
//! |---|---|
//! | [`cron`] | [`Cron`], a cron expression |
//! | [`zone`] | [`ZoneName`] and the compiled-in time zone database |
//! | [`cadence`] | [`Cadence`], the nominal times of an expression or an interval |
//! | [`plan`](mod@plan) | which occurrences fire now, which were missed, and when to plan again |
//! | [`policy`] | misfires, overlaps, and the outcomes of occurrences |
//! | [`new_schedule`] | [`NewSchedule`], a request for a schedule, and its limits |
//!
//! # Daylight saving time
//!
//! A cron expression is one of two kinds:
//!
//! - If its minute or hour field starts with `*`, it *follows real time*. `*/15 * * * *` fires every 15 minutes that
//!   pass: through both passes of a repeated hour, and never in a skipped one.
//! - Any other expression is *fixed* to a time of day. A time that the clocks skip fires once, at the first instant
//!   after the gap. A time that the clocks repeat fires in the first pass only.

pub mod cadence;
pub mod cron;
mod days;
mod instants;
mod jitter;
mod matcher;
mod name;
pub mod new_schedule;
mod parse;
pub mod plan;
pub mod policy;
pub mod zone;

pub use cadence::Cadence;
pub use cron::Cron;
pub use jitter::jitter;
pub use name::ScheduleName;
pub use new_schedule::NewSchedule;
pub use plan::{Firing, Plan, Span, Timing, plan};
pub use policy::{Admission, Misfire, OccurrenceOutcome, Overlap, Reason};
pub use zone::{ZoneName, tzdb_version};

#[cfg(test)]
mod tests;
