//! What a type says about every job of its kind.

use std::time::Duration;

use orchestrix_core::{NewJob, RetryPolicy};
use serde::{Serialize, de::DeserializeOwned};

use crate::Request;

/// A kind of work: the value is the payload, the type says how it is treated.
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
/// `#[derive(Job)]` writes this from attributes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a job",
    label = "this type does not implement `Job`",
    note = "add `#[derive(serde::Serialize, serde::Deserialize, orchestrix::Job)]` to it"
)]
pub trait Job: Serialize + DeserializeOwned + Send + 'static {
    /// What a finished job leaves behind; `()` for nothing.
    type Output: Serialize + DeserializeOwned + Send + 'static;

    /// The name it goes by in the database. Jobs that wait there are found by it, so it should outlive the name of the
    /// Rust type.
    const TYPE: &'static str;

    /// How jobs of this kind are treated unless a request says otherwise.
    const DEFAULTS: Defaults = Defaults::NEW;

    /// A request for this job, to say what is special about it.
    fn request(self) -> Request<Self>
    where
        Self: Sized,
    {
        Request::new(self)
    }
}

/// How jobs of one kind are treated unless a request says otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Defaults {
    /// Where they wait.
    pub queue: &'static str,
    /// How urgent they are, −1000 to 1000, higher first.
    pub priority: i16,
    /// How often they may be tried.
    pub max_attempts: u16,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// How long a silent worker keeps them.
    pub lease: Duration,
    /// How long to wait between attempts.
    pub retry: RetryPolicy,
    /// Words to find them by.
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
