//! Requests and their answers in the terms of the runtime.

use std::time::Duration;

use orchestrix_client::http::{Call, CallError, Caller as Connections, Method};
use orchestrix_store::{Result, StoreError};
use serde::{Serialize, de::DeserializeOwned};

use super::{options::HttpOptions, refusal};

/// Connections to one server.
pub(super) struct Caller(Connections);

impl Caller {
    pub(super) fn new(options: &HttpOptions) -> Result<Self> {
        options.check()?;
        Ok(Self(Connections::new(&options.server())?))
    }

    /// Posts `body` and reads the answer, which may be `wait` longer in coming than it takes.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        wait: Duration,
    ) -> Result<T> {
        let body = serde_json::to_string(body).map_err(|error| StoreError::Backend(error.into()))?;
        let answer = self.send(path, body, wait, None).await?;
        serde_json::from_slice(&answer).map_err(|error| StoreError::Backend(format!("{path}: {error}").into()))
    }

    /// The same of a body that is written already, in this trace; the answer unread.
    pub(super) async fn send(&self, path: &str, body: String, wait: Duration, trace: Option<&str>) -> Result<Vec<u8>> {
        let call = Call { body: Some(body), wait, traceparent: trace, ..Call::new(Method::POST, path) };
        let answer = self.0.call(call).await.map_err(|error| match error {
            CallError::Unwritable(why) => StoreError::Backend(why.into()),
            error => StoreError::Unavailable(error.to_string()),
        })?;
        match answer.status.is_success() {
            true => Ok(answer.body),
            false => Err(refusal::read(answer.status, &answer.body)),
        }
    }
}
