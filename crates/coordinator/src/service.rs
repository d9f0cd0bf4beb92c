//! One piece of leader's work, and the loop that does it step by step while this node leads.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use orchestrix_store::{Epoch, Fence, Result, Store, StoreError, SweepTimes};
use tokio::{sync::watch, time::sleep_until};

use crate::{
    leadership::Reign,
    options::CoordinatorOptions,
    pace::{BackOff, jittered},
    status::Board,
};

/// What a step came to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// How many it moved.
    pub(crate) moved: usize,
    /// How long until the next step; `None` waits for the agenda.
    pub(crate) next: Option<Duration>,
}

/// What tells a service when to begin.
#[derive(Debug, Clone, Copy)]
pub(crate) enum When {
    /// The agenda, by this line of it.
    SweepTimes(fn(&SweepTimes) -> Option<Duration>),
    /// Itself: at the beginning of a reign, and then as each step says.
    Period,
}

/// A bounded piece of work, repeated.
#[async_trait]
pub(crate) trait Service: Send + Sync {
    /// What it is called in status and metrics.
    fn name(&self) -> &'static str;

    /// What tells it when to begin.
    fn when(&self) -> When;

    /// Does a bounded part.
    async fn step(&self, leader: &Leader<'_>) -> Result<Step>;

    /// This node leads no longer.
    fn rest(&self) {}
}

/// What a step works with.
pub(crate) struct Leader<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) options: &'a CoordinatorOptions,
    pub(crate) board: &'a Board,
    pub(crate) fence: Fence,
}

/// What all services share.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) options: Arc<CoordinatorOptions>,
    pub(crate) board: Arc<Board>,
    pub(crate) reign: watch::Receiver<Option<Reign>>,
    pub(crate) agenda: watch::Receiver<Option<(Instant, SweepTimes)>>,
    /// Tells the candidacy in which epoch the store refused something that this node did.
    pub(crate) deposed: watch::Sender<Option<Epoch>>,
}

impl Context {
    /// Waits until this node leads.
    pub(crate) async fn reign(&mut self) -> Option<Reign> {
        let reign = self.reign.wait_for(|reign| reign.is_some_and(|reign| reign.is_current())).await;
        reign.ok().and_then(|reign| *reign)
    }

    fn current(&self) -> Option<Reign> {
        (*self.reign.borrow()).filter(Reign::is_current)
    }
}

/// Runs `service` whenever this node leads; ends when the coordinator does.
pub(crate) async fn run(service: &dyn Service, mut context: Context) {
    while let Some(reign) = context.reign().await {
        reigning(service, &mut context, reign).await;
        service.rest();
        // Whatever ended it here, it is over when the candidacy says so.
        let over = |now: &Option<Reign>| now.is_none_or(|now| now.epoch != reign.epoch || !now.is_current());
        if context.reign.wait_for(over).await.is_err() {
            return;
        }
        context.board.rests(service.name());
    }
}

// From the beginning of a reign to its end.
async fn reigning(service: &dyn Service, context: &mut Context, reign: Reign) {
    let mut back_off = BackOff::new();
    let when = service.when();
    let mut due = matches!(when, When::Period).then(Instant::now);
    loop {
        tokio::select! {
            () = sleep_until_due(due) => {}
            changed = context.agenda.changed() => {
                if changed.is_err() {
                    return;
                }
                if let (When::SweepTimes(line), Some((at, agenda))) = (when, *context.agenda.borrow_and_update()) {
                    due = earlier(due, line(&agenda).map(|wait| at + wait));
                }
                continue;
            }
            changed = context.reign.changed() => {
                if changed.is_err() || context.current().is_none_or(|current| current.epoch != reign.epoch) {
                    return;
                }
                continue;
            }
        }
        // The end of a term is not announced to a node that was stopped: look before every step.
        if context.current().is_none_or(|current| current.epoch != reign.epoch) {
            return;
        }
        let begun = Instant::now();
        let lag = due.map_or(Duration::ZERO, |due| begun.saturating_duration_since(due));
        let fence = Fence::of(reign.epoch, context.options.patience());
        let leader = Leader { store: &*context.store, options: &context.options, board: &context.board, fence };
        let answer = service.step(&leader).await;
        context.board.contact(answer.as_ref().map(drop));
        context.board.ran(service.name(), lag, begun.elapsed(), answer.as_ref().map(|step| step.moved));
        due = match answer {
            Ok(step) => {
                back_off.succeeded();
                step.next.map(|wait| Instant::now() + wait)
            }
            Err(StoreError::Deposed { .. }) => {
                tracing::warn!(service = service.name(), epoch = %reign.epoch, "refused: another node leads");
                context.deposed.send_replace(Some(reign.epoch));
                return;
            }
            Err(error) => {
                let pause = back_off.failed();
                tracing::warn!(service = service.name(), %error, retry_in = ?pause, "a step failed");
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

/// How often the agenda is read when nothing says that it changed: a job put off by a second is still known in time.
const LOOK: Duration = Duration::from_millis(900);

/// How long hints gather: however many jobs begin to wait, the agenda is not read more often than this.
const GATHER: Duration = Duration::from_millis(20);

/// Reads the agenda while this node leads: often enough, and at once when a hint says that something was put on it.
pub(crate) async fn read_agenda(mut context: Context, agenda: watch::Sender<Option<(Instant, SweepTimes)>>) {
    let store = Arc::clone(&context.store);
    let mut timers = store.timer_wakeups();
    let mut back_off = BackOff::new();
    while context.reign().await.is_some() {
        let begun = Instant::now();
        let answer = store.next_sweep_times().await;
        context.board.contact(answer.as_ref().map(drop));
        let pause = match answer {
            Ok(read) => {
                back_off.succeeded();
                context.board.up(read.up);
                agenda.send_replace(Some((begun, read)));
                jittered(LOOK)
            }
            Err(error) => {
                tracing::warn!(%error, "could not read the agenda");
                back_off.failed()
            }
        };
        // A hint that came while the agenda was read is kept; several at once are one.
        if tokio::time::timeout(pause, timers.next()).await.is_ok() {
            tokio::time::sleep(GATHER).await;
            timers.drain();
        }
    }
}
