//! Whether notifications are delivered, or a pooler in transaction mode prevents LISTEN.

use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use orchestrix_store::{Result, StoreError};
use tokio_postgres::{AsyncMessage, NoTls};

use super::facts::NotifyCheck;
use crate::{
    database::{Connection, Database, config},
    error::store_error,
};

/// How long a notification may take.
const TIMEOUT: Duration = Duration::from_secs(3);
/// How often the pooler is tested for lending a session of another client.
const ROUNDS: usize = 20;

pub(super) async fn check(database: &Database) -> Result<NotifyCheck> {
    if is_pooled(database).await? {
        // LISTEN would stay on a session that the pooler lends to other clients.
        return Ok(NotifyCheck::Pooled);
    }
    match tokio::time::timeout(TIMEOUT, notify_self(database)).await {
        Ok(result) => result,
        Err(_) => Ok(NotifyCheck::TimedOut),
    }
}

// A direct connection keeps one session of its own. A pooler lends a returned session to the next client: to this one,
// unless another client of the pooler is quicker, which does not happen in every round.
async fn is_pooled(database: &Database) -> Result<bool> {
    let first = database.connection().await?;
    let second = database.connection().await?;
    for _ in 0..ROUNDS {
        let before = session_pid(&first).await?;
        second.begin("").await?;
        let other = session_pid(&second).await;
        let after = session_pid(&first).await;
        second.rollback().await?;
        if other? == before || after? != before {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn session_pid(connection: &Connection<'_>) -> Result<i32> {
    let rows = connection.fetch("SELECT pg_backend_pid()").await?;
    rows.first().map(|row| row.get(0)).ok_or_else(|| StoreError::Backend("pg_backend_pid() returned no row".into()))
}

async fn notify_self(database: &Database) -> Result<NotifyCheck> {
    let channel = format!("orchestrix_doctor_{:016x}", rand::random::<u64>());
    let (client, mut connection) = config(&database.options)?.connect(NoTls).await.map_err(store_error)?;
    let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
    let listen = format!("LISTEN {channel}");
    let listen = client.batch_execute(&listen);
    tokio::pin!(listen);
    let mut begun = None;
    loop {
        tokio::select! {
            answer = &mut listen, if begun.is_none() => {
                answer.map_err(store_error)?;
                begun = Some(Instant::now());
                database.connection().await?.execute(&format!("NOTIFY {channel}")).await?;
            }
            message = messages.next() => match message {
                Some(Ok(AsyncMessage::Notification(received))) if received.channel() == channel => {
                    return Ok(NotifyCheck::Delivered(begun.map(|begun| begun.elapsed()).unwrap_or_default()));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(store_error(error)),
                None => return Err(StoreError::Unavailable("the server closed the listening connection".into())),
            }
        }
    }
}
