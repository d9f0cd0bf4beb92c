//! `orchestrix.http {url, method, headers, body, expectStatus}`: sends a request. Its result is the response.
//!
//! | module | what it owns |
//! |---|---|
//! | `request` | the payload |
//! | `hop` | one request in a chain of redirects |
//! | `address_filter` | which addresses a request may reach |
//! | `public_address` | which addresses are public |
//! | `response` | the response as the job's result, and which statuses are retried |
//!
//! Requests and redirects reach public addresses only, unless the worker allows private ones. Transient failures (the
//! network, 5xx, 408, 425, 429) are retried; the others are fatal. Request headers are never logged or stored.

mod address_filter;
mod hop;
mod public_address;
mod request;
mod response;
#[cfg(test)]
mod tests;

use std::{error::Error, future::Future, sync::Arc, time::Duration};

use orchestrix_core::Json;
use orchestrix_worker::{HandlerResult, JobCall, JobError, JobResult};
use reqwest::{Client, ClientBuilder, Response, redirect};

use self::{
    address_filter::{AddressFilter, NotAllowed},
    hop::Hop,
    request::Request,
    response::{ResponseResult, unexpected_status},
};
use crate::INTERRUPTED;

pub(crate) const TYPE: &str = "orchestrix.http";

const MAX_REDIRECTS: usize = 5;

/// The time limit for the response head, and then for the body, of a job without a timeout of its own.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) async fn run(call: JobCall, client: Arc<GuardedClient>) -> HandlerResult {
    let request = Request::read(&call.payload)?;
    let timeout = call.context.deadline().is_none().then_some(DEFAULT_TIMEOUT);
    tokio::select! {
        biased;
        () = call.context.cancelled() => Err(JobError::new(INTERRUPTED)),
        answer = client.execute(&request, timeout) => answer,
    }
}

/// An HTTP client that connects only to the addresses its filter allows. Shared by all jobs of a worker.
pub(crate) struct GuardedClient {
    /// The client, or the reason why it could not be built.
    client: Result<Client, String>,
    filter: AddressFilter,
}

impl GuardedClient {
    pub(crate) fn new(allow_private: bool) -> Self {
        Self::with_filter(AddressFilter::new(allow_private))
    }

    fn with_filter(filter: AddressFilter) -> Self {
        // Fails only if a provider is already installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || -> ClientBuilder {
            Client::builder()
                .user_agent(concat!("orchestrix/", env!("CARGO_PKG_VERSION")))
                // A proxy would resolve and connect by itself, past the filter.
                .no_proxy()
                .redirect(redirect::Policy::none())
                .referer(false)
                .dns_resolver(filter)
        };
        // A machine without root certificates can still send plain HTTP.
        let client =
            builder().build().or_else(|_| builder().tls_certs_only([]).build()).map_err(|error| error_chain(&error));
        Self { client, filter }
    }

    /// Sends the request, follows redirects and reads the response.
    async fn execute(&self, request: &Request, timeout: Option<Duration>) -> HandlerResult {
        let client = self
            .client
            .as_ref()
            .map_err(|error| JobError::new(format!("cannot set up TLS for HTTP requests: {error}")))?;
        let (response, origin) = with_timeout(timeout, self.follow_redirects(client, request)).await?;
        if !request.expects(response.status()) {
            return Err(unexpected_status(response.status(), response.headers(), &origin));
        }
        let read = async { ResponseResult::read(response).await.map_err(|error| request_error(error, &origin)) };
        let result = with_timeout(timeout, read).await?;
        Json::of("result", &result).map(Some).map_err(JobError::fatal)
    }

    async fn follow_redirects(&self, client: &Client, request: &Request) -> JobResult<(Response, String)> {
        let mut hop = Hop::first(request);
        for _ in 0..=MAX_REDIRECTS {
            self.filter.check(&hop.url).map_err(JobError::fatal)?;
            let response = hop.request(client).send().await.map_err(|error| request_error(error, &hop.origin()))?;
            if request.lists(response.status()) {
                return Ok((response, hop.origin()));
            }
            match hop.next(&response)? {
                Some(next) => hop = next,
                None => return Ok((response, hop.origin())),
            }
        }
        Err(JobError::fatal(format!(
            "{} redirects more than {MAX_REDIRECTS} times",
            request.url.origin().ascii_serialization()
        )))
    }
}

async fn with_timeout<T>(timeout: Option<Duration>, work: impl Future<Output = JobResult<T>>) -> JobResult<T> {
    match timeout {
        None => work.await,
        Some(timeout) => tokio::time::timeout(timeout, work)
            .await
            .unwrap_or_else(|_| Err(JobError::new(format!("no response within {} s", timeout.as_secs())))),
    }
}

/// The job error for a request that got no response: fatal if the address is not allowed or the request is invalid.
fn request_error(error: reqwest::Error, origin: &str) -> JobError {
    // The whole URL may hold secrets.
    let error = error.without_url();
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(current) = cause {
        if current.is::<NotAllowed>() {
            return JobError::fatal(current.to_string());
        }
        cause = current.source();
    }
    let text = format!("{origin}: {}", error_chain(&error));
    if error.is_builder() { JobError::fatal(text) } else { JobError::new(text) }
}

fn error_chain(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(current) = cause {
        text += &format!(": {current}");
        cause = current.source();
    }
    text
}
