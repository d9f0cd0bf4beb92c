//! One attempt: from a claimed job to its outcome.

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use orchestrix_core::Json;
use orchestrix_store::Outcome;
use tower::{ServiceExt, util::BoxCloneSyncService};
use tracing::{Instrument, Span, field::Empty};

use crate::{
    Context, HandlerResult, JobCall, JobError, TracePropagator, options::WorkerOptions, stats::Counters,
    stop_signal::StopReason,
};

/// The Tower service that runs jobs: the handlers inside the middleware added so far. A
/// [layer](crate::WorkerBuilder::layer) wraps it.
pub type HandlerService = BoxCloneSyncService<JobCall, Option<Json>, JobError>;

/// Runs the handler until it returns, or until it was requested to stop and its grace period is over.
///
/// Returns the outcome, or `None` if the lease is lost: another worker may own the job. Also returns how long the
/// handler ran, if it was started.
pub(crate) async fn execute(
    service: &HandlerService,
    context: &Context,
    options: &WorkerOptions,
    counters: &Counters,
) -> (Option<Outcome>, Option<Duration>) {
    // A job that was stopped or timed out while it waited for a slot is not started.
    if context.stop().reason().is_some() {
        return (outcome_of(context, None), None);
    }
    if context.deadline().is_some_and(|deadline| deadline <= Instant::now()) {
        return (Some(Outcome::Release), None);
    }
    counters.add_started(1);
    let span = attempt_span(context, options.trace_propagator);
    span.in_scope(|| tracing::debug!(queue = %context.queue(), "attempt started"));
    let started = Instant::now();
    // Everything inside is application code: layers, handlers, drops, the text of errors. A panic there fails this
    // attempt and leaves the slot working.
    let attempt = run(service, context, options.cancel_grace).instrument(span.clone());
    let outcome = match AssertUnwindSafe(attempt).catch_unwind().await {
        Ok(outcome) => outcome,
        Err(panic) => {
            counters.add_panicked(1);
            let error = JobError::new(format!("the handler panicked: {}", panic_message(&*panic)));
            outcome_of(context, Some(Err(error)))
        }
    };
    let took = started.elapsed();
    let label = outcome_label(outcome.as_ref());
    // Without the error text, which may quote the payload. The store keeps it with the job.
    span.in_scope(|| tracing::debug!(outcome = label, ?took, "attempt ended"));
    span.record("outcome", label);
    if matches!(label, "failed" | "timed_out") {
        span.record("otel.status_code", "error");
    }
    (outcome, Some(took))
}

/// The span of one attempt. Its fields appear on every log event of the job; the `otel.*` fields are for trace
/// exporters.
fn attempt_span(context: &Context, propagator: Option<TracePropagator>) -> Span {
    let span = tracing::info_span!(
        "job",
        job_id = %context.id(),
        job_type = %context.job_type(),
        attempt = context.attempt(),
        correlation_id = context.correlation_id(),
        trace_id = Empty,
        outcome = Empty,
        otel.name = %context.job_type(),
        otel.kind = "consumer",
        otel.status_code = Empty,
    );
    if let Some(traceparent) = propagator.and_then(|propagate| propagate(&span, context.traceparent())) {
        context.set_span_traceparent(traceparent);
    }
    if let Some(trace_id) = context.trace_id() {
        span.record("trace_id", trace_id);
    }
    span
}

async fn run(service: &HandlerService, context: &Context, grace: Duration) -> Option<Outcome> {
    let call = JobCall { context: context.clone(), payload: context.payload().clone() };
    let work = service.clone().oneshot(call);
    let result = {
        tokio::pin!(work);
        tokio::select! {
            biased;
            result = &mut work => Some(result),
            () = deadline_passed(context) => {
                context.stop().request(StopReason::TimedOut);
                within_grace(work, context, grace).await
            }
            () = context.cancelled() => within_grace(work, context, grace).await,
        }
    };
    outcome_of(context, result)
}

async fn within_grace<T>(mut work: impl Future<Output = T> + Unpin, context: &Context, grace: Duration) -> Option<T> {
    tokio::select! {
        biased;
        result = &mut work => return Some(result),
        () = context.stop().grace_ended().cancelled() => {}
        () = tokio::time::sleep(grace) => {}
    }
    // A blocking handler cannot be dropped. Until it returns it still works on the job, so the outcome waits for it.
    if context.is_blocking() { Some(work.await) } else { None }
}

async fn deadline_passed(context: &Context) {
    match context.deadline() {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

/// The outcome of an attempt. No `result` means that the handler was not started, or was dropped after its grace
/// period.
fn outcome_of(context: &Context, result: Option<HandlerResult>) -> Option<Outcome> {
    let reason = context.stop().reason();
    if reason == Some(StopReason::LeaseLost) {
        return None;
    }
    // The handler completed the job in its own transaction. Reporting the same outcome again is accepted if that
    // committed.
    if let (Some(Ok(_)), Some(completion)) = (&result, context.completion()) {
        return Some(Outcome::Complete { result: completion.result });
    }
    Some(match (reason, result) {
        // Work that is done counts, even if the handler was requested to stop.
        (_, Some(Ok(result))) => Outcome::Complete { result },
        (None, Some(Err(error))) => error.outcome(),
        (Some(StopReason::Cancelled), _) => Outcome::Cancelled,
        (Some(StopReason::TimedOut), _) => Outcome::TimedOut,
        // An explicit outcome counts. A plain failure may stem from the stop request, so it costs no attempt.
        (Some(_), Some(Err(error))) if !error.is_plain() => error.outcome(),
        (Some(_) | None, _) => Outcome::Release,
    })
}

/// The outcome's name in logs and traces.
fn outcome_label(outcome: Option<&Outcome>) -> &'static str {
    match outcome {
        None => "lost",
        Some(Outcome::Complete { .. }) => "completed",
        Some(Outcome::Fail { .. }) => "failed",
        Some(Outcome::TimedOut) => "timed_out",
        Some(Outcome::Cancelled) => "cancelled",
        Some(Outcome::Snooze(_)) => "snoozed",
        Some(Outcome::Release) => "released",
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)")
}
