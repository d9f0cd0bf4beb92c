//! The HTTP API of Orchestrix.
//!
//! A request passes [`serve`] (the connection), `middleware` (authentication, admission, audit, metrics) and `router`,
//! and ends in a handler. Handlers parse the request, call the `Store` and build the response.
//!
//! | module | responsibility |
//! |---|---|
//! | `serve`, `tls`, `write_timeout` | the socket, TLS, and the timeout of clients that do not read |
//! | `middleware` | everything that happens around every request |
//! | `route_policy` | per route: allowed roles, body limit, audit |
//! | `auth` | authentication by API key, the caller's identity, the audit log |
//! | `host` | protection of a server without keys against web pages |
//! | `admission` | the limit of concurrent and queued requests |
//! | `bounded_queue`, `key_counts` | limits that several modules share |
//! | `body`, `params` | request bodies, path and query parameters |
//! | `router`, `openapi` | the routes, and their description |
//! | `jobs`, `schedules`, `workers`, `admin` | the handlers |
//! | `health`, `readiness` | health checks |
//! | `metrics`, `trace` | metrics, request ids, spans and logs of requests |
//! | `lease_hub` | long polls of workers for jobs |
//! | `reader`, `batch_loader` | reads of single jobs, coalesced into batches |
//! | `watcher` | long polls for a change of one job |
//! | `live` | live updates by event stream and WebSocket |
//! | `api_error`, `response` | error and success responses |
//! | `in_process` | the API without a socket |
//!
//! This crate knows no database, only the `Store` trait. If a client disconnects, a store call that has begun still
//! completes, and jobs that were leased for the client are released.

mod admin;
mod admission;
mod api_error;
mod app;
mod auth;
mod batch_loader;
mod body;
mod bounded_queue;
mod health;
mod host;
mod in_process;
mod jobs;
mod key_counts;
mod lease_hub;
mod live;
mod metrics;
mod middleware;
mod openapi;
mod options;
mod params;
mod reader;
mod readiness;
mod response;
mod route_policy;
mod router;
mod schedules;
mod serve;
mod tls;
mod trace;
mod watcher;
mod workers;
mod write_timeout;

pub use app::App;
pub use auth::Auth;
pub use in_process::InProcessApi;
pub use metrics::{Metrics, serve_metrics};
pub use options::{ServerOptions, TracePropagator};
pub use router::router;
pub use serve::serve;
pub use tls::Tls;
