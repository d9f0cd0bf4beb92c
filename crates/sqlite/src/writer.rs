//! The writer thread: it runs operations in the order in which they arrive, many in one transaction, each in a
//! savepoint of its own, and replies to all of them after the commit (group commit).
//!
//! A commit waits for the disk. Operations that arrive meanwhile queue up and share the next commit. The more callers
//! there are, the more operations share one wait; no operation waits for others to join it.

use std::{
    fmt, fs, thread,
    time::{Duration, Instant},
};

use orchestrix_core::{JobIds, Timestamp};
use orchestrix_store::{CommitEffects, StoreError, clock::until, wakeup::WakeupSender};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::{
    effects::Effects,
    error::{Error, Result, is_busy},
    lanes::LaneChanges,
    options::SqliteOptions,
    select::ClaimHints,
    session::{Session, Transaction},
};

/// The maximum number of queued operations. Further callers wait until there is room.
pub(crate) const MAX_QUEUE: usize = 4_096;
/// The maximum number of operations in one transaction, and how long it accepts more. Other processes want to write
/// too, and the callers in the transaction wait for its end.
const MAX_BATCH: usize = 1_024;
const MAX_BATCH_TIME: Duration = Duration::from_millis(20);
/// The mean pause between two attempts to take the write lock.
const LOCK_RETRY: Duration = Duration::from_millis(1);
/// The clock may be set back by less than this without affecting the time of operations.
const MAX_CLOCK_STEP: Duration = Duration::from_secs(1);
/// The write-ahead log is truncated when it is longer than this. Its length is checked at this interval, and a
/// truncation waits this long for readers.
const MAX_LOG_BYTES: u64 = 64 * 1024 * 1024;
const LOG_CHECK_INTERVAL: Duration = Duration::from_secs(1);
const LOG_READER_TIMEOUT: Duration = Duration::from_millis(200);
/// After another process has written, the writer yields the lock between transactions for this long.
const YIELD_PERIOD: Duration = Duration::from_millis(200);

/// An operation for the writer thread, with its caller.
pub(crate) trait WriteTask: Send {
    /// Runs the operation. Returns whether its writes shall stay.
    fn run(&mut self, transaction: &mut Transaction<'_>) -> bool;

    /// The SQLite error that the operation ended with.
    fn sqlite_error(&self) -> Option<String>;

    /// Replies to the caller. `failure` is set if the transaction did not commit.
    fn reply(self: Box<Self>, failure: Option<&StoreError>);
}

/// A closure, and the channel to the caller that waits for its result.
pub(crate) struct WriteRequest<F, T> {
    work: Option<F>,
    result: Option<Result<T>>,
    caller: oneshot::Sender<Result<T>>,
}

impl<F, T> WriteRequest<F, T> {
    pub(crate) fn new(work: F, caller: oneshot::Sender<Result<T>>) -> Self {
        Self { work: Some(work), result: None, caller }
    }
}

impl<F, T> WriteTask for WriteRequest<F, T>
where
    F: FnOnce(&mut Transaction<'_>) -> Result<T> + Send,
    T: Send,
{
    fn run(&mut self, transaction: &mut Transaction<'_>) -> bool {
        // A caller that has gone away would never learn of the jobs that it was given.
        if self.caller.is_closed() {
            return false;
        }
        self.result = self.work.take().map(|work| work(transaction));
        matches!(self.result, Some(Ok(_)))
    }

    fn sqlite_error(&self) -> Option<String> {
        match &self.result {
            Some(Err(Error::Sqlite(error))) => Some(error.to_string()),
            _ => None,
        }
    }

    fn reply(self: Box<Self>, failure: Option<&StoreError>) {
        let result = match (self.result, failure) {
            // This replaces refusals too: they may rest on writes that were rolled back.
            (_, Some(failure)) => Err(Error::Store(duplicate(failure))),
            (Some(result), None) => result,
            (None, None) => Err(StoreError::Unavailable("the operation was not started: try again".into()).into()),
        };
        // The caller may have gone away meanwhile.
        let _ = self.caller.send(result);
    }
}

// The error of a transaction, once per operation in it.
fn duplicate(error: &StoreError) -> StoreError {
    match error {
        StoreError::Unavailable(text) => StoreError::Unavailable(text.clone()),
        StoreError::Backend(cause) => StoreError::Backend(cause.to_string().into()),
        other => StoreError::Backend(other.to_string().into()),
    }
}

/// The connection that writes, and its state.
pub(crate) struct Writer {
    pub(crate) connection: Connection,
    pub(crate) options: SqliteOptions,
    pub(crate) wakeups: WakeupSender,
    pub(crate) ids: JobIds,
    hints: ClaimHints,
    /// The time of the latest operation. Time does not run backwards between operations.
    latest: Timestamp,
    /// SQLite's `data_version`: it changes when another process commits.
    data_version: i64,
    /// When this writer last noticed a commit of another process.
    other_writer_seen: Option<Instant>,
    /// When the length of the log was last checked.
    log_checked: Instant,
}

impl Drop for Writer {
    fn drop(&mut self) {
        if thread::panicking() {
            tracing::error!(path = %self.options.path.display(), "the writer thread panicked");
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("path", &self.options.path).finish_non_exhaustive()
    }
}

type Inbox = mpsc::Receiver<Box<dyn WriteTask>>;

impl Writer {
    pub(crate) fn new(connection: Connection, options: SqliteOptions, wakeups: WakeupSender) -> Self {
        Self {
            connection,
            wakeups,
            ids: JobIds::new(),
            hints: ClaimHints::starting_at(options.first_turn),
            options,
            latest: Timestamp::MIN,
            data_version: 0,
            other_writer_seen: None,
            log_checked: Instant::now(),
        }
    }

    /// Runs until the store is dropped and every operation has its reply.
    pub(crate) fn run(mut self, mut inbox: Inbox) {
        while let Some(first) = inbox.blocking_recv() {
            self.yield_to_other_writers();
            self.run_batch(first, &mut inbox);
            self.truncate_log();
        }
    }

    // A process that has just released the lock would be the first to take it again, because the others only retry now
    // and then. So every writer that shares the file pauses for longer than a retry.
    fn yield_to_other_writers(&self) {
        if self.other_writer_seen.is_some_and(|seen| seen.elapsed() < YIELD_PERIOD) {
            thread::sleep(2 * LOCK_RETRY);
        }
    }

    fn run_batch(&mut self, first: Box<dyn WriteTask>, inbox: &mut Inbox) {
        let mut taken = Vec::new();
        let failure = match self.run_transaction(first, inbox, &mut taken) {
            // Before any reply: a caller that knows of its commit finds it in the metrics.
            Ok(effects) => {
                effects.publish(&self.wakeups);
                None
            }
            Err(error) => Some(error),
        };
        for task in taken {
            task.reply(failure.as_ref());
        }
    }

    fn run_transaction(
        &mut self,
        first: Box<dyn WriteTask>,
        inbox: &mut Inbox,
        taken: &mut Vec<Box<dyn WriteTask>>,
    ) -> Result<CommitEffects, StoreError> {
        taken.push(first);
        if let Err(error) = self.begin() {
            // Operations that queued up meanwhile have waited for the lock just as long: they fail with this one.
            while let Ok(next) = inbox.try_recv() {
                taken.push(next);
            }
            return Err(self.roll_back(error));
        }
        let committed = self.run_operations(inbox, taken).and_then(|effects| {
            let effects = effects.write(self.session())?;
            self.execute("COMMIT")?;
            Ok(effects)
        });
        committed.map_err(|error| self.roll_back(error))
    }

    // Whatever the error, no transaction stays open.
    fn roll_back(&self, error: Error) -> StoreError {
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a transaction could not be rolled back");
        }
        error.into_store_error(&self.options.path)
    }

    // SQLite's own busy handler waits longer and longer. Short random pauses give every process its turn.
    fn begin(&mut self) -> Result<()> {
        let begun = Instant::now();
        loop {
            match self.execute("BEGIN IMMEDIATE") {
                Err(Error::Sqlite(error)) if is_busy(&error) && begun.elapsed() < self.options.busy_timeout => {
                    thread::sleep(LOCK_RETRY.mul_f64(rand::random_range(0.5..1.5)));
                }
                result => {
                    result?;
                    break;
                }
            }
        }
        let version = self.connection.prepare_cached("PRAGMA data_version")?.query_row((), |row| row.get(0))?;
        if self.data_version != version && self.data_version != 0 {
            self.other_writer_seen = Some(Instant::now());
        }
        self.data_version = version;
        Ok(())
    }

    fn run_operations(&mut self, inbox: &mut Inbox, taken: &mut Vec<Box<dyn WriteTask>>) -> Result<Effects> {
        let begun = Instant::now();
        let mut effects = Effects::default();
        let mut done = 0;
        while let Some(task) = taken.get_mut(done) {
            self.latest = self.now();
            self.execute("SAVEPOINT operation")?;
            let session = Session::new(&self.connection, self.latest, &self.options);
            let mut transaction = Transaction::new(session, &mut self.ids, &effects.lanes, &mut self.hints);
            if task.run(&mut transaction) {
                let Transaction { effects: later, earlier_lanes_written, .. } = transaction;
                if earlier_lanes_written {
                    effects.lanes = LaneChanges::default();
                }
                effects.merge(later);
            } else if self.connection.is_autocommit() {
                // Some errors, such as a full disk, roll back the whole transaction.
                let cause = task.sqlite_error().unwrap_or_else(|| "the transaction is gone".into());
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
            if done < MAX_BATCH && begun.elapsed() < MAX_BATCH_TIME {
                taken.extend(inbox.try_recv());
            }
        }
        Ok(effects)
    }

    // When the clock is set back a little, time stands still, so that later operations are not recorded as earlier.
    // After a larger step the clock is trusted: it was wrong before.
    fn now(&self) -> Timestamp {
        let now = self.options.clock.now();
        if self.latest > now && until(now, self.latest) < MAX_CLOCK_STEP { self.latest } else { now }
    }

    // SQLite restarts the log only at a moment without readers. With readers at all times it would grow without bound.
    fn truncate_log(&mut self) {
        if self.log_checked.elapsed() < LOG_CHECK_INTERVAL {
            return;
        }
        self.log_checked = Instant::now();
        let log = format!("{}-wal", self.options.path.display());
        if fs::metadata(log).map_or(0, |log| log.len()) <= MAX_LOG_BYTES {
            return;
        }
        let truncated = self.connection.busy_timeout(LOG_READER_TIMEOUT).and_then(|()| {
            // The returned row says whether the checkpoint completed. If it did not, the next check tries again.
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))
        });
        if let Err(error) = truncated.and_then(|()| self.connection.busy_timeout(Duration::ZERO)) {
            tracing::warn!(%error, "the write-ahead log could not be truncated");
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

    fn in_transaction<T>(test: impl FnOnce(&mut Transaction<'_>) -> T) -> T {
        let connection = Connection::open_in_memory().unwrap();
        let (options, mut ids) = (SqliteOptions::new("test.db"), JobIds::new());
        let session = Session::new(&connection, Timestamp::UNIX_EPOCH, &options);
        let mut hints = ClaimHints::starting_at(0);
        test(&mut Transaction::new(session, &mut ids, &LaneChanges::default(), &mut hints))
    }

    #[test]
    fn a_rollback_replaces_the_refusal_of_an_operation() {
        let (caller, mut result) = oneshot::channel::<Result<()>>();
        let mut request = WriteRequest::new(|_: &mut Transaction<'_>| Err(StoreError::LeaseLost.into()), caller);
        assert!(!in_transaction(|transaction| request.run(transaction)));
        Box::new(request).reply(Some(&StoreError::Unavailable("the disk is full".into())));
        let result = result.try_recv().unwrap();
        assert!(matches!(result, Err(Error::Store(StoreError::Unavailable(_)))), "{result:?}");
    }

    #[test]
    fn an_operation_whose_caller_has_gone_away_does_not_run() {
        let (caller, result) = oneshot::channel::<Result<()>>();
        drop(result);
        let mut request = WriteRequest::new(|_: &mut Transaction<'_>| panic!("the caller has gone away"), caller);
        assert!(!in_transaction(|transaction| request.run(transaction)));
    }

    #[derive(Debug)]
    struct SettableClock(Mutex<Timestamp>);

    impl Clock for SettableClock {
        fn now(&self) -> Timestamp {
            *self.0.lock().unwrap()
        }
    }

    #[test]
    fn time_stands_still_after_a_small_step_back_and_follows_a_large_one() {
        let at = |millis: i64| Timestamp::from_millisecond(millis).unwrap();
        let clock = Arc::new(SettableClock(Mutex::new(at(10_000))));
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
