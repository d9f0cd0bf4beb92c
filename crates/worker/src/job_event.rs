//! Log events about one job that are emitted outside its span.

/// Emits an event with the same ids as the job's span: `job_event!(warn, context, %error, "lease is lost")`.
macro_rules! job_event {
    ($level:ident, $context:expr, $($event:tt)+) => {{
        let context: &$crate::Context = $context;
        tracing::$level!(
            job_id = %context.id(),
            job_type = %context.job_type(),
            attempt = context.attempt(),
            correlation_id = context.correlation_id(),
            trace_id = context.trace_id(),
            $($event)+
        );
    }};
}

pub(crate) use job_event;
