//! What a worker has done so far, for metrics and tests.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident, $add:ident;)+) => {
        /// What a worker has done since it started, as far as it knows.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct WorkerStats {
            $($(#[$doc])* pub $name: u64,)+
        }

        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $($name: AtomicU64,)+
        }

        impl Counters {
            $(pub(crate) fn $add(&self, n: u64) {
                self.$name.fetch_add(n, Ordering::Relaxed);
            })+

            pub(crate) fn read(&self) -> WorkerStats {
                WorkerStats { $($name: self.$name.load(Ordering::Relaxed),)+ }
            }
        }
    };
}

counters! {
    /// Jobs that it was given.
    claimed, add_claimed;
    /// Attempts that its handlers began.
    started, add_started;
    /// Outcomes that were accepted.
    reported, add_reported;
    /// Jobs that were handed back, at no cost.
    released, add_released;
    /// Outcomes that were refused because the lease was lost.
    stale_rejected, add_stale_rejected;
    /// Leases that a heartbeat found lost.
    leases_lost, add_leases_lost;
    /// Handlers that panicked.
    panicked, add_panicked;
}

impl Counters {
    pub(crate) fn lost(&self) {
        self.add_leases_lost(1);
    }
}
