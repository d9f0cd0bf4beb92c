//! `orchestrix jobs enqueue`: one job from flags, or all jobs of a file in one transaction.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Result;
use clap::{ArgGroup, Args, ValueEnum};
use orchestrix_api::job::{BatchRequest, BatchResponse, JobRequest, JobStatusView};
use orchestrix_core::{DependsOn, IdempotencyKey, JobId, JobType, NewJob, OnDependencyFailure, Tenant, Timestamp};

use crate::{
    api::{ApiClient, Request},
    error::{CliError, ExitStatus},
    job_states,
    jobs::{
        request,
        template::{ORDER, Template, read_error, read_stdin},
        wait,
    },
    output::Output,
    times,
};

/// Enqueue one job, or the jobs of a file
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").required(true).args(["job_type", "from_file"]))]
#[command(after_help = "\
Examples:
  orchestrix jobs enqueue SEND_EMAIL --payload '{\"to\": \"user@example.com\"}' --queue email --delay 5m
  orchestrix jobs enqueue IMPORT --payload @rows.json --idempotency-key import-42 --wait
  orchestrix jobs enqueue --from-file jobs.jsonl")]
pub(crate) struct Arguments {
    #[command(flatten)]
    template: Template,

    #[command(flatten)]
    job: JobArguments,

    /// Enqueue the jobs of this file, all or none: one JSON object per line with the fields of POST /jobs; - is
    /// standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["job", "template"])]
    from_file: Option<PathBuf>,

    /// Wait until the jobs have finished; exit with 0 if all completed, else with 1
    #[arg(long)]
    wait: bool,
}

/// What happens to a job when a dependency fails.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Policy {
    Cancel,
    Run,
    Hold,
}

/// The flags that do not apply to the jobs of a schedule.
#[derive(Debug, Args)]
#[group(id = "job", multiple = true)]
struct JobArguments {
    /// The job type
    #[arg(value_name = "TYPE")]
    job_type: Option<JobType>,

    /// Start the job after this long
    #[arg(long, value_name = "DURATION", value_parser = times::duration, conflicts_with = "run_at")]
    delay: Option<Duration>,

    /// Start the job at this time
    #[arg(long, value_name = "TIME", value_parser = times::time)]
    run_at: Option<Timestamp>,

    /// Cancel the job if it has not started by this time
    #[arg(long, value_name = "TIME", value_parser = times::time)]
    expires_at: Option<Timestamp>,

    /// Enqueue only once: a repeated request with the same key returns the existing job
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<IdempotencyKey>,

    /// Start only after these jobs have completed
    #[arg(long, value_name = "ID", value_delimiter = ',', help_heading = ORDER)]
    depends_on: Vec<JobId>,

    /// If a dependency fails: cancel the job, run it anyway, or hold it [default: cancel]
    #[arg(long, value_enum, value_name = "POLICY", help_heading = ORDER)]
    on_dependency_failure: Option<Policy>,
}

/// The advice if it is unknown whether a job without an idempotency key was enqueued.
const UNCERTAINTY: &str = "it is unknown whether the job was enqueued: check with `orchestrix jobs list`; \
                           with --idempotency-key, or an idempotencyKey in every line of a file, \
                           the command can be repeated safely";

pub(crate) async fn run(arguments: Arguments, api: &ApiClient, output: &Output) -> Result<ExitStatus> {
    let (is_batch, mut jobs) = match &arguments.from_file {
        Some(file) => (true, enqueue_many(&read_jobs(file)?, api).await?),
        None => (false, vec![enqueue(&arguments.job.into_job(arguments.template)?, api).await?]),
    };
    let mut status = ExitStatus::SUCCESS;
    if arguments.wait {
        let ids: Vec<JobId> = jobs.iter().map(|job| job.job_id).collect();
        // Printed before the wait, which may be interrupted.
        for id in &ids {
            output.note(&format!("waiting for {id}"));
        }
        jobs = wait::wait_until_finished(&ids, None, api, output).await?;
        status = wait::exit_status(&jobs);
    }
    let text = || job_states::state_lines(&jobs);
    match jobs.as_slice() {
        [job] if !is_batch => output.item(job, text)?,
        jobs => output.list(jobs, text)?,
    }
    Ok(status)
}

async fn enqueue(job: &NewJob, api: &ApiClient) -> Result<JobStatusView> {
    let request = Request::post("/jobs").json(&job_request(job))?;
    Ok(api.call(mark_idempotent(request, std::slice::from_ref(job))).await?)
}

async fn enqueue_many(jobs: &[NewJob], api: &ApiClient) -> Result<Vec<JobStatusView>> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let batch = BatchRequest { jobs: jobs.iter().map(job_request).collect() };
    let request = Request::post("/jobs/batch").json(&batch)?;
    Ok(api.call::<BatchResponse>(mark_idempotent(request, jobs)).await?.jobs)
}

// Only jobs with an idempotency key may be sent twice.
fn mark_idempotent(request: Request, jobs: &[NewJob]) -> Request {
    match jobs.iter().all(|job| job.idempotency_key.is_some()) {
        true => request.idempotent(),
        false => request.not_idempotent(UNCERTAINTY),
    }
}

impl JobArguments {
    fn into_job(self, template: Template) -> Result<NewJob> {
        let job_type = self.job_type.ok_or_else(|| CliError::Usage("no job type: give TYPE, or --from-file".into()))?;
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

/// The jobs of a file. An error lists all invalid lines, up to a limit, and no job is enqueued.
fn read_jobs(file: &Path) -> Result<Vec<NewJob>> {
    const MAX_SHOWN: usize = 20;
    let name = file.display();
    let text = if file == Path::new("-") { read_stdin() } else { fs::read_to_string(file) };
    let text = text.map_err(|error| read_error(&name, &error))?;
    let mut jobs = Vec::new();
    let mut errors = Vec::new();
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match request::parse(line) {
            Ok(job) => jobs.push(job),
            Err(error) => errors.push(format!("  line {}: {error}", i + 1)),
        }
    }
    if jobs.len() > NewJob::MAX_BATCH {
        let text = format!(
            "{name} has {} jobs, but one request takes at most {}: split the file",
            jobs.len(),
            NewJob::MAX_BATCH
        );
        return Err(CliError::Usage(text).into());
    }
    if errors.is_empty() {
        return Ok(jobs);
    }
    let more = errors.len().saturating_sub(MAX_SHOWN);
    errors.truncate(MAX_SHOWN);
    if more > 0 {
        errors.push(format!("  and {more} more"));
    }
    Err(CliError::Usage(format!("no job was enqueued: {name} has invalid lines\n{}", errors.join("\n"))).into())
}

// Leaves out the default tenant, so that the key's own tenant applies.
fn job_request(job: &NewJob) -> JobRequest {
    let tenant = (job.tenant != Tenant::default()).then(|| job.tenant.to_string());
    JobRequest { tenant, ..JobRequest::from(job) }
}
