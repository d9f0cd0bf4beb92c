//! Writing transitions: every end of an attempt except a success, and the cancellation or expiry of a waiting job.
//!
//! The store reads what a transition depends on, [`EndedAttempt::decide`] decides it by the rules of `core`, and one
//! statement writes it for each job that is still as it was read. No lock is held in between. A job that changed
//! meanwhile is not written; the caller reads again.

use orchestrix_core::{AttemptOutcome, JobId, JobState, JobType, LeaseToken, Lifecycle, Queue, RetryPolicy};
use orchestrix_store::{EndedAttempt, Fence, Result, Transition};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    PostgresStore,
    effects::Effects,
    fenced_tx::FencedTx,
    job_columns::millis,
    row::{count, retry_policy, state},
    runner::{Param, Runner},
    statement::{REQUEST_CANCEL_MANY, SETTLE_JOBS},
};

/// What must still be true of a leased job, besides its token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Nothing more.
    Token,
    /// Its lease has expired.
    Expired,
    /// Its attempt has timed out.
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

/// A job as it was read, before its transition is decided.
#[derive(Debug, Clone)]
pub(crate) struct JobSnapshot {
    pub(crate) token: LeaseToken,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) retry: RetryPolicy,
}

impl JobSnapshot {
    /// Reads a row of `read_attempts.sql`, `expired_leases.sql`, `overdue_attempts.sql` or `expired_jobs.sql`. The
    /// secret is nil for a job that was never leased.
    pub(crate) fn read(row: &Row) -> Result<Self> {
        Ok(Self {
            token: LeaseToken {
                job: JobId::from_uuid(row.get("id")),
                counter: row.get("lease_counter"),
                secret: row.get::<_, Option<Uuid>>("lease_secret").unwrap_or_default(),
            },
            lifecycle: Lifecycle {
                state: state(row.get("state"))?,
                attempts: count(row.get("attempts")),
                max_attempts: count(row.get("max_attempts")),
                losses: count(row.get("losses")),
                cancel_requested: row.get("cancel_requested"),
            },
            retry: retry_policy(row.get("retry"))?,
        })
    }
}

/// A transition of one job that is written only if the job is unchanged.
#[derive(Debug, Clone)]
pub(crate) struct GuardedTransition {
    id: JobId,
    counter: i32,
    secret: Option<Uuid>,
    before: JobState,
    cancel_requested: bool,
    guard: Guard,
    after: JobState,
    delay_ms: i64,
    attempts: u16,
    losses: u16,
    reason: Option<&'static str>,
    outcome: Option<AttemptOutcome>,
    error: Option<String>,
}

impl GuardedTransition {
    /// Decides the end of an attempt; `None` if the job's state has no attempt to end.
    pub(crate) fn of_attempt(job: &JobSnapshot, end: &EndedAttempt, guard: Guard) -> Option<Self> {
        let before = job.lifecycle;
        let Transition { lifecycle: after, reason, wait } = end.decide(before, &job.retry).ok()?;
        Some(Self {
            id: job.token.job,
            counter: job.token.counter,
            secret: Some(job.token.secret),
            before: before.state,
            cancel_requested: before.cancel_requested,
            guard,
            after: after.state,
            delay_ms: millis(wait),
            attempts: after.attempts,
            losses: after.losses,
            reason,
            outcome: Some(end.outcome),
            error: end.error.clone(),
        })
    }

    /// Cancels a job without a lease, if it is still in state `before` and was not leased since.
    pub(crate) fn cancel_waiting(
        id: JobId,
        before: JobState,
        counter: i32,
        attempts: u16,
        losses: u16,
        reason: &'static str,
    ) -> Self {
        Self {
            id,
            counter,
            secret: None,
            before,
            cancel_requested: false,
            guard: Guard::Token,
            after: JobState::Cancelled,
            delay_ms: 0,
            attempts,
            losses,
            reason: Some(reason),
            outcome: None,
            error: None,
        }
    }

    #[cfg(test)]
    pub(crate) const fn id(&self) -> JobId {
        self.id
    }
}

/// A job whose transition was written.
#[derive(Debug)]
pub(crate) struct SettledJob {
    pub(crate) id: JobId,
    pub(crate) counter: i32,
    pub(crate) state: JobState,
}

/// Writes the transitions of unchanged jobs and returns those jobs.
pub(crate) async fn settle(
    tx: &FencedTx<'_>,
    transitions: &[GuardedTransition],
    effects: &mut Effects,
) -> Result<Vec<SettledJob>> {
    let columns = Columns::of(transitions);
    let rows = tx.query(&SETTLE_JOBS, &Param::all(&columns.params())).await?;
    rows.iter().map(|row| read(row, effects)).collect()
}

/// Like [`settle`], in a transaction of its own, with its effects published.
pub(crate) async fn settle_now(store: &PostgresStore, transitions: &[GuardedTransition]) -> Result<Vec<SettledJob>> {
    let mut parents = Vec::new();
    let settled = settle_before_dependents(store, transitions, &mut parents).await?;
    store.resolve_dependents(Fence::NONE, parents).await;
    Ok(settled)
}

/// Like [`settle_now`], but leaves the dependents to the caller: adds the finished jobs that have some to `parents`.
pub(crate) async fn settle_before_dependents(
    store: &PostgresStore,
    transitions: &[GuardedTransition],
    parents: &mut Vec<JobId>,
) -> Result<Vec<SettledJob>> {
    let mut effects = Effects::default();
    let tx = store.database().fenced(Fence::NONE).await?;
    let settled = settle(&tx, transitions, &mut effects).await?;
    tx.commit().await?;
    parents.extend(effects.take_finished_parents());
    store.publisher().publish(effects);
    Ok(settled)
}

/// Like [`settle`], in the runner's transaction and without effects, for jobs that do not become claimable.
pub(crate) async fn settle_in(runner: &mut dyn Runner, transitions: &[GuardedTransition]) -> Result<()> {
    let columns = Columns::of(transitions);
    runner.run(&SETTLE_JOBS, &columns.params()).await.map(drop)
}

fn read(row: &Row, effects: &mut Effects) -> Result<SettledJob> {
    let (id, state) = (JobId::from_uuid(row.get("id")), state(row.get("state"))?);
    if state.is_terminal() {
        let (queue, job_type) = (Queue::trusted(row.get("queue")), JobType::trusted(row.get("job_type")));
        effects.jobs_finished(&queue, &job_type, state, 1);
        if row.get("has_dependents") {
            effects.parent_finished(id);
        }
    } else {
        note_moved(state, row, effects);
    }
    Ok(SettledJob { id, counter: row.get("lease_counter"), state })
}

/// Notes that a job moved to `state`. Its lane and position are columns of `row`.
pub(crate) fn note_moved(state: JobState, row: &Row, effects: &mut Effects) {
    effects.job_moved(state, Queue::trusted(row.get("queue")), JobType::trusted(row.get("job_type")));
}

/// Cancels jobs that this transaction has locked, given as rows of `lock_jobs.sql`: requests it for leased jobs and
/// settles the others. Returns how many jobs changed.
pub(crate) async fn cancel_locked<'a>(
    tx: &FencedTx<'_>,
    rows: impl Iterator<Item = &'a Row>,
    effects: &mut Effects,
) -> Result<usize> {
    let (mut leased, mut transitions) = (Vec::new(), Vec::new());
    for row in rows {
        let (id, before) = (JobId::from_uuid(row.get("id")), state(row.get("state"))?);
        if before.is_leased() {
            leased.push(id.as_uuid());
        } else {
            let (attempts, losses) = (count(row.get("attempts")), count(row.get("losses")));
            let counter = row.get("lease_counter");
            transitions.push(GuardedTransition::cancel_waiting(id, before, counter, attempts, losses, "requested"));
        }
    }
    if !leased.is_empty() {
        tx.query(&REQUEST_CANCEL_MANY, &[&leased]).await?;
    }
    let settled = if transitions.is_empty() { Vec::new() } else { settle(tx, &transitions, effects).await? };
    Ok(leased.len() + settled.len())
}

/// The parameters of `settle_jobs.sql`.
#[derive(Default)]
struct Columns<'a> {
    ids: Vec<Uuid>,
    counters: Vec<i32>,
    secrets: Vec<Option<Uuid>>,
    before: Vec<&'static str>,
    cancel_requested: Vec<bool>,
    guards: Vec<&'static str>,
    after: Vec<&'static str>,
    delays: Vec<i64>,
    attempts: Vec<i16>,
    losses: Vec<i16>,
    reasons: Vec<Option<&'static str>>,
    outcomes: Vec<Option<&'static str>>,
    errors: Vec<Option<&'a str>>,
}

impl<'a> Columns<'a> {
    fn of(transitions: &'a [GuardedTransition]) -> Self {
        let mut sorted: Vec<&GuardedTransition> = transitions.iter().collect();
        sorted.sort_by_key(|transition| transition.id);
        let mut columns = Self::default();
        let small = |value: u16| i16::try_from(value).unwrap_or(i16::MAX);
        for transition in sorted {
            columns.ids.push(transition.id.as_uuid());
            columns.counters.push(transition.counter);
            columns.secrets.push(transition.secret);
            columns.before.push(transition.before.as_str());
            columns.cancel_requested.push(transition.cancel_requested);
            columns.guards.push(transition.guard.as_str());
            columns.after.push(transition.after.as_str());
            columns.delays.push(transition.delay_ms);
            columns.attempts.push(small(transition.attempts));
            columns.losses.push(small(transition.losses));
            columns.reasons.push(transition.reason);
            columns.outcomes.push(transition.outcome.map(AttemptOutcome::as_str));
            columns.errors.push(transition.error.as_deref());
        }
        columns
    }

    fn params(&self) -> [Param<'_>; 13] {
        [
            Param::Uuids(&self.ids),
            Param::Int4s(&self.counters),
            Param::MaybeUuids(&self.secrets),
            Param::Texts(&self.before),
            Param::Bools(&self.cancel_requested),
            Param::Texts(&self.guards),
            Param::Texts(&self.after),
            Param::Int8s(&self.delays),
            Param::Int2s(&self.attempts),
            Param::Int2s(&self.losses),
            Param::MaybeTexts(&self.reasons),
            Param::MaybeTexts(&self.outcomes),
            Param::MaybeTexts(&self.errors),
        ]
    }
}
