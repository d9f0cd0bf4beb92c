//! Request and response types of the HTTP API, shared by the server and its clients.
//!
//! | module | contents |
//! |---|---|
//! | [`object_reader`] | reads a JSON object field by field and collects every error |
//! | [`request_error`] | why a request body or query was rejected |
//! | [`job`] | `POST /jobs` and the client's view of a job |
//! | [`schedule`] | schedules and their occurrences |
//! | [`worker`] | the worker API |
//! | [`admin`] | the admin API |
//! | [`list`] | pages of lists |
//! | [`seconds`] | durations as numbers of seconds |
//! | [`problem`] | RFC 9457 problems and their stable codes |
//! | `schema` | with the feature `openapi`: schemas shared by many fields |
//!
//! The crate performs no I/O. Parsers turn requests into `orchestrix_core` types, which enforce the rules.
//! Errors name the fields as the JSON spells them.

pub mod admin;
pub mod job;
pub mod list;
pub mod object_reader;
pub mod problem;
pub mod request_error;
pub mod schedule;
#[cfg(feature = "openapi")]
pub mod schema;
pub mod seconds;
pub mod worker;

pub use list::ListResponse;
pub use object_reader::{MalformedJson, ObjectReader};
pub use problem::{Code, Problem};
pub use request_error::RequestError;
