//! `orchestrix jobs enqueue`: one job from flags, or many from a file, all or none.

use std::{
    fmt::Display,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Result;
use clap::{Args, ValueEnum};
use orchestrix_core::{
    DependsOn, IdempotencyKey, JobId, JobState, JobStatus, JobType, Json, LimitKey, NewJob, OnDependencyFailure,
    Priority, Queue, Resources, RetryPolicy, Tag, Tenant, Timestamp,
};
use orchestrix_store::{Enqueued, Store, StoreError};
use serde::Serialize;

use crate::{
    failure::{Failure, Outcome},
    jobs::{request, wait},
    output::{Format, Output},
    times,
};

/// Record a job, or many
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  orchestrix jobs enqueue SEND_EMAIL --payload '{\"to\": \"user@example.com\"}' --queue email --delay 5m
  orchestrix jobs enqueue IMPORT --payload @rows.json --idempotency-key import-42 --wait
  orchestrix jobs enqueue --from-file jobs.jsonl")]
pub(crate) struct Arguments {
    #[command(flatten)]
    job: Description,

    /// Record the jobs of this file, one JSON object a line with the fields of POST /jobs, all or none; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "job", required_unless_present = "job_type")]
    from_file: Option<PathBuf>,

    /// Wait until it is over; exit with 0 if it completed, 1 if not
    #[arg(long)]
    wait: bool,
}

/// What becomes of a job when one it waits for failed.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Policy {
    Cancel,
    Run,
    Hold,
}

const RETRIES: &str = "Attempts";
const ORDER: &str = "Order and limits";

/// One job.
#[derive(Debug, Args)]
#[group(id = "job", multiple = true)]
struct Description {
    /// What kind of work it is
    #[arg(value_name = "TYPE")]
    job_type: Option<JobType>,

    /// What the worker is handed: JSON, @FILE, or - for standard input [default: null]
    #[arg(long, value_name = "JSON", allow_negative_numbers = true)]
    payload: Option<String>,

    /// Where it waits [default: default]
    #[arg(long)]
    queue: Option<Queue>,

    /// How urgent it is, -1000 to 1000, higher first [default: 0]
    #[arg(long, value_name = "N", value_parser = priority, allow_negative_numbers = true)]
    priority: Option<Priority>,

    /// Start so long from now
    #[arg(long, value_name = "DURATION", value_parser = times::duration, conflicts_with = "run_at")]
    delay: Option<Duration>,

    /// Start at this time
    #[arg(long, value_name = "TIME", value_parser = times::time)]
    run_at: Option<Timestamp>,

    /// Cancel it if it has not started by then
    #[arg(long, value_name = "TIME", value_parser = times::time)]
    expires_at: Option<Timestamp>,

    /// Record it, but do not run it until it is released
    #[arg(long)]
    hold: bool,

    /// Makes a repeat of the same request the same job
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<IdempotencyKey>,

    /// Whose job it is [default: default]
    #[arg(long)]
    tenant: Option<Tenant>,

    /// Words to find it by
    #[arg(long = "tags", value_name = "TAG", value_delimiter = ',')]
    tags: Vec<Tag>,

    /// Your id for the larger whole
    #[arg(long, value_name = "ID")]
    correlation_id: Option<String>,

    /// How often it may be tried [default: 10]
    #[arg(long, value_name = "N", help_heading = RETRIES)]
    max_attempts: Option<u16>,

    /// How long one attempt may take [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = times::duration, help_heading = RETRIES)]
    timeout: Option<Duration>,

    /// How long a silent worker keeps it [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = times::duration, help_heading = RETRIES)]
    lease: Option<Duration>,

    /// The wait after the first failure [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = times::duration, help_heading = RETRIES)]
    retry_base: Option<Duration>,

    /// What each further wait is multiplied by [default: 2]
    #[arg(long, value_name = "N", help_heading = RETRIES)]
    retry_multiplier: Option<f64>,

    /// The longest wait [default: 1h]
    #[arg(long, value_name = "DURATION", value_parser = times::duration, help_heading = RETRIES)]
    retry_max: Option<Duration>,

    /// The share of a wait that chance may add, 0 to 1 [default: 0.1]
    #[arg(long, value_name = "SHARE", help_heading = RETRIES)]
    retry_jitter: Option<f64>,

    /// Jobs that must complete first
    #[arg(long, value_name = "ID", value_delimiter = ',', help_heading = ORDER)]
    depends_on: Vec<JobId>,

    /// What to do when one of those failed: cancel this one too, run it all the same, or hold it [default: cancel]
    #[arg(long, value_enum, value_name = "POLICY", help_heading = ORDER)]
    on_dependency_failure: Option<Policy>,

    /// Shares a concurrency limit with every job of this key
    #[arg(long, value_name = "KEY", help_heading = ORDER)]
    concurrency_key: Option<LimitKey>,

    /// Shares a rate limit with every job of this key
    #[arg(long, value_name = "KEY", help_heading = ORDER)]
    rate_limit_key: Option<LimitKey>,

    /// What it needs of its worker: cpu=1,memoryMiB=512
    #[arg(long, value_name = "NAME=AMOUNT", value_delimiter = ',', value_parser = resource, help_heading = ORDER)]
    resources: Vec<(LimitKey, f64)>,
}

/// A job that was recorded.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Recorded {
    job_id: JobId,
    status: JobStatus,
    duplicate: bool,
    #[serde(skip)]
    state: JobState,
}

impl Recorded {
    const fn of(id: JobId, state: JobState, duplicate: bool) -> Self {
        Self { job_id: id, status: state.status(), duplicate, state }
    }
}

pub(crate) async fn run(arguments: Arguments, store: &dyn Store, output: &Output) -> Result<Outcome> {
    let (many, mut recorded) = match &arguments.from_file {
        Some(file) => (true, store.enqueue_many(read_jobs(file)?).await?),
        None => (false, vec![store.enqueue(arguments.job.into_job()?).await?]),
    };
    let mut outcome = Outcome::DONE;
    if arguments.wait {
        let ids: Vec<JobId> = recorded.iter().map(|job| job.id).collect();
        // Known before the wait, which may be cut short.
        for id in &ids {
            output.note(&format!("waiting for {id}"));
        }
        let ends = wait::until_over(&ids, None, store, output).await?;
        outcome = wait::verdict(&ends);
        for (job, (_, state)) in recorded.iter_mut().zip(ends) {
            job.state = state;
        }
    }
    show(&recorded, many, output)?;
    if output.format() == Format::Table && !many && recorded.iter().all(|job| job.duplicate) {
        output.note("the key was known: nothing new was recorded");
    }
    Ok(outcome)
}

fn show(recorded: &[Enqueued], many: bool, output: &Output) -> Result<()> {
    let recorded: Vec<Recorded> = recorded.iter().map(|job| Recorded::of(job.id, job.state, job.duplicate)).collect();
    // Without a header: scripts take the first word of a line.
    let text = || recorded.iter().map(|job| format!("{}  {}\n", job.job_id, job.state)).collect::<String>();
    match recorded.as_slice() {
        [job] if !many => output.item(job, text),
        jobs => output.list(jobs, text),
    }
}

impl Description {
    fn into_job(self) -> Result<NewJob> {
        let job_type = self.job_type.ok_or_else(|| Failure::Usage("which TYPE of job?".into()))?;
        let payload = match self.payload {
            Some(text) => Json::parse("--payload", &read_payload(text)?).map_err(StoreError::from)?,
            None => Json::null(),
        };
        let mut resources = Resources::default();
        for (name, amount) in self.resources {
            resources.set(name, amount).map_err(StoreError::from)?;
        }
        let retry = RetryPolicy::default();
        let default = NewJob::new(job_type);
        Ok(NewJob {
            payload,
            idempotency_key: self.idempotency_key,
            queue: self.queue.unwrap_or_default(),
            priority: self.priority.unwrap_or_default(),
            start: request::start(self.delay, self.run_at),
            max_attempts: self.max_attempts.unwrap_or(default.max_attempts),
            timeout: self.timeout,
            lease: self.lease.unwrap_or(default.lease),
            retry: RetryPolicy {
                base: self.retry_base.unwrap_or(retry.base),
                multiplier: self.retry_multiplier.unwrap_or(retry.multiplier),
                max: self.retry_max.unwrap_or(retry.max),
                jitter: self.retry_jitter.unwrap_or(retry.jitter),
            },
            depends_on: self.depends_on.into_iter().map(DependsOn::Job).collect(),
            on_dependency_failure: match self.on_dependency_failure {
                None | Some(Policy::Cancel) => OnDependencyFailure::Cancel,
                Some(Policy::Run) => OnDependencyFailure::Run,
                Some(Policy::Hold) => OnDependencyFailure::Hold,
            },
            tenant: self.tenant.unwrap_or_default(),
            concurrency_key: self.concurrency_key,
            rate_limit_key: self.rate_limit_key,
            resources,
            tags: self.tags,
            correlation_id: self.correlation_id,
            expires_at: self.expires_at,
            hold: self.hold,
            ..default
        })
    }
}

fn read_payload(text: String) -> Result<String> {
    match text.strip_prefix('@') {
        Some(path) => fs::read_to_string(path).map_err(|error| unreadable(path, &error)),
        None if text == "-" => read_input().map_err(|error| unreadable("standard input", &error)),
        None => Ok(text),
    }
}

fn unreadable(what: impl Display, error: &io::Error) -> anyhow::Error {
    Failure::Usage(format!("cannot read {what}: {error}")).into()
}

fn read_input() -> io::Result<String> {
    let mut text = String::new();
    io::stdin().lock().read_to_string(&mut text)?;
    Ok(text)
}

/// The jobs of a file. What is wrong with any of them is said at once, up to a bound; then none is recorded.
fn read_jobs(file: &Path) -> Result<Vec<NewJob>> {
    const MAX_SHOWN: usize = 20;
    let name = file.display();
    let text = if file == Path::new("-") { read_input() } else { fs::read_to_string(file) };
    let text = text.map_err(|error| unreadable(&name, &error))?;
    let mut jobs = Vec::new();
    let mut wrong = Vec::new();
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match request::read(line) {
            Ok(job) => jobs.push(job),
            Err(error) => wrong.push(format!("  line {}: {error}", i + 1)),
        }
    }
    if jobs.len() > NewJob::MAX_BATCH {
        let text = format!("{name} holds {} jobs; one call takes {}: split it", jobs.len(), NewJob::MAX_BATCH);
        return Err(Failure::Usage(text).into());
    }
    if wrong.is_empty() {
        return Ok(jobs);
    }
    let more = wrong.len().saturating_sub(MAX_SHOWN);
    wrong.truncate(MAX_SHOWN);
    if more > 0 {
        wrong.push(format!("  and {more} more"));
    }
    Err(Failure::Usage(format!("nothing was recorded, for in {name}\n{}", wrong.join("\n"))).into())
}

fn priority(text: &str) -> Result<Priority, String> {
    let number = text.parse().map_err(|_| "must be a number".to_owned())?;
    Priority::new(number).map_err(|error| error.message)
}

fn resource(text: &str) -> Result<(LimitKey, f64), String> {
    let wrong = || "must be NAME=AMOUNT, such as cpu=1".to_owned();
    let (name, amount) = text.split_once('=').ok_or_else(wrong)?;
    Ok((LimitKey::new(name).map_err(|_| wrong())?, amount.parse().map_err(|_| wrong())?))
}
