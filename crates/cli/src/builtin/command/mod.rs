//! `orchestrix.command {program, args, env, stdin}`: runs a program that the worker's flags name.
//!
//! No shell, nothing of the worker's environment but what a program needs to find its way, and what it says goes to the job's
//! log. It ends with its job: whoever it started is killed with it, however the job ends.

mod group;
mod output;
mod request;

use std::{
    env, io,
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Command, ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use orchestrix_core::Json;
use orchestrix_store::LogLevel;
use orchestrix_worker::{Context, HandlerResult, JobCall, JobError, JobResult};
use rustix::process::Signal;
use serde::Serialize;
use tokio::{io::AsyncWriteExt, process::ChildStdin, sync::watch, time::Instant};

pub(super) use self::request::Rules;
use self::{
    group::{Group, Pipes},
    output::Output,
    request::Request,
};

pub(super) const TYPE: &str = "orchestrix.command";

/// What a program finds of the worker's environment.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];

/// How long what was said last may take to be read, where somebody out of reach goes on speaking.
const LAST_WORDS: Duration = Duration::from_secs(30);

/// How much of the last line of an error is told.
const ERROR_LINE: usize = 500;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Done {
    exit_code: i32,
    /// The end of it.
    stdout: String,
}

pub(super) async fn run(call: JobCall, rules: Arc<Rules>) -> HandlerResult {
    let request: Request = super::payload::read(&call.payload)?;
    let path = rules.check(&request)?;
    let ctx = &call.context;
    let mut command = Command::new(path);
    command
        .arg0(&request.program)
        .args(&request.args)
        .env_clear()
        .envs(INHERITED.iter().filter_map(|name| Some((name, env::var_os(name)?))))
        .envs(&request.env)
        .env("ORCHESTRIX_JOB_ID", ctx.id().to_string())
        .env("ORCHESTRIX_ATTEMPT", ctx.attempt().to_string())
        .stdin(if request.stdin.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let (group, pipes) = Group::start(command).map_err(|error| unstarted(&request.program, &error))?;
    let (stdout, stderr) = (Output::new(LogLevel::Info), Output::new(LogLevel::Warn));
    let status = attend(group, pipes, request.stdin, ctx, (&stdout, &stderr), rules.kill_after).await?;
    // Whatever it made of the signal, its work may be half done.
    let status = status.ok_or_else(|| JobError::new("asked to stop"))?;
    if status.success() {
        let done = Done { exit_code: 0, stdout: stdout.tail() };
        return Json::of("result", &done).map(Some).map_err(JobError::fatal);
    }
    Err(JobError::new(failure(&request.program, status, &stderr.last_line())))
}

/// Sees a program through to its end; `None` if it had to be stopped.
async fn attend(
    mut group: Group,
    pipes: Pipes,
    stdin: Option<String>,
    ctx: &Context,
    (stdout, stderr): (&Output, &Output),
    kill_after: Duration,
) -> JobResult<Option<ExitStatus>> {
    let (exits, exited) = watch::channel(false);
    let streams = async {
        let hear_stdout = async {
            if let Some(stream) = pipes.stdout {
                stdout.follow(stream, ctx, exited.clone()).await;
            }
        };
        let hear_stderr = async {
            if let Some(stream) = pipes.stderr {
                stderr.follow(stream, ctx, exited.clone()).await;
            }
        };
        tokio::join!(feed(pipes.stdin, stdin), hear_stdout, hear_stderr);
    };
    tokio::pin!(streams);
    let mut silent = false;
    let stopped = loop {
        tokio::select! {
            biased;
            () = group.exited() => break false,
            () = ctx.cancelled() => break true,
            () = &mut streams, if !silent => silent = true,
        }
    };
    if stopped {
        group.signal(Signal::TERM);
        let deadline = Instant::now() + kill_after;
        // Those that it started may need their time too; as long as they live they keep its pipes open.
        let over = async {
            if !silent {
                (&mut streams).await;
            }
            group.exited().await;
        };
        let _ = tokio::time::timeout_at(deadline, over).await;
        group.signal(Signal::KILL);
        group.exited().await;
        group.end()?;
        return Ok(None);
    }
    let status = group.end()?;
    exits.send_replace(true);
    if !silent {
        tokio::select! {
            () = &mut streams => {}
            () = tokio::time::sleep(LAST_WORDS) => {}
            () = ctx.cancelled() => {}
        }
    }
    Ok(Some(status))
}

async fn feed(pipe: Option<ChildStdin>, text: Option<String>) {
    if let (Some(mut pipe), Some(text)) = (pipe, text) {
        // A program need not read all that it is given.
        let _ = pipe.write_all(text.as_bytes()).await;
    }
}

fn unstarted(program: &str, error: &io::Error) -> JobError {
    let text = format!("{program} could not be started: {error}");
    match error.kind() {
        io::ErrorKind::NotFound
        | io::ErrorKind::PermissionDenied
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::ArgumentListTooLong => JobError::fatal(text),
        _ if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => JobError::fatal(text),
        _ => JobError::new(text),
    }
}

fn failure(program: &str, status: ExitStatus, last_line: &str) -> String {
    let mut text = match (status.code(), status.signal()) {
        (Some(code), _) => format!("{program} exited with code {code}"),
        (None, Some(signal)) => format!("{program} was killed by signal {signal}"),
        (None, None) => format!("{program} ended with {status}"),
    };
    if !last_line.is_empty() {
        text += ": ";
        text += &last_line[..last_line.floor_char_boundary(ERROR_LINE)];
    }
    text
}
