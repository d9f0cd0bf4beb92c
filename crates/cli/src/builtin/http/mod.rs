//! `orchestrix.http {url, method, headers, body, expectStatus}`: sends a request; its result is the answer.
//!
//! It goes to public addresses only, unless the worker was started otherwise, and so does every redirect. What may pass (the
//! network, 5xx, 408, 425, 429) is tried again; what will not is fatal. Headers are never written anywhere.

mod address;
mod answer;
mod gate;
mod hop;
mod request;
#[cfg(test)]
mod tests;

use std::{error::Error, future::Future, sync::Arc, time::Duration};

use orchestrix_core::Json;
use orchestrix_worker::{HandlerResult, JobCall, JobError, JobResult};
use reqwest::{Client, ClientBuilder, Response, redirect};

use self::{
    answer::{Kept, unexpected},
    gate::{Gate, Refused},
    hop::Hop,
    request::Request,
};

pub(super) const TYPE: &str = "orchestrix.http";

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 5;

/// How long a job without a timeout of its own waits for the head of the answer, and then for its body.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn run(call: JobCall, courier: Arc<Courier>) -> HandlerResult {
    let request = Request::read(&call.payload)?;
    let patience = call.context.deadline().is_none().then_some(PATIENCE);
    tokio::select! {
        biased;
        () = call.context.cancelled() => Err(JobError::new("asked to stop")),
        answer = courier.deliver(&request, patience) => answer,
    }
}

/// Sends requests for all jobs of a worker.
pub(super) struct Courier {
    /// Or why there is none.
    client: Result<Client, String>,
    gate: Gate,
}

impl Courier {
    pub(super) fn new(private: bool) -> Self {
        Self::through(Gate::new(private))
    }

    fn through(gate: Gate) -> Self {
        // An error would say that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let plain = || -> ClientBuilder {
            Client::builder()
                .user_agent(concat!("orchestrix/", env!("CARGO_PKG_VERSION")))
                // A proxy would connect to whatever it is told.
                .no_proxy()
                .redirect(redirect::Policy::none())
                .referer(false)
                .dns_resolver(gate)
        };
        // A machine without certificates can still send what needs none.
        let client = plain().build().or_else(|_| plain().tls_certs_only([]).build()).map_err(|error| causes(&error));
        Self { client, gate }
    }

    async fn deliver(&self, request: &Request, patience: Option<Duration>) -> HandlerResult {
        let client = self.client.as_ref().map_err(|error| JobError::new(format!("this worker has no TLS: {error}")))?;
        let (response, origin) = within(patience, self.follow(client, request)).await?;
        if !request.expects(response.status()) {
            return Err(unexpected(response.status(), response.headers(), &origin));
        }
        let kept = within(patience, async { Kept::of(response).await.map_err(|error| lost(error, &origin)) }).await?;
        Json::of("result", &kept).map(Some).map_err(JobError::fatal)
    }

    async fn follow(&self, client: &Client, request: &Request) -> JobResult<(Response, String)> {
        let mut hop = Hop::first(request);
        for _ in 0..=MAX_REDIRECTS {
            self.gate.check(&hop.url).map_err(JobError::fatal)?;
            let response = hop.request(client).send().await.map_err(|error| lost(error, &hop.origin()))?;
            if request.names(response.status()) {
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

async fn within<T>(patience: Option<Duration>, work: impl Future<Output = JobResult<T>>) -> JobResult<T> {
    match patience {
        None => work.await,
        Some(patience) => tokio::time::timeout(patience, work)
            .await
            .unwrap_or_else(|_| Err(JobError::new(format!("no answer within {} s", patience.as_secs())))),
    }
}

fn lost(error: reqwest::Error, origin: &str) -> JobError {
    // The whole URL may hold secrets.
    let error = error.without_url();
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(deeper) = cause {
        if deeper.is::<Refused>() {
            return JobError::fatal(deeper.to_string());
        }
        cause = deeper.source();
    }
    let text = format!("{origin}: {}", causes(&error));
    if error.is_builder() { JobError::fatal(text) } else { JobError::new(text) }
}

fn causes(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text += &format!(": {deeper}");
        cause = deeper.source();
    }
    text
}
