//! `GET /jobs/{jobId}/events`

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Extension,
    extract::State,
    http::HeaderMap,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::stream;
use orchestrix_api::{
    Problem,
    job::{JobView, ProgressView},
    schema::Id,
};
use orchestrix_core::{FieldError, Invalid, JobId, JobStatus};
use orchestrix_store::{JobSummary, LogEntry, StoreError};
use serde_json::{Value, json};
use tokio::time::{Interval, interval};

use super::subscription_quota::SubscriptionPermit;
use crate::{
    App, admission::AdmissionPermit, api_error::ApiError, auth::principal::Principal, jobs::parse_id,
    openapi::problems::JobNotFound, params::PathParam, watcher::StatusWatch,
};

/// How often the progress and the log of a running job are read.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How soon a client should reconnect.
const RETRY: Duration = Duration::from_secs(1);
/// How soon a client should reconnect after the end of the job, when nothing more will come.
const RETRY_AFTER_END: Duration = Duration::from_secs(60);
/// How often a comment is sent on an idle stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The header in which a reconnecting browser sends the id of the last event.
const LAST_EVENT_ID: &str = "last-event-id";

/// Streams a job's status, progress and log until its end, as server-sent events.
#[utoipa::path(
    get,
    path = "/jobs/{jobId}/events",
    tag = "jobs",
    operation_id = "followJob",
    params(
        ("jobId" = Id, Path, description = "The job's id."),
        (
            "Last-Event-ID" = Option<i64>, Header, minimum = 0,
            description = "The id of the last event received. The log continues after it.",
        ),
    ),
    responses(
        (
            status = 200, content_type = "text/event-stream", body = String,
            description = "Events `status` (the body of `GET /jobs/{jobId}`, now and at every change), `progress` \
                (`percent`, `message`) and `log` (`seq`, `at`, `level`, `message`). The stream ends after the job's \
                last log line and its final status, or when the key is revoked or expires.",
        ),
        (status = 404, response = JobNotFound),
    ),
)]
pub(crate) async fn events(
    State(app): State<Arc<App>>,
    caller: Principal,
    PathParam(text): PathParam,
    headers: HeaderMap,
    Extension(admission): Extension<AdmissionPermit>,
) -> Result<Response, ApiError> {
    let last_seq = last_event_id(&headers)?;
    let id = parse_id(&text)?;
    let permit = app.subscription_quota.acquire(&caller)?;
    let job = app.reader.find(id).await?;
    if !caller.may_see(&job.tenant) {
        return Err(StoreError::JobNotFound(id).into());
    }
    admission.release();
    let job_events = JobEventStream::new(app, &job, last_seq, permit);
    let events = stream::unfold((job_events, Some(job)), async |(mut job_events, first)| {
        let event = job_events.next(first).await?;
        Some((Ok::<_, Infallible>(event), (job_events, None)))
    });
    // Without this header nginx buffers some kilobytes of events.
    let unbuffered = [("x-accel-buffering", "no")];
    Ok((unbuffered, Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))).into_response())
}

fn last_event_id(headers: &HeaderMap) -> Result<i64, ApiError> {
    let Some(value) = headers.get(LAST_EVENT_ID) else { return Ok(0) };
    let seq = value.to_str().ok().and_then(|text| text.parse().ok()).filter(|seq| *seq >= 0);
    seq.ok_or_else(|| {
        let error = FieldError::new("Last-Event-ID", "must be the id of an event: a non-negative integer");
        Problem::invalid(Invalid::from(error)).into()
    })
}

/// The event stream of one job.
pub(super) struct JobEventStream {
    pub(super) app: Arc<App>,
    id: JobId,
    watch: StatusWatch,
    /// The status and progress of the last events.
    last: Option<(JobStatus, Option<ProgressView>)>,
    /// The sequence number of the last log line sent.
    last_seq: i64,
    pending: VecDeque<Event>,
    /// Whether there may be new progress or log lines while the status stays the same.
    polls: bool,
    /// Whether the log has more lines to read at once.
    more_lines: bool,
    ended: bool,
    permit: SubscriptionPermit,
    recheck: Interval,
}

impl JobEventStream {
    pub(super) fn new(app: Arc<App>, job: &JobSummary, last_seq: i64, permit: SubscriptionPermit) -> Self {
        let watch = app.watcher.watch(job.id, job.status());
        let mut recheck = interval(permit.recheck_interval());
        recheck.reset();
        Self {
            app,
            id: job.id,
            watch,
            last: None,
            last_seq,
            pending: VecDeque::new(),
            polls: false,
            more_lines: false,
            ended: false,
            permit,
            recheck,
        }
    }

    /// The next event; `None` at the end of the stream.
    pub(super) async fn next(&mut self, first: Option<JobSummary>) -> Option<Event> {
        if let Some(job) = first {
            self.apply(job).await;
        }
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            let wait = if self.more_lines { Duration::ZERO } else { POLL_INTERVAL };
            tokio::select! {
                () = self.app.shutdown_requested() => return None,
                _ = self.recheck.tick() => match self.permit.is_revoked().await {
                    false => continue,
                    true => return None,
                },
                () = self.watch.changed() => {}
                () = tokio::time::sleep(wait), if self.polls => {}
            }
            match self.app.reader.find(self.id).await {
                Ok(job) => self.apply(job).await,
                // The job was pruned.
                Err(StoreError::JobNotFound(_)) => self.ended = true,
                // Polls until the read succeeds, because the watch reports the change only once.
                Err(error) => {
                    tracing::debug!(job_id = %self.id, %error, "could not read the job of an event stream");
                    (self.polls, self.more_lines) = (true, false);
                }
            }
        }
    }

    // Queues the events that follow from the job's current state. The final status comes last, after all log lines.
    async fn apply(&mut self, job: JobSummary) {
        let (status, finished) = (job.status(), job.state.is_terminal());
        let (last_status, last_progress) =
            self.last.take().map_or((None, None), |(status, progress)| (Some(status), progress));
        let view = JobView::from(job);
        let progress = view.progress.clone();
        if !finished && last_status != Some(status) {
            self.push("status", &json!(view), RETRY);
        }
        // The first status event includes the progress.
        if progress.is_some() && progress != last_progress && last_status.is_some() {
            self.push("progress", &json!(progress), RETRY);
        }
        // A job that no longer runs may have lines that were not read yet.
        let may_have_lines =
            status == JobStatus::Running || finished || last_status == Some(JobStatus::Running) || self.polls;
        let all_read = if may_have_lines { self.read_lines().await } else { true };
        self.polls = status == JobStatus::Running || !all_read;
        if finished && all_read {
            self.push("status", &json!(view), RETRY_AFTER_END);
            self.ended = true;
        }
        self.last = Some((if finished { last_status.unwrap_or(status) } else { status }, progress));
    }

    // Reads one page of the log. Returns whether it was the last one.
    async fn read_lines(&mut self) -> bool {
        let page = match self.app.reader.logs_after(self.id, self.last_seq).await {
            Ok(page) => page,
            Err(error) => {
                tracing::debug!(job_id = %self.id, %error, "could not read the log of an event stream");
                self.more_lines = false;
                return false;
            }
        };
        self.more_lines = page.more;
        for LogEntry { seq, at, level, message, .. } in page.lines {
            self.last_seq = seq;
            self.push("log", &json!({"seq": seq, "at": at, "level": level.as_str(), "message": message}), RETRY);
        }
        !self.more_lines
    }

    // The data of an event must not contain line breaks, and serialized JSON contains none.
    fn push(&mut self, kind: &str, data: &Value, retry: Duration) {
        let event = Event::default().event(kind).id(self.last_seq.to_string()).retry(retry).data(data.to_string());
        self.pending.push_back(event);
    }
}
