//! Recording jobs and following what becomes of them.
//!
//! A job is a serde type that implements [`Job`], mostly by `#[derive(Job)]`. A [`Client`] records it, one by one, many at
//! once or as a graph, and gives back a [`JobHandle`]. What is special about one job, such as a delay or a key, is said
//! with a [`Request`].
//!
//! | module | what it owns |
//! |---|---|
//! | `job` | the trait, and what a type says about all jobs of its kind |
//! | `request` | what is special about one job |
//! | `client` | recording |
//! | `batch` | several jobs that wait for each other, all or nothing |
//! | `handle` | one recorded job: status, wait, result, cancel |
//! | `recurring` | jobs that are created again and again |
//! | `error` | what can go wrong |
//! | `http` | requests to a server, behind the feature of that name |
//!
//! What is deliberately absent: knowledge of any backend. A client works on the `Store` trait.

mod batch;
mod client;
mod error;
mod handle;
#[cfg(feature = "http")]
pub mod http;
mod job;
mod recurring;
mod request;

pub use batch::{Batch, Recorded, Ticket};
pub use client::Client;
pub use error::{ClientError, Result};
pub use handle::JobHandle;
pub use job::{Defaults, Job};
pub use recurring::{Recurring, When, cron, every};
pub use request::Request;
