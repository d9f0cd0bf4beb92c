//! The server's address, the API key and timeouts.

use std::{fmt, time::Duration};

use orchestrix_api::worker::MAX_WAIT;
use orchestrix_client::http::ServerEndpoint;
use orchestrix_core::{FieldError, Invalid};

/// How a worker reaches its server.
#[derive(Clone)]
pub struct HttpOptions {
    /// The base URL, such as `https://jobs.example.com`. It may have a path.
    pub server: String,
    /// The API key, if the server requires one.
    pub api_key: Option<String>,
    /// The time limit for opening a connection.
    pub connect_timeout: Duration,
    /// The time limit for a response, beyond the requested long poll, and for each chunk of its body.
    pub call_timeout: Duration,
    /// The duration of a long poll for jobs, at most 60 s.
    pub wait: Duration,
}

impl HttpOptions {
    /// A server without a key, with default timeouts.
    pub fn new(server: impl Into<String>) -> Self {
        Self {
            server: server.into(),
            api_key: None,
            connect_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(15),
            wait: Duration::from_secs(20),
        }
    }

    /// The options of the HTTP client.
    pub(super) fn server(&self) -> ServerEndpoint {
        ServerEndpoint {
            api_key: self.api_key.clone(),
            connect_timeout: self.connect_timeout,
            call_timeout: self.call_timeout,
            user_agent: concat!("orchestrix-worker/", env!("CARGO_PKG_VERSION")),
            ..ServerEndpoint::new(&self.server)
        }
    }

    /// Validates the options. Reports every invalid one.
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
    fn every_error_is_reported_and_debug_output_hides_the_key() {
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
