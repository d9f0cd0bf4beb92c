//! Telling the source how attempts ended, many at a time.
//!
//! Outcomes that come while others are being reported gather for the next call. While the source is away they are kept
//! and sent again with their tokens; whoever reports one waits when too many are kept, so nothing grows without bound.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use orchestrix_core::JobState;
use orchestrix_store::{CommitEffects, FinishError, Outcome, OutcomeReport, StoreError, metrics::RunTimes};
use rand::RngExt;
use tokio::sync::{Mutex, Notify, mpsc};

use crate::{Context, JobSource, guard::guarded, lease::Leases, line::about_job, report, stats::Counters};

/// The most outcomes in one call.
const BATCH: usize = 2_000;
/// The most outcomes that are kept; beyond that, slots wait.
const KEPT: usize = 10_000;
/// The most bytes of results in one call.
const CALL_BYTES: usize = 8 * 1024 * 1024;
/// Calls at the same time.
const CALLS: usize = 2;
/// Jobs whose last lines are written at the same time.
const WRITERS: usize = 16;
/// As many as are told at once, at least, by a source that comes and goes.
const FEW: usize = 100;
/// How long an outcome is told to a source that fails for another reason than being away.
const STUBBORN: Duration = Duration::from_secs(60);

/// Where outcomes are handed in.
pub(crate) struct Completer {
    outcomes: mpsc::Sender<FinishedAttempt>,
    /// Handed in and not yet answered.
    open: AtomicUsize,
    none_open: Notify,
}

/// How one attempt ended; without an outcome there is nothing to tell.
pub(crate) struct FinishedAttempt {
    pub(crate) context: Context,
    pub(crate) outcome: Option<Outcome>,
    /// How long its handler took, if it was begun.
    pub(crate) ran: Option<Duration>,
}

impl Completer {
    pub(crate) fn new() -> (Self, mpsc::Receiver<FinishedAttempt>) {
        let (outcomes, received) = mpsc::channel(KEPT);
        (Self { outcomes, open: AtomicUsize::new(0), none_open: Notify::new() }, received)
    }

    /// Hands in an outcome; waits while too many are kept.
    pub(crate) async fn hand_in(&self, outcome: FinishedAttempt) {
        // Counted once there is room for it: whoever gives up before has handed in nothing.
        if let Ok(place) = self.outcomes.reserve().await {
            self.open.fetch_add(1, Ordering::SeqCst);
            place.send(outcome);
        }
    }

    fn closed(&self, n: usize) {
        if self.open.fetch_sub(n, Ordering::SeqCst) == n {
            self.none_open.notify_waiters();
        }
    }

    /// Outcomes that the source has not answered yet.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Waits until every outcome was answered.
    pub(crate) async fn all_told(&self) {
        loop {
            let told = self.none_open.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            if self.open() == 0 {
                return;
            }
            told.await;
        }
    }
}

/// How an attempt ended, to be told.
struct Ending {
    context: Context,
    outcome: Outcome,
}

impl Ending {
    fn finish(&self) -> OutcomeReport {
        OutcomeReport { token: self.context.lease_token(), outcome: self.outcome.clone() }
    }
}

/// What reporting needs.
pub(crate) struct Reporter {
    pub(crate) source: Arc<dyn JobSource>,
    pub(crate) completer: Arc<Completer>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) counters: Arc<Counters>,
}

impl Reporter {
    /// Reports what is handed in, for as long as anything may be.
    pub(crate) async fn run(self, outcomes: mpsc::Receiver<FinishedAttempt>) {
        let outcomes = Mutex::new(outcomes);
        futures_util::future::join_all((0..CALLS).map(|_| self.report_some(&outcomes))).await;
    }

    async fn report_some(&self, outcomes: &Mutex<mpsc::Receiver<FinishedAttempt>>) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            if outcomes.lock().await.recv_many(&mut batch, BATCH).await == 0 {
                return;
            }
            let talkative = batch.iter().filter(|outcome| outcome.outcome.is_some() && outcome.context.notes().spoke());
            let talkative: Vec<&Context> = talkative.map(|outcome| &outcome.context).collect();
            for some in talkative.chunks(WRITERS) {
                futures_util::future::join_all(some.iter().map(|context| self.write_notes(context))).await;
            }
            count(&batch);
            let items = batch.iter_mut().filter_map(|attempt| {
                let outcome = attempt.outcome.take()?;
                Some(Ending { context: attempt.context.clone(), outcome })
            });
            for items in in_bytes(items.collect()) {
                self.tell(items).await;
            }
            self.leases.remove(batch.iter().map(|outcome| &outcome.context));
            self.completer.closed(batch.len());
            batch.clear();
        }
    }

    // The lines of a job can be written while its lease lasts, so before its end is told.
    async fn write_notes(&self, context: &Context) {
        let mut pause = Pause::default();
        while let Err(error) = report::write(&*self.source, context).await {
            match error {
                StoreError::Unavailable(_) => pause.wait().await,
                error => {
                    about_job!(debug, context, %error, "the last lines of a job were refused");
                    return;
                }
            }
        }
    }

    // Tells until there is an answer. A source that is away is waited for; one that fails otherwise for a while, with fewer at a
    // time, since one outcome may spoil the call for all, or a row that somebody has locked hold all of them up.
    async fn tell(&self, mut items: Vec<Ending>) {
        let mut pause = Pause::default();
        let begun = Instant::now();
        while !items.is_empty() {
            let error = match guarded(self.source.report(items.iter().map(Ending::finish).collect())).await {
                Ok(answers) => {
                    items = self.learn(items, answers);
                    continue;
                }
                Err(error) => error,
            };
            pause.warn_once(&error, items.len());
            let away = matches!(error, StoreError::Unavailable(_));
            if !away && items.len() == 1 && begun.elapsed() > STUBBORN {
                about_job!(error, &items[0].context, %error, "an outcome cannot be told; its lease will run out");
                return;
            }
            pause.wait().await;
            if items.len() > if away { FEW } else { 1 } && pause.tries > 2 {
                let half = items.split_off(items.len() / 2);
                futures_util::future::join(Box::pin(self.tell(items)), Box::pin(self.tell(half))).await;
                return;
            }
        }
    }

    // What was refused for breaking a rule, as plain failures to be told instead.
    fn learn(&self, items: Vec<Ending>, answers: Vec<Result<JobState, FinishError>>) -> Vec<Ending> {
        let mut refused = Vec::new();
        let (mut accepted, mut released) = (0, 0);
        for (item, answer) in items.into_iter().zip(answers) {
            match answer {
                Ok(_) => {
                    accepted += 1;
                    released += u64::from(item.outcome == Outcome::Release);
                }
                Err(FinishError::LeaseLost) => {
                    self.counters.add_stale_rejected(1);
                    about_job!(warn, &item.context, "an outcome came too late: the lease is lost");
                }
                // A failure without a delay breaks no rule; whoever refuses that as well will never take it.
                Err(error) if matches!(item.outcome, Outcome::Fail { retry_after: None, .. }) => {
                    about_job!(error, &item.context, %error, "an outcome is refused; its lease will run out");
                }
                Err(error) => {
                    let error = format!("its outcome was refused: {error}");
                    let outcome = Outcome::Fail { error, retryable: false, retry_after: None };
                    refused.push(Ending { context: item.context, outcome });
                }
            }
        }
        self.counters.add_reported(accepted);
        self.counters.add_released(released);
        refused
    }
}

// Stores count what they commit. What was completed in a transaction of the handler's is no news to them, so it is counted here, as if
// committed: a handler that says that it is done has done so.
fn count(batch: &[FinishedAttempt]) {
    let (mut run_times, mut effects) = (RunTimes::default(), CommitEffects::default());
    for FinishedAttempt { context, outcome, ran } in batch {
        if let Some(ran) = ran {
            run_times.record(context.queue(), context.job_type(), *ran);
        }
        if matches!(outcome, Some(Outcome::Complete { .. })) && context.completion().is_some() {
            effects.jobs_finished(context.queue(), context.job_type(), JobState::Completed, 1);
        }
    }
    effects.record_metrics();
}

// Large results go in calls of their own, so that no call is larger than a source can take.
fn in_bytes(items: Vec<Ending>) -> Vec<Vec<Ending>> {
    let mut calls = vec![Vec::new()];
    let mut bytes = 0;
    for item in items {
        let size = match &item.outcome {
            Outcome::Complete { result: Some(json) } => json.as_str().len(),
            Outcome::Fail { error, .. } => error.len(),
            _ => 0,
        };
        if bytes + size > CALL_BYTES && bytes > 0 {
            calls.push(Vec::new());
            bytes = 0;
        }
        bytes += size;
        calls.last_mut().expect("there is always one").push(item);
    }
    calls
}

/// Growing pauses while the source is away.
struct Pause {
    next: Duration,
    tries: u32,
    warned: bool,
}

impl Default for Pause {
    fn default() -> Self {
        Self { next: Duration::from_millis(50), tries: 0, warned: false }
    }
}

impl Pause {
    async fn wait(&mut self) {
        let pause = self.next.mul_f64(rand::rng().random_range(0.75..=1.0));
        self.tries += 1;
        tokio::time::sleep(pause).await;
        self.next = (self.next * 2).min(Duration::from_secs(1));
    }

    fn warn_once(&mut self, error: &StoreError, outcomes: usize) {
        if !std::mem::replace(&mut self.warned, true) {
            tracing::warn!(%error, outcomes, "outcomes cannot be told now; they are kept and told again");
        }
    }
}
