//! Asking a handler to stop, and why.

use std::sync::atomic::{AtomicU8, Ordering};

use tokio_util::sync::CancellationToken;

/// Why a handler should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// Somebody cancelled the job.
    Cancelled,
    /// The attempt ran over the job's timeout.
    TimedOut,
    /// The worker shuts down and has no more time for it; the job goes on elsewhere.
    Shutdown,
    /// The lease is lost: somebody else may be at the job already.
    LeaseLost,
}

/// The first reason counts, except that a lost lease overrules any other: there is nothing left to report.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    token: CancellationToken,
    /// Whether its grace is over, however long it was to be.
    cut: CancellationToken,
    reason: AtomicU8,
}

impl Stop {
    const REASONS: [StopReason; 4] =
        [StopReason::Cancelled, StopReason::TimedOut, StopReason::Shutdown, StopReason::LeaseLost];

    pub(crate) fn ask(&self, reason: StopReason) {
        let code = Self::REASONS.iter().position(|known| *known == reason).map_or(0, |i| i as u8 + 1);
        if reason == StopReason::LeaseLost {
            self.reason.store(code, Ordering::SeqCst);
        } else {
            let _ = self.reason.compare_exchange(0, code, Ordering::SeqCst, Ordering::SeqCst);
        }
        self.token.cancel();
    }

    pub(crate) fn reason(&self) -> Option<StopReason> {
        let code = usize::from(self.reason.load(Ordering::SeqCst));
        Self::REASONS.get(code.checked_sub(1)?).copied()
    }

    /// Ends the grace of a handler that was asked to stop.
    pub(crate) fn cut(&self) -> &CancellationToken {
        &self.cut
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_counts_and_a_lost_lease_overrules_it() {
        let stop = Stop::default();
        assert_eq!(stop.reason(), None);
        stop.ask(StopReason::TimedOut);
        stop.ask(StopReason::Cancelled);
        assert_eq!(stop.reason(), Some(StopReason::TimedOut));
        assert!(stop.token().is_cancelled());
        stop.ask(StopReason::LeaseLost);
        assert_eq!(stop.reason(), Some(StopReason::LeaseLost));
    }
}
