//! Telling other processes that there is work, and hearing it from them.
//!
//! NOTIFY takes a lock that all committing notifiers share, so it never rides on a producer's transaction: a task of
//! its own sends what has gathered, at most every [`PAUSE`]. Hearing needs a connection of its own; without one, or
//! while it is down, polling finds the work.

use std::{collections::BTreeSet, sync::Weak, time::Duration};

use futures_util::{StreamExt, stream};
use orchestrix_core::Queue;
use orchestrix_store::{Result, Wakeup};
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, NoTls};

use crate::{
    Inner, PostgresOptions,
    database::{Database, config},
    error::store_error,
    statement::NOTIFY,
};

/// The least time between two notifications.
const PAUSE: Duration = Duration::from_millis(20);
/// The server takes less than 8,000 bytes.
const MAX_BYTES: usize = 7_000;
/// What stands for every queue, and for no queue but a time that somebody waits for. No queue is called so.
const EVERYTHING: &str = "*";
const TIMERS: &str = "@";

/// Gathers queues with new work and tells other processes.
#[derive(Debug)]
pub(crate) struct Notifier(mpsc::Sender<Option<Queue>>);

impl Notifier {
    pub(crate) fn start(database: Database) -> Self {
        let (sender, receiver) = mpsc::channel(1_024);
        tokio::spawn(notify(database, receiver));
        Self(sender)
    }

    pub(crate) fn tell(&self, queue: &Queue) {
        // Full means that a notification is due anyway; whoever is not named in it polls.
        let _ = self.0.try_send(Some(queue.clone()));
    }

    pub(crate) fn tell_timers(&self) {
        let _ = self.0.try_send(None);
    }
}

async fn notify(database: Database, mut receiver: mpsc::Receiver<Option<Queue>>) {
    while let Some(first) = receiver.recv().await {
        let mut queues = BTreeSet::from([first]);
        while let Ok(next) = receiver.try_recv() {
            queues.insert(next);
        }
        let names = queues.iter().map(|queue| queue.as_ref().map_or(TIMERS, Queue::as_str));
        let mut text = names.collect::<Vec<_>>().join("\n");
        if text.len() > MAX_BYTES {
            text = EVERYTHING.into();
        }
        if let Err(error) = database.query(&NOTIFY, &[&text]).await {
            tracing::debug!(%error, "could not notify; others will find the work by polling");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Listens until the store is gone, reconnecting with growing, jittered pauses.
pub(crate) async fn listen(options: PostgresOptions, store: Weak<Inner>) {
    let mut pause = Duration::from_millis(100);
    loop {
        let heard = listen_once(&options, &store).await;
        let Some(inner) = store.upgrade() else { return };
        match heard {
            Ok(()) => pause = Duration::from_millis(100),
            Err(error) => {
                tracing::warn!(%error, retry_in = ?pause, "lost the listening connection; polling meanwhile");
                pause = (pause * 2).min(Duration::from_secs(10));
            }
        }
        drop(inner);
        tokio::time::sleep(pause.mul_f64(0.5 + rand::random::<f64>())).await;
    }
}

// Ends without an error when a connection that worked was closed.
async fn listen_once(options: &PostgresOptions, store: &Weak<Inner>) -> Result<()> {
    let (client, mut connection) = config(options)?.connect(NoTls).await.map_err(store_error)?;
    let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
    let listen = client.batch_execute("LISTEN orchestrix");
    tokio::pin!(listen);
    let mut listening = false;
    loop {
        tokio::select! {
            answer = &mut listen, if !listening => {
                answer.map_err(store_error)?;
                listening = true;
                // What was said before is lost: let everybody look.
                let Some(inner) = store.upgrade() else { return Ok(()) };
                inner.lanes.hint();
                inner.waker.wake_timers();
                inner.waker.wake(Wakeup::Anything);
            }
            message = messages.next() => match message {
                Some(Ok(AsyncMessage::Notification(notification))) => {
                    let Some(inner) = store.upgrade() else { return Ok(()) };
                    inner.lanes.hint();
                    for queue in notification.payload().lines() {
                        match queue {
                            TIMERS => inner.waker.wake_timers(),
                            EVERYTHING => {
                                inner.waker.wake_timers();
                                inner.waker.wake(Wakeup::Anything);
                            }
                            name => inner.waker.wake(Wakeup::Queue(Queue::trusted(name))),
                        }
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(store_error(error)),
                None => return Ok(()),
            }
        }
    }
}
