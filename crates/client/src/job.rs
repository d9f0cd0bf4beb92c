//! The trait of job types, and their default options.

use std::time::Duration;

use orchestrix_core::{NewJob, RetryPolicy};
use serde::{Serialize, de::DeserializeOwned};

use crate::Request;

/// A type of job. The value is the payload; the type carries the job type's name and default options.
///
/// ```
/// # use orchestrix_client::{Defaults, Job};
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct SendEmail {
///     to: String,
/// }
///
/// impl Job for SendEmail {
///     type Output = ();
///     const TYPE: &'static str = "send-email";
///     const DEFAULTS: Defaults = Defaults { queue: "mail", max_attempts: 5, ..Defaults::NEW };
/// }
/// ```
///
/// `#[derive(Job)]` implements it from attributes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a job",
    label = "this type does not implement `Job`",
    note = "add `#[derive(serde::Serialize, serde::Deserialize, orchestrix::Job)]` to it"
)]
pub trait Job: Serialize + DeserializeOwned + Send + 'static {
    /// The job's result; `()` for none.
    type Output: Serialize + DeserializeOwned + Send + 'static;

    /// The job type's name in the store. Enqueued jobs are matched to handlers by it, so keep it when the Rust type is
    /// renamed.
    const TYPE: &'static str;

    /// The default options of jobs of this type. A [`Request`] overrides them.
    const DEFAULTS: Defaults = Defaults::NEW;

    /// Starts a request for this job, to set options.
    fn request(self) -> Request<Self>
    where
        Self: Sized,
    {
        Request::new(self)
    }
}

/// The default options of one job type. A [`Request`] overrides them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Defaults {
    /// The queue.
    pub queue: &'static str,
    /// The priority, −1000 to 1000. Higher runs first.
    pub priority: i16,
    /// The maximum number of attempts.
    pub max_attempts: u16,
    /// The time limit of one attempt.
    pub timeout: Option<Duration>,
    /// How long a worker owns the job without extending its lease.
    pub lease: Duration,
    /// The back-off between attempts.
    pub retry: RetryPolicy,
    /// Tags to search jobs by.
    pub tags: &'static [&'static str],
}

impl Defaults {
    /// The defaults of the platform: queue `default`, priority 0, 10 attempts, no timeout, a lease of 30 s.
    pub const NEW: Self = Self {
        queue: "default",
        priority: 0,
        max_attempts: NewJob::DEFAULT_ATTEMPTS,
        timeout: None,
        lease: NewJob::DEFAULT_LEASE,
        retry: RetryPolicy::DEFAULT,
        tags: &[],
    };
}
