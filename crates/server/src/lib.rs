//! Orchestrix over HTTP.
//!
//! | module | what it owns |
//! |---|---|
//! | `jobs`, `schedules`, `workers` | one file for each request of the API: it reads, asks the store, answers |
//! | `admin` | the same for operators |
//! | `operations` | whether the process lives and is ready |
//! | `openapi` | the description of the API, and the page that shows it |
//! | `meter` | what is counted of requests, and all metrics as text |
//! | `body` | bodies: how large, how long in coming, of what kind |
//! | `params` | paths and questions |
//! | `refusal` | errors as they are answered |
//! | `reader` | single jobs that are asked for; one look at the store for all who ask at the same time |
//! | `readiness` | whether the store is there, somebody leads and anybody works; one look for all who ask |
//! | `watcher` | who waits for which job to change; one look at the store for all of them |
//! | `live` | who follows jobs and is told of every change; one look at the store for all of them |
//! | `desk` | workers that wait for jobs; one claim at a time for all that want the same |
//! | `host` | whom a server without keys answers |
//! | `around` | what is done for every request: let in, traced, counted |
//! | `access` | what each route asks of a request |
//! | `auth` | who asks, and what they are kept to |
//! | `gate` | how many requests are worked on at once, and who is turned away |
//! | `patient` | connections whose other side takes nothing |
//! | `tls` | TLS on the server's own socket |
//! | `local` | the same requests without a socket |
//!
//! It knows no database: only the `Store`. A request whose client is gone leaves no work half done: what the store was asked
//! to do it does as a whole, and jobs that were leased for nobody are handed back.

mod access;
mod admin;
mod answer;
mod app;
mod around;
mod auth;
mod body;
mod desk;
mod gate;
mod gather;
mod host;
mod jobs;
mod live;
mod local;
mod meter;
mod openapi;
mod operations;
mod options;
mod params;
mod patient;
mod reader;
mod readiness;
mod refusal;
mod router;
mod schedules;
mod serve;
mod tls;
mod trace;
mod watcher;
mod workers;

pub use app::App;
pub use auth::Auth;
pub use local::Local;
pub use meter::{Metrics, serve_metrics};
pub use options::{ServerOptions, TraceTie};
pub use router::router;
pub use serve::serve;
pub use tls::Tls;
