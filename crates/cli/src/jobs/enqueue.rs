//! `orchestrix jobs enqueue`: one job from flags, or many from a file, all or none.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Result;
use clap::{Args, ValueEnum};
use orchestrix_api::job::{BatchRequest, BatchResponse, JobRequest, JobStatusView};
use orchestrix_core::{DependsOn, IdempotencyKey, JobId, JobType, NewJob, OnDependencyFailure, Tenant, Timestamp};

use crate::{
    api::{Api, Request},
    each,
    failure::{Failure, Outcome},
    jobs::{
        request,
        template::{ORDER, Template, read_input, unreadable},
        wait,
    },
    output::Output,
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
    template: Template,

    #[command(flatten)]
    job: Description,

    /// Record the jobs of this file, one JSON object a line with the fields of POST /jobs, all or none; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["job", "template"], required_unless_present = "job_type")]
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

/// What only a job that is recorded once may say.
#[derive(Debug, Args)]
#[group(id = "job", multiple = true)]
struct Description {
    /// What kind of work it is
    #[arg(value_name = "TYPE")]
    job_type: Option<JobType>,

    /// Start so long from now
    #[arg(long, value_name = "DURATION", value_parser = times::duration, conflicts_with = "run_at")]
    delay: Option<Duration>,

    /// Start at this time
    #[arg(long, value_name = "TIME", value_parser = times::time)]
    run_at: Option<Timestamp>,

    /// Cancel it if it has not started by then
    #[arg(long, value_name = "TIME", value_parser = times::time)]
    expires_at: Option<Timestamp>,

    /// Makes a repeat of the same request the same job
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<IdempotencyKey>,

    /// Jobs that must complete first
    #[arg(long, value_name = "ID", value_delimiter = ',', help_heading = ORDER)]
    depends_on: Vec<JobId>,

    /// What to do when one of those failed: cancel this one too, run it all the same, or hold it [default: cancel]
    #[arg(long, value_enum, value_name = "POLICY", help_heading = ORDER)]
    on_dependency_failure: Option<Policy>,
}

/// What is said where it is unknown whether a job without a key was recorded.
const DOUBT: &str = "whether it was recorded is unknown: `orchestrix jobs list` shows it; with --idempotency-key, or an \
                     idempotencyKey in every line of a file, it could be sent again without harm";

pub(crate) async fn run(arguments: Arguments, api: &Api, output: &Output) -> Result<Outcome> {
    let (many, mut recorded) = match &arguments.from_file {
        Some(file) => (true, enqueue_many(&read_jobs(file)?, api).await?),
        None => (false, vec![enqueue(&arguments.job.into_job(arguments.template)?, api).await?]),
    };
    let mut outcome = Outcome::DONE;
    if arguments.wait {
        let ids: Vec<JobId> = recorded.iter().map(|job| job.job_id).collect();
        // Known before the wait, which may be cut short.
        for id in &ids {
            output.note(&format!("waiting for {id}"));
        }
        recorded = wait::until_over(&ids, None, api, output).await?;
        outcome = wait::verdict(&recorded);
    }
    let text = || each::lines(&recorded);
    match recorded.as_slice() {
        [job] if !many => output.item(job, text)?,
        jobs => output.list(jobs, text)?,
    }
    Ok(outcome)
}

async fn enqueue(job: &NewJob, api: &Api) -> Result<JobStatusView> {
    let request = Request::post("/jobs").with(&asked(job))?;
    Ok(api.call(once(request, std::slice::from_ref(job))).await?)
}

async fn enqueue_many(jobs: &[NewJob], api: &Api) -> Result<Vec<JobStatusView>> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let batch = BatchRequest { jobs: jobs.iter().map(asked).collect() };
    let request = Request::post("/jobs/batch").with(&batch)?;
    Ok(api.call::<BatchResponse>(once(request, jobs)).await?.jobs)
}

// A key makes a repeat the same job; what has none must not be sent twice.
fn once(request: Request, jobs: &[NewJob]) -> Request {
    match jobs.iter().all(|job| job.idempotency_key.is_some()) {
        true => request.repeatable(),
        false => request.doubtful(DOUBT),
    }
}

impl Description {
    fn into_job(self, template: Template) -> Result<NewJob> {
        let job_type = self.job_type.ok_or_else(|| Failure::Usage("which TYPE of job?".into()))?;
        Ok(NewJob {
            idempotency_key: self.idempotency_key,
            start: request::start(self.delay, self.run_at),
            expires_at: self.expires_at,
            depends_on: self.depends_on.into_iter().map(DependsOn::Job).collect(),
            on_dependency_failure: match self.on_dependency_failure {
                None | Some(Policy::Cancel) => OnDependencyFailure::Cancel,
                Some(Policy::Run) => OnDependencyFailure::Run,
                Some(Policy::Hold) => OnDependencyFailure::Hold,
            },
            ..template.into_job(job_type)?
        })
    }
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

// A tenant that nobody named is left out: it is that of the key, if the key has one.
fn asked(job: &NewJob) -> JobRequest {
    let tenant = (job.tenant != Tenant::default()).then(|| job.tenant.to_string());
    JobRequest { tenant, ..JobRequest::from(job) }
}
