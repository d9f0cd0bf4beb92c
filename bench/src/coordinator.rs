//! The speed and punctuality of a running coordinator, and its cost for others.
//!
//! Times come from the store's clock, which is this machine's: the server is private and local.

use std::{
    fs,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use orchestrix_coordinator::{Coordinator, CoordinatorOptions, ServiceStatus};
use orchestrix_core::{NewJob, NodeName, Queue, Start, Timestamp, WorkerName};
use orchestrix_store::{ClaimRequest, NodeInfo, Outcome, OutcomeReport, Queues, Store};
use tokio::{sync::mpsc, task::JoinSet, time::sleep};

use crate::{
    arguments::{Request, Scale},
    backend::{self, Backend},
    drain::{CLAIMERS, complete_jobs, drain, warm},
    figure::{Figure, Target},
    jobs::{fill, job},
    measure::{Database, DatabaseHost},
    postgres::Server,
    progress::Progress,
    report::Row,
    sample::{Spread, thousands},
};

/// Jobs per claim.
const BATCH: usize = Backend::Postgres.batch();
/// The limit of every wait.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Jobs that become due at the same time.
const DUE: usize = 100_000;
/// Jobs of another queue that are drained meanwhile; if they run out, the rest of the time is not measured.
const PENDING: usize = 3 * DUE;
/// Jobs that the coordinator promotes in one step.
const STEP_SIZE: usize = 2_000;
/// Steps allowed besides full ones: those that are too early or find nothing left.
const EXTRA_STEPS: usize = 5;

/// Delayed jobs, one after the other.
const DELAYED_JOBS: usize = 300;
const DELAY: Duration = Duration::from_secs(1);
/// The worker's poll interval. A lost wake-up shows as a latency of this length, or of the pause between two jobs,
/// which is longer than the target for that reason.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How long idle nodes are observed, in seconds, and the time before: an idle session reports the commits of its
/// start up to ten seconds late.
const IDLE: usize = 20;
const SETTLING: Duration = Duration::from_secs(12);
const NODES: usize = 3;

/// Leases of a worker that died.
const LEASES: usize = 10_000;
/// As long as the grace period after a start of the database, so that none is left on a new server.
const LEASE: Duration = Duration::from_secs(10);

/// Starts a coordinator.
fn start(store: &Arc<dyn Store>, name: &str) -> Result<Coordinator> {
    let node = NodeInfo { name: NodeName::trusted(name), address: None, roles: vec!["coordinator".into()] };
    Ok(Coordinator::start(Arc::clone(store), CoordinatorOptions::new(node))?)
}

/// Polls the coordinator's status until `seen` returns something.
async fn wait_for<T>(coordinator: &Coordinator, what: &str, seen: impl Fn(&Coordinator) -> Option<T>) -> Result<T> {
    let begun = Instant::now();
    loop {
        if let Some(seen) = seen(coordinator) {
            return Ok(seen);
        }
        ensure!(begun.elapsed() < TIMEOUT, "timed out waiting for {what}");
        sleep(Duration::from_millis(1)).await;
    }
}

pub(crate) async fn started(store: &Arc<dyn Store>) -> Result<Coordinator> {
    let coordinator = start(store, "bench")?;
    wait_for(&coordinator, "a leader", |coordinator| coordinator.status().leading.then_some(())).await?;
    Ok(coordinator)
}

pub(crate) fn service(coordinator: &Coordinator, name: &str) -> ServiceStatus {
    coordinator.status().services.get(name).cloned().unwrap_or_default()
}

/// The duration and the steps of a sweep.
pub(crate) struct SweepTiming {
    pub(crate) took: Duration,
    pub(crate) steps: u64,
}

/// Waits until a service has moved `jobs` since `before`; returns how long after `due` that was.
pub(crate) async fn wait_for_sweep(
    coordinator: &Coordinator,
    name: &str,
    before: &ServiceStatus,
    jobs: usize,
    due: Timestamp,
) -> Result<SweepTiming> {
    let done = |coordinator: &Coordinator| {
        let status = service(coordinator, name);
        (status.affected >= before.affected + jobs as u64).then_some(status)
    };
    let status = wait_for(coordinator, name, done).await?;
    let took = Timestamp::now().duration_since(due).unsigned_abs();
    ensure!(status.failures == 0, "{name} failed {} times", status.failures);
    Ok(SweepTiming { took, steps: status.runs - before.runs })
}

pub(crate) async fn sleep_until(at: Timestamp) {
    sleep(Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default()).await;
}

// ---- promotion ----

/// One run of the drain in `promotion`.
struct DrainRate {
    jobs_per_second: f64,
    window: Duration,
    /// The promotion, on the side that has one.
    promoted: Option<SweepTiming>,
}

/// Measures a drain while many jobs become due, alternating with the same drain while none does.
pub(crate) async fn promotion(server: &Server, request: &Request, progress: &Progress) -> Result<Vec<Row>> {
    let (scale, rounds) = (request.scale, request.rounds);
    let due = scale.of(DUE);
    let mut samples = Vec::new();
    // A drain is faster at its start than at its end: both sides run for the same time.
    let mut window = None;
    for round in 1..=rounds {
        let (with, without) = match window {
            // The second one may profit from a warm machine, so the order alternates.
            Some(known) if round % 2 == 0 => {
                let without = drained(server, scale, Some(known), progress).await?;
                (drained(server, scale, None, progress).await?, without)
            }
            _ => {
                let with = drained(server, scale, None, progress).await?;
                let without = drained(server, scale, Some(with.window), progress).await?;
                (with, without)
            }
        };
        window = Some(with.window);
        let promoted = with.promoted.context("nothing was promoted")?;
        let (busy, quiet) = (with.jobs_per_second, without.jobs_per_second);
        progress.note(&format!(
            "promotion {round}/{rounds}: {due} jobs in {:.2} s and {} steps; drain {} of {} jobs/s, {:.2}",
            promoted.took.as_secs_f64(),
            promoted.steps,
            thousands(busy),
            thousands(quiet),
            busy / quiet
        ));
        samples.push((promoted, busy, quiet));
    }
    let speed = Spread::of(samples.iter().map(|(promoted, ..)| due as f64 / promoted.took.as_secs_f64()));
    let steps = Spread::of(samples.iter().map(|(promoted, ..)| promoted.steps as f64));
    let bound = Target::Most((due.div_ceil(STEP_SIZE) + EXTRA_STEPS) as f64, "steps");
    let ratio = Spread::of(samples.iter().map(|(_, busy, quiet)| busy / quiet));
    let busy = Spread::of(samples.iter().map(|(_, busy, _)| *busy));
    let quiet = Spread::of(samples.iter().map(|(.., quiet)| *quiet));
    Ok(vec![
        Row {
            figure: "promotion".into(),
            ours: format!("{speed} jobs/s, {steps} steps"),
            ..Row::with_target(bound, steps.median)
        },
        Row {
            figure: "promotion, drain meanwhile".into(),
            ours: format!("{busy} jobs/s"),
            limit: format!("{quiet} jobs/s"),
            ratio: ratio.with_decimals(2),
            ..Row::with_target(Figure::Promotion.target(Backend::Postgres), ratio.median)
        },
    ])
}

/// Drains one queue while jobs of another are promoted, or for `quiet` while they stay scheduled.
async fn drained(server: &Server, scale: Scale, quiet: Option<Duration>, progress: &Progress) -> Result<DrainRate> {
    progress.step(if quiet.is_some() { "promotion, without" } else { "promotion" });
    let database = server.create_database().await?;
    server.checkpoint().await?;
    let store = backend::open(&database.url).await?;
    let clock = Instant::now();
    fill(&store, warm(BATCH) + scale.of(PENDING)).await?;
    let filling = clock.elapsed();
    drain(&store, BATCH, warm(BATCH)).await?;
    // Enqueueing fewer jobs takes less time than this, so none is due before the last is enqueued.
    let wait = if quiet.is_some() { Duration::from_secs(3_600) } else { filling + Duration::from_secs(2) };
    let at = Timestamp::now() + wait;
    enqueue_delayed(&store, scale.of(DUE), at).await?;
    ensure!(Timestamp::now() < at, "creating them took longer than expected");
    // A store of its own, as on another node.
    let coordinating = backend::open(&database.url).await?;
    let coordinator = started(&coordinating).await?;
    let before = service(&coordinator, "promote_jobs");

    let drained = if let Some(window) = quiet {
        let (jobs_per_second, window, ()) = drain_during(&store, async {
            sleep(window).await;
            Ok(())
        })
        .await?;
        DrainRate { jobs_per_second, window, promoted: None }
    } else {
        sleep_until(at).await;
        let sweep = wait_for_sweep(&coordinator, "promote_jobs", &before, scale.of(DUE), at);
        let (jobs_per_second, window, promoted) = drain_during(&store, sweep).await?;
        DrainRate { jobs_per_second, window, promoted: Some(promoted) }
    };
    coordinator.shutdown().await;
    server.drop_database(database).await?;
    progress.done();
    Ok(drained)
}

/// Enqueues jobs into their own queue, all due at the same time.
async fn enqueue_delayed(store: &Arc<dyn Store>, count: usize, at: Timestamp) -> Result<()> {
    let later = |n| NewJob { queue: Queue::trusted("later"), start: Start::At(at), ..job(n) };
    for from in (0..count).step_by(5_000) {
        store.enqueue_jobs((from..count.min(from + 5_000)).map(later).collect()).await?;
    }
    Ok(())
}

/// Drains the default queue until `meanwhile` is done or no job is left; returns the jobs per second.
async fn drain_during<T>(
    store: &Arc<dyn Store>,
    meanwhile: impl Future<Output = Result<T>>,
) -> Result<(f64, Duration, T)> {
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut claimers = JoinSet::new();
    let clock = Instant::now();
    for n in 0..CLAIMERS {
        let (store, stop, done) = (Arc::clone(store), Arc::clone(&stop), Arc::clone(&done));
        let worker = WorkerName::trusted(&format!("bench-{n}"));
        let queues = Queues::Named(vec![Queue::default()]);
        let request = ClaimRequest { queues, ..ClaimRequest::any(worker, BATCH) };
        claimers.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let claimed = store.claim_jobs(&request).await?;
                if claimed.is_empty() {
                    break;
                }
                complete_jobs(&store, &claimed).await?;
                done.fetch_add(claimed.len(), Ordering::Relaxed);
            }
            anyhow::Ok(())
        });
    }
    let mut meanwhile = pin!(meanwhile);
    let early = tokio::select! {
        answer = &mut meanwhile => Some(answer),
        // A claimer found nothing: the drain is over.
        Some(claimer) = claimers.join_next() => {
            claimer??;
            None
        }
    };
    let (jobs, window) = (done.load(Ordering::Relaxed), clock.elapsed());
    stop.store(true, Ordering::Relaxed);
    while let Some(claimer) = claimers.join_next().await {
        claimer??;
    }
    let answer = if let Some(answer) = early { answer? } else { meanwhile.await? };
    Ok((jobs as f64 / window.as_secs_f64(), window, answer))
}

// ---- punctuality ----

/// Measures how late a worker claims delayed jobs: in the coordinator's own store, and in another store that is woken
/// through the database.
pub(crate) async fn punctuality(server: &Server, scale: Scale, progress: &Progress) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for name in ["punctuality, same store", "punctuality, other store"] {
        progress.step(name);
        let database = server.create_database().await?;
        let coordinating = backend::open(&database.url).await?;
        let store = if rows.is_empty() { Arc::clone(&coordinating) } else { backend::open(&database.url).await? };
        let coordinator = started(&coordinating).await?;
        let mut late = lateness(&store, scale.of(DELAYED_JOBS)).await?;
        coordinator.shutdown().await;
        server.drop_database(database).await?;
        late.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| late[((late.len() - 1) as f64 * share) as usize];
        let shown = format!("p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms", at(0.5), at(0.99), at(1.0));
        progress.note(&format!("{name}: {shown}"));
        progress.done();
        let target = Figure::Punctuality.target(Backend::Postgres);
        rows.push(Row { figure: name.into(), ours: shown, ..Row::with_target(target, at(0.99)) });
    }
    Ok(rows)
}

/// Milliseconds from each job's due time to the claim that returned it.
async fn lateness(store: &Arc<dyn Store>, jobs: usize) -> Result<Vec<f64>> {
    const WARM: usize = 10;
    let (sender, mut claimed) = mpsc::channel(1_024);
    let worker = tokio::spawn(work(Arc::clone(store), sender));
    for n in 0..jobs + WARM {
        store.enqueue_job(NewJob { start: Start::After(DELAY), ..job(n) }).await?;
        // Uneven, so that they do not synchronise with periodic work.
        sleep(Duration::from_millis(70 + (n as u64 * 37) % 60)).await;
    }
    let mut late = Vec::with_capacity(jobs + WARM);
    while late.len() < jobs + WARM {
        late.push(claimed.recv().await.context("the worker has stopped")?);
    }
    worker.abort();
    // The first few open connections and prepare statements.
    Ok(late.split_off(WARM))
}

async fn work(store: Arc<dyn Store>, claimed: mpsc::Sender<f64>) -> Result<()> {
    let request = ClaimRequest::any(WorkerName::trusted("bench-0"), 1);
    let mut wakeups = store.job_wakeups();
    loop {
        let jobs = store.claim_jobs(&request).await?;
        let now = Timestamp::now();
        for job in &jobs {
            claimed.send(now.duration_since(job.eligible_at).as_secs_f64() * 1_000.0).await?;
            store.finish_attempts(vec![OutcomeReport { token: job.token, outcome: Outcome::DONE }]).await?;
        }
        if jobs.is_empty() {
            let _ = tokio::time::timeout(POLL_INTERVAL, wakeups.next()).await;
        }
    }
}

// ---- idle ----

/// Measures the transactions and the CPU time of three idle nodes.
pub(crate) async fn idle(server: &Server, scale: Scale, progress: &Progress) -> Result<Row> {
    let name = Figure::Idle.name();
    progress.step(name);
    let database = server.create_database().await?;
    let mut nodes = Vec::new();
    for n in 0..NODES {
        nodes.push(start(&backend::open(&database.url).await?, &format!("bench-{n}"))?);
    }
    sleep(SETTLING).await;
    let (clock, commits, cpu) = (Instant::now(), server.commits_so_far(&database).await?, cpu_time("self")?);
    sleep(Duration::from_secs(scale.of(IDLE) as u64)).await;
    let seconds = clock.elapsed().as_secs_f64();
    let commits = (server.commits_so_far(&database).await? - commits) as f64 / seconds;
    let percent = (cpu_time("self")? - cpu).as_secs_f64() / seconds * 100.0;
    let leaders = nodes.iter().filter(|node| node.status().leading).count();
    ensure!(leaders == 1, "{leaders} nodes lead");
    for node in nodes {
        node.shutdown().await;
    }
    server.drop_database(database).await?;
    let shown = format!("{commits:.1} transactions/s, {percent:.2} % of a core, {NODES} nodes together");
    progress.note(&format!("{name}: {shown}"));
    progress.done();
    Ok(Row { figure: name.into(), ours: shown, ..Row::with_target(Figure::Idle.target(Backend::Postgres), 0.0) })
}

/// The CPU time of a process, or of `self`.
pub(crate) fn cpu_time(process: &str) -> Result<Duration> {
    /// The kernel's unit, on every architecture.
    const TICK: Duration = Duration::from_millis(10);
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))
        .context("times are read from /proc, which requires Linux")?;
    // The second field is the program's name in parentheses, and may contain anything. The third field comes next.
    let (_, fields) = stat.rsplit_once(')').context("/proc names no program")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u32>);
    Ok(TICK * ticks.sum::<Result<u32, _>>()?)
}

// ---- reaping ----

/// Measures how soon the jobs of a dead worker with many leases are claimable again.
pub(crate) async fn reaping(server: &Server, request: &Request, progress: &Progress) -> Result<Row> {
    let (name, leases) = (Figure::Reaping.name(), request.scale.of(LEASES));
    let mut samples = Vec::new();
    for round in 1..=request.rounds {
        progress.step(format!("{name}, round {round} of {}", request.rounds));
        let database = server.create_database().await?;
        let reaped = reaped(&database, leases).await?;
        server.drop_database(database).await?;
        let seconds = reaped.took.as_secs_f64();
        progress.note(&format!("{name} {round}/{}: {seconds:.2} s, {} steps", request.rounds, reaped.steps));
        progress.done();
        samples.push(reaped);
    }
    let seconds = Spread::of(samples.iter().map(|reaped| reaped.took.as_secs_f64()));
    let speed = Spread::of(samples.iter().map(|reaped| leases as f64 / reaped.took.as_secs_f64()));
    let steps = Spread::of(samples.iter().map(|reaped| reaped.steps as f64));
    Ok(Row {
        figure: name.into(),
        ours: format!("{speed} jobs/s, {} s, {steps} steps", seconds.with_decimals(2)),
        ..Row::with_target(Figure::Reaping.target(Backend::Postgres), 0.0)
    })
}

async fn reaped(database: &Database, leases: usize) -> Result<SweepTiming> {
    let store = backend::open(&database.url).await?;
    let leased = |n| NewJob { lease: LEASE, ..job(n) };
    store.enqueue_jobs((0..leases).map(leased).collect()).await?;
    let claim = async |worker| {
        let claimed = store.claim_jobs(&ClaimRequest::any(WorkerName::trusted(worker), leases)).await?;
        ensure!(claimed.len() == leases, "{worker} claimed {} of {leases} jobs", claimed.len());
        Ok(claimed[0].lease_expires_at)
    };
    let expiry = claim("dead").await?;
    let coordinator = started(&store).await?;
    let before = service(&coordinator, "reap_leases");
    sleep_until(expiry).await;
    let reaped = wait_for_sweep(&coordinator, "reap_leases", &before, leases, expiry).await?;
    // They are really claimable, not only counted.
    claim("successor").await?;
    coordinator.shutdown().await;
    Ok(reaped)
}
