//! One request of a job, and the one that a redirect makes of it.

use orchestrix_worker::{JobError, JobResult};
use reqwest::{
    Client, Method, RequestBuilder, Response, StatusCode, Url,
    header::{
        ACCEPT, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION, CONTENT_TYPE, HeaderMap,
        HeaderName, HeaderValue, LOCATION, USER_AGENT,
    },
};

use super::request::Request;

/// What another origin may see too. Not only `Authorization` and `Cookie` are secrets: services have names of their own
/// for their keys.
const HARMLESS: [HeaderName; 8] = [
    ACCEPT,
    ACCEPT_LANGUAGE,
    CONTENT_ENCODING,
    CONTENT_LANGUAGE,
    CONTENT_LOCATION,
    CONTENT_TYPE,
    USER_AGENT,
    HeaderName::from_static("idempotency-key"),
];

/// What says something about a body.
const OF_BODIES: [HeaderName; 4] = [CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION, CONTENT_TYPE];

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
        let usual = if body.is_some() { Method::POST } else { Method::GET };
        Self {
            url: request.url.clone(),
            method: request.method.clone().unwrap_or(usual),
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

    /// Who is asked, without what may be secret in a URL.
    pub(super) fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// Where a redirect leads; `None` if the answer is none.
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
        let wrong = |why: &str| JobError::fatal(format!("{} redirects to what {why}", self.origin()));
        let location = std::str::from_utf8(location).map_err(|_| wrong("is not a URL"))?;
        let url = self.url.join(location).map_err(|_| wrong("is not a URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("is neither http nor https"));
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
            OF_BODIES.iter().for_each(|name| drop(next.headers.remove(name)));
        }
        if next.url.origin() != self.url.origin() {
            next.headers =
                HARMLESS.iter().filter_map(|name| Some((name.clone(), next.headers.get(name)?.clone()))).collect();
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
    fn secrets_stay_with_their_origin() {
        let from = hop("https://me:word@a.test/x");
        let stays = from.redirected(StatusCode::TEMPORARY_REDIRECT, b"/y").unwrap();
        assert_eq!(stays.url.as_str(), "https://me:word@a.test/y");
        assert_eq!(headers(&stays), ["accept", "authorization", "content-type", "cookie", "x-key"]);
        for elsewhere in ["https://b.test/", "http://a.test/", "https://a.test:8443/", "//b.test", "http://a.test:443/"]
        {
            let leaves = from.redirected(StatusCode::TEMPORARY_REDIRECT, elsewhere.as_bytes()).unwrap();
            assert_eq!(headers(&leaves), ["accept", "content-type"], "{elsewhere}");
            assert_eq!(leaves.url.password(), None, "{elsewhere}");
        }
    }

    #[test]
    fn a_redirect_keeps_or_drops_method_and_body_as_its_status_says() {
        let from = hop("http://a.test/");
        for (status, method) in [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")] {
            let next = from.redirected(StatusCode::from_u16(status).unwrap(), b"/").unwrap();
            assert_eq!((next.method.as_str(), next.body.is_some()), (method, method == "POST"), "{status}");
            assert_eq!(next.headers.contains_key(CONTENT_TYPE), method == "POST", "{status}");
        }
    }

    #[test]
    fn a_redirect_leads_to_http_only() {
        let from = hop("http://a.test/");
        for place in [&b"ftp://a.test/"[..], b"file:///etc/passwd", b"http://", b"\xff"] {
            assert!(from.redirected(StatusCode::FOUND, place).unwrap_err().is_fatal());
        }
    }
}
