//! Whom a server without keys answers: whoever speaks to it by its address.
//!
//! It listens on loopback only, but so does every browser on the machine talk there, for any page that asks it to: by a name of the
//! page's own that leads to 127.0.0.1, or across origins. Neither is how a program of the machine's owner speaks.

use std::net::IpAddr;

use axum::http::{HeaderMap, Uri, header, uri::Authority};
use orchestrix_api::Code;

use crate::refusal::Refusal;

/// Refuses what a page of somebody else's could have sent.
pub(crate) fn check(headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
    if is_ours(headers, uri) {
        return Ok(());
    }
    let text = "without keys the server answers only to its address, such as http://127.0.0.1:8080, and to no page of another place";
    Err(Refusal::new(Code::Forbidden, text))
}

fn is_ours(headers: &HeaderMap, uri: &Uri) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    // Only a program leaves it out.
    let Some(host) = hosts.next() else { return headers.get(header::ORIGIN).is_none() };
    let Some(host) = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()) else { return false };
    let named_once = hosts.next().is_none() && uri.authority().is_none_or(|named| *named == host);
    named_once
        && is_local(host.host())
        && origin(headers).is_none_or(|origin| origin.is_ok_and(|origin| origin == host))
}

fn is_local(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().is_ok()
        || host.eq_ignore_ascii_case("localhost")
        || host.to_ascii_lowercase().ends_with(".localhost")
}

// Of a page: `http://HOST`, or `null` where the browser does not say.
fn origin(headers: &HeaderMap) -> Option<Result<Authority, ()>> {
    let text = headers.get(header::ORIGIN)?.to_str().ok();
    let uri = text.and_then(|text| text.parse::<Uri>().ok());
    Some(uri.and_then(|uri| uri.authority().cloned()).ok_or(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        is_ours(&headers, &Uri::from_static("/jobs"))
    }

    #[test]
    fn only_an_address_is_answered_and_only_its_own_pages() {
        for host in ["127.0.0.1:8080", "127.0.0.1", "[::1]:8080", "localhost:8080", "LOCALHOST", "jobs.localhost:1"] {
            assert!(asks(host, None), "{host}");
            assert!(asks(host, Some(&format!("http://{host}"))), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:8080", "127.0.0.1.evil.example", "a b", ""] {
            assert!(!asks(host, None), "{host}");
        }
        for origin in ["http://evil.example", "null", "http://127.0.0.1:9999", "", "file://"] {
            assert!(!asks("127.0.0.1:8080", Some(origin)), "{origin}");
        }
        let programs = HeaderMap::new();
        assert!(is_ours(&programs, &Uri::from_static("/jobs")));
        let mut two = HeaderMap::new();
        two.append(header::HOST, "localhost".parse().unwrap());
        two.append(header::HOST, "evil.example".parse().unwrap());
        assert!(!is_ours(&two, &Uri::from_static("/jobs")));
    }
}
