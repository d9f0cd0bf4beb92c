//! `orchestrix server` and `orchestrix dev`: the API over a store, and whatever else runs beside it.
//!
//! The first signal lets what is being answered and what runs come to an end; the second ends it at once.

use std::{fmt, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum, builder::TypedValueParser};
use orchestrix_client::Client;
use orchestrix_coordinator::{Coordinator, CoordinatorOptions};
use orchestrix_core::NodeName;
use orchestrix_server::{App, Auth, ServerOptions, Tls};
use orchestrix_sqlite::SqliteOptions;
use orchestrix_store::{NodeInfo, PageRequest, Store};
use orchestrix_worker::Worker;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

use crate::{
    arguments::Global,
    builtin::{self, BuiltinOptions},
    database::{Database, Opened},
    failure::{Failure, Outcome, say},
    listen::address,
    metrics, times, traces,
};

/// Serve the API, and take part in leading
#[derive(Debug, Args)]
#[command(after_help = "\
SIGTERM or SIGINT lets requests that are being answered finish; a second one ends it at once, with exit code 1.

It answers whoever shows a key. The first one is made straight on the database:
  orchestrix keys create --role admin --database postgres://app@db/app

Examples:
  orchestrix server --database postgres://app@db/app --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem
  orchestrix server --database sqlite:jobs.db --no-auth")]
pub(crate) struct ServerArguments {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = address)]
    listen: SocketAddr,

    /// Which parts to run
    #[arg(long, value_enum, value_name = "ROLE", value_delimiter = ',', default_value = "api,coordinator")]
    roles: Vec<Role>,

    /// Answer whoever asks, without keys; on loopback only
    #[arg(long)]
    no_auth: bool,

    /// Speak TLS with this certificate, a PEM file with the whole chain
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The private key of the certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Its name among the nodes; by default the machine's and something random
    #[arg(long, value_name = "NAME")]
    node_id: Option<String>,

    /// How long a leader leads without renewing
    #[arg(long, value_name = "DURATION", value_parser = times::duration, default_value = "10s")]
    leader_term: Duration,

    /// How long a silent worker or node is still listed
    #[arg(long, value_name = "DURATION", value_parser = times::duration, default_value = "30s")]
    dead_node_timeout: Duration,

    /// How often it shows that it lives
    #[arg(long, value_name = "DURATION", value_parser = times::duration, default_value = "10s")]
    heartbeat_interval: Duration,

    /// How long requests may take to finish after a signal
    #[arg(long, value_name = "DURATION", value_parser = times::duration, default_value = "30s")]
    drain_timeout: Duration,

    #[command(flatten)]
    pub(crate) traces: traces::Destination,

    /// How many requests are worked on at once; long polls that wait do not count
    #[arg(long, value_name = "N", default_value = "4096", value_parser = count(1))]
    max_requests: usize,

    /// How many more may wait for their turn; others are turned away, to come again
    #[arg(long, value_name = "N", default_value = "16384", value_parser = count(0))]
    max_waiting: usize,
}

// So many of something, at least this many.
fn count(least: i64) -> impl TypedValueParser<Value = usize> {
    clap::value_parser!(u32).range(least..=1_000_000).map(|count| count as usize)
}

/// A part of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Role {
    Api,
    Coordinator,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Api => "api",
            Self::Coordinator => "coordinator",
        })
    }
}

/// Run everything in one process on a file: API, coordinator, and a worker of the built-in types
#[derive(Debug, Args)]
#[command(after_help = "\
Nothing to set up, no keys, loopback only. What is kept is in the data directory; delete it to begin anew.
Its worker may be drained as any other: it ends then, and the rest goes on without it.

Example:
  orchestrix dev --listen 127.0.0.1:8080")]
pub(crate) struct DevArguments {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = address)]
    listen: SocketAddr,

    /// Where to keep jobs
    #[arg(long, value_name = "DIR", default_value = "./orchestrix-data")]
    data: PathBuf,

    /// How many jobs to run at once
    #[arg(long, value_name = "N", default_value_t = 10)]
    concurrency: usize,

    /// Let orchestrix.command run this program, named exactly so; may be given several times
    #[arg(long, value_name = "PROGRAM", value_delimiter = ',')]
    allow_command: Vec<String>,

    /// How long jobs and requests may take to finish after a signal
    #[arg(long, value_name = "DURATION", value_parser = times::duration, default_value = "30s")]
    drain_timeout: Duration,

    #[command(flatten)]
    pub(crate) traces: traces::Destination,
}

/// Both signals, as one.
struct Signals(Signal, Signal);

impl Signals {
    fn new() -> Result<Self> {
        Ok(Self(signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?))
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.0.recv() => {}
            _ = self.1.recv() => {}
        }
    }
}

// Every connection is an open file, and the usual limit is a thousand: as many as may be had without asking anybody.
fn allow_connections() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: limit.maximum, ..limit };
    if let Err(error) = setrlimit(Resource::Nofile, wanted) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}

async fn listen(address: SocketAddr, auth: &Auth) -> Result<TcpListener> {
    if !address.ip().is_loopback() && *auth != Auth::Keys {
        let text = format!("{address} can be reached from outside, and nobody would need a key: listen on 127.0.0.1");
        return Err(Failure::Usage(text).into());
    }
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| Failure::Unreachable(format!("cannot listen on {address}: {error}")).into())
}

pub(crate) async fn server(arguments: &ServerArguments, global: &Global) -> Result<Outcome> {
    global.no_server("server")?;
    let auth = if arguments.no_auth { Auth::Anybody } else { Auth::Keys };
    let tls = arguments.tls()?;
    let metrics = metrics::install()?;
    allow_connections();
    let mut signals = Signals::new()?;
    let api = arguments.roles.contains(&Role::Api);
    let listener = if api { Some(listen(arguments.listen, &auth).await?) } else { None };
    let address = listener.as_ref().map(TcpListener::local_addr).transpose()?;
    let database = Database::alone(global)?.staying();
    let place = database.to_string();
    let opened = Opened::of(database, global, true).await?;
    let coordinator = Coordinator::start(Arc::clone(&opened.store), arguments.node(address)?);
    let coordinator = coordinator.map_err(anyhow::Error::from)?;
    let mut hello = format!("server on {place}: {}\n", names(&arguments.roles));
    if let Some(address) = address {
        let scheme = if tls.is_some() { "https" } else { "http" };
        hello.push_str(&format!("listening on {scheme}://{address}\n"));
        if !address.ip().is_loopback() && tls.is_none() {
            hello.push_str("warning: without TLS whoever is in between reads keys and jobs: give --tls-cert and --tls-key, or put a proxy in front\n");
        }
        if auth == Auth::Keys {
            hello.push_str(&keys_note(&*opened.store).await);
        }
    }
    let stop = watch::Sender::new(false);
    let options = ServerOptions {
        auth,
        tls,
        concurrency: arguments.max_requests,
        queue: arguments.max_waiting,
        drain_timeout: arguments.drain_timeout,
        metrics: Some(metrics),
        trace_tie: arguments.traces.tie(),
        ..ServerOptions::default()
    };
    let serving = serve(&opened.store, listener, options, &stop);
    let outcome = until_told(&mut signals, &stop, &hello, serving).await?;
    let closing = async {
        coordinator.shutdown().await;
        opened.close().await;
    };
    Ok(ended(outcome, &mut signals, closing).await)
}

// Closes what is left, unless a second signal has come or comes meanwhile.
async fn ended(outcome: Option<Outcome>, signals: &mut Signals, closing: impl Future<Output = ()>) -> Outcome {
    let Some(outcome) = outcome else { return Outcome::FAILED };
    tokio::select! {
        () = closing => outcome,
        () = signals.next() => Outcome::FAILED,
    }
}

pub(crate) async fn dev(arguments: &DevArguments, global: &Global) -> Result<Outcome> {
    let metrics = metrics::install()?;
    global.no_server("dev")?;
    allow_connections();
    let mut signals = Signals::new()?;
    let listener = listen(arguments.listen, &Auth::Anybody).await?;
    let address = listener.local_addr()?;
    let data = arguments.data.display();
    std::fs::create_dir_all(&arguments.data).with_context(|| format!("cannot make the directory {data}"))?;
    let database = Database::Sqlite(SqliteOptions::new(arguments.data.join("orchestrix.db")));
    let opened = Opened::of(database, global, true).await?;
    let options = BuiltinOptions {
        commands: arguments.allow_command.iter().cloned().collect(),
        kill_after: Duration::from_secs(2).min(arguments.drain_timeout / 4),
        private_http: true,
    };
    let builder = Worker::builder(&Client::shared(Arc::clone(&opened.store)));
    let builder = builtin::register(builder, &options);
    let builder = builder.concurrency(arguments.concurrency).drain_timeout(arguments.drain_timeout);
    let builder = match arguments.traces.tie() {
        Some(tie) => builder.trace_tie(tie),
        None => builder,
    };
    // Apart from the worker: one that is drained ends, and whatever else runs here goes on.
    let node = NodeInfo {
        name: NodeName::trusted(orchestrix_worker::fresh_name().as_str()),
        address: Some(address.to_string()),
        roles: vec!["api".into(), "coordinator".into(), "worker".into()],
    };
    let coordinator = Coordinator::start(Arc::clone(&opened.store), CoordinatorOptions::new(node))?;
    let worker = builder.no_coordinator().start()?;
    let hello = format!(
        "Orchestrix runs on http://{address}; jobs are kept in {data}. Ctrl-C ends it.\n\n\
         A job:    curl -i http://{address}/jobs -H 'content-type: application/json' \
         -d '{{\"jobType\": \"orchestrix.echo\", \"payload\": {{\"hello\": \"world\"}}}}'\n\
         Its end:  curl 'http://{address}/jobs/JOB_ID?waitSeconds=30'\n\
         Health:   curl http://{address}/readyz\n\
         Metrics:  curl http://{address}/metrics\n\
         The API:  http://{address}/docs\n"
    );
    let stop = watch::Sender::new(false);
    let options = ServerOptions {
        drain_timeout: arguments.drain_timeout,
        metrics: Some(metrics),
        trace_tie: arguments.traces.tie(),
        ..ServerOptions::default()
    };
    let serving = serve(&opened.store, Some(listener), options, &stop);
    let outcome = until_told(&mut signals, &stop, &hello, serving).await?;
    let closing = async {
        let _ = worker.shutdown().await;
        coordinator.shutdown().await;
        opened.close().await;
    };
    Ok(ended(outcome, &mut signals, closing).await)
}

fn names(roles: &[Role]) -> String {
    roles.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

// Who starts it for the first time has no key yet, and would only be refused.
async fn keys_note(store: &dyn Store) -> String {
    match store.list_keys(&PageRequest::first(1)).await {
        Ok(page) if page.items.is_empty() => {
            "there is no key yet: orchestrix keys create --role admin --database URL makes the first\n".into()
        }
        _ => String::new(),
    }
}

impl ServerArguments {
    fn tls(&self) -> Result<Option<Tls>> {
        let Some((certificates, key)) = self.tls_cert.as_ref().zip(self.tls_key.as_ref()) else { return Ok(None) };
        let tls = Tls::read(certificates, key).map_err(|error| Failure::Usage(format!("TLS: {error}")))?;
        Ok(Some(tls))
    }

    fn node(&self, address: Option<SocketAddr>) -> Result<CoordinatorOptions> {
        let name = match &self.node_id {
            Some(name) => {
                NodeName::new(name).map_err(|error| Failure::Usage(format!("--node-id {}", error.message)))?
            }
            None => NodeName::trusted(orchestrix_worker::fresh_name().as_str()),
        };
        let roles = self.roles.iter().map(ToString::to_string).collect();
        let info = NodeInfo { name, address: address.map(|address| address.to_string()), roles };
        let mut options = CoordinatorOptions::new(info);
        options.stands = self.roles.contains(&Role::Coordinator);
        options.term = self.leader_term;
        options.dead_after = self.dead_node_timeout;
        options.heartbeat = self.heartbeat_interval;
        Ok(options)
    }
}

// Answers requests until it is told to stop; without a socket it only waits for that.
async fn serve(
    store: &Arc<dyn Store>,
    listener: Option<TcpListener>,
    options: ServerOptions,
    stop: &watch::Sender<bool>,
) -> Result<Outcome> {
    let mut stopped = stop.subscribe();
    let stopped = async move {
        let _ = stopped.wait_for(|stop| *stop).await;
    };
    match listener {
        Some(listener) => {
            match orchestrix_server::serve(App::new(Arc::clone(store), options), listener, stopped).await? {
                0 => Ok(Outcome::DONE),
                n => {
                    say(&format!("{n} connections were cut off: --drain-timeout waits longer for their answers\n"));
                    Ok(Outcome::FAILED)
                }
            }
        }
        None => {
            stopped.await;
            Ok(Outcome::DONE)
        }
    }
}

// Serves until the first signal and then to the end; none if a second one came before that.
async fn until_told(
    signals: &mut Signals,
    stop: &watch::Sender<bool>,
    hello: &str,
    serving: impl Future<Output = Result<Outcome>>,
) -> Result<Option<Outcome>> {
    tokio::pin!(serving);
    // Said once signals are heard and the socket is open: whoever reads it may use both.
    say(hello);
    tokio::select! {
        served = &mut serving => return served.map(Some),
        () = signals.next() => {}
    }
    stop.send_replace(true);
    tokio::select! {
        served = &mut serving => served.map(Some),
        () = signals.next() => Ok(None),
    }
}
