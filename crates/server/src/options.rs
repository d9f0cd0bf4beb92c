//! What can be set.

use std::time::Duration;

use crate::{Auth, Metrics, Tls};

/// Ties the span of a request to a trace: is given the span and the W3C trace context that came with the request, and answers
/// with the context of the span itself, which is then what is recorded with jobs.
pub type TraceTie = fn(&tracing::Span, Option<&str>) -> Option<String>;

/// How a server behaves.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Whom it answers.
    pub auth: Auth,
    /// How many requests are worked on at once; the waits of long polls do not count.
    pub concurrency: usize,
    /// How many more may wait for their turn; whoever comes then is turned away.
    pub queue: usize,
    /// How long they wait.
    pub patience: Duration,
    /// How many long polls may be open; whoever comes then is answered at once.
    pub waits: usize,
    /// How many may follow jobs at once, by events or over a WebSocket; whoever comes then is turned away.
    pub live: usize,
    /// How many of them one key may have.
    pub live_share: usize,
    /// How many batches of news are kept for one who follows jobs and is slow; he is told what he missed by the state of things.
    pub live_buffer: usize,
    /// How often the other side of a WebSocket is asked whether it is there; silence for twice as long ends it. So often, and every 15 s at
    /// least, the keys of those who follow jobs are looked at again.
    pub live_ping: Duration,
    /// How long it may take nothing of what is written to it.
    pub live_patience: Duration,
    /// How many connections may be open; whoever comes then waits to be let in.
    pub connections: usize,
    /// How long a connection may take to send the head of a request, or say nothing between two.
    pub idle_timeout: Duration,
    /// How long a connection may take nothing of what is written to it, whatever that is.
    pub write_timeout: Duration,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// How many bytes of large bodies may be held at once.
    pub body_room: usize,
    /// How often the store is asked about jobs that somebody waits for.
    pub watch_interval: Duration,
    /// How often the store is asked for jobs that workers wait for, if nothing hints at them.
    pub poll_interval: Duration,
    /// How long requests that are being worked on get when the server is told to stop.
    pub drain_timeout: Duration,
    /// What `GET /metrics` answers; without it there is no such page.
    pub metrics: Option<Metrics>,
    /// Speaks in secret, with this certificate.
    pub tls: Option<Tls>,
    /// For whoever exports traces; without it jobs are recorded with the trace context that came with the request.
    pub trace_tie: Option<TraceTie>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            auth: Auth::Anybody,
            concurrency: 4_096,
            queue: 16_384,
            patience: Duration::from_secs(2),
            waits: 10_000,
            live: 10_000,
            live_share: 5_000,
            live_buffer: 128,
            live_ping: Duration::from_secs(15),
            live_patience: Duration::from_secs(10),
            connections: 16_384,
            idle_timeout: Duration::from_secs(75),
            write_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            body_room: 256 * 1024 * 1024,
            watch_interval: Duration::from_millis(200),
            poll_interval: Duration::from_secs(1),
            drain_timeout: Duration::from_secs(30),
            metrics: None,
            tls: None,
            trace_tie: None,
        }
    }
}
