//! What operators ask and are told: all of a job, and what it takes to keep the whole going.
//!
//! | module | what it owns |
//! |---|---|
//! | [`filter`] | which jobs, in the same words behind a question mark and in a body |
//! | [`page`] | which part of a list |
//! | [`job`] | jobs with all that is known of them |
//! | [`attempt`] | attempts, and the lines they wrote |
//! | [`timeline`] | what a job has gone through |
//! | [`explain`] | why a job is not running |
//! | [`standing`] | where a job stands after a change |
//! | [`dlq`] | giving dead jobs another chance, or forgetting them |
//! | [`key`] | who may do what |
//! | [`queue`], [`worker`], [`node`] | where jobs wait, who works, who leads |
//! | [`operation`] | one action on many jobs |
//! | [`audit`], [`stats`] | who did what, and how the whole stands |
//!
//! What stands behind a question mark is read like a body, as one object whose values are texts, so that everything wrong
//! with it is told at once, names that nobody knows too.

pub mod attempt;
pub mod audit;
pub mod dlq;
pub mod explain;
pub mod filter;
pub mod job;
pub mod key;
pub mod node;
pub mod operation;
pub mod page;
pub mod queue;
#[cfg(test)]
mod sample;
pub mod standing;
pub mod stats;
pub mod timeline;
pub mod worker;
