//! Admission control: at most [`ServerOptions::max_concurrent_requests`] requests run concurrently, up to
//! [`ServerOptions::max_queued_requests`] wait in a queue for at most [`ServerOptions::admission_timeout`], and the
//! rest get 429.
//!
//! Without a limit an overloaded server slows down for all clients until none is answered in time. The permit is
//! acquired after the body has been read, so a client that sends slowly holds up no other. A handler that waits for
//! something else (a long poll, an event stream) releases its permit first.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use orchestrix_api::Code;

use crate::{
    ServerOptions,
    api_error::ApiError,
    bounded_queue::{BoundedQueue, RunPermit},
};

pub(crate) struct AdmissionControl {
    queue: BoundedQueue,
    timeout: Duration,
}

/// The right of a request to run. It is released when the request has been answered, or earlier by [`Self::release`].
#[derive(Clone)]
pub(crate) struct AdmissionPermit(Arc<Mutex<Option<RunPermit>>>);

impl AdmissionPermit {
    /// Releases the permit before the request is answered, because the handler is about to wait.
    pub(crate) fn release(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl AdmissionControl {
    pub(crate) fn new(options: &ServerOptions) -> Self {
        Self {
            queue: BoundedQueue::new(options.max_concurrent_requests, options.max_queued_requests),
            timeout: options.admission_timeout,
        }
    }

    /// Acquires a permit, waiting in the queue if necessary. Fails with 429 if the queue is full or the wait takes too
    /// long.
    pub(crate) async fn admit(&self) -> Result<AdmissionPermit, ApiError> {
        let slot = self.queue.try_enter().ok_or_else(overloaded)?;
        match tokio::time::timeout(self.timeout, slot.acquire()).await {
            Ok(Ok(permit)) => Ok(AdmissionPermit(Arc::new(Mutex::new(Some(permit))))),
            _ => Err(overloaded()),
        }
    }
}

/// The 429 that a request gets when the server is overloaded.
pub(crate) fn overloaded() -> ApiError {
    ApiError::new(Code::RateLimited, "the server is overloaded; try again later")
}

#[cfg(test)]
mod tests {
    use axum::{
        Extension, Router,
        body::{Body, Bytes},
        extract::Request,
        http::StatusCode,
        middleware::from_fn_with_state,
        routing::post,
    };
    use orchestrix_memory::MemoryStore;
    use tokio::sync::Notify;
    use tower::ServiceExt;

    use super::*;
    use crate::{App, body::JsonBody, middleware::request_middleware};

    // One request runs at a time and the queue is empty. `/wait` releases its permit before it waits.
    fn server(started: &Arc<Notify>, finish: &Arc<Notify>) -> Router {
        let options = ServerOptions { max_concurrent_requests: 1, max_queued_requests: 0, ..ServerOptions::default() };
        let app = App::new(Arc::new(MemoryStore::new()), options);
        let handler = |releases: bool| {
            let (started, finish) = (Arc::clone(started), Arc::clone(finish));
            post(move |Extension(permit): Extension<AdmissionPermit>, _: JsonBody| async move {
                if releases {
                    permit.release();
                }
                drop(permit);
                started.notify_one();
                finish.notified().await;
            })
        };
        Router::new()
            .route("/work", handler(false))
            .route("/wait", handler(true))
            .route_layer(from_fn_with_state(Arc::clone(&app), request_middleware))
            .with_state(app)
    }

    fn request(path: &str, body: Body, length: usize) -> Request {
        let request = Request::post(path).header("content-type", "application/json");
        request.header("content-length", length).body(body).unwrap()
    }

    async fn status(server: &Router, request: Request) -> StatusCode {
        server.clone().oneshot(request).await.unwrap().status()
    }

    #[tokio::test]
    async fn a_request_holds_its_permit_until_it_is_answered_unless_it_releases_it() {
        let (started, finish) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let server = server(&started, &finish);
        let another = || request("/work", Body::from("{}"), 2);
        for (path, meanwhile) in [("/work", StatusCode::TOO_MANY_REQUESTS), ("/wait", StatusCode::OK)] {
            let (router, first) = (server.clone(), request(path, Body::from("{}"), 2));
            let first = tokio::spawn(async move { status(&router, first).await });
            started.notified().await;
            if meanwhile == StatusCode::OK {
                let (router, second) = (server.clone(), another());
                let second = tokio::spawn(async move { status(&router, second).await });
                started.notified().await;
                finish.notify_one();
                finish.notify_one();
                finish.notify_waiters();
                assert_eq!(second.await.unwrap(), meanwhile);
            } else {
                assert_eq!(status(&server, another()).await, meanwhile);
            }
            finish.notify_one();
            assert_eq!(first.await.unwrap(), StatusCode::OK);
        }
    }

    #[tokio::test]
    async fn a_request_whose_body_is_still_arriving_blocks_no_other() {
        let (started, finish) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let server = server(&started, &finish);
        let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Bytes, std::io::Error>>(1);
        let chunks = futures_util::stream::unfold(receiver, async |mut chunks| {
            let chunk = chunks.recv().await?;
            Some((chunk, chunks))
        });
        let (router, slow) = (server.clone(), request("/work", Body::from_stream(chunks), 2));
        let slow = tokio::spawn(async move { status(&router, slow).await });
        sender.send(Ok(Bytes::from_static(b"{"))).await.unwrap();
        // The channel holds one chunk, so this send succeeds only after the server has started to read the body.
        sender.send(Ok(Bytes::new())).await.unwrap();
        finish.notify_one();
        assert_eq!(status(&server, request("/work", Body::from("{}"), 2)).await, StatusCode::OK);
        started.notified().await;
        sender.send(Ok(Bytes::from_static(b"}"))).await.unwrap();
        drop(sender);
        started.notified().await;
        finish.notify_one();
        assert_eq!(slow.await.unwrap(), StatusCode::OK);
    }
}
