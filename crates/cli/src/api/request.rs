//! A request to the API, and whether it may be repeated.

use std::{fmt::Display, time::Duration};

use orchestrix_client::http::Method;
use serde::Serialize;

/// The advice for a change that may have been made.
const UNCERTAINTY: &str = "it is unknown whether the change was made: check before you try again";

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    method: Method,
    path: String,
    body: Option<String>,
    wait: Duration,
    /// What to say if it is unknown whether the request took effect; `None` if it is idempotent.
    uncertainty: Option<&'static str>,
}

impl Request {
    fn new(method: Method, path: impl Into<String>, uncertainty: Option<&'static str>) -> Self {
        Self { method, path: path.into(), body: None, wait: Duration::ZERO, uncertainty }
    }

    /// A GET request, which is idempotent.
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path, None)
    }

    /// A PUT request, which is idempotent.
    pub(crate) fn put(path: impl Into<String>) -> Self {
        Self::new(Method::PUT, path, None)
    }

    /// A POST request, which is not repeated if it may have taken effect.
    pub(crate) fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path, Some(UNCERTAINTY))
    }

    /// A DELETE request, which is not repeated if it may have taken effect: the second one would get 404.
    pub(crate) fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path, Some(UNCERTAINTY))
    }

    /// Sets the body.
    pub(crate) fn json(mut self, body: &impl Serialize) -> serde_json::Result<Self> {
        self.body = Some(serde_json::to_string(body)?);
        Ok(self)
    }

    /// Adds a query parameter.
    pub(crate) fn query(mut self, name: &str, value: impl Display) -> Self {
        self.path.push(if self.path.contains('?') { '&' } else { '?' });
        push_encoded(name, &mut self.path);
        self.path.push('=');
        push_encoded(&value.to_string(), &mut self.path);
        self
    }

    /// Adds each field of `params` that is set as a query parameter.
    pub(crate) fn query_params(mut self, params: &impl Serialize) -> serde_json::Result<Self> {
        if let serde_json::Value::Object(fields) = serde_json::to_value(params)? {
            for (name, value) in fields {
                self = match value {
                    serde_json::Value::String(text) => self.query(&name, text),
                    other => self.query(&name, other),
                };
            }
        }
        Ok(self)
    }

    /// Makes it a long poll: the server answers on a change, or after `wait`.
    pub(crate) fn long_poll(self, wait: Duration) -> Self {
        match wait.is_zero() {
            true => self,
            false => Self { wait, ..self.query("waitSeconds", wait.as_secs_f64()) },
        }
    }

    /// Marks it as idempotent.
    pub(crate) const fn idempotent(mut self) -> Self {
        self.uncertainty = None;
        self
    }

    /// Marks it as not idempotent, with the advice for the case that it may have taken effect.
    pub(crate) const fn not_idempotent(mut self, uncertainty: &'static str) -> Self {
        self.uncertainty = Some(uncertainty);
        self
    }

    /// The same request for one page of a list.
    pub(crate) fn page(&self, cursor: Option<&str>, limit: usize) -> Self {
        let page = self.clone().query("limit", limit);
        match cursor {
            Some(cursor) => page.query("cursor", cursor),
            None => page,
        }
    }

    /// The role that the API requires for it, for the message about a rejected key.
    pub(crate) fn required_role(&self) -> &'static str {
        let path = self.path.split('?').next().unwrap_or_default();
        let is_under =
            |prefix: &str| path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        match () {
            () if is_under("/admin/keys") => "admin",
            () if is_under("/worker") => "worker or operator",
            () if is_under("/jobs") || (is_under("/schedules") && self.method == Method::GET) => "client or operator",
            () => "operator",
        }
    }

    pub(crate) fn method(&self) -> Method {
        self.method.clone()
    }

    /// The path with its query.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn body(&self) -> Option<String> {
        self.body.clone()
    }

    pub(crate) const fn wait(&self) -> Duration {
        self.wait
    }

    /// What to say if it is unknown whether the request took effect; `None` if it is idempotent.
    pub(crate) const fn uncertainty(&self) -> Option<&'static str> {
        self.uncertainty
    }
}

/// Percent-encodes a segment of a path.
pub(crate) fn percent_encode(text: &str) -> String {
    let mut encoded = String::new();
    push_encoded(text, &mut encoded);
    encoded
}

fn push_encoded(text: &str, into: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => into.push(char::from(byte)),
            byte => into.push_str(&format!("%{byte:02X}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use orchestrix_api::admin::filter::{JobCriteria, JobFilterRequest};

    use super::*;

    #[test]
    fn the_required_role_depends_on_method_and_path() {
        for (request, role) in [
            (Request::get("/admin/keys?limit=1"), "admin"),
            (Request::delete("/admin/keys/x"), "admin"),
            (Request::get("/admin/jobs?limit=1"), "operator"),
            (Request::post("/worker/leases"), "worker or operator"),
            (Request::post("/jobs"), "client or operator"),
            (Request::get("/schedules"), "client or operator"),
            (Request::put("/schedules/s"), "operator"),
        ] {
            assert_eq!(request.required_role(), role, "{request:?}");
        }
    }

    #[test]
    fn query_parameters_are_percent_encoded() {
        let criteria = JobCriteria { queue: Some("q".into()), q: Some("a&b=c é+".into()), ..JobCriteria::default() };
        let filter = JobFilterRequest { state: None, criteria };
        let request = Request::get("/admin/jobs").query_params(&filter).unwrap().page(Some("x"), 5);
        assert_eq!(request.path(), "/admin/jobs?q=a%26b%3Dc%20%C3%A9%2B&queue=q&limit=5&cursor=x");
        assert_eq!(Request::get("/jobs/1").long_poll(Duration::ZERO).path(), "/jobs/1");
        assert_eq!(Request::get("/jobs/1").long_poll(Duration::from_millis(1500)).path(), "/jobs/1?waitSeconds=1.5");
    }
}
