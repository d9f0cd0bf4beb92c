//! The settings of a worker.

use std::time::Duration;

use orchestrix_core::{FieldError, Invalid, Queue, WorkerName};
use orchestrix_store::{ClaimRequest, PollInterval, Queues};

/// Connects the span of a job to a trace.
///
/// Gets the span and the W3C trace context of the enqueue request. Returns the trace context of the span, which the
/// handler and its child jobs then propagate.
pub type TracePropagator = fn(&tracing::Span, Option<&str>) -> Option<String>;

/// The settings of a worker. Every setting has a default.
#[derive(Debug, Clone)]
pub(crate) struct WorkerOptions {
    pub(crate) name: WorkerName,
    pub(crate) queues: Vec<(Queue, Option<u32>)>,
    pub(crate) concurrency: usize,
    pub(crate) prefetch: usize,
    pub(crate) heartbeat_interval: Duration,
    pub(crate) poll_interval: Duration,
    pub(crate) drain_timeout: Duration,
    pub(crate) cancel_grace: Duration,
    pub(crate) trace_propagator: Option<TracePropagator>,
}

impl WorkerOptions {
    /// The maximum number of concurrent jobs of one worker.
    const MAX_CONCURRENCY: usize = 10_000;

    pub(crate) fn new() -> Self {
        Self {
            name: default_worker_name(),
            queues: Vec::new(),
            concurrency: 10,
            prefetch: 4_000,
            heartbeat_interval: Duration::from_secs(10),
            poll_interval: PollInterval::DEFAULT_LONGEST,
            drain_timeout: Duration::from_secs(30),
            cancel_grace: Duration::from_secs(5),
            trace_propagator: None,
        }
    }

    pub(crate) fn served_queues(&self) -> Queues {
        match self.queues.is_empty() {
            true => Queues::All,
            false => Queues::Named(self.queues.iter().map(|(queue, _)| queue.clone()).collect()),
        }
    }

    pub(crate) fn check(&self) -> Result<(), Invalid> {
        let mut errors = Vec::new();
        let mut bad = |field: &str, message: String| errors.push(FieldError::new(field, message));
        if !(1..=Self::MAX_CONCURRENCY).contains(&self.concurrency) {
            bad("concurrency", format!("must be from 1 to {}, not {}", Self::MAX_CONCURRENCY, self.concurrency));
        }
        if self.queues.len() > ClaimRequest::MAX_NAMES {
            bad("queues", format!("may name at most {}", ClaimRequest::MAX_NAMES));
        }
        if self.queues.iter().any(|(_, weight)| weight.is_some_and(|weight| !(1..=1_000).contains(&weight))) {
            bad("queues", "weights must be from 1 to 1000".into());
        }
        let hour = Duration::from_secs(3600);
        for (field, value) in [("heartbeatInterval", self.heartbeat_interval), ("pollInterval", self.poll_interval)] {
            if value < Duration::from_millis(10) || value > hour {
                bad(field, "must be from 10ms to 1h".into());
            }
        }
        for (field, value) in [("drainTimeout", self.drain_timeout), ("cancelGrace", self.cancel_grace)] {
            if value > 24 * hour {
                bad(field, "must be at most 24h".into());
            }
        }
        Invalid::check(errors)
    }
}

/// Generates a worker name: the host name and a random suffix.
pub fn default_worker_name() -> WorkerName {
    let host = std::fs::read_to_string("/etc/hostname").or_else(|_| std::env::var("HOSTNAME")).unwrap_or_default();
    let host: String =
        host.trim().chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')).take(64).collect();
    let host = if host.is_empty() { "worker" } else { &host };
    WorkerName::trusted(&format!("{host}-{:08x}", rand::random::<u32>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_and_every_invalid_setting_is_reported() {
        assert_eq!(WorkerOptions::new().check(), Ok(()));
        assert!(WorkerName::new(default_worker_name().as_str()).is_ok());
        let bad = WorkerOptions {
            concurrency: 0,
            queues: vec![(Queue::default(), Some(0))],
            poll_interval: Duration::ZERO,
            ..WorkerOptions::new()
        };
        let fields: Vec<String> = bad.check().unwrap_err().errors.into_iter().map(|error| error.field).collect();
        assert_eq!(fields, ["concurrency", "queues", "pollInterval"]);
    }
}
