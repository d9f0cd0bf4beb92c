//! `#[derive(Job)]` for Orchestrix: makes a struct or an enum a job type with default options.
//!
//! ```ignore
//! use orchestrix::Job;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Job, Serialize, Deserialize)]
//! #[job(type = "send-email", queue = "mail", timeout = "30s", retry(base = "5s", max = "10m"), tags = ["mail"])]
//! struct SendEmail {
//!     to: String,
//! }
//! ```
//!
//! | attribute | what it sets | default |
//! |---|---|---|
//! | `type = "send-email"` | the job type: 1 to 128 of `A-Z a-z 0-9 _ . - :` | the name of the Rust type |
//! | `queue = "mail"` | the queue: 1 to 128 of `A-Z a-z 0-9 _ . -` | `default` |
//! | `priority = -5` | the priority, -1000 to 1000; higher runs first | 0 |
//! | `max_attempts = 3` | the maximum number of attempts, 1 to 10000 | 10 |
//! | `timeout = "30s"` | the time limit of one attempt, 1ms to 30d | no limit |
//! | `lease = "1m"` | how long a worker owns the job without extending its lease, 1s to 1d | 30s |
//! | `retry(base = "1s", multiplier = 2.0, max = "1h", jitter = 0.1)` | the back-off between attempts; any of the four parts | as shown |
//! | `tags = ["a", "b"]` | tags to search jobs by, at most 32, of the characters of a job type | none |
//! | `output = Report` | the type of the job's result | `()` |
//! | `crate = path` | the path of the `orchestrix` crate | `::orchestrix` |
//!
//! A duration is a number and one of `ms`, `s`, `m`, `h`, `d`. It may have a fraction (`"1.5s"`) if it is a whole
//! number of milliseconds. Several `#[job(...)]` on one type count as one.
//!
//! Values that a store would refuse at run time are compile errors at the literal, all reported at once. The rules are
//! those of `orchestrix-core`. They are duplicated here so that compiling a derive does not wait for that crate; tests
//! keep the two equal.
//!
//! Unions and types with lifetimes or type parameters are rejected: a job type has one payload type.

use proc_macro::TokenStream;

mod arguments;
mod attributes;
mod derive;
mod duration;
mod errors;
mod name;
mod retry;
mod value;

/// Implements `orchestrix::Job`. [This crate's documentation](crate) lists the attributes.
#[proc_macro_derive(Job, attributes(job))]
pub fn derive_job(input: TokenStream) -> TokenStream {
    derive::expand(input.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
