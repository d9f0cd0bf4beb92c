//! Whether LISTEN works, or a pooler that lends sessions by the transaction is in the way.

use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use orchestrix_store::{Result, StoreError};
use tokio_postgres::{AsyncMessage, NoTls};

use super::facts::Listening;
use crate::{
    database::{Connection, Database, config},
    error::store_error,
};

/// How long a word may take from one session to another.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often it is tried to be given somebody else's session.
const ROUNDS: usize = 20;

pub(super) async fn listening(database: &Database) -> Result<Listening> {
    if is_pooled(database).await? {
        // To listen would leave a subscription on a session that others are lent.
        return Ok(Listening::Pooled);
    }
    match tokio::time::timeout(PATIENCE, hears(database)).await {
        Ok(heard) => heard,
        Err(_) => Ok(Listening::Deaf),
    }
}

// A connection of one's own is one session for its whole life, and nobody else's. A pooler gives what one has given back to
// whoever asks next: us, unless others who go through it are quicker, and those are not quicker every time.
async fn is_pooled(database: &Database) -> Result<bool> {
    let first = database.connection().await?;
    let second = database.connection().await?;
    for _ in 0..ROUNDS {
        let before = session(&first).await?;
        second.begin("").await?;
        let other = session(&second).await;
        let after = session(&first).await;
        second.rollback().await?;
        if other? == before || after? != before {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn session(connection: &Connection<'_>) -> Result<i32> {
    let rows = connection.fetch("SELECT pg_backend_pid()").await?;
    rows.first().map(|row| row.get(0)).ok_or_else(|| StoreError::Backend("a session has no number".into()))
}

async fn hears(database: &Database) -> Result<Listening> {
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
                Some(Ok(AsyncMessage::Notification(heard))) if heard.channel() == channel => {
                    return Ok(Listening::Hears(begun.map(|begun| begun.elapsed()).unwrap_or_default()));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(store_error(error)),
                None => return Err(StoreError::Unavailable("the connection was closed".into())),
            }
        }
    }
}
