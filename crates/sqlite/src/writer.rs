//! The one writer: a thread that runs operations in the order they come, many in one transaction, each in a savepoint of
//! its own, and answers all of them after the commit.
//!
//! A commit waits for the disk. Whoever calls meanwhile is queued, and the next commit carries all of them: the more
//! callers, the more operations share one wait, and nobody ever waits for company.

use std::{
    fmt, thread,
    time::{Duration, Instant},
};

use orchestrix_core::{JobIds, Timestamp};
use orchestrix_store::{StoreError, Wakeup, wakeup::Waker};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::{
    error::{Fault, Result, is_busy},
    options::SqliteOptions,
    session::{Effects, Session, Transaction},
};

/// The most operations that wait to be run; whoever comes then waits to get in line.
pub(crate) const MAX_QUEUE: usize = 4_096;
/// The most operations of one transaction, and how long it takes in more: other processes want to write too, and
/// whoever is in it waits for its end.
const MAX_BATCH: usize = 1_024;
const MAX_TIME: Duration = Duration::from_millis(20);
/// The pause between two tries to write while another process does.
const PAUSE: Duration = Duration::from_millis(1);
/// How long a process that was seen to write is reckoned with.
const SHARED: Duration = Duration::from_millis(200);

/// Something to be done in a transaction and answered after its commit.
pub(crate) trait Operation: Send {
    /// Does it; whether it is to stay.
    fn run(&mut self, transaction: &mut Transaction<'_>) -> bool;

    /// Answers; with `failure` if the transaction did not commit.
    fn answer(self: Box<Self>, failure: Option<&StoreError>);
}

/// A closure and whoever waits for its answer.
pub(crate) struct Call<F, T> {
    work: Option<F>,
    answer: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<F, T> Call<F, T> {
    pub(crate) fn new(work: F, reply: oneshot::Sender<Result<T>>) -> Self {
        Self { work: Some(work), answer: None, reply }
    }
}

impl<F, T> Operation for Call<F, T>
where
    F: FnOnce(&mut Transaction<'_>) -> Result<T> + Send,
    T: Send,
{
    fn run(&mut self, transaction: &mut Transaction<'_>) -> bool {
        self.answer = self.work.take().map(|work| work(transaction));
        matches!(self.answer, Some(Ok(_)))
    }

    fn answer(self: Box<Self>, failure: Option<&StoreError>) {
        let answer = match (self.answer, failure) {
            // Refused for a reason of its own, which a failed commit does not change.
            (Some(Err(Fault::Store(refused))), _) => Err(Fault::Store(refused)),
            (_, Some(failure)) => Err(Fault::Store(alike(failure))),
            (Some(answer), None) => answer,
            (None, None) => Err(StoreError::Unavailable("it was never begun: try again".into()).into()),
        };
        // A caller that has gone away does not want to know.
        let _ = self.reply.send(answer);
    }
}

// An error of the whole transaction, once more.
fn alike(error: &StoreError) -> StoreError {
    match error {
        StoreError::Unavailable(text) => StoreError::Unavailable(text.clone()),
        StoreError::Backend(cause) => StoreError::Backend(cause.to_string().into()),
        other => StoreError::Backend(other.to_string().into()),
    }
}

/// The writing connection and what it needs.
pub(crate) struct Writer {
    pub(crate) connection: Connection,
    pub(crate) options: SqliteOptions,
    pub(crate) waker: Waker,
    pub(crate) ids: JobIds,
    /// Time does not run backwards between two operations, whatever the clock does.
    latest: Timestamp,
    /// Changes when another process commits.
    version: i64,
    /// When another process was last seen to have written.
    shared: Option<Instant>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("path", &self.options.path).finish_non_exhaustive()
    }
}

type Inbox = mpsc::Receiver<Box<dyn Operation>>;

impl Writer {
    pub(crate) fn new(connection: Connection, options: SqliteOptions, waker: Waker) -> Self {
        let (ids, latest) = (JobIds::new(), Timestamp::MIN);
        Self { connection, options, waker, ids, latest, version: 0, shared: None }
    }

    /// Runs until the store is gone and everything is answered.
    pub(crate) fn run(mut self, mut inbox: Inbox) {
        while let Some(first) = inbox.blocking_recv() {
            self.give_way();
            self.batch(first, &mut inbox);
        }
    }

    // Whoever has just written would be the first to write again: others look only now and then. So while others write
    // too, everybody leaves them the time to look.
    fn give_way(&self) {
        if self.shared.is_some_and(|seen| seen.elapsed() < SHARED) {
            thread::sleep(2 * PAUSE);
        }
    }

    fn batch(&mut self, first: Box<dyn Operation>, inbox: &mut Inbox) {
        let mut taken = Vec::new();
        let outcome = self.transaction(first, inbox, &mut taken);
        let failure = outcome.as_ref().err();
        if failure.is_some() {
            // Whoever waited in line meanwhile has waited long enough.
            while let Ok(next) = inbox.try_recv() {
                taken.push(next);
            }
        }
        for operation in taken {
            operation.answer(failure);
        }
        for queue in outcome.map(|effects| effects.woken).unwrap_or_default() {
            self.waker.wake(Wakeup::Queue(queue));
        }
    }

    fn transaction(
        &mut self,
        first: Box<dyn Operation>,
        inbox: &mut Inbox,
        taken: &mut Vec<Box<dyn Operation>>,
    ) -> Result<Effects, StoreError> {
        taken.push(first);
        let done = self.begin().and_then(|()| self.work(inbox, taken)).and_then(|effects| {
            effects.write(self.session())?;
            self.execute("COMMIT")?;
            Ok(effects)
        });
        done.map_err(|fault| {
            if !self.connection.is_autocommit()
                && let Err(error) = self.connection.execute_batch("ROLLBACK")
            {
                tracing::error!(%error, "a transaction could not be rolled back");
            }
            fault.at(&self.options.path)
        })
    }

    // SQLite would wait by itself, for longer and longer; short random pauses give every process its turn.
    fn begin(&mut self) -> Result<()> {
        let begun = Instant::now();
        loop {
            match self.execute("BEGIN IMMEDIATE") {
                Err(Fault::Sqlite(error)) if is_busy(&error) && begun.elapsed() < self.options.busy_timeout => {
                    thread::sleep(PAUSE.mul_f64(rand::random_range(0.5..1.5)));
                }
                answer => {
                    answer?;
                    break;
                }
            }
        }
        let version = self.connection.prepare_cached("PRAGMA data_version")?.query_row((), |row| row.get(0))?;
        if self.version != version && self.version != 0 {
            self.shared = Some(Instant::now());
        }
        self.version = version;
        Ok(())
    }

    fn work(&mut self, inbox: &mut Inbox, taken: &mut Vec<Box<dyn Operation>>) -> Result<Effects> {
        let begun = Instant::now();
        let mut effects = Effects::default();
        let mut done = 0;
        while let Some(operation) = taken.get_mut(done) {
            self.latest = self.latest.max(self.options.clock.now());
            self.execute("SAVEPOINT operation")?;
            let session = Session::new(&self.connection, self.latest, &self.options);
            let mut transaction = Transaction::new(session, &mut self.ids);
            if operation.run(&mut transaction) {
                effects.add(transaction.effects);
            } else if self.connection.is_autocommit() {
                // Some errors, such as a full disk, undo all of the transaction.
                return Err(StoreError::Unavailable(format!(
                    "{}: the disk is full or failing: nothing was written; try again",
                    self.options.path.display()
                ))
                .into());
            } else {
                self.execute("ROLLBACK TO operation")?;
            }
            self.execute("RELEASE operation")?;
            done += 1;
            if done < MAX_BATCH && begun.elapsed() < MAX_TIME {
                taken.extend(inbox.try_recv());
            }
        }
        Ok(effects)
    }

    fn session(&self) -> Session<'_> {
        Session::new(&self.connection, self.latest, &self.options)
    }

    fn execute(&self, sql: &str) -> Result<()> {
        self.connection.prepare_cached(sql)?.execute(())?;
        Ok(())
    }
}
