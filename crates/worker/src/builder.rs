//! Configuring and starting a worker.

use std::{collections::BTreeMap, future::Future, io, sync::Arc, time::Duration};

use orchestrix_client::{Client, Job};
use orchestrix_coordinator::CoordinatorOptions;
use orchestrix_core::{FieldError, Instance, Invalid, JobType, Json, NodeName, Queue, WorkerName};
use orchestrix_store::{ClaimRequest, Directive, NodeInfo, StoreError, WorkerInfo};
use thiserror::Error;
use tokio::{
    runtime::Handle,
    sync::{Notify, watch},
};
use tower::{Layer, Service, ServiceExt, util::BoxCloneSyncService};

use crate::{
    Context, Drained, HandlerRegistry, HandlerResult, HandlerService, JobCall, JobError, JobResult, JobSource, Run,
    RunBlocking, Worker,
    blocking_pool::BlockingPool,
    context::ContextShared,
    control_thread::{ControlThread, Registration},
    fetch::ClaimPlanner,
    handler::{self, Handler},
    lease::LeaseTable,
    options::{TracePropagator, WorkerOptions},
    outcome_reporter::OutcomeQueue,
    shared_state::SharedState,
    slot_pool::SlotPool,
    source::JobBackend,
    stats::Counters,
    worker::{ControlInputs, WorkerShared},
};

/// Why a worker could not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// Some settings are invalid. Lists all of them.
    #[error("the worker cannot start: {0}")]
    Invalid(#[from] Invalid),
    /// The store refused or is unavailable.
    #[error("the worker cannot start: {0}")]
    Store(#[from] StoreError),
    /// The operating system refused a thread or a signal handler, or there is no Tokio runtime.
    #[error("the worker cannot start: {0}")]
    System(#[from] io::Error),
}

type BlockingHandler = fn(Arc<BlockingPool>) -> Handler;
type ConfigureCoordinator = Box<dyn FnOnce(&mut CoordinatorOptions) + Send>;
type ApplyLayer = Box<dyn FnOnce(HandlerService) -> HandlerService + Send>;

/// Configures and starts a [`Worker`]. Created by [`Worker::builder`].
pub struct WorkerBuilder {
    backend: JobBackend,
    options: WorkerOptions,
    handlers: BTreeMap<JobType, Handler>,
    blocking_handlers: Vec<(JobType, BlockingHandler)>,
    layers: Vec<ApplyLayer>,
    state: SharedState,
    coordinator: Option<ConfigureCoordinator>,
    errors: Vec<FieldError>,
}

impl Worker {
    /// Configures a worker on the client's store. It also runs a coordinator, unless
    /// [disabled](WorkerBuilder::no_coordinator).
    pub fn builder(client: &Client) -> WorkerBuilder {
        WorkerBuilder::new(JobBackend::Store(Arc::clone(client.store())))
    }

    /// Configures a worker on any job source, such as a server. It runs no coordinator, because a source gives no
    /// access to the store.
    pub fn with_source(source: Arc<dyn JobSource>) -> WorkerBuilder {
        WorkerBuilder::new(JobBackend::Source(source))
    }
}

impl WorkerBuilder {
    fn new(backend: JobBackend) -> Self {
        Self {
            backend,
            options: WorkerOptions::new(),
            handlers: BTreeMap::new(),
            blocking_handlers: Vec::new(),
            layers: Vec::new(),
            state: SharedState::default(),
            coordinator: Some(Box::new(|_| {})),
            errors: Vec::new(),
        }
    }

    /// Parses a job type that gets a handler. Notes an error if it is invalid or has a handler already.
    fn new_job_type(&mut self, job_type: &str) -> Option<JobType> {
        let is_taken = |name: &JobType| {
            self.handlers.contains_key(name) || self.blocking_handlers.iter().any(|(taken, _)| taken == name)
        };
        match JobType::new(job_type) {
            Ok(name) if is_taken(&name) => {
                self.errors.push(FieldError::new("jobType", format!("{name} has two handlers")));
                None
            }
            Ok(name) => Some(name),
            Err(error) => {
                self.errors.push(error);
                None
            }
        }
    }

    /// Runs jobs of type `J`.
    #[must_use]
    pub fn job<J: Run>(self) -> Self {
        self.handler(|job: J, ctx| job.run(ctx))
    }

    /// Runs jobs of type `J`, whose handler blocks, on a separate thread pool.
    #[must_use]
    pub fn blocking_job<J: RunBlocking>(mut self) -> Self {
        if let Some(name) = self.new_job_type(J::TYPE) {
            self.blocking_handlers.push((name, handler::blocking_handler::<J>));
        }
        self
    }

    /// Runs jobs of type `J` with a function instead of a [`Run`] implementation.
    #[must_use]
    pub fn handler<J, F, W>(mut self, function: F) -> Self
    where
        J: Job,
        F: Fn(J, Context) -> W + Send + Sync + 'static,
        W: Future<Output = JobResult<J::Output>> + Send + 'static,
    {
        if let Some(name) = self.new_job_type(J::TYPE) {
            self.handlers.insert(name, handler::async_handler(function));
        }
        self
    }

    /// Runs jobs of the named type with a function that gets the payload as JSON.
    #[must_use]
    pub fn raw_handler<F, W>(mut self, job_type: &str, function: F) -> Self
    where
        F: Fn(JobCall) -> W + Send + Sync + 'static,
        W: Future<Output = HandlerResult> + Send + 'static,
    {
        if let Some(name) = self.new_job_type(job_type) {
            self.handlers.insert(name, handler::raw_handler(function));
        }
        self
    }

    /// Shares a value with all handlers. They look it up by its type with [`Context::state`].
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.state.insert(value);
        self
    }

    /// Wraps every handler in middleware. Layers added later are further outside. Panics are caught outside all layers.
    #[must_use]
    pub fn layer<L, S>(mut self, layer: L) -> Self
    where
        L: Layer<HandlerService, Service = S> + Send + 'static,
        S: Service<JobCall, Response = Option<Json>> + Clone + Send + Sync + 'static,
        S::Error: Into<JobError>,
        S::Future: Send + 'static,
    {
        self.layers.push(Box::new(move |service| BoxCloneSyncService::new(layer.layer(service).map_err(Into::into))));
        self
    }

    /// Sets the worker's name. Defaults to the host name and a random suffix. Two live workers must not share a name:
    /// the store would treat them as one.
    #[must_use]
    pub fn name(mut self, name: impl AsRef<str>) -> Self {
        match WorkerName::new(name) {
            Ok(name) => self.options.name = name,
            Err(error) => self.errors.push(error),
        }
        self
    }

    /// Serves this queue. Without any named queue the worker serves all. With several it runs the job with the highest
    /// priority across all of them first.
    #[must_use]
    pub fn queue(mut self, queue: impl AsRef<str>) -> Self {
        self.serve(queue, None);
        self
    }

    /// Serves this queue with a weight. While all queues have jobs, each gets a share by its weight, regardless of
    /// priorities across queues. Unused shares go to the other queues. A queue without a weight counts as weight 1.
    #[must_use]
    pub fn weighted_queue(mut self, queue: impl AsRef<str>, weight: u32) -> Self {
        self.serve(queue, Some(weight));
        self
    }

    fn serve(&mut self, queue: impl AsRef<str>, weight: Option<u32>) {
        match Queue::new(queue) {
            Ok(queue) => {
                self.options.queues.retain(|(served, _)| *served != queue);
                self.options.queues.push((queue, weight));
            }
            Err(error) => self.errors.push(error),
        }
    }

    /// Sets how many jobs run concurrently. Defaults to 10.
    #[must_use]
    pub fn concurrency(mut self, jobs: usize) -> Self {
        self.options.concurrency = jobs;
        self
    }

    /// Sets the maximum number of jobs to prefetch. The worker prefetches only as many as it expects to start within
    /// 100 ms.
    #[must_use]
    pub fn prefetch(mut self, jobs: usize) -> Self {
        self.options.prefetch = jobs;
        self
    }

    /// Sets how often the worker sends heartbeats, and at least how often it extends leases. Defaults to 10 s. Leases
    /// shorter than three times this are extended more often.
    #[must_use]
    pub fn heartbeat_interval(mut self, interval: Duration) -> Self {
        self.options.heartbeat_interval = interval;
        self
    }

    /// Sets the longest pause between claims without a wake-up. Defaults to 1 s.
    #[must_use]
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.options.poll_interval = interval;
        self
    }

    /// Sets how long handlers may run after a shutdown began. Defaults to 30 s. Reporting the last outcomes and
    /// removing the registration come on top: a moment, or a few seconds if the database is unavailable.
    #[must_use]
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.options.drain_timeout = timeout;
        self
    }

    /// Connects the spans of jobs to their traces, for trace exporters. By default spans serve only logs.
    #[must_use]
    pub fn trace_propagator(mut self, propagator: TracePropagator) -> Self {
        self.options.trace_propagator = Some(propagator);
        self
    }

    /// Sets the grace period between requesting a handler to stop and dropping it. Defaults to 5 s. A handler that
    /// never awaits cannot be dropped: it keeps its slot until it returns.
    #[must_use]
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.options.cancel_grace = grace;
        self
    }

    /// Runs no coordinator. Another node must run one: without a leader, jobs are not retried or promoted, and expired
    /// leases are not reaped.
    #[must_use]
    pub fn no_coordinator(mut self) -> Self {
        self.coordinator = None;
        self
    }

    /// Configures the worker's coordinator. No effect on a worker [over a source](Worker::with_source).
    #[must_use]
    pub fn coordinator(mut self, configure: impl FnOnce(&mut CoordinatorOptions) + Send + 'static) -> Self {
        self.coordinator = Some(Box::new(configure));
        self
    }

    /// Starts the worker. Handlers run on the current Tokio runtime. The source may be unavailable: the worker retries
    /// until it answers.
    pub fn start(mut self) -> Result<Worker, WorkerError> {
        let coordinator = self.coordinator_options()?;
        let (shared, inputs, mut info) = self.build()?;
        // The coordinator's setting applies to this worker's own registration too.
        info.dead_after = coordinator.as_ref().map(|options| options.dead_after).or(info.dead_after);
        let control = ControlThread::start(Arc::clone(&shared), inputs, Registration { info, coordinator })?;
        Ok(Worker { shared, control: Some(control) })
    }

    /// Starts the worker, runs it until SIGTERM or SIGINT, and shuts it down. Returns `None` after a second signal.
    pub async fn run(self) -> Result<Option<Drained>, WorkerError> {
        Ok(self.start()?.run_until_signal().await?)
    }

    fn coordinator_options(&mut self) -> Result<Option<CoordinatorOptions>, WorkerError> {
        let Some(configure) = self.coordinator.take() else { return Ok(None) };
        let node = NodeInfo {
            name: NodeName::new(self.options.name.as_str()).map_err(Invalid::from)?,
            address: None,
            roles: vec!["worker".into(), "coordinator".into()],
        };
        let mut options = CoordinatorOptions::new(node);
        options.heartbeat = self.options.heartbeat_interval;
        options.dead_after = options.dead_after.max(3 * options.heartbeat);
        configure(&mut options);
        options.validate().map_err(Invalid::from)?;
        Ok(Some(options))
    }

    pub(crate) fn build(mut self) -> Result<(Arc<WorkerShared>, ControlInputs, WorkerInfo), WorkerError> {
        let mut errors = std::mem::take(&mut self.errors);
        if let Err(invalid) = self.options.check() {
            errors.extend(invalid.errors);
        }
        let job_types = self.handlers.len() + self.blocking_handlers.len();
        if job_types == 0 {
            errors.push(FieldError::new("jobTypes", "a worker needs at least one handler, as in .job::<SendEmail>()"));
        }
        if job_types > ClaimRequest::MAX_NAMES {
            errors.push(FieldError::new(
                "jobTypes",
                format!("a worker may have handlers for at most {} job types", ClaimRequest::MAX_NAMES),
            ));
        }
        Invalid::check(errors)?;
        if !self.blocking_handlers.is_empty() {
            let pool = Arc::new(BlockingPool::new(self.options.concurrency)?);
            for (name, handler) in self.blocking_handlers {
                self.handlers.insert(name, handler(Arc::clone(&pool)));
            }
        }
        let handlers = HandlerRegistry::new(self.handlers);
        let job_types: Vec<JobType> = handlers.job_types().cloned().collect();
        let info = WorkerInfo {
            name: self.options.name.clone(),
            queues: self.options.served_queues(),
            job_types: Some(job_types.clone()),
            concurrency: u32::try_from(self.options.concurrency).unwrap_or(u32::MAX),
            instance: Some(Instance::trusted(&format!("{:032x}", rand::random::<u128>()))),
            dead_after: Some(WorkerInfo::dead_after(self.options.heartbeat_interval)),
        };
        let innermost = BoxCloneSyncService::new(handlers);
        let service = self.layers.into_iter().fold(innermost, |service, apply| apply(service));
        let (contexts, flush_requests) = ContextShared::new(&self.backend, self.state);
        let (outcome_queue, outcomes) = OutcomeQueue::new();
        let planner = ClaimPlanner::new(&self.options, job_types);
        // Subscribe before the first claim, so that no wake-up is lost in between.
        let wakeups = contexts.source.job_wakeups();
        let application = Handle::try_current().map_err(io::Error::other)?;
        let shared = Arc::new(WorkerShared {
            backend: self.backend,
            slots: SlotPool::new(self.options.concurrency),
            leases: Arc::new(LeaseTable::new(self.options.heartbeat_interval)),
            outcomes: Arc::new(outcome_queue),
            counters: Arc::new(Counters::default()),
            contexts: Arc::new(contexts),
            service,
            heartbeat_now: Notify::new(),
            directive: watch::Sender::new(Directive::Run),
            stop_requested: watch::Sender::new(false),
            ended: watch::Sender::new(false),
            application,
            options: self.options,
        });
        Ok((shared, ControlInputs { outcomes, flush_requests, planner, wakeups }, info))
    }
}

impl std::fmt::Debug for WorkerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerBuilder").field("options", &self.options).finish_non_exhaustive()
    }
}
