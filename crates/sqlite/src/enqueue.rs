//! Enqueue: first everything that can refuse the call, then the writes.

use std::collections::{BTreeSet, HashMap};

use orchestrix_core::{
    Fingerprint, JobId, NewJob, Tenant,
    enqueue::{Call, CallShape, KnownKey, KnownParent, Links, ParentState, Parents, check_job, check_jobs, is_plain},
};
use orchestrix_store::{Enqueued, StoreError};
use rusqlite::params;
use uuid::Uuid;

use crate::{
    columns::{Columns, columns},
    error::{Result, corrupt},
    row::JobRow,
    session::Transaction,
    statement::{FIND_IDEMPOTENCY_KEY, FIND_PARENT, INSERT_DEPENDENCY, MARK_PARENT},
};

columns! {
    mod key_columns of FIND_IDEMPOTENCY_KEY { job_id, fingerprint, state }
}
columns! {
    mod parent_columns of FIND_PARENT { state, tenant }
}

/// A call that was checked before the writer runs it.
pub(crate) struct Checked {
    jobs: Vec<NewJob>,
    parents: Vec<Parents>,
    shape: CallShape,
}

/// Checks a call that enqueues one job.
pub(crate) fn check_one(job: NewJob) -> Result<Checked, StoreError> {
    let parents = check_job(&job)?;
    Ok(Checked { jobs: vec![job], parents: vec![parents], shape: CallShape::Single })
}

/// Checks a call that enqueues several jobs.
pub(crate) fn check_many(jobs: Vec<NewJob>) -> Result<Checked, StoreError> {
    let parents = check_jobs(&jobs)?;
    Ok(Checked { jobs, parents, shape: CallShape::Batch })
}

impl Transaction<'_> {
    /// Enqueues all jobs of a call, or none.
    pub(crate) fn enqueue(&mut self, call: &Checked) -> Result<Vec<Enqueued>> {
        if is_plain(&call.jobs) {
            return call.jobs.iter().map(|job| self.enqueue_plain(job)).collect();
        }
        let ids = call.jobs.iter().map(|_| self.new_id()).collect();
        let keys = self.find_keys(&call.jobs)?;
        let plan = Call { jobs: &call.jobs, parents: &call.parents, shape: call.shape };
        let plan = plan.resolve_keys(ids, &keys).map_err(StoreError::from)?;
        let parents = self.find_parents(plan.existing_parents())?;
        let plan = plan.resolve_parents(&parents)?;

        let mut states = HashMap::new();
        for (i, job) in plan.new_jobs() {
            states.insert(job.id, self.record(job.id, &call.jobs[i], job.links)?);
            for dependency in &job.dependencies {
                let row = params![job.id.as_uuid(), dependency.parent.as_uuid(), dependency.met];
                self.write_one(INSERT_DEPENDENCY, row)?;
            }
        }
        for (id, _) in parents.iter().filter(|(_, parent)| parent.state == ParentState::Unfinished) {
            self.write_one(MARK_PARENT, [id.as_uuid()])?;
        }
        if plan.cancelled().next().is_some() {
            for id in plan.cancelled() {
                self.cancel_unleased(&JobRow::require(self, id)?, "dependency_failed")?;
            }
            self.resolve_pending_dependents()?;
            // Any new job may depend on one that was just cancelled.
            for (id, state) in &mut states {
                *state = JobRow::require(self, *id)?.lifecycle.state;
            }
        }
        let answers = plan.answers(|id| states.get(&id).copied());
        answers.ok_or_else(|| StoreError::Backend("a new job was not written".into()).into())
    }

    fn enqueue_plain(&mut self, job: &NewJob) -> Result<Enqueued> {
        let id = self.new_id();
        let state = self.record(id, job, Links::default())?;
        Ok(Enqueued { id, state, duplicate: false })
    }

    // The known keys of the jobs, by position.
    fn find_keys(&self, jobs: &[NewJob]) -> Result<HashMap<usize, KnownKey>> {
        let mut known = HashMap::new();
        for (i, job) in jobs.iter().enumerate() {
            let Some(key) = &job.idempotency_key else { continue };
            let key = self.find_key((job.tenant.as_str(), job.job_type.as_str(), key.as_str()))?;
            known.extend(key.map(|key| (i, key)));
        }
        Ok(known)
    }

    fn find_key(&self, key: (&str, &str, &str)) -> Result<Option<KnownKey>> {
        self.first(FIND_IDEMPOTENCY_KEY, key, |row| {
            let row = Columns(row);
            // Pruning a job keeps its last state, so every key has one.
            let state = row.text_or_null(key_columns::state)?.ok_or_else(|| corrupt("key", "its job has no state"))?;
            let fingerprint = Some(Fingerprint(row.get::<Uuid>(key_columns::fingerprint)?.as_u128()));
            Ok(KnownKey { job: row.id(key_columns::job_id)?, fingerprint, state: crate::row::state(state)? })
        })
    }

    fn find_parents(&self, ids: &BTreeSet<JobId>) -> Result<HashMap<JobId, KnownParent>> {
        let mut found = HashMap::new();
        for id in ids {
            let parent = self.first(FIND_PARENT, [id.as_uuid()], |row| {
                let row = Columns(row);
                let tenant = Tenant::trusted(row.text(parent_columns::tenant)?);
                Ok(KnownParent { state: row.state(parent_columns::state)?.into(), tenant })
            })?;
            found.extend(parent.map(|parent| (*id, parent)));
        }
        Ok(found)
    }
}
