//! One request and its response. Every wait is bounded: for the connection, for the response and for each chunk of its
//! body.

use std::{error::Error, time::Duration};

use orchestrix_core::{FieldError, Invalid};
use reqwest::{
    Client, Method, Response, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER},
    redirect,
};

use super::ServerEndpoint;

/// How much of an error response is read.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// How long an idle connection is kept: shorter than the usual limits of servers and proxies.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// The interval of TCP keep-alive probes.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// A connection pool to one server. The runtime of the first request drives its connections.
#[derive(Debug)]
pub struct HttpClient {
    client: Client,
    /// Without a trailing slash.
    base_url: String,
    timeout: Duration,
}

/// A request to the API.
#[derive(Debug, Clone)]
pub struct ApiRequest<'a> {
    /// The HTTP method.
    pub method: Method,
    /// The path, with a leading slash, and the query.
    pub path: &'a str,
    /// The JSON body.
    pub body: Option<String>,
    /// How long the server may hold the request beyond the call timeout, for a long poll.
    pub wait: Duration,
    /// The W3C trace context.
    pub traceparent: Option<&'a str>,
}

impl<'a> ApiRequest<'a> {
    /// A request without a body.
    pub const fn new(method: Method, path: &'a str) -> Self {
        Self { method, path, body: None, wait: Duration::ZERO, traceparent: None }
    }
}

/// A response, successful or not.
#[derive(Debug, Clone)]
pub struct ApiResponse {
    /// The HTTP status.
    pub status: StatusCode,
    /// The delay before a retry, if the server sent `Retry-After` in seconds.
    pub retry_after: Option<Duration>,
    /// The body. That of an error response may be truncated.
    pub body: Vec<u8>,
}

/// Why a request got no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The connection failed, so the request was not sent.
    #[error("{0}")]
    NotSent(String),
    /// The connection broke or the response timed out. The server may have processed the request.
    #[error("{0}")]
    Interrupted(String),
    /// The request is malformed.
    #[error("{0}")]
    InvalidRequest(String),
}

impl HttpClient {
    /// Creates a client. Opens no connection yet.
    ///
    /// # Errors
    /// If the address or the key is invalid.
    pub fn new(server: &ServerEndpoint) -> Result<Self, Invalid> {
        let (base_url, key) = server.parse()?;
        let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        if let Some(key) = key {
            headers.insert(AUTHORIZATION, key);
        }
        // Fails only if a provider is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            Client::builder()
                .user_agent(server.user_agent)
                .default_headers(headers.clone())
                // A redirect must not send the key to another server.
                .redirect(redirect::Policy::none())
                .referer(false)
                .connect_timeout(server.connect_timeout)
                .pool_idle_timeout(IDLE_TIMEOUT)
                .tcp_keepalive(KEEPALIVE)
        };
        let client = match builder().build() {
            // A machine without root certificates can still use plain HTTP.
            Err(_) if base_url.starts_with("http://") => builder().tls_certs_only([]).build(),
            built => built,
        };
        let client = client.map_err(|error| FieldError::new("server", error_chain(&error)))?;
        Ok(Self { client, base_url, timeout: server.call_timeout })
    }

    /// The server's base URL, without a trailing slash.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Sends a request and reads the response.
    pub async fn send(&self, request: ApiRequest<'_>) -> Result<ApiResponse, HttpError> {
        let mut builder = self.client.request(request.method, format!("{}{}", self.base_url, request.path));
        if let Some(body) = request.body {
            builder = builder.body(body);
        }
        if let Some(traceparent) = request.traceparent {
            builder = builder.header("traceparent", traceparent);
        }
        let mut response = with_timeout(self.timeout + request.wait, builder.send()).await?;
        let status = response.status();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let body = match status.is_success() {
            true => self.read_body(&mut response, usize::MAX).await?,
            // The status alone is enough if the body of an error response cannot be read.
            false => self.read_body(&mut response, MAX_ERROR_BYTES).await.unwrap_or_default(),
        };
        Ok(ApiResponse { status, retry_after: retry_after.map(Duration::from_secs), body })
    }

    async fn read_body(&self, response: &mut Response, max_bytes: usize) -> Result<Vec<u8>, HttpError> {
        let mut body = Vec::new();
        while body.len() < max_bytes {
            match with_timeout(self.timeout, response.chunk()).await? {
                Some(chunk) => body.extend_from_slice(&chunk),
                None => break,
            }
        }
        Ok(body)
    }
}

async fn with_timeout<T>(limit: Duration, work: impl Future<Output = reqwest::Result<T>>) -> Result<T, HttpError> {
    match tokio::time::timeout(limit, work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) if error.is_builder() => Err(HttpError::InvalidRequest(error_chain(&error))),
        Ok(Err(error)) if error.is_connect() => Err(HttpError::NotSent(error_chain(&error.without_url()))),
        Ok(Err(error)) => Err(HttpError::Interrupted(error_chain(&error.without_url()))),
        Err(_) => Err(HttpError::Interrupted(format!("the server gave no answer within {} s", limit.as_secs()))),
    }
}

fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text.push_str(": ");
        text.push_str(&deeper.to_string());
        cause = deeper.source();
    }
    text
}
