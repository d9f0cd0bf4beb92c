//! The operations of a job source as requests to a server.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use orchestrix_api::{
    Code,
    job::{BatchRequest, BatchResponse, JobRequest, JobStatusView},
    worker::{
        Capacity, HeartbeatRequest, HeartbeatResponse, LeaseRequest, LeaseResponse, LeaseStatusView, LogLineRequest,
        MAX_LINES, OutcomeRequest, OutcomeResponse, OutcomesResponse, ProgressRequest, RegisterRequest,
        RegisterResponse, queue_names,
    },
};
use orchestrix_core::{FieldError, JobState, JobStatus, LeaseToken, NewJob, WorkerName};
use orchestrix_store::{
    ClaimRequest, ClaimedJob, Directive, Enqueued, FinishError, LeaseStatus, LogLine, OutcomeReport, Presence,
    ProgressUpdate, Result, StoreError, Wakeups, WorkerInfo, wakeup::WakeupSender,
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{api_client::ApiClient, chunks::split_into_requests, options::HttpOptions};
use crate::JobSource;

/// The maximum body of a request with log lines: a little less than the server's limit.
const MAX_LOG_BYTES: usize = 2 * 1024 * 1024 - 1024;
/// The maximum body of a request with jobs: a little less than the server's limit.
const MAX_ENQUEUE_BYTES: usize = 32 * 1024 * 1024 - 1024;
/// The maximum body of a request with outcomes. Smaller than the server's limit, to repeat less after a failure.
const MAX_OUTCOME_BYTES: usize = 8 * 1024 * 1024;

/// A [`JobSource`] that calls a server's HTTP API. Its workers run no coordinator.
pub struct HttpSource {
    options: HttpOptions,
    api: ApiClient,
    presence: Mutex<LastPresence>,
}

/// The worker's latest registration and heartbeat. A request that extends leases repeats them, because the API has one
/// heartbeat for both.
#[derive(Default)]
struct LastPresence {
    name: Option<WorkerName>,
    slots: Option<u32>,
    presence: Presence,
}

#[derive(Serialize)]
struct Items {
    items: Vec<Box<RawValue>>,
}

#[derive(Serialize)]
struct Lines {
    lines: Vec<Box<RawValue>>,
}

impl HttpSource {
    /// Creates a source. Sends nothing yet.
    ///
    /// # Errors
    /// If the options are invalid.
    pub fn new(options: HttpOptions) -> Result<Self> {
        let api = ApiClient::new(&options)?;
        Ok(Self { options, api, presence: Mutex::default() })
    }

    /// Checks that the server is available and accepts the API key. Changes nothing.
    pub async fn check(&self) -> Result<()> {
        self.post_outcomes(Vec::new()).await.map(drop)
    }

    fn presence(&self) -> MutexGuard<'_, LastPresence> {
        self.presence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn post_claim(&self, request: &ClaimRequest, wait: Duration) -> Result<(Vec<ClaimedJob>, Instant)> {
        let slots = {
            let mut last = self.presence();
            last.name = Some(request.worker.clone());
            last.slots
        };
        let body = LeaseRequest {
            worker_id: request.worker.to_string(),
            queues: queue_names(&request.queues),
            max: request.limit,
            wait_seconds: wait.as_secs_f64(),
            job_types: request.job_types.as_ref().map(|types| types.iter().map(ToString::to_string).collect()),
            capacity: slots.map(|slots| Capacity { slots: Some(slots) }),
        };
        let sent = Instant::now();
        let response: LeaseResponse = self.api.post("/worker/leases", &body, wait).await?;
        // The leases begin after the long poll. Counting from the request would cut the jobs' timeouts short.
        let waited = Duration::try_from_secs_f64(response.waited_seconds).unwrap_or_default().min(sent.elapsed());
        let mut jobs = Vec::with_capacity(response.leases.len());
        for lease in response.leases {
            match ClaimedJob::try_from(lease) {
                Ok(job) => jobs.push(job),
                // Its lease expires; the other jobs can run.
                Err(error) => tracing::error!(%error, "server sent an invalid lease"),
            }
        }
        Ok((jobs, sent + waited))
    }

    async fn post_heartbeat(&self, tokens: &[LeaseToken]) -> Result<HeartbeatResponse> {
        let body = {
            let last = self.presence();
            let name =
                last.name.as_ref().ok_or_else(|| FieldError::new("workerId", "the worker is not registered yet"))?;
            HeartbeatRequest {
                worker_id: name.to_string(),
                lease_tokens: tokens.iter().map(ToString::to_string).collect(),
                free_slots: last.presence.free_slots,
                draining: last.presence.draining,
                instance_id: last.presence.instance.as_ref().map(ToString::to_string),
                capacity: last.slots.map(|slots| Capacity { slots: Some(slots) }),
            }
        };
        self.api.post("/worker/heartbeat", &body, Duration::ZERO).await
    }

    async fn post_outcomes(&self, items: Vec<Box<RawValue>>) -> Result<Vec<Result<JobState, FinishError>>> {
        let expected = items.len();
        let response: OutcomesResponse =
            self.api.post("/worker/leases/complete-batch", &Items { items }, Duration::ZERO).await?;
        match response.items.len() == expected {
            true => Ok(response.items.into_iter().map(outcome_result).collect()),
            false => Err(StoreError::Backend("the server returned a different number of outcomes".into())),
        }
    }

    /// Posts outcomes. If the server rejects the request as invalid, it has processed none of them: bisects to find the
    /// invalid one.
    async fn post_outcomes_bisecting(&self, items: Vec<Box<RawValue>>) -> Result<Vec<Result<JobState, FinishError>>> {
        match self.post_outcomes(items.clone()).await {
            Err(StoreError::Invalid(mut invalid)) if items.len() == 1 && !invalid.errors.is_empty() => {
                Ok(vec![Err(FinishError::Invalid(invalid.errors.swap_remove(0)))])
            }
            Err(StoreError::Invalid(_)) if items.len() > 1 => {
                let mut first = items;
                let second = first.split_off(first.len() / 2);
                let mut results = Box::pin(self.post_outcomes_bisecting(first)).await?;
                results.extend(Box::pin(self.post_outcomes_bisecting(second)).await?);
                Ok(results)
            }
            result => result,
        }
    }

    async fn post_to_lease(&self, token: LeaseToken, resource: &str, body: String) -> Result<()> {
        let path = format!("/worker/leases/{token}/{resource}");
        self.api.post_raw(&path, body, Duration::ZERO, None).await.map(drop)
    }
}

fn serialization_error(error: serde_json::Error) -> StoreError {
    StoreError::Backend(error.into())
}

fn outcome_result(answer: OutcomeResponse) -> Result<JobState, FinishError> {
    match (answer.status, answer.code) {
        (Some(status), None) => Ok(nearest_state(status)),
        (_, Some(Code::LeaseLost) | None) => Err(FinishError::LeaseLost),
        (_, Some(code)) => {
            let message = answer.detail.unwrap_or_else(|| code.title().into());
            Err(FinishError::Invalid(FieldError::new("outcome", message)))
        }
    }
}

/// The nearest job state: the API has fewer statuses than the store has states.
fn nearest_state(status: JobStatus) -> JobState {
    match status {
        JobStatus::Pending => JobState::Pending,
        JobStatus::Running => JobState::Running,
        JobStatus::Completed => JobState::Completed,
        JobStatus::Failed => JobState::Dead,
        JobStatus::Cancelled => JobState::Cancelled,
    }
}

fn enqueued(job: &JobStatusView) -> Enqueued {
    // The API deliberately does not reveal whether the job existed before.
    Enqueued { id: job.job_id, state: nearest_state(job.status), duplicate: false }
}

#[async_trait]
impl JobSource for HttpSource {
    async fn claim_jobs(&self, request: &ClaimRequest) -> Result<Vec<ClaimedJob>> {
        Ok(self.post_claim(request, Duration::ZERO).await?.0)
    }

    async fn long_poll_jobs(&self, request: &ClaimRequest) -> Result<Option<(Vec<ClaimedJob>, Instant)>> {
        self.post_claim(request, self.options.wait).await.map(Some)
    }

    async fn extend_leases(&self, tokens: &[LeaseToken]) -> Result<Vec<LeaseStatus>> {
        let response = self.post_heartbeat(tokens).await?;
        match response.leases.len() == tokens.len() {
            true => Ok(response.leases.iter().map(LeaseStatusView::status).collect()),
            false => Err(StoreError::Backend("the server returned a different number of leases".into())),
        }
    }

    async fn finish_attempts(&self, items: Vec<OutcomeReport>) -> Result<Vec<Result<JobState, FinishError>>> {
        let mut results = Vec::with_capacity(items.len());
        let requests = items.iter().map(OutcomeRequest::from);
        let requests = split_into_requests(requests, OutcomeReport::MAX_ITEMS, MAX_OUTCOME_BYTES);
        for request in requests.map_err(serialization_error)? {
            results.extend(self.post_outcomes_bisecting(request).await?);
        }
        Ok(results)
    }

    async fn record_progress(&self, token: LeaseToken, update: ProgressUpdate) -> Result<()> {
        let body = serde_json::to_string(&ProgressRequest::from(&update)).map_err(serialization_error)?;
        self.post_to_lease(token, "progress", body).await
    }

    async fn append_logs(&self, token: LeaseToken, lines: Vec<LogLine>) -> Result<()> {
        let requests = split_into_requests(lines.iter().map(LogLineRequest::from), MAX_LINES, MAX_LOG_BYTES);
        for lines in requests.map_err(serialization_error)? {
            let body = serde_json::to_string(&Lines { lines }).map_err(serialization_error)?;
            self.post_to_lease(token, "logs", body).await?;
        }
        Ok(())
    }

    async fn enqueue_jobs(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
        // A request carries one trace context: it is sent only if all jobs share it.
        let trace = jobs.first().and_then(|job| job.traceparent.as_deref());
        let trace = trace.filter(|trace| jobs.iter().all(|job| job.traceparent.as_deref() == Some(trace)));
        let (path, body) = match &jobs[..] {
            [] => return Ok(Vec::new()),
            [job] => ("/jobs", serde_json::to_string(&JobRequest::from(job))),
            jobs => {
                let jobs = jobs.iter().map(JobRequest::from).collect();
                ("/jobs/batch", serde_json::to_string(&BatchRequest { jobs }))
            }
        };
        let body = body.map_err(serialization_error)?;
        if body.len() > MAX_ENQUEUE_BYTES {
            let message = format!("take {} bytes, over the limit of {MAX_ENQUEUE_BYTES} for one request", body.len());
            return Err(FieldError::new("jobs", message).into());
        }
        let response = self.api.post_raw(path, body, Duration::ZERO, trace).await?;
        let accepted = match jobs.len() {
            1 => serde_json::from_slice(&response).map(|job| vec![job]),
            _ => serde_json::from_slice::<BatchResponse>(&response).map(|batch| batch.jobs),
        };
        Ok(accepted.map_err(serialization_error)?.iter().map(enqueued).collect())
    }

    async fn register_worker(&self, worker: &WorkerInfo) -> Result<()> {
        {
            let mut last = self.presence();
            last.name = Some(worker.name.clone());
            last.slots = Some(worker.concurrency);
        }
        let body = RegisterRequest::from(worker);
        self.api.post::<RegisterResponse>("/worker/register", &body, Duration::ZERO).await.map(drop)
    }

    async fn heartbeat_worker(&self, worker: &WorkerName, presence: Presence) -> Result<Option<Directive>> {
        {
            let mut last = self.presence();
            last.name = Some(worker.clone());
            last.presence = presence;
        }
        let response = self.post_heartbeat(&[]).await?;
        // A directive of a newer server is treated as the default.
        Ok(Some(orchestrix_api::worker::parse_directive(&response.directive).unwrap_or_default()))
    }

    async fn remove_worker(&self, worker: &WorkerInfo) -> Result<()> {
        let instance = worker.instance.as_ref().map(ToString::to_string);
        let body = serde_json::json!({ "workerId": worker.name.as_str(), "instanceId": instance }).to_string();
        self.api.post_raw("/worker/leave", body, Duration::ZERO, None).await.map(drop)
    }

    fn job_wakeups(&self) -> Wakeups {
        // Never sends a wake-up: the source has a long poll.
        WakeupSender::default().subscribe()
    }

    fn dedicated_handle(&self) -> Result<Arc<dyn JobSource>> {
        Ok(Arc::new(Self::new(self.options.clone())?))
    }
}

impl std::fmt::Debug for HttpSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpSource").field("options", &self.options).finish_non_exhaustive()
    }
}
