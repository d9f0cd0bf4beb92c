//! A server on its socket.

use std::{io, sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};

use crate::{App, router};

/// The longest head of a request, and how much of a body is taken in at a time.
const BUFFER: usize = 64 * 1024;
/// How soon a socket is tried again that could not take a connection.
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// Answers requests until `stop` comes; then those that are being worked on are answered, and long polls at once.
pub async fn serve(
    app: Arc<App>,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
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
            Ok((stream, place)) => {
                let answering = answer(http.clone(), stream, router.clone(), Arc::clone(&app));
                tokio::spawn(async move {
                    answering.await;
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
    // Whoever does not finish in time is cut off.
    let all = u32::try_from(most).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(patience, places.acquire_many(all)).await;
    Ok(())
}

async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    // Answers are written whole: to wait for more to send with them would only make them late.
    stream.set_nodelay(true)?;
    Ok((stream, place))
}

// Until the connection ends, or the request that is being worked on when the server closes.
async fn answer(http: http1::Builder, stream: TcpStream, router: Router, app: Arc<App>) {
    let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let connection = connection.with_upgrades();
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = app.closed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}
