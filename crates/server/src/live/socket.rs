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
    listener::{Behind, Listener},
    message::{self, Ask, LAGGED, LONGEST},
    place::Place,
    protocol::PROTOCOL,
    sight::News,
};
use crate::{
    App,
    auth::{bucket::Bucket, caller::Caller},
    openapi::problems::Malformed,
    refusal::Refusal,
};

/// What is read and written at a time: messages are small, and there are many connections.
const BUFFER: usize = 4 * 1024;
/// What one connection may cost: so much at once, and so much a second. A message costs one, each job that it names another, and queues or all
/// jobs, for which all that is known is gone through, as much as this.
const COSTS: (u32, u32) = (10_000, 2_000);
const BROAD: u32 = 200;
/// How many times as long as it may take nothing the other side gets to take all that one look showed.
const SLOWEST: u32 = 3;
/// How long the other side gets to say goodbye.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Follows jobs over a WebSocket: those that are named, those of queues, or all of them.
#[utoipa::path(
    get,
    path = "/ws",
    tag = "jobs",
    operation_id = "followJobs",
    responses(
        (status = 101, description = "A WebSocket. Send `{\"subscribe\": {\"jobs\": […], \"queues\": […], \"all\": true}}`, or `unsubscribe` with the same \
            parts, each in a message of at most 64 KiB: up to 1,000 jobs and 100 queues. Told are `{\"event\": \"status\", \"jobId\", \"jobType\", \"queue\", \
            \"status\", \"at\", \"seq\"}`: of a job that is named its status now and at every change, of a queue or all jobs what runs now and every change. \
            `{\"event\": \"lagged\"}` says that some were lost, since you read too slowly or too much changed at once; then is told how what you follow \
            stands: jobs that are named, and of queues and all jobs what runs and all that has changed since you heard the last of it, up to \
            `{\"event\": \"synced\", \"complete\"}`. What is not among it does not run. Where `complete` is false more had changed than is remembered (100,000 \
            ends, 90 seconds): what changed until `since` may be missing, so ask for what you wait for. Whoever comes back to queues or all jobs says until when \
            he has heard all, by the `at` of the last event, and is told the same, from 15 seconds before that: `{\"subscribe\": {\"all\": true, \"since\": \"2026-01-01T09:00:00Z\"}}`. \
            A connection that takes nothing for 10 seconds, or does not answer pings for 30, is cut off. \
            `{\"event\": \"error\", \"code\", \"message\"}` says what was wrong with a message, with `jobId` if there is no such job; the connection goes on. \
            A page, which cannot set headers here, shows its key as a protocol: `new WebSocket(url, [\"orchestrix\", \"orchestrix.key.\" + KEY])`; the answer is \
            `orchestrix`. Close codes: 1001, the server ends; 1008, the key is good no longer; 1009, a message was too long."),
        (status = 400, response = Malformed),
    ),
)]
pub(crate) async fn follow(
    State(app): State<Arc<App>>,
    caller: Caller,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Refusal> {
    let upgrade = upgrade.map_err(|error| {
        Refusal::new(Code::MalformedRequest, format!("a WebSocket must be asked for here: {}", error.body_text()))
    })?;
    let place = app.live.take(&caller)?;
    let upgrade = upgrade
        .protocols([PROTOCOL])
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER)
        .max_write_buffer_size(8 * LONGEST)
        .max_message_size(LONGEST)
        .max_frame_size(LONGEST);
    Ok(upgrade.on_upgrade(move |socket| async move {
        let listener = app.feed.listen(&caller);
        let costs = Bucket::new(costs(), std::time::Instant::now());
        let patience = app.options.live_patience;
        Talk { socket, listener, place, costs, put_off: None, seq: 0, patience }.go_on(&app).await;
    }))
}

/// A connection that ends: the other side is gone, or takes nothing.
struct Gone;

struct Talk {
    socket: WebSocket,
    listener: Listener,
    place: Place,
    costs: Bucket,
    /// What was asked and costs more than he may now, and when it may be asked again. Until then nothing more of his is read.
    put_off: Option<(Instant, Costly)>,
    seq: u64,
    patience: Duration,
}

/// What somebody asks, or says that cannot be read.
enum Costly {
    Ask(Ask),
    Nonsense(Code, String),
}

impl Costly {
    fn read(text: &str) -> Self {
        message::read(text).map_or_else(|(code, text)| Self::Nonsense(code, text), Self::Ask)
    }

    fn cost(&self) -> u32 {
        match self {
            Self::Ask(ask) => cost(ask).saturating_add(1),
            Self::Nonsense(..) => 1,
        }
    }
}

fn costs() -> RateLimit {
    RateLimit::new(COSTS.1, Duration::from_secs(1), COSTS.0).expect("the limit is within what may be set")
}

fn cost(ask: &Ask) -> u32 {
    let Ask { unsubscribe, subscribe, unknown } = ask;
    let named = [unsubscribe, subscribe].map(|wanted| wanted.jobs.len()).iter().sum::<usize>() + unknown.len();
    let broad = [unsubscribe, subscribe].iter().any(|wanted| wanted.all || !wanted.queues.is_empty());
    u32::try_from(named).unwrap_or(u32::MAX).saturating_add(if broad { BROAD } else { 0 })
}

impl Talk {
    async fn go_on(mut self, app: &App) {
        if let Ok(code) = self.until_it_ends(app).await {
            let frame = CloseFrame { code, reason: "".into() };
            if self.say(Message::Close(Some(frame))).await.is_ok() {
                let answered = async { while let Some(Ok(_)) = self.socket.recv().await {} };
                let _ = timeout(LAST_WORDS, answered).await;
            }
        }
    }

    // With what the other side is told in the end.
    async fn until_it_ends(&mut self, app: &App) -> Result<u16, Gone> {
        let mut closed = pin!(app.closed());
        let every = app.options.live_ping;
        let mut pings = interval(every);
        pings.reset();
        let mut looks = interval(self.place.every());
        looks.reset();
        // Since when the other side has been silent though it was asked.
        let mut asked: Option<Instant> = None;
        loop {
            tokio::select! {
                // An answer that waits to be read is read before anybody is said not to have answered.
                biased;
                () = &mut closed => return Ok(close_code::AWAY),
                _ = looks.tick() => {
                    if !self.place.is_good().await {
                        return Ok(close_code::POLICY);
                    }
                }
                () = put_off(self.put_off.as_ref()), if self.put_off.is_some() => {
                    if let Some((_, costly)) = self.put_off.take() {
                        self.take(costly).await?;
                    }
                }
                message = self.socket.recv(), if self.put_off.is_none() => {
                    asked = None;
                    match message {
                        Some(Ok(Message::Text(text))) => self.take(Costly::read(&text)).await?,
                        Some(Ok(Message::Binary(_))) => {
                            let nonsense = Costly::Nonsense(Code::MalformedRequest, "messages are text".into());
                            self.take(nonsense).await?;
                        }
                        Some(Ok(_)) => {}
                        // Too long, or not what the protocol allows.
                        Some(Err(error)) if error.to_string().contains("too long") => return Ok(close_code::SIZE),
                        Some(Err(_)) | None => return Err(Gone),
                    }
                }
                _ = pings.tick() => {
                    if asked.get_or_insert_with(Instant::now).elapsed() >= 2 * every {
                        return Err(Gone);
                    }
                    self.say(Message::Ping(Default::default())).await?;
                }
                heard = self.listener.hear() => {
                    let news = heard.map(|batch| self.listener.wanted(&batch));
                    self.tell_or_begin_anew(news).await?;
                }
            }
        }
    }

    // Whoever costs more than he may waits, and hears of what he follows meanwhile.
    async fn take(&mut self, costly: Costly) -> Result<(), Gone> {
        if let Err(wait) = self.costs.take_some(costly.cost(), std::time::Instant::now()) {
            self.put_off = Some((Instant::now() + wait, costly));
            return Ok(());
        }
        match costly {
            Costly::Ask(ask) => self.answer(ask).await,
            Costly::Nonsense(code, text) => self.complain(code, &text).await,
        }
    }

    async fn answer(&mut self, ask: Ask) -> Result<(), Gone> {
        let patience = self.patience;
        self.listener.leave(&ask.unsubscribe);
        if let Some((code, text)) = self.listener.refuses(&ask.subscribe) {
            return self.complain(code, &text).await;
        }
        let unknown = async {
            for id in &ask.unknown {
                self.say(Message::text(message::unknown(id))).await?;
            }
            Ok(())
        };
        timeout(SLOWEST * patience, unknown).await.unwrap_or(Err(Gone))?;
        let news = self.listener.follow(ask.subscribe);
        self.tell_or_begin_anew(news).await
    }

    async fn complain(&mut self, code: Code, text: &str) -> Result<(), Gone> {
        self.say(Message::text(message::error(code, text))).await
    }

    async fn tell_or_begin_anew(&mut self, news: Result<Vec<News>, Behind>) -> Result<(), Gone> {
        let behind = match news {
            Ok(news) => return self.tell(news).await,
            Err(behind) => behind,
        };
        if behind == Behind::Lags {
            self.say(Message::text(LAGGED)).await?;
        }
        let standing = self.listener.resync();
        self.tell(standing.news).await?;
        self.say(Message::text(message::synced(standing.lacks))).await
    }

    // Whoever takes it, but takes it slowly, is not waited for either: meanwhile nothing else of him is looked at.
    async fn tell(&mut self, news: Vec<News>) -> Result<(), Gone> {
        let longest = SLOWEST * self.patience;
        timeout(longest, self.tell_all(news)).await.unwrap_or(Err(Gone))
    }

    async fn tell_all(&mut self, news: Vec<News>) -> Result<(), Gone> {
        for one in news {
            let text = match one {
                News::Unknown(id) => message::unknown(&id.to_string()),
                News::Job(seen) => {
                    self.seq += 1;
                    format!("{}{}}}", seen.text(), self.seq)
                }
            };
            written(&timeout(self.patience, self.socket.feed(Message::text(text))).await)?;
        }
        written(&timeout(self.patience, self.socket.flush()).await)
    }

    async fn say(&mut self, message: Message) -> Result<(), Gone> {
        written(&timeout(self.patience, self.socket.send(message)).await)
    }
}

async fn put_off(until: Option<&(Instant, Costly)>) {
    if let Some((until, _)) = until {
        tokio::time::sleep_until(*until).await;
    }
}

// Whoever takes nothing for so long is not waited for.
fn written(result: &Result<Result<(), axum::Error>, Elapsed>) -> Result<(), Gone> {
    match result {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Gone),
    }
}
