//! Recording jobs: first everything that could refuse the call, then the writing.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, hash_map::Entry};

use orchestrix_core::{
    FieldError, Fingerprint, Invalid, JobId, JobState, NewJob, OnDependencyFailure, Tenant,
    graph::{self, Parents},
};
use orchestrix_store::{Enqueued, StoreError, enqueue::check_alone};
use rusqlite::params;
use uuid::Uuid;

use crate::{
    error::{Result, corrupt},
    record::Links,
    row::{Columns, Found},
    session::Transaction,
    statement::{FIND_KEY, MARK_PARENT, PARENT, RECORD_DEPENDENCY},
};

/// The most bytes of payload one call may record.
pub(crate) const MAX_CALL_BYTES: usize = 256 * 1024 * 1024;

/// What one job of a call comes to.
struct Planned {
    id: JobId,
    /// Where it stands, once that is known.
    state: Option<JobState>,
    /// Whether its key stands for another job, known before or earlier in the same call.
    duplicate: bool,
    fingerprint: Option<Uuid>,
}

impl Planned {
    fn fresh(id: JobId, fingerprint: Option<Uuid>) -> Self {
        Self { id, state: None, duplicate: false, fingerprint }
    }
}

/// What is known of a job that others wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parent {
    Waiting,
    Completed,
    Failed,
}

/// What was checked before the writer was asked.
pub(crate) struct Checked {
    jobs: Vec<NewJob>,
    graph: Vec<Parents>,
    alone: bool,
}

/// Checks a job that comes by itself.
pub(crate) fn check_one(job: NewJob) -> Result<Checked, StoreError> {
    let parents = check_alone(&job)?;
    Ok(Checked { jobs: vec![job], graph: vec![parents], alone: true })
}

/// Checks jobs that come together.
pub(crate) fn check_many(jobs: Vec<NewJob>) -> Result<Checked, StoreError> {
    let graph = graph::resolve(&jobs)?;
    if jobs.iter().map(|job| job.payload.as_str().len()).sum::<usize>() > MAX_CALL_BYTES {
        return Err(FieldError::new("jobs", format!("hold more than {MAX_CALL_BYTES} bytes of payload")).into());
    }
    Ok(Checked { jobs, graph, alone: false })
}

impl Checked {
    fn field(&self, i: usize) -> String {
        if self.alone { "dependsOn".into() } else { format!("jobs[{i}].dependsOn") }
    }
}

impl Transaction<'_> {
    // Keys come before parents: a repeat is answered with the first job even when what that one waited for is gone.
    pub(crate) fn enqueue(&mut self, call: &Checked) -> Result<Vec<Enqueued>> {
        let mut plan = self.plan(&call.jobs)?;
        let parents = parents(&plan, &call.graph);
        let standing = self.standing(call, &plan, &parents)?;
        let depended_on: HashSet<JobId> = parents.values().flatten().copied().collect();
        let mut doomed = Vec::new();
        for (i, job) in call.jobs.iter().enumerate() {
            if plan[i].duplicate {
                continue;
            }
            let id = plan[i].id;
            let of = |id: &JobId| standing.get(id).copied().unwrap_or(Parent::Waiting);
            let failed = parents[&i].iter().any(|parent| of(parent) == Parent::Failed);
            let links = Links {
                waits_for: parents[&i].iter().filter(|parent| of(parent) == Parent::Waiting).count(),
                has_parents: !parents[&i].is_empty(),
                has_dependents: depended_on.contains(&id),
                held: failed && job.on_dependency_failure == OnDependencyFailure::Hold,
            };
            plan[i].state = Some(self.record(id, job, plan[i].fingerprint, links)?);
            for parent in &parents[&i] {
                let met = of(parent) != Parent::Waiting;
                self.write_one(RECORD_DEPENDENCY, params![id.as_uuid(), parent.as_uuid(), met])?;
            }
            if failed && job.on_dependency_failure == OnDependencyFailure::Cancel {
                doomed.push(id);
            }
        }
        for parent in standing.iter().filter(|(_, standing)| **standing == Parent::Waiting).map(|(id, _)| id) {
            self.write_one(MARK_PARENT, [parent.as_uuid()])?;
        }
        if !doomed.is_empty() {
            for id in doomed {
                self.give_up(&Found::expect(self, id)?, "dependency_failed")?;
            }
            self.tell_now()?;
            // Whoever was just recorded may have been cancelled again.
            plan.iter_mut().filter(|planned| !planned.duplicate).for_each(|planned| planned.state = None);
        }
        plan.iter().map(|planned| self.enqueued(planned)).collect()
    }

    fn enqueued(&self, planned: &Planned) -> Result<Enqueued> {
        let state = match planned.state {
            Some(state) => state,
            None => Found::expect(self, planned.id)?.lifecycle.state,
        };
        Ok(Enqueued { id: planned.id, state, duplicate: planned.duplicate })
    }

    fn plan(&mut self, jobs: &[NewJob]) -> Result<Vec<Planned>> {
        let mut inside = HashMap::new();
        let mut plan = Vec::with_capacity(jobs.len());
        for job in jobs {
            let Some(key) = &job.idempotency_key else {
                plan.push(Planned::fresh(self.new_id(), None));
                continue;
            };
            let fingerprint = Uuid::from_u128(Fingerprint::of(job).0);
            let key = (job.tenant.as_str(), job.job_type.as_str(), key.as_str());
            let known = self.first(FIND_KEY, key, |row| {
                let row = Columns(row);
                // A job that is nowhere has been pruned, and left word of how it ended.
                let state = row.text_or_null(2)?.ok_or_else(|| corrupt("key", "its job is nowhere"))?;
                Ok((row.id(0)?, row.get::<Uuid>(1)?, crate::row::state(state)?))
            })?;
            let (id, same, known) = match (known, inside.entry(key)) {
                (Some((id, same, state)), _) => (id, same, Some(state)),
                (None, Entry::Occupied(first)) => {
                    let (id, same) = *first.get();
                    (id, same, None)
                }
                (None, Entry::Vacant(vacant)) => {
                    let id = self.new_id();
                    vacant.insert((id, fingerprint));
                    plan.push(Planned::fresh(id, Some(fingerprint)));
                    continue;
                }
            };
            if same != fingerprint {
                return Err(StoreError::IdempotencyKeyReused { existing: id }.into());
            }
            plan.push(Planned { id, state: known, duplicate: true, fingerprint: None });
        }
        Ok(plan)
    }

    /// How the parents stand that are not recorded by this call. Refuses those that the tenant of the job does not know.
    fn standing(
        &self,
        call: &Checked,
        plan: &[Planned],
        parents: &BTreeMap<usize, BTreeSet<JobId>>,
    ) -> Result<HashMap<JobId, Parent>> {
        let fresh: HashSet<JobId> =
            plan.iter().filter(|planned| !planned.duplicate).map(|planned| planned.id).collect();
        let mut found: HashMap<JobId, Option<(Parent, Tenant)>> = HashMap::new();
        let mut errors = Vec::new();
        for (i, ids) in parents {
            for id in ids.iter().filter(|id| !fresh.contains(id)) {
                let parent = match found.entry(*id) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(vacant) => vacant.insert(self.parent(*id)?),
                };
                if parent.as_ref().is_none_or(|(_, tenant)| *tenant != call.jobs[*i].tenant) {
                    errors.push(FieldError::new(call.field(*i), format!("there is no job {id}")));
                }
            }
        }
        Invalid::check(errors)?;
        Ok(found.into_iter().filter_map(|(id, found)| found.map(|(parent, _)| (id, parent))).collect())
    }

    // How a job stands that others wait for, and whose it is.
    fn parent(&self, id: JobId) -> Result<Option<(Parent, Tenant)>> {
        self.first(PARENT, [id.as_uuid()], |row| {
            let row = Columns(row);
            let parent = match row.state(0)? {
                JobState::Completed => Parent::Completed,
                state if state.is_terminal() => Parent::Failed,
                _ => Parent::Waiting,
            };
            Ok((parent, Tenant::trusted(row.text(1)?)))
        })
    }
}

/// The ids that each job to be recorded waits for.
fn parents(plan: &[Planned], graph: &[Parents]) -> BTreeMap<usize, BTreeSet<JobId>> {
    let fresh = (0..plan.len()).filter(|i| !plan[*i].duplicate);
    fresh
        .map(|i| {
            let inside = graph[i].inside.iter().map(|position| plan[*position].id);
            (i, inside.chain(graph[i].outside.iter().copied()).collect())
        })
        .collect()
}
