//! `orchestrix.command {program, args, env, stdin}`: runs a program that the worker's options allow.
//!
//! | module | what it owns |
//! |---|---|
//! | `allowlist` | the payload, and which programs may run |
//! | `process_group` | the program with everything it starts |
//! | `output` | its standard output and standard error, as lines of the job's log |
//!
//! There is no shell, and the program inherits only a few variables of the worker's environment. Its output goes to
//! the job's log. Everything it started is killed with it, however the job ends.

mod allowlist;
mod output;
mod process_group;

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

pub(crate) use self::allowlist::Allowlist;
use self::{
    allowlist::CommandRequest,
    output::OutputStream,
    process_group::{Pipes, ProcessGroup},
};
use crate::INTERRUPTED;

pub(crate) const TYPE: &str = "orchestrix.command";

/// The variables that a program inherits from the worker's environment.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];

/// How long to read the remaining output after the program has exited, where a process outside the group still writes.
const OUTPUT_GRACE: Duration = Duration::from_secs(30);

/// How much of the last line of standard error an error message holds.
const MAX_ERROR_LINE: usize = 500;

/// The result of a job whose program exited with 0.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CommandResult {
    exit_code: i32,
    /// The end of standard output.
    stdout: String,
}

pub(crate) async fn run(call: JobCall, allowlist: Arc<Allowlist>) -> HandlerResult {
    let request: CommandRequest = crate::payload::read(&call.payload)?;
    let path = allowlist.find_program(&request)?;
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
    let (group, pipes) = ProcessGroup::spawn(command).map_err(|error| spawn_error(&request.program, &error))?;
    let (stdout, stderr) = (OutputStream::new(LogLevel::Info), OutputStream::new(LogLevel::Warn));
    let status = run_to_exit(group, pipes, request.stdin, ctx, (&stdout, &stderr), allowlist.kill_after).await?;
    // However the program reacted to the signal, its work may be half done.
    let status = status.ok_or_else(|| JobError::new(INTERRUPTED))?;
    if status.success() {
        let result = CommandResult { exit_code: 0, stdout: stdout.tail() };
        return Json::of("result", &result).map(Some).map_err(JobError::fatal);
    }
    Err(JobError::new(exit_error(&request.program, status, &stderr.last_line())))
}

/// Feeds the program, logs its output and waits for its exit; `None` if the job was cancelled and the program stopped.
async fn run_to_exit(
    mut group: ProcessGroup,
    pipes: Pipes,
    stdin: Option<String>,
    ctx: &Context,
    (stdout, stderr): (&OutputStream, &OutputStream),
    kill_after: Duration,
) -> JobResult<Option<ExitStatus>> {
    let (exit_sender, exited) = watch::channel(false);
    let streams = async {
        let read_stdout = async {
            if let Some(stream) = pipes.stdout {
                stdout.follow(stream, ctx, exited.clone()).await;
            }
        };
        let read_stderr = async {
            if let Some(stream) = pipes.stderr {
                stderr.follow(stream, ctx, exited.clone()).await;
            }
        };
        tokio::join!(write_stdin(pipes.stdin, stdin), read_stdout, read_stderr);
    };
    tokio::pin!(streams);
    let mut streams_ended = false;
    let cancelled = loop {
        tokio::select! {
            biased;
            () = group.wait_exit() => break false,
            () = ctx.cancelled() => break true,
            () = &mut streams, if !streams_ended => streams_ended = true,
        }
    };
    if cancelled {
        group.signal(Signal::TERM);
        let deadline = Instant::now() + kill_after;
        // Its children also get the time until the deadline: they hold the pipes open while they live.
        let group_ended = async {
            if !streams_ended {
                (&mut streams).await;
            }
            group.wait_exit().await;
        };
        let _ = tokio::time::timeout_at(deadline, group_ended).await;
        group.signal(Signal::KILL);
        group.wait_exit().await;
        group.reap()?;
        return Ok(None);
    }
    let status = group.reap()?;
    exit_sender.send_replace(true);
    if !streams_ended {
        tokio::select! {
            () = &mut streams => {}
            () = tokio::time::sleep(OUTPUT_GRACE) => {}
            () = ctx.cancelled() => {}
        }
    }
    Ok(Some(status))
}

async fn write_stdin(pipe: Option<ChildStdin>, text: Option<String>) {
    if let (Some(mut pipe), Some(text)) = (pipe, text) {
        // Fails if the program does not read all of it, which is its own choice.
        let _ = pipe.write_all(text.as_bytes()).await;
    }
}

fn spawn_error(program: &str, error: &io::Error) -> JobError {
    let text = format!("cannot start {program}: {error}");
    match error.kind() {
        io::ErrorKind::NotFound
        | io::ErrorKind::PermissionDenied
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::ArgumentListTooLong => JobError::fatal(text),
        _ if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => JobError::fatal(text),
        _ => JobError::new(text),
    }
}

fn exit_error(program: &str, status: ExitStatus, last_line: &str) -> String {
    let mut text = match (status.code(), status.signal()) {
        (Some(code), _) => format!("{program} exited with code {code}"),
        (None, Some(signal)) => format!("{program} was killed by signal {signal}"),
        (None, None) => format!("{program} ended with {status}"),
    };
    if !last_line.is_empty() {
        text += ": ";
        text += &last_line[..last_line.floor_char_boundary(MAX_ERROR_LINE)];
    }
    text
}
