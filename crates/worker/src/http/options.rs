//! Where the server is, and how long to wait for it.

use std::{fmt, time::Duration};

use orchestrix_api::worker::MAX_WAIT;
use orchestrix_client::http::Server;
use orchestrix_core::{FieldError, Invalid};

/// A server and how to reach it.
#[derive(Clone)]
pub struct HttpOptions {
    /// Its address, such as `https://jobs.example.com`; it may have a path.
    pub server: String,
    /// What it knows the worker by, if it asks.
    pub api_key: Option<String>,
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long an answer may take, beyond what it was asked to wait; and how long it may pause once it has begun.
    pub call_timeout: Duration,
    /// How long an idle worker waits at the server for jobs, at most 60 s.
    pub wait: Duration,
}

impl HttpOptions {
    /// A server without a key.
    pub fn new(server: impl Into<String>) -> Self {
        Self {
            server: server.into(),
            api_key: None,
            connect_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(15),
            wait: Duration::from_secs(20),
        }
    }

    /// The server alone.
    pub(super) fn server(&self) -> Server {
        Server {
            api_key: self.api_key.clone(),
            connect_timeout: self.connect_timeout,
            call_timeout: self.call_timeout,
            agent: concat!("orchestrix-worker/", env!("CARGO_PKG_VERSION")),
            ..Server::new(&self.server)
        }
    }

    /// Names everything that is wrong.
    pub(super) fn check(&self) -> Result<(), Invalid> {
        let mut errors = self.server().check().err().map_or_else(Vec::new, |invalid| invalid.errors);
        if self.wait > MAX_WAIT {
            errors.push(FieldError::new("wait", format!("must be at most {} s", MAX_WAIT.as_secs())));
        }
        Invalid::check(errors)
    }
}

// Without the key.
impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions").field("server", &self.server).field("wait", &self.wait).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_wrong_is_named_and_the_key_is_never_shown() {
        let options = HttpOptions {
            api_key: Some("hunter2\n".into()),
            wait: Duration::from_secs(61),
            ..HttpOptions::new("nowhere")
        };
        let fields: Vec<String> = options.check().unwrap_err().errors.into_iter().map(|error| error.field).collect();
        assert_eq!(fields, ["server", "apiKey", "wait"]);
        assert!(!format!("{options:?}").contains("hunter2"));
    }
}
