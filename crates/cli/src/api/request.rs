//! What is asked, and whether it may be asked twice.

use std::{fmt::Display, time::Duration};

use orchestrix_client::http::Method;
use serde::Serialize;

/// What is said of a change that may or may not have been made.
const DOUBT: &str = "whether it was done is unknown: look before you try again";

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    method: Method,
    path: String,
    body: Option<String>,
    wait: Duration,
    doubt: Option<&'static str>,
}

impl Request {
    fn new(method: Method, path: impl Into<String>, doubt: Option<&'static str>) -> Self {
        Self { method, path: path.into(), body: None, wait: Duration::ZERO, doubt }
    }

    /// A look. It may be repeated.
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path, None)
    }

    /// Something as it should be. It may be repeated.
    pub(crate) fn put(path: impl Into<String>) -> Self {
        Self::new(Method::PUT, path, None)
    }

    /// A change. It is not repeated where it may have been made.
    pub(crate) fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path, Some(DOUBT))
    }

    /// An end. It is not repeated where it may have come: the second time there would be nothing.
    pub(crate) fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path, Some(DOUBT))
    }

    /// With a body.
    pub(crate) fn with(mut self, body: &impl Serialize) -> serde_json::Result<Self> {
        self.body = Some(serde_json::to_string(body)?);
        Ok(self)
    }

    /// With a word behind the question mark.
    pub(crate) fn query(mut self, name: &str, value: impl Display) -> Self {
        self.path.push(if self.path.contains('?') { '&' } else { '?' });
        escape(name, &mut self.path);
        self.path.push('=');
        escape(&value.to_string(), &mut self.path);
        self
    }

    /// With all that is given of a question.
    pub(crate) fn asking(mut self, question: &impl Serialize) -> serde_json::Result<Self> {
        if let serde_json::Value::Object(words) = serde_json::to_value(question)? {
            for (name, value) in words {
                self = match value {
                    serde_json::Value::String(text) => self.query(&name, text),
                    other => self.query(&name, other),
                };
            }
        }
        Ok(self)
    }

    /// One that is answered when something changes, or after so long.
    pub(crate) fn waiting(self, wait: Duration) -> Self {
        match wait.is_zero() {
            true => self,
            false => Self { wait, ..self.query("waitSeconds", wait.as_secs_f64()) },
        }
    }

    /// One that makes no difference when it is repeated.
    pub(crate) const fn repeatable(mut self) -> Self {
        self.doubt = None;
        self
    }

    /// One of which this is said if it may or may not have been carried out.
    pub(crate) const fn doubtful(mut self, doubt: &'static str) -> Self {
        self.doubt = Some(doubt);
        self
    }

    /// The same for this part of a list.
    pub(crate) fn part(&self, cursor: Option<&str>, limit: usize) -> Self {
        let part = self.clone().query("limit", limit);
        match cursor {
            Some(cursor) => part.query("cursor", cursor),
            None => part,
        }
    }

    /// Whose key it takes, in words: what a server holds people to, for whoever was refused.
    pub(crate) fn role(&self) -> &'static str {
        let path = self.path.split('?').next().unwrap_or_default();
        let is_at = |place: &str| path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        match () {
            () if is_at("/admin/keys") => "admin",
            () if is_at("/worker") => "worker or operator",
            () if is_at("/jobs") || (is_at("/schedules") && self.method == Method::GET) => "client or operator",
            () => "operator",
        }
    }

    pub(crate) fn method(&self) -> Method {
        self.method.clone()
    }

    /// With its question.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn body(&self) -> Option<String> {
        self.body.clone()
    }

    pub(crate) const fn wait(&self) -> Duration {
        self.wait
    }

    /// What is said if it may or may not have been carried out; `None` if it may be repeated.
    pub(crate) const fn doubt(&self) -> Option<&'static str> {
        self.doubt
    }
}

/// A name as it stands in a path.
pub(crate) fn escaped(text: &str) -> String {
    let mut into = String::new();
    escape(text, &mut into);
    into
}

fn escape(text: &str, into: &mut String) {
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
    fn whose_key_it_takes_goes_by_what_is_asked() {
        for (request, role) in [
            (Request::get("/admin/keys?limit=1"), "admin"),
            (Request::delete("/admin/keys/x"), "admin"),
            (Request::get("/admin/jobs?limit=1"), "operator"),
            (Request::post("/worker/leases"), "worker or operator"),
            (Request::post("/jobs"), "client or operator"),
            (Request::get("/schedules"), "client or operator"),
            (Request::put("/schedules/s"), "operator"),
        ] {
            assert_eq!(request.role(), role, "{request:?}");
        }
    }

    #[test]
    fn a_question_is_written_so_that_it_is_read_as_it_was_meant() {
        let criteria = JobCriteria { queue: Some("q".into()), q: Some("a&b=c é+".into()), ..JobCriteria::default() };
        let filter = JobFilterRequest { state: None, criteria };
        let request = Request::get("/admin/jobs").asking(&filter).unwrap().part(Some("x"), 5);
        assert_eq!(request.path(), "/admin/jobs?q=a%26b%3Dc%20%C3%A9%2B&queue=q&limit=5&cursor=x");
        assert_eq!(Request::get("/jobs/1").waiting(Duration::ZERO).path(), "/jobs/1");
        assert_eq!(Request::get("/jobs/1").waiting(Duration::from_millis(1500)).path(), "/jobs/1?waitSeconds=1.5");
    }
}
