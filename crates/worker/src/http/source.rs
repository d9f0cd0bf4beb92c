//! The calls of a worker, as requests to a server.

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
    ProgressUpdate, Result, Store, StoreError, Wakeups, WorkerInfo, wakeup::WakeupSender,
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{call::Caller, options::HttpOptions, parts::parts};
use crate::JobSource;

/// The largest body of a request, and of one that carries many outcomes: a little less than the server takes.
const ONE: usize = 2 * 1024 * 1024 - 1024;
const MANY: usize = 32 * 1024 * 1024 - 1024;
/// As much as is lost when a request has to be repeated.
const CALL: usize = 8 * 1024 * 1024;

/// Jobs from a server. A worker over it takes no part in leading.
pub struct HttpSource {
    options: HttpOptions,
    caller: Caller,
    about: Mutex<About>,
}

/// What was last said of the worker. A heartbeat for leases says it again.
#[derive(Default)]
struct About {
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
    /// Jobs from this server. Nothing is sent yet.
    ///
    /// # Errors
    /// If the options make no sense.
    pub fn new(options: HttpOptions) -> Result<Self> {
        let caller = Caller::new(&options)?;
        Ok(Self { options, caller, about: Mutex::default() })
    }

    /// Asks whether the server is there and lets this worker in; changes nothing.
    pub async fn check(&self) -> Result<()> {
        self.outcomes(Vec::new()).await.map(drop)
    }

    fn about(&self) -> MutexGuard<'_, About> {
        self.about.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, request: &ClaimRequest, wait: Duration) -> Result<(Vec<ClaimedJob>, Instant)> {
        let slots = {
            let mut about = self.about();
            about.name = Some(request.worker.clone());
            about.slots
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
        let answer: LeaseResponse = self.caller.post("/worker/leases", &body, wait).await?;
        // Not from when it was sent: that may be long ago, and would count against the time of the jobs.
        let waited = Duration::try_from_secs_f64(answer.waited_seconds).unwrap_or_default().min(sent.elapsed());
        let mut jobs = Vec::with_capacity(answer.leases.len());
        for lease in answer.leases {
            match ClaimedJob::try_from(lease) {
                Ok(job) => jobs.push(job),
                // Its lease runs out; the others can be worked on.
                Err(error) => tracing::error!(%error, "a lease cannot be read"),
            }
        }
        Ok((jobs, sent + waited))
    }

    async fn beat(&self, tokens: &[LeaseToken]) -> Result<HeartbeatResponse> {
        let body = {
            let about = self.about();
            let name = about.name.as_ref().ok_or_else(|| FieldError::new("workerId", "is not known yet"))?;
            HeartbeatRequest {
                worker_id: name.to_string(),
                lease_tokens: tokens.iter().map(ToString::to_string).collect(),
                free_slots: about.presence.free_slots,
                draining: about.presence.draining,
                instance_id: about.presence.instance.as_ref().map(ToString::to_string),
                capacity: about.slots.map(|slots| Capacity { slots: Some(slots) }),
            }
        };
        self.caller.post("/worker/heartbeat", &body, Duration::ZERO).await
    }

    async fn outcomes(&self, items: Vec<Box<RawValue>>) -> Result<Vec<Result<JobState, FinishError>>> {
        let expected = items.len();
        let answer: OutcomesResponse =
            self.caller.post("/worker/leases/complete-batch", &Items { items }, Duration::ZERO).await?;
        match answer.items.len() == expected {
            true => Ok(answer.items.into_iter().map(outcome).collect()),
            false => Err(StoreError::Backend("the server answered about other outcomes".into())),
        }
    }

    // One that the server will not read spoils the request for all; nothing of it was done then. So it is found by halves.
    async fn tell(&self, items: Vec<Box<RawValue>>) -> Result<Vec<Result<JobState, FinishError>>> {
        match self.outcomes(items.clone()).await {
            Err(StoreError::Invalid(mut invalid)) if items.len() == 1 && !invalid.errors.is_empty() => {
                Ok(vec![Err(FinishError::Invalid(invalid.errors.swap_remove(0)))])
            }
            Err(StoreError::Invalid(_)) if items.len() > 1 => {
                let mut first = items;
                let second = first.split_off(first.len() / 2);
                let mut answers = Box::pin(self.tell(first)).await?;
                answers.extend(Box::pin(self.tell(second)).await?);
                Ok(answers)
            }
            answer => answer,
        }
    }

    async fn say(&self, token: LeaseToken, what: &str, body: String) -> Result<()> {
        let path = format!("/worker/leases/{token}/{what}");
        self.caller.send(&path, body, Duration::ZERO, None).await.map(drop)
    }
}

fn unwritable(error: serde_json::Error) -> StoreError {
    StoreError::Backend(error.into())
}

fn outcome(answer: OutcomeResponse) -> Result<JobState, FinishError> {
    match (answer.status, answer.code) {
        (Some(status), None) => Ok(state(status)),
        (_, Some(Code::LeaseLost) | None) => Err(FinishError::LeaseLost),
        (_, Some(code)) => {
            let message = answer.detail.unwrap_or_else(|| code.title().into());
            Err(FinishError::Invalid(FieldError::new("outcome", message)))
        }
    }
}

// Outside there are fewer words than inside; the nearest is meant.
fn state(status: JobStatus) -> JobState {
    match status {
        JobStatus::Pending => JobState::Pending,
        JobStatus::Running => JobState::Running,
        JobStatus::Completed => JobState::Completed,
        JobStatus::Failed => JobState::Dead,
        JobStatus::Cancelled => JobState::Cancelled,
    }
}

fn enqueued(job: &JobStatusView) -> Enqueued {
    // On purpose nobody is told whether it was there before.
    Enqueued { id: job.job_id, state: state(job.status), duplicate: false }
}

#[async_trait]
impl JobSource for HttpSource {
    async fn lease(&self, request: &ClaimRequest) -> Result<Vec<ClaimedJob>> {
        Ok(self.ask(request, Duration::ZERO).await?.0)
    }

    async fn await_jobs(&self, request: &ClaimRequest) -> Result<Option<(Vec<ClaimedJob>, Instant)>> {
        self.ask(request, self.options.wait).await.map(Some)
    }

    async fn extend(&self, tokens: &[LeaseToken]) -> Result<Vec<LeaseStatus>> {
        let answer = self.beat(tokens).await?;
        match answer.leases.len() == tokens.len() {
            true => Ok(answer.leases.iter().map(LeaseStatusView::status).collect()),
            false => Err(StoreError::Backend("the server answered about other leases".into())),
        }
    }

    async fn report(&self, items: Vec<OutcomeReport>) -> Result<Vec<Result<JobState, FinishError>>> {
        let mut answers = Vec::with_capacity(items.len());
        let parts =
            parts(items.iter().map(OutcomeRequest::from), OutcomeReport::MAX_ITEMS, CALL).map_err(unwritable)?;
        for part in parts {
            answers.extend(self.tell(part).await?);
        }
        Ok(answers)
    }

    async fn progress(&self, token: LeaseToken, update: ProgressUpdate) -> Result<()> {
        let body = serde_json::to_string(&ProgressRequest::from(&update)).map_err(unwritable)?;
        self.say(token, "progress", body).await
    }

    async fn append_logs(&self, token: LeaseToken, lines: Vec<LogLine>) -> Result<()> {
        for lines in parts(lines.iter().map(LogLineRequest::from), MAX_LINES, ONE).map_err(unwritable)? {
            let body = serde_json::to_string(&Lines { lines }).map_err(unwritable)?;
            self.say(token, "logs", body).await?;
        }
        Ok(())
    }

    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
        // One request is in one trace; jobs of several have to do without.
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
        let body = body.map_err(unwritable)?;
        if body.len() > MANY {
            let message = format!("are {} bytes together, more than one request may have", body.len());
            return Err(FieldError::new("jobs", message).into());
        }
        let answer = self.caller.send(path, body, Duration::ZERO, trace).await?;
        let accepted = match jobs.len() {
            1 => serde_json::from_slice(&answer).map(|job| vec![job]),
            _ => serde_json::from_slice::<BatchResponse>(&answer).map(|answer| answer.jobs),
        };
        Ok(accepted.map_err(unwritable)?.iter().map(enqueued).collect())
    }

    async fn register(&self, worker: &WorkerInfo) -> Result<()> {
        {
            let mut about = self.about();
            about.name = Some(worker.name.clone());
            about.slots = Some(worker.concurrency);
        }
        let body = RegisterRequest::from(worker);
        self.caller.post::<RegisterResponse>("/worker/register", &body, Duration::ZERO).await.map(drop)
    }

    async fn show(&self, worker: &WorkerName, presence: Presence) -> Result<Option<Directive>> {
        {
            let mut about = self.about();
            about.name = Some(worker.clone());
            about.presence = presence;
        }
        let answer = self.beat(&[]).await?;
        // A word that is not known yet changes nothing.
        Ok(Some(orchestrix_api::worker::parse_directive(&answer.directive).unwrap_or_default()))
    }

    async fn leave(&self, worker: &WorkerInfo) -> Result<()> {
        let instance = worker.instance.as_ref().map(ToString::to_string);
        let body = serde_json::json!({ "workerId": worker.name.as_str(), "instanceId": instance }).to_string();
        self.caller.send("/worker/leave", body, Duration::ZERO, None).await.map(drop)
    }

    fn wakeups(&self) -> Wakeups {
        // None come: whoever wants jobs waits at the server.
        WakeupSender::default().subscribe()
    }

    fn apart(&self) -> Result<Arc<dyn JobSource>> {
        Ok(Arc::new(Self::new(self.options.clone())?))
    }

    fn store(&self) -> Option<&Arc<dyn Store>> {
        None
    }
}

impl std::fmt::Debug for HttpSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpSource").field("options", &self.options).finish_non_exhaustive()
    }
}
