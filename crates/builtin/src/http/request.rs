//! The payload of `orchestrix.http`, validated before anything is sent.

use orchestrix_core::Json;
use orchestrix_worker::JobResult;
use reqwest::{
    Method, StatusCode, Url,
    header::{CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING, UPGRADE},
};
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::{Value, value::RawValue};

use crate::payload;

/// The request to send, and the statuses that count as success.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Request {
    #[serde(deserialize_with = "url")]
    pub(super) url: Url,
    /// Default: POST with a body, GET without.
    #[serde(default, deserialize_with = "method")]
    pub(super) method: Option<Method>,
    #[serde(default, deserialize_with = "headers")]
    pub(super) headers: HeaderMap,
    /// A JSON string is sent as plain text, any other value as JSON.
    #[serde(default)]
    body: Option<Box<RawValue>>,
    /// Default: any 2xx.
    #[serde(default, deserialize_with = "statuses")]
    expect_status: Option<Vec<u16>>,
}

/// The bytes of a body, and whether they are JSON.
pub(super) struct Body {
    pub(super) bytes: String,
    pub(super) is_json: bool,
}

impl Request {
    pub(super) fn read(payload: &Json) -> JobResult<Self> {
        payload::read(payload)
    }

    pub(super) fn body(&self) -> Option<Body> {
        let json = self.body.as_ref()?.get();
        Some(match serde_json::from_str::<String>(json) {
            Ok(bytes) => Body { bytes, is_json: false },
            Err(_) => Body { bytes: json.to_owned(), is_json: true },
        })
    }

    /// Whether `expectStatus` lists this status.
    pub(super) fn lists(&self, status: StatusCode) -> bool {
        self.expect_status.as_ref().is_some_and(|statuses| statuses.contains(&status.as_u16()))
    }

    /// Whether this status completes the job.
    pub(super) fn expects(&self, status: StatusCode) -> bool {
        self.lists(status) || (self.expect_status.is_none() && status.is_success())
    }
}

fn url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Url, D::Error> {
    let url = Url::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        _ => Err(D::Error::custom("must begin with http:// or https://")),
    }
}

fn method<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Method>, D::Error> {
    let Some(name) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    match Method::from_bytes(name.to_ascii_uppercase().as_bytes()) {
        // CONNECT opens a tunnel, which may lead to a private address.
        Ok(Method::CONNECT) | Err(_) => Err(D::Error::custom("is not an allowed method")),
        Ok(method) => Ok(Some(method)),
    }
}

// They frame the request; a payload that controls them could smuggle in a second request.
const FRAMING: [HeaderName; 6] = [CONNECTION, CONTENT_LENGTH, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

fn headers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HeaderMap, D::Error> {
    let mut headers = HeaderMap::new();
    for (name, value) in payload::string_map(deserializer)? {
        let invalid = |why: &str| D::Error::custom(format!("`{name}` {why}"));
        let header = HeaderName::try_from(&name).map_err(|_| invalid("is not a valid header name"))?;
        if FRAMING.contains(&header) {
            return Err(invalid("is set by the HTTP client"));
        }
        let mut value = HeaderValue::try_from(value).map_err(|_| invalid("has an invalid header value"))?;
        value.set_sensitive(true);
        headers.append(header, value);
    }
    Ok(headers)
}

fn statuses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u16>>, D::Error> {
    let listed = match Value::deserialize(deserializer)? {
        Value::Null => return Ok(None),
        Value::Array(list) => list,
        one => vec![one],
    };
    let statuses: Option<Vec<u16>> = listed
        .iter()
        .map(|status| status.as_u64().filter(|status| (100..600).contains(status)).map(|status| status as u16))
        .collect();
    match statuses {
        Some(statuses) if !statuses.is_empty() => Ok(Some(statuses)),
        _ => Err(D::Error::custom("must be a status from 100 to 599, or an array of them")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(payload: &str) -> Result<Request, String> {
        Request::read(&Json::trusted(payload)).map_err(|error| {
            assert!(error.is_fatal());
            error.to_string()
        })
    }

    #[test]
    fn errors_name_the_invalid_field_and_show_no_header_value() {
        for (payload, text) in [
            ("{}", "missing field `url`"),
            (r#"{"url": "nowhere"}"#, "`url`"),
            (r#"{"url": "file:///etc/passwd"}"#, "must begin with http"),
            (r#"{"url": "http://a", "methods": "GET"}"#, "unknown field `methods`"),
            (r#"{"url": "http://a", "method": "CONNECT"}"#, "`method`"),
            (r#"{"url": "http://a", "method": "a b"}"#, "`method`"),
            (r#"{"url": "http://a", "headers": {"a b": "hunter2"}}"#, "`a b` is not a valid header name"),
            (r#"{"url": "http://a", "headers": {"A": "hunter2\n"}}"#, "`A` has an invalid"),
            (r#"{"url": "http://a", "headers": {"Content-Length": "5"}}"#, "`Content-Length` is set by"),
            (r#"{"url": "http://a", "expectStatus": []}"#, "`expectStatus`"),
            (r#"{"url": "http://a", "expectStatus": [200, 99]}"#, "`expectStatus`"),
            (r#"{"url": "http://a", "expectStatus": "200"}"#, "`expectStatus`"),
        ] {
            let error = read(payload).err().unwrap();
            assert!(error.contains(text) && !error.contains("hunter2"), "{payload}: {error}");
        }
    }

    #[test]
    fn a_string_body_is_sent_as_text_and_any_other_value_as_json() {
        let body = |json: &str| read(&format!(r#"{{"url": "http://a", "body": {json}}}"#)).unwrap().body();
        let text = body(r#""a\nb""#).unwrap();
        assert_eq!((text.bytes.as_str(), text.is_json), ("a\nb", false));
        let json = body(r#"{"b": 1.50,  "a": 2}"#).unwrap();
        assert_eq!((json.bytes.as_str(), json.is_json), (r#"{"b": 1.50,  "a": 2}"#, true));
        assert!(body("null").is_none());
    }

    #[test]
    fn any_2xx_is_expected_unless_statuses_are_listed() {
        let expects = |expected: &str, status: u16| {
            let request = read(&format!(r#"{{"url": "http://a", "expectStatus": {expected}}}"#)).unwrap();
            request.expects(StatusCode::from_u16(status).unwrap())
        };
        assert!(expects("null", 204) && !expects("null", 302));
        assert!(expects("404", 404) && !expects("404", 200));
        assert!(expects("[200, 404]", 404) && !expects("[200, 404]", 201));
    }
}
