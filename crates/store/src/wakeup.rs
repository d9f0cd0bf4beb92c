//! Hints that something can be claimed, and the polling beneath them.
//!
//! Subscribe before you look for jobs: a wake-up that comes between the look and the wait is then kept, not lost.
//! A hint may never come, so whoever waits also looks by itself now and then: [`PollInterval`] says when.

use std::time::Duration;

use orchestrix_core::Queue;
use rand::RngExt;
use tokio::sync::broadcast;

/// What may have happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wakeup {
    /// A job of this queue became claimable.
    Queue(Queue),
    /// Anything: hints were dropped because they came too fast, the connection that carries them was renewed, or it is
    /// time to look without one.
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

    /// Takes all hints that have come already for one.
    pub fn drain(&mut self) {
        while !matches!(
            self.0.try_recv(),
            Err(broadcast::error::TryRecvError::Empty | broadcast::error::TryRecvError::Closed)
        ) {}
    }

    /// Waits for the next hint, or until `polling` says that it is time to look without one.
    pub async fn next_or_poll(&mut self, polling: &mut PollInterval) -> Wakeup {
        tokio::time::timeout(polling.pause(), self.next()).await.unwrap_or(Wakeup::Anything)
    }
}

/// How long to wait before looking for work without a hint: briefly after work was found, longer each time none was,
/// up to a limit. Pauses are jittered, so that a fleet does not look in step.
#[derive(Debug, Clone)]
pub struct PollInterval {
    longest: Duration,
    next: Duration,
}

impl PollInterval {
    /// The pause right after work was found.
    const SHORTEST: Duration = Duration::from_millis(50);
    /// The longest pause unless told otherwise.
    pub const DEFAULT_LONGEST: Duration = Duration::from_secs(1);

    /// Pauses of up to `longest`.
    pub fn new(longest: Duration) -> Self {
        Self { longest, next: Self::SHORTEST.min(longest) }
    }

    /// Takes note that work was found.
    pub fn found(&mut self) {
        self.next = Self::SHORTEST.min(self.longest);
    }

    /// How long to wait this time. Between 75 % and all of the plain pause, which then doubles.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next.mul_f64(rand::rng().random_range(0.75..=1.0));
        self.next = (self.next * 2).min(self.longest);
        pause
    }
}

impl Default for PollInterval {
    fn default() -> Self {
        Self::new(Self::DEFAULT_LONGEST)
    }
}

/// The giving side, one per store.
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
    /// Tells every subscriber; nobody listening is fine.
    pub fn wake(&self, wakeup: Wakeup) {
        // The error only says that nobody listens.
        let _ = self.claimable.send(wakeup);
    }

    /// Tells whoever keeps the agenda that something was put on it.
    pub fn wake_timers(&self) {
        let _ = self.timers.send(Wakeup::Anything);
    }

    /// A new subscription to jobs that became claimable.
    pub fn subscribe(&self) -> Wakeups {
        Wakeups(self.claimable.subscribe())
    }

    /// A new subscription to jobs that began to wait for a time.
    pub fn timers(&self) -> Wakeups {
        Wakeups(self.timers.subscribe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_limit_with_jitter_and_shrink_when_work_is_found() {
        let mut polling = PollInterval::new(Duration::from_millis(300));
        let within = |pause: Duration, plain: u64| {
            pause >= Duration::from_millis(plain * 3 / 4) && pause <= Duration::from_millis(plain)
        };
        for plain in [50, 100, 200, 300, 300] {
            let pause = polling.pause();
            assert!(within(pause, plain), "{pause:?} for {plain} ms");
        }
        polling.found();
        assert!(within(polling.pause(), 50));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_hint_it_is_soon_time_to_look_and_a_hint_comes_first() {
        let sender = WakeupSender::default();
        let mut wakeups = sender.subscribe();
        let mut polling = PollInterval::default();
        assert_eq!(wakeups.next_or_poll(&mut polling).await, Wakeup::Anything);
        sender.wake(Wakeup::Queue(Queue::default()));
        assert_eq!(wakeups.next_or_poll(&mut polling).await, Wakeup::Queue(Queue::default()));
    }

    #[tokio::test]
    async fn a_subscriber_that_lags_behind_is_told_to_look_at_everything() {
        let sender = WakeupSender::default();
        let mut wakeups = sender.subscribe();
        for _ in 0..1_000 {
            sender.wake(Wakeup::Queue(Queue::default()));
        }
        assert_eq!(wakeups.next().await, Wakeup::Anything);
    }
}
