//! What an answer means for the job, and as much of it as is kept.

use std::{collections::BTreeMap, time::Duration};

use orchestrix_worker::JobError;
use reqwest::{Response, StatusCode, header::HeaderMap, header::RETRY_AFTER};
use serde::Serialize;

/// How much of a body is kept, and of all headers together.
const MOST: usize = 64 * 1024;

/// The longest that a server may put off the next attempt.
const LONGEST_DELAY: Duration = Duration::from_secs(3600);

/// The result of the job.
#[derive(Debug, Serialize)]
pub(super) struct Kept {
    status: u16,
    /// Those that occur more than once are joined by commas.
    headers: BTreeMap<String, String>,
    body: String,
    /// Whether the body was longer.
    truncated: bool,
}

impl Kept {
    /// Reads no more than is kept.
    pub(super) async fn of(mut response: Response) -> reqwest::Result<Self> {
        let mut body = Vec::new();
        while body.len() <= MOST {
            match response.chunk().await? {
                Some(chunk) => body.extend_from_slice(&chunk),
                None => break,
            }
        }
        let truncated = body.len() > MOST;
        body.truncate(MOST);
        Ok(Self {
            status: response.status().as_u16(),
            headers: texts(response.headers()),
            body: String::from_utf8_lossy(&body).into_owned(),
            truncated,
        })
    }
}

fn texts(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    let mut bytes = 0;
    for (name, value) in headers {
        bytes += name.as_str().len() + value.len();
        if bytes > MOST {
            break;
        }
        let value = String::from_utf8_lossy(value.as_bytes());
        texts
            .entry(name.as_str().to_owned())
            .and_modify(|text| {
                text.push_str(", ");
                text.push_str(&value);
            })
            .or_insert_with(|| value.into_owned());
    }
    texts
}

/// What becomes of a job whose answer was not expected.
pub(super) fn unexpected(status: StatusCode, headers: &HeaderMap, origin: &str) -> JobError {
    let text = format!("{origin} answered {status}");
    let passing = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY, StatusCode::TOO_MANY_REQUESTS];
    if !status.is_server_error() && !passing.contains(&status) {
        return JobError::fatal(text);
    }
    let delays = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&status);
    match headers.get(RETRY_AFTER).filter(|_| delays).and_then(|value| value.to_str().ok()?.trim().parse().ok()) {
        Some(seconds) => JobError::retry_after(Duration::from_secs(seconds).min(LONGEST_DELAY), text),
        None => JobError::new(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(status: u16, retry_after: Option<&str>) -> String {
        let mut headers = HeaderMap::new();
        if let Some(text) = retry_after {
            headers.insert(RETRY_AFTER, text.parse().unwrap());
        }
        format!("{:?}", unexpected(StatusCode::from_u16(status).unwrap(), &headers, "http://a"))
    }

    #[test]
    fn what_may_pass_is_tried_again_and_anything_else_is_not() {
        for status in [408, 425, 429, 500, 502, 503, 504, 599] {
            assert!(verdict(status, None).starts_with("Retry(None)"), "{status}");
        }
        for status in [200, 301, 304, 400, 401, 403, 404, 409, 410, 422] {
            assert!(verdict(status, Some("5")).starts_with("Fatal"), "{status}");
        }
    }

    #[test]
    fn a_server_may_put_off_the_next_attempt_up_to_an_hour() {
        assert!(verdict(429, Some("7")).starts_with("Retry(Some(7s))"));
        assert!(verdict(503, Some(" 0 ")).starts_with("Retry(Some(0ns))"));
        assert!(verdict(503, Some("999999")).starts_with("Retry(Some(3600s))"));
        for odd in ["-1", "soon", "1e9", "99999999999999999999999"] {
            assert!(verdict(503, Some(odd)).starts_with("Retry(None)"), "{odd}");
        }
        assert!(verdict(500, Some("7")).starts_with("Retry(None)"));
    }

    #[test]
    fn headers_are_joined_and_bounded() {
        let mut headers = HeaderMap::new();
        headers.append("vary", "a".parse().unwrap());
        headers.append("vary", "b".parse().unwrap());
        assert_eq!(texts(&headers)["vary"], "a, b");
        headers.append("x-long", "x".repeat(MOST).parse().unwrap());
        assert_eq!(texts(&headers).len(), 1);
    }
}
