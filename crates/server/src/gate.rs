//! How many requests are worked on at once, and who is turned away.
//!
//! A server that takes whatever comes gets slower for all until it answers nobody in time. So only so many are worked on, some
//! more wait for their turn, and the rest is told at once to come again. A request whose body is still on its way is not worked
//! on: however slowly it comes, it holds up nobody.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use orchestrix_api::Code;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{ServerOptions, refusal::Refusal};

pub(crate) struct Gate {
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
    queue: usize,
    patience: Duration,
}

/// The right to be worked on. A request that begins to wait for something else gives it back.
#[derive(Clone)]
pub(crate) struct Turn(Arc<std::sync::Mutex<Option<OwnedSemaphorePermit>>>);

impl Turn {
    pub(crate) fn give_back(&self) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    }
}

impl Gate {
    pub(crate) fn new(options: &ServerOptions) -> Self {
        Self {
            turns: Arc::new(Semaphore::new(options.concurrency)),
            waiting: AtomicUsize::new(0),
            queue: options.queue,
            patience: options.patience,
        }
    }

    /// Waits until it is one's turn.
    pub(crate) async fn turn(&self) -> Result<Turn, Refusal> {
        let permit = match Arc::clone(&self.turns).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => self.wait().await?,
        };
        Ok(Turn(Arc::new(std::sync::Mutex::new(Some(permit)))))
    }

    async fn wait(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let _place = Place::take(&self.waiting, self.queue).ok_or_else(too_many)?;
        match tokio::time::timeout(self.patience, Arc::clone(&self.turns).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(too_many()),
        }
    }
}

struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize, most: usize) -> Option<Self> {
        let place = Self(waiting);
        // Given back by the drop in either case.
        (waiting.fetch_add(1, Ordering::Relaxed) < most).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What is told to whoever is turned away.
pub(crate) fn too_many() -> Refusal {
    Refusal::new(Code::RateLimited, "more requests come than can be answered; try again")
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
    use crate::{App, around::around, body::Text};

    // One request is worked on at a time, and nobody waits. `/wait` gives its turn back before it waits.
    fn server(begun: &Arc<Notify>, end: &Arc<Notify>) -> Router {
        let options = ServerOptions { concurrency: 1, queue: 0, ..ServerOptions::default() };
        let app = App::new(Arc::new(MemoryStore::new()), options);
        let work = |gives_back: bool| {
            let (begun, end) = (Arc::clone(begun), Arc::clone(end));
            post(move |Extension(turn): Extension<Turn>, _: Text| async move {
                if gives_back {
                    turn.give_back();
                }
                drop(turn);
                begun.notify_one();
                end.notified().await;
            })
        };
        Router::new()
            .route("/work", work(false))
            .route("/wait", work(true))
            .route_layer(from_fn_with_state(Arc::clone(&app), around))
            .with_state(app)
    }

    fn to(path: &str, body: Body, length: usize) -> Request {
        let request = Request::post(path).header("content-type", "application/json");
        request.header("content-length", length).body(body).unwrap()
    }

    async fn status(server: &Router, request: Request) -> StatusCode {
        server.clone().oneshot(request).await.unwrap().status()
    }

    #[tokio::test]
    async fn a_request_keeps_its_turn_until_it_is_answered_unless_it_gives_it_back() {
        let (begun, end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let server = server(&begun, &end);
        let again = || to("/work", Body::from("{}"), 2);
        for (path, meanwhile) in [("/work", StatusCode::TOO_MANY_REQUESTS), ("/wait", StatusCode::OK)] {
            let (one, request) = (server.clone(), to(path, Body::from("{}"), 2));
            let first = tokio::spawn(async move { status(&one, request).await });
            begun.notified().await;
            if meanwhile == StatusCode::OK {
                let (two, request) = (server.clone(), again());
                let second = tokio::spawn(async move { status(&two, request).await });
                begun.notified().await;
                end.notify_one();
                end.notify_one();
                end.notify_waiters();
                assert_eq!(second.await.unwrap(), meanwhile);
            } else {
                assert_eq!(status(&server, again()).await, meanwhile);
            }
            end.notify_one();
            assert_eq!(first.await.unwrap(), StatusCode::OK);
        }
    }

    #[tokio::test]
    async fn a_body_that_is_still_on_its_way_holds_up_nobody() {
        let (begun, end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let server = server(&begun, &end);
        let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Bytes, std::io::Error>>(1);
        let parts = futures_util::stream::unfold(receiver, async |mut parts| {
            let part = parts.recv().await?;
            Some((part, parts))
        });
        let (one, slow) = (server.clone(), to("/work", Body::from_stream(parts), 2));
        let slow = tokio::spawn(async move { status(&one, slow).await });
        sender.send(Ok(Bytes::from_static(b"{"))).await.unwrap();
        // There is room for it once the first part was taken: the request has come in.
        sender.send(Ok(Bytes::new())).await.unwrap();
        end.notify_one();
        assert_eq!(status(&server, to("/work", Body::from("{}"), 2)).await, StatusCode::OK);
        begun.notified().await;
        sender.send(Ok(Bytes::from_static(b"}"))).await.unwrap();
        drop(sender);
        begun.notified().await;
        end.notify_one();
        assert_eq!(slow.await.unwrap(), StatusCode::OK);
    }
}
