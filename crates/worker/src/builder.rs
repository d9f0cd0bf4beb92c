//! Putting a worker together.

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
    Answer, Call, Context, Drained, Handlers, JobError, JobResult, JobSource, Run, RunBlocking, StoreSource, Worker,
    blocking::Pool,
    complete::Completer,
    execute::Stack,
    fetch::Demand,
    floor::Floor,
    handler::{self, Handler},
    keeper::{Keeper, Role},
    lease::Leases,
    options::{TraceTie, WorkerOptions},
    report::Desk,
    state::States,
    stats::Counters,
    worker::{Parts, Shop},
};

/// Why a worker could not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// A setting breaks a rule; every bad one is named.
    #[error("the worker cannot start: {0}")]
    Invalid(#[from] Invalid),
    /// The store refused.
    #[error("the worker cannot start: {0}")]
    Store(#[from] StoreError),
    /// The system refused a thread or a signal.
    #[error("the worker cannot start: {0}")]
    System(#[from] io::Error),
}

type Blocking = fn(Arc<Pool>) -> Handler;
type Change = Box<dyn FnOnce(&mut CoordinatorOptions) + Send>;
type Wrap = Box<dyn FnOnce(Stack) -> Stack + Send>;

/// Puts a worker together. Made by [`Worker::builder`].
pub struct WorkerBuilder {
    source: Arc<dyn JobSource>,
    options: WorkerOptions,
    handlers: BTreeMap<JobType, Handler>,
    blocking: Vec<(JobType, Blocking)>,
    layers: Vec<Wrap>,
    states: States,
    coordinator: Option<Change>,
    errors: Vec<FieldError>,
}

impl Worker {
    /// A worker on the store of this client. It also takes part in leading, unless told otherwise.
    pub fn builder(client: &Client) -> WorkerBuilder {
        Self::over(Arc::new(StoreSource::new(Arc::clone(client.store()))))
    }

    /// A worker over any source of jobs.
    pub fn over(source: Arc<dyn JobSource>) -> WorkerBuilder {
        WorkerBuilder {
            source,
            options: WorkerOptions::new(),
            handlers: BTreeMap::new(),
            blocking: Vec::new(),
            layers: Vec::new(),
            states: States::default(),
            coordinator: Some(Box::new(|_| {})),
            errors: Vec::new(),
        }
    }
}

impl WorkerBuilder {
    fn know(&mut self, job_type: &str) -> Option<JobType> {
        match JobType::new(job_type) {
            Ok(name) if self.handlers.contains_key(&name) || self.blocking.iter().any(|(known, _)| *known == name) => {
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

    /// Runs jobs of type `J`, whose work blocks, on threads of their own.
    #[must_use]
    pub fn blocking_job<J: RunBlocking>(mut self) -> Self {
        if let Some(name) = self.know(J::TYPE) {
            self.blocking.push((name, handler::blocking::<J>));
        }
        self
    }

    /// Runs jobs of type `J` with a function, where the type itself does not say how.
    #[must_use]
    pub fn handler<J, F, W>(mut self, function: F) -> Self
    where
        J: Job,
        F: Fn(J, Context) -> W + Send + Sync + 'static,
        W: Future<Output = JobResult<J::Output>> + Send + 'static,
    {
        if let Some(name) = self.know(J::TYPE) {
            self.handlers.insert(name, handler::of_function(function));
        }
        self
    }

    /// Runs jobs of the named type with a function of their plain payload.
    #[must_use]
    pub fn raw_handler<F, W>(mut self, job_type: &str, function: F) -> Self
    where
        F: Fn(Call) -> W + Send + Sync + 'static,
        W: Future<Output = Answer> + Send + 'static,
    {
        if let Some(name) = self.know(job_type) {
            self.handlers.insert(name, handler::raw(function));
        }
        self
    }

    /// Shares a value with all handlers, which find it by its type with [`Context::state`].
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.states.put(value);
        self
    }

    /// Wraps middleware around every handler. What is added later is further outside; leases, outcomes and the catching of
    /// panics are outside of all.
    #[must_use]
    pub fn layer<L, S>(mut self, layer: L) -> Self
    where
        L: Layer<Stack, Service = S> + Send + 'static,
        S: Service<Call, Response = Option<Json>> + Clone + Send + Sync + 'static,
        S::Error: Into<JobError>,
        S::Future: Send + 'static,
    {
        self.layers.push(Box::new(move |stack| BoxCloneSyncService::new(layer.layer(stack).map_err(Into::into))));
        self
    }

    /// Its name in the list of workers; by default the machine's and something random. Of two live workers with one name
    /// each counts as the other.
    #[must_use]
    pub fn name(mut self, name: impl AsRef<str>) -> Self {
        match WorkerName::new(name) {
            Ok(name) => self.options.name = name,
            Err(error) => self.errors.push(error),
        }
        self
    }

    /// Serves this queue. Said of none, it serves all; said of several, the most urgent job of all goes first.
    #[must_use]
    pub fn queue(mut self, queue: impl AsRef<str>) -> Self {
        self.serve(queue, None);
        self
    }

    /// Serves this queue with a weight: while all have jobs, each gets a share by its weight, whatever is more urgent. What one
    /// does not need goes to the others. A queue without a weight counts as one of 1 beside others that have one.
    #[must_use]
    pub fn weighted_queue(mut self, queue: impl AsRef<str>, weight: u32) -> Self {
        self.serve(queue, Some(weight));
        self
    }

    fn serve(&mut self, queue: impl AsRef<str>, weight: Option<u32>) {
        match Queue::new(queue) {
            Ok(queue) => {
                self.options.queues.retain(|(known, _)| *known != queue);
                self.options.queues.push((queue, weight));
            }
            Err(error) => self.errors.push(error),
        }
    }

    /// How many jobs run at once; 10 by default.
    #[must_use]
    pub fn concurrency(mut self, jobs: usize) -> Self {
        self.options.concurrency = jobs;
        self
    }

    /// The most jobs that are held ready beyond those that run. Only as many are held as will be begun within a tenth of a
    /// second at the present pace.
    #[must_use]
    pub fn prefetch(mut self, jobs: usize) -> Self {
        self.options.prefetch = jobs;
        self
    }

    /// How often the worker shows that it lives, and at least how often it renews leases; 10 s by default. Leases shorter
    /// than three times this are renewed in time too.
    #[must_use]
    pub fn heartbeat_interval(mut self, interval: Duration) -> Self {
        self.options.heartbeat_interval = interval;
        self
    }

    /// The longest it waits before it looks for jobs without a hint; 1 s by default.
    #[must_use]
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.options.poll_interval = interval;
        self
    }

    /// How long handlers may go on after a shutdown has begun; 30 s by default. What follows, telling the last outcomes and taking
    /// leave, takes a moment if the database is there, and some seconds more if it is not.
    #[must_use]
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.options.drain_timeout = timeout;
        self
    }

    /// Ties the spans of jobs to their traces, for whoever exports them; by default the spans are only there for logs.
    #[must_use]
    pub fn trace_tie(mut self, tie: TraceTie) -> Self {
        self.options.trace_tie = Some(tie);
        self
    }

    /// How long a handler that was asked to stop gets before it is dropped; 5 s by default. A handler that never awaits
    /// cannot be dropped: it keeps its slot until it returns.
    #[must_use]
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.options.cancel_grace = grace;
        self
    }

    /// Takes no part in leading. Then somebody else must: without a leader nothing is retried, delayed or taken back.
    #[must_use]
    pub fn no_coordinator(mut self) -> Self {
        self.coordinator = None;
        self
    }

    /// Changes the settings of the coordinator within.
    #[must_use]
    pub fn coordinator(mut self, change: impl FnOnce(&mut CoordinatorOptions) + Send + 'static) -> Self {
        self.coordinator = Some(Box::new(change));
        self
    }

    /// Starts to work; handlers run on the runtime of whoever calls. The source need not be there yet: it is waited for.
    pub fn start(mut self) -> Result<Worker, WorkerError> {
        let coordinator = self.coordinator_options()?;
        let (shop, parts, mut info) = self.build()?;
        // Whoever set how long a silent one is still listed meant this one too.
        info.dead_after = coordinator.as_ref().map(|options| options.dead_after).or(info.dead_after);
        let keeper = Keeper::start(Arc::clone(&shop), parts, Role { info, coordinator })?;
        Ok(Worker { shop, keeper: Some(keeper) })
    }

    /// Starts, works until SIGTERM or SIGINT, and shuts down. `None` after a second signal.
    pub async fn run(self) -> Result<Option<Drained>, WorkerError> {
        Ok(self.start()?.run_until_signal().await?)
    }

    fn coordinator_options(&mut self) -> Result<Option<CoordinatorOptions>, WorkerError> {
        let Some(change) = self.coordinator.take() else { return Ok(None) };
        let node = NodeInfo {
            name: NodeName::new(self.options.name.as_str()).map_err(Invalid::from)?,
            address: None,
            roles: vec!["worker".into(), "coordinator".into()],
        };
        let mut options = CoordinatorOptions::new(node);
        options.heartbeat = self.options.heartbeat_interval;
        options.dead_after = options.dead_after.max(3 * options.heartbeat);
        change(&mut options);
        options.validate().map_err(Invalid::from)?;
        Ok(Some(options))
    }

    pub(crate) fn build(mut self) -> Result<(Arc<Shop>, Parts, WorkerInfo), WorkerError> {
        let mut errors = std::mem::take(&mut self.errors);
        if let Err(invalid) = self.options.check() {
            errors.extend(invalid.errors);
        }
        let known = self.handlers.len() + self.blocking.len();
        if known == 0 {
            errors.push(FieldError::new("jobTypes", "a worker needs at least one handler, as in .job::<SendEmail>()"));
        }
        if known > ClaimRequest::MAX_NAMES {
            errors.push(FieldError::new("jobTypes", format!("may be at most {}", ClaimRequest::MAX_NAMES)));
        }
        Invalid::check(errors)?;
        if !self.blocking.is_empty() {
            let pool = Arc::new(Pool::new(self.options.concurrency)?);
            for (name, handler) in self.blocking {
                self.handlers.insert(name, handler(Arc::clone(&pool)));
            }
        }
        let handlers = Handlers::new(self.handlers);
        let job_types: Vec<JobType> = handlers.job_types().cloned().collect();
        let info = WorkerInfo {
            name: self.options.name.clone(),
            queues: self.options.served(),
            job_types: Some(job_types.clone()),
            concurrency: u32::try_from(self.options.concurrency).unwrap_or(u32::MAX),
            instance: Some(Instance::trusted(&format!("{:032x}", rand::random::<u128>()))),
            dead_after: Some(WorkerInfo::dead_after(self.options.heartbeat_interval)),
        };
        let stack = self.layers.into_iter().fold(BoxCloneSyncService::new(handlers), |stack, wrap| wrap(stack));
        let (desk, announcements) = Desk::new(Arc::clone(&self.source));
        let (completer, outcomes) = Completer::new();
        let completer = Arc::new(completer);
        let leases = Arc::new(Leases::new(self.options.heartbeat_interval));
        let counters = Arc::new(Counters::default());
        let demand = Demand::new(&self.options, job_types);
        // Subscribed before the first look, so that no hint is lost in between.
        let wakeups = self.source.wakeups();
        let application = Handle::try_current().map_err(io::Error::other)?;
        let shop = Arc::new(Shop {
            source: self.source,
            floor: Floor::new(self.options.concurrency),
            leases,
            completer,
            counters,
            desk: Arc::new(desk),
            states: Arc::new(self.states),
            stack,
            news: Notify::new(),
            directive: watch::Sender::new(Directive::Run),
            told_to_stop: watch::Sender::new(false),
            ended: watch::Sender::new(false),
            application,
            options: self.options,
        });
        Ok((shop, Parts { outcomes, announcements, demand, wakeups }, info))
    }
}

impl std::fmt::Debug for WorkerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerBuilder").field("options", &self.options).finish_non_exhaustive()
    }
}
