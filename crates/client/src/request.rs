//! The options of one job.

use std::{fmt, marker::PhantomData, time::Duration};

use orchestrix_core::{
    DependsOn, FieldError, IdempotencyKey, Invalid, JobType, Json, LimitKey, NewJob, OnDependencyFailure, Priority,
    Queue, Resources, RetryPolicy, Start, Tag, Tenant, Timestamp,
};

use crate::Job;

/// A job and its options. Invalid options are reported together when the job is enqueued.
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
    /// Creates a request with the default options of the job type.
    #[allow(clippy::needless_pass_by_value, reason = "a request replaces the job, which has no further use")]
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
        request.job.job_type = request.check(JobType::new(J::TYPE), JobType::trusted(J::TYPE));
        request.job.payload = request.check(Json::of("payload", &job), Json::null());
        request = request.priority(J::DEFAULTS.priority);
        request = request.queue(J::DEFAULTS.queue);
        J::DEFAULTS.tags.iter().fold(request, |request, tag| request.tag(tag))
    }
}

impl<J> Request<J> {
    /// Returns the value, or notes its error and returns the fallback.
    fn check<T>(&mut self, value: Result<T, FieldError>, fallback: T) -> T {
        value.unwrap_or_else(|error| {
            self.errors.push(error);
            fallback
        })
    }

    /// Sets the idempotency key. Enqueueing the same key again returns the same job, per tenant and job type, without
    /// expiry.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl AsRef<str>) -> Self {
        self.job.idempotency_key = self.check(IdempotencyKey::new(key).map(Some), None);
        self
    }

    /// Sets the queue.
    #[must_use]
    pub fn queue(mut self, queue: impl AsRef<str>) -> Self {
        self.job.queue = self.check(Queue::new(queue), Queue::default());
        self
    }

    /// Sets the priority, −1000 to 1000. Higher runs first.
    #[must_use]
    pub fn priority(mut self, priority: i16) -> Self {
        self.job.priority = self.check(Priority::new(priority.into()), Priority::default());
        self
    }

    /// Delays the start after enqueueing, by the store's clock.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.job.start = Start::After(delay);
        self
    }

    /// Starts the job at this time, or at once if it has passed.
    #[must_use]
    pub fn run_at(mut self, time: Timestamp) -> Self {
        self.job.start = Start::At(time);
        self
    }

    /// Sets the maximum number of attempts.
    #[must_use]
    pub fn max_attempts(mut self, attempts: u16) -> Self {
        self.job.max_attempts = attempts;
        self
    }

    /// Sets the time limit of one attempt.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.job.timeout = Some(timeout);
        self
    }

    /// Sets how long a worker owns the job without extending its lease.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.job.lease = lease;
        self
    }

    /// Sets the back-off between attempts.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.job.retry = retry;
        self
    }

    /// Makes the job depend on another job of the same tenant, given by its id, its handle or its entry in the same
    /// batch. Can be called repeatedly.
    #[must_use]
    pub fn depends_on(mut self, parent: impl Into<DependsOn>) -> Self {
        self.job.depends_on.push(parent.into());
        self
    }

    /// Sets what happens if a job that it depends on is dead or cancelled.
    #[must_use]
    pub fn on_dependency_failure(mut self, policy: OnDependencyFailure) -> Self {
        self.job.on_dependency_failure = policy;
        self
    }

    /// Sets the tenant.
    #[must_use]
    pub fn tenant(mut self, tenant: impl AsRef<str>) -> Self {
        self.job.tenant = self.check(Tenant::new(tenant), Tenant::default());
        self
    }

    /// Sets the key of a concurrency limit. Stored with the job; not enforced yet.
    #[must_use]
    pub fn concurrency_key(mut self, key: impl AsRef<str>) -> Self {
        self.job.concurrency_key = self.check(LimitKey::new(key).map(Some), None);
        self
    }

    /// Sets the key of a rate limit. Stored with the job; not enforced yet.
    #[must_use]
    pub fn rate_limit_key(mut self, key: impl AsRef<str>) -> Self {
        self.job.rate_limit_key = self.check(LimitKey::new(key).map(Some), None);
        self
    }

    /// Sets the resources that the job needs. Stored with the job; not enforced yet.
    #[must_use]
    pub fn resources(mut self, resources: Resources) -> Self {
        self.job.resources = resources;
        self
    }

    /// Adds a tag to search the job by. Can be called repeatedly.
    #[must_use]
    pub fn tag(mut self, tag: impl AsRef<str>) -> Self {
        if let Some(tag) = self.check(Tag::new(tag).map(Some), None) {
            self.job.tags.push(tag);
        }
        self
    }

    /// Sets the application's id for the larger unit of work. It appears on every log event of the job.
    #[must_use]
    pub fn correlation_id(mut self, id: impl Into<String>) -> Self {
        self.job.correlation_id = Some(id.into());
        self
    }

    /// Sets the W3C trace context that the job belongs to.
    #[must_use]
    pub fn traceparent(mut self, traceparent: impl Into<String>) -> Self {
        self.job.traceparent = Some(traceparent.into());
        self
    }

    /// Cancels the job if it has not started by this time.
    #[must_use]
    pub fn expires_at(mut self, time: Timestamp) -> Self {
        self.job.expires_at = Some(time);
        self
    }

    /// Enqueues the job on hold: it does not run until it is released.
    #[must_use]
    pub fn hold(mut self) -> Self {
        self.job.hold = true;
        self
    }

    /// Builds the untyped job.
    ///
    /// # Errors
    /// Lists every invalid option.
    pub fn build(self) -> Result<NewJob, Invalid> {
        let mut errors = self.errors;
        if let Err(invalid) = self.job.validate() {
            errors.extend(invalid.errors);
        }
        Invalid::check(errors)?;
        Ok(self.job)
    }

    pub(crate) fn reference(mut self, reference: String) -> Self {
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
