//! Enqueue: single jobs in coalesced statements, batches all or nothing, with idempotency keys and dependencies.

use std::collections::{BTreeSet, HashMap};

use orchestrix_core::{
    Fingerprint, JobId, JobState, NewJob, Tenant,
    enqueue::{Call, CallShape, KnownKey, KnownParent, Links, ParentState, Parents, check_jobs, is_plain},
};
use orchestrix_store::{Enqueued, Fence, Result, StoreError};
use uuid::Uuid;

use crate::{
    PostgresOptions, PostgresStore,
    database::Database,
    effects::Effects,
    error::{is_of_one_job, store_error},
    job_columns::Columns,
    row::state,
    runner::{Param, Runner},
    settle::{GuardedTransition, settle_in},
    statement::{FIND_FINISHED_PARENTS, FIND_IDEMPOTENCY_KEYS, INSERT_DEPENDENCIES, JOB_STATES, LOCK_PARENTS},
};

/// How often a call starts over because another transaction took one of its idempotency keys.
pub(crate) const KEY_RACES: usize = 10;

/// Enqueues jobs that may fail one by one: a reused key or a data error fails its own job only.
pub(crate) async fn enqueue_each(database: &Database, jobs: &[NewJob]) -> Vec<Result<Enqueued>> {
    let (ids, columns) = plain_columns(database, jobs);
    let inserted = match columns.insert(database).await {
        Ok(Ok(inserted)) => inserted,
        // One bad job fails the statement for all, so each job gets a statement of its own.
        Ok(Err(error)) if is_of_one_job(&error) && jobs.len() > 1 => {
            let mut results = Vec::with_capacity(jobs.len());
            for job in jobs {
                results.extend(Box::pin(enqueue_each(database, std::slice::from_ref(job))).await);
            }
            return results;
        }
        Ok(Err(error)) => return same_error(jobs.len(), &store_error(error)),
        Err(error) => return same_error(jobs.len(), &error),
    };
    let left_out: Vec<usize> = (0..jobs.len()).filter(|i| !inserted.contains_key(&ids[*i].as_uuid())).collect();
    let known = match find_keys(&mut &*database, jobs, &left_out).await {
        Ok(known) => known,
        Err(error) => return same_error(jobs.len(), &error),
    };
    (0..jobs.len())
        .map(|i| match (inserted.get(&ids[i].as_uuid()), known.get(&i)) {
            (Some(state), _) => Ok(Enqueued { id: ids[i], state: *state, duplicate: false }),
            (None, Some(key)) => Ok(key.duplicate(&jobs[i])?),
            (None, None) => {
                Err(StoreError::Unavailable("an idempotency key was deleted during the call: retry".into()))
            }
        })
        .collect()
}

// The error of a whole statement, once for each of its jobs.
fn same_error(n: usize, error: &StoreError) -> Vec<Result<Enqueued>> {
    (0..n).map(|_| Err(error.replicate())).collect()
}

fn plain_columns<'a>(database: &Database, jobs: &'a [NewJob]) -> (Vec<JobId>, Columns<'a>) {
    let ids: Vec<JobId> = jobs.iter().map(|_| database.options.ids.next()).collect();
    let mut columns = Columns::default();
    for (id, job) in ids.iter().zip(jobs) {
        columns.push(*id, job, Links::default(), database.options.inline_payload);
    }
    (ids, columns)
}

// Looks up the idempotency keys of the jobs at `positions`.
async fn find_keys(runner: &mut dyn Runner, jobs: &[NewJob], positions: &[usize]) -> Result<HashMap<usize, KnownKey>> {
    if positions.is_empty() {
        return Ok(HashMap::new());
    }
    let mut tenants = Vec::new();
    let mut job_types = Vec::new();
    let mut keys: Vec<Option<&str>> = Vec::new();
    for i in positions {
        tenants.push(jobs[*i].tenant.as_str());
        job_types.push(jobs[*i].job_type.as_str());
        keys.push(jobs[*i].idempotency_key.as_ref().map(AsRef::as_ref));
    }
    let params = [Param::Texts(&tenants), Param::Texts(&job_types), Param::MaybeTexts(&keys)];
    let mut known = HashMap::new();
    for row in runner.run(&FIND_IDEMPOTENCY_KEYS, &params).await? {
        let n: i64 = row.get("n")?;
        let i = positions[usize::try_from(n - 1).unwrap_or(0)];
        let fingerprint = row.get::<Option<Uuid>>("fingerprint")?.map(|stored| Fingerprint(stored.as_u128()));
        // Pruning keeps the state of dead and cancelled jobs; a job without one completed before it was pruned.
        let state = row.get::<Option<String>>("state")?.as_deref().map_or(Ok(JobState::Completed), state)?;
        known.insert(i, KnownKey { job: JobId::from_uuid(row.get("job_id")?), fingerprint, state });
    }
    Ok(known)
}

/// Enqueues all of `jobs` or none.
pub(crate) async fn enqueue_jobs(store: &PostgresStore, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
    let parents = check_jobs(jobs)?;
    if is_plain(jobs) {
        return enqueue_plain(store, jobs).await;
    }
    enqueue_in_transaction(store, Call { jobs, parents: &parents, shape: CallShape::Batch }).await
}

/// Enqueues one job that depends on others.
pub(crate) async fn enqueue_job(store: &PostgresStore, job: &NewJob, parents: Parents) -> Result<Enqueued> {
    let call = Call { jobs: std::slice::from_ref(job), parents: &[parents], shape: CallShape::Single };
    let inserted = enqueue_in_transaction(store, call).await?;
    inserted.first().copied().ok_or_else(not_inserted)
}

fn not_inserted() -> StoreError {
    StoreError::Backend("the database did not return a new job".into())
}

/// The error of a call that lost [`KEY_RACES`] races for its keys.
pub(crate) fn keys_contended() -> StoreError {
    StoreError::Unavailable("other transactions keep taking the idempotency keys of this call: retry".into())
}

async fn enqueue_in_transaction(store: &PostgresStore, call: Call<'_>) -> Result<Vec<Enqueued>> {
    let connection = store.database().connection().await?;
    for _ in 0..KEY_RACES {
        let (runner, options) = (&mut &connection, &store.database().options);
        let inserted = connection.attempt(enqueue_call(runner, options, call)).await?;
        if let Some(mut inserted) = inserted {
            drop(connection);
            store.publish(Fence::NONE, Effects::of_enqueued(call.jobs.iter().zip(&inserted))).await;
            // Publishing cancels the dependents of a job that was cancelled at once because a parent had failed.
            if inserted.iter().any(|job| job.state == JobState::Cancelled && !job.duplicate) {
                let ids: Vec<Uuid> = inserted.iter().map(|job| job.id.as_uuid()).collect();
                for row in store.database().query(&JOB_STATES, &[&ids]).await? {
                    let (id, now) = (row.get::<_, Uuid>("id"), state(row.get("state"))?);
                    inserted.iter_mut().filter(|job| job.id.as_uuid() == id).for_each(|job| job.state = now);
                }
            }
            return Ok(inserted);
        }
    }
    Err(keys_contended())
}

// Nothing to look up: one statement, which is a transaction by itself.
async fn enqueue_plain(store: &PostgresStore, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let database = store.database();
    let (ids, columns) = plain_columns(database, jobs);
    let inserted = columns.insert(database).await?.map_err(store_error)?;
    let enqueued = |id: JobId| {
        let state = inserted.get(&id.as_uuid()).ok_or_else(not_inserted)?;
        Ok(Enqueued { id, state: *state, duplicate: false })
    };
    let enqueued = ids.into_iter().map(enqueued).collect::<Result<Vec<_>>>()?;
    store.publish(Fence::NONE, Effects::of_enqueued(jobs.iter().zip(&enqueued))).await;
    Ok(enqueued)
}

/// Enqueues a call with keys or parents in the runner's transaction.
///
/// Existing parents are locked, so that none finishes between the lookup and the commit.
/// Returns `None` if another transaction took one of the keys meanwhile: the caller rolls back and may start over.
pub(crate) async fn enqueue_call(
    runner: &mut dyn Runner,
    options: &PostgresOptions,
    call: Call<'_>,
) -> Result<Option<Vec<Enqueued>>> {
    let ids: Vec<JobId> = call.jobs.iter().map(|_| options.ids.next()).collect();
    let keyed: Vec<usize> = (0..ids.len()).filter(|i| call.jobs[*i].idempotency_key.is_some()).collect();
    let keys = find_keys(runner, call.jobs, &keyed).await?;
    let plan = call.resolve_keys(ids, &keys)?;
    let known = find_parents(runner, plan.existing_parents(), &plan.tenants()).await?;
    let plan = plan.resolve_parents(&known)?;

    let mut columns = Columns::default();
    let (mut children, mut parents, mut met) = (Vec::new(), Vec::new(), Vec::new());
    for (i, job) in plan.new_jobs() {
        columns.push(job.id, &call.jobs[i], job.links, options.inline_payload);
        for dependency in &job.dependencies {
            children.push(job.id.as_uuid());
            parents.push(dependency.parent.as_uuid());
            met.push(dependency.met);
        }
    }
    let mut states = columns.insert_in(runner).await?;
    if plan.new_jobs().any(|(_, job)| !states.contains_key(&job.id.as_uuid())) {
        return Ok(None);
    }
    if !children.is_empty() {
        let params = [Param::Uuids(&children), Param::Uuids(&parents), Param::Bools(&met)];
        runner.run(&INSERT_DEPENDENCIES, &params).await?;
    }
    let mut cancelled = Vec::new();
    for id in plan.cancelled() {
        if let Some(state) = states.insert(id.as_uuid(), JobState::Cancelled) {
            cancelled.push(GuardedTransition::cancel_waiting(id, state, 0, 0, 0, "dependency_failed"));
        }
    }
    if !cancelled.is_empty() {
        settle_in(runner, &cancelled).await?;
    }
    let answers = plan.answers(|id| states.get(&id.as_uuid()).copied());
    answers.ok_or_else(not_inserted).map(Some)
}

// Locks the unfinished parents and looks up the finished ones. Runs twice, since an operator may retry a finished one
// in between. Parents of tenants other than `tenants` are neither found nor waited for.
async fn find_parents(
    runner: &mut dyn Runner,
    ids: &BTreeSet<JobId>,
    tenants: &BTreeSet<&Tenant>,
) -> Result<HashMap<JobId, KnownParent>> {
    let tenants: Vec<&str> = tenants.iter().map(|tenant| tenant.as_str()).collect();
    let mut found = HashMap::new();
    for _ in 0..2 {
        let missing: Vec<Uuid> = ids.iter().filter(|id| !found.contains_key(*id)).map(JobId::as_uuid).collect();
        if missing.is_empty() {
            break;
        }
        let params = [Param::Uuids(&missing), Param::Texts(&tenants)];
        for row in runner.run(&LOCK_PARENTS, &params).await? {
            let tenant = Tenant::trusted(&row.get::<String>("tenant")?);
            found.insert(JobId::from_uuid(row.get("id")?), KnownParent { state: ParentState::Unfinished, tenant });
        }
        for row in runner.run(&FIND_FINISHED_PARENTS, &params).await? {
            let (tenant, state) =
                (Tenant::trusted(&row.get::<String>("tenant")?), state(&row.get::<String>("state")?)?);
            found.insert(JobId::from_uuid(row.get("id")?), KnownParent { state: state.into(), tenant });
        }
    }
    Ok(found)
}
