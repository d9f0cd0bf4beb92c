//! Subscribers: WebSockets and server-sent events.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use super::{
    ledger::{EventLedger, SubscriberKind},
    socket::{self, Frame},
};

/// How often one of many subscribers sends a pong.
const PONG_INTERVAL: Duration = Duration::from_secs(5);

/// Tasks that end with the measurement, or with an error.
pub(super) type Tasks = JoinSet<Result<()>>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusEvent {
    event: String,
    job_id: Option<String>,
    status: Option<String>,
    at: Option<Timestamp>,
}

/// What the by-id subscriber sends.
#[derive(Debug)]
enum Outbound {
    Follow(String),
    Leave(String),
    Pong,
}

/// Subscribes to a queue or to all jobs.
pub(super) async fn subscribe_broadly(
    tasks: &mut Tasks,
    address: &str,
    kind: SubscriberKind,
    wanted: &Value,
    ledger: &Arc<EventLedger>,
) -> Result<()> {
    let (mut incoming, mut outgoing) = socket::open(address).await?;
    outgoing.send_text(&json!({"subscribe": wanted}).to_string()).await?;
    outgoing.ping().await?;
    let (ledger, (begun, begins)) = (Arc::clone(ledger), oneshot::channel());
    let mut begun = Some(begun);
    tasks.spawn(async move {
        loop {
            match incoming.next().await? {
                Frame::Text(text) => drop(record(&ledger, kind, &text)?),
                Frame::Ping => outgoing.pong().await?,
                // The subscription is active.
                Frame::Pong => drop(begun.take().map(|begun| begun.send(()))),
                Frame::Other => {}
            }
        }
    });
    begins.await.context("the subscriber has ended")
}

/// Subscribes to jobs by id, each as soon as it is sent over the channel.
pub(super) async fn subscribe_by_id(
    tasks: &mut Tasks,
    address: &str,
    ledger: &Arc<EventLedger>,
) -> Result<mpsc::UnboundedSender<String>> {
    let (mut incoming, mut outgoing) = socket::open(address).await?;
    let (ids, mut named) = mpsc::unbounded_channel::<String>();
    let (outbound, mut queued) = mpsc::unbounded_channel();
    let also = outbound.clone();
    tasks.spawn(async move {
        while let Some(id) = named.recv().await {
            also.send(Outbound::Follow(id))?;
        }
        std::future::pending().await
    });
    tasks.spawn(async move {
        while let Some(next) = queued.recv().await {
            match next {
                Outbound::Follow(id) => outgoing.send_text(&json!({"subscribe": {"jobs": [id]}}).to_string()).await?,
                Outbound::Leave(id) => outgoing.send_text(&json!({"unsubscribe": {"jobs": [id]}}).to_string()).await?,
                Outbound::Pong => outgoing.pong().await?,
            }
        }
        Ok(())
    });
    let ledger = Arc::clone(ledger);
    tasks.spawn(async move {
        loop {
            match incoming.next().await? {
                Frame::Text(text) => {
                    if let Some(over) = record(&ledger, SubscriberKind::ByJob, &text)? {
                        outbound.send(Outbound::Leave(over))?;
                    }
                }
                Frame::Ping => outbound.send(Outbound::Pong)?,
                Frame::Pong | Frame::Other => {}
            }
        }
    });
    Ok(ids)
}

// Records an event; returns the job's id if it has ended.
fn record(ledger: &EventLedger, kind: SubscriberKind, text: &str) -> Result<Option<String>> {
    let event: StatusEvent = serde_json::from_str(text)?;
    match (event.event.as_str(), event.job_id, event.status, event.at) {
        ("status", Some(id), Some(status), Some(at)) => Ok(ledger.received(kind, &id, &status, at)?.then_some(id)),
        ("lagged", ..) => {
            ledger.lagged(kind);
            Ok(None)
        }
        ("synced", ..) => Ok(None),
        _ => anyhow::bail!("{}: {text}", kind.name()),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct View {
    status: String,
    updated_at: Timestamp,
    finished_at: Option<Timestamp>,
}

/// Follows the server-sent events of one job to its end.
pub(super) async fn follow_events(address: String, id: String, ledger: Arc<EventLedger>) -> Result<()> {
    let mut stream = TcpStream::connect(&address).await?;
    let request = format!("GET /jobs/{id}/events HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next_line().await?.context("no answer")?;
    ensure!(first.starts_with("HTTP/1.1 200"), "the event stream was refused: {first}");
    let mut kind = String::new();
    while let Some(line) = lines.next_line().await? {
        match line.split_once(": ") {
            Some(("event", text)) => kind = text.to_owned(),
            Some(("data", text)) if kind == "status" => {
                let view: View = serde_json::from_str(text)?;
                let at = view.finished_at.unwrap_or(view.updated_at);
                ledger.received(SubscriberKind::Events, &id, &view.status, at)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Subscribes and discards all events.
pub(super) async fn subscribe_and_discard(tasks: &mut Tasks, address: &str, wanted: &Value) -> Result<()> {
    let (mut incoming, mut outgoing) = socket::open(address).await?;
    outgoing.send_text(&json!({"subscribe": wanted}).to_string()).await?;
    tasks.spawn(async move {
        let mut queued = Instant::now();
        loop {
            ensure!(incoming.skip().await? > 0, "the server closed the connection");
            // An unsolicited pong shows that the client is alive, without parsing any frame.
            if queued.elapsed() > PONG_INTERVAL {
                outgoing.pong().await?;
                queued = Instant::now();
            }
        }
    });
    Ok(())
}

/// Fails if a subscriber has ended.
pub(super) fn check(tasks: &mut Tasks) -> Result<()> {
    while let Some(ended) = tasks.try_join_next() {
        ended??;
    }
    Ok(())
}
