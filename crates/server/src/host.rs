//! Protection of a server without keys against web pages: DNS rebinding and cross-origin requests.
//!
//! Such a server listens on loopback only, but every browser on the machine can reach loopback on behalf of any page:
//! through a domain that resolves to 127.0.0.1, or across origins. So the server accepts only requests whose `Host` is
//! an IP address or `localhost`, and whose `Origin`, if any, is the same host. A program on the machine sends exactly
//! that.

use std::net::IpAddr;

use axum::http::{HeaderMap, Uri, header, uri::Authority};
use orchestrix_api::Code;

use crate::api_error::ApiError;

/// Rejects a request that a foreign web page could have sent.
pub(crate) fn require_local_host(headers: &HeaderMap, uri: &Uri) -> Result<(), ApiError> {
    if is_local_request(headers, uri) {
        return Ok(());
    }
    let detail = "a server without keys accepts only requests to its address, such as http://127.0.0.1:8080, \
                  and none from a page of another origin";
    Err(ApiError::new(Code::Forbidden, detail))
}

fn is_local_request(headers: &HeaderMap, uri: &Uri) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    // Browsers always send a Host; only a program omits it.
    let Some(host) = hosts.next() else { return headers.get(header::ORIGIN).is_none() };
    let Some(host) = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()) else { return false };
    let unambiguous = hosts.next().is_none() && uri.authority().is_none_or(|authority| *authority == host);
    unambiguous
        && is_local_name(host.host())
        && origin(headers).is_none_or(|origin| origin.is_ok_and(|origin| origin == host))
}

fn is_local_name(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().is_ok()
        || host.eq_ignore_ascii_case("localhost")
        || host.to_ascii_lowercase().ends_with(".localhost")
}

// The page's origin: `http://HOST`, or `null`, which is an error here, where the browser hides it.
fn origin(headers: &HeaderMap) -> Option<Result<Authority, ()>> {
    let text = headers.get(header::ORIGIN)?.to_str().ok();
    let uri = text.and_then(|text| text.parse::<Uri>().ok());
    Some(uri.and_then(|uri| uri.authority().cloned()).ok_or(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        is_local_request(&headers, &Uri::from_static("/jobs"))
    }

    #[test]
    fn only_local_hosts_and_their_own_origin_are_accepted() {
        for host in ["127.0.0.1:8080", "127.0.0.1", "[::1]:8080", "localhost:8080", "LOCALHOST", "jobs.localhost:1"] {
            assert!(accepts(host, None), "{host}");
            assert!(accepts(host, Some(&format!("http://{host}"))), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:8080", "127.0.0.1.evil.example", "a b", ""] {
            assert!(!accepts(host, None), "{host}");
        }
        for origin in ["http://evil.example", "null", "http://127.0.0.1:9999", "", "file://"] {
            assert!(!accepts("127.0.0.1:8080", Some(origin)), "{origin}");
        }
        let no_host = HeaderMap::new();
        assert!(is_local_request(&no_host, &Uri::from_static("/jobs")));
        let mut two_hosts = HeaderMap::new();
        two_hosts.append(header::HOST, "localhost".parse().unwrap());
        two_hosts.append(header::HOST, "evil.example".parse().unwrap());
        assert!(!is_local_request(&two_hosts, &Uri::from_static("/jobs")));
    }
}
