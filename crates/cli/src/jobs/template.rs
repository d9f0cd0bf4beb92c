//! The flags that describe a job, shared by `jobs enqueue` and `schedules put`, and reading its payload.

use std::{
    fmt::Display,
    fs,
    io::{self, Read},
    time::Duration,
};

use anyhow::Result;
use clap::Args;
use orchestrix_core::{
    FieldError, JobType, Json, LimitKey, NewJob, Priority, Queue, Resources, RetryPolicy, Tag, Tenant,
};

use crate::{error::CliError, times};

const RETRIES: &str = "Attempts";
/// The help heading of the flags about order and limits.
pub(crate) const ORDER: &str = "Order and limits";

/// A job without its type and its start.
#[derive(Debug, Args)]
#[group(id = "template", multiple = true)]
pub(crate) struct Template {
    /// The payload: JSON, @FILE, or - for standard input [default: null]
    #[arg(long, value_name = "JSON", allow_negative_numbers = true)]
    payload: Option<String>,

    /// Put the job into this queue [default: default]
    #[arg(long)]
    queue: Option<Queue>,

    /// The priority, -1000 to 1000, higher first [default: 0]
    #[arg(long, value_name = "N", value_parser = priority, allow_negative_numbers = true)]
    priority: Option<Priority>,

    /// Hold the job: do not run it until it is released
    #[arg(long)]
    hold: bool,

    /// The tenant [default: default]
    #[arg(long)]
    tenant: Option<Tenant>,

    /// Tags, for filters
    #[arg(long = "tags", value_name = "TAG", value_delimiter = ',')]
    tags: Vec<Tag>,

    /// A correlation id of your own
    #[arg(long, value_name = "ID")]
    correlation_id: Option<String>,

    /// Run the job at most this many times [default: 10]
    #[arg(long, value_name = "N", help_heading = RETRIES)]
    max_attempts: Option<u16>,

    /// Time out an attempt after this long [default: no timeout]
    #[arg(long, value_name = "DURATION", value_parser = times::duration, help_heading = RETRIES)]
    timeout: Option<Duration>,

    /// The lease: how long a worker without heartbeats keeps the job [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = times::duration, help_heading = RETRIES)]
    lease: Option<Duration>,

    /// The delay before the first retry [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = times::duration, help_heading = RETRIES)]
    retry_base: Option<Duration>,

    /// The factor by which each further delay grows [default: 2]
    #[arg(long, value_name = "N", help_heading = RETRIES)]
    retry_multiplier: Option<f64>,

    /// The longest delay [default: 1h]
    #[arg(long, value_name = "DURATION", value_parser = times::duration, help_heading = RETRIES)]
    retry_max: Option<Duration>,

    /// The share of a delay that is added at random, 0 to 1 [default: 0.1]
    #[arg(long, value_name = "SHARE", help_heading = RETRIES)]
    retry_jitter: Option<f64>,

    /// The key of a concurrency limit; stored, not enforced yet
    #[arg(long, value_name = "KEY", help_heading = ORDER)]
    concurrency_key: Option<LimitKey>,

    /// The key of a rate limit; stored, not enforced yet
    #[arg(long, value_name = "KEY", help_heading = ORDER)]
    rate_limit_key: Option<LimitKey>,

    /// Resources that the job needs: cpu=1,memoryMiB=512; stored, not enforced yet
    #[arg(long, value_name = "NAME=AMOUNT", value_delimiter = ',', value_parser = resource, help_heading = ORDER)]
    resources: Vec<(LimitKey, f64)>,
}

impl Template {
    /// The job of this type, starting at once.
    pub(crate) fn into_job(self, job_type: JobType) -> Result<NewJob> {
        let payload = match self.payload {
            Some(text) => Json::parse("--payload", &read_payload(text)?).map_err(|error| invalid_flag(&error))?,
            None => Json::null(),
        };
        let mut resources = Resources::default();
        for (name, amount) in self.resources {
            resources.set(name, amount).map_err(|error| invalid_flag(&error))?;
        }
        let retry = RetryPolicy::default();
        let default = NewJob::new(job_type);
        Ok(NewJob {
            payload,
            queue: self.queue.unwrap_or_default(),
            priority: self.priority.unwrap_or_default(),
            max_attempts: self.max_attempts.unwrap_or(default.max_attempts),
            timeout: self.timeout,
            lease: self.lease.unwrap_or(default.lease),
            retry: RetryPolicy {
                base: self.retry_base.unwrap_or(retry.base),
                multiplier: self.retry_multiplier.unwrap_or(retry.multiplier),
                max: self.retry_max.unwrap_or(retry.max),
                jitter: self.retry_jitter.unwrap_or(retry.jitter),
            },
            tenant: self.tenant.unwrap_or_default(),
            concurrency_key: self.concurrency_key,
            rate_limit_key: self.rate_limit_key,
            resources,
            tags: self.tags,
            correlation_id: self.correlation_id,
            hold: self.hold,
            ..default
        })
    }
}

fn invalid_flag(error: &FieldError) -> CliError {
    CliError::Usage(error.to_string())
}

fn read_payload(text: String) -> Result<String> {
    match text.strip_prefix('@') {
        Some(path) => fs::read_to_string(path).map_err(|error| read_error(path, &error)),
        None if text == "-" => read_stdin().map_err(|error| read_error("standard input", &error)),
        None => Ok(text),
    }
}

/// The error of an input that cannot be read.
pub(crate) fn read_error(what: impl Display, error: &io::Error) -> anyhow::Error {
    CliError::Usage(format!("cannot read {what}: {error}")).into()
}

/// Reads all of standard input.
pub(crate) fn read_stdin() -> io::Result<String> {
    let mut text = String::new();
    io::stdin().lock().read_to_string(&mut text)?;
    Ok(text)
}

fn priority(text: &str) -> Result<Priority, String> {
    let number = text.parse().map_err(|_| "must be a number".to_owned())?;
    Priority::new(number).map_err(|error| error.message)
}

fn resource(text: &str) -> Result<(LimitKey, f64), String> {
    let invalid = || "must be NAME=AMOUNT, such as cpu=1".to_owned();
    let (name, amount) = text.split_once('=').ok_or_else(invalid)?;
    Ok((LimitKey::new(name).map_err(|_| invalid())?, amount.parse().map_err(|_| invalid())?))
}
