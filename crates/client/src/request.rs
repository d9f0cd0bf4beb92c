//! What is special about one job.

use std::{fmt, marker::PhantomData, time::Duration};

use orchestrix_core::{
    DependsOn, FieldError, IdempotencyKey, Invalid, JobType, Json, LimitKey, NewJob, OnDependencyFailure, Priority,
    Queue, Resources, RetryPolicy, Start, Tag, Tenant, Timestamp,
};

use crate::Job;

/// A job with what is special about it. Whatever is wrong with it is said when it is recorded, all at once.
///
/// ```
/// # use std::time::Duration;
/// # use orchestrix_client::{Job, Request};
/// # #[derive(serde::Serialize, serde::Deserialize)] struct Remind { whom: String }
/// # impl Job for Remind { type Output = (); const TYPE: &'static str = "remind"; }
/// let request = Remind { whom: "Ada".into() }
///     .request()
///     .delay(Duration::from_secs(3600))
///     .priority(10)
///     .idempotency_key("remind-ada-2026-11-16");
/// ```
pub struct Request<J> {
    job: NewJob,
    errors: Vec<FieldError>,
    kind: PhantomData<fn() -> J>,
}

impl<J: Job> Request<J> {
    /// A request with the defaults of its kind.
    #[allow(clippy::needless_pass_by_value, reason = "a request stands for the job, which has no further use")]
    pub fn new(job: J) -> Self {
        let mut request = Self {
            job: NewJob {
                max_attempts: J::DEFAULTS.max_attempts,
                timeout: J::DEFAULTS.timeout,
                lease: J::DEFAULTS.lease,
                retry: J::DEFAULTS.retry,
                ..NewJob::new(JobType::trusted(J::TYPE))
            },
            errors: Vec::new(),
            kind: PhantomData,
        };
        request.job.job_type = request.take(JobType::new(J::TYPE), JobType::trusted(J::TYPE));
        request.job.payload = request.take(Json::of("payload", &job), Json::null());
        request = request.priority(J::DEFAULTS.priority);
        request = request.queue(J::DEFAULTS.queue);
        J::DEFAULTS.tags.iter().fold(request, |request, tag| request.tag(tag))
    }
}

impl<J> Request<J> {
    fn take<T>(&mut self, value: Result<T, FieldError>, otherwise: T) -> T {
        value.unwrap_or_else(|error| {
            self.errors.push(error);
            otherwise
        })
    }

    /// Makes a repeat of the same request the same job, per tenant and type, for ever.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl AsRef<str>) -> Self {
        self.job.idempotency_key = self.take(IdempotencyKey::new(key).map(Some), None);
        self
    }

    /// Where it waits.
    #[must_use]
    pub fn queue(mut self, queue: impl AsRef<str>) -> Self {
        self.job.queue = self.take(Queue::new(queue), Queue::default());
        self
    }

    /// How urgent it is: −1000 to 1000, higher first.
    #[must_use]
    pub fn priority(mut self, priority: i16) -> Self {
        self.job.priority = self.take(Priority::new(priority.into()), Priority::default());
        self
    }

    /// Starts so long after it was recorded, by the database's clock.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.job.start = Start::After(delay);
        self
    }

    /// Starts at this time; at once if it has passed.
    #[must_use]
    pub fn run_at(mut self, time: Timestamp) -> Self {
        self.job.start = Start::At(time);
        self
    }

    /// How often it may be tried.
    #[must_use]
    pub fn max_attempts(mut self, attempts: u16) -> Self {
        self.job.max_attempts = attempts;
        self
    }

    /// How long one attempt may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.job.timeout = Some(timeout);
        self
    }

    /// How long a silent worker keeps it.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.job.lease = lease;
        self
    }

    /// How long to wait between attempts.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.job.retry = retry;
        self
    }

    /// Waits for another job of the same tenant: its id, its handle, or its ticket in the same batch. May be said several times.
    #[must_use]
    pub fn depends_on(mut self, parent: impl Into<DependsOn>) -> Self {
        self.job.depends_on.push(parent.into());
        self
    }

    /// What becomes of it when a job it waits for died or was cancelled.
    #[must_use]
    pub fn on_dependency_failure(mut self, policy: OnDependencyFailure) -> Self {
        self.job.on_dependency_failure = policy;
        self
    }

    /// Whose job it is.
    #[must_use]
    pub fn tenant(mut self, tenant: impl AsRef<str>) -> Self {
        self.job.tenant = self.take(Tenant::new(tenant), Tenant::default());
        self
    }

    /// Shares a concurrency limit with every job of this key.
    #[must_use]
    pub fn concurrency_key(mut self, key: impl AsRef<str>) -> Self {
        self.job.concurrency_key = self.take(LimitKey::new(key).map(Some), None);
        self
    }

    /// Shares a rate limit with every job of this key.
    #[must_use]
    pub fn rate_limit_key(mut self, key: impl AsRef<str>) -> Self {
        self.job.rate_limit_key = self.take(LimitKey::new(key).map(Some), None);
        self
    }

    /// What it needs of its worker.
    #[must_use]
    pub fn resources(mut self, resources: Resources) -> Self {
        self.job.resources = resources;
        self
    }

    /// A word to find it by. May be said several times.
    #[must_use]
    pub fn tag(mut self, tag: impl AsRef<str>) -> Self {
        if let Some(tag) = self.take(Tag::new(tag).map(Some), None) {
            self.job.tags.push(tag);
        }
        self
    }

    /// Your id for the larger whole; on every log line of the job.
    #[must_use]
    pub fn correlation_id(mut self, id: impl Into<String>) -> Self {
        self.job.correlation_id = Some(id.into());
        self
    }

    /// The W3C trace context it belongs to.
    #[must_use]
    pub fn traceparent(mut self, traceparent: impl Into<String>) -> Self {
        self.job.traceparent = Some(traceparent.into());
        self
    }

    /// Cancelled if it has not started by then.
    #[must_use]
    pub fn expires_at(mut self, time: Timestamp) -> Self {
        self.job.expires_at = Some(time);
        self
    }

    /// Recorded, but not run until it is released.
    #[must_use]
    pub fn hold(mut self) -> Self {
        self.job.hold = true;
        self
    }

    /// The plain job, ready to be recorded; or everything that is wrong with it.
    pub fn build(self) -> Result<NewJob, Invalid> {
        let mut errors = self.errors;
        if let Err(invalid) = self.job.validate() {
            errors.extend(invalid.errors);
        }
        Invalid::check(errors)?;
        Ok(self.job)
    }

    pub(crate) fn named(mut self, reference: String) -> Self {
        self.job.reference = Some(reference);
        self
    }
}

impl<J: Job> From<J> for Request<J> {
    fn from(job: J) -> Self {
        Self::new(job)
    }
}

impl<J> fmt::Debug for Request<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("job", &self.job).field("errors", &self.errors).finish()
    }
}
