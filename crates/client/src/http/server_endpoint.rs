//! The server's address, the API key and timeouts.

use std::{fmt, time::Duration};

use orchestrix_core::{FieldError, Invalid};
use reqwest::{Url, header::HeaderValue};

/// How to reach a server.
#[derive(Clone)]
pub struct ServerEndpoint {
    /// The base URL, such as `https://jobs.example.com`. It may have a path.
    pub address: String,
    /// The API key, if the server requires one.
    pub api_key: Option<String>,
    /// The time limit for opening a connection.
    pub connect_timeout: Duration,
    /// The time limit for a response, beyond the requested long poll, and for each chunk of its body.
    pub call_timeout: Duration,
    /// The `User-Agent` header.
    pub user_agent: &'static str,
}

impl ServerEndpoint {
    /// A server without a key, with default timeouts.
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            api_key: None,
            connect_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(15),
            user_agent: concat!("orchestrix/", env!("CARGO_PKG_VERSION")),
        }
    }

    /// Validates the address and the key. Reports everything that is wrong.
    pub fn check(&self) -> Result<(), Invalid> {
        self.parse().map(drop)
    }

    /// The base URL without a trailing slash, and the authorization header.
    pub(super) fn parse(&self) -> Result<(String, Option<HeaderValue>), Invalid> {
        let mut errors = Vec::new();
        let base_url =
            parse_base_url(&self.address).map_err(|message| errors.push(FieldError::new("server", message))).ok();
        let key = self.api_key.as_ref().map(|key| {
            let mut value = HeaderValue::from_str(&format!("Bearer {key}"))
                .map_err(|_| errors.push(FieldError::new("apiKey", "must contain visible ASCII characters only")))
                .ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        Invalid::check(errors)?;
        Ok((base_url.unwrap_or_default(), key.flatten()))
    }
}

fn parse_base_url(text: &str) -> Result<String, &'static str> {
    let url = Url::parse(text).map_err(|_| "is not a URL such as https://jobs.example.com")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must begin with http:// or https://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain credentials: use an API key");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must not have a query or a fragment");
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

// Without the key.
impl fmt::Debug for ServerEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerEndpoint").field("address", &self.address).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_have_a_path_but_no_credentials_query_or_fragment() {
        assert_eq!(parse_base_url("http://h:8080").as_deref(), Ok("http://h:8080"));
        assert_eq!(parse_base_url("https://h/jobs/").as_deref(), Ok("https://h/jobs"));
        for text in ["", "h:8080", "ftp://h", "http://me:pw@h", "http://h?a", "http://h/#a", "postgres://h"] {
            assert!(parse_base_url(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_error_is_reported_and_debug_output_hides_the_key() {
        let server = ServerEndpoint { api_key: Some("hunter2\n".into()), ..ServerEndpoint::new("nowhere") };
        let fields: Vec<String> = server.check().unwrap_err().errors.into_iter().map(|error| error.field).collect();
        assert_eq!(fields, ["server", "apiKey"]);
        assert!(!format!("{server:?}").contains("hunter2"));
    }
}
