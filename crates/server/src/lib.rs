//! Orchestrix over HTTP.
//!
//! | module | what it owns |
//! |---|---|
//! | `jobs`, `schedules`, `workers` | one file for each request of the API: it reads, asks the store, answers |
//! | `operations` | whether the process lives and is ready |
//! | `body` | bodies: how large, how long in coming, of what kind |
//! | `params` | paths and questions |
//! | `refusal` | errors as they are answered |
//! | `watcher` | who waits for which job to change; one look at the store for all of them |
//! | `desk` | workers that wait for jobs; one claim at a time for all that want the same |
//! | `gate` | how many requests are worked on at once, and who is turned away |
//!
//! It knows no database: only the `Store`. A request whose client is gone leaves no work half done: what the store was asked
//! to do it does as a whole, and jobs that were leased for nobody are handed back.

mod answer;
mod app;
mod body;
mod desk;
mod gate;
mod jobs;
mod operations;
mod options;
mod params;
mod refusal;
mod router;
mod schedules;
mod serve;
mod trace;
mod watcher;
mod workers;

pub use app::App;
pub use options::{ServerOptions, TraceTie};
pub use router::router;
pub use serve::serve;
