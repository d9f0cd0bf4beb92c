//! Telling the source how attempts ended, many at a time.
//!
//! Outcomes that come while others are being reported gather for the next call. While the source is away they are kept
//! and sent again with their tokens; whoever reports one waits when too many are kept, so nothing grows without bound.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use orchestrix_store::{Finish, FinishError, StoreError, Verdict};
use rand::RngExt;
use tokio::sync::{Mutex, Notify, mpsc, watch};

use crate::{Context, JobSource, lease::Leases, report, stats::Counters};

/// The most outcomes in one call.
const BATCH: usize = 2_000;
/// The most outcomes that are kept; beyond that, slots wait.
const KEPT: usize = 10_000;
/// Calls at the same time.
const CALLS: usize = 2;

/// Where outcomes are handed in.
pub(crate) struct Completer {
    outcomes: mpsc::Sender<Outcome>,
    /// Handed in and not yet answered.
    open: AtomicUsize,
    none_open: Notify,
}

/// How one attempt ended; without a verdict there is nothing to tell.
pub(crate) struct Outcome {
    pub(crate) context: Context,
    pub(crate) verdict: Option<Verdict>,
}

impl Completer {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Outcome>) {
        let (outcomes, received) = mpsc::channel(KEPT);
        (Self { outcomes, open: AtomicUsize::new(0), none_open: Notify::new() }, received)
    }

    /// Hands in an outcome; waits while too many are kept.
    pub(crate) async fn hand_in(&self, outcome: Outcome) {
        self.open.fetch_add(1, Ordering::SeqCst);
        if self.outcomes.send(outcome).await.is_err() {
            self.closed(1);
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

/// What reporting needs.
pub(crate) struct Reporter {
    pub(crate) source: Arc<dyn JobSource>,
    pub(crate) completer: Arc<Completer>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) counters: Arc<Counters>,
    /// Becomes true when nobody will wait for outcomes any more.
    pub(crate) give_up: watch::Receiver<bool>,
}

impl Reporter {
    /// Reports what is handed in, until told to give up.
    pub(crate) async fn run(self, outcomes: mpsc::Receiver<Outcome>) {
        let outcomes = Mutex::new(outcomes);
        let calls = (0..CALLS).map(|_| self.report_some(&outcomes));
        let mut give_up = self.give_up.clone();
        tokio::select! {
            _ = futures_util::future::join_all(calls) => {}
            // An error means that the worker is gone.
            _ = give_up.wait_for(|give_up| *give_up) => {}
        }
    }

    async fn report_some(&self, outcomes: &Mutex<mpsc::Receiver<Outcome>>) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            if outcomes.lock().await.recv_many(&mut batch, BATCH).await == 0 {
                return;
            }
            for outcome in &batch {
                if outcome.verdict.is_some() && outcome.context.notes().waiting() {
                    self.write_notes(&outcome.context).await;
                }
            }
            let items = batch.iter_mut().filter_map(|outcome| {
                let verdict = outcome.verdict.take()?;
                Some(Finish { token: outcome.context.lease_token(), verdict })
            });
            self.tell(items.collect()).await;
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
                    tracing::debug!(job = %context.id(), %error, "the last lines of a job were refused");
                    return;
                }
            }
        }
    }

    async fn tell(&self, items: Vec<Finish>) {
        if items.is_empty() {
            return;
        }
        let mut pause = Pause::default();
        loop {
            match self.source.report(items.clone()).await {
                Ok(answers) => return self.learn(items, answers).await,
                Err(StoreError::Unavailable(error)) => {
                    pause.warn_once(&error, items.len());
                    pause.wait().await;
                }
                // One of them spoils the call for all: each gets one of its own.
                Err(error) if items.len() > 1 => {
                    tracing::warn!(%error, outcomes = items.len(), "outcomes are reported one by one");
                    for item in items {
                        Box::pin(self.tell(vec![item])).await;
                    }
                    return;
                }
                Err(error) => {
                    tracing::error!(job = %items[0].token.job, %error, "an outcome cannot be reported; its lease will run out");
                    return;
                }
            }
        }
    }

    async fn learn(&self, items: Vec<Finish>, answers: Vec<Result<orchestrix_core::JobState, FinishError>>) {
        let mut refused = Vec::new();
        let (mut accepted, mut released) = (0, 0);
        for (item, answer) in items.into_iter().zip(answers) {
            match answer {
                Ok(_) => {
                    accepted += 1;
                    released += u64::from(item.verdict == Verdict::Release);
                }
                Err(FinishError::LeaseLost) => {
                    self.counters.add_stale_rejected(1);
                    tracing::warn!(job = %item.token.job, "an outcome came too late: the lease is lost");
                }
                Err(error) => {
                    let error = format!("its outcome was refused: {error}");
                    let verdict = Verdict::Fail { error, retryable: false, retry_after: None };
                    refused.push(Finish { token: item.token, verdict });
                }
            }
        }
        self.counters.add_reported(accepted);
        self.counters.add_released(released);
        if !refused.is_empty() {
            // A plain failure breaks no rule, so this ends.
            Box::pin(self.tell(refused)).await;
        }
    }
}

/// Growing pauses while the source is away.
struct Pause {
    next: Duration,
    warned: bool,
}

impl Default for Pause {
    fn default() -> Self {
        Self { next: Duration::from_millis(50), warned: false }
    }
}

impl Pause {
    async fn wait(&mut self) {
        let pause = self.next.mul_f64(rand::rng().random_range(0.75..=1.0));
        tokio::time::sleep(pause).await;
        self.next = (self.next * 2).min(Duration::from_secs(1));
    }

    fn warn_once(&mut self, error: &str, outcomes: usize) {
        if !std::mem::replace(&mut self.warned, true) {
            tracing::warn!(%error, outcomes, "outcomes cannot be reported now; they are kept and sent again");
        }
    }
}
