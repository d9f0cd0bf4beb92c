//! Lines of the log about one job that are said outside of its span.

/// Says it with the ids that the job's own span has: `about_job!(warn, context, error = %error, "…")`.
macro_rules! about_job {
    ($level:ident, $context:expr, $($said:tt)+) => {{
        let context: &$crate::Context = $context;
        tracing::$level!(
            job_id = %context.id(),
            job_type = %context.job_type(),
            attempt = context.attempt(),
            correlation_id = context.correlation_id(),
            trace_id = context.trace_id(),
            $($said)+
        );
    }};
}

pub(crate) use about_job;
