//! The server's options.

use std::time::Duration;

use crate::{Auth, Metrics, Tls};

/// Connects the span of a request with its distributed trace. Receives the span and the request's W3C trace context
/// (`traceparent`), makes the span its child, and returns the span's own context, which is stored with the jobs that
/// the request enqueues.
pub type TracePropagator = fn(&tracing::Span, Option<&str>) -> Option<String>;

/// Limits, timeouts and integrations of a server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// How requests are authenticated.
    pub auth: Auth,
    /// The most requests that run concurrently. Waiting long polls and subscriptions do not count.
    pub max_concurrent_requests: usize,
    /// The most requests that wait for their turn to run; further ones get 429.
    pub max_queued_requests: usize,
    /// How long a request waits for its turn, or for memory for its body, before it gets 429.
    pub admission_timeout: Duration,
    /// The most open long polls; further ones are answered at once.
    pub max_long_polls: usize,
    /// The most open subscriptions, by event stream and WebSocket together; further ones get 429.
    pub max_subscriptions: usize,
    /// The most open subscriptions of one key.
    pub max_subscriptions_per_key: usize,
    /// How many change batches are buffered for a slow WebSocket before it is resynced.
    pub subscription_buffer: usize,
    /// How often a WebSocket is pinged. A client that does not answer for twice as long is disconnected. The keys of
    /// subscribers are checked again at the same interval, and at least every 15 s.
    pub ping_interval: Duration,
    /// How long a WebSocket's client may accept no data before it is disconnected.
    pub subscription_write_timeout: Duration,
    /// The most open connections; further ones wait to be accepted.
    pub max_connections: usize,
    /// How long a connection may take to send a request head, or stay idle between two requests.
    pub idle_timeout: Duration,
    /// How long a connection's client may accept no data before it is disconnected.
    pub write_timeout: Duration,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// The most bytes that large bodies may take in memory together.
    pub max_buffered_body_bytes: usize,
    /// How often the store is polled for changes of watched jobs.
    pub watch_interval: Duration,
    /// How often waiting workers try a claim without a wake-up.
    pub poll_interval: Duration,
    /// How long running requests may take to finish after the shutdown begins.
    pub drain_timeout: Duration,
    /// Serves `GET /metrics`; `None` answers 404.
    pub metrics: Option<Metrics>,
    /// Serves HTTPS with this certificate.
    pub tls: Option<Tls>,
    /// Links request spans to distributed traces. Without it jobs are stored with the trace context of the request.
    pub trace_propagator: Option<TracePropagator>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            auth: Auth::Disabled,
            max_concurrent_requests: 4_096,
            max_queued_requests: 16_384,
            admission_timeout: Duration::from_secs(2),
            max_long_polls: 10_000,
            max_subscriptions: 10_000,
            max_subscriptions_per_key: 5_000,
            subscription_buffer: 128,
            ping_interval: Duration::from_secs(15),
            subscription_write_timeout: Duration::from_secs(10),
            max_connections: 16_384,
            idle_timeout: Duration::from_secs(75),
            write_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            max_buffered_body_bytes: 256 * 1024 * 1024,
            watch_interval: Duration::from_millis(200),
            poll_interval: Duration::from_secs(1),
            drain_timeout: Duration::from_secs(30),
            metrics: None,
            tls: None,
            trace_propagator: None,
        }
    }
}
