//! The admin API, for operators.
//!
//! | module | contents |
//! |---|---|
//! | [`filter`] | selects jobs, by query or body |
//! | [`page`] | selects a page of a list |
//! | [`job`] | summaries and details of jobs |
//! | [`attempt`] | attempts and log lines |
//! | [`timeline`] | the history of a job |
//! | [`explain`] | why a job is not running |
//! | [`job_state`] | the state of a job after a change |
//! | [`dlq`] | redrives and purges dead jobs |
//! | [`key`] | API keys |
//! | [`queue`], [`worker`], [`node`] | queues, workers and nodes |
//! | [`tenant`] | settings of tenants |
//! | [`operation`] | bulk operations |
//! | [`audit`], [`stats`] | audit entries and statistics |
//!
//! A query string is parsed like a body: as one object of strings. So one response lists every invalid and unknown
//! parameter.

pub mod attempt;
pub mod audit;
pub mod dlq;
pub mod explain;
pub mod filter;
#[cfg(test)]
mod fixtures;
pub mod job;
pub mod job_state;
pub mod key;
pub mod node;
pub mod operation;
pub mod page;
pub mod queue;
pub mod stats;
pub mod tenant;
pub mod timeline;
pub mod worker;
