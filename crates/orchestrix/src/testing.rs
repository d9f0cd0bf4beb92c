//! Helpers for tests of your own jobs: run one job inline, drain all claimable jobs, list enqueued jobs, advance the
//! clock.
//!
//! ```
//! use orchestrix::{Client, Context, Job, JobResult, JobState, Run, Worker, assert_enqueued, testing};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, Serialize, Deserialize, Job)]
//! struct Welcome {
//!     name: String,
//! }
//!
//! #[derive(Debug, Serialize, Deserialize, Job)]
//! struct FollowUp {
//!     name: String,
//! }
//!
//! impl Run for Welcome {
//!     async fn run(self, ctx: Context) -> JobResult {
//!         ctx.enqueue(FollowUp { name: self.name }.request().delay(std::time::Duration::from_secs(86_400))).await?;
//!         Ok(())
//!     }
//! }
//!
//! impl Run for FollowUp {
//!     async fn run(self, _: Context) -> JobResult {
//!         Ok(())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (client, clock) = testing::memory();
//! let worker = || Worker::builder(&client).job::<Welcome>().job::<FollowUp>();
//!
//! client.enqueue(Welcome { name: "Ada".into() }).await?;
//! assert_eq!(worker().drain().await?.len(), 1);
//! assert_enqueued!(client, FollowUp, FollowUp { name } if name == "Ada");
//!
//! clock.advance(std::time::Duration::from_secs(86_400));
//! let attempts = worker().drain().await?;
//! assert_eq!(attempts[0].state, JobState::Completed);
//! assert_enqueued!(client, FollowUp, none);
//! # Ok(())
//! # }
//! ```

pub use orchestrix_store::ManualClock;
pub use orchestrix_worker::testing::{DrainedAttempt, Inline, enqueued, memory, run};

/// Asserts in an async test that an unfinished job of this type exists. With a pattern, one of them must match it. With
/// `none`, none may exist.
///
/// ```
/// # use orchestrix::{Job, assert_enqueued, testing};
/// # #[derive(Debug, serde::Serialize, serde::Deserialize, Job)] struct SendEmail { to: String }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (client, _) = testing::memory();
/// assert_enqueued!(client, SendEmail, none);
/// client.enqueue(SendEmail { to: "ada@example.com".into() }).await?;
/// assert_enqueued!(client, SendEmail);
/// assert_enqueued!(client, SendEmail, SendEmail { to } if to.starts_with("ada"));
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! assert_enqueued {
    ($client:expr, $job:ty $(,)?) => {
        assert!(
            !$crate::testing::enqueued::<$job>(&$client).await.is_empty(),
            "no unfinished job of type {:?}",
            <$job as $crate::Job>::TYPE
        )
    };
    ($client:expr, $job:ty, none $(,)?) => {{
        let jobs = $crate::testing::enqueued::<$job>(&$client).await;
        assert!(jobs.is_empty(), "{} unfinished jobs of type {:?}", jobs.len(), <$job as $crate::Job>::TYPE)
    }};
    ($client:expr, $job:ty, $pattern:pat $(if $guard:expr)? $(,)?) => {{
        let jobs = $crate::testing::enqueued::<$job>(&$client).await;
        assert!(
            jobs.iter().any(|job| matches!(job, $pattern $(if $guard)?)),
            "none of {} unfinished jobs of type {:?} matches {}",
            jobs.len(),
            <$job as $crate::Job>::TYPE,
            stringify!($pattern $(if $guard)?)
        )
    }};
}
