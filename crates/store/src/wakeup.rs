//! Wake-ups: hints that jobs became claimable, and the polling beneath them.
//!
//! Subscribe before claiming: a wake-up between the claim and the wait is then buffered, not lost.
//! A wake-up may never come, so subscribers also poll: [`PollInterval`] says when.

use std::time::Duration;

use orchestrix_core::{Backoff, Queue};
use tokio::sync::broadcast;

/// A hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wakeup {
    /// A job of this queue became claimable.
    Queue(Queue),
    /// Check everything: wake-ups were dropped because they came too fast, the connection that carries them was
    /// renewed, or it is time to poll.
    Anything,
}

/// A subscription to wake-ups. It buffers a bounded number of them and never blocks the sender.
#[derive(Debug)]
pub struct Wakeups(broadcast::Receiver<Wakeup>);

impl Wakeups {
    /// Waits for the next wake-up. Pends for ever once the store is dropped.
    pub async fn next(&mut self) -> Wakeup {
        match self.0.recv().await {
            Ok(wakeup) => wakeup,
            Err(broadcast::error::RecvError::Lagged(_)) => Wakeup::Anything,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }

    /// Discards all buffered wake-ups.
    pub fn drain(&mut self) {
        while !matches!(
            self.0.try_recv(),
            Err(broadcast::error::TryRecvError::Empty | broadcast::error::TryRecvError::Closed)
        ) {}
    }

    /// Waits for the next wake-up, or until it is time to poll.
    pub async fn next_or_poll(&mut self, interval: &mut PollInterval) -> Wakeup {
        tokio::time::timeout(interval.next_delay(), self.next()).await.unwrap_or(Wakeup::Anything)
    }
}

/// The poll interval: how long to wait for a wake-up before polling without one.
///
/// It is short after work was found, doubles after each poll that found none, up to a limit, and is jittered so that a
/// fleet does not poll in step.
#[derive(Debug, Clone)]
pub struct PollInterval(Backoff);

impl PollInterval {
    /// The delay right after work was found.
    const SHORTEST: Duration = Duration::from_millis(50);
    /// The default for the longest delay.
    pub const DEFAULT_LONGEST: Duration = Duration::from_secs(1);

    /// Delays of up to `longest`.
    pub fn new(longest: Duration) -> Self {
        Self(Backoff::new(Self::SHORTEST, longest))
    }

    /// Starts over from the shortest delay. Call it when work was found.
    pub fn reset(&mut self) {
        self.0.reset();
    }

    /// Returns the delay before the next poll.
    pub fn next_delay(&mut self) -> Duration {
        self.0.next_jittered(&mut rand::rng())
    }
}

impl Default for PollInterval {
    fn default() -> Self {
        Self::new(Self::DEFAULT_LONGEST)
    }
}

/// The sending side of wake-ups, one per store.
#[derive(Debug, Clone)]
pub struct WakeupSender {
    claimable: broadcast::Sender<Wakeup>,
    timers: broadcast::Sender<Wakeup>,
}

impl Default for WakeupSender {
    fn default() -> Self {
        Self { claimable: broadcast::Sender::new(256), timers: broadcast::Sender::new(16) }
    }
}

impl WakeupSender {
    /// Sends a wake-up to every subscriber.
    pub fn wake(&self, wakeup: Wakeup) {
        // An error only means that there are no subscribers.
        let _ = self.claimable.send(wakeup);
    }

    /// Wakes the leader's timers: a job or a schedule began to wait for a time.
    pub fn wake_timers(&self) {
        let _ = self.timers.send(Wakeup::Anything);
    }

    /// Subscribes to wake-ups about claimable jobs.
    pub fn subscribe(&self) -> Wakeups {
        Wakeups(self.claimable.subscribe())
    }

    /// Subscribes to wake-ups about timers.
    pub fn timers(&self) -> Wakeups {
        Wakeups(self.timers.subscribe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_up_to_the_limit_with_jitter_and_start_over_when_work_is_found() {
        let mut interval = PollInterval::new(Duration::from_millis(300));
        let within = |delay: Duration, plain: u64| {
            delay >= Duration::from_millis(plain * 3 / 4) && delay <= Duration::from_millis(plain)
        };
        for plain in [50, 100, 200, 300, 300] {
            let delay = interval.next_delay();
            assert!(within(delay, plain), "{delay:?} for {plain} ms");
        }
        interval.reset();
        assert!(within(interval.next_delay(), 50));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_wakeup_the_subscriber_polls_and_a_wakeup_comes_first() {
        let sender = WakeupSender::default();
        let mut wakeups = sender.subscribe();
        let mut interval = PollInterval::default();
        assert_eq!(wakeups.next_or_poll(&mut interval).await, Wakeup::Anything);
        sender.wake(Wakeup::Queue(Queue::default()));
        assert_eq!(wakeups.next_or_poll(&mut interval).await, Wakeup::Queue(Queue::default()));
    }

    #[tokio::test]
    async fn a_subscriber_that_lags_behind_checks_everything() {
        let sender = WakeupSender::default();
        let mut wakeups = sender.subscribe();
        for _ in 0..1_000 {
            sender.wake(Wakeup::Queue(Queue::default()));
        }
        assert_eq!(wakeups.next().await, Wakeup::Anything);
    }
}
