//! A server, as its clients see it.

use std::{collections::BTreeMap, net::IpAddr, str::FromStr, time::Duration};

use orchestrix_core::Timestamp;
use orchestrix_store::{Result, StoreError};
use reqwest::{Client, RequestBuilder, Response, Url, header, redirect};
use serde::Deserialize;
use thiserror::Error;

use crate::{
    ConnectFailure, Report,
    check::Check,
    clock::{self, ClockSample},
    runner::{CheckRunner, PROBE_TIMEOUT},
};

/// How much of a response is read.
const MAX_BODY: usize = 64 * 1024;

/// The name of the check of the API key.
const KEY: &str = "server-key";

/// The body of `/readyz`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Readiness {
    components: BTreeMap<String, Component>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Component {
    status: String,
    detail: Option<String>,
}

/// The status of `/healthz`, and the server's clock if its response has a date.
struct Health {
    status: u16,
    clock: Option<ClockSample>,
}

/// The URL of a server: `http` or `https`, without a password.
#[derive(Debug, Clone)]
pub struct ServerUrl(Url);

/// Why a text is not the URL of a server. Does not show the text, which may hold a password.
#[derive(Debug, Error)]
#[error("{0}, such as https://jobs.example.com")]
pub struct InvalidServerUrl(&'static str);

impl FromStr for ServerUrl {
    type Err = InvalidServerUrl;

    fn from_str(text: &str) -> Result<Self, InvalidServerUrl> {
        let url = Url::parse(text).map_err(|_| InvalidServerUrl("must be a URL"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(InvalidServerUrl("must begin with http:// or https://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(InvalidServerUrl("must not contain a user or a password"));
        }
        Ok(Self(url))
    }
}

/// Checks a server: health, TLS, clock, API key and components. Waits up to `timeout` for the first response.
pub async fn check_server(url: &ServerUrl, api_key: Option<&str>, timeout: Duration) -> Report {
    let ServerUrl(url) = url;
    let base = url.as_str().trim_end_matches('/').to_owned();
    let client = match client(timeout) {
        Ok(client) => client,
        Err(error) => return Report { checks: vec![Check::unknown("server", error)], unreachable: false },
    };
    let health = match tokio::time::timeout(timeout, health(&client, &base)).await {
        Ok(Ok(health)) => health,
        Ok(Err(StoreError::Unavailable(error))) => return unreachable(&base, &error),
        Ok(Err(error)) => return unreachable(&base, &error.to_string()),
        Err(_) => return unreachable(&base, &format!("no answer within {} s", timeout.as_secs_f64())),
    };
    let mut runner = CheckRunner::new("the server");
    runner.checks.push(alive(&base, health.status));
    runner.checks.push(encryption(url));
    runner.checks.extend(health.clock.map(|sample| clock::evaluate("server-clock", "the server", &sample)));
    runner.run(KEY, key_status(&client, &base, api_key), |status| vec![key(*status, api_key.is_some())]).await;
    runner.run("server-ready", readiness(&client, &base), components).await;
    Report { checks: runner.checks, unreachable: false }
}

fn unreachable(base: &str, error: &str) -> Report {
    let check = match ConnectFailure::from_error(error) {
        Some(failure) => Check::problem("server", failure.describe(base, error), failure.advice()),
        None => {
            let advice = "check that the server is running, and check --server, proxies and firewalls";
            Check::problem("server", format!("{base} cannot be reached: {error}"), advice)
        }
    };
    Report { checks: vec![check], unreachable: true }
}

fn client(timeout: Duration) -> reqwest::Result<Client> {
    // Fails only if a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().redirect(redirect::Policy::none()).connect_timeout(timeout).timeout(PROBE_TIMEOUT).build()
}

async fn get(client: &Client, url: String) -> Result<Response> {
    send(client.get(url)).await
}

async fn send(request: RequestBuilder) -> Result<Response> {
    request.send().await.map_err(|error| StoreError::Unavailable(error_chain(&error.without_url())))
}

// The actionable part of a reqwest error is in its sources.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(current) = cause {
        text += &format!(": {current}");
        cause = current.source();
    }
    text
}

async fn health(client: &Client, base: &str) -> Result<Health> {
    let sent_at = Timestamp::now();
    let response = get(client, format!("{base}/healthz")).await?;
    let received_at = Timestamp::now();
    let date = response.headers().get(header::DATE).and_then(|date| date.to_str().ok());
    let remote = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok()).map(|date| date.timestamp());
    // The Date header has a resolution of one second.
    let resolution = Duration::from_secs(1);
    let clock = remote.map(|remote| ClockSample { sent_at, remote, received_at, resolution });
    Ok(Health { status: response.status().as_u16(), clock })
}

async fn readiness(client: &Client, base: &str) -> Result<Readiness> {
    let mut response = get(client, format!("{base}/readyz")).await?;
    let status = response.status();
    let mut body = Vec::new();
    while body.len() < MAX_BODY {
        let chunk = response.chunk().await.map_err(|error| StoreError::Unavailable(error_chain(&error)))?;
        let Some(chunk) = chunk else { break };
        body.extend_from_slice(&chunk);
    }
    let not_orchestrix =
        |_| StoreError::Backend(format!("/readyz answered {status} with a body that is not Orchestrix's").into());
    serde_json::from_slice(&body).map_err(not_orchestrix)
}

// The status of a cheap request that every operator key may make, also one that is bound to a tenant.
async fn key_status(client: &Client, base: &str, api_key: Option<&str>) -> Result<u16> {
    let mut request = client.get(format!("{base}/admin/operations?limit=1"));
    if let Some(api_key) = api_key {
        request = request.bearer_auth(api_key);
    }
    Ok(send(request).await?.status().as_u16())
}

fn key(status: u16, has_key: bool) -> Check {
    match (status, has_key) {
        (200, true) => Check::ok(KEY, "the server accepts this key as an operator's"),
        (200, false) => Check::ok(KEY, "the server requires no key"),
        (401, true) => Check::problem(
            KEY,
            "the server rejects this key: it is unknown, expired or revoked",
            "set another key with --api-key or ORCHESTRIX_API_KEY; `orchestrix keys list` shows the existing keys",
        ),
        (401, false) => {
            Check::warning(KEY, "the server requires a key, and none was given", "set --api-key or ORCHESTRIX_API_KEY")
        }
        (403, true) => Check::note(
            KEY,
            "the key is valid, but not an operator's",
            "a client or a worker can use it; most commands need a key with the role operator",
        ),
        (other, _) => Check::unknown(KEY, format!("the server answered {other}")),
    }
}

fn alive(base: &str, status: u16) -> Check {
    match status {
        200 => Check::ok("server", format!("{base} is up")),
        other => Check::problem(
            "server",
            format!("{base}/healthz answered {other}"),
            "check that the URL is that of an Orchestrix server, and check the proxies in front of it",
        ),
    }
}

fn encryption(url: &Url) -> Check {
    const NAME: &str = "server-tls";
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_local = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    match (url.scheme(), is_local) {
        ("https", _) => Check::ok(NAME, "the connection is encrypted"),
        (_, true) => Check::ok(NAME, "the connection is not encrypted, but does not leave this machine"),
        _ => Check::warning(
            NAME,
            "the connection is not encrypted: keys and payloads can be read on the network",
            "start the server with --tls-cert and --tls-key, or use a TLS proxy, and use https:// in --server",
        ),
    }
}

fn components(readiness: &Readiness) -> Vec<Check> {
    const NAMES: [(&str, &str, &str); 4] = [
        ("persistence", "server-persistence", "run `orchestrix doctor --database URL` on the server's machine"),
        ("transport", "server-transport", "check the broker and the server's log"),
        (
            "coordinator",
            "server-coordinator",
            "start `orchestrix server` with the role coordinator, or a worker with --database",
        ),
        ("workers", "server-workers", "start a worker: orchestrix worker --server URL"),
    ];
    let evaluate = |(key, name, advice): (&str, &'static str, &str)| {
        let Some(component) = readiness.components.get(key) else {
            return Check::warning(
                name,
                "the server does not report this component",
                "check that the URL is that of an Orchestrix server of this version",
            );
        };
        let detail = component.detail.clone().unwrap_or_else(|| component.status.clone());
        match component.status.as_str() {
            "ok" => Check::ok(name, detail),
            "degraded" => Check::warning(name, detail, advice),
            "unavailable" => Check::problem(name, detail, advice),
            _ => Check::note(name, format!("the server does not know: {detail}"), advice),
        }
    };
    NAMES.into_iter().map(evaluate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Status;

    #[test]
    fn a_server_url_is_http_and_holds_no_password() {
        assert!("http://127.0.0.1:8080".parse::<ServerUrl>().is_ok());
        assert!("https://jobs.example.com/api".parse::<ServerUrl>().is_ok());
        for text in ["", "jobs:8080", "ftp://jobs", "http://me:hunter2@jobs"] {
            let error = text.parse::<ServerUrl>().unwrap_err().to_string();
            assert!(error.contains("https://jobs.example.com") && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn an_unencrypted_connection_to_another_machine_is_a_warning() {
        let of = |text: &str| encryption(&text.parse().unwrap()).status;
        for safe in ["https://jobs.example.com", "http://localhost:1", "http://127.0.0.1:1", "http://[::1]:1"] {
            assert_eq!(of(safe), Status::Ok, "{safe}");
        }
        assert_eq!(of("http://10.0.0.1"), Status::Warning);
        assert_eq!(of("http://localhost.example.com"), Status::Warning);
    }

    #[test]
    fn the_status_of_a_request_decides_the_finding_about_the_key() {
        for (status, has_key, finding, words) in [
            (200, true, Status::Ok, "as an operator's"),
            (200, false, Status::Ok, "requires no key"),
            (401, true, Status::Problem, "unknown, expired or revoked"),
            (401, false, Status::Warning, "none was given"),
            (403, true, Status::Note, "not an operator's"),
            (503, true, Status::Warning, "answered 503"),
        ] {
            let check = key(status, has_key);
            assert!(check.status == finding && check.detail.contains(words), "{status}: {check:?}");
        }
    }

    #[test]
    fn the_status_of_a_component_decides_its_finding() {
        let of = |text: &str| components(&serde_json::from_str(text).unwrap());
        let checks =
            of(r#"{"status": "degraded", "components": {"persistence": {"status": "unavailable", "detail": "away"},
            "transport": {"status": "ok"}, "coordinator": {"status": "degraded", "detail": "there is no leader"},
            "workers": {"status": "unknown"}}}"#);
        let statuses: Vec<Status> = checks.iter().map(|check| check.status).collect();
        assert_eq!(statuses, [Status::Problem, Status::Ok, Status::Warning, Status::Note]);
        assert_eq!((checks[0].detail.as_str(), checks[2].detail.as_str()), ("away", "there is no leader"));
        assert!(of("{}").iter().all(|check| check.status == Status::Warning));
    }

    #[test]
    fn an_unhealthy_or_unreachable_server_is_a_problem() {
        assert_eq!(alive("there", 200).status, Status::Ok);
        assert_eq!(alive("there", 404).status, Status::Problem);
        assert!(unreachable("there", "refused").unreachable);
    }
}
