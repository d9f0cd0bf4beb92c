//! The specification of a store, in the form of tests that every backend passes.
//!
//! A backend's own test file names a function that makes a fresh, empty store, and gets one test per promise:
//!
//! ```ignore
//! async fn harness() -> orchestrix_store::conformance::Harness { … }
//! orchestrix_store::conformance_suite!(harness);
//! ```
//!
//! All time is virtual: a [`Harness`] comes with the clock that its store goes by, and no test sleeps or measures how
//! long anything took. A test has its store to itself and knows it by the trait alone.
//!
//! The list below is the table of contents. A test that is written and not listed is dead code, which the build
//! refuses; one that is listed and not written does not compile.

mod cancel;
mod claim;
mod concurrency;
mod dependencies;
mod dependency_failure;
mod enqueue;
mod enqueue_many;
mod finish;
mod fixture;
mod heartbeat;
mod hold;
mod idempotency;
mod inspect;
mod logs;
mod operate;
mod progress;
mod prune;
mod random;
mod repeat;
mod retry;
mod sweep;
mod time_out;
mod wakeup;
mod worker;

use std::{any::Any, fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use orchestrix_core::Timestamp;

use crate::Store;

/// One fresh store and the clock it goes by.
pub struct Harness {
    /// An empty store that nobody else uses.
    pub store: Arc<dyn Store>,
    /// The clock that the store takes its time from.
    pub clock: Box<dyn TestClock>,
    /// Whatever has to live as long as the store, such as a database that goes away when it is dropped.
    pub guard: Box<dyn Any + Send + Sync>,
}

impl fmt::Debug for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Harness").finish_non_exhaustive()
    }
}

/// A clock that moves when a test says so.
#[async_trait]
pub trait TestClock: Send + Sync {
    /// Moves it forward; on return, the store goes by the new time.
    async fn advance(&self, by: Duration);

    /// The time that the store goes by.
    async fn now(&self) -> Timestamp;
}

// Makes of one list the functions that other crates can call and the macro that turns each into a test there.
macro_rules! suite {
    ($($module:ident { $($test:ident,)+ })+) => {
        #[doc(hidden)]
        pub mod tests {
            $(pub mod $module {
                $(pub async fn $test(harness: &super::super::Harness) {
                    super::super::$module::$test(harness).await;
                })+
            })+
        }

        /// Runs the conformance suite: one test per promise of a store, each on a store of its own.
        ///
        /// Takes the path of an `async fn() -> Harness` and needs `tokio` among the caller's dependencies.
        #[macro_export]
        macro_rules! conformance_suite {
            ($harness:path) => {
                $(mod $module {
                    #[allow(unused_imports)]
                    use super::*;

                    $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                    async fn $test() {
                        let harness = $harness().await;
                        $crate::conformance::tests::$module::$test(&harness).await;
                    })+
                })+
            };
        }
    };
}

suite! {
@@LIST@@
}
