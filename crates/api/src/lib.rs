//! The words of the HTTP API, as both sides of the wire read them.
//!
//! | module | what it owns |
//! |---|---|
//! | [`object`] | reading a JSON object field by field, so that everything wrong with it is told at once |
//! | [`job`] | `POST /jobs` and what is answered about jobs |
//! | [`schedule`] | schedules and their ledger |
//! | [`worker`] | what workers of any language ask and say |
//! | [`admin`] | what operators ask and are told |
//! | [`list`] | parts of lists |
//! | [`seconds`] | durations as numbers of seconds |
//! | [`problem`] | errors, and the codes that programs go by |
//! | `schema` | with the feature `openapi`: schemas that many fields share |
//!
//! It does no input or output. Requests become the types of `core`, which keep the rules; what they break is named as the
//! outside spells it.

pub mod admin;
pub mod job;
pub mod list;
pub mod object;
pub mod problem;
pub mod schedule;
#[cfg(feature = "openapi")]
pub mod schema;
pub mod seconds;
pub mod worker;

pub use list::Listed;
pub use object::{Malformed, Object};
pub use problem::{Code, Problem};
