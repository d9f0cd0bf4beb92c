//! Finishing attempts.
//!
//! Completions are written by one statement. Every other outcome goes through [`settle`](crate::settle). A report that
//! neither accepts may repeat an accepted one, and then gets the same answer; otherwise its lease is lost.

use std::collections::{HashMap, HashSet};

use orchestrix_core::{AttemptOutcome, JobId, JobState, JobType, LeaseToken, Queue};
use orchestrix_store::{EndedAttempt, Fence, FinishError, Outcome, OutcomeReport, Result};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    PostgresStore,
    effects::Effects,
    lease::token_columns,
    row::state,
    settle::{Guard, GuardedTransition, JobSnapshot, settle_before_dependents},
    statement::{COMPLETE_JOBS, FIND_ENDED_ATTEMPTS, READ_ATTEMPTS},
};

/// How many times a transition is decided: a cancel request may come between the read and the write.
const ROUNDS: usize = 4;

type Answer = Result<JobState, FinishError>;

/// Finishes attempts. Returns one answer for each report, in order.
pub(crate) async fn finish_attempts(store: &PostgresStore, reports: &[OutcomeReport]) -> Result<Vec<Answer>> {
    OutcomeReport::validate(reports)?;
    let mut answers: Vec<Option<Answer>> = vec![None; reports.len()];
    // In the order of ids: every statement that waits for several rows locks them in this order.
    let mut order: Vec<usize> = (0..reports.len()).collect();
    order.sort_unstable_by_key(|i| (reports[*i].token, *i));
    let (mut completed, mut other) = (Vec::with_capacity(reports.len()), Vec::new());
    let mut last = None;
    for i in order {
        let report = &reports[i];
        if let Err(error) = report.outcome.validate() {
            answers[i] = Some(Err(FinishError::Invalid(error)));
        } else if last.replace(report.token) != Some(report.token) {
            match report.outcome {
                Outcome::Complete { .. } => completed.push(i),
                _ => other.push(i),
            }
        }
    }
    let mut parents = Vec::new();
    let written = write(store, reports, completed, &other, &mut answers, &mut parents).await;
    // After all outcomes were written, so that none waits for the dependents of another; and also after an error,
    // since some outcomes may be written.
    store.resolve_dependents(Fence::NONE, parents).await;
    written?;
    let unanswered: Vec<usize> = (0..reports.len()).filter(|i| answers[*i].is_none()).collect();
    if !unanswered.is_empty() {
        answer_repeats(store, reports, &unanswered, &mut answers).await?;
    }
    Ok(answers.into_iter().map(|answer| answer.unwrap_or(Err(FinishError::LeaseLost))).collect())
}

// Writes the outcomes at the positions `completed`, which are in the order of tokens, and `other`. Adds the finished jobs
// that have dependents to `parents`.
async fn write(
    store: &PostgresStore,
    reports: &[OutcomeReport],
    completed: Vec<usize>,
    other: &[usize],
    answers: &mut [Option<Answer>],
    parents: &mut Vec<JobId>,
) -> Result<()> {
    if !completed.is_empty() {
        complete(store, reports, completed, answers, parents).await?;
    }
    if !other.is_empty() {
        settle(store, reports, other, answers, parents).await?;
    }
    Ok(())
}

// Completes the reports at `positions`, which are in the order of tokens.
async fn complete(
    store: &PostgresStore,
    reports: &[OutcomeReport],
    mut positions: Vec<usize>,
    answers: &mut [Option<Answer>],
    parents: &mut Vec<JobId>,
) -> Result<()> {
    while !positions.is_empty() {
        // The result names jobs and not tokens, so two tokens of one job need a statement each.
        let mut last = None;
        let (now, later): (Vec<usize>, Vec<usize>) =
            positions.into_iter().partition(|i| last.replace(reports[*i].token.job) != Some(reports[*i].token.job));
        positions = later;
        let (ids, counters, secrets) = token_columns(now.iter().map(|i| &reports[*i].token));
        let results = now.iter().map(|i| match &reports[*i].outcome {
            Outcome::Complete { result } => result.as_ref().map(|json| json.as_str()),
            _ => None,
        });
        let results: Vec<Option<&str>> = results.collect();
        let rows = store.database().query(&COMPLETE_JOBS, &[&ids, &counters, &secrets, &results]).await?;
        let Some(row) = rows.first() else { continue };
        let completed: HashSet<Uuid> = row.get::<_, Vec<Uuid>>("ids").into_iter().collect();
        for (i, id) in now.into_iter().zip(ids) {
            if completed.contains(&id) {
                answers[i] = Some(Ok(JobState::Completed));
            }
        }
        let mut effects = completed_effects(row);
        parents.extend(effects.take_finished_parents());
        store.publisher().publish(effects);
    }
    Ok(())
}

fn completed_effects(row: &Row) -> Effects {
    let mut effects = Effects::default();
    let (queues, types): (Vec<&str>, Vec<&str>) = (row.get("queues"), row.get("job_types"));
    for ((queue, job_type), n) in queues.into_iter().zip(types).zip(row.get::<_, Vec<i64>>("counts")) {
        let (queue, job_type) = (Queue::trusted(queue), JobType::trusted(job_type));
        effects.jobs_finished(&queue, &job_type, JobState::Completed, n.unsigned_abs());
    }
    for id in row.get::<_, Option<Vec<Uuid>>>("parents").unwrap_or_default() {
        effects.parent_finished(JobId::from_uuid(id));
    }
    effects
}

// Settles the reports at `positions` that are not completions.
async fn settle(
    store: &PostgresStore,
    reports: &[OutcomeReport],
    positions: &[usize],
    answers: &mut [Option<Answer>],
    parents: &mut Vec<JobId>,
) -> Result<()> {
    let mut left: HashMap<LeaseToken, usize> = positions.iter().map(|i| (reports[*i].token, *i)).collect();
    for _ in 0..ROUNDS {
        let (ids, counters, secrets) = token_columns(left.keys());
        let mut transitions = Vec::new();
        let mut tokens = HashMap::new();
        for row in store.database().query(&READ_ATTEMPTS, &[&ids, &counters, &secrets]).await? {
            let job = JobSnapshot::read(&row)?;
            let Some(i) = left.get(&job.token) else { continue };
            let end = EndedAttempt::from(&reports[*i].outcome);
            if let Some(transition) = GuardedTransition::of_attempt(&job, &end, Guard::Token) {
                transitions.push(transition);
                tokens.insert((job.token.job, job.token.counter), job.token);
            }
        }
        if transitions.is_empty() {
            break;
        }
        for settled in settle_before_dependents(store, &transitions, parents).await? {
            let Some(token) = tokens.get(&(settled.id, settled.counter)) else { continue };
            if let Some(i) = left.remove(token) {
                answers[i] = Some(Ok(settled.state));
            }
        }
        if left.is_empty() {
            break;
        }
    }
    Ok(())
}

// A refused report may repeat an accepted one whose answer was lost: it gets that answer again.
async fn answer_repeats(
    store: &PostgresStore,
    reports: &[OutcomeReport],
    positions: &[usize],
    answers: &mut [Option<Answer>],
) -> Result<()> {
    let (ids, counters, secrets) = token_columns(positions.iter().map(|i| &reports[*i].token));
    for row in store.database().query(&FIND_ENDED_ATTEMPTS, &[&ids, &counters, &secrets]).await? {
        let i = positions[usize::try_from(row.get::<_, i64>("n") - 1).unwrap_or(0)];
        let end = EndedAttempt::from(&reports[i].outcome);
        let is_repeat = row.get::<_, &str>("outcome") == end.outcome.as_str()
            && row.get::<_, Option<&str>>("error") == end.error.as_deref()
            && (end.outcome != AttemptOutcome::Completed || end.has_result(row.get("result")));
        if is_repeat {
            answers[i] = Some(Ok(state(row.get("to"))?));
        }
    }
    Ok(())
}
