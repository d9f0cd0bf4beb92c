//! Ending attempts, and what a worker says along the way.

use std::collections::{HashMap, HashSet};

use orchestrix_core::{AttemptOutcome, JobId, JobState, JobType, LeaseToken, Queue};
use orchestrix_store::{
    CommitEffects, EndedAttempt, Fence, FinishError, LogLine, Outcome, OutcomeReport, ProgressUpdate, Result,
    StoreError,
};
use serde_json::json;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    PostgresStore,
    row::state,
    settle::{Ending, Examined, Guard, settle_now},
    statement::{APPEND_LOGS, COMPLETE, EXAMINE, PROGRESS, REPLAY},
};

/// How often a decision is made anew because a cancel request came in between.
const ROUNDS: usize = 4;

type Answer = Result<JobState, FinishError>;

pub(crate) async fn finish(store: &PostgresStore, items: &[OutcomeReport]) -> Result<Vec<Answer>> {
    OutcomeReport::validate(items)?;
    let mut answers: Vec<Option<Answer>> = vec![None; items.len()];
    // In the order of ids: every statement that waits for several rows locks them in this order.
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_unstable_by_key(|i| (items[*i].token, *i));
    let (mut complete, mut other) = (Vec::with_capacity(items.len()), Vec::new());
    let mut last = None;
    for i in order {
        let item = &items[i];
        if let Err(error) = item.outcome.validate() {
            answers[i] = Some(Err(FinishError::Invalid(error)));
        } else if last.replace(item.token) != Some(item.token) {
            match item.outcome {
                Outcome::Complete { .. } => complete.push(i),
                _ => other.push(i),
            }
        }
    }
    let mut ended = Vec::new();
    if !complete.is_empty() {
        ended = complete_all(store, items, complete, &mut answers).await?;
    }
    if !other.is_empty() {
        ended.extend(settle_all(store, items, &other, &mut answers).await?);
    }
    let unanswered: Vec<usize> = (0..items.len()).filter(|i| answers[*i].is_none()).collect();
    if !unanswered.is_empty() {
        replay(store, items, &unanswered, &mut answers).await?;
    }
    store.tell_dependents(Fence::NONE, ended).await;
    Ok(answers.into_iter().map(|answer| answer.unwrap_or(Err(FinishError::LeaseLost))).collect())
}

// Those at `positions`, which are in the order of tokens.
async fn complete_all(
    store: &PostgresStore,
    items: &[OutcomeReport],
    mut positions: Vec<usize>,
    answers: &mut [Option<Answer>],
) -> Result<Vec<JobId>> {
    let mut ended = Vec::new();
    while !positions.is_empty() {
        // The answer names jobs, so of two tokens of one job each has a call of its own.
        let mut last = None;
        let (now, later): (Vec<usize>, Vec<usize>) =
            positions.into_iter().partition(|i| last.replace(items[*i].token.job) != Some(items[*i].token.job));
        positions = later;
        let ids: Vec<Uuid> = now.iter().map(|i| items[*i].token.job.as_uuid()).collect();
        let counters: Vec<i32> = now.iter().map(|i| items[*i].token.counter).collect();
        let secrets: Vec<Uuid> = now.iter().map(|i| items[*i].token.secret).collect();
        let results = now.iter().map(|i| match &items[*i].outcome {
            Outcome::Complete { result } => result.as_ref().map(|json| json.as_str()),
            _ => None,
        });
        let results: Vec<Option<&str>> = results.collect();
        let rows = store.database().query(&COMPLETE, &[&ids, &counters, &secrets, &results]).await?;
        let Some(row) = rows.first() else { continue };
        let done: HashSet<Uuid> = row.get::<_, Vec<Uuid>>(0).into_iter().collect();
        count(row);
        for (i, id) in now.into_iter().zip(ids) {
            if done.contains(&id) {
                answers[i] = Some(Ok(JobState::Completed));
            }
        }
        ended.extend(row.get::<_, Option<Vec<Uuid>>>(1).unwrap_or_default().into_iter().map(JobId::from_uuid));
    }
    Ok(ended)
}

// What completed, by queue and type.
fn count(row: &Row) {
    let (queues, types, counts): (Vec<&str>, Vec<&str>, Vec<i64>) = (row.get(2), row.get(3), row.get(4));
    let mut effects = CommitEffects::default();
    for ((queue, job_type), n) in queues.into_iter().zip(types).zip(counts) {
        let (queue, job_type) = (Queue::trusted(queue), JobType::trusted(job_type));
        effects.jobs_finished(&queue, &job_type, JobState::Completed, n.unsigned_abs());
    }
    effects.record_metrics();
}

async fn settle_all(
    store: &PostgresStore,
    items: &[OutcomeReport],
    positions: &[usize],
    answers: &mut [Option<Answer>],
) -> Result<Vec<JobId>> {
    let mut left: HashMap<LeaseToken, usize> = positions.iter().map(|i| (items[*i].token, *i)).collect();
    let mut ended = Vec::new();
    for _ in 0..ROUNDS {
        let ids: Vec<Uuid> = left.keys().map(|token| token.job.as_uuid()).collect();
        let counters: Vec<i32> = left.keys().map(|token| token.counter).collect();
        let secrets: Vec<Uuid> = left.keys().map(|token| token.secret).collect();
        let mut endings = Vec::new();
        let mut by_place = HashMap::new();
        for row in store.database().query(&EXAMINE, &[&ids, &counters, &secrets]).await? {
            let job = Examined::read(&row)?;
            let Some(i) = left.get(&job.token) else { continue };
            if let Some(ending) = Ending::of_attempt(&job, &EndedAttempt::from(&items[*i].outcome), Guard::Token) {
                endings.push(ending);
                by_place.insert((job.token.job, job.token.counter), job.token);
            }
        }
        if endings.is_empty() {
            break;
        }
        for settled in settle_now(store, &endings).await? {
            let Some(token) = by_place.get(&(settled.id, settled.counter)) else { continue };
            if let Some(i) = left.remove(token) {
                answers[i] = Some(Ok(settled.state));
            }
            if settled.tell_dependents {
                ended.push(settled.id);
            }
        }
        if left.is_empty() {
            break;
        }
    }
    Ok(ended)
}

// What was refused may be the repeat of what was accepted: the answer that got lost on the way is given again.
async fn replay(
    store: &PostgresStore,
    items: &[OutcomeReport],
    positions: &[usize],
    answers: &mut [Option<Answer>],
) -> Result<()> {
    let tokens = || positions.iter().map(|i| items[*i].token);
    let ids: Vec<Uuid> = tokens().map(|token| token.job.as_uuid()).collect();
    let counters: Vec<i32> = tokens().map(|token| token.counter).collect();
    let secrets: Vec<Uuid> = tokens().map(|token| token.secret).collect();
    for row in store.database().query(&REPLAY, &[&ids, &counters, &secrets]).await? {
        let i = positions[usize::try_from(row.get::<_, i64>(0) - 1).unwrap_or(0)];
        let outcome: &str = row.get(1);
        let end = EndedAttempt::from(&items[i].outcome);
        let same = outcome == end.outcome.as_str()
            && row.get::<_, Option<&str>>(3) == end.error.as_deref()
            && (end.outcome != AttemptOutcome::Completed || end.has_result(row.get(4)));
        if same {
            answers[i] = Some(Ok(state(row.get(2))?));
        }
    }
    Ok(())
}

/// Records how far a running job has come.
pub(crate) async fn progress(store: &PostgresStore, token: LeaseToken, update: &ProgressUpdate) -> Result<()> {
    update.validate()?;
    let said = update.progress.as_ref().map(|p| json!({"percent": p.percent, "message": p.message}).to_string());
    let checkpoint = update.checkpoint.as_ref().map(|json| json.as_str());
    let rows = store
        .database()
        .query(&PROGRESS, &[&token.job.as_uuid(), &token.counter, &token.secret, &said, &checkpoint])
        .await?;
    if rows.is_empty() { Err(StoreError::LeaseLost) } else { Ok(()) }
}

/// Adds lines to the log of a running job.
pub(crate) async fn append_logs(store: &PostgresStore, token: LeaseToken, lines: &[LogLine]) -> Result<()> {
    LogLine::validate(lines)?;
    let times: Vec<_> = lines.iter().map(|line| line.at).collect();
    let levels: Vec<&str> = lines.iter().map(|line| line.level.as_str()).collect();
    let messages: Vec<&str> = lines.iter().map(|line| line.message.as_str()).collect();
    let rows = store
        .database()
        .query(&APPEND_LOGS, &[&token.job.as_uuid(), &token.counter, &token.secret, &times, &levels, &messages])
        .await?;
    if rows.is_empty() { Err(StoreError::LeaseLost) } else { Ok(()) }
}
