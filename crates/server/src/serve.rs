//! A server on its socket.

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

use crate::{App, Auth, Tls, around::Peer, patient::Patient, router};

/// The longest head of a request, and how much of a body is taken in at a time.
const BUFFER: usize = 64 * 1024;
/// How soon a socket is tried again that could not take a connection.
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// How long it may take to come to terms on a secret connection.
const GREETING: Duration = Duration::from_secs(10);

/// How long an answer may take to be written, and leased jobs to be handed back, when the server ends.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Answers requests until `stop` comes; then those that are being worked on are answered, and long polls at once. How many had to be
/// cut off in the end.
///
/// # Errors
/// If it asks for no keys and the socket can be reached from elsewhere.
pub async fn serve(
    app: Arc<App>,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<usize> {
    let address = listener.local_addr()?;
    if app.options.auth != Auth::Keys && !address.ip().to_canonical().is_loopback() {
        let text = format!("{address} can be reached from outside, and nobody would need a key: listen on 127.0.0.1");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let (most, patience) = (app.options.connections.clamp(1, u32::MAX as usize), app.options.drain_timeout);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(app.options.idle_timeout).max_buf_size(BUFFER);
    let router = router(Arc::clone(&app));
    let places = Arc::new(Semaphore::new(most));
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = accept(&listener, &places) => accepted,
        };
        match accepted {
            Ok((stream, peer, place)) => {
                let (http, router, app) = (http.clone(), router.clone(), Arc::clone(&app));
                tokio::spawn(async move {
                    match app.options.tls.clone() {
                        None => answer(http, stream, peer, router, app).await,
                        Some(tls) => {
                            if let Some(stream) = greet(&tls, stream, &app).await {
                                answer(http, stream, peer, router, app).await;
                            }
                        }
                    }
                    drop(place);
                });
            }
            // Too many files are open, say: what is answered meanwhile closes some.
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(TRY_AGAIN).await;
            }
        }
    }
    drop(listener);
    app.close();
    let all = u32::try_from(most).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(patience, places.acquire_many(all)).await;
    // WebSockets have left their connections behind, and say goodbye.
    let _ = tokio::time::timeout(LAST_WORDS, app.live.cleared()).await;
    let cut_off = most - places.available_permits();
    // Jobs that were leased for polls which have just ended.
    let _ = tokio::time::timeout(LAST_WORDS, app.desk.cleared()).await;
    Ok(cut_off)
}

// A connection that is spoken in secret. Who does not come to terms within the time of a head is let go.
async fn greet(tls: &Tls, stream: TcpStream, app: &App) -> Option<TlsStream<TcpStream>> {
    let greeted = tokio::select! {
        greeted = tokio::time::timeout(app.options.idle_timeout.min(GREETING), tls.0.accept(stream)) => greeted,
        () = app.closed() => return None,
    };
    match greeted {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a connection could not be made secret");
            None
        }
        Err(_) => None,
    }
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, IpAddr, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, from) = listener.accept().await?;
    // Answers are written whole: to wait for more to send with them would only make them late.
    stream.set_nodelay(true)?;
    Ok((stream, from.ip(), place))
}

// Until the connection ends, or the request that is being worked on when the server closes.
async fn answer<S>(http: http1::Builder, stream: S, peer: IpAddr, router: Router, app: Arc<App>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let busy = AtomicBool::new(false);
    let by_key = app.options.auth == Auth::Keys;
    let service = service_fn(|mut request: Request<Incoming>| {
        busy.store(true, Ordering::Relaxed);
        if by_key {
            request.extensions_mut().insert(Peer(peer));
        }
        let answering = router.clone().oneshot(request);
        async {
            let answer = answering.await;
            busy.store(false, Ordering::Relaxed);
            answer
        }
    });
    let stream = Patient::new(stream, app.options.write_timeout);
    let connection = http.serve_connection(TokioIo::new(stream), service).with_upgrades();
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = app.closed() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = &mut connection => ended,
                () = idle(&busy) => Ok(()),
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

// Whoever has not asked anything, or does not take the answer, is not waited for.
async fn idle(busy: &AtomicBool) {
    while busy.load(Ordering::Relaxed) {
        tokio::time::sleep(TRY_AGAIN).await;
    }
    tokio::time::sleep(LAST_WORDS).await;
}

#[cfg(test)]
mod tests {
    use orchestrix_memory::MemoryStore;

    use super::*;
    use crate::ServerOptions;

    #[tokio::test]
    async fn only_a_server_that_asks_for_keys_is_reached_from_elsewhere() {
        let serves = async |auth: Auth, address: &str| {
            let options = ServerOptions { auth, ..ServerOptions::default() };
            let listener = TcpListener::bind(address).await.unwrap();
            serve(App::new(Arc::new(MemoryStore::new()), options), listener, async {}).await
        };
        for auth in [Auth::Anybody, Auth::Own("me".into())] {
            let refused = serves(auth.clone(), "0.0.0.0:0").await.unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{auth:?}: {refused}");
            assert_eq!(serves(auth, "127.0.0.1:0").await.unwrap(), 0);
        }
        assert_eq!(serves(Auth::Keys, "0.0.0.0:0").await.unwrap(), 0);
    }
}
