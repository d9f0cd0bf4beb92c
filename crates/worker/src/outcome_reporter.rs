//! Reporting outcomes to the source, in batches.
//!
//! Outcomes that arrive while all calls are in flight form the next batch. While the source is unavailable, the
//! reporter keeps outcomes and sends them again with the same lease tokens. The queue is bounded: when it is full,
//! slots wait to submit.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use orchestrix_core::{Backoff, JobState};
use orchestrix_store::{CommitEffects, FinishError, Outcome, OutcomeReport, StoreError, metrics::RunTimes};
use tokio::sync::{Mutex, Notify, mpsc};

use crate::{
    Context, JobSource, catch_panic::catch_panic, job_event::job_event, lease::LeaseTable, log_writer, stats::Counters,
};

/// The maximum number of outcomes in one call.
const MAX_BATCH: usize = 2_000;
/// The maximum number of queued outcomes; slots wait beyond that.
const MAX_QUEUED: usize = 10_000;
/// The maximum number of result bytes in one call.
const MAX_CALL_BYTES: usize = 8 * 1024 * 1024;
/// The number of concurrent calls.
const CONCURRENT_CALLS: usize = 2;
/// The number of jobs whose last log lines are written concurrently.
const CONCURRENT_LOG_WRITES: usize = 16;
/// The size below which a batch is not split while the source is unavailable.
const MIN_SPLIT: usize = 100;
/// How long to retry a single outcome that fails although the source is available.
const GIVE_UP_AFTER: Duration = Duration::from_secs(60);

/// The queue in which slots submit the outcomes of their attempts.
pub(crate) struct OutcomeQueue {
    sender: mpsc::Sender<FinishedAttempt>,
    /// Submitted and not yet reported.
    unreported: AtomicUsize,
    all_reported: Notify,
}

/// An attempt that has ended. No `outcome` means that there is nothing to report: the lease is lost.
pub(crate) struct FinishedAttempt {
    pub(crate) context: Context,
    pub(crate) outcome: Option<Outcome>,
    /// How long the handler ran, if it was started.
    pub(crate) ran: Option<Duration>,
}

impl OutcomeQueue {
    pub(crate) fn new() -> (Self, mpsc::Receiver<FinishedAttempt>) {
        let (sender, receiver) = mpsc::channel(MAX_QUEUED);
        (Self { sender, unreported: AtomicUsize::new(0), all_reported: Notify::new() }, receiver)
    }

    /// Submits an outcome. Waits while the queue is full.
    pub(crate) async fn submit(&self, attempt: FinishedAttempt) {
        // Count only after reserving room: a caller that is dropped before that has submitted nothing.
        if let Ok(permit) = self.sender.reserve().await {
            self.unreported.fetch_add(1, Ordering::SeqCst);
            permit.send(attempt);
        }
    }

    fn mark_reported(&self, n: usize) {
        if self.unreported.fetch_sub(n, Ordering::SeqCst) == n {
            self.all_reported.notify_waiters();
        }
    }

    /// The number of submitted outcomes that the source has not accepted or refused yet.
    pub(crate) fn unreported(&self) -> usize {
        self.unreported.load(Ordering::SeqCst)
    }

    /// Waits until every submitted outcome is reported.
    pub(crate) async fn wait_reported(&self) {
        loop {
            let all_reported = self.all_reported.notified();
            tokio::pin!(all_reported);
            all_reported.as_mut().enable();
            if self.unreported() == 0 {
                return;
            }
            all_reported.await;
        }
    }
}

/// An outcome that is about to be reported.
struct PendingReport {
    context: Context,
    outcome: Outcome,
}

impl PendingReport {
    fn request(&self) -> OutcomeReport {
        OutcomeReport { token: self.context.lease_token(), outcome: self.outcome.clone() }
    }
}

/// Takes outcomes from the queue and reports them.
pub(crate) struct OutcomeReporter {
    pub(crate) source: Arc<dyn JobSource>,
    pub(crate) queue: Arc<OutcomeQueue>,
    pub(crate) leases: Arc<LeaseTable>,
    pub(crate) counters: Arc<Counters>,
}

impl OutcomeReporter {
    /// Reports outcomes until the queue is closed.
    pub(crate) async fn run(self, attempts: mpsc::Receiver<FinishedAttempt>) {
        let attempts = Mutex::new(attempts);
        futures_util::future::join_all((0..CONCURRENT_CALLS).map(|_| self.report_batches(&attempts))).await;
    }

    async fn report_batches(&self, attempts: &Mutex<mpsc::Receiver<FinishedAttempt>>) {
        let mut batch = Vec::with_capacity(MAX_BATCH);
        loop {
            if attempts.lock().await.recv_many(&mut batch, MAX_BATCH).await == 0 {
                return;
            }
            let logged = batch.iter().filter(|attempt| attempt.outcome.is_some() && attempt.context.logs().was_used());
            let logged: Vec<&Context> = logged.map(|attempt| &attempt.context).collect();
            for contexts in logged.chunks(CONCURRENT_LOG_WRITES) {
                futures_util::future::join_all(contexts.iter().map(|context| self.write_last_logs(context))).await;
            }
            record_metrics(&batch);
            let reports = batch.iter_mut().filter_map(|attempt| {
                let outcome = attempt.outcome.take()?;
                Some(PendingReport { context: attempt.context.clone(), outcome })
            });
            for reports in split_by_bytes(reports.collect()) {
                self.report(reports).await;
            }
            self.leases.remove(batch.iter().map(|attempt| &attempt.context));
            self.queue.mark_reported(batch.len());
            batch.clear();
        }
    }

    /// Writes the log lines that are still buffered. They need a valid lease, so they go before the outcome.
    async fn write_last_logs(&self, context: &Context) {
        let mut backoff = ReportBackoff::default();
        while let Err(error) = log_writer::write(&*self.source, context).await {
            match error {
                StoreError::Unavailable(_) => backoff.wait().await,
                error => {
                    job_event!(debug, context, %error, "last log lines were refused");
                    return;
                }
            }
        }
    }

    /// Reports outcomes, and retries until the source accepts or refuses each.
    ///
    /// An unavailable source is retried without limit. Other errors are retried in ever smaller batches for a while,
    /// because one bad outcome may fail the call for all, and one locked row may block all.
    async fn report(&self, mut reports: Vec<PendingReport>) {
        let mut backoff = ReportBackoff::default();
        let started = Instant::now();
        while !reports.is_empty() {
            let requests = reports.iter().map(PendingReport::request).collect();
            let error = match catch_panic(self.source.finish_attempts(requests)).await {
                Ok(results) => {
                    reports = self.apply_results(reports, results);
                    continue;
                }
                Err(error) => error,
            };
            backoff.warn_once(&error, reports.len());
            let unavailable = matches!(error, StoreError::Unavailable(_));
            if !unavailable && reports.len() == 1 && started.elapsed() > GIVE_UP_AFTER {
                job_event!(error, &reports[0].context, %error, "outcome could not be reported; its lease expires");
                return;
            }
            backoff.wait().await;
            if reports.len() > if unavailable { MIN_SPLIT } else { 1 } && backoff.attempts > 2 {
                let second_half = reports.split_off(reports.len() / 2);
                let (first, second) = (Box::pin(self.report(reports)), Box::pin(self.report(second_half)));
                futures_util::future::join(first, second).await;
                return;
            }
        }
    }

    /// Counts accepted and refused outcomes. Returns those that broke a rule, each turned into a plain failure to
    /// report instead.
    fn apply_results(
        &self,
        reports: Vec<PendingReport>,
        results: Vec<Result<JobState, FinishError>>,
    ) -> Vec<PendingReport> {
        let mut replacements = Vec::new();
        let (mut accepted, mut released) = (0, 0);
        for (report, result) in reports.into_iter().zip(results) {
            match result {
                Ok(_) => {
                    accepted += 1;
                    released += u64::from(report.outcome == Outcome::Release);
                }
                Err(FinishError::LeaseLost) => {
                    self.counters.add_stale_rejected(1);
                    job_event!(warn, &report.context, "outcome was refused: the lease is lost");
                }
                // A failure without a delay breaks no rule. A source that refuses it will never accept it.
                Err(error) if matches!(report.outcome, Outcome::Fail { retry_after: None, .. }) => {
                    job_event!(error, &report.context, %error, "outcome was refused; its lease expires");
                }
                Err(error) => {
                    let error = format!("the outcome was refused: {error}");
                    let outcome = Outcome::Fail { error, retryable: false, retry_after: None };
                    replacements.push(PendingReport { context: report.context, outcome });
                }
            }
        }
        self.counters.add_reported(accepted);
        self.counters.add_released(released);
        replacements
    }
}

/// Records how long handlers ran, and counts jobs that were completed in the handler's own transaction.
///
/// The store counts what it commits itself. It sees those completions only as repeats, so they are counted here.
fn record_metrics(batch: &[FinishedAttempt]) {
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

/// Splits reports so that no call carries more than [`MAX_CALL_BYTES`], except for a single larger report.
fn split_by_bytes(reports: Vec<PendingReport>) -> Vec<Vec<PendingReport>> {
    let mut calls = vec![Vec::new()];
    let mut bytes = 0;
    for report in reports {
        let size = match &report.outcome {
            Outcome::Complete { result: Some(json) } => json.as_str().len(),
            Outcome::Fail { error, .. } => error.len(),
            _ => 0,
        };
        if bytes + size > MAX_CALL_BYTES && bytes > 0 {
            calls.push(Vec::new());
            bytes = 0;
        }
        bytes += size;
        calls.last_mut().expect("`calls` starts with one element and never shrinks").push(report);
    }
    calls
}

/// Growing pauses between calls that fail, and one warning for all of them.
struct ReportBackoff {
    backoff: Backoff,
    attempts: u32,
    warned: bool,
}

impl Default for ReportBackoff {
    fn default() -> Self {
        let backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));
        Self { backoff, attempts: 0, warned: false }
    }
}

impl ReportBackoff {
    async fn wait(&mut self) {
        self.attempts += 1;
        let pause = self.backoff.next_jittered(&mut rand::rng());
        tokio::time::sleep(pause).await;
    }

    fn warn_once(&mut self, error: &StoreError, outcomes: usize) {
        if !std::mem::replace(&mut self.warned, true) {
            tracing::warn!(%error, outcomes, "outcomes could not be reported; retrying");
        }
    }
}
