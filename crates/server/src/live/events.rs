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

use super::place::Place;
use crate::{
    App, auth::caller::Caller, gate::Turn, jobs::parse_id, openapi::problems::JobNotFound, params::Named,
    refusal::Refusal, watcher::Watch,
};

/// How often the progress and the log of a job that runs are looked at.
const LOOK: Duration = Duration::from_millis(500);
/// How soon whoever lost the connection comes again, and how soon if there is nothing more to be told.
const COME_AGAIN: Duration = Duration::from_secs(1);
const NO_HURRY: Duration = Duration::from_secs(60);
/// How often something is sent though there is nothing to tell.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Where a browser says which event it had last.
const LAST_EVENT: &str = "last-event-id";

/// Follows a job to its end: its status, its progress and its log, as server-sent events.
#[utoipa::path(
    get,
    path = "/jobs/{jobId}/events",
    tag = "jobs",
    operation_id = "followJob",
    params(
        ("jobId" = Id, Path, description = "The job's id."),
        ("Last-Event-ID" = Option<i64>, Header, minimum = 0, description = "The last event that was had; the log goes on after it."),
    ),
    responses(
        (status = 200, content_type = "text/event-stream", body = String, description = "Events `status` (what `GET /jobs/{jobId}` shows: \
            now and at every change), `progress` (`percent`, `message`) and `log` (`seq`, `at`, `level`, `message`). The stream ends with the job, after \
            its last line, and when the key is good no longer."),
        (status = 404, response = JobNotFound),
    ),
)]
pub(crate) async fn events(
    State(app): State<Arc<App>>,
    caller: Caller,
    Named(text): Named,
    headers: HeaderMap,
    Extension(turn): Extension<Turn>,
) -> Result<Response, Refusal> {
    let after = last_event(&headers)?;
    let id = parse_id(&text)?;
    let place = app.live.take(&caller)?;
    let job = app.reader.find(id).await?;
    if !caller.sees(&job.tenant) {
        return Err(StoreError::JobNotFound(id).into());
    }
    turn.give_back();
    let follow = Follow::new(app, &job, after, place);
    let events = stream::unfold((follow, Some(job)), async |(mut follow, first)| {
        let event = follow.next(first).await?;
        Some((Ok::<_, Infallible>(event), (follow, None)))
    });
    // nginx, for one, would hold events back until there are some kilobytes of them.
    let unbuffered = [("x-accel-buffering", "no")];
    Ok((unbuffered, Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))).into_response())
}

fn last_event(headers: &HeaderMap) -> Result<i64, Refusal> {
    let Some(value) = headers.get(LAST_EVENT) else { return Ok(0) };
    let seq = value.to_str().ok().and_then(|text| text.parse().ok()).filter(|seq| *seq >= 0);
    seq.ok_or_else(|| {
        let error = FieldError::new("Last-Event-ID", "must be the number of an event");
        Problem::invalid(Invalid::from(error)).into()
    })
}

/// One who follows a job.
pub(super) struct Follow {
    pub(super) app: Arc<App>,
    id: JobId,
    watch: Watch,
    /// What was told of it.
    last: Option<(JobStatus, Option<ProgressView>)>,
    /// The last line of its log that was told.
    after: i64,
    /// What is still to be told.
    events: VecDeque<Event>,
    /// Whether it may have more to say though its status does not change.
    speaks: bool,
    /// Whether it has said more already.
    behind: bool,
    ended: bool,
    place: Place,
    /// When to ask whether the place is still good.
    looks: Interval,
}

impl Follow {
    pub(super) fn new(app: Arc<App>, job: &JobSummary, after: i64, place: Place) -> Self {
        let watch = app.watcher.watch(job.id, job.status());
        let mut looks = interval(place.every());
        looks.reset();
        Self {
            app,
            id: job.id,
            watch,
            last: None,
            after,
            events: VecDeque::new(),
            speaks: false,
            behind: false,
            ended: false,
            place,
            looks,
        }
    }

    pub(super) async fn next(&mut self, first: Option<JobSummary>) -> Option<Event> {
        if let Some(job) = first {
            self.take(job).await;
        }
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            let wait = if self.behind { Duration::ZERO } else { LOOK };
            tokio::select! {
                () = self.app.closed() => return None,
                _ = self.looks.tick() => match self.place.is_good().await {
                    true => continue,
                    false => return None,
                },
                () = self.watch.stirred() => {}
                () = tokio::time::sleep(wait), if self.speaks => {}
            }
            match self.app.reader.find(self.id).await {
                Ok(job) => self.take(job).await,
                // Its retention is over.
                Err(StoreError::JobNotFound(_)) => self.ended = true,
                // What stirred it will not do so again.
                Err(error) => {
                    tracing::debug!(%error, "a job that somebody follows could not be looked at");
                    (self.speaks, self.behind) = (true, false);
                }
            }
        }
    }

    // The end is told last, after all that the job had to say.
    async fn take(&mut self, job: JobSummary) {
        let (status, over) = (job.status(), job.state.is_terminal());
        let (seen, progress_seen) =
            self.last.take().map_or((None, None), |(status, progress)| (Some(status), progress));
        let view = JobView::from(job);
        let progress = view.progress.clone();
        if !over && seen != Some(status) {
            self.push("status", &json!(view), COME_AGAIN);
        }
        // With the status that it began with it was told already.
        if progress.is_some() && progress != progress_seen && seen.is_some() {
            self.push("progress", &json!(progress), COME_AGAIN);
        }
        // It may also have left lines that were not read yet.
        let ran = status == JobStatus::Running || over || seen == Some(JobStatus::Running) || self.speaks;
        let all = if ran { self.take_lines().await } else { true };
        self.speaks = status == JobStatus::Running || !all;
        if over && all {
            self.push("status", &json!(view), NO_HURRY);
            self.ended = true;
        }
        self.last = Some((if over { seen.unwrap_or(status) } else { status }, progress));
    }

    // One page; whether that was all of it.
    async fn take_lines(&mut self) -> bool {
        let tail = match self.app.reader.tail(self.id, self.after).await {
            Ok(tail) => tail,
            Err(error) => {
                tracing::debug!(%error, "the log of a job that somebody follows could not be read");
                self.behind = false;
                return false;
            }
        };
        self.behind = tail.more;
        for LogEntry { seq, at, level, message, .. } in tail.lines {
            self.after = seq;
            self.push("log", &json!({"seq": seq, "at": at, "level": level.as_str(), "message": message}), COME_AGAIN);
        }
        !self.behind
    }

    // An event holds no line breaks, and JSON has none.
    fn push(&mut self, kind: &str, data: &Value, retry: Duration) {
        let event = Event::default().event(kind).id(self.after.to_string()).retry(retry).data(data.to_string());
        self.events.push_back(event);
    }
}
