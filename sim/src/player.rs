//! Plays steps on one store.

use std::time::Duration;

use futures_util::future::join_all;
use orchestrix_conformance::Harness;
use orchestrix_core::{
    Instance, JobId, Json, LeaseToken, NodeName, Priority, Progress, ScheduleName, Timestamp, WorkerName,
};
use orchestrix_store::{
    Backfill, ClaimRequest, Epoch, Fence, JobFilter, JobSummary, Leadership, LogEntry, NodeInfo, Occurrence,
    OutcomeReport, PageRequest, Presence, ProgressUpdate, Result, Retention, Schedule, StoreError, WorkerInfo,
    WorkerStatus,
};
use uuid::Uuid;

use crate::{
    observe::{self, Jobs, MADE_UP, Observation},
    request, schedule,
    step::{Forged, Step, Token, Which},
};

/// Longer than everything is kept, and than any store lags behind with forgetting: PostgreSQL drops whole days, up to
/// two late.
pub(crate) const RETENTION_PASSED: Duration = Duration::from_secs(400 * 24 * 3600);

/// How long a leader's step may take; longer than it does on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A store, and what has appeared in it so far.
#[derive(Debug)]
pub struct Player {
    /// What the store is called.
    pub name: &'static str,
    harness: Harness,
    start: Timestamp,
    jobs: Jobs,
    tokens: Vec<LeaseToken>,
    /// The latest epoch that this store gave.
    epoch: Epoch,
}

impl Player {
    /// Begins with an empty store whose clock shows `start`.
    pub fn new(name: &'static str, harness: Harness, start: Timestamp) -> Self {
        Self { name, harness, start, jobs: Jobs::default(), tokens: Vec::new(), epoch: Epoch(0) }
    }

    fn job(&self, which: Which) -> JobId {
        match which {
            Which::Back(n) if !self.jobs.ids.is_empty() => {
                self.jobs.ids[self.jobs.ids.len() - 1 - n % self.jobs.ids.len()]
            }
            Which::Back(_) => unknown(0),
            Which::Unknown(n) => unknown(n),
        }
    }

    fn token(&self, token: Token) -> LeaseToken {
        let Some(back) = token.back.checked_rem(self.tokens.len()) else {
            return LeaseToken { job: unknown(0), counter: 1, secret: Uuid::nil() };
        };
        let given = self.tokens[self.tokens.len() - 1 - back];
        match token.forged {
            None => given,
            Some(Forged::Secret) => LeaseToken { secret: Uuid::nil(), ..given },
            Some(Forged::Counter) => LeaseToken { counter: given.counter + 1, ..given },
            Some(Forged::Job) => LeaseToken { job: unknown(0), ..given },
        }
    }

    fn new_job(&self, request: &crate::step::Request) -> orchestrix_core::NewJob {
        let parents = request.parents.iter().map(|which| self.job(*which)).collect();
        request::new_job(request, parents, self.start)
    }

    /// Takes one step and tells what the store answered.
    pub async fn play(&mut self, step: &Step) -> Observation {
        let store = &self.harness.store;
        match step {
            Step::Enqueue(request) => {
                let answer = store.enqueue_job(self.new_job(request)).await;
                answer.iter().for_each(|job| self.jobs.meet(job.id));
                self.jobs.observe(&answer)
            }
            Step::EnqueueMany(requests) => {
                let answer = store.enqueue_jobs(requests.iter().map(|request| self.new_job(request)).collect()).await;
                answer.iter().flatten().for_each(|job| self.jobs.meet(job.id));
                self.jobs.observe(&answer)
            }
            Step::ReleaseHold(which) => self.jobs.observe(&store.release_held_job(self.job(*which)).await),
            Step::Cancel(which) => self.jobs.observe(&store.cancel_job(self.job(*which)).await),
            Step::Claim { worker, queues, types, limit } => {
                let request = ClaimRequest {
                    worker: request::worker(worker),
                    queues: request::queues(queues.as_ref()),
                    job_types: request::job_types(types.as_ref()),
                    limit: *limit,
                };
                let answer = store.claim_jobs(&request).await;
                self.tokens.extend(answer.iter().flatten().map(|claimed| claimed.token));
                self.jobs.observe(&answer.map(|jobs| jobs.into_iter().map(observe::claimed).collect::<Vec<_>>()))
            }
            Step::Heartbeat(tokens) => {
                let tokens: Vec<LeaseToken> = tokens.iter().map(|token| self.token(*token)).collect();
                self.jobs.observe(&store.extend_leases(&tokens).await)
            }
            Step::OutcomeReport(items) => {
                let finish = |(token, ending): &(Token, _)| OutcomeReport {
                    token: self.token(*token),
                    outcome: request::outcome(*ending),
                };
                self.jobs.observe(&store.finish_attempts(items.iter().map(finish).collect()).await)
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
                let lines = lines.iter().map(|line| request::line(line, self.start)).collect();
                self.jobs.observe(&store.append_logs(self.token(*token), lines).await)
            }
            Step::RegisterWorker(name, queues, concurrency, instance, dead_after) => {
                let info = WorkerInfo {
                    name: request::worker(name),
                    queues: request::queues(queues.as_ref()),
                    job_types: request::job_types(queues.as_ref()),
                    concurrency: *concurrency,
                    instance: instance.map(Instance::trusted),
                    dead_after: *dead_after,
                };
                self.jobs.observe(&store.register_worker(&info).await)
            }
            Step::HeartbeatWorker(name, free_slots, draining) => {
                let presence = Presence { free_slots: *free_slots, draining: *draining, instance: None };
                self.jobs.observe(&store.heartbeat_worker(&request::worker(name), presence).await)
            }
            Step::DirectWorker(name, directive) => {
                self.jobs.observe(&store.direct_worker(&request::worker(name), *directive).await)
            }
            Step::RemoveWorker(name) => self.jobs.observe(&store.remove_worker(&request::worker(name), None).await),
            Step::Retry(which) => self.jobs.observe(&store.retry_job(self.job(*which)).await),
            Step::RetryMany(filter, limit) => {
                let page = PageRequest::first(*limit);
                let answer = store.retry_jobs(&request::filter(filter, self.start), &page).await;
                self.jobs.observe(&answer.map(|page| page.items))
            }
            Step::Reprioritize(which, priority) => {
                let priority = Priority::new(*priority).unwrap_or_default();
                self.jobs.observe(&store.reprioritize_job(self.job(*which), priority).await)
            }
            Step::Pause(queue) => self.jobs.observe(&store.pause_queue(&request::queue(queue)).await),
            Step::Resume(queue) => self.jobs.observe(&store.resume_queue(&request::queue(queue)).await),
            Step::Promote(limit) => {
                self.jobs.observe(&store.promote_jobs(Fence::NONE, *limit).await.map(observe::swept))
            }
            // A store may tell dependents in the call that ended their parents, and then finds nothing here: only
            // whether it answers is compared. What the sweep leads to shows in the jobs.
            Step::Unblock(limit) => self.jobs.observe(&store.unblock_jobs(Fence::NONE, *limit).await.map(drop)),
            Step::Expire(limit) => {
                self.jobs.observe(&store.expire_jobs(Fence::NONE, *limit).await.map(observe::expired))
            }
            Step::Reap(limit, crash_loop) => {
                self.jobs.observe(&store.reap_leases(Fence::NONE, *limit, *crash_loop).await.map(observe::swept))
            }
            Step::TimeOut(limit) => {
                self.jobs.observe(&store.time_out_attempts(Fence::NONE, *limit).await.map(observe::swept))
            }
            Step::ForgetWorkers(silence, limit) => {
                self.jobs.observe(&store.forget_workers(Fence::NONE, *silence, *limit).await)
            }
            Step::Prune => self.jobs.observe(&self.prune().await),
            Step::KeepForever(limit) => {
                let [completed, cancelled, dead, logs, occurrences] = [Duration::MAX; 5];
                let retention = Retention { completed, cancelled, dead, logs, occurrences, ..Retention::default() };
                self.jobs.observe(&store.prune_history(Fence::NONE, &retention, *limit).await)
            }
            Step::Get(which) => self.jobs.observe(&store.job(self.job(*which)).await.map(|job| job.map(observe::job))),
            Step::Summary(which) => self.jobs.observe(&store.job_summary(self.job(*which)).await),
            Step::List(filter, limit) => {
                self.jobs.observe(&self.list(&request::filter(filter, self.start), *limit).await)
            }
            Step::Logs(which, after, limit) => self.jobs.observe(&self.logs(self.job(*which), *after, *limit).await),
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
            Step::PromoteAs(away, limit) => {
                let fence = Fence::of(Epoch(self.epoch.0 + away), PATIENCE);
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
            Step::SweepTimes => self.jobs.observe(&store.next_sweep_times().await.map(observe::agenda)),
            Step::PutSchedule(series) => {
                self.jobs.observe(&store.put_schedule(None, schedule::new_schedule(series, self.start)).await)
            }
            Step::DeleteSchedule(name) => self.jobs.observe(&store.delete_schedule(None, &schedule::name(name)).await),
            Step::PauseSchedule(name, note) => {
                self.jobs.observe(&store.pause_schedule(None, &schedule::name(name), note.map(Into::into)).await)
            }
            Step::ResumeSchedule(name) => self.jobs.observe(&store.resume_schedule(None, &schedule::name(name)).await),
            Step::TriggerSchedule(name) => {
                let answer = store.trigger_schedule(None, &schedule::name(name)).await;
                answer.iter().for_each(|job| self.jobs.meet(job.id));
                self.jobs.observe(&answer)
            }
            Step::BackfillSchedule(name, from, to, overlap) => {
                let (from, to) = (request::at(self.start, *from), request::at(self.start, *to));
                let range = Backfill { from, to, overlap: *overlap };
                let answer = store.backfill_schedule(None, &schedule::name(name), &range).await;
                self.meet_scheduled().await;
                self.jobs.observe(&answer)
            }
            Step::Fire(limit) => self.fire(Fence::NONE, *limit).await,
            Step::FireAs(away, limit) => self.fire(Fence::of(Epoch(self.epoch.0 + away), PATIENCE), *limit).await,
            Step::Schedule(name) => self.jobs.observe(&store.schedule(None, &schedule::name(name)).await),
            Step::Schedules(limit) => self.jobs.observe(&self.schedules(*limit).await),
            Step::Occurrences(name, limit) => self.jobs.observe(&self.occurrences(&schedule::name(name), *limit).await),
            Step::Advance(by) => {
                self.harness.clock.advance(*by).await;
                self.jobs.observe(&Ok(self.harness.clock.now().await))
            }
        }
    }

    /// All that can be read of the store, part by part.
    pub async fn state(&self) -> Vec<(String, Observation)> {
        let store = &self.harness.store;
        let listed = self.list(&JobFilter::default(), 50).await;
        let mut state = vec![
            ("the list of all jobs".into(), self.jobs.observe(&listed)),
            ("the depths".into(), self.depths().await),
            ("the paused queues".into(), self.jobs.observe(&store.paused_queues().await)),
            ("the lanes".into(), self.jobs.observe(&store.claimable_lanes(1_000).await)),
            ("the workers".into(), self.jobs.observe(&self.workers(1_000).await)),
        ];
        let schedules = self.schedules(1_000).await;
        for schedule in schedules.iter().flatten() {
            let name = &schedule.definition.name;
            let ledger = self.occurrences(name, 1_000).await;
            state.push((format!("the ledger of {name}"), self.jobs.observe(&ledger)));
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

    /// Rows and partitions are counted differently, and some go later than others, so only the end is compared: nothing
    /// finished is left.
    async fn prune(&self) -> Result<()> {
        self.harness.clock.advance(RETENTION_PASSED).await;
        while self.harness.store.prune_history(Fence::NONE, &Retention::default(), 1_000).await?.more {}
        Ok(())
    }

    /// Every page: one may hold fewer than asked, so where they end is not compared.
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

    /// Every page of a log, each full but the last.
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
        self.meet_scheduled().await;
        self.jobs.observe(&answer.map(observe::swept))
    }

    /// Takes note of the jobs that schedules created, in the order of names and times. A ledger that cannot be read shows
    /// in the state.
    async fn meet_scheduled(&mut self) {
        for schedule in self.schedules(1_000).await.unwrap_or_default() {
            let ledger = self.occurrences(&schedule.definition.name, 1_000).await.unwrap_or_default();
            ledger.iter().rev().filter_map(|line| line.job).for_each(|id| self.jobs.meet(id));
        }
    }

    async fn depths(&self) -> Observation {
        let depths = self.harness.store.queue_depths(&PageRequest::first(1_000)).await;
        self.jobs.observe(&depths.map(|page| page.items.into_iter().map(observe::depth).collect::<Vec<_>>()))
    }
}

fn full_unless_last(items: usize, limit: usize, last: bool) -> Result<()> {
    match last || items == limit {
        true => Ok(()),
        false => Err(StoreError::Backend(format!("a page of {items}, not {limit}, has a next one").into())),
    }
}

/// An id that no store gives.
fn unknown(n: u8) -> JobId {
    JobId::from_uuid(Uuid::from_u128(MADE_UP - u128::from(n)))
}
