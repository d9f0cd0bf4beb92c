//! Executes steps on one store.

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use futures_util::future::join_all;
use orchestrix_conformance::Harness;
use orchestrix_core::{
    Instance, JobId, Json, LeaseToken, NodeName, Priority, Progress, ScheduleName, Tenant, Timestamp, Weight,
    WorkerName,
};
use orchestrix_store::{
    Backfill, ClaimRequest, ClaimedJob, Epoch, Fence, JobFilter, JobSummary, Leadership, LogEntry, NodeInfo,
    Occurrence, OutcomeReport, PageRequest, Presence, ProgressUpdate, Result, Retention, Schedule, StoreError,
    TenantPatch, WorkerInfo, WorkerStatus,
};
use uuid::Uuid;

use crate::{
    convert,
    observe::{self, JobOrdinals, MAX_FAKE_ID, Observation},
    schedule_spec,
    step::{Forged, JobRef, JobSpec, Step, TokenRef},
    wide,
};

/// Longer than every retention plus the longest delay of pruning: PostgreSQL drops whole days, up to two days late.
pub(crate) const RETENTION_PASSED: Duration = Duration::from_secs(400 * 24 * 3600);

/// How long a fenced sweep may take, with room for a busy machine.
const FENCE_TIMEOUT: Duration = Duration::from_secs(30);

/// A store, with the jobs and lease tokens that have appeared in it so far.
#[derive(Debug)]
pub struct Executor {
    /// The name of the store in reports.
    pub name: &'static str,
    harness: Harness,
    start: Timestamp,
    jobs: JobOrdinals,
    tokens: Vec<LeaseToken>,
    /// The latest epoch that this store granted.
    epoch: Epoch,
}

impl Executor {
    /// Starts with an empty store whose clock shows `start`.
    pub fn new(name: &'static str, harness: Harness, start: Timestamp) -> Self {
        Self { name, harness, start, jobs: JobOrdinals::default(), tokens: Vec::new(), epoch: Epoch(0) }
    }

    fn job(&self, job: JobRef) -> JobId {
        match job {
            JobRef::Recent(n) if !self.jobs.ids.is_empty() => {
                self.jobs.ids[self.jobs.ids.len() - 1 - n % self.jobs.ids.len()]
            }
            JobRef::Recent(_) => unknown(0),
            JobRef::Unknown(n) => unknown(n),
        }
    }

    fn token(&self, token: TokenRef) -> LeaseToken {
        let Some(age) = token.age.checked_rem(self.tokens.len()) else {
            return LeaseToken { job: unknown(0), counter: 1, secret: Uuid::nil() };
        };
        let granted = self.tokens[self.tokens.len() - 1 - age];
        match token.forged {
            None => granted,
            Some(Forged::Secret) => LeaseToken { secret: Uuid::nil(), ..granted },
            Some(Forged::Counter) => LeaseToken { counter: granted.counter + 1, ..granted },
            Some(Forged::Job) => LeaseToken { job: unknown(0), ..granted },
        }
    }

    fn new_job(&self, job: &JobSpec) -> orchestrix_core::NewJob {
        let parents = job.parents.iter().map(|parent| self.job(*parent)).collect();
        convert::new_job(job, parents, self.start)
    }

    /// Executes one step and returns the store's answer.
    pub async fn execute(&mut self, step: &Step) -> Observation {
        let store = &self.harness.store;
        match step {
            Step::Enqueue(job) => {
                let answer = store.enqueue_job(self.new_job(job)).await;
                answer.iter().for_each(|job| self.jobs.register(job.id));
                self.jobs.observe(&answer)
            }
            Step::EnqueueMany(jobs) => {
                let answer = store.enqueue_jobs(jobs.iter().map(|job| self.new_job(job)).collect()).await;
                answer.iter().flatten().for_each(|job| self.jobs.register(job.id));
                self.jobs.observe(&answer)
            }
            Step::EnqueueWide(jobs) => {
                let now = self.harness.clock.now().await;
                let answer = store.enqueue_jobs((0..*jobs).map(|n| wide::job(n, now)).collect()).await;
                answer.iter().flatten().step_by(wide::KNOWN).for_each(|job| self.jobs.register(job.id));
                self.jobs.observe(&answer)
            }
            Step::ReleaseHeld(job) => self.jobs.observe(&store.release_held_job(self.job(*job)).await),
            Step::Cancel(job) => self.jobs.observe(&store.cancel_job(self.job(*job)).await),
            Step::Claim { worker, queues, types, limit } => {
                let request = ClaimRequest {
                    worker: convert::worker(worker),
                    queues: convert::queues(queues.as_ref()),
                    job_types: convert::job_types(types.as_ref()),
                    limit: *limit,
                };
                let answer = store.claim_jobs(&request).await.and_then(in_claim_order);
                self.tokens.extend(answer.iter().flatten().map(|claimed| claimed.token));
                self.jobs.observe(&answer.map(|jobs| jobs.into_iter().map(observe::claimed).collect::<Vec<_>>()))
            }
            Step::ExtendLeases(tokens) => {
                let tokens: Vec<LeaseToken> = tokens.iter().map(|token| self.token(*token)).collect();
                self.jobs.observe(&store.extend_leases(&tokens).await)
            }
            Step::FinishAttempts(items) => {
                let report = |(token, outcome): &(TokenRef, _)| OutcomeReport {
                    token: self.token(*token),
                    outcome: convert::outcome(*outcome),
                };
                self.jobs.observe(&store.finish_attempts(items.iter().map(report).collect()).await)
            }
            Step::Progress(token, percent, message) => {
                let progress = Some(Progress { percent: *percent, message: message.map(Into::into) });
                let update = ProgressUpdate { progress, checkpoint: None };
                self.jobs.observe(&store.record_progress(self.token(*token), update).await)
            }
            Step::Checkpoint(token, checkpoint) => {
                let update = ProgressUpdate { progress: None, checkpoint: Some(Json::trusted(checkpoint)) };
                self.jobs.observe(&store.record_progress(self.token(*token), update).await)
            }
            Step::AppendLogs(token, lines) => {
                let lines = lines.iter().map(|line| convert::log_line(line, self.start)).collect();
                self.jobs.observe(&store.append_logs(self.token(*token), lines).await)
            }
            Step::RegisterWorker(name, queues, concurrency, instance, dead_after) => {
                let info = WorkerInfo {
                    name: convert::worker(name),
                    queues: convert::queues(queues.as_ref()),
                    job_types: convert::job_types(queues.as_ref()),
                    concurrency: *concurrency,
                    instance: instance.map(Instance::trusted),
                    dead_after: *dead_after,
                };
                self.jobs.observe(&store.register_worker(&info).await)
            }
            Step::HeartbeatWorker(name, free_slots, draining) => {
                let presence = Presence { free_slots: *free_slots, draining: *draining, instance: None };
                self.jobs.observe(&store.heartbeat_worker(&convert::worker(name), presence).await)
            }
            Step::DirectWorker(name, directive) => {
                self.jobs.observe(&store.direct_worker(&convert::worker(name), *directive).await)
            }
            Step::RemoveWorker(name) => self.jobs.observe(&store.remove_worker(&convert::worker(name), None).await),
            Step::Retry(job) => self.jobs.observe(&store.retry_job(self.job(*job)).await),
            Step::RetryMany(filter, limit) => {
                let page = PageRequest::first(*limit);
                let answer = store.retry_jobs(&convert::filter(filter, self.start), &page).await;
                self.jobs.observe(&answer.map(|page| page.items))
            }
            Step::Reprioritize(job, priority) => {
                let priority = Priority::new(*priority).unwrap_or_default();
                self.jobs.observe(&store.reprioritize_job(self.job(*job), priority).await)
            }
            Step::SetTenant(name, weight) => {
                let weight = weight.map(|weight| Weight::new(weight).unwrap_or_default());
                self.jobs.observe(&store.set_tenant(&Tenant::trusted(name), TenantPatch { weight }).await)
            }
            Step::PauseQueue(queue) => self.jobs.observe(&store.pause_queue(&convert::queue(queue)).await),
            Step::ResumeQueue(queue) => self.jobs.observe(&store.resume_queue(&convert::queue(queue)).await),
            Step::Promote(limit) => {
                self.jobs.observe(&store.promote_jobs(Fence::NONE, *limit).await.map(observe::swept))
            }
            // A store may resolve dependents in the call that finished their parents. Then this sweep finds nothing.
            // So only success is compared; its effect shows in the state of the jobs.
            Step::Unblock(limit) => self.jobs.observe(&store.unblock_jobs(Fence::NONE, *limit).await.map(drop)),
            Step::Expire(limit) => {
                self.jobs.observe(&store.expire_jobs(Fence::NONE, *limit).await.map(observe::expired))
            }
            Step::ReapLeases(limit, crash_loop) => {
                self.jobs.observe(&store.reap_leases(Fence::NONE, *limit, *crash_loop).await.map(observe::swept))
            }
            Step::TimeOutAttempts(limit) => {
                self.jobs.observe(&store.time_out_attempts(Fence::NONE, *limit).await.map(observe::swept))
            }
            Step::ForgetWorkers(silence, limit) => {
                self.jobs.observe(&store.forget_workers(Fence::NONE, *silence, *limit).await)
            }
            Step::Prune => self.jobs.observe(&self.prune().await),
            Step::PruneNothing(limit) => {
                let [completed, cancelled, dead, logs, occurrences] = [Duration::MAX; 5];
                let retention = Retention { completed, cancelled, dead, logs, occurrences, ..Retention::default() };
                self.jobs.observe(&store.prune_history(Fence::NONE, &retention, *limit).await)
            }
            Step::Get(job) => self.jobs.observe(&store.job(self.job(*job)).await.map(|job| job.map(observe::job))),
            Step::Summary(job) => self.jobs.observe(&store.job_summary(self.job(*job)).await),
            Step::List(filter, limit) => {
                self.jobs.observe(&self.list(&convert::filter(filter, self.start), *limit).await)
            }
            Step::Logs(job, after, limit) => self.jobs.observe(&self.logs(self.job(*job), *after, *limit).await),
            Step::Depths => self.depths().await,
            Step::PausedQueues => self.jobs.observe(&store.paused_queues().await),
            Step::Lanes(limit) => self.jobs.observe(&store.claimable_lanes(*limit).await),
            Step::Workers(limit) => self.jobs.observe(&self.workers(*limit).await),
            Step::Campaign(name, term, held) => {
                let answer =
                    store.campaign_for_leadership(&NodeName::trusted(name), *term, held.then_some(self.epoch)).await;
                if let Ok(Leadership::Leading(epoch)) = answer {
                    self.epoch = epoch;
                }
                self.jobs.observe(&answer.map(observe::leadership))
            }
            Step::Resign(name) => {
                self.jobs.observe(&store.resign_leadership(&NodeName::trusted(name), self.epoch).await)
            }
            Step::PromoteFenced(offset, limit) => {
                let fence = Fence::of(Epoch(self.epoch.0 + offset), FENCE_TIMEOUT);
                self.jobs.observe(&store.promote_jobs(fence, *limit).await.map(observe::swept))
            }
            Step::HeartbeatNode(name) => {
                let info = NodeInfo { name: NodeName::trusted(name), address: None, roles: vec![(*name).into()] };
                self.jobs.observe(&store.heartbeat_node(&info).await)
            }
            Step::RemoveNode(name) => self.jobs.observe(&store.remove_node(&NodeName::trusted(name)).await),
            Step::ForgetNodes(silence, limit) => {
                self.jobs.observe(&store.forget_nodes(Fence::NONE, *silence, *limit).await)
            }
            Step::Nodes => {
                let leader = store.leader().await.ok();
                self.jobs.observe(&store.list_nodes(&PageRequest::first(100)).await.map(|nodes| (leader, nodes)))
            }
            Step::SweepTimes => self.jobs.observe(&store.next_sweep_times().await.map(observe::sweep_times)),
            Step::PutSchedule(spec) => {
                self.jobs.observe(&store.put_schedule(None, schedule_spec::new_schedule(spec, self.start)).await)
            }
            Step::DeleteSchedule(name) => {
                self.jobs.observe(&store.delete_schedule(None, &schedule_spec::name(name)).await)
            }
            Step::PauseSchedule(name, note) => {
                self.jobs.observe(&store.pause_schedule(None, &schedule_spec::name(name), note.map(Into::into)).await)
            }
            Step::ResumeSchedule(name) => {
                self.jobs.observe(&store.resume_schedule(None, &schedule_spec::name(name)).await)
            }
            Step::TriggerSchedule(name) => {
                let answer = store.trigger_schedule(None, &schedule_spec::name(name)).await;
                answer.iter().for_each(|job| self.jobs.register(job.id));
                self.jobs.observe(&answer)
            }
            Step::BackfillSchedule(name, from, to, overlap) => {
                let (from, to) = (convert::at(self.start, *from), convert::at(self.start, *to));
                let range = Backfill { from, to, overlap: *overlap };
                let answer = store.backfill_schedule(None, &schedule_spec::name(name), &range).await;
                self.register_scheduled().await;
                self.jobs.observe(&answer)
            }
            Step::Fire(limit) => self.fire(Fence::NONE, *limit).await,
            Step::FireFenced(offset, limit) => {
                self.fire(Fence::of(Epoch(self.epoch.0 + offset), FENCE_TIMEOUT), *limit).await
            }
            Step::Schedule(name) => self.jobs.observe(&store.schedule(None, &schedule_spec::name(name)).await),
            Step::Schedules(limit) => self.jobs.observe(&self.schedules(*limit).await),
            Step::Occurrences(name, limit) => {
                self.jobs.observe(&self.occurrences(&schedule_spec::name(name), *limit).await)
            }
            Step::Advance(by) => {
                self.harness.clock.advance(*by).await;
                self.jobs.observe(&Ok(self.harness.clock.now().await))
            }
        }
    }

    /// Everything that can be read from the store, part by part.
    pub async fn state(&self) -> Vec<(String, Observation)> {
        let store = &self.harness.store;
        let listed = self.list(&JobFilter::default(), 50).await;
        let mut state = vec![
            ("the list of all jobs".into(), self.jobs.observe(&listed)),
            ("the depths".into(), self.depths().await),
            ("the paused queues".into(), self.jobs.observe(&store.paused_queues().await)),
            ("the tenants".into(), self.jobs.observe(&store.list_tenants(&PageRequest::first(1_000)).await)),
            ("the lanes".into(), self.jobs.observe(&store.claimable_lanes(1_000).await)),
            ("the workers".into(), self.jobs.observe(&self.workers(1_000).await)),
        ];
        let schedules = self.schedules(1_000).await;
        for schedule in schedules.iter().flatten() {
            let name = &schedule.definition.name;
            let occurrences = self.occurrences(name, 1_000).await;
            state.push((format!("the occurrences of {name}"), self.jobs.observe(&occurrences)));
        }
        state.insert(0, ("the schedules".into(), self.jobs.observe(&schedules)));
        let jobs = self.jobs.ids.iter().enumerate().map(async |(i, id)| {
            let job = store.job(*id).await.map(|job| job.map(observe::job));
            let log = self.logs(*id, None, 1_000).await;
            [(format!("job #{i}"), self.jobs.observe(&job)), (format!("the log of #{i}"), self.jobs.observe(&log))]
        });
        state.extend(join_all(jobs).await.into_iter().flatten());
        state
    }

    /// Prunes until nothing is left to prune. The counts are not compared: stores count rows or partitions, and prune
    /// at different times.
    async fn prune(&self) -> Result<()> {
        self.harness.clock.advance(RETENTION_PASSED).await;
        while self.harness.store.prune_history(Fence::NONE, &Retention::default(), 1_000).await?.more {}
        Ok(())
    }

    /// All pages. A page may hold fewer items than its limit, so page boundaries are not compared.
    async fn list(&self, filter: &JobFilter, limit: usize) -> Result<Vec<JobSummary>> {
        let mut all = Vec::new();
        let mut page = PageRequest::first(limit);
        loop {
            let part = self.harness.store.list_jobs(filter, &page).await?;
            all.extend(part.items);
            let Some(next) = part.next else { return Ok(all) };
            page.cursor = Some(next);
        }
    }

    /// All pages of a log. Every page except the last must be full.
    async fn logs(&self, id: JobId, after: Option<i64>, limit: usize) -> Result<Vec<LogEntry>> {
        let mut all = Vec::new();
        let mut page = PageRequest { cursor: after, limit };
        loop {
            let part = self.harness.store.job_logs(id, &page).await?;
            full_unless_last(part.items.len(), limit, part.next.is_none())?;
            all.extend(part.items);
            let Some(next) = part.next else { return Ok(observe::renumbered(all)) };
            page.cursor = Some(next);
        }
    }

    async fn workers(&self, limit: usize) -> Result<Vec<WorkerStatus>> {
        let mut all = Vec::new();
        let mut page = PageRequest::<WorkerName>::first(limit);
        loop {
            let part = self.harness.store.list_workers(&page).await?;
            full_unless_last(part.items.len(), limit, part.next.is_none())?;
            all.extend(part.items);
            let Some(next) = part.next else { return Ok(all) };
            page.cursor = Some(next);
        }
    }

    async fn schedules(&self, limit: usize) -> Result<Vec<Schedule>> {
        let mut all = Vec::new();
        let mut page = PageRequest::<ScheduleName>::first(limit);
        loop {
            let part = self.harness.store.list_schedules(None, &page).await?;
            full_unless_last(part.items.len(), limit, part.next.is_none())?;
            all.extend(part.items);
            let Some(next) = part.next else { return Ok(all) };
            page.cursor = Some(next);
        }
    }

    async fn occurrences(&self, name: &ScheduleName, limit: usize) -> Result<Vec<Occurrence>> {
        let mut all = Vec::new();
        let mut page = PageRequest::<Timestamp>::first(limit);
        loop {
            let part = self.harness.store.list_occurrences(None, name, &page).await?;
            full_unless_last(part.items.len(), limit, part.next.is_none())?;
            all.extend(part.items);
            let Some(next) = part.next else { return Ok(all) };
            page.cursor = Some(next);
        }
    }

    async fn fire(&mut self, fence: Fence, limit: usize) -> Observation {
        let answer = self.harness.store.fire_schedules(fence, limit).await;
        self.register_scheduled().await;
        self.jobs.observe(&answer.map(observe::swept))
    }

    /// Registers the jobs of schedules, in the order of names and nominal times. A read error is ignored here; it
    /// shows when the states are compared.
    async fn register_scheduled(&mut self) {
        for schedule in self.schedules(1_000).await.unwrap_or_default() {
            let occurrences = self.occurrences(&schedule.definition.name, 1_000).await.unwrap_or_default();
            occurrences.iter().rev().filter_map(|occurrence| occurrence.job).for_each(|id| self.jobs.register(id));
        }
    }

    async fn depths(&self) -> Observation {
        let depths = self.harness.store.queue_depths(&PageRequest::first(1_000)).await;
        self.jobs.observe(&depths.map(|page| page.items.into_iter().map(observe::depth).collect::<Vec<_>>()))
    }
}

/// Refuses jobs that are not in an order that claims promise whatever the turns were: by priority, and within a
/// priority the jobs of each tenant by time of eligibility and id.
fn in_claim_order(jobs: Vec<ClaimedJob>) -> Result<Vec<ClaimedJob>> {
    let mut tenants: BTreeMap<(Priority, &Tenant), Vec<(Timestamp, JobId)>> = BTreeMap::new();
    for job in &jobs {
        tenants.entry((job.priority, &job.tenant)).or_default().push((job.eligible_at, job.id()));
    }
    match jobs.is_sorted_by_key(|job| Reverse(job.priority)) && tenants.values().all(|jobs| jobs.is_sorted()) {
        true => Ok(jobs),
        false => Err(StoreError::Backend(format!("jobs were claimed out of order: {jobs:?}").into())),
    }
}

fn full_unless_last(items: usize, limit: usize, last: bool) -> Result<()> {
    match last || items == limit {
        true => Ok(()),
        false => {
            Err(StoreError::Backend(format!("a page holds {items} of {limit} items and still has a next page").into()))
        }
    }
}

/// An id that no store generates.
fn unknown(n: u8) -> JobId {
    JobId::from_uuid(Uuid::from_u128(MAX_FAKE_ID - u128::from(n)))
}
