//! Jobs from a server, over its HTTP API.
//!
//! | module | what it owns |
//! |---|---|
//! | `options` | where the server is, and how long to wait for it |
//! | `call` | requests and their answers in the terms of the runtime |
//! | `refusal` | what an answer that is none means for the runtime |
//! | `source` | the calls of a worker, as requests |
//! | `parts` | calls that are too large for one request |
//!
//! It retries nothing: the runtime does, and every request may be repeated. It never leads: that is the server's part.

mod call;
mod options;
mod parts;
mod refusal;
mod source;

pub use options::HttpOptions;
pub use source::HttpSource;
