//! Requests to a server and what it answers, for whoever speaks the HTTP API: workers and the command line.
//!
//! | module | what it owns |
//! |---|---|
//! | `server` | where the server is, and how long to wait for it |
//! | `call` | one request and its answer; every wait is bounded |
//! | `told` | what is read of a problem |
//!
//! It retries nothing: only whoever asks knows what may be repeated. What it tells is whether a request that failed can have
//! been carried out.

mod call;
mod server;
mod told;

pub use call::{Answer, Call, CallError, Caller};
pub use reqwest::{Method, StatusCode};
pub use server::Server;
pub use told::Told;
