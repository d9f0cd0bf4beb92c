//! Recording jobs: one by one, coalesced; many at once, all or nothing; with keys and dependencies.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use orchestrix_core::{
    FieldError, Fingerprint, Invalid, JobId, JobState, NewJob, OnDependencyFailure,
    graph::{self, Parents},
};
use orchestrix_store::{CommitEffects, Enqueued, Fence, Result, StoreError};
use uuid::Uuid;

use crate::{
    PostgresOptions, PostgresStore,
    database::Database,
    error::{is_of_one_job, store_error},
    record::{Columns, Links},
    row::state,
    runner::{Param, Runner},
    settle::{Ending, settle_in},
    statement::{FIND_FINISHED, FIND_KEYS, LOCK_PARENTS, RECORD_DEPENDENCIES, STATES},
};

/// The most bytes of payload one call may record, so that a statement stays far below the server's limit.
pub(crate) const MAX_CALL_BYTES: usize = 256 * 1024 * 1024;

/// How often a call starts over because somebody took one of its keys while it was being recorded.
pub(crate) const KEY_RACES: usize = 10;

/// Records jobs that may fail one by one: keys and data errors are each job's own.
pub(crate) async fn record_each(database: &Database, jobs: &[NewJob]) -> Vec<Result<Enqueued>> {
    let ids: Vec<JobId> = jobs.iter().map(|_| database.options.ids.next()).collect();
    let mut columns = Columns::default();
    for (id, job) in ids.iter().zip(jobs) {
        columns.push(*id, job, Links::default(), database.options.inline_payload);
    }
    let recorded = match columns.record(database).await {
        Ok(Ok(recorded)) => recorded,
        // One job spoils the statement for all: each gets one of its own.
        Ok(Err(error)) if is_of_one_job(&error) && jobs.len() > 1 => {
            let mut answers = Vec::with_capacity(jobs.len());
            for job in jobs {
                answers.extend(Box::pin(record_each(database, std::slice::from_ref(job))).await);
            }
            return answers;
        }
        Ok(Err(error)) => return failed_alike(jobs.len(), &store_error(error)),
        Err(error) => return failed_alike(jobs.len(), &error),
    };
    let left_out: Vec<usize> = (0..jobs.len()).filter(|i| !recorded.contains_key(&ids[*i].as_uuid())).collect();
    let mut known = match find_keys(&mut &*database, jobs, &left_out).await {
        Ok(known) => known,
        Err(error) => return failed_alike(jobs.len(), &error),
    };
    (0..jobs.len())
        .map(|i| match recorded.get(&ids[i].as_uuid()) {
            Some(state) => Ok(Enqueued { id: ids[i], state: *state, duplicate: false }),
            None => known
                .remove(&i)
                .unwrap_or_else(|| Err(StoreError::Unavailable("a key vanished while it was read".into()))),
        })
        .collect()
}

// An error of the whole statement, for each of its jobs.
fn failed_alike(n: usize, error: &StoreError) -> Vec<Result<Enqueued>> {
    (0..n).map(|_| Err(error.alike())).collect()
}

// What the keys of the jobs at `positions` stand for.
async fn find_keys(
    runner: &mut dyn Runner,
    jobs: &[NewJob],
    positions: &[usize],
) -> Result<HashMap<usize, Result<Enqueued>>> {
    if positions.is_empty() {
        return Ok(HashMap::new());
    }
    let mut tenants = Vec::new();
    let mut job_types = Vec::new();
    let mut keys = Vec::new();
    for i in positions {
        tenants.push(jobs[*i].tenant.as_str());
        job_types.push(jobs[*i].job_type.as_str());
        keys.push(jobs[*i].idempotency_key.as_ref().map(AsRef::as_ref));
    }
    let keys: Vec<Option<&str>> = keys;
    let params = [Param::Texts(&tenants), Param::Texts(&job_types), Param::MaybeTexts(&keys)];
    let rows = runner.run(&FIND_KEYS, &params).await?;
    let mut known = HashMap::new();
    for row in rows {
        let n: i64 = row.get(0)?;
        let i = positions[usize::try_from(n - 1).unwrap_or(0)];
        let id = JobId::from_uuid(row.get(1)?);
        // A key that came in by SQL has no fingerprint of ours; it is taken as the same request.
        let same = row.get::<Option<Uuid>>(2)?.is_none_or(|stored| stored.as_u128() == Fingerprint::of(&jobs[i]).0);
        let answer = if same {
            // A job that is nowhere and left no word was pruned after it completed: only other ends are remembered.
            let state = row.get::<Option<String>>(3)?.as_deref().map_or(Ok(JobState::Completed), state)?;
            Ok(Enqueued { id, state, duplicate: true })
        } else {
            Err(StoreError::IdempotencyKeyReused { existing: id })
        };
        known.insert(i, answer);
    }
    Ok(known)
}

/// Checks jobs that are to be recorded together, and resolves whom each waits for.
pub(crate) fn check_call(jobs: &[NewJob]) -> Result<Vec<Parents>> {
    let graph = graph::resolve(jobs)?;
    if jobs.iter().map(|job| job.payload.as_str().len()).sum::<usize>() > MAX_CALL_BYTES {
        return Err(FieldError::new("jobs", format!("hold more than {MAX_CALL_BYTES} bytes of payload")).into());
    }
    Ok(graph)
}

/// Where a bad parent stands in a call of many jobs.
pub(crate) fn field_of_many(i: usize) -> String {
    format!("jobs[{i}].dependsOn")
}

/// Records all of `jobs` or none.
pub(crate) async fn record_all(store: &PostgresStore, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
    let graph = check_call(jobs)?;
    let plain = jobs.iter().all(|job| job.idempotency_key.is_none() && job.depends_on.is_empty());
    if plain {
        return record_plain(store.database(), jobs).await;
    }
    record_together(store, jobs, &graph, field_of_many).await
}

/// Records one job that waits for others.
pub(crate) async fn record_one(store: &PostgresStore, job: &NewJob, parents: Parents) -> Result<Enqueued> {
    let recorded = record_together(store, std::slice::from_ref(job), &[parents], |_| "dependsOn".into()).await?;
    recorded.first().copied().ok_or_else(|| StoreError::Backend("a job was not recorded".into()))
}

async fn record_together(
    store: &PostgresStore,
    jobs: &[NewJob],
    graph: &[Parents],
    field: impl Fn(usize) -> String,
) -> Result<Vec<Enqueued>> {
    let connection = store.database().connection().await?;
    for _ in 0..KEY_RACES {
        let (work, options) = (&mut &connection, &store.database().options);
        let recorded = connection.attempt(record_graph(work, options, jobs, graph, &field)).await?;
        if let Some(mut recorded) = recorded {
            drop(connection);
            enqueue_effects(jobs.iter().zip(&recorded)).record_metrics();
            // A job that was cancelled at once because a parent had failed may itself be waited for.
            let cancelled = recorded.iter().filter(|job| job.state == JobState::Cancelled && !job.duplicate);
            let cancelled: Vec<JobId> = cancelled.map(|job| job.id).collect();
            if !cancelled.is_empty() {
                store.tell_dependents(Fence::NONE, cancelled).await;
                let ids: Vec<Uuid> = recorded.iter().map(|job| job.id.as_uuid()).collect();
                for row in store.database().query(&STATES, &[&ids]).await? {
                    let (id, now) = (row.get::<_, Uuid>(0), state(row.get(1))?);
                    recorded.iter_mut().filter(|job| job.id.as_uuid() == id).for_each(|job| job.state = now);
                }
            }
            return Ok(recorded);
        }
    }
    Err(StoreError::Unavailable("the keys of this call keep being taken by others: try again".into()))
}

/// What is to be counted of jobs that were recorded: those that are new, and of them those that were cancelled at once because a
/// parent had failed.
pub(crate) fn enqueue_effects<'a>(recorded: impl Iterator<Item = (&'a NewJob, &'a Enqueued)>) -> CommitEffects {
    let mut effects = CommitEffects::default();
    for (job, enqueued) in recorded.filter(|(_, enqueued)| !enqueued.duplicate) {
        effects.job_enqueued(&job.queue, &job.job_type);
        effects.jobs_finished(&job.queue, &job.job_type, enqueued.state, 1);
    }
    effects
}

// Nothing to look up: one statement, which is a transaction by itself.
async fn record_plain(database: &Database, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<JobId> = jobs.iter().map(|_| database.options.ids.next()).collect();
    let mut columns = Columns::default();
    for (id, job) in ids.iter().zip(jobs) {
        columns.push(*id, job, Links::default(), database.options.inline_payload);
    }
    let recorded = columns.record(database).await?.map_err(store_error)?;
    let enqueued = |id: JobId| {
        let state = recorded.get(&id.as_uuid()).ok_or_else(|| StoreError::Backend("a job was not recorded".into()))?;
        Ok(Enqueued { id, state: *state, duplicate: false })
    };
    let enqueued = ids.into_iter().map(enqueued).collect::<Result<Vec<_>>>()?;
    enqueue_effects(jobs.iter().zip(&enqueued)).record_metrics();
    Ok(enqueued)
}

/// What is known of a job that others wait for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parent {
    Waiting,
    Completed,
    Failed,
}

// Keys first, since a reference to a known job means that job; then parents are locked, so that none finishes between
// the look and the commit; then the jobs and who waits for whom. `None` when somebody took one of the keys meanwhile:
// what was recorded is to be taken back by the caller, who may start over.
pub(crate) async fn record_graph(
    runner: &mut dyn Runner,
    options: &PostgresOptions,
    jobs: &[NewJob],
    graph: &[Parents],
    field: &impl Fn(usize) -> String,
) -> Result<Option<Vec<Enqueued>>> {
    let mut answers: Vec<Option<Enqueued>> = vec![None; jobs.len()];
    let mut ids: Vec<JobId> = jobs.iter().map(|_| options.ids.next()).collect();
    let keyed: Vec<usize> = (0..jobs.len()).filter(|i| jobs[*i].idempotency_key.is_some()).collect();
    let mut known = find_keys(runner, jobs, &keyed).await?;
    // In the order of the jobs, so that of several keys that were used for something else the first is named.
    let mut first_of_key = HashMap::new();
    let mut same_as: HashMap<usize, usize> = HashMap::new();
    for i in keyed {
        if let Some(answer) = known.remove(&i) {
            let repeat = answer?;
            ids[i] = repeat.id;
            answers[i] = Some(repeat);
            continue;
        }
        // The same key twice in one call.
        let key = (&jobs[i].tenant, &jobs[i].job_type, &jobs[i].idempotency_key);
        let first = *first_of_key.entry(key).or_insert(i);
        if first != i {
            if Fingerprint::of(&jobs[first]) != Fingerprint::of(&jobs[i]) {
                return Err(StoreError::IdempotencyKeyReused { existing: ids[first] });
            }
            ids[i] = ids[first];
            same_as.insert(i, first);
        }
    }
    let fresh: Vec<usize> = (0..jobs.len()).filter(|i| answers[*i].is_none() && !same_as.contains_key(i)).collect();
    let fresh_ids: BTreeSet<JobId> = fresh.iter().map(|i| ids[*i]).collect();
    let mut parents_of: BTreeMap<usize, BTreeSet<JobId>> = BTreeMap::new();
    for i in &fresh {
        let inside = graph[*i].inside.iter().map(|position| ids[*position]);
        parents_of.insert(*i, inside.chain(graph[*i].outside.iter().copied()).collect());
    }
    let outside: BTreeSet<JobId> =
        parents_of.values().flatten().copied().filter(|id| !fresh_ids.contains(id)).collect();
    let tenants: BTreeSet<&str> = fresh.iter().map(|i| jobs[*i].tenant.as_str()).collect();
    let known = find_parents(runner, &outside, &tenants).await?;
    let mut unknown = Vec::new();
    for (i, parents) in &parents_of {
        // A call of several tenants finds jobs of all of them.
        let is_known = |id| known.get(id).is_some_and(|(_, tenant)| *tenant == jobs[*i].tenant.as_str());
        for id in parents.iter().filter(|id| !fresh_ids.contains(id) && !is_known(id)) {
            unknown.push(FieldError::new(field(*i), format!("there is no job {id}")));
        }
    }
    Invalid::check(unknown)?;

    let depended_on: BTreeSet<JobId> = parents_of.values().flatten().copied().collect();
    let mut columns = Columns::default();
    let mut doomed = Vec::new();
    let (mut children, mut parents, mut met) = (Vec::new(), Vec::new(), Vec::new());
    for i in &fresh {
        let standing = |id: &JobId| known.get(id).map_or(Parent::Waiting, |(parent, _)| *parent);
        let failed = parents_of[i].iter().any(|id| standing(id) == Parent::Failed);
        let policy = jobs[*i].on_dependency_failure;
        let links = Links {
            waits_for: parents_of[i].iter().filter(|id| standing(id) == Parent::Waiting).count(),
            has_parents: !parents_of[i].is_empty(),
            has_dependents: depended_on.contains(&ids[*i]),
            held: failed && policy == OnDependencyFailure::Hold,
        };
        if failed && policy == OnDependencyFailure::Cancel {
            doomed.push(*i);
        }
        columns.push(ids[*i], &jobs[*i], links, options.inline_payload);
        for parent in &parents_of[i] {
            children.push(ids[*i].as_uuid());
            parents.push(parent.as_uuid());
            met.push(standing(parent) != Parent::Waiting);
        }
    }
    let recorded = columns.record_in(runner).await?;
    if !children.is_empty() {
        let params = [Param::Uuids(&children), Param::Uuids(&parents), Param::Bools(&met)];
        runner.run(&RECORD_DEPENDENCIES, &params).await?;
    }
    for i in fresh {
        let Some(state) = recorded.get(&ids[i].as_uuid()) else { return Ok(None) };
        answers[i] = Some(Enqueued { id: ids[i], state: *state, duplicate: false });
    }
    if !doomed.is_empty() {
        let endings: Vec<Ending> = doomed
            .iter()
            .filter_map(|i| {
                answers[*i].map(|answer| Ending::cancel_waiting(answer.id, answer.state, 0, 0, 0, "dependency_failed"))
            })
            .collect();
        settle_in(runner, &endings).await?;
        for i in doomed {
            if let Some(answer) = &mut answers[i] {
                answer.state = JobState::Cancelled;
            }
        }
    }
    for (i, first) in same_as {
        answers[i] = answers[first].map(|answer| Enqueued { duplicate: true, ..answer });
    }
    answers
        .into_iter()
        .map(|answer| answer.ok_or_else(|| StoreError::Backend("a job was not recorded".into())))
        .collect::<Result<_>>()
        .map(Some)
}

// Locks those that are unfinished and looks up the rest; twice, since an operator may redrive one in between. Those of other tenants are
// not there, and are not waited for: whose they are is said beside how they stand.
async fn find_parents(
    runner: &mut dyn Runner,
    ids: &BTreeSet<JobId>,
    tenants: &BTreeSet<&str>,
) -> Result<HashMap<JobId, (Parent, String)>> {
    let tenants: Vec<&str> = tenants.iter().copied().collect();
    let mut found = HashMap::new();
    for _ in 0..2 {
        let missing: Vec<Uuid> = ids.iter().filter(|id| !found.contains_key(*id)).map(JobId::as_uuid).collect();
        if missing.is_empty() {
            break;
        }
        let params = [Param::Uuids(&missing), Param::Texts(&tenants)];
        for row in runner.run(&LOCK_PARENTS, &params).await? {
            found.insert(JobId::from_uuid(row.get(0)?), (Parent::Waiting, row.get(1)?));
        }
        for row in runner.run(&FIND_FINISHED, &params).await? {
            let parent = if row.get::<String>(2)? == "completed" { Parent::Completed } else { Parent::Failed };
            found.insert(JobId::from_uuid(row.get(0)?), (parent, row.get(1)?));
        }
    }
    Ok(found)
}
