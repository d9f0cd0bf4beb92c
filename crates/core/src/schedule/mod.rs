//! Schedules: when they are due, what becomes of late occurrences, and what may be asked for.
//!
//! All of it is arithmetic: `now` is passed in, the time zones are built in, and jitter is a hash, so every node decides
//! alike. Recording an occurrence, creating its job and moving `next_fire_at` belong to the stores and to the leader.
//!
//! | module | what it owns |
//! |---|---|
//! | [`cron`] | [`Cron`], an expression |
//! | [`zone`] | [`ZoneName`] and the built-in time zone database |
//! | [`cadence`] | [`Cadence`]: the nominal times of an expression or of an interval |
//! | [`plan`](mod@plan) | which occurrences are fired now, which were missed, when to look again |
//! | [`policy`] | misfires, overlaps, and the words of the ledger |
//! | [`new_schedule`] | [`NewSchedule`], what may be asked for |
//!
//! # When the clocks change
//!
//! An expression whose minute or hour field starts with `*` follows real time: `*/15 * * * *` runs every quarter of an hour that
//! passes, twice through an hour that the clocks repeat, and never in one that they leave out. Any other is fixed to the time of day:
//! if the clocks leave that time out it fires once, at the first instant after, and if they repeat it, only the first time.

pub mod cadence;
pub mod cron;
mod days;
mod face;
mod jitter;
mod name;
pub mod new_schedule;
mod parse;
pub mod plan;
pub mod policy;
mod walk;
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
