//! `GET /ws`

use std::{pin::pin, sync::Arc, time::Duration};

use axum::{
    extract::{
        State,
        ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code, rejection::WebSocketUpgradeRejection},
    },
    response::Response,
};
use futures_util::SinkExt;
use orchestrix_api::Code;
use orchestrix_core::RateLimit;
use tokio::time::{Instant, error::Elapsed, interval, timeout};

use super::{
    message::{self, ClientMessage, LAGGED, MAX_MESSAGE_BYTES},
    subprotocol::SUBPROTOCOL,
    subscriber::{ResyncReason, Subscriber},
    subscription_quota::SubscriptionPermit,
    tracker::JobUpdate,
};
use crate::{
    App,
    api_error::ApiError,
    auth::{principal::Principal, token_bucket::TokenBucket},
    openapi::problems::Malformed,
};

/// The read and write buffer of a connection. Messages are small, and connections are many.
const BUFFER: usize = 4 * 1024;
/// The rate limit of a connection's messages: a message costs one token, and one more for each job id in it.
const COST_BURST: u32 = 10_000;
const COST_PER_SECOND: u32 = 2_000;
/// The extra cost of a broad subscription, which searches the whole replay buffer.
const BROAD_COST: u32 = 200;
/// The time to write all updates of one batch or resync, as a multiple of the write timeout.
const MAX_WRITE_TIMEOUTS: u32 = 3;
/// How long to wait for the client's close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Streams status changes over a WebSocket: of single jobs, of queues, or of all jobs.
#[utoipa::path(
    get,
    path = "/ws",
    tag = "jobs",
    operation_id = "followJobs",
    responses(
        (
            status = 101,
            description = "A WebSocket. Send `{\"subscribe\": {\"jobs\": […], \"queues\": […], \"all\": true}}`, \
                or `unsubscribe` with the same fields, in messages of at most 64 KiB, for up to 1,000 jobs and 100 \
                queues. The server sends `{\"event\": \"status\", \"jobId\", \"jobType\", \"queue\", \"status\", \
                \"at\", \"seq\"}`: for a job, its current status and every change; for a queue or all jobs, the \
                running jobs and every change. `{\"event\": \"lagged\"}` means that updates were lost, because the \
                client reads too slowly or too much changed at once. A resync follows: the status of every \
                subscribed job, and for queues and all jobs the running jobs and every change since the last \
                event, ending with `{\"event\": \"synced\", \"complete\"}`. A job that is not part of the resync \
                does not run. If `complete` is false, more changed than the server remembers (100,000 finished \
                jobs, 90 seconds): changes up to `since` may be missing, so query the jobs that matter. To resume \
                a subscription to queues or all jobs after a reconnect, pass the `at` of the last event: \
                `{\"subscribe\": {\"all\": true, \"since\": \"2026-01-01T09:00:00Z\"}}`. The server then sends a \
                resync from 15 seconds before that time. The server disconnects a client that accepts no data for \
                10 seconds, or does not answer pings for 30. `{\"event\": \"error\", \"code\", \"message\"}` \
                reports an invalid message, with `jobId` if there is no such job; the connection stays open. A web \
                page, which cannot set headers here, sends its key as a subprotocol: `new WebSocket(url, \
                [\"orchestrix\", \"orchestrix.key.\" + KEY])`; the server selects `orchestrix`. Close codes: 1001, \
                the server shuts down; 1008, the key was revoked or has expired; 1009, a message was too long.",
        ),
        (status = 400, response = Malformed),
    ),
)]
pub(crate) async fn websocket(
    State(app): State<Arc<App>>,
    caller: Principal,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|error| {
        ApiError::new(Code::MalformedRequest, format!("a WebSocket upgrade is required: {}", error.body_text()))
    })?;
    let permit = app.subscription_quota.acquire(&caller)?;
    let upgrade = upgrade
        .protocols([SUBPROTOCOL])
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER)
        .max_write_buffer_size(8 * MAX_MESSAGE_BYTES)
        .max_message_size(MAX_MESSAGE_BYTES)
        .max_frame_size(MAX_MESSAGE_BYTES);
    Ok(upgrade.on_upgrade(move |socket| async move {
        let subscriber = app.change_feed.subscriber(&caller);
        let rate_limiter = TokenBucket::new(cost_limit(), std::time::Instant::now());
        let write_timeout = app.options.subscription_write_timeout;
        Connection { socket, subscriber, permit, rate_limiter, delayed: None, seq: 0, write_timeout }.run(&app).await;
    }))
}

/// The client has disconnected or accepts no data.
struct Disconnected;

struct Connection {
    socket: WebSocket,
    subscriber: Subscriber,
    permit: SubscriptionPermit,
    rate_limiter: TokenBucket,
    /// A message that exceeds the rate limit, and when it may be handled. Until then no further message is read.
    delayed: Option<(Instant, Received)>,
    seq: u64,
    write_timeout: Duration,
}

/// A message that was received.
enum Received {
    Valid(ClientMessage),
    Invalid(Code, String),
}

impl Received {
    fn parse(text: &str) -> Self {
        message::parse(text).map_or_else(|(code, text)| Self::Invalid(code, text), Self::Valid)
    }

    fn cost(&self) -> u32 {
        match self {
            Self::Valid(message) => cost(message).saturating_add(1),
            Self::Invalid(..) => 1,
        }
    }
}

fn cost_limit() -> RateLimit {
    RateLimit::new(COST_PER_SECOND, Duration::from_secs(1), COST_BURST)
        .expect("the constants are within the allowed range")
}

fn cost(message: &ClientMessage) -> u32 {
    let ClientMessage { unsubscribe, subscribe, malformed_ids } = message;
    let both = [unsubscribe, subscribe];
    let ids = both.map(|subscription| subscription.jobs.len()).iter().sum::<usize>() + malformed_ids.len();
    let broad = both.iter().any(|subscription| subscription.all || !subscription.queues.is_empty());
    u32::try_from(ids).unwrap_or(u32::MAX).saturating_add(if broad { BROAD_COST } else { 0 })
}

impl Connection {
    async fn run(mut self, app: &App) {
        if let Ok(code) = self.serve(app).await {
            let frame = CloseFrame { code, reason: "".into() };
            if self.send(Message::Close(Some(frame))).await.is_ok() {
                let closed = async { while let Some(Ok(_)) = self.socket.recv().await {} };
                let _ = timeout(CLOSE_TIMEOUT, closed).await;
            }
        }
    }

    // Serves the connection until it ends. Returns the code of the close frame to send.
    async fn serve(&mut self, app: &App) -> Result<u16, Disconnected> {
        let mut shutdown = pin!(app.shutdown_requested());
        let ping_interval = app.options.ping_interval;
        let mut pings = interval(ping_interval);
        pings.reset();
        let mut rechecks = interval(self.permit.recheck_interval());
        rechecks.reset();
        // The time of the first ping since the last message of the client.
        let mut unanswered_since: Option<Instant> = None;
        loop {
            tokio::select! {
                // In order: an answer that has arrived is read before the client is declared unresponsive.
                biased;
                () = &mut shutdown => return Ok(close_code::AWAY),
                _ = rechecks.tick() => {
                    if self.permit.is_revoked().await {
                        return Ok(close_code::POLICY);
                    }
                }
                () = until_due(self.delayed.as_ref()), if self.delayed.is_some() => {
                    if let Some((_, received)) = self.delayed.take() {
                        self.handle(received).await?;
                    }
                }
                message = self.socket.recv(), if self.delayed.is_none() => {
                    unanswered_since = None;
                    match message {
                        Some(Ok(Message::Text(text))) => self.handle(Received::parse(&text)).await?,
                        Some(Ok(Message::Binary(_))) => {
                            let invalid = Received::Invalid(Code::MalformedRequest, "messages must be text".into());
                            self.handle(invalid).await?;
                        }
                        Some(Ok(_)) => {}
                        Some(Err(error)) if error.to_string().contains("too long") => return Ok(close_code::SIZE),
                        Some(Err(_)) | None => return Err(Disconnected),
                    }
                }
                _ = pings.tick() => {
                    if unanswered_since.get_or_insert_with(Instant::now).elapsed() >= 2 * ping_interval {
                        return Err(Disconnected);
                    }
                    self.send(Message::Ping(Default::default())).await?;
                }
                batch = self.subscriber.next_batch() => {
                    let updates = batch.map(|batch| self.subscriber.select(&batch));
                    self.send_or_resync(updates).await?;
                }
            }
        }
    }

    // Handles a message, or delays it if it exceeds the rate limit. Updates are still sent meanwhile.
    async fn handle(&mut self, received: Received) -> Result<(), Disconnected> {
        if let Err(wait) = self.rate_limiter.take_many(received.cost(), std::time::Instant::now()) {
            self.delayed = Some((Instant::now() + wait, received));
            return Ok(());
        }
        match received {
            Received::Valid(message) => self.apply(message).await,
            Received::Invalid(code, text) => self.send_error(code, &text).await,
        }
    }

    async fn apply(&mut self, message: ClientMessage) -> Result<(), Disconnected> {
        let write_timeout = self.write_timeout;
        self.subscriber.unsubscribe(&message.unsubscribe);
        if let Some((code, text)) = self.subscriber.exceeds_limit(&message.subscribe) {
            return self.send_error(code, &text).await;
        }
        let not_found = async {
            for id in &message.malformed_ids {
                self.send(Message::text(message::job_not_found(id))).await?;
            }
            Ok(())
        };
        timeout(MAX_WRITE_TIMEOUTS * write_timeout, not_found).await.unwrap_or(Err(Disconnected))?;
        let updates = self.subscriber.subscribe(message.subscribe);
        self.send_or_resync(updates).await
    }

    async fn send_error(&mut self, code: Code, text: &str) -> Result<(), Disconnected> {
        self.send(Message::text(message::error(code, text))).await
    }

    async fn send_or_resync(&mut self, updates: Result<Vec<JobUpdate>, ResyncReason>) -> Result<(), Disconnected> {
        let reason = match updates {
            Ok(updates) => return self.send_updates(updates).await,
            Err(reason) => reason,
        };
        if reason == ResyncReason::Lagged {
            self.send(Message::text(LAGGED)).await?;
        }
        let resync = self.subscriber.resync();
        self.send_updates(resync.updates).await?;
        self.send(Message::text(message::synced(resync.incomplete_until))).await
    }

    // The limit on the whole write disconnects a client that reads, but too slowly: nothing else on the connection is
    // handled meanwhile.
    async fn send_updates(&mut self, updates: Vec<JobUpdate>) -> Result<(), Disconnected> {
        let total_timeout = MAX_WRITE_TIMEOUTS * self.write_timeout;
        timeout(total_timeout, self.write_updates(updates)).await.unwrap_or(Err(Disconnected))
    }

    async fn write_updates(&mut self, updates: Vec<JobUpdate>) -> Result<(), Disconnected> {
        for update in updates {
            let text = match update {
                JobUpdate::NotFound(id) => message::job_not_found(&id.to_string()),
                JobUpdate::Status(status) => {
                    self.seq += 1;
                    format!("{}{}}}", status.text(), self.seq)
                }
            };
            written(&timeout(self.write_timeout, self.socket.feed(Message::text(text))).await)?;
        }
        written(&timeout(self.write_timeout, self.socket.flush()).await)
    }

    async fn send(&mut self, message: Message) -> Result<(), Disconnected> {
        written(&timeout(self.write_timeout, self.socket.send(message)).await)
    }
}

async fn until_due(delayed: Option<&(Instant, Received)>) {
    if let Some((due, _)) = delayed {
        tokio::time::sleep_until(*due).await;
    }
}

fn written(result: &Result<Result<(), axum::Error>, Elapsed>) -> Result<(), Disconnected> {
    match result {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Disconnected),
    }
}
