//! NOTIFY to other processes, and LISTEN for theirs.
//!
//! NOTIFY takes a lock that all notifying transactions share at commit, so it is never part of a producer's
//! transaction: a task of its own sends what has gathered, at most every [`MIN_INTERVAL`]. LISTEN needs a connection
//! of its own. Without one, or while it is down, workers find jobs by polling.

use std::{collections::BTreeSet, sync::Weak, time::Duration};

use futures_util::{StreamExt, stream};
use orchestrix_core::{Backoff, Queue};
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
const MIN_INTERVAL: Duration = Duration::from_millis(20);
/// The server accepts payloads of less than 8,000 bytes.
const MAX_BYTES: usize = 7_000;
/// Payload lines that are not queue names: every queue, and the leader's timers.
const EVERYTHING: &str = "*";
const TIMERS: &str = "@";
/// Delays before the listening connection is opened again.
const FIRST_RECONNECT: Duration = Duration::from_millis(100);
const LONGEST_RECONNECT: Duration = Duration::from_secs(10);

/// Sends notifications to other processes in the background. Clones share one task.
#[derive(Debug, Clone)]
pub(crate) struct Notifier(mpsc::Sender<Notice>);

#[derive(Debug)]
enum Notice {
    /// This queue has claimable jobs.
    QueueClaimable(Queue),
    /// A job or a schedule waits for a time.
    TimerSet,
    /// Answers once all notices before it were sent.
    Flush(oneshot::Sender<()>),
}

impl Notifier {
    pub(crate) fn start(database: Database) -> Self {
        let (sender, receiver) = mpsc::channel(1_024);
        tokio::spawn(notify(database, receiver));
        Self(sender)
    }

    pub(crate) fn notify_queue(&self, queue: &Queue) {
        // Dropped when the channel is full: a notification is under way then, and other processes also poll.
        let _ = self.0.try_send(Notice::QueueClaimable(queue.clone()));
    }

    pub(crate) fn notify_timers(&self) {
        let _ = self.0.try_send(Notice::TimerSet);
    }

    /// Waits until all notices so far were sent.
    pub(crate) async fn flush(&self) {
        let (sent, done) = oneshot::channel();
        if self.0.send(Notice::Flush(sent)).await.is_ok() {
            // An error means that the task has ended, and there is nothing left to send.
            let _ = done.await;
        }
    }
}

async fn notify(database: Database, mut receiver: mpsc::Receiver<Notice>) {
    let mut notices = Vec::new();
    while receiver.recv_many(&mut notices, 1_024).await > 0 {
        let (mut names, mut flushes) = (BTreeSet::new(), Vec::new());
        for notice in notices.drain(..) {
            match notice {
                Notice::QueueClaimable(queue) => drop(names.insert(queue.as_str().to_owned())),
                Notice::TimerSet => drop(names.insert(TIMERS.to_owned())),
                Notice::Flush(sent) => flushes.push(sent),
            }
        }
        let mut payload = names.into_iter().collect::<Vec<_>>().join("\n");
        if payload.len() > MAX_BYTES {
            payload = EVERYTHING.into();
        }
        if !payload.is_empty()
            && let Err(error) = database.query(&NOTIFY, &[&payload]).await
        {
            tracing::debug!(%error, "NOTIFY failed; other processes find the jobs by polling");
        }
        for sent in flushes {
            // The caller of `flush` may have been dropped.
            let _ = sent.send(());
        }
        tokio::time::sleep(MIN_INTERVAL).await;
    }
}

/// Listens until the store is dropped, and reconnects with jittered back-off.
pub(crate) async fn listen(options: PostgresOptions, store: Weak<Inner>) {
    let mut backoff = Backoff::new(FIRST_RECONNECT, LONGEST_RECONNECT);
    loop {
        let ended = listen_once(&options, &store, &mut backoff).await;
        if store.strong_count() == 0 {
            return;
        }
        let delay = backoff.next_jittered(&mut rand::rng());
        if let Err(error) = ended {
            tracing::warn!(%error, retry_in = ?delay, "lost the listening connection; polling meanwhile");
        }
        tokio::time::sleep(delay).await;
    }
}

// Returns without an error when the server closed the connection, or when the store is dropped. Resets the back-off
// once the server accepts LISTEN.
async fn listen_once(options: &PostgresOptions, store: &Weak<Inner>, backoff: &mut Backoff) -> Result<()> {
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
                backoff.reset();
                // Earlier notifications are lost: wake every subscriber once.
                let Some(inner) = store.upgrade() else { return Ok(()) };
                receive(&inner, EVERYTHING);
            }
            message = messages.next() => match message {
                Some(Ok(AsyncMessage::Notification(notification))) => {
                    let Some(inner) = store.upgrade() else { return Ok(()) };
                    receive(&inner, notification.payload());
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(store_error(error)),
                None => return Ok(()),
            }
        }
    }
}

fn receive(inner: &Inner, payload: &str) {
    let wakeups = inner.publisher.wakeups();
    for line in payload.lines() {
        match line {
            TIMERS => wakeups.wake_timers(),
            EVERYTHING => {
                wakeups.wake_timers();
                wakeups.wake(Wakeup::Anything);
            }
            name => wakeups.wake(Wakeup::Queue(Queue::trusted(name))),
        }
    }
}
