//! One attempt: from a leased job to an outcome.

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

use crate::{Answer, Call, Context, JobError, TraceTie, options::WorkerOptions, stats::Counters, stop::StopReason};

/// A handler with all that is wrapped around it: what a [layer](crate::WorkerBuilder::layer) is given.
pub type Stack = BoxCloneSyncService<Call, Option<Json>, JobError>;

/// Runs the handler to its end, or until it was asked to stop and a grace has passed. `None` when the lease is lost:
/// there is nothing to say about a job that is somebody else's. Also tells how long it took, if it was begun.
pub(crate) async fn execute(
    stack: &Stack,
    context: &Context,
    options: &WorkerOptions,
    counters: &Counters,
) -> (Option<Outcome>, Option<Duration>) {
    // It waited for its slot and was asked to stop meanwhile, or its time was up: it is not begun at all.
    if context.stop().reason().is_some() {
        return (decide(context, None), None);
    }
    if context.deadline().is_some_and(|deadline| deadline <= Instant::now()) {
        return (Some(Outcome::Release), None);
    }
    counters.add_started(1);
    let span = span_of(context, options.trace_tie);
    span.in_scope(|| tracing::debug!(queue = %context.queue(), "begins"));
    let begun = Instant::now();
    // All that is the application's own: layers, handlers, what they leave behind to be dropped, texts of errors. Whatever
    // panics there is this attempt's failure, and the slot works on.
    let outcome =
        match AssertUnwindSafe(run(stack, context, options.cancel_grace).instrument(span.clone())).catch_unwind().await
        {
            Ok(outcome) => outcome,
            Err(panic) => {
                counters.add_panicked(1);
                decide(context, Some(Err(JobError::new(format!("the handler panicked: {}", message(&*panic))))))
            }
        };
    let took = begun.elapsed();
    let label = outcome_label(outcome.as_ref());
    // Without the text of an error, which may repeat what is in the payload: it is kept with the job.
    span.in_scope(|| tracing::debug!(outcome = label, ?took, "ended"));
    span.record("outcome", label);
    if matches!(label, "failed" | "timed_out") {
        span.record("otel.status_code", "error");
    }
    (outcome, Some(took))
}

// What stands in it is on every line about the job. Names with a dot are for whoever exports traces.
fn span_of(context: &Context, tie: Option<TraceTie>) -> Span {
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
    if let Some(own) = tie.and_then(|tie| tie(&span, context.traceparent())) {
        context.belongs_to(own);
    }
    if let Some(trace_id) = context.trace_id() {
        span.record("trace_id", trace_id);
    }
    span
}

async fn run(stack: &Stack, context: &Context, grace: Duration) -> Option<Outcome> {
    let call = Call { context: context.clone(), payload: context.payload().clone() };
    let work = stack.clone().oneshot(call);
    let answer = {
        tokio::pin!(work);
        tokio::select! {
            biased;
            answer = &mut work => Some(answer),
            () = overdue(context) => {
                context.stop().ask(StopReason::TimedOut);
                within_grace(work, context, grace).await
            }
            () = context.cancelled() => within_grace(work, context, grace).await,
        }
    };
    decide(context, answer)
}

async fn within_grace<T>(mut work: impl Future<Output = T> + Unpin, context: &Context, grace: Duration) -> Option<T> {
    tokio::select! {
        biased;
        ended = &mut work => return Some(ended),
        () = context.stop().cut().cancelled() => {}
        () = tokio::time::sleep(grace) => {}
    }
    // Nothing takes a thread from whoever blocks it: until it returns the job is being worked on, and nobody is told otherwise.
    if context.is_blocking() { Some(work.await) } else { None }
}

async fn overdue(context: &Context) {
    match context.deadline() {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

// `None` for an answer means that the handler was not begun, or did not end in its grace and was dropped.
fn decide(context: &Context, answer: Option<Answer>) -> Option<Outcome> {
    let reason = context.stop().reason();
    if reason == Some(StopReason::LeaseLost) {
        return None;
    }
    // Written in the handler's own transaction: saying the same again is answered as the first time if that was committed.
    if let (Some(Ok(_)), Some(completion)) = (&answer, context.completion()) {
        return Some(Outcome::Complete { result: completion.result });
    }
    Some(match (reason, answer) {
        // Done is done, even if somebody wanted it to stop.
        (_, Some(Ok(result))) => Outcome::Complete { result },
        (None, Some(Err(error))) => error.outcome(),
        (Some(StopReason::Cancelled), _) => Outcome::Cancelled,
        (Some(StopReason::TimedOut), _) => Outcome::TimedOut,
        // What a handler says on purpose counts; a failure that may come from being stopped costs no attempt.
        (Some(_), Some(Err(error))) if !error.is_plain() => error.outcome(),
        (Some(_) | None, _) => Outcome::Release,
    })
}

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

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)")
}
