//! The one writer: a thread that runs operations in the order they come, many in one transaction, each in a savepoint of
//! its own, and answers all of them after the commit.
//!
//! A commit waits for the disk. Whoever calls meanwhile is queued, and the next commit carries all of them: the more
//! callers, the more operations share one wait, and nobody ever waits for company.

use std::{
    fmt, fs, mem, thread,
    time::{Duration, Instant},
};

use orchestrix_core::{JobIds, Timestamp};
use orchestrix_store::{StoreError, clock::until, wakeup::WakeupSender};
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
/// By how much the clock may be set back before it is believed.
const SET_BACK: Duration = Duration::from_secs(1);
/// How long the log may be, how often that is looked at, and how long readers are waited for when it is too long.
const MAX_LOG: u64 = 64 * 1024 * 1024;
const LOOK_AT_LOG: Duration = Duration::from_secs(1);
const WAIT_FOR_READERS: Duration = Duration::from_millis(200);
/// How long a process that was seen to write is reckoned with.
const SHARED: Duration = Duration::from_millis(200);

/// Something to be done in a transaction and answered after its commit.
pub(crate) trait Operation: Send {
    /// Does it; whether it is to stay.
    fn run(&mut self, transaction: &mut Transaction<'_>) -> bool;

    /// What SQLite had against it.
    fn cause(&self) -> Option<String>;

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
        // Whoever has gone away meanwhile would never know of what it was given.
        if self.reply.is_closed() {
            return false;
        }
        self.answer = self.work.take().map(|work| work(transaction));
        matches!(self.answer, Some(Ok(_)))
    }

    fn cause(&self) -> Option<String> {
        match &self.answer {
            Some(Err(Fault::Sqlite(error))) => Some(error.to_string()),
            _ => None,
        }
    }

    fn answer(self: Box<Self>, failure: Option<&StoreError>) {
        let answer = match (self.answer, failure) {
            // Even what was refused: the reason may be something that was undone with the rest.
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
    pub(crate) wakeups: WakeupSender,
    pub(crate) ids: JobIds,
    /// Time does not run backwards between two operations, whatever the clock does.
    latest: Timestamp,
    /// Changes when another process commits.
    version: i64,
    /// When another process was last seen to have written.
    shared: Option<Instant>,
    /// When the size of the log was last looked at.
    looked: Instant,
}

impl Drop for Writer {
    fn drop(&mut self) {
        if thread::panicking() {
            tracing::error!(path = %self.options.path.display(), "the writer of an SQLite file panicked");
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("path", &self.options.path).finish_non_exhaustive()
    }
}

type Inbox = mpsc::Receiver<Box<dyn Operation>>;

impl Writer {
    pub(crate) fn new(connection: Connection, options: SqliteOptions, wakeups: WakeupSender) -> Self {
        let (ids, latest) = (JobIds::new(), Timestamp::MIN);
        Self { connection, options, wakeups, ids, latest, version: 0, shared: None, looked: Instant::now() }
    }

    /// Runs until the store is gone and everything is answered.
    pub(crate) fn run(mut self, mut inbox: Inbox) {
        while let Some(first) = inbox.blocking_recv() {
            self.give_way();
            self.batch(first, &mut inbox);
            self.shorten_log();
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
        let mut outcome = self.transaction(first, inbox, &mut taken);
        // Before any caller is answered: a caller that knows of its commit finds it counted.
        if let Ok(effects) = &mut outcome {
            mem::take(&mut effects.commit).publish(&self.wakeups);
        }
        let failure = outcome.as_ref().err();
        for operation in taken {
            operation.answer(failure);
        }
    }

    fn transaction(
        &mut self,
        first: Box<dyn Operation>,
        inbox: &mut Inbox,
        taken: &mut Vec<Box<dyn Operation>>,
    ) -> Result<Effects, StoreError> {
        taken.push(first);
        if let Err(fault) = self.begin() {
            // Whoever waited in line meanwhile has waited long enough.
            while let Ok(next) = inbox.try_recv() {
                taken.push(next);
            }
            return Err(self.undo(fault));
        }
        let done = self.work(inbox, taken).and_then(|effects| {
            effects.write(self.session())?;
            self.execute("COMMIT")?;
            Ok(effects)
        });
        done.map_err(|fault| self.undo(fault))
    }

    // Whatever went wrong, no transaction is left open behind it.
    fn undo(&self, fault: Fault) -> StoreError {
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a transaction could not be rolled back");
        }
        fault.at(&self.options.path)
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
            self.latest = self.now();
            self.execute("SAVEPOINT operation")?;
            let session = Session::new(&self.connection, self.latest, &self.options);
            let mut transaction = Transaction::new(session, &mut self.ids);
            if operation.run(&mut transaction) {
                effects.add(transaction.effects);
            } else if self.connection.is_autocommit() {
                // Some errors, such as a full disk, undo all of the transaction.
                let cause = operation.cause().unwrap_or_else(|| "the transaction is gone".into());
                return Err(StoreError::Unavailable(format!(
                    "{}: {cause}: the disk is full or failing: nothing was written; try again",
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

    // A clock that is set back a little stands still instead, so that what happened later is not recorded as earlier. One
    // that was wrong by more is believed again as soon as it is right.
    fn now(&self) -> Timestamp {
        let now = self.options.clock.now();
        if self.latest > now && until(now, self.latest) < SET_BACK { self.latest } else { now }
    }

    // While one reader or another is always at work, the log is never begun anew by itself, and grows.
    fn shorten_log(&mut self) {
        if self.looked.elapsed() < LOOK_AT_LOG {
            return;
        }
        self.looked = Instant::now();
        let log = format!("{}-wal", self.options.path.display());
        if fs::metadata(log).map_or(0, |log| log.len()) <= MAX_LOG {
            return;
        }
        let shortened = self.connection.busy_timeout(WAIT_FOR_READERS).and_then(|()| {
            // Whether it came to the end is in the answer; if not, there is a next time.
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))
        });
        if let Err(error) = shortened.and_then(|()| self.connection.busy_timeout(Duration::ZERO)) {
            tracing::warn!(%error, "the log could not be shortened");
        }
    }

    fn session(&self) -> Session<'_> {
        Session::new(&self.connection, self.latest, &self.options)
    }

    fn execute(&self, sql: &str) -> Result<()> {
        self.connection.prepare_cached(sql)?.execute(())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use orchestrix_store::Clock;

    use super::*;

    fn transaction<T>(test: impl FnOnce(&mut Transaction<'_>) -> T) -> T {
        let connection = Connection::open_in_memory().unwrap();
        let (options, mut ids) = (SqliteOptions::new("test.db"), JobIds::new());
        test(&mut Transaction::new(Session::new(&connection, Timestamp::UNIX_EPOCH, &options), &mut ids))
    }

    #[test]
    fn a_refusal_that_rests_on_what_was_undone_is_not_told() {
        let (reply, mut answer) = oneshot::channel::<Result<()>>();
        let mut call = Call::new(|_: &mut Transaction<'_>| Err(StoreError::LeaseLost.into()), reply);
        assert!(!transaction(|transaction| call.run(transaction)));
        Box::new(call).answer(Some(&StoreError::Unavailable("the disk is full".into())));
        let told = answer.try_recv().unwrap();
        assert!(matches!(told, Err(Fault::Store(StoreError::Unavailable(_)))), "{told:?}");
    }

    #[test]
    fn nothing_is_done_for_whoever_has_gone_away() {
        let (reply, answer) = oneshot::channel::<Result<()>>();
        drop(answer);
        let mut call = Call::new(|_: &mut Transaction<'_>| panic!("nobody would know"), reply);
        assert!(!transaction(|transaction| call.run(transaction)));
    }

    #[derive(Debug)]
    struct Unsteady(Mutex<Timestamp>);

    impl Clock for Unsteady {
        fn now(&self) -> Timestamp {
            *self.0.lock().unwrap()
        }
    }

    #[test]
    fn a_clock_set_back_a_little_stands_still_and_one_that_was_wrong_is_believed_again() {
        let at = |millis: i64| Timestamp::from_millisecond(millis).unwrap();
        let clock = Arc::new(Unsteady(Mutex::new(at(10_000))));
        let options = SqliteOptions { clock: clock.clone(), ..SqliteOptions::new("test.db") };
        let mut writer = Writer::new(Connection::open_in_memory().unwrap(), options, WakeupSender::default());
        for (shown, expected) in
            [(10_000, 10_000), (9_500, 10_000), (10_001, 10_001), (9_000_000, 9_000_000), (11_000, 11_000)]
        {
            *clock.0.lock().unwrap() = at(shown);
            writer.latest = writer.now();
            assert_eq!(writer.latest, at(expected));
        }
    }
}
