//! A worker's counters.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident, $add:ident;)+) => {
        /// What a worker has done since its start.
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
    /// Jobs that the worker claimed.
    claimed, add_claimed;
    /// Handlers that were started.
    started, add_started;
    /// Outcomes that the source accepted.
    reported, add_reported;
    /// Jobs that were released, which costs no attempt.
    released, add_released;
    /// Outcomes that the source refused because the lease is lost.
    stale_rejected, add_stale_rejected;
    /// Leases that turned out lost when the worker extended them.
    leases_lost, add_leases_lost;
    /// Handlers that panicked.
    panicked, add_panicked;
}
