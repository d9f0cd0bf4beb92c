//! Orchestrix on SQLite: one file, no server, the guarantees of the PostgreSQL store.
//!
//! [`SqliteStore`] keeps jobs in one file in write-ahead mode with `synchronous = FULL`: acknowledged writes survive a
//! power loss. One thread writes and commits many operations at once. Readers see committed data and never wait for
//! the writer. Several processes may share the file: they take turns at writing, discover each other's jobs by
//! polling, and never lease the same job.
//!
//! | module | what it does |
//! |---|---|
//! | `store` | [`SqliteStore`] and its store traits: checks arguments, then runs one verb |
//! | `database` | opens the file; the reader pool and the channel to the writer |
//! | `writer` | the writer thread: group commit, one savepoint per operation |
//! | `session`, `effects` | one transaction: its statements, its depth changes, its metrics and wake-ups |
//! | `statement`, `columns`, `row` | one file in `queries/` per statement; its columns by name; rows as domain types |
//! | `enqueue`, `record`, `claim`, `finish`, `settle`, `dependents` | the life of a job |
//! | `lanes`, `lane_list`, `select` | the order of claims, one over all queues, job types and tenants |
//! | `sweeps`, `prune` | the leader's sweeps |
//! | `schedule`, `occurrences` | schedules and their occurrences |
//! | `fire`, `trigger`, `firing` | what makes a schedule fire, and what firing writes |
//! | `coordination` | leadership, nodes, the times of the next sweeps |
//! | `diagnose` | examines a file for `orchestrix doctor` |
//! | `job_actions`, `queue`, `worker`, `operation`, `key`, `audit`, `inspect`, `changes` | one group of verbs each |

mod audit;
mod changes;
mod claim;
mod columns;
mod coordination;
mod database;
mod dependents;
pub mod diagnose;
mod effects;
mod enqueue;
mod error;
mod finish;
mod fire;
mod firing;
mod inspect;
mod job_actions;
mod key;
mod lane_list;
mod lanes;
mod migrate;
mod occurrences;
mod operation;
mod options;
mod prune;
mod queue;
mod record;
mod row;
mod schedule;
mod select;
mod session;
mod settle;
mod statement;
mod store;
mod sweeps;
mod tenant;
mod trigger;
mod worker;
mod writer;

pub use crate::{migrate::SCHEMA_VERSION, options::SqliteOptions, store::SqliteStore};
