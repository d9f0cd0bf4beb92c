//! A [`JobSource`](crate::JobSource) that calls a server's HTTP API.
//!
//! | module | what it owns |
//! |---|---|
//! | `options` | the server's address, the API key and timeouts |
//! | `api_client` | requests, with errors mapped to `StoreError` |
//! | `error_response` | mapping error responses to `StoreError` |
//! | `source` | the operations of a job source as requests |
//! | `chunks` | splitting a large call into several requests |
//!
//! It retries nothing. The runtime does, and every request is safe to repeat. It runs no coordinator: the server does.

mod api_client;
mod chunks;
mod error_response;
mod options;
mod source;

pub use options::HttpOptions;
pub use source::HttpSource;
