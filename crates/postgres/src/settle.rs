//! Carrying out decisions: every end of an attempt but a success, and every end without one.
//!
//! The store reads what a decision depends on, `core` decides, and one statement writes it, for each job only if it is
//! still as it was read. No lock is held in between. What changed meanwhile is not written, and the caller looks again.

use orchestrix_core::{AttemptOutcome, JobId, JobState, JobType, LeaseToken, Lifecycle, Queue, RetryPolicy};
use orchestrix_store::{CommitEffects, EndedAttempt, Fence, Result, Transition};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    PostgresStore,
    record::millis,
    row::{count, retry_policy, state},
    runner::{Param, Runner},
    statement::SETTLE,
    work::Work,
};

/// What must still be true of a leased job, besides its token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Nothing more.
    Token,
    /// Its lease has run out.
    Expired,
    /// Its attempt is over its time.
    Overdue,
}

impl Guard {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Expired => "expired",
            Self::Overdue => "overdue",
        }
    }
}

/// A leased job as it was when somebody wanted to end its attempt.
#[derive(Debug, Clone)]
pub(crate) struct Examined {
    pub(crate) token: LeaseToken,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) retry: RetryPolicy,
}

impl Examined {
    /// Reads what `examine.sql` and its like select. The secret is nil for a job that was never leased.
    pub(crate) fn read(row: &Row) -> Result<Self> {
        Ok(Self {
            token: LeaseToken {
                job: JobId::from_uuid(row.get(0)),
                counter: row.get(1),
                secret: row.get::<_, Option<Uuid>>(2).unwrap_or_default(),
            },
            lifecycle: Lifecycle {
                state: state(row.get(3))?,
                attempts: count(row.get(4)),
                max_attempts: count(row.get(5)),
                losses: count(row.get(6)),
                cancel_requested: row.get(7),
            },
            retry: retry_policy(row.get(8))?,
        })
    }
}

/// A decision about one job.
#[derive(Debug, Clone)]
pub(crate) struct Ending {
    id: JobId,
    counter: i32,
    secret: Option<Uuid>,
    was: JobState,
    cancel_seen: bool,
    guard: Guard,
    goes_to: JobState,
    delay_ms: i64,
    attempts: u16,
    losses: u16,
    reason: Option<&'static str>,
    outcome: Option<AttemptOutcome>,
    error: Option<String>,
}

impl Ending {
    /// Decides the end of an attempt; `None` if the job is not in a state that has one.
    pub(crate) fn of_attempt(job: &Examined, end: &EndedAttempt, guard: Guard) -> Option<Self> {
        let before = job.lifecycle;
        let Transition { lifecycle: after, reason, wait } = end.decide(before, &job.retry).ok()?;
        Some(Self {
            id: job.token.job,
            counter: job.token.counter,
            secret: Some(job.token.secret),
            was: before.state,
            cancel_seen: before.cancel_requested,
            guard,
            goes_to: after.state,
            delay_ms: millis(wait),
            attempts: after.attempts,
            losses: after.losses,
            reason,
            outcome: Some(end.outcome),
            error: end.error.clone(),
        })
    }

    /// Cancels a job that nobody owns, if it is still in state `was` and has not been leased since.
    pub(crate) fn cancel_waiting(
        id: JobId,
        was: JobState,
        counter: i32,
        attempts: u16,
        losses: u16,
        reason: &'static str,
    ) -> Self {
        Self {
            id,
            counter,
            secret: None,
            was,
            cancel_seen: false,
            guard: Guard::Token,
            goes_to: JobState::Cancelled,
            delay_ms: 0,
            attempts,
            losses,
            reason: Some(reason),
            outcome: None,
            error: None,
        }
    }
}

/// What became of a job.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) id: JobId,
    pub(crate) counter: i32,
    pub(crate) state: JobState,
    /// Whether others wait for it and it is over, so that they must be told.
    pub(crate) tell_dependents: bool,
    row: Row,
}

/// Those of `settled` that others wait for.
pub(crate) fn ended(settled: &[Settled]) -> Vec<JobId> {
    settled.iter().filter(|job| job.tell_dependents).map(|job| job.id).collect()
}

/// Writes what still applies; answers for those only. Once it is committed, it is to be [noted](note).
pub(crate) async fn settle(work: &Work<'_>, endings: &[Ending]) -> Result<Vec<Settled>> {
    let columns = Columns::of(endings);
    work.query(&SETTLE, &Param::all(&columns.params())).await?.into_iter().map(read).collect()
}

/// The same, as a transaction of its own.
pub(crate) async fn settle_now(store: &PostgresStore, endings: &[Ending]) -> Result<Vec<Settled>> {
    let work = store.database().work(Fence::NONE).await?;
    let settled = settle(&work, endings).await?;
    note(store, &settled);
    Ok(settled)
}

/// Tells whoever waits that jobs have become claimable, or will; and counts those that are over.
pub(crate) fn note(store: &PostgresStore, settled: &[Settled]) {
    let mut effects = CommitEffects::default();
    for job in settled {
        store.note_ready(job.state, &job.row, 4);
        if job.state.is_terminal() {
            let (queue, job_type) = (Queue::trusted(job.row.get(4)), JobType::trusted(job.row.get(5)));
            effects.jobs_finished(&queue, &job_type, job.state, 1);
        }
    }
    effects.record_metrics();
}

/// The same within a transaction, for jobs that do not become claimable.
pub(crate) async fn settle_in(runner: &mut dyn Runner, endings: &[Ending]) -> Result<()> {
    let columns = Columns::of(endings);
    runner.run(&SETTLE, &columns.params()).await.map(drop)
}

fn read(row: Row) -> Result<Settled> {
    let state = state(row.get(2))?;
    Ok(Settled {
        id: JobId::from_uuid(row.get(0)),
        counter: row.get(1),
        state,
        tell_dependents: row.get::<_, bool>(3) && state.is_terminal(),
        row,
    })
}

#[derive(Default)]
struct Columns<'a> {
    ids: Vec<Uuid>,
    counters: Vec<i32>,
    secrets: Vec<Option<Uuid>>,
    was: Vec<&'static str>,
    cancel_seen: Vec<bool>,
    guards: Vec<&'static str>,
    goes_to: Vec<&'static str>,
    delays: Vec<i64>,
    attempts: Vec<i16>,
    losses: Vec<i16>,
    reasons: Vec<Option<&'static str>>,
    outcomes: Vec<Option<&'static str>>,
    errors: Vec<Option<&'a str>>,
}

impl<'a> Columns<'a> {
    fn of(endings: &'a [Ending]) -> Self {
        let mut sorted: Vec<&Ending> = endings.iter().collect();
        sorted.sort_by_key(|ending| ending.id);
        let mut columns = Self::default();
        let small = |value: u16| i16::try_from(value).unwrap_or(i16::MAX);
        for ending in sorted {
            columns.ids.push(ending.id.as_uuid());
            columns.counters.push(ending.counter);
            columns.secrets.push(ending.secret);
            columns.was.push(ending.was.as_str());
            columns.cancel_seen.push(ending.cancel_seen);
            columns.guards.push(ending.guard.as_str());
            columns.goes_to.push(ending.goes_to.as_str());
            columns.delays.push(ending.delay_ms);
            columns.attempts.push(small(ending.attempts));
            columns.losses.push(small(ending.losses));
            columns.reasons.push(ending.reason);
            columns.outcomes.push(ending.outcome.map(AttemptOutcome::as_str));
            columns.errors.push(ending.error.as_deref());
        }
        columns
    }

    fn params(&self) -> [Param<'_>; 13] {
        [
            Param::Uuids(&self.ids),
            Param::Int4s(&self.counters),
            Param::MaybeUuids(&self.secrets),
            Param::Texts(&self.was),
            Param::Bools(&self.cancel_seen),
            Param::Texts(&self.guards),
            Param::Texts(&self.goes_to),
            Param::Int8s(&self.delays),
            Param::Int2s(&self.attempts),
            Param::Int2s(&self.losses),
            Param::MaybeTexts(&self.reasons),
            Param::MaybeTexts(&self.outcomes),
            Param::MaybeTexts(&self.errors),
        ]
    }
}
