//! `orchestrix server`: the API and the coordinator on a database.

use std::{fmt, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Result;
use clap::{Args, ValueEnum, builder::TypedValueParser};
use orchestrix_coordinator::{Coordinator, CoordinatorOptions};
use orchestrix_core::NodeName;
use orchestrix_server::{Auth, ServerOptions, Tls};
use orchestrix_store::{NodeInfo, PageRequest, Store};
use tokio::{net::TcpListener, sync::watch};

use crate::{
    arguments::Global,
    database::{Database, OpenDatabase},
    error::{CliError, ExitStatus},
    listen_address, metrics,
    serving::{ShutdownSignals, bind, close, raise_open_files_limit, run_until_signal, serve},
    times, traces,
};

/// Serve the API and coordinate jobs
#[derive(Debug, Args)]
#[command(after_help = "\
SIGTERM or SIGINT stops the server after running requests have finished; a second one stops it at once, with exit
code 1.

Requests need an API key. Create the first one directly on the database:
  orchestrix keys create --role admin --database postgres://app@db/app

Examples:
  orchestrix server --database postgres://app@db/app --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem
  orchestrix server --database sqlite:jobs.db --no-auth")]
pub(crate) struct Arguments {
    /// Listen on this address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = listen_address::parse)]
    listen: SocketAddr,

    /// Run these parts
    #[arg(long, value_enum, value_name = "ROLE", value_delimiter = ',', default_value = "api,coordinator")]
    roles: Vec<Role>,

    /// Accept requests without a key; on a loopback address only
    #[arg(long)]
    no_auth: bool,

    /// Serve TLS with this certificate: a PEM file with the whole chain
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// The private key of the certificate: a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Use this node name [default: the host name and a random suffix]
    #[arg(long, value_name = "NAME")]
    node_id: Option<String>,

    /// Lose leadership this long after the last renewal
    #[arg(long, value_name = "DURATION", value_parser = times::duration, default_value = "10s")]
    leader_term: Duration,

    /// Remove workers and nodes from the lists this long after their last heartbeat
    #[arg(long, value_name = "DURATION", value_parser = times::duration, default_value = "30s")]
    dead_node_timeout: Duration,

    /// Send heartbeats this often
    #[arg(long, value_name = "DURATION", value_parser = times::duration, default_value = "10s")]
    heartbeat_interval: Duration,

    /// Wait this long for running requests after a signal
    #[arg(long, value_name = "DURATION", value_parser = times::duration, default_value = "30s")]
    drain_timeout: Duration,

    #[command(flatten)]
    pub(crate) traces: traces::TraceArguments,

    /// Process at most this many requests at once; waiting long polls do not count
    #[arg(long, value_name = "N", default_value = "4096", value_parser = count(1))]
    max_requests: usize,

    /// Queue at most this many further requests; the rest get 429
    #[arg(long, value_name = "N", default_value = "16384", value_parser = count(0))]
    max_waiting: usize,
}

fn count(min: i64) -> impl TypedValueParser<Value = usize> {
    clap::value_parser!(u32).range(min..=1_000_000).map(|count| count as usize)
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

pub(crate) async fn run(arguments: &Arguments, global: &Global) -> Result<ExitStatus> {
    global.reject_server("server")?;
    let auth = if arguments.no_auth { Auth::Disabled } else { Auth::Keys };
    let tls = arguments.tls()?;
    let metrics = metrics::install()?;
    raise_open_files_limit();
    let mut signals = ShutdownSignals::new()?;
    let has_api = arguments.roles.contains(&Role::Api);
    let listener = if has_api { Some(bind(arguments.listen, &auth).await?) } else { None };
    let address = listener.as_ref().map(TcpListener::local_addr).transpose()?;
    let database = Database::required(global)?.for_long_running_process();
    let label = database.to_string();
    let database = OpenDatabase::open(database, global, true).await?;
    let coordinator = Coordinator::start(Arc::clone(&database.store), arguments.coordinator_options(address)?)
        .map_err(anyhow::Error::from)?;
    let mut banner = format!("server on {label}: {}\n", join_roles(&arguments.roles));
    if let Some(address) = address {
        let scheme = if tls.is_some() { "https" } else { "http" };
        banner.push_str(&format!("listening on {scheme}://{address}\n"));
        if !address.ip().is_loopback() && tls.is_none() {
            banner.push_str(
                "warning: without TLS, keys and jobs can be read on the network: \
                 set --tls-cert and --tls-key, or put a TLS proxy in front\n",
            );
        }
        if auth == Auth::Keys {
            banner.push_str(&first_key_hint(&*database.store).await);
        }
    }
    let stop = watch::Sender::new(false);
    let options = ServerOptions {
        auth,
        tls,
        max_concurrent_requests: arguments.max_requests,
        max_queued_requests: arguments.max_waiting,
        drain_timeout: arguments.drain_timeout,
        metrics: Some(metrics),
        trace_propagator: arguments.traces.propagator(),
        ..ServerOptions::default()
    };
    let serving = serve(&database.store, listener, options, &stop);
    let status = run_until_signal(&mut signals, &stop, &banner, serving).await?;
    let closing = async {
        coordinator.shutdown().await;
        database.close().await;
    };
    Ok(close(status, &mut signals, closing).await)
}

fn join_roles(roles: &[Role]) -> String {
    roles.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

// Without any key every request would be rejected.
async fn first_key_hint(store: &dyn Store) -> String {
    match store.list_keys(&PageRequest::first(1)).await {
        Ok(page) if page.items.is_empty() => {
            "there is no API key yet: create one with `orchestrix keys create --role admin --database URL`\n".into()
        }
        _ => String::new(),
    }
}

impl Arguments {
    fn tls(&self) -> Result<Option<Tls>> {
        let Some((certificates, key)) = self.tls_cert.as_ref().zip(self.tls_key.as_ref()) else { return Ok(None) };
        let tls = Tls::from_pem_files(certificates, key).map_err(|error| CliError::Usage(format!("TLS: {error}")))?;
        Ok(Some(tls))
    }

    fn coordinator_options(&self, address: Option<SocketAddr>) -> Result<CoordinatorOptions> {
        let name = match &self.node_id {
            Some(name) => {
                NodeName::new(name).map_err(|error| CliError::Usage(format!("--node-id {}", error.message)))?
            }
            None => NodeName::trusted(orchestrix_worker::default_worker_name().as_str()),
        };
        let roles = self.roles.iter().map(ToString::to_string).collect();
        let info = NodeInfo { name, address: address.map(|address| address.to_string()), roles };
        let mut options = CoordinatorOptions::new(info);
        options.can_lead = self.roles.contains(&Role::Coordinator);
        options.term = self.leader_term;
        options.dead_after = self.dead_node_timeout;
        options.heartbeat = self.heartbeat_interval;
        Ok(options)
    }
}
