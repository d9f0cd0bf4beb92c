//! Telling other processes that there is work, and hearing it from them.
//!
//! NOTIFY takes a lock that all committing notifiers share, so it never rides on a producer's transaction: a task of
//! its own sends what has gathered, at most every [`PAUSE`]. Hearing needs a connection of its own; without one, or
//! while it is down, polling finds the work.

use std::{collections::BTreeSet, sync::Weak, time::Duration};

use futures_util::{StreamExt, stream};
use orchestrix_core::Queue;
use orchestrix_store::{Result, Wakeup};
use tokio::sync::{mpsc, oneshot};
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
pub(crate) struct Notifier(mpsc::Sender<Word>);

/// What is to be told.
#[derive(Debug)]
enum Word {
    /// This queue has work.
    Work(Queue),
    /// Somebody waits for a time.
    Timers,
    /// Whoever waits for all before this to be told.
    Told(oneshot::Sender<()>),
}

impl Notifier {
    pub(crate) fn start(database: Database) -> Self {
        let (sender, receiver) = mpsc::channel(1_024);
        tokio::spawn(notify(database, receiver));
        Self(sender)
    }

    pub(crate) fn tell(&self, queue: &Queue) {
        // Full means that a notification is due anyway; whoever is not named in it polls.
        let _ = self.0.try_send(Word::Work(queue.clone()));
    }

    pub(crate) fn tell_timers(&self) {
        let _ = self.0.try_send(Word::Timers);
    }

    /// Waits until all that was told so far is on its way.
    pub(crate) async fn flush(&self) {
        let (told, done) = oneshot::channel();
        if self.0.send(Word::Told(told)).await.is_ok() {
            // Gone without a word: there is nobody left to tell.
            let _ = done.await;
        }
    }
}

async fn notify(database: Database, mut receiver: mpsc::Receiver<Word>) {
    let mut words = Vec::new();
    while receiver.recv_many(&mut words, 1_024).await > 0 {
        let (mut names, mut waiting) = (BTreeSet::new(), Vec::new());
        for word in words.drain(..) {
            match word {
                Word::Work(queue) => drop(names.insert(queue.as_str().to_owned())),
                Word::Timers => drop(names.insert(TIMERS.to_owned())),
                Word::Told(told) => waiting.push(told),
            }
        }
        let mut text = names.into_iter().collect::<Vec<_>>().join("\n");
        if text.len() > MAX_BYTES {
            text = EVERYTHING.into();
        }
        if !text.is_empty()
            && let Err(error) = database.query(&NOTIFY, &[&text]).await
        {
            tracing::debug!(%error, "could not notify; others will find the work by polling");
        }
        for told in waiting {
            // Nobody waits any more.
            let _ = told.send(());
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
                inner.wakeups.wake_timers();
                inner.wakeups.wake(Wakeup::Anything);
            }
            message = messages.next() => match message {
                Some(Ok(AsyncMessage::Notification(notification))) => {
                    let Some(inner) = store.upgrade() else { return Ok(()) };
                    inner.lanes.hint();
                    for queue in notification.payload().lines() {
                        match queue {
                            TIMERS => inner.wakeups.wake_timers(),
                            EVERYTHING => {
                                inner.wakeups.wake_timers();
                                inner.wakeups.wake(Wakeup::Anything);
                            }
                            name => inner.wakeups.wake(Wakeup::Queue(Queue::trusted(name))),
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
