//! Where the server is, and how long to wait for it.

use std::{fmt, time::Duration};

use orchestrix_core::{FieldError, Invalid};
use reqwest::{Url, header::HeaderValue};

/// A server and how to reach it.
#[derive(Clone)]
pub struct Server {
    /// Its address, such as `https://jobs.example.com`; it may have a path.
    pub address: String,
    /// What it knows the caller by, if it asks.
    pub api_key: Option<String>,
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long an answer may take, beyond what it was asked to wait; and how long it may pause once it has begun.
    pub call_timeout: Duration,
    /// What the caller calls itself, with its version.
    pub agent: &'static str,
}

impl Server {
    /// A server without a key, and times that suit a network.
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            api_key: None,
            connect_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(15),
            agent: concat!("orchestrix/", env!("CARGO_PKG_VERSION")),
        }
    }

    /// Checks the address and the key; names everything that is wrong.
    pub fn check(&self) -> Result<(), Invalid> {
        self.read().map(drop)
    }

    /// The address without a slash at its end, and the header with the key.
    pub(super) fn read(&self) -> Result<(String, Option<HeaderValue>), Invalid> {
        let mut errors = Vec::new();
        let place = place(&self.address).map_err(|message| errors.push(FieldError::new("server", message))).ok();
        let key = self.api_key.as_ref().map(|key| {
            let mut value = HeaderValue::from_str(&format!("Bearer {key}"))
                .map_err(|_| errors.push(FieldError::new("apiKey", "must have visible characters only")))
                .ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        Invalid::check(errors)?;
        Ok((place.unwrap_or_default(), key.flatten()))
    }
}

fn place(text: &str) -> Result<String, &'static str> {
    let url = Url::parse(text).map_err(|_| "is not a URL such as https://jobs.example.com")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must begin with http:// or https://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not hold a password: give an API key");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must end with its path");
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

// Without the key.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_have_a_path_and_nothing_else() {
        assert_eq!(place("http://h:8080").as_deref(), Ok("http://h:8080"));
        assert_eq!(place("https://h/jobs/").as_deref(), Ok("https://h/jobs"));
        for text in ["", "h:8080", "ftp://h", "http://me:pw@h", "http://h?a", "http://h/#a", "postgres://h"] {
            assert!(place(text).is_err(), "{text}");
        }
    }

    #[test]
    fn everything_wrong_is_named_and_the_key_is_never_shown() {
        let server = Server { api_key: Some("hunter2\n".into()), ..Server::new("nowhere") };
        let fields: Vec<String> = server.check().unwrap_err().errors.into_iter().map(|error| error.field).collect();
        assert_eq!(fields, ["server", "apiKey"]);
        assert!(!format!("{server:?}").contains("hunter2"));
    }
}
