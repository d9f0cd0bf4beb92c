//! The plan of a call with idempotency keys or parents.

use std::collections::{BTreeSet, HashMap, HashSet, hash_map::Entry};

use thiserror::Error;

use super::{CallShape, Parents};
use crate::{FieldError, Fingerprint, Invalid, JobId, JobState, NewJob, OnDependencyFailure, Tenant};

/// A job that is durably stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enqueued {
    /// The job's id. For a duplicate, the id of the first job with its idempotency key.
    pub id: JobId,
    /// The job's current state.
    pub state: JobState,
    /// Whether the idempotency key was known and nothing new was stored.
    pub duplicate: bool,
}

/// The idempotency key already belongs to a different request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the idempotency key was used for a different request, job {existing}")]
pub struct KeyReused {
    /// The job that the key belongs to.
    pub existing: JobId,
}

/// An idempotency key that the store has seen before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownKey {
    /// The job that the key belongs to.
    pub job: JobId,
    /// The fingerprint of its request. `None` for a job that was inserted by SQL: any request counts as the same.
    pub fingerprint: Option<Fingerprint>,
    /// The job's state, or the state it had when it was pruned.
    pub state: JobState,
}

impl KnownKey {
    /// The answer to `request`, which has this key.
    pub fn duplicate(&self, request: &NewJob) -> Result<Enqueued, KeyReused> {
        if self.fingerprint.is_some_and(|known| known != Fingerprint::of(request)) {
            return Err(KeyReused { existing: self.job });
        }
        Ok(Enqueued { id: self.job, state: self.state, duplicate: true })
    }
}

/// Whether a parent has finished, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParentState {
    /// It has not finished; its children wait for it.
    Unfinished,
    /// It completed.
    Completed,
    /// It died or was cancelled, which is for [`NewJob::on_dependency_failure`] to handle.
    Failed,
}

impl From<JobState> for ParentState {
    fn from(state: JobState) -> Self {
        match state {
            JobState::Completed => Self::Completed,
            state if state.is_terminal() => Self::Failed,
            _ => Self::Unfinished,
        }
    }
}

/// An existing job that jobs of the call depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownParent {
    /// Whether it has finished.
    pub state: ParentState,
    /// Its tenant. For jobs of other tenants it does not exist.
    pub tenant: Tenant,
}

/// What the row of a new job says about its dependencies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Links {
    /// The number of unfinished parents.
    pub waits_for: usize,
    /// Whether the job has parents at all, finished or not.
    pub has_parents: bool,
    /// Whether jobs of the same call wait for this one.
    pub has_dependents: bool,
    /// Whether a parent failed and the job's policy is [`OnDependencyFailure::Hold`].
    pub held: bool,
}

/// A parent of a new job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dependency {
    /// The parent.
    pub parent: JobId,
    /// Whether the parent has finished, so that the job does not wait for it.
    pub met: bool,
}

/// A new job to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedNewJob {
    /// Its id.
    pub id: JobId,
    /// The dependency columns of its row.
    pub links: Links,
    /// Its parents, in the order of their ids.
    pub dependencies: Vec<Dependency>,
    /// Cancel it right after it is written: a parent failed and the job's policy is [`OnDependencyFailure::Cancel`].
    pub cancel: bool,
}

/// What becomes of one job of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedJob {
    /// The store writes it.
    New(PlannedNewJob),
    /// Its key was known before the call; this is its answer.
    Duplicate(Enqueued),
    /// It repeats the job at an earlier position of the same call.
    Repeat {
        /// That position.
        of: usize,
    },
}

/// A checked call: jobs, and the parents that [`check_job`](super::check_job) or [`check_jobs`](super::check_jobs)
/// resolved for each.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The jobs.
    pub jobs: &'a [NewJob],
    /// The parents of each job.
    pub parents: &'a [Parents],
    /// How errors name the jobs' fields.
    pub shape: CallShape,
}

#[derive(Debug, Clone, Copy)]
enum KeyResolution {
    New,
    Duplicate(Enqueued),
    Repeat { of: usize },
}

impl<'a> Call<'a> {
    /// Separates duplicates from new jobs. `ids` holds a fresh id for each job, `known` the known keys by position.
    ///
    /// Jobs are resolved in order, so of several reused keys the error names the first.
    pub fn resolve_keys(self, mut ids: Vec<JobId>, known: &HashMap<usize, KnownKey>) -> Result<KeyPlan<'a>, KeyReused> {
        let mut first_with_key = HashMap::new();
        let mut resolutions = Vec::with_capacity(self.jobs.len());
        for (i, job) in self.jobs.iter().enumerate() {
            let resolution = match (&job.idempotency_key, known.get(&i)) {
                (None, _) => KeyResolution::New,
                (Some(_), Some(known)) => KeyResolution::Duplicate(known.duplicate(job)?),
                (Some(key), None) => match first_with_key.entry((&job.tenant, &job.job_type, key)) {
                    Entry::Vacant(vacant) => {
                        vacant.insert(i);
                        KeyResolution::New
                    }
                    Entry::Occupied(first) => {
                        let of = *first.get();
                        if Fingerprint::of(&self.jobs[of]) != Fingerprint::of(job) {
                            return Err(KeyReused { existing: ids[of] });
                        }
                        KeyResolution::Repeat { of }
                    }
                },
            };
            match resolution {
                KeyResolution::New => {}
                KeyResolution::Duplicate(first) => ids[i] = first.id,
                KeyResolution::Repeat { of } => ids[i] = ids[of],
            }
            resolutions.push(resolution);
        }
        Ok(KeyPlan::new(self, ids, resolutions))
    }
}

/// A call whose keys are resolved and whose parents are not.
#[derive(Debug)]
pub struct KeyPlan<'a> {
    call: Call<'a>,
    ids: Vec<JobId>,
    resolutions: Vec<KeyResolution>,
    new_ids: HashSet<JobId>,
    /// The parents of each new job.
    parents: Vec<BTreeSet<JobId>>,
    existing_parents: BTreeSet<JobId>,
}

impl<'a> KeyPlan<'a> {
    fn new(call: Call<'a>, ids: Vec<JobId>, resolutions: Vec<KeyResolution>) -> Self {
        let is_new = |i: &usize| matches!(resolutions[*i], KeyResolution::New);
        let new_ids: HashSet<JobId> = (0..ids.len()).filter(is_new).map(|i| ids[i]).collect();
        let mut parents = vec![BTreeSet::new(); ids.len()];
        let mut existing_parents = BTreeSet::new();
        for i in (0..ids.len()).filter(is_new) {
            let in_call = call.parents[i].in_call.iter().map(|position| ids[*position]);
            parents[i].extend(in_call.chain(call.parents[i].existing.iter().copied()));
            existing_parents.extend(parents[i].iter().copied().filter(|id| !new_ids.contains(id)));
        }
        Self { call, ids, resolutions, new_ids, parents, existing_parents }
    }

    /// The parents that the call does not create itself. The store looks them up.
    pub fn existing_parents(&self) -> &BTreeSet<JobId> {
        &self.existing_parents
    }

    /// The tenants of the new jobs: parents of other tenants need not be looked up.
    pub fn tenants(&self) -> BTreeSet<&'a Tenant> {
        let jobs = self.call.jobs.iter().zip(&self.resolutions);
        jobs.filter(|(_, resolution)| matches!(resolution, KeyResolution::New)).map(|(job, _)| &job.tenant).collect()
    }

    /// Links the new jobs to their parents, given those of [`existing_parents`](KeyPlan::existing_parents) that exist.
    ///
    /// A parent that does not exist, or belongs to another tenant than the job, is refused. The error names each one.
    pub fn resolve_parents(self, known: &HashMap<JobId, KnownParent>) -> Result<EnqueuePlan, Invalid> {
        let depended_on: HashSet<JobId> = self.parents.iter().flatten().copied().collect();
        let mut errors = Vec::new();
        let mut jobs = Vec::with_capacity(self.ids.len());
        for (i, resolution) in self.resolutions.iter().enumerate() {
            let (id, job) = (self.ids[i], &self.call.jobs[i]);
            match *resolution {
                KeyResolution::Duplicate(first) => jobs.push(PlannedJob::Duplicate(first)),
                KeyResolution::Repeat { of } => jobs.push(PlannedJob::Repeat { of }),
                KeyResolution::New => {
                    let mut links = Links { has_dependents: depended_on.contains(&id), ..Links::default() };
                    let mut dependencies = Vec::with_capacity(self.parents[i].len());
                    let mut failed = false;
                    for parent in self.parents[i].iter().copied() {
                        let state = match known.get(&parent).filter(|known| known.tenant == job.tenant) {
                            _ if self.new_ids.contains(&parent) => ParentState::Unfinished,
                            Some(known) => known.state,
                            None => {
                                let field = self.call.shape.depends_on(i);
                                errors.push(FieldError::new(field, format!("there is no job {parent}")));
                                continue;
                            }
                        };
                        let met = state != ParentState::Unfinished;
                        dependencies.push(Dependency { parent, met });
                        links.has_parents = true;
                        links.waits_for += usize::from(!met);
                        failed |= state == ParentState::Failed;
                    }
                    links.held = failed && job.on_dependency_failure == OnDependencyFailure::Hold;
                    let cancel = failed && job.on_dependency_failure == OnDependencyFailure::Cancel;
                    jobs.push(PlannedJob::New(PlannedNewJob { id, links, dependencies, cancel }));
                }
            }
        }
        Invalid::check(errors)?;
        Ok(EnqueuePlan { jobs })
    }
}

/// What a store writes for a call, and what it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnqueuePlan {
    jobs: Vec<PlannedJob>,
}

impl EnqueuePlan {
    /// One entry per job of the call, in order.
    pub fn jobs(&self) -> &[PlannedJob] {
        &self.jobs
    }

    /// The jobs to write, each with its position in the call.
    pub fn new_jobs(&self) -> impl Iterator<Item = (usize, &PlannedNewJob)> {
        self.jobs.iter().enumerate().filter_map(|(i, job)| match job {
            PlannedJob::New(job) => Some((i, job)),
            PlannedJob::Duplicate(_) | PlannedJob::Repeat { .. } => None,
        })
    }

    /// The ids of new jobs to cancel right after they are written, because a parent has already failed.
    pub fn cancelled(&self) -> impl Iterator<Item = JobId> {
        self.new_jobs().filter(|(_, job)| job.cancel).map(|(_, job)| job.id)
    }

    /// The answer for each job, given the states of the new ones. `None` if a new job has no state: it was not
    /// written.
    pub fn answers(&self, state: impl Fn(JobId) -> Option<JobState>) -> Option<Vec<Enqueued>> {
        let mut answers: Vec<Enqueued> = Vec::with_capacity(self.jobs.len());
        for job in &self.jobs {
            answers.push(match job {
                PlannedJob::New(new) => Enqueued { id: new.id, state: state(new.id)?, duplicate: false },
                PlannedJob::Duplicate(first) => *first,
                // A repeat comes after the job that it repeats.
                PlannedJob::Repeat { of } => Enqueued { duplicate: true, ..*answers.get(*of)? },
            });
        }
        Some(answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        DependsOn, IdempotencyKey, JobType, Json, Timestamp,
        enqueue::{check_job, check_jobs},
    };

    fn id(n: u8) -> JobId {
        JobId::new(Timestamp::UNIX_EPOCH, [n; 10])
    }

    fn job() -> NewJob {
        NewJob::new(JobType::trusted("t"))
    }

    fn keyed(key: &str, payload: &str) -> NewJob {
        let payload = Json::trusted(payload);
        NewJob { idempotency_key: Some(IdempotencyKey::trusted(key)), payload, ..job() }
    }

    fn after(parents: &[JobId]) -> NewJob {
        NewJob { depends_on: parents.iter().copied().map(DependsOn::Job).collect(), ..job() }
    }

    fn named(reference: &str, job: NewJob) -> NewJob {
        NewJob { reference: Some(reference.into()), ..job }
    }

    fn refers_to(references: &[&str]) -> NewJob {
        NewJob { depends_on: references.iter().map(|name| DependsOn::Reference((*name).into())).collect(), ..job() }
    }

    fn known(job: u8, request: &NewJob) -> KnownKey {
        KnownKey { job: id(job), fingerprint: Some(Fingerprint::of(request)), state: JobState::Running }
    }

    fn parent(state: ParentState) -> KnownParent {
        KnownParent { state, tenant: Tenant::default() }
    }

    // New jobs get the ids 100, 101, ...
    fn plan(
        jobs: &[NewJob],
        keys: &[(usize, KnownKey)],
        parents: &[(JobId, KnownParent)],
    ) -> Result<EnqueuePlan, String> {
        let resolved = check_jobs(jobs).expect("a valid call");
        let ids = (100..).take(jobs.len()).map(id).collect();
        let keys = keys.iter().copied().collect();
        let plan = Call { jobs, parents: &resolved, shape: CallShape::Batch }
            .resolve_keys(ids, &keys)
            .map_err(|error| error.to_string())?;
        plan.resolve_parents(&parents.iter().cloned().collect()).map_err(|error| error.to_string())
    }

    fn links(plan: &EnqueuePlan) -> Vec<Links> {
        plan.new_jobs().map(|(_, job)| job.links).collect()
    }

    #[test]
    fn a_known_key_with_the_same_request_is_a_duplicate() {
        let jobs = [keyed("a", "1"), keyed("b", "2")];
        let plan = plan(&jobs, &[(0, known(1, &jobs[0]))], &[]).expect("a plan");
        let first = Enqueued { id: id(1), state: JobState::Running, duplicate: true };
        assert_eq!(plan.jobs()[0], PlannedJob::Duplicate(first));
        assert_eq!(plan.new_jobs().map(|(i, job)| (i, job.id)).collect::<Vec<_>>(), [(1, id(101))]);
    }

    #[test]
    fn a_known_key_with_a_different_request_is_refused() {
        let refused = plan(&[keyed("a", "1")], &[(0, known(1, &keyed("a", "2")))], &[]).expect_err("reused");
        assert_eq!(refused, format!("the idempotency key was used for a different request, job {}", id(1)));
    }

    #[test]
    fn of_several_reused_keys_the_first_is_named() {
        let jobs = [job(), keyed("a", "1"), keyed("b", "1")];
        let other = keyed("x", "2");
        let refused = plan(&jobs, &[(2, known(2, &other)), (1, known(1, &other))], &[]).expect_err("reused");
        assert!(refused.ends_with(&id(1).to_string()), "{refused}");
    }

    #[test]
    fn a_known_key_without_a_fingerprint_is_a_duplicate_of_any_request() {
        let key = KnownKey { job: id(1), fingerprint: None, state: JobState::Completed };
        let plan = plan(&[keyed("a", "1")], &[(0, key)], &[]).expect("a plan");
        assert_eq!(plan.new_jobs().count(), 0);
    }

    #[test]
    fn a_key_repeated_in_one_call_is_one_job() {
        let jobs = [keyed("a", r#"{"x": 1}"#), keyed("a", r#"{"x":1}"#)];
        let plan = plan(&jobs, &[], &[]).expect("a plan");
        assert_eq!(plan.jobs()[1], PlannedJob::Repeat { of: 0 });
        let answers = plan.answers(|_| Some(JobState::Pending)).expect("written");
        assert_eq!(
            answers.iter().map(|job| (job.id, job.duplicate)).collect::<Vec<_>>(),
            [(id(100), false), (id(100), true)]
        );
    }

    #[test]
    fn a_key_reused_within_one_call_is_refused() {
        let refused = plan(&[keyed("a", "1"), keyed("a", "2")], &[], &[]).expect_err("reused");
        assert!(refused.ends_with(&id(100).to_string()), "{refused}");
    }

    #[test]
    fn the_same_key_of_another_tenant_or_type_is_another_key() {
        let tenant = NewJob { tenant: Tenant::trusted("acme"), ..keyed("a", "2") };
        let job_type = NewJob { job_type: JobType::trusted("u"), ..keyed("a", "3") };
        let plan = plan(&[keyed("a", "1"), tenant, job_type], &[], &[]).expect("a plan");
        assert_eq!(plan.new_jobs().count(), 3);
    }

    #[test]
    fn an_unknown_parent_is_refused_by_its_field() {
        let refused = plan(&[job(), after(&[id(1), id(2)])], &[], &[]).expect_err("unknown");
        let expected = [1, 2].map(|n| format!("jobs[1].dependsOn: there is no job {}", id(n))).join("; ");
        assert_eq!(refused, expected);
        let single = after(&[id(1)]);
        let parents = [check_job(&single).expect("valid")];
        let call = Call { jobs: std::slice::from_ref(&single), parents: &parents, shape: CallShape::Single };
        let plan = call.resolve_keys(vec![id(100)], &HashMap::new()).expect("no keys");
        let refused = plan.resolve_parents(&HashMap::new()).expect_err("unknown");
        assert_eq!(refused.to_string(), format!("dependsOn: there is no job {}", id(1)));
    }

    #[test]
    fn a_parent_of_another_tenant_is_refused_as_unknown() {
        let theirs = KnownParent { tenant: Tenant::trusted("acme"), ..parent(ParentState::Unfinished) };
        let refused = plan(&[after(&[id(1)])], &[], &[(id(1), theirs)]).expect_err("unknown");
        assert_eq!(refused, format!("jobs[0].dependsOn: there is no job {}", id(1)));
    }

    #[test]
    fn a_duplicate_is_answered_although_its_parents_are_gone() {
        let request = NewJob { idempotency_key: Some(IdempotencyKey::trusted("a")), ..after(&[id(9)]) };
        let plan = plan(std::slice::from_ref(&request), &[(0, known(1, &request))], &[]).expect("a plan");
        assert_eq!(plan.new_jobs().count(), 0);
    }

    #[test]
    fn only_parents_that_the_call_does_not_create_are_looked_up() {
        let theirs = NewJob { tenant: Tenant::trusted("acme"), ..keyed("a", "1") };
        let jobs = [
            named("a", job()),
            NewJob { depends_on: vec![DependsOn::Reference("a".into()), DependsOn::Job(id(7))], ..job() },
            theirs,
        ];
        let parents = check_jobs(&jobs).expect("valid");
        let ids = (100..103).map(id).collect();
        let keys = HashMap::from([(2, known(1, &jobs[2]))]);
        let plan = Call { jobs: &jobs, parents: &parents, shape: CallShape::Batch }.resolve_keys(ids, &keys);
        let plan = plan.expect("no reused key");
        assert_eq!(plan.existing_parents().iter().copied().collect::<Vec<_>>(), [id(7)]);
        assert_eq!(plan.tenants(), BTreeSet::from([&Tenant::default()]), "a duplicate links to nothing");
    }

    #[test]
    fn a_reference_to_a_duplicate_means_the_first_job() {
        let jobs = [named("a", keyed("a", "1")), refers_to(&["a"])];
        let completed = (id(1), parent(ParentState::Completed));
        let plan = plan(&jobs, &[(0, known(1, &jobs[0]))], &[completed]).expect("a plan");
        let (_, child) = plan.new_jobs().next().expect("a child");
        assert_eq!(child.dependencies, [Dependency { parent: id(1), met: true }]);
        assert_eq!(child.links, Links { has_parents: true, ..Links::default() });
    }

    #[test]
    fn a_parent_of_the_same_call_is_unfinished_and_has_dependents() {
        let plan = plan(&[named("a", job()), refers_to(&["a"])], &[], &[]).expect("a plan");
        assert_eq!(
            links(&plan),
            [
                Links { has_dependents: true, ..Links::default() },
                Links { waits_for: 1, has_parents: true, ..Links::default() },
            ]
        );
    }

    #[test]
    fn a_job_waits_for_its_unfinished_parents_alone() {
        let parents = [
            (id(1), parent(ParentState::Unfinished)),
            (id(2), parent(ParentState::Completed)),
            (id(3), parent(ParentState::Unfinished)),
        ];
        let plan = plan(&[after(&[id(3), id(2), id(1)])], &[], &parents).expect("a plan");
        let (_, job) = plan.new_jobs().next().expect("a job");
        assert_eq!(job.links, Links { waits_for: 2, has_parents: true, ..Links::default() });
        let met: Vec<(JobId, bool)> = job.dependencies.iter().map(|one| (one.parent, one.met)).collect();
        assert_eq!(met, [(id(1), false), (id(2), true), (id(3), false)]);
    }

    #[test]
    fn a_failed_parent_cancels_holds_or_is_ignored_by_the_jobs_policy() {
        let policies = [OnDependencyFailure::Cancel, OnDependencyFailure::Hold, OnDependencyFailure::Run];
        let jobs = policies.map(|on_dependency_failure| NewJob { on_dependency_failure, ..after(&[id(1)]) });
        let plan = plan(&jobs, &[], &[(id(1), parent(ParentState::Failed))]).expect("a plan");
        let decided: Vec<_> =
            plan.new_jobs().map(|(_, job)| (job.links.waits_for, job.links.held, job.cancel)).collect();
        assert_eq!(decided, [(0, false, true), (0, true, false), (0, false, false)]);
        assert_eq!(plan.cancelled().collect::<Vec<_>>(), [id(100)]);
    }

    #[test]
    fn a_call_has_no_answer_while_a_new_job_was_not_written() {
        let plan = plan(&[job(), job()], &[], &[]).expect("a plan");
        assert_eq!(plan.answers(|job| (job == id(100)).then_some(JobState::Pending)), None);
    }

    #[test]
    fn terminal_states_other_than_completed_are_failed_parents() {
        for state in JobState::ALL {
            let expected = match state {
                JobState::Completed => ParentState::Completed,
                JobState::Dead | JobState::Cancelled => ParentState::Failed,
                _ => ParentState::Unfinished,
            };
            assert_eq!(ParentState::from(state), expected, "{state}");
        }
    }
}
