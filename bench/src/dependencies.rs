//! Dependencies: how soon a cancelled job cancels a long chain, and how soon a parent unblocks many children.
//!
//! A coordinator runs, because the leader resolves the dependents that the call itself leaves.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use orchestrix_core::{DependsOn, JobId, JobState, NewJob, Queue, WorkerName};
use orchestrix_store::{ClaimRequest, Store};
use tokio::time::sleep;

use crate::{
    arguments::Request,
    backend,
    coordinator::started,
    drain::complete_jobs,
    figure::{Figure, Target},
    jobs::job,
    measure::DatabaseHost,
    progress::Progress,
    report::Row,
    sample::Spread,
};

/// The jobs of a chain, or a parent with its children: as many as one call enqueues.
const JOBS: usize = NewJob::MAX_BATCH;
/// The limit of every wait.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Job `n` of a call, which depends on another job of the call, if any.
fn dependent(n: usize, parent: Option<usize>) -> NewJob {
    let depends_on = parent.map(|parent| DependsOn::Reference(parent.to_string())).into_iter().collect();
    NewJob { reference: Some(n.to_string()), depends_on, ..job(n) }
}

/// Waits until the jobs of the default queue are as expected; returns the time since `begun`.
async fn wait_for(
    store: &Arc<dyn Store>,
    begun: Instant,
    expected: impl Fn(&BTreeMap<JobState, u64>) -> bool,
) -> Result<Duration> {
    loop {
        let counts = store.queue_depth(&Queue::default()).await?.map(|depth| depth.counts).unwrap_or_default();
        if expected(&counts) {
            return Ok(begun.elapsed());
        }
        ensure!(begun.elapsed() < TIMEOUT, "timed out with the jobs {counts:?}");
        sleep(Duration::from_millis(2)).await;
    }
}

/// The call that finished a parent, and the time until its last dependent had followed.
struct Resolution {
    call: Duration,
    last: Duration,
}

/// Measures one figure in as many databases as there are rounds.
async fn resolutions<P: DatabaseHost>(
    host: &P,
    figure: Figure,
    request: &Request,
    progress: &Progress,
    resolve: impl AsyncFn(&Arc<dyn Store>) -> Result<Resolution>,
) -> Result<Vec<Resolution>> {
    let (name, rounds) = (figure.name(), request.rounds);
    let mut resolutions = Vec::new();
    for round in 1..=rounds {
        progress.step(format!("{name}, round {round} of {rounds}"));
        let database = host.create_database().await?;
        let store = backend::open(&database.url).await?;
        let coordinator = started(&store).await?;
        let resolution = resolve(&store).await?;
        coordinator.shutdown().await;
        drop(store);
        host.drop_database(database).await?;
        let Resolution { call, last } = &resolution;
        progress.note(&format!(
            "{name} {round}/{rounds}: the call {:.1} ms, all in {:.1} ms",
            millis(*call),
            millis(*last)
        ));
        progress.done();
        resolutions.push(resolution);
    }
    Ok(resolutions)
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// Measures how fast the cancellation of its head cancels a chain.
pub(crate) async fn chain<P: DatabaseHost>(host: &P, request: &Request, progress: &Progress) -> Result<Row> {
    let levels = request.scale.of(JOBS);
    let cancelled = async |store: &Arc<dyn Store>| cancel_chain(store, levels).await;
    let samples = resolutions(host, Figure::Chain, request, progress, cancelled).await?;
    let speed = Spread::of(samples.iter().map(|chain| levels as f64 / chain.last.as_secs_f64()));
    let call = Spread::of(samples.iter().map(|chain| millis(chain.call)));
    Ok(Row {
        figure: Figure::Chain.name().into(),
        ours: format!("{speed} levels/s, the call {call} ms"),
        ..Row::with_target(Figure::Chain.target(P::BACKEND), speed.median)
    })
}

async fn cancel_chain(store: &Arc<dyn Store>, levels: usize) -> Result<Resolution> {
    let chain = (0..levels).map(|n| dependent(n, n.checked_sub(1))).collect();
    let ids: Vec<JobId> = store.enqueue_jobs(chain).await?.iter().map(|job| job.id).collect();
    let begun = Instant::now();
    store.cancel_job(ids[0]).await?;
    let call = begun.elapsed();
    let last = wait_for(store, begun, BTreeMap::is_empty).await?;
    for some in ids.chunks(1_000) {
        let states = store.job_states(some).await?;
        let cancelled = states.iter().filter(|(_, state)| *state == JobState::Cancelled).count();
        ensure!(cancelled == some.len(), "{cancelled} of {} jobs were cancelled", some.len());
    }
    Ok(Resolution { call, last })
}

/// Measures the call that completes a parent of many children, and how soon all of them are claimable.
pub(crate) async fn fan_out<P: DatabaseHost>(host: &P, request: &Request, progress: &Progress) -> Result<Vec<Row>> {
    let children = request.scale.of(JOBS) - 1;
    let unblocked = async |store: &Arc<dyn Store>| unblock_children(store, children).await;
    let samples = resolutions(host, Figure::FanOut, request, progress, unblocked).await?;
    let row = |name: &str, target: Target, value: fn(&Resolution) -> Duration| {
        let took = Spread::of(samples.iter().map(|sample| millis(value(sample))));
        Row {
            figure: name.into(),
            ours: format!("{} ms", took.with_decimals(1)),
            ..Row::with_target(target, took.median)
        }
    };
    Ok(vec![
        row("fan-out, call", Figure::FanOut.target(P::BACKEND), |sample| sample.call),
        row("fan-out, all claimable", Target::None, |sample| sample.last),
    ])
}

async fn unblock_children(store: &Arc<dyn Store>, children: usize) -> Result<Resolution> {
    let family = (0..=children).map(|n| dependent(n, (n > 0).then_some(0))).collect();
    store.enqueue_jobs(family).await?;
    let request = ClaimRequest::any(WorkerName::trusted("bench"), JOBS);
    let parent = store.claim_jobs(&request).await?;
    ensure!(parent.len() == 1, "{} jobs were claimable before their parent was done", parent.len());
    let begun = Instant::now();
    complete_jobs(store, &parent).await?;
    let call = begun.elapsed();
    let last =
        wait_for(store, begun, |counts| counts.get(&JobState::Pending).is_some_and(|n| *n == children as u64)).await?;
    // They are really claimable, not only counted.
    let claimed = store.claim_jobs(&request).await?.len();
    ensure!(claimed == children, "{claimed} of {children} children were claimable");
    Ok(Resolution { call, last })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependent_names_its_parent_by_reference() {
        assert!(dependent(0, None).depends_on.is_empty());
        let child = dependent(7, Some(6));
        assert_eq!(child.reference.as_deref(), Some("7"));
        assert_eq!(child.depends_on, [DependsOn::Reference("6".into())]);
    }
}
