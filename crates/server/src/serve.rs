//! A server on its socket.

use std::{io, sync::Arc};

use tokio::net::TcpListener;

use crate::{App, router};

/// Answers requests until `stop` comes; then those that are being worked on are answered, and long polls at once.
pub async fn serve(
    app: Arc<App>,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let patience = app.options.drain_timeout;
    let (told, hears) = tokio::sync::oneshot::channel();
    let closing = Arc::clone(&app);
    let serving = axum::serve(listener, router(Arc::clone(&app))).with_graceful_shutdown(async move {
        stop.await;
        closing.close();
        let _ = told.send(());
    });
    tokio::select! {
        served = serving => served,
        // Whoever does not finish in time is cut off.
        () = async { let _ = hears.await; tokio::time::sleep(patience).await } => Ok(()),
    }
}
