//! `#[derive(Job)]` for Orchestrix: a struct or an enum becomes a job, with the settings that its jobs begin with.
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
//! | attribute | what it sets | unless given |
//! |---|---|---|
//! | `type = "send-email"` | the job type: 1 to 128 of `A-Z a-z 0-9 _ . - :` | the type's name as written |
//! | `queue = "mail"` | where its jobs wait: 1 to 128 of `A-Z a-z 0-9 _ . -` | `default` |
//! | `priority = -5` | how urgent they are, -1000 to 1000, higher first | 0 |
//! | `max_attempts = 3` | how often one may be tried, 1 to 10000 | 10 |
//! | `timeout = "30s"` | how long one attempt may take, 1ms to 30d | no limit |
//! | `lease = "1m"` | how long a silent worker keeps one, 1s to 1d | 30s |
//! | `retry(base = "1s", multiplier = 2.0, max = "1h", jitter = 0.1)` | the waits between attempts, any of the four | those |
//! | `tags = ["a", "b"]` | words to find them by, at most 32, spelt like types | none |
//! | `output = Report` | what a finished job leaves | `()` |
//! | `crate = path` | where the items of Orchestrix are | `::orchestrix` |
//!
//! A duration is a number and one of `ms`, `s`, `m`, `h`, `d`. It may have a fraction (`"1.5s"`), as long as it comes to
//! whole milliseconds. Several `#[job(...)]` on one type count as one.
//!
//! What a store would refuse when the job is recorded is refused here, while it is compiled, at the literal that is
//! wrong, and all of it at once. The rules are those of `orchestrix-core`, written down a second time so that compiling a
//! derive does not wait for that crate; the tests hold the two alike.
//!
//! Not for unions, nor for types with lifetimes or type parameters: one job type is one kind of payload.

use proc_macro::TokenStream;

mod attributes;
mod derive;
mod duration;
mod items;
mod name;
mod problems;
mod retry;
mod value;

/// Implements `orchestrix::Job`; the attributes are in the table of [this crate](crate).
#[proc_macro_derive(Job, attributes(job))]
pub fn derive_job(input: TokenStream) -> TokenStream {
    derive::expand(input.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
