//! `orchestrix worker`: works on jobs of the built-in types until it is told to end.
//!
//! The first signal lets what runs finish, within the drain timeout; the second ends it at once. Leases are no setting of a
//! worker: each job carries its own. It works straight on a database, or over a server, which then leads.

use std::{fmt, net::SocketAddr, str::FromStr, sync::Arc, time::Duration};

use anyhow::Result;
use clap::Args;
use orchestrix_client::Client;
use orchestrix_core::Queue;
use orchestrix_worker::{Drained, HttpOptions, HttpSource, Worker, WorkerBuilder, WorkerError};
use serde_json::json;

use crate::{
    api::{Api, Request},
    arguments::Global,
    builtin::{self, BuiltinOptions},
    database::{Database, Opened},
    failure::{Failure, Outcome, say},
    listen::address,
    metrics::Page,
    times, traces,
};

/// How long a program that was asked to end gets before it is killed.
const KILL_AFTER: Duration = Duration::from_secs(2);

/// Work on jobs of the built-in types
#[derive(Debug, Args)]
#[command(after_help = "\
Types: orchestrix.noop, orchestrix.echo, orchestrix.sleep {seconds}, orchestrix.fail {message, retryable, untilAttempt},
orchestrix.http {url, method, headers, body, expectStatus}, orchestrix.command {program, args, env, stdin}.
SIGTERM or SIGINT lets running jobs finish and hands back the others; a second one ends it at once, with exit code 1.
`orchestrix workers drain` does the same and leaves running jobs all the time they need.

Example:
  orchestrix worker --database sqlite:jobs.db --queues email=3,reports=1 --allow-command /usr/local/bin/report
  orchestrix worker --server https://jobs.example.com --concurrency 50")]
pub(crate) struct Arguments {
    /// Which queues to serve, * for all; with weights, each gets a share by its weight
    #[arg(long, value_name = "QUEUE[=WEIGHT]", value_delimiter = ',', default_value = "*")]
    queues: Vec<Served>,

    /// How many jobs to run at once
    #[arg(long, value_name = "N", default_value_t = 10)]
    concurrency: usize,

    /// Its name among the workers; by default the machine's and something random
    #[arg(long, value_name = "NAME")]
    worker_name: Option<String>,

    /// How often it shows that it lives
    #[arg(long, value_name = "DURATION", value_parser = times::duration, default_value = "10s")]
    heartbeat_interval: Duration,

    /// The longest it waits before it looks for jobs without a hint
    #[arg(long, value_name = "DURATION", value_parser = times::duration, default_value = "1s")]
    poll_interval: Duration,

    /// How long running jobs may take to finish after a signal
    #[arg(long, value_name = "DURATION", value_parser = times::duration, default_value = "30s")]
    drain_timeout: Duration,

    /// How long a silent worker or node is still listed; by default 30s, or three heartbeats if that is longer
    #[arg(long, value_name = "DURATION", value_parser = times::duration)]
    dead_node_timeout: Option<Duration>,

    /// How long a leader leads without renewing
    #[arg(long, value_name = "DURATION", value_parser = times::duration, default_value = "10s")]
    leader_term: Duration,

    /// Take no part in leading; somebody else must
    #[arg(long)]
    no_coordinator: bool,

    /// Where to show metrics, at /metrics; nowhere by default
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    metrics_listen: Option<SocketAddr>,

    /// Let orchestrix.command run this program, named exactly so; may be given several times
    #[arg(long, value_name = "PROGRAM", value_delimiter = ',')]
    allow_command: Vec<String>,

    /// Let orchestrix.http reach addresses that are not public
    #[arg(long)]
    allow_private_http: bool,

    #[command(flatten)]
    pub(crate) traces: traces::Destination,
}

/// What to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Served {
    All,
    Queue(Queue, u32),
}

impl FromStr for Served {
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

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("*"),
            Self::Queue(name, 1) => write!(f, "{name}"),
            Self::Queue(name, weight) => write!(f, "{name}={weight}"),
        }
    }
}

pub(crate) async fn run(arguments: &Arguments, global: &Global) -> Result<Outcome> {
    if arguments.queues.len() > 1 && arguments.queues.contains(&Served::All) {
        return Err(Failure::Usage("--queues: * means all queues, so it stands alone".into()).into());
    }
    let _page = match arguments.metrics_listen {
        Some(address) => Some(Page::open(address).await?),
        None => None,
    };
    match global.server()? {
        Some(server) => over_server(arguments, server, global).await,
        None => on_database(arguments, global).await,
    }
}

async fn on_database(arguments: &Arguments, global: &Global) -> Result<Outcome> {
    let database = Database::of(global)?.staying();
    let place = database.to_string();
    // A worker may be there before the first job.
    let opened = Opened::of(database, global, true).await?;
    let builder = Worker::builder(&Client::shared(opened.store.clone()));
    match work(arguments, builder, &place).await? {
        // At once: whatever the store has under way is cut off.
        None => Ok(Outcome::FAILED),
        Some(drained) => {
            opened.close().await;
            Ok(goodbye(drained, "database"))
        }
    }
}

async fn over_server(arguments: &Arguments, server: String, global: &Global) -> Result<Outcome> {
    // First in the words of a command, which say what to do about a key, a certificate or a server that is still starting.
    let api = Api::open(global, false).await?;
    let nothing = Request::post("/worker/leases/complete-batch").with(&json!({"items": []}))?;
    api.tell(nothing.repeatable()).await?;
    let patience = global.connect_timeout;
    let defaults = HttpOptions::new(server);
    let options =
        HttpOptions { api_key: global.api_key(), connect_timeout: defaults.connect_timeout.min(patience), ..defaults };
    let place = options.server.clone();
    let source = HttpSource::new(options)?;
    let ended = work(arguments, Worker::with_source(Arc::new(source)), &place).await?;
    Ok(ended.map_or(Outcome::FAILED, |drained| goodbye(drained, "server")))
}

/// Works until it is told to end; `None` if that was at once.
async fn work(arguments: &Arguments, builder: WorkerBuilder, place: &str) -> Result<Option<Drained>> {
    let worker = arguments.settings(builder).start().map_err(refused)?;
    let hello = arguments.hello(worker.name().as_str(), place);
    let running = worker.run_until_signal();
    tokio::pin!(running);
    // Said once signals are heard: whoever reads it may send one.
    let ended = tokio::select! {
        biased;
        ended = &mut running => ended,
        () = async { say(&hello) } => running.await,
    };
    Ok(ended?)
}

impl Arguments {
    fn settings(&self, mut builder: WorkerBuilder) -> WorkerBuilder {
        let options = BuiltinOptions {
            commands: self.allow_command.iter().cloned().collect(),
            // A handler gets half of a short drain to stop in; a program must be gone before that ends.
            kill_after: KILL_AFTER.min(self.drain_timeout / 4),
            private_http: self.allow_private_http,
        };
        builder = builtin::register(builder, &options)
            .concurrency(self.concurrency)
            .heartbeat_interval(self.heartbeat_interval)
            .poll_interval(self.poll_interval)
            .drain_timeout(self.drain_timeout);
        if let Some(tie) = self.traces.tie() {
            builder = builder.trace_tie(tie);
        }
        if let Some(name) = &self.worker_name {
            builder = builder.name(name);
        }
        let weighted = self.queues.iter().any(|served| matches!(served, Served::Queue(_, weight) if *weight != 1));
        for served in &self.queues {
            if let Served::Queue(name, weight) = served {
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

    fn hello(&self, name: &str, place: &str) -> String {
        let queues: Vec<String> = self.queues.iter().map(Served::to_string).collect();
        format!(
            "worker {name} on {place}: queues {}; types {}; concurrency {}\n",
            queues.join(", "),
            builtin::TYPES.join(", "),
            self.concurrency
        )
    }
}

fn goodbye(drained: Drained, source: &str) -> Outcome {
    if drained.unreported > 0 {
        say(&format!(
            "error: the {source} was away, so {} outcomes were lost; their jobs run again when their leases have run out\n",
            drained.unreported
        ));
        return Outcome::FAILED;
    }
    Outcome::DONE
}

fn refused(error: WorkerError) -> anyhow::Error {
    match error {
        WorkerError::Invalid(invalid) => Failure::Usage(invalid.to_string()).into(),
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_read_with_their_weights() {
        let read = |text: &str| text.parse::<Served>().map(|served| served.to_string());
        for text in ["*", "email", "email=3"] {
            assert_eq!(read(text).as_deref(), Ok(text));
        }
        assert_eq!(read("email=1").as_deref(), Ok("email"));
        for text in ["", "a b", "email=", "email=x", "email=-1", "*=2", "a=1=2"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
