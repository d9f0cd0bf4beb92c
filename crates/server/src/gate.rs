//! How many requests are worked on at once, and who is turned away.
//!
//! A server that takes whatever comes gets slower for all until it answers nobody in time. So only so many are worked on, some
//! more wait for their turn, and the rest is told at once to come again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use orchestrix_api::Code;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{App, ServerOptions, refusal::Refusal};

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

    async fn turn(&self) -> Result<Turn, Refusal> {
        let permit = match Arc::clone(&self.turns).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => self.wait().await?,
        };
        Ok(Turn(Arc::new(std::sync::Mutex::new(Some(permit)))))
    }

    async fn wait(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let too_many = || Refusal::new(Code::RateLimited, "more requests come than can be answered; try again");
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

/// Lets a request in when it is its turn.
pub(crate) async fn gate(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    match app.gate.turn().await {
        Ok(turn) => {
            request.extensions_mut().insert(turn.clone());
            let response = next.run(request).await;
            // Held here: the request, and what it carries, is gone as soon as its body has been read.
            drop(turn);
            response
        }
        Err(refusal) => refusal.into_response(),
    }
}
