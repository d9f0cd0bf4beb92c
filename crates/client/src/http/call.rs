//! One request and its answer. Every wait is bounded: for the connection, for the answer, and for each piece of it.

use std::{error::Error, time::Duration};

use orchestrix_core::{FieldError, Invalid};
use reqwest::{
    Client, Method, Response, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER},
    redirect,
};

use super::Server;

/// How much of a refusal is read.
const REFUSAL_BYTES: usize = 64 * 1024;
/// How long a connection that nobody needs is kept: less than servers and whatever stands before them usually do.
const IDLE: Duration = Duration::from_secs(30);
/// How soon the other end is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// Connections to one server, driven by the runtime of whoever calls first.
#[derive(Debug)]
pub struct Caller {
    client: Client,
    /// Without a slash at its end.
    place: String,
    timeout: Duration,
}

/// A request.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    /// What is to be done.
    pub method: Method,
    /// To what: a path that begins with a slash, and its question.
    pub path: &'a str,
    /// JSON.
    pub body: Option<String>,
    /// How much longer in coming the answer may be than it takes.
    pub wait: Duration,
    /// W3C trace context.
    pub traceparent: Option<&'a str>,
}

impl<'a> Call<'a> {
    /// A request with nothing but its path.
    pub const fn new(method: Method, path: &'a str) -> Self {
        Self { method, path, body: None, wait: Duration::ZERO, traceparent: None }
    }
}

/// What was answered, a refusal too.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Whether it is what was asked for.
    pub status: StatusCode,
    /// How long to wait before asking again, if the server says so.
    pub retry_after: Option<Duration>,
    /// All of it; of a refusal, as much as is worth reading.
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No connection came about, so nothing was sent.
    #[error("{0}")]
    NotSent(String),
    /// The connection broke, or nothing came in time. Whether the request was carried out is unknown.
    #[error("{0}")]
    Broken(String),
    /// The request is none.
    #[error("{0}")]
    Unwritable(String),
}

impl Caller {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// If the address or the key make no sense.
    pub fn new(server: &Server) -> Result<Self, Invalid> {
        let (place, key) = server.read()?;
        let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        if let Some(key) = key {
            headers.insert(AUTHORIZATION, key);
        }
        // An error would say that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let plain = || {
            Client::builder()
                .user_agent(server.agent)
                .default_headers(headers.clone())
                // The key is for this server alone.
                .redirect(redirect::Policy::none())
                .referer(false)
                .connect_timeout(server.connect_timeout)
                .pool_idle_timeout(IDLE)
                .tcp_keepalive(KEEPALIVE)
        };
        let client = match plain().build() {
            // A machine without certificates can still talk to a server that has none.
            Err(_) if place.starts_with("http://") => plain().tls_certs_only([]).build(),
            built => built,
        };
        let client = client.map_err(|error| FieldError::new("server", causes(&error)))?;
        Ok(Self { client, place, timeout: server.call_timeout })
    }

    /// The server, without a slash at its end.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Sends a request and reads the answer.
    pub async fn call(&self, call: Call<'_>) -> Result<Answer, CallError> {
        let mut request = self.client.request(call.method, format!("{}{}", self.place, call.path));
        if let Some(body) = call.body {
            request = request.body(body);
        }
        if let Some(trace) = call.traceparent {
            request = request.header("traceparent", trace);
        }
        let mut response = within(self.timeout + call.wait, request.send()).await?;
        let status = response.status();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let body = match status.is_success() {
            true => self.read(&mut response, usize::MAX).await?,
            // Without its words a refusal is still one.
            false => self.read(&mut response, REFUSAL_BYTES).await.unwrap_or_default(),
        };
        Ok(Answer { status, retry_after: retry_after.map(Duration::from_secs), body })
    }

    async fn read(&self, response: &mut Response, most: usize) -> Result<Vec<u8>, CallError> {
        let mut body = Vec::new();
        while body.len() < most {
            match within(self.timeout, response.chunk()).await? {
                Some(chunk) => body.extend_from_slice(&chunk),
                None => break,
            }
        }
        Ok(body)
    }
}

async fn within<T>(patience: Duration, work: impl Future<Output = reqwest::Result<T>>) -> Result<T, CallError> {
    match tokio::time::timeout(patience, work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) if error.is_builder() => Err(CallError::Unwritable(causes(&error))),
        Ok(Err(error)) if error.is_connect() => Err(CallError::NotSent(causes(&error.without_url()))),
        Ok(Err(error)) => Err(CallError::Broken(causes(&error.without_url()))),
        Err(_) => Err(CallError::Broken(format!("the server gave no answer within {} s", patience.as_secs()))),
    }
}

fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text.push_str(": ");
        text.push_str(&deeper.to_string());
        cause = deeper.source();
    }
    text
}
