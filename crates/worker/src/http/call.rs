//! One request and its answer. Every wait is bounded: for the connection, for the answer, and for each piece of it.

use std::{error::Error, time::Duration};

use orchestrix_store::{Result, StoreError};
use reqwest::{
    Client, Response,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue},
    redirect,
};
use serde::{Serialize, de::DeserializeOwned};

use super::{options::HttpOptions, refusal};

/// How much of a refusal is read.
const REFUSAL_BYTES: usize = 64 * 1024;
/// How long a connection that nobody needs is kept: less than servers and whatever stands before them usually do.
const IDLE: Duration = Duration::from_secs(30);
/// How soon the other end is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// Connections to one server, driven by the runtime of whoever calls first.
pub(super) struct Caller {
    client: Client,
    /// Without a slash at its end.
    place: String,
    timeout: Duration,
}

impl Caller {
    pub(super) fn new(options: &HttpOptions) -> Result<Self> {
        let (place, key) = options.check()?;
        let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        if let Some(key) = key {
            headers.insert(AUTHORIZATION, key);
        }
        // An error would say that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let plain = || {
            Client::builder()
                .user_agent(concat!("orchestrix-worker/", env!("CARGO_PKG_VERSION")))
                .default_headers(headers.clone())
                // The key is for this server alone.
                .redirect(redirect::Policy::none())
                .referer(false)
                .connect_timeout(options.connect_timeout)
                .pool_idle_timeout(IDLE)
                .tcp_keepalive(KEEPALIVE)
        };
        let client = match plain().build() {
            // A machine without certificates can still talk to a server that has none.
            Err(_) if place.starts_with("http://") => plain().tls_certs_only([]).build(),
            built => built,
        };
        let client = client.map_err(|error| StoreError::Backend(causes(&error).into()))?;
        Ok(Self { client, place, timeout: options.call_timeout })
    }

    /// Posts `body` and reads the answer, which may be `wait` longer in coming than it takes.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        wait: Duration,
    ) -> Result<T> {
        let body = serde_json::to_string(body).map_err(|error| StoreError::Backend(error.into()))?;
        let answer = self.send(path, body, wait, None).await?;
        serde_json::from_slice(&answer).map_err(|error| StoreError::Backend(format!("{path}: {error}").into()))
    }

    /// The same of a body that is written already, in this trace; the answer unread.
    pub(super) async fn send(&self, path: &str, body: String, wait: Duration, trace: Option<&str>) -> Result<Vec<u8>> {
        let mut request = self.client.post(format!("{}{path}", self.place)).body(body);
        if let Some(trace) = trace {
            request = request.header("traceparent", trace);
        }
        let mut response = within(self.timeout + wait, request.send()).await?;
        let status = response.status();
        if status.is_success() {
            return self.read(&mut response, usize::MAX).await;
        }
        // Without its words a refusal is still one.
        let body = self.read(&mut response, REFUSAL_BYTES).await.unwrap_or_default();
        Err(refusal::read(status, &body))
    }

    async fn read(&self, response: &mut Response, most: usize) -> Result<Vec<u8>> {
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

async fn within<T>(patience: Duration, work: impl Future<Output = reqwest::Result<T>>) -> Result<T> {
    match tokio::time::timeout(patience, work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) if error.is_builder() => Err(StoreError::Backend(causes(&error).into())),
        Ok(Err(error)) => Err(StoreError::Unavailable(causes(&error.without_url()))),
        Err(_) => Err(StoreError::Unavailable(format!("the server gave no answer within {} s", patience.as_secs()))),
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
