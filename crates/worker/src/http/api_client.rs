//! Requests to the server, with errors mapped to [`StoreError`].

use std::time::Duration;

use orchestrix_client::http::{ApiRequest, HttpClient, HttpError, Method};
use orchestrix_store::{Result, StoreError};
use serde::{Serialize, de::DeserializeOwned};

use super::{error_response, options::HttpOptions};

/// A client of one server's worker API.
pub(super) struct ApiClient(HttpClient);

impl ApiClient {
    pub(super) fn new(options: &HttpOptions) -> Result<Self> {
        options.check()?;
        Ok(Self(HttpClient::new(&options.server())?))
    }

    /// Posts `body` as JSON and parses the response. The server may take `wait` longer than the call timeout.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        wait: Duration,
    ) -> Result<T> {
        let body = serde_json::to_string(body).map_err(|error| StoreError::Backend(error.into()))?;
        let response = self.post_raw(path, body, wait, None).await?;
        serde_json::from_slice(&response).map_err(|error| StoreError::Backend(format!("{path}: {error}").into()))
    }

    /// Posts a serialized body with a trace context. Returns the body of the response.
    pub(super) async fn post_raw(
        &self,
        path: &str,
        body: String,
        wait: Duration,
        traceparent: Option<&str>,
    ) -> Result<Vec<u8>> {
        let request = ApiRequest { body: Some(body), wait, traceparent, ..ApiRequest::new(Method::POST, path) };
        let response = self.0.send(request).await.map_err(|error| match error {
            HttpError::InvalidRequest(reason) => StoreError::Backend(reason.into()),
            error => StoreError::Unavailable(error.to_string()),
        })?;
        match response.status.is_success() {
            true => Ok(response.body),
            false => Err(error_response::to_store_error(response.status, &response.body)),
        }
    }
}
