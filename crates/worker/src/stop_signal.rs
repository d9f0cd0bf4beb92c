//! Requesting a handler to stop, with a reason.

use std::sync::atomic::{AtomicU8, Ordering};

use tokio_util::sync::CancellationToken;

/// Why a handler should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// A client or an operator cancelled the job.
    Cancelled,
    /// The attempt exceeded the job's timeout.
    TimedOut,
    /// The worker shuts down and the drain timeout is near. Another worker will run the job.
    Shutdown,
    /// The lease is lost: another worker may run the job already.
    LeaseLost,
}

/// The stop request for one handler. The first reason counts, except that a lost lease overrides any other: then there
/// is nothing left to report.
#[derive(Debug, Default)]
pub(crate) struct StopSignal {
    requested: CancellationToken,
    /// Cancelled to end the grace period early.
    grace_ended: CancellationToken,
    reason: AtomicU8,
}

impl StopSignal {
    const REASONS: [StopReason; 4] =
        [StopReason::Cancelled, StopReason::TimedOut, StopReason::Shutdown, StopReason::LeaseLost];

    pub(crate) fn request(&self, reason: StopReason) {
        let code = Self::REASONS.iter().position(|known| *known == reason).map_or(0, |i| i as u8 + 1);
        if reason == StopReason::LeaseLost {
            self.reason.store(code, Ordering::SeqCst);
        } else {
            let _ = self.reason.compare_exchange(0, code, Ordering::SeqCst, Ordering::SeqCst);
        }
        self.requested.cancel();
    }

    pub(crate) fn reason(&self) -> Option<StopReason> {
        let code = usize::from(self.reason.load(Ordering::SeqCst));
        Self::REASONS.get(code.checked_sub(1)?).copied()
    }

    /// The token that ends the grace period of a handler that was requested to stop.
    pub(crate) fn grace_ended(&self) -> &CancellationToken {
        &self.grace_ended
    }

    pub(crate) fn requested(&self) -> &CancellationToken {
        &self.requested
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_counts_and_a_lost_lease_overrides_it() {
        let stop = StopSignal::default();
        assert_eq!(stop.reason(), None);
        stop.request(StopReason::TimedOut);
        stop.request(StopReason::Cancelled);
        assert_eq!(stop.reason(), Some(StopReason::TimedOut));
        assert!(stop.requested().is_cancelled());
        stop.request(StopReason::LeaseLost);
        assert_eq!(stop.reason(), Some(StopReason::LeaseLost));
    }
}
