//! One request in a chain of redirects, and the request that follows it.

use orchestrix_worker::{JobError, JobResult};
use reqwest::{
    Client, Method, RequestBuilder, Response, StatusCode, Url,
    header::{
        ACCEPT, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION, CONTENT_TYPE, HeaderMap,
        HeaderName, HeaderValue, LOCATION, USER_AGENT,
    },
};

use super::request::Request;

/// The headers that a redirect to another origin keeps. An allowlist, because many services carry secrets in headers
/// of their own besides `Authorization` and `Cookie`.
const CROSS_ORIGIN: [HeaderName; 8] = [
    ACCEPT,
    ACCEPT_LANGUAGE,
    CONTENT_ENCODING,
    CONTENT_LANGUAGE,
    CONTENT_LOCATION,
    CONTENT_TYPE,
    USER_AGENT,
    HeaderName::from_static("idempotency-key"),
];

/// The headers that describe a body. They are dropped together with it.
const BODY_HEADERS: [HeaderName; 4] = [CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION, CONTENT_TYPE];

/// One request of the chain.
#[derive(Debug)]
pub(super) struct Hop {
    pub(super) url: Url,
    method: Method,
    headers: HeaderMap,
    body: Option<String>,
}

impl Hop {
    pub(super) fn first(request: &Request) -> Self {
        let body = request.body();
        let mut headers = request.headers.clone();
        if body.as_ref().is_some_and(|body| body.is_json) {
            headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
        }
        let default = if body.is_some() { Method::POST } else { Method::GET };
        Self {
            url: request.url.clone(),
            method: request.method.clone().unwrap_or(default),
            headers,
            body: body.map(|body| body.bytes),
        }
    }

    pub(super) fn request(&self, client: &Client) -> RequestBuilder {
        let request = client.request(self.method.clone(), self.url.clone()).headers(self.headers.clone());
        match &self.body {
            Some(body) => request.body(body.clone()),
            None => request,
        }
    }

    /// The origin of the URL. Safe to show: user info, path and query may hold secrets.
    pub(super) fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// The request that a redirect leads to; `None` if the response is not a redirect.
    pub(super) fn next(&self, response: &Response) -> JobResult<Option<Self>> {
        let status = response.status();
        let redirects = [
            StatusCode::MOVED_PERMANENTLY,
            StatusCode::FOUND,
            StatusCode::SEE_OTHER,
            StatusCode::TEMPORARY_REDIRECT,
            StatusCode::PERMANENT_REDIRECT,
        ];
        match response.headers().get(LOCATION) {
            Some(location) if redirects.contains(&status) => self.redirected(status, location.as_bytes()).map(Some),
            _ => Ok(None),
        }
    }

    fn redirected(&self, status: StatusCode, location: &[u8]) -> JobResult<Self> {
        let invalid = |why: &str| JobError::fatal(format!("{} sent a redirect whose Location {why}", self.origin()));
        let location = std::str::from_utf8(location).map_err(|_| invalid("is not a valid URL"))?;
        let url = self.url.join(location).map_err(|_| invalid("is not a valid URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid("is neither http nor https"));
        }
        let mut next =
            Self { url, method: self.method.clone(), headers: self.headers.clone(), body: self.body.clone() };
        let becomes_get = match status {
            StatusCode::SEE_OTHER => self.method != Method::HEAD,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method == Method::POST,
            _ => false,
        };
        if becomes_get {
            (next.method, next.body) = (Method::GET, None);
            BODY_HEADERS.iter().for_each(|name| drop(next.headers.remove(name)));
        }
        if next.url.origin() != self.url.origin() {
            next.headers =
                CROSS_ORIGIN.iter().filter_map(|name| Some((name.clone(), next.headers.get(name)?.clone()))).collect();
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_core::Json;

    use super::*;

    fn hop(url: &str) -> Hop {
        let payload = format!(
            r#"{{"url": "{url}", "headers": {{"Authorization": "a", "Cookie": "b", "X-Key": "c", "Accept": "d"}}, "body": []}}"#
        );
        Hop::first(&Request::read(&Json::trusted(&payload)).unwrap())
    }

    fn headers(hop: &Hop) -> Vec<&str> {
        let mut names: Vec<&str> = hop.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn secret_headers_are_not_sent_to_another_origin() {
        let from = hop("https://me:word@a.test/x");
        let same_origin = from.redirected(StatusCode::TEMPORARY_REDIRECT, b"/y").unwrap();
        assert_eq!(same_origin.url.as_str(), "https://me:word@a.test/y");
        assert_eq!(headers(&same_origin), ["accept", "authorization", "content-type", "cookie", "x-key"]);
        for location in ["https://b.test/", "http://a.test/", "https://a.test:8443/", "//b.test", "http://a.test:443/"]
        {
            let cross_origin = from.redirected(StatusCode::TEMPORARY_REDIRECT, location.as_bytes()).unwrap();
            assert_eq!(headers(&cross_origin), ["accept", "content-type"], "{location}");
            assert_eq!(cross_origin.url.password(), None, "{location}");
        }
    }

    #[test]
    fn the_redirect_status_decides_whether_method_and_body_are_kept() {
        let from = hop("http://a.test/");
        for (status, method) in [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")] {
            let next = from.redirected(StatusCode::from_u16(status).unwrap(), b"/").unwrap();
            assert_eq!((next.method.as_str(), next.body.is_some()), (method, method == "POST"), "{status}");
            assert_eq!(next.headers.contains_key(CONTENT_TYPE), method == "POST", "{status}");
        }
    }

    #[test]
    fn a_redirect_to_another_scheme_is_a_fatal_error() {
        let from = hop("http://a.test/");
        for location in [&b"ftp://a.test/"[..], b"file:///etc/passwd", b"http://", b"\xff"] {
            assert!(from.redirected(StatusCode::FOUND, location).unwrap_err().is_fatal());
        }
    }
}
