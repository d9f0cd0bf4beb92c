//! The services of the leader, and the loop that runs a service step by step while this node leads.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use orchestrix_store::{Epoch, Fence, Result, Store, StoreError, SweepTimes};
use tokio::{sync::watch, time::sleep_until};

use crate::{
    jitter::{jittered, retry_backoff},
    leadership::LeadershipTerm,
    options::CoordinatorOptions,
    status::StatusRecorder,
};

/// The result of one step of a service.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepResult {
    /// How many rows the step changed.
    pub(crate) affected: usize,
    /// How long until the next step. `None` waits for the sweep times.
    pub(crate) next_in: Option<Duration>,
}

/// What starts a service's steps.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Trigger {
    /// A due row, whose time this function reads from the sweep times.
    WhenDue(fn(&SweepTimes) -> Option<Duration>),
    /// The service itself: at the beginning of a term, then as each step says.
    Periodic,
}

/// A piece of the leader's work, done in bounded steps.
#[async_trait]
pub(crate) trait Service: Send + Sync {
    /// The service's name in the status and in logs.
    fn name(&self) -> &'static str;

    fn trigger(&self) -> Trigger;

    async fn step(&self, leader: &LeaderContext<'_>) -> Result<StepResult>;

    /// Called when this node stops leading.
    fn stopped_leading(&self) {}
}

/// What a step works with.
pub(crate) struct LeaderContext<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) options: &'a CoordinatorOptions,
    pub(crate) status: &'a StatusRecorder,
    pub(crate) fence: Fence,
}

/// What the loops of all services share.
#[derive(Clone)]
pub(crate) struct ServiceContext {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) options: Arc<CoordinatorOptions>,
    pub(crate) status: Arc<StatusRecorder>,
    pub(crate) term: watch::Receiver<Option<LeadershipTerm>>,
    pub(crate) sweep_times: watch::Receiver<Option<(Instant, SweepTimes)>>,
    /// The epoch in which the store refused a step because another node leads. The campaign then steps down.
    pub(crate) deposed: watch::Sender<Option<Epoch>>,
}

impl ServiceContext {
    /// Waits until this node leads. `None` if the coordinator ends.
    pub(crate) async fn leading(&mut self) -> Option<LeadershipTerm> {
        let term = self.term.wait_for(|term| term.is_some_and(|term| term.is_valid())).await;
        term.ok().and_then(|term| *term)
    }

    fn leads_in(&self, epoch: Epoch) -> bool {
        self.term.borrow().is_some_and(|term| term.is_valid() && term.epoch == epoch)
    }
}

/// Runs `service` whenever this node leads. Returns when the coordinator ends.
pub(crate) async fn run(service: &dyn Service, mut context: ServiceContext) {
    while let Some(term) = context.leading().await {
        run_while_leading(service, &mut context, term.epoch).await;
        service.stopped_leading();
        // The service may have stopped before the campaign stepped down: wait for it.
        let is_over = |now: &Option<LeadershipTerm>| now.is_none_or(|now| now.epoch != term.epoch || !now.is_valid());
        if context.term.wait_for(is_over).await.is_err() {
            return;
        }
        context.status.clear_failures(service.name());
    }
}

/// Runs the steps of one service from the beginning of a leadership to its end.
async fn run_while_leading(service: &dyn Service, context: &mut ServiceContext, epoch: Epoch) {
    let mut backoff = retry_backoff();
    let trigger = service.trigger();
    let mut due = matches!(trigger, Trigger::Periodic).then(Instant::now);
    loop {
        tokio::select! {
            () = sleep_until_due(due) => {}
            changed = context.sweep_times.changed() => {
                if changed.is_err() {
                    return;
                }
                let sweep_times = *context.sweep_times.borrow_and_update();
                if let (Trigger::WhenDue(due_in), Some((read_at, times))) = (trigger, sweep_times) {
                    due = earlier(due, due_in(&times).map(|wait| read_at + wait));
                }
                continue;
            }
            changed = context.term.changed() => {
                if changed.is_err() || !context.leads_in(epoch) {
                    return;
                }
                continue;
            }
        }
        // Check before every step: a suspended process is not notified when its term ends.
        if !context.leads_in(epoch) {
            return;
        }
        let started = Instant::now();
        let lag = due.map_or(Duration::ZERO, |due| started.saturating_duration_since(due));
        let fence = Fence::of(epoch, context.options.transaction_timeout());
        let leader =
            LeaderContext { store: &*context.store, options: &context.options, status: &context.status, fence };
        let result = service.step(&leader).await;
        context.status.record_contact(result.as_ref().map(drop));
        let affected = result.as_ref().map(|step| step.affected);
        context.status.record_step(service.name(), lag, started.elapsed(), affected);
        due = match result {
            Ok(step) => {
                backoff.reset();
                step.next_in.map(|wait| Instant::now() + wait)
            }
            Err(StoreError::Deposed { .. }) => {
                tracing::warn!(service = service.name(), %epoch, "step was fenced: another node leads");
                context.deposed.send_replace(Some(epoch));
                return;
            }
            Err(error) => {
                let pause = jittered(backoff.next_delay());
                tracing::warn!(service = service.name(), %error, retry_in = ?pause, "step failed");
                Some(Instant::now() + pause)
            }
        };
    }
}

fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    [a, b].into_iter().flatten().min()
}

async fn sleep_until_due(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

/// How often the sweep times are read without a wake-up. Less than a second, so that a job with a delay of one second
/// is found in time.
const READ_INTERVAL: Duration = Duration::from_millis(900);

/// How long wake-ups are collected: the sweep times are not read more often, however many jobs are scheduled.
const COLLECT_WAKEUPS: Duration = Duration::from_millis(20);

/// Reads the sweep times while this node leads: periodically, and at once after a wake-up.
pub(crate) async fn watch_sweep_times(
    mut context: ServiceContext,
    sweep_times: watch::Sender<Option<(Instant, SweepTimes)>>,
) {
    let store = Arc::clone(&context.store);
    let mut wakeups = store.timer_wakeups();
    let mut backoff = retry_backoff();
    while context.leading().await.is_some() {
        let read_at = Instant::now();
        let result = store.next_sweep_times().await;
        context.status.record_contact(result.as_ref().map(drop));
        let pause = match result {
            Ok(times) => {
                backoff.reset();
                context.status.record_uptime(times.up);
                sweep_times.send_replace(Some((read_at, times)));
                jittered(READ_INTERVAL)
            }
            Err(error) => {
                tracing::warn!(%error, "reading the sweep times failed");
                jittered(backoff.next_delay())
            }
        };
        // A wake-up during the read is kept; several are handled as one.
        if tokio::time::timeout(pause, wakeups.next()).await.is_ok() {
            tokio::time::sleep(COLLECT_WAKEUPS).await;
            wakeups.drain();
        }
    }
}
