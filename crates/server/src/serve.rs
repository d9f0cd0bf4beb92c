//! Serves the router on a socket: connection limit, TLS handshake, timeouts and graceful shutdown.

use std::{
    io,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{Router, http::Request};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_rustls::server::TlsStream;
use tower::ServiceExt;

use crate::{App, Auth, Tls, middleware::ClientAddr, router, write_timeout::WriteTimeout};

/// The longest request head, and the most bytes of a body that are read at a time.
const BUFFER: usize = 64 * 1024;
/// The pause after a failed `accept`, and between two checks whether a connection is busy.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// The longest TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// During shutdown: how long a response may take to be written, WebSockets to close, and undelivered jobs to be
/// released.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves requests until `stop` completes. Then it finishes the running requests, answers long polls at once, and
/// returns the number of connections that it had to cut off.
///
/// # Errors
/// If the server requires no keys and its socket is reachable from other machines.
pub async fn serve(
    app: Arc<App>,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<usize> {
    let address = listener.local_addr()?;
    if app.options.auth != Auth::Keys && !address.ip().to_canonical().is_loopback() {
        let text = format!(
            "{address} is reachable from other machines and the server requires no keys; \
             listen on 127.0.0.1 or require keys"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let max_connections = app.options.max_connections.clamp(1, u32::MAX as usize);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(app.options.idle_timeout).max_buf_size(BUFFER);
    let router = router(Arc::clone(&app));
    let connections = Arc::new(Semaphore::new(max_connections));
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = accept(&listener, &connections) => accepted,
        };
        match accepted {
            Ok((stream, client, permit)) => {
                let (http, router, app) = (http.clone(), router.clone(), Arc::clone(&app));
                tokio::spawn(async move {
                    match app.options.tls.clone() {
                        None => serve_connection(http, stream, client, router, app).await,
                        Some(tls) => {
                            if let Some(stream) = tls_handshake(&tls, stream, &app).await {
                                serve_connection(http, stream, client, router, app).await;
                            }
                        }
                    }
                    drop(permit);
                });
            }
            // Too many open files, for example. Connections that end meanwhile free some.
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
        }
    }
    drop(listener);
    app.shut_down();
    let all = u32::try_from(max_connections).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(app.options.drain_timeout, connections.acquire_many(all)).await;
    // An upgraded WebSocket no longer counts as a connection, but holds a subscription permit until it has closed.
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, app.subscription_quota.drain()).await;
    let cut_off = max_connections - connections.available_permits();
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, app.lease_hub.drain()).await;
    Ok(cut_off)
}

// Returns `None` if the handshake fails or takes too long, or the server shuts down.
async fn tls_handshake(tls: &Tls, stream: TcpStream, app: &App) -> Option<TlsStream<TcpStream>> {
    let timeout = app.options.idle_timeout.min(HANDSHAKE_TIMEOUT);
    let handshake = tokio::select! {
        handshake = tokio::time::timeout(timeout, tls.0.accept(stream)) => handshake,
        () = app.shutdown_requested() => return None,
    };
    match handshake {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%error, "TLS handshake failed");
            None
        }
        Err(_) => None,
    }
}

async fn accept(
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
) -> io::Result<(TcpStream, IpAddr, OwnedSemaphorePermit)> {
    let permit = Arc::clone(connections).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, client) = listener.accept().await?;
    // Responses are written whole, so Nagle's algorithm would only delay them.
    stream.set_nodelay(true)?;
    Ok((stream, client.ip(), permit))
}

// Serves one connection until it ends. During shutdown that is after the running request.
async fn serve_connection<S>(http: http1::Builder, stream: S, client: IpAddr, router: Router, app: Arc<App>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let busy = AtomicBool::new(false);
    let needs_client_addr = app.options.auth == Auth::Keys;
    let service = service_fn(|mut request: Request<Incoming>| {
        busy.store(true, Ordering::Relaxed);
        if needs_client_addr {
            request.extensions_mut().insert(ClientAddr(client));
        }
        let responding = router.clone().oneshot(request);
        async {
            let response = responding.await;
            busy.store(false, Ordering::Relaxed);
            response
        }
    });
    let stream = WriteTimeout::new(stream, app.options.write_timeout);
    let connection = http.serve_connection(TokioIo::new(stream), service).with_upgrades();
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = app.shutdown_requested() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = &mut connection => ended,
                () = stays_idle(&busy) => Ok(()),
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended with an error");
    }
}

// Completes when the connection has no running request and its client has had time to read the last response.
async fn stays_idle(busy: &AtomicBool) {
    while busy.load(Ordering::Relaxed) {
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
    tokio::time::sleep(CLOSE_TIMEOUT).await;
}

#[cfg(test)]
mod tests {
    use orchestrix_memory::MemoryStore;

    use super::*;
    use crate::ServerOptions;

    #[tokio::test]
    async fn only_a_server_with_keys_may_listen_beyond_loopback() {
        let serve_on = async |auth: Auth, address: &str| {
            let options = ServerOptions { auth, ..ServerOptions::default() };
            let listener = TcpListener::bind(address).await.unwrap();
            serve(App::new(Arc::new(MemoryStore::new()), options), listener, async {}).await
        };
        for auth in [Auth::Disabled, Auth::InProcess("me".into())] {
            let error = serve_on(auth.clone(), "0.0.0.0:0").await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{auth:?}: {error}");
            assert_eq!(serve_on(auth, "127.0.0.1:0").await.unwrap(), 0);
        }
        assert_eq!(serve_on(Auth::Keys, "0.0.0.0:0").await.unwrap(), 0);
    }
}
