//! `orchestrix dev`: API, coordinator and a worker in one process, on an SQLite file.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use clap::Args;
use orchestrix_builtin::BuiltinOptions;
use orchestrix_client::Client;
use orchestrix_coordinator::{Coordinator, CoordinatorOptions};
use orchestrix_core::NodeName;
use orchestrix_server::{Auth, ServerOptions};
use orchestrix_sqlite::SqliteOptions;
use orchestrix_store::NodeInfo;
use orchestrix_worker::Worker;
use tokio::sync::watch;

use crate::{
    arguments::Global,
    database::{Database, OpenDatabase},
    error::ExitStatus,
    listen_address, metrics,
    serving::{ShutdownSignals, bind, close, raise_open_files_limit, run_until_signal, serve},
    times, traces,
};

/// Run everything in one process: API, coordinator, and a worker with the built-in job types
#[derive(Debug, Args)]
#[command(after_help = "\
For development: no setup, no keys, loopback only. Jobs are stored in the data directory; delete it to start over.
--database and --server have no effect on it.
`orchestrix workers drain` ends its worker; the API and the coordinator continue.

Example:
  orchestrix dev --listen 127.0.0.1:8080")]
pub(crate) struct Arguments {
    /// Listen on this address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = listen_address::parse)]
    listen: SocketAddr,

    /// Store jobs in this directory
    #[arg(long, value_name = "DIR", default_value = "./orchestrix-data")]
    data: PathBuf,

    /// Run at most this many jobs at once
    #[arg(long, value_name = "N", default_value_t = 10)]
    concurrency: usize,

    /// Allow orchestrix.command to run this program, spelled exactly so; may be repeated
    #[arg(long, value_name = "PROGRAM", value_delimiter = ',')]
    allow_command: Vec<String>,

    /// Wait this long for running jobs and requests after a signal
    #[arg(long, value_name = "DURATION", value_parser = times::duration, default_value = "30s")]
    drain_timeout: Duration,

    #[command(flatten)]
    pub(crate) traces: traces::TraceArguments,
}

pub(crate) async fn run(arguments: &Arguments, global: &Global) -> Result<ExitStatus> {
    let metrics = metrics::install()?;
    global.reject_server("dev")?;
    raise_open_files_limit();
    let mut signals = ShutdownSignals::new()?;
    let listener = bind(arguments.listen, &Auth::Disabled).await?;
    let address = listener.local_addr()?;
    let data = arguments.data.display();
    std::fs::create_dir_all(&arguments.data).with_context(|| format!("cannot create the directory {data}"))?;
    let database = Database::Sqlite(SqliteOptions::new(arguments.data.join("orchestrix.db")));
    let database = OpenDatabase::open(database, global, true).await?;
    let options = BuiltinOptions {
        allowed_commands: arguments.allow_command.iter().cloned().collect(),
        kill_after: Duration::from_secs(2).min(arguments.drain_timeout / 4),
        allow_private_http: true,
    };
    let builder = Worker::builder(&Client::shared(Arc::clone(&database.store)));
    let builder = orchestrix_builtin::register(builder, &options);
    let builder = builder.concurrency(arguments.concurrency).drain_timeout(arguments.drain_timeout);
    let builder = match arguments.traces.propagator() {
        Some(propagator) => builder.trace_propagator(propagator),
        None => builder,
    };
    // Separate from the worker, because a drained worker would end its own coordinator.
    let node = NodeInfo {
        name: NodeName::trusted(orchestrix_worker::default_worker_name().as_str()),
        address: Some(address.to_string()),
        roles: vec!["api".into(), "coordinator".into(), "worker".into()],
    };
    let coordinator = Coordinator::start(Arc::clone(&database.store), CoordinatorOptions::new(node))?;
    let worker = builder.no_coordinator().start()?;
    let stop = watch::Sender::new(false);
    let options = ServerOptions {
        drain_timeout: arguments.drain_timeout,
        metrics: Some(metrics),
        trace_propagator: arguments.traces.propagator(),
        ..ServerOptions::default()
    };
    let serving = serve(&database.store, Some(listener), options, &stop);
    let banner = banner(address, &data.to_string());
    let status = run_until_signal(&mut signals, &stop, &banner, serving).await?;
    let closing = async {
        let _ = worker.shutdown().await;
        coordinator.shutdown().await;
        database.close().await;
    };
    Ok(close(status, &mut signals, closing).await)
}

fn banner(address: SocketAddr, data: &str) -> String {
    format!(
        "Orchestrix is running on http://{address} (jobs are stored in {data}). Press Ctrl-C to stop.\n\n\
         Enqueue a job:  curl -i http://{address}/jobs -H 'content-type: application/json' \
         -d '{{\"jobType\": \"orchestrix.echo\", \"payload\": {{\"hello\": \"world\"}}}}'\n\
         Wait for it:    curl 'http://{address}/jobs/JOB_ID?waitSeconds=30'\n\
         Health:         curl http://{address}/readyz\n\
         Metrics:        curl http://{address}/metrics\n\
         API docs:       http://{address}/docs\n"
    )
}
