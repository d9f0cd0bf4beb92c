//! The response as the job's result, and what an unexpected status means for the job.

use std::{collections::BTreeMap, time::Duration};

use orchestrix_worker::JobError;
use reqwest::{Response, StatusCode, header::HeaderMap, header::RETRY_AFTER};
use serde::Serialize;

/// The limit for the stored body, and for all stored headers together.
const MAX_BYTES: usize = 64 * 1024;

/// The limit for `Retry-After`.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// The result of the job.
#[derive(Debug, Serialize)]
pub(super) struct ResponseResult {
    status: u16,
    /// Values of a repeated header are joined by commas.
    headers: BTreeMap<String, String>,
    body: String,
    /// Whether the body was longer than what is stored.
    truncated: bool,
}

impl ResponseResult {
    /// Reads the response up to the stored length.
    pub(super) async fn read(mut response: Response) -> reqwest::Result<Self> {
        let mut body = Vec::new();
        while body.len() <= MAX_BYTES {
            match response.chunk().await? {
                Some(chunk) => body.extend_from_slice(&chunk),
                None => break,
            }
        }
        let truncated = body.len() > MAX_BYTES;
        body.truncate(MAX_BYTES);
        Ok(Self {
            status: response.status().as_u16(),
            headers: join_headers(response.headers()),
            body: String::from_utf8_lossy(&body).into_owned(),
            truncated,
        })
    }
}

fn join_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut joined: BTreeMap<String, String> = BTreeMap::new();
    let mut bytes = 0;
    for (name, value) in headers {
        bytes += name.as_str().len() + value.len();
        if bytes > MAX_BYTES {
            break;
        }
        let value = String::from_utf8_lossy(value.as_bytes());
        joined
            .entry(name.as_str().to_owned())
            .and_modify(|text| {
                text.push_str(", ");
                text.push_str(&value);
            })
            .or_insert_with(|| value.into_owned());
    }
    joined
}

/// The error for a status that the job does not expect: transient statuses are retried, the others are fatal.
pub(super) fn unexpected_status(status: StatusCode, headers: &HeaderMap, origin: &str) -> JobError {
    let text = format!("{origin} answered {status}");
    let transient = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY, StatusCode::TOO_MANY_REQUESTS];
    if !status.is_server_error() && !transient.contains(&status) {
        return JobError::fatal(text);
    }
    let honors_retry_after = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&status);
    match headers
        .get(RETRY_AFTER)
        .filter(|_| honors_retry_after)
        .and_then(|value| value.to_str().ok()?.trim().parse().ok())
    {
        Some(seconds) => JobError::retry_after(Duration::from_secs(seconds).min(MAX_RETRY_AFTER), text),
        None => JobError::new(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_for(status: u16, retry_after: Option<&str>) -> String {
        let mut headers = HeaderMap::new();
        if let Some(text) = retry_after {
            headers.insert(RETRY_AFTER, text.parse().unwrap());
        }
        format!("{:?}", unexpected_status(StatusCode::from_u16(status).unwrap(), &headers, "http://a"))
    }

    #[test]
    fn transient_statuses_are_retried_and_all_others_are_fatal() {
        for status in [408, 425, 429, 500, 502, 503, 504, 599] {
            assert!(error_for(status, None).starts_with("Retry(None)"), "{status}");
        }
        for status in [200, 301, 304, 400, 401, 403, 404, 409, 410, 422] {
            assert!(error_for(status, Some("5")).starts_with("Fatal"), "{status}");
        }
    }

    #[test]
    fn retry_after_is_honored_up_to_an_hour() {
        assert!(error_for(429, Some("7")).starts_with("Retry(Some(7s))"));
        assert!(error_for(503, Some(" 0 ")).starts_with("Retry(Some(0ns))"));
        assert!(error_for(503, Some("999999")).starts_with("Retry(Some(3600s))"));
        for invalid in ["-1", "soon", "1e9", "99999999999999999999999"] {
            assert!(error_for(503, Some(invalid)).starts_with("Retry(None)"), "{invalid}");
        }
        assert!(error_for(500, Some("7")).starts_with("Retry(None)"));
    }

    #[test]
    fn repeated_headers_are_joined_and_all_headers_are_bounded() {
        let mut headers = HeaderMap::new();
        headers.append("vary", "a".parse().unwrap());
        headers.append("vary", "b".parse().unwrap());
        assert_eq!(join_headers(&headers)["vary"], "a, b");
        headers.append("x-long", "x".repeat(MAX_BYTES).parse().unwrap());
        assert_eq!(join_headers(&headers).len(), 1);
    }
}
