//! Shared helpers: constructors of jobs and schedules, and calls that must succeed.

use std::time::Duration;

use orchestrix_core::{
    Cadence, DependsOn, Event, IdempotencyKey, IllegalTransition, Job, JobId, JobState, JobType, Lifecycle, NewJob,
    NewSchedule, Priority, Queue, RetryPolicy, ScheduleName, Timestamp, WorkerName,
    schedule::{OccurrenceOutcome, Reason},
};

use super::Harness;
use orchestrix_store::{
    ClaimRequest, ClaimedJob, Fence, FinishError, JobFilter, JobSummary, Occurrence, Outcome, OutcomeReport,
    PageRequest, PutResult, QueueDepth, Result, Retention, Schedule, StoreError, SweepResult,
};

/// A job with defaults, except that its back-off has no jitter, so that times are exact.
pub(super) fn job(job_type: &str) -> NewJob {
    NewJob {
        retry: RetryPolicy { jitter: 0.0, ..RetryPolicy::default() },
        ..NewJob::new(JobType::new(job_type).expect("a valid type"))
    }
}

/// A job with these parents.
pub(super) fn child_of<const N: usize>(parents: [JobId; N]) -> NewJob {
    NewJob { depends_on: parents.into_iter().map(DependsOn::Job).collect(), ..job("child") }
}

pub(super) fn reference(name: &str) -> DependsOn {
    DependsOn::Reference(name.into())
}

pub(super) fn queue(name: &str) -> Queue {
    Queue::new(name).expect("a valid queue")
}

pub(super) fn job_type(name: &str) -> JobType {
    JobType::new(name).expect("a valid type")
}

pub(super) fn key(text: &str) -> Option<IdempotencyKey> {
    Some(IdempotencyKey::new(text).expect("a valid key"))
}

pub(super) fn worker(name: &str) -> WorkerName {
    WorkerName::new(name).expect("a valid name")
}

pub(super) fn priority(value: i64) -> Priority {
    Priority::new(value).expect("a valid priority")
}

pub(super) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A fatal failure.
pub(super) fn fatal(error: &str) -> Outcome {
    Outcome::Fail { error: error.into(), retryable: false, retry_after: None }
}

/// The fields that an error names.
pub(super) fn bad_fields<T>(result: Result<T>) -> Vec<String> {
    match result {
        Err(StoreError::Invalid(invalid)) => invalid.errors.into_iter().map(|error| error.field).collect(),
        Err(error) => panic!("failed with another error: {error:?}"),
        Ok(_) => panic!("an invalid request was accepted"),
    }
}

/// The event that the state of a job did not allow, and that state.
pub(super) fn illegal<T>(result: Result<T>) -> (JobState, Event) {
    match result {
        Err(StoreError::IllegalTransition(IllegalTransition { from, event })) => (from, event),
        Err(error) => panic!("failed with another error: {error:?}"),
        Ok(_) => panic!("an illegal transition was accepted"),
    }
}

/// Whether a call failed because the lease is lost.
pub(super) fn lease_lost<T>(result: &Result<T>) -> bool {
    matches!(result, Err(StoreError::LeaseLost))
}

/// Whether a call failed because the job does not exist.
pub(super) fn not_found<T>(result: &Result<T>, id: JobId) -> bool {
    matches!(result, Err(StoreError::JobNotFound(unknown)) if *unknown == id)
}

pub(super) fn schedule_name(name: &str) -> ScheduleName {
    ScheduleName::new(name).expect("a valid name")
}

/// The schedule "s" with this interval and defaults.
pub(super) fn every(seconds: u64) -> NewSchedule {
    let cadence = Cadence::every(secs(seconds)).expect("a valid interval");
    NewSchedule::new(schedule_name("s"), cadence, job("tick"))
}

/// An occurrence: nominal time, outcome and reason.
pub(super) type Line = (Timestamp, OccurrenceOutcome, Option<Reason>);

pub(super) fn fired(nominal: Timestamp) -> Line {
    (nominal, OccurrenceOutcome::Fired, None)
}

pub(super) fn fired_for(nominal: Timestamp, reason: Reason) -> Line {
    (nominal, OccurrenceOutcome::Fired, Some(reason))
}

pub(super) fn overlapped(nominal: Timestamp) -> Line {
    (nominal, OccurrenceOutcome::Skipped, Some(Reason::Overlap))
}

pub(super) fn missed(nominal: Timestamp) -> Line {
    (nominal, OccurrenceOutcome::Missed, Some(Reason::Late))
}

/// The order of lists.
pub(super) fn newest_first(ids: impl IntoIterator<Item = JobId>) -> Vec<JobId> {
    let mut ids: Vec<JobId> = ids.into_iter().collect();
    ids.sort_unstable_by(|a, b| b.cmp(a));
    ids
}

/// An id that no job has.
pub(super) fn unknown_id() -> JobId {
    JobId::new(Timestamp::UNIX_EPOCH, rand::random())
}

impl Harness {
    pub(super) async fn now(&self) -> Timestamp {
        self.clock.now().await
    }

    pub(super) async fn advance(&self, by: Duration) {
        self.clock.advance(by).await;
    }

    pub(super) async fn enqueue(&self, job: NewJob) -> JobId {
        self.store.enqueue_job(job).await.expect("a valid job").id
    }

    pub(super) async fn enqueue_many(&self, jobs: Vec<NewJob>) -> Vec<JobId> {
        let enqueued = self.store.enqueue_jobs(jobs).await.expect("valid jobs");
        enqueued.into_iter().map(|job| job.id).collect()
    }

    pub(super) async fn job(&self, id: JobId) -> Job {
        self.store.job(id).await.expect("a store that answers").expect("a job that exists")
    }

    pub(super) async fn state(&self, id: JobId) -> JobState {
        self.job(id).await.state
    }

    pub(super) async fn claim(&self, request: &ClaimRequest) -> Vec<ClaimedJob> {
        self.store.claim_jobs(request).await.expect("a valid request")
    }

    pub(super) async fn claim_all(&self) -> Vec<ClaimedJob> {
        self.claim(&ClaimRequest::any(worker("w"), ClaimRequest::MAX_LIMIT)).await
    }

    /// Claims the only claimable job.
    pub(super) async fn claim_one(&self) -> ClaimedJob {
        let mut claimed = self.claim_all().await;
        assert_eq!(claimed.len(), 1, "exactly one job should be claimable");
        claimed.remove(0)
    }

    /// Enqueues a job and claims it.
    pub(super) async fn start(&self, job: NewJob) -> ClaimedJob {
        let id = self.enqueue(job).await;
        let claimed = self.claim_one().await;
        assert_eq!(claimed.id(), id, "the job just enqueued should be the claimable one");
        claimed
    }

    /// Advances the clock until a scheduled or retrying job is due, and claims it.
    pub(super) async fn start_again(&self, id: JobId) -> ClaimedJob {
        let wait = self.job(id).await.eligible_at.duration_since(self.now().await);
        self.advance(wait.try_into().unwrap_or_default()).await;
        self.promote().await;
        self.claim_one().await
    }

    pub(super) async fn finish(&self, claimed: &ClaimedJob, outcome: Outcome) -> Result<JobState, FinishError> {
        let items = vec![OutcomeReport { token: claimed.token, outcome }];
        let mut answers = self.store.finish_attempts(items).await.expect("a store that answers");
        assert_eq!(answers.len(), 1, "one report, one answer");
        answers.remove(0)
    }

    /// Ends an attempt with a current token.
    pub(super) async fn end(&self, claimed: &ClaimedJob, outcome: Outcome) -> JobState {
        self.finish(claimed, outcome).await.expect("a current token")
    }

    /// Enqueues a job and lets it die.
    pub(super) async fn dead(&self, job: NewJob) -> JobId {
        let claimed = self.start(job).await;
        assert_eq!(self.end(&claimed, fatal("no use")).await, JobState::Dead);
        claimed.id()
    }

    pub(super) async fn promote(&self) -> SweepResult {
        self.store.promote_jobs(Fence::NONE, 1_000).await.expect("a valid limit")
    }

    /// Sweeps until no dependent is left: a store may bound what the call that finished a parent resolves.
    pub(super) async fn unblock_all(&self) {
        let sweep = || async { self.store.unblock_jobs(Fence::NONE, 1_000).await.expect("a valid limit") };
        while sweep().await != SweepResult::default() {}
    }

    pub(super) async fn expire(&self) -> SweepResult {
        self.store.expire_jobs(Fence::NONE, 1_000).await.expect("a valid limit")
    }

    pub(super) async fn reap(&self) -> SweepResult {
        self.store.reap_leases(Fence::NONE, 1_000, Lifecycle::CRASH_LOOP).await.expect("a valid limit")
    }

    pub(super) async fn time_out(&self) -> SweepResult {
        self.store.time_out_attempts(Fence::NONE, 1_000).await.expect("a valid limit")
    }

    /// Lets the lease of a job expire, and reaps it.
    pub(super) async fn lose(&self, claimed: &ClaimedJob) {
        self.advance(claimed.lease).await;
        assert_eq!(self.reap().await.count, 1, "the lease should have expired");
    }

    /// Advances the clock past every retention and prunes. Backends may prune by whole days.
    pub(super) async fn prune_finished(&self) {
        let retention = Retention::default();
        self.advance(retention.dead + secs(2 * 24 * 3600)).await;
        while self.store.prune_history(Fence::NONE, &retention, 1_000).await.expect("a valid limit").more {}
    }

    /// All jobs that match, over all pages.
    pub(super) async fn list(&self, filter: &JobFilter) -> Vec<JobSummary> {
        let mut all = Vec::new();
        let mut page = PageRequest::first(1_000);
        loop {
            let part = self.store.list_jobs(filter, &page).await.expect("a valid page");
            all.extend(part.items);
            let Some(next) = part.next else { return all };
            page = PageRequest::after(next, 1_000);
        }
    }

    /// The ids of all jobs that match.
    pub(super) async fn listed(&self, filter: &JobFilter) -> Vec<JobId> {
        self.list(filter).await.into_iter().map(|job| job.id).collect()
    }

    pub(super) async fn depths(&self) -> Vec<QueueDepth> {
        let page = self.store.queue_depths(&PageRequest::first(1_000)).await.expect("a valid page");
        assert_eq!(page.next, None, "more queues than a page");
        page.items
    }

    pub(super) async fn put(&self, schedule: NewSchedule) -> PutResult {
        self.store.put_schedule(None, schedule).await.expect("a valid schedule")
    }

    /// Creates the schedule "s" and returns its first nominal time.
    pub(super) async fn begin(&self, schedule: NewSchedule) -> Timestamp {
        assert_eq!(self.put(schedule).await, PutResult::Created);
        self.schedule().await.next_nominal.expect("a next time")
    }

    /// The schedule "s".
    pub(super) async fn schedule(&self) -> Schedule {
        let schedule = self.store.schedule(None, &schedule_name("s")).await.expect("a store that answers");
        schedule.expect("a schedule that exists")
    }

    pub(super) async fn fire(&self) -> SweepResult {
        self.store.fire_schedules(Fence::NONE, 1_000).await.expect("a valid limit")
    }

    /// Advances the clock to `time`.
    pub(super) async fn pass_until(&self, time: Timestamp) {
        let wait = time.duration_since(self.now().await);
        self.advance(wait.try_into().expect("a time in the future")).await;
    }

    /// Advances the clock to `time` and fires what is due.
    pub(super) async fn fire_at(&self, time: Timestamp) -> SweepResult {
        self.pass_until(time).await;
        self.fire().await
    }

    /// The ledger of the schedule "s", oldest first.
    pub(super) async fn ledger(&self) -> Vec<Occurrence> {
        let page = PageRequest::first(1_000);
        let page = self.store.list_occurrences(None, &schedule_name("s"), &page).await.expect("a schedule that exists");
        assert_eq!(page.next, None, "longer than a page");
        page.items.into_iter().rev().collect()
    }

    /// The occurrences of the schedule "s", oldest first.
    pub(super) async fn lines(&self) -> Vec<Line> {
        self.ledger().await.into_iter().map(|line| (line.nominal, line.outcome, line.reason)).collect()
    }

    /// The job of a nominal time that fired.
    pub(super) async fn job_of(&self, nominal: Timestamp) -> Job {
        let line =
            self.ledger().await.into_iter().find(|line| line.nominal == nominal).expect("an occurrence of its own");
        self.job(line.job.expect("an occurrence that fired")).await
    }
}
