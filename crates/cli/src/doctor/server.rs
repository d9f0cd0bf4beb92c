//! A server, as its clients meet it.

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use orchestrix_core::Timestamp;
use orchestrix_store::{Result, StoreError};
use reqwest::{Client, RequestBuilder, Response, Url, header, redirect};
use serde::Deserialize;

use super::{
    Report,
    check::Check,
    clock::{self, Reading},
    ward::{LIMIT, Ward},
};
use crate::{failure::Failure, handshake::Handshake};

/// The most of an answer that is read.
const MOST: usize = 64 * 1024;

/// The check of the key.
const KEY: &str = "server-key";

/// What `/readyz` says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Ready {
    components: BTreeMap<String, Component>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Component {
    status: String,
    detail: Option<String>,
}

/// What `/healthz` says, and when.
struct Health {
    status: u16,
    reading: Option<Reading>,
}

/// The address of a server, or what is wrong with it.
pub(super) fn address(text: &str) -> anyhow::Result<Url> {
    let wrong = |why: &str| Failure::Usage(format!("--server {why}, such as https://jobs.example.com"));
    let url = Url::parse(text).map_err(|_| wrong("must be a URL"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(wrong("must begin with http:// or https://").into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("must not hold a password: give an address").into());
    }
    Ok(url)
}

/// Looks at it.
pub(super) async fn examine(url: &Url, key: Option<&str>, patience: Duration) -> Report {
    let place = url.as_str().trim_end_matches('/').to_owned();
    let client = match client(patience) {
        Ok(client) => client,
        Err(error) => return Report { checks: vec![Check::unknown("server", error)], unreachable: false },
    };
    let health = match tokio::time::timeout(patience, health(&client, &place)).await {
        Ok(Ok(health)) => health,
        Ok(Err(StoreError::Unavailable(why))) => return away(&place, &why),
        Ok(Err(error)) => return away(&place, &error.to_string()),
        Err(_) => return away(&place, &format!("no answer within {} s", patience.as_secs_f64())),
    };
    let mut ward = Ward::new("the server");
    ward.checks.push(alive(&place, health.status));
    ward.checks.push(encryption(url));
    ward.checks.extend(health.reading.map(|reading| clock::judge("server-clock", "the server", &reading)));
    ward.look(KEY, admission(&client, &place, key), |status| vec![admitted(*status, key.is_some())]).await;
    ward.look("server-ready", ready(&client, &place), components).await;
    Report { checks: ward.checks, unreachable: false }
}

fn away(place: &str, why: &str) -> Report {
    let check = match Handshake::of(why) {
        Some(handshake) => Check::problem("server", handshake.says(place, why), handshake.advice()),
        None => {
            let advice = "is it up, and are --server, proxy and firewall right?";
            Check::problem("server", format!("{place} cannot be reached: {why}"), advice)
        }
    };
    Report { checks: vec![check], unreachable: true }
}

fn client(patience: Duration) -> reqwest::Result<Client> {
    // An error would say that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().redirect(redirect::Policy::none()).connect_timeout(patience).timeout(LIMIT).build()
}

async fn get(client: &Client, url: String) -> Result<Response> {
    send(client.get(url)).await
}

async fn send(request: RequestBuilder) -> Result<Response> {
    request.send().await.map_err(|error| StoreError::Unavailable(causes(&error.without_url())))
}

// What a person can act on stands in the causes.
fn causes(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        words += &format!(": {deeper}");
        cause = deeper.source();
    }
    words
}

async fn health(client: &Client, place: &str) -> Result<Health> {
    let asked = Timestamp::now();
    let response = get(client, format!("{place}/healthz")).await?;
    let answered = Timestamp::now();
    let date = response.headers().get(header::DATE).and_then(|date| date.to_str().ok());
    let theirs = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok()).map(|date| date.timestamp());
    // The header leaves out what is less than a second.
    let reading = theirs.map(|theirs| Reading { asked, theirs, answered, grain: Duration::from_secs(1) });
    Ok(Health { status: response.status().as_u16(), reading })
}

async fn ready(client: &Client, place: &str) -> Result<Ready> {
    let mut response = get(client, format!("{place}/readyz")).await?;
    let status = response.status();
    let mut body = Vec::new();
    while body.len() < MOST {
        let chunk = response.chunk().await.map_err(|error| StoreError::Unavailable(causes(&error)))?;
        let Some(chunk) = chunk else { break };
        body.extend_from_slice(&chunk);
    }
    let unlike = |_| StoreError::Backend(format!("/readyz answered {status}, and not as Orchestrix does").into());
    serde_json::from_slice(&body).map_err(unlike)
}

// What the server says to this key, or to none. Any operator may ask this, also one who is bound to a tenant, and it costs little.
async fn admission(client: &Client, place: &str, key: Option<&str>) -> Result<u16> {
    let mut request = client.get(format!("{place}/admin/operations?limit=1"));
    if let Some(key) = key {
        request = request.bearer_auth(key);
    }
    Ok(send(request).await?.status().as_u16())
}

fn admitted(status: u16, keyed: bool) -> Check {
    match (status, keyed) {
        (200, true) => Check::ok(KEY, "the server lets this key do what operators do"),
        (200, false) => Check::ok(KEY, "the server asks for no key"),
        (401, true) => Check::problem(
            KEY,
            "the server does not know this key, or it has expired or was revoked",
            "give another by --api-key or ORCHESTRIX_API_KEY; `orchestrix keys list` shows what there is",
        ),
        (401, false) => Check::warning(
            KEY,
            "the server asks for a key, and none was given",
            "give --api-key, or set ORCHESTRIX_API_KEY",
        ),
        (403, true) => Check::note(
            KEY,
            "the key is good, but not an operator's",
            "it does for a client or a worker; most commands take one whose role is operator",
        ),
        (other, _) => Check::unknown(KEY, format!("the server answered {other}")),
    }
}

fn alive(place: &str, status: u16) -> Check {
    match status {
        200 => Check::ok("server", format!("{place} is up")),
        other => Check::problem(
            "server",
            format!("{place}/healthz answered {other}"),
            "is that an Orchestrix server, and what stands before it?",
        ),
    }
}

fn encryption(url: &Url) -> Check {
    const NAME: &str = "server-tls";
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let near = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    match (url.scheme(), near) {
        ("https", _) => Check::ok(NAME, "the connection is encrypted"),
        (_, true) => Check::ok(NAME, "the connection is not encrypted, and does not leave this machine"),
        _ => Check::warning(
            NAME,
            "the connection is not encrypted: whoever is on the way reads keys and payloads",
            "give the server --tls-cert and --tls-key, or put a proxy with TLS before it, and name it with https://",
        ),
    }
}

fn components(ready: &Ready) -> Vec<Check> {
    const NAMES: [(&str, &str, &str); 4] = [
        (
            "persistence",
            "server-persistence",
            "ask the database itself: orchestrix doctor --database …, where the server runs",
        ),
        ("transport", "server-transport", "look at the broker, and at what the server's log says of it"),
        (
            "coordinator",
            "server-coordinator",
            "start `orchestrix server` with the role coordinator, or a worker on the database",
        ),
        ("workers", "server-workers", "start a worker: orchestrix worker --server …"),
    ];
    let judge = |(key, name, advice): (&str, &'static str, &str)| {
        let Some(component) = ready.components.get(key) else {
            return Check::warning(
                name,
                "the server says nothing of it",
                "is that an Orchestrix server of this version?",
            );
        };
        let detail = component.detail.clone().unwrap_or_else(|| component.status.clone());
        match component.status.as_str() {
            "ok" => Check::ok(name, detail),
            "degraded" => Check::warning(name, detail, advice),
            "unavailable" => Check::problem(name, detail, advice),
            _ => Check::note(name, format!("the server cannot tell: {detail}"), advice),
        }
    };
    NAMES.into_iter().map(judge).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::check::Status, *};

    #[test]
    fn only_addresses_without_secrets_are_taken() {
        assert!(address("http://127.0.0.1:8080").is_ok() && address("https://jobs.example.com/api").is_ok());
        for text in ["", "jobs:8080", "ftp://jobs", "http://me:hunter2@jobs"] {
            let error = address(text).unwrap_err().to_string();
            assert!(error.contains("https://jobs.example.com") && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn what_leaves_the_machine_should_be_encrypted() {
        let of = |text: &str| encryption(&text.parse().unwrap()).status;
        for near in ["https://jobs.example.com", "http://localhost:1", "http://127.0.0.1:1", "http://[::1]:1"] {
            assert_eq!(of(near), Status::Ok, "{near}");
        }
        assert_eq!(of("http://10.0.0.1"), Status::Warning);
        assert_eq!(of("http://localhost.example.com"), Status::Warning);
    }

    #[test]
    fn a_key_is_judged_by_what_the_server_says_to_it() {
        for (status, keyed, verdict, words) in [
            (200, true, Status::Ok, "do what operators do"),
            (200, false, Status::Ok, "asks for no key"),
            (401, true, Status::Problem, "has expired or was revoked"),
            (401, false, Status::Warning, "none was given"),
            (403, true, Status::Note, "not an operator's"),
            (503, true, Status::Warning, "answered 503"),
        ] {
            let check = admitted(status, keyed);
            assert!(check.status == verdict && check.detail.contains(words), "{status}: {check:?}");
        }
    }

    #[test]
    fn every_component_is_judged_by_its_word() {
        let of = |text: &str| components(&serde_json::from_str(text).unwrap());
        let checks =
            of(r#"{"status": "degraded", "components": {"persistence": {"status": "unavailable", "detail": "away"},
            "transport": {"status": "ok"}, "coordinator": {"status": "degraded", "detail": "nobody leads"},
            "workers": {"status": "unknown"}}}"#);
        let statuses: Vec<Status> = checks.iter().map(|check| check.status).collect();
        assert_eq!(statuses, [Status::Problem, Status::Ok, Status::Warning, Status::Note]);
        assert_eq!((checks[0].detail.as_str(), checks[2].detail.as_str()), ("away", "nobody leads"));
        assert!(of("{}").iter().all(|check| check.status == Status::Warning));
    }

    #[test]
    fn a_server_that_is_not_one_of_ours_is_a_problem() {
        assert_eq!(alive("there", 200).status, Status::Ok);
        assert_eq!(alive("there", 404).status, Status::Problem);
        assert!(away("there", "refused").unreachable);
    }
}
