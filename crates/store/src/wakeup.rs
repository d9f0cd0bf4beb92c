//! Hints that something can be claimed.
//!
//! Subscribe before you look for jobs: a wake-up that comes between the look and the wait is then kept, not lost.
//! Poll beneath: a hint may never come.

use orchestrix_core::Queue;
use tokio::sync::broadcast;

/// What may have happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wakeup {
    /// A job of this queue became claimable.
    Queue(Queue),
    /// Anything: hints were dropped because they came too fast, or the connection that carries them was renewed.
    Anything,
}

/// A subscription. Holds a bounded number of hints and never blocks whoever gives them.
#[derive(Debug)]
pub struct Wakeups(broadcast::Receiver<Wakeup>);

impl Wakeups {
    /// Waits for the next hint. Pends for ever once the store is gone.
    pub async fn next(&mut self) -> Wakeup {
        match self.0.recv().await {
            Ok(wakeup) => wakeup,
            Err(broadcast::error::RecvError::Lagged(_)) => Wakeup::Anything,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// The giving side, one per store.
#[derive(Debug, Clone)]
pub struct Waker(broadcast::Sender<Wakeup>);

impl Default for Waker {
    fn default() -> Self {
        Self(broadcast::Sender::new(256))
    }
}

impl Waker {
    /// Tells every subscriber; nobody listening is fine.
    pub fn wake(&self, wakeup: Wakeup) {
        // The error only says that nobody listens.
        let _ = self.0.send(wakeup);
    }

    /// A new subscription.
    pub fn subscribe(&self) -> Wakeups {
        Wakeups(self.0.subscribe())
    }
}
