//! What `orchestrix server` and `orchestrix dev` share: serving the API until a signal, then draining.
//!
//! The first SIGTERM or SIGINT starts the drain: running requests and jobs may finish. The second one exits at once.

use std::{future::Future, net::SocketAddr, sync::Arc};

use anyhow::Result;
use orchestrix_server::{App, Auth, ServerOptions};
use orchestrix_store::Store;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

use crate::error::{CliError, ExitStatus, print_stderr};

/// SIGTERM and SIGINT.
pub(crate) struct ShutdownSignals(Signal, Signal);

impl ShutdownSignals {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?))
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.0.recv() => {}
            _ = self.1.recv() => {}
        }
    }
}

/// Raises the limit of open files to the maximum that needs no privilege: every connection is one, and the usual limit
/// is 1024.
pub(crate) fn raise_open_files_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
}

/// Opens the socket. Without authentication only on a loopback address.
pub(crate) async fn bind(address: SocketAddr, auth: &Auth) -> Result<TcpListener> {
    if !address.ip().is_loopback() && *auth != Auth::Keys {
        let text = format!("{address} is reachable from other machines, and requests need no key: listen on 127.0.0.1");
        return Err(CliError::Usage(text).into());
    }
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| CliError::Unreachable(format!("cannot listen on {address}: {error}")).into())
}

/// Serves the API until `stop`, then drains. Without a listener it only waits for `stop`.
pub(crate) async fn serve(
    store: &Arc<dyn Store>,
    listener: Option<TcpListener>,
    options: ServerOptions,
    stop: &watch::Sender<bool>,
) -> Result<ExitStatus> {
    let mut stop = stop.subscribe();
    let stopped = async move {
        let _ = stop.wait_for(|stop| *stop).await;
    };
    match listener {
        Some(listener) => {
            match orchestrix_server::serve(App::new(Arc::clone(store), options), listener, stopped).await? {
                0 => Ok(ExitStatus::SUCCESS),
                n => {
                    print_stderr(&format!(
                        "error: closed {n} connections before their response; raise --drain-timeout to wait longer\n"
                    ));
                    Ok(ExitStatus::FAILED)
                }
            }
        }
        None => {
            stopped.await;
            Ok(ExitStatus::SUCCESS)
        }
    }
}

/// Serves until the first signal, then drains. `None` if a second signal interrupts the drain.
pub(crate) async fn run_until_signal(
    signals: &mut ShutdownSignals,
    stop: &watch::Sender<bool>,
    banner: &str,
    serving: impl Future<Output = Result<ExitStatus>>,
) -> Result<Option<ExitStatus>> {
    tokio::pin!(serving);
    // Printed once signals are handled and the socket is open, so that a reader may rely on both.
    print_stderr(banner);
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

/// Closes the remaining parts, unless a second signal has come or interrupts it.
pub(crate) async fn close(
    status: Option<ExitStatus>,
    signals: &mut ShutdownSignals,
    closing: impl Future<Output = ()>,
) -> ExitStatus {
    let Some(status) = status else { return ExitStatus::FAILED };
    tokio::select! {
        () = closing => status,
        () = signals.next() => ExitStatus::FAILED,
    }
}
