//! `orchestrix worker`: runs jobs of the built-in types until a signal.
//!
//! The first signal starts the drain: running jobs may finish within the drain timeout. The second one exits at once.
//! The worker claims jobs from a database, where it also coordinates, or from a server. The duration of a lease is set
//! per job, not here.

use std::{fmt, net::SocketAddr, str::FromStr, sync::Arc, time::Duration};

use anyhow::Result;
use clap::Args;
use orchestrix_builtin::BuiltinOptions;
use orchestrix_client::Client;
use orchestrix_core::Queue;
use orchestrix_worker::{Drained, HttpOptions, HttpSource, Worker, WorkerBuilder, WorkerError};
use serde_json::json;

use crate::{
    api::{ApiClient, Request},
    arguments::Global,
    database::{Database, OpenDatabase},
    error::{CliError, ExitStatus, print_stderr},
    listen_address,
    metrics::MetricsEndpoint,
    times, traces,
};

/// How long a program may take to exit after SIGTERM before it is killed.
const KILL_AFTER: Duration = Duration::from_secs(2);

/// Run jobs of the built-in types
#[derive(Debug, Args)]
#[command(after_help = "\
Job types, with the fields of their payloads:
  orchestrix.noop
  orchestrix.echo
  orchestrix.sleep     seconds
  orchestrix.fail      message, retryable, untilAttempt
  orchestrix.http      url, method, headers, body, expectStatus
  orchestrix.command   program, args, env, stdin

SIGTERM or SIGINT stops the worker after running jobs have finished, within --drain-timeout; jobs that did not finish
are released. A second one stops it at once, with exit code 1. `orchestrix workers drain` stops it without a time limit.

Examples:
  orchestrix worker --database sqlite:jobs.db --queues email=3,reports=1 --allow-command /usr/local/bin/report
  orchestrix worker --server https://jobs.example.com --concurrency 50")]
pub(crate) struct Arguments {
    /// Serve these queues, * for all; weights set each queue's share of the claims
    #[arg(long, value_name = "QUEUE[=WEIGHT]", value_delimiter = ',', default_value = "*")]
    queues: Vec<QueueArgument>,

    /// Run at most this many jobs at once
    #[arg(long, value_name = "N", default_value_t = 10)]
    concurrency: usize,

    /// Use this worker name [default: the host name and a random suffix]
    #[arg(long, value_name = "NAME")]
    worker_name: Option<String>,

    /// Send heartbeats this often
    #[arg(long, value_name = "DURATION", value_parser = times::duration, default_value = "10s")]
    heartbeat_interval: Duration,

    /// Poll for jobs at least this often, also without a wake-up
    #[arg(long, value_name = "DURATION", value_parser = times::duration, default_value = "1s")]
    poll_interval: Duration,

    /// Wait this long for running jobs after a signal
    #[arg(long, value_name = "DURATION", value_parser = times::duration, default_value = "30s")]
    drain_timeout: Duration,

    /// Remove workers and nodes from the lists this long after their last heartbeat [default: 30s, or three heartbeats
    /// if longer]
    #[arg(long, value_name = "DURATION", value_parser = times::duration)]
    dead_node_timeout: Option<Duration>,

    /// Lose leadership this long after the last renewal
    #[arg(long, value_name = "DURATION", value_parser = times::duration, default_value = "10s")]
    leader_term: Duration,

    /// Never become the leader; another process must coordinate
    #[arg(long)]
    no_coordinator: bool,

    /// Serve metrics on this address, at /metrics [default: no metrics]
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address::parse)]
    metrics_listen: Option<SocketAddr>,

    /// Allow orchestrix.command to run this program, spelled exactly so; may be repeated
    #[arg(long, value_name = "PROGRAM", value_delimiter = ',')]
    allow_command: Vec<String>,

    /// Allow orchestrix.http to reach addresses that are not public
    #[arg(long)]
    allow_private_http: bool,

    #[command(flatten)]
    pub(crate) traces: traces::TraceArguments,
}

/// One value of `--queues`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum QueueArgument {
    All,
    Queue(Queue, u32),
}

impl FromStr for QueueArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, weight) = match text.split_once('=') {
            Some((name, weight)) => (name, weight.parse().map_err(|_| "a weight must be a number from 1 to 1000")?),
            None if text == "*" => return Ok(Self::All),
            None => (text, 1),
        };
        Ok(Self::Queue(Queue::new(name).map_err(|error| error.to_string())?, weight))
    }
}

impl fmt::Display for QueueArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("*"),
            Self::Queue(name, 1) => write!(f, "{name}"),
            Self::Queue(name, weight) => write!(f, "{name}={weight}"),
        }
    }
}

pub(crate) async fn run(arguments: &Arguments, global: &Global) -> Result<ExitStatus> {
    if arguments.queues.len() > 1 && arguments.queues.contains(&QueueArgument::All) {
        return Err(CliError::Usage("--queues: * means all queues and cannot be combined with others".into()).into());
    }
    let _metrics = match arguments.metrics_listen {
        Some(address) => Some(MetricsEndpoint::open(address).await?),
        None => None,
    };
    match global.server()? {
        Some(server) => run_on_server(arguments, server, global).await,
        None => run_on_database(arguments, global).await,
    }
}

async fn run_on_database(arguments: &Arguments, global: &Global) -> Result<ExitStatus> {
    let database = Database::from_arguments(global)?.for_long_running_process();
    let label = database.to_string();
    // A worker may start before the first job is enqueued, so it creates the database.
    let database = OpenDatabase::open(database, global, true).await?;
    let builder = Worker::builder(&Client::shared(database.store.clone()));
    match run_worker(arguments, builder, &label).await? {
        // A second signal: exit without closing the store.
        None => Ok(ExitStatus::FAILED),
        Some(drained) => {
            database.close().await;
            Ok(exit_status(drained, "database"))
        }
    }
}

async fn run_on_server(arguments: &Arguments, server: String, global: &Global) -> Result<ExitStatus> {
    // An empty request first: its errors give advice about keys, certificates and servers that are still starting.
    let api = ApiClient::open(global, false).await?;
    let empty = Request::post("/worker/leases/complete-batch").json(&json!({"items": []}))?;
    api.execute(empty.idempotent()).await?;
    let defaults = HttpOptions::new(server);
    let options = HttpOptions {
        api_key: global.api_key(),
        connect_timeout: defaults.connect_timeout.min(global.connect_timeout),
        ..defaults
    };
    let label = options.server.clone();
    let source = HttpSource::new(options)?;
    let drained = run_worker(arguments, Worker::with_source(Arc::new(source)), &label).await?;
    Ok(drained.map_or(ExitStatus::FAILED, |drained| exit_status(drained, "server")))
}

/// Runs the worker until a signal, then drains it. `None` if a second signal interrupts the drain.
async fn run_worker(arguments: &Arguments, builder: WorkerBuilder, label: &str) -> Result<Option<Drained>> {
    let worker = arguments.configure(builder).start().map_err(start_error)?;
    let banner = arguments.banner(worker.name().as_str(), label);
    let running = worker.run_until_signal();
    tokio::pin!(running);
    // Printed once signals are handled, so that a reader may send one.
    let drained = tokio::select! {
        biased;
        drained = &mut running => drained,
        () = async { print_stderr(&banner) } => running.await,
    };
    Ok(drained?)
}

impl Arguments {
    fn configure(&self, mut builder: WorkerBuilder) -> WorkerBuilder {
        let options = BuiltinOptions {
            allowed_commands: self.allow_command.iter().cloned().collect(),
            // A cancelled handler gets half of a short drain; its program must be killed before that.
            kill_after: KILL_AFTER.min(self.drain_timeout / 4),
            allow_private_http: self.allow_private_http,
        };
        builder = orchestrix_builtin::register(builder, &options)
            .concurrency(self.concurrency)
            .heartbeat_interval(self.heartbeat_interval)
            .poll_interval(self.poll_interval)
            .drain_timeout(self.drain_timeout);
        if let Some(propagator) = self.traces.propagator() {
            builder = builder.trace_propagator(propagator);
        }
        if let Some(name) = &self.worker_name {
            builder = builder.name(name);
        }
        let weighted = self.queues.iter().any(|queue| matches!(queue, QueueArgument::Queue(_, weight) if *weight != 1));
        for queue in &self.queues {
            if let QueueArgument::Queue(name, weight) = queue {
                builder = match weighted {
                    true => builder.weighted_queue(name, *weight),
                    false => builder.queue(name),
                };
            }
        }
        let (term, dead_after) = (self.leader_term, self.dead_node_timeout);
        match self.no_coordinator {
            true => builder.no_coordinator(),
            false => builder.coordinator(move |options| {
                options.term = term;
                options.dead_after = dead_after.unwrap_or(options.dead_after);
            }),
        }
    }

    fn banner(&self, name: &str, label: &str) -> String {
        let queues: Vec<String> = self.queues.iter().map(QueueArgument::to_string).collect();
        format!(
            "worker {name} on {label}: queues {}; job types {}; concurrency {}\n",
            queues.join(", "),
            orchestrix_builtin::JOB_TYPES.join(", "),
            self.concurrency
        )
    }
}

fn exit_status(drained: Drained, source: &str) -> ExitStatus {
    if drained.unreported > 0 {
        print_stderr(&format!(
            "error: the {source} was unavailable, so {} outcomes were lost; \
             their jobs run again when their leases expire\n",
            drained.unreported
        ));
        return ExitStatus::FAILED;
    }
    ExitStatus::SUCCESS
}

fn start_error(error: WorkerError) -> anyhow::Error {
    match error {
        WorkerError::Invalid(invalid) => CliError::Usage(invalid.to_string()).into(),
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_parsed_with_their_weights() {
        let parse = |text: &str| text.parse::<QueueArgument>().map(|queue| queue.to_string());
        for text in ["*", "email", "email=3"] {
            assert_eq!(parse(text).as_deref(), Ok(text));
        }
        assert_eq!(parse("email=1").as_deref(), Ok("email"));
        for text in ["", "a b", "email=", "email=x", "email=-1", "*=2", "a=1=2"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
