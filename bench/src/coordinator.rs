//! What a running coordinator does in time, and what it takes from others meanwhile.
//!
//! Times are by the clock of the store, which here is this machine's own: the server is private and runs beside us.

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
    drain::{CLAIMERS, drain, warm},
    figure::{Figure, Target},
    jobs::{fill, job},
    measure::{Database, Place},
    postgres::Server,
    progress::Progress,
    report::Row,
    sample::{Spread, thousands},
};

/// How many jobs a claim asks for.
const BATCH: usize = Backend::Postgres.batch();
/// How long anything that must happen may take to happen.
const PATIENCE: Duration = Duration::from_secs(120);

/// Jobs that fall due at one moment.
const DUE: usize = 100_000;
/// Jobs of another queue that are claimed and completed meanwhile; should they run out, the rest is not measured.
const PENDING: usize = 3 * DUE;
/// Jobs that the coordinator promotes in one step.
const STEP: usize = 2_000;
/// Steps that may be spent besides full ones: to find out that it is too early, or that nothing is left.
const FEW: usize = 5;

/// Jobs that are put off, one after the other.
const PUT_OFF: usize = 300;
const DELAY: Duration = Duration::from_secs(1);
/// How often the worker looks if it hears nothing; a lost hint would show as a latency of this size, or of the pause
/// between two jobs, which is longer than the target for that reason.
const POLL: Duration = Duration::from_secs(1);

/// How long idle nodes are watched, in seconds, and what comes before: their beginning, whose commits a session that
/// then rests reports up to ten seconds later.
const IDLE: usize = 20;
const SETTLING: Duration = Duration::from_secs(12);
const NODES: usize = 3;

/// Leases of a worker that died.
const LEASES: usize = 10_000;
/// As long as holders get once a database has come up, so that no grace is left on a server that was just started.
const LEASE: Duration = Duration::from_secs(10);

/// Starts a coordinator.
fn start(store: &Arc<dyn Store>, name: &str) -> Result<Coordinator> {
    let node = NodeInfo { name: NodeName::trusted(name), address: None, roles: vec!["coordinator".into()] };
    Ok(Coordinator::start(Arc::clone(store), CoordinatorOptions::new(node))?)
}

/// Waits for something that the coordinator's status will show.
async fn wait_for<T>(coordinator: &Coordinator, what: &str, seen: impl Fn(&Coordinator) -> Option<T>) -> Result<T> {
    let begun = Instant::now();
    loop {
        if let Some(seen) = seen(coordinator) {
            return Ok(seen);
        }
        ensure!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
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

/// What a service did from a moment on.
pub(crate) struct Swept {
    pub(crate) took: Duration,
    pub(crate) steps: u64,
}

/// Waits until a service has moved `jobs` since `before`, and says how long after `due` that was.
pub(crate) async fn swept(
    coordinator: &Coordinator,
    name: &str,
    before: &ServiceStatus,
    jobs: usize,
    due: Timestamp,
) -> Result<Swept> {
    let done = |coordinator: &Coordinator| {
        let status = service(coordinator, name);
        (status.moved >= before.moved + jobs as u64).then_some(status)
    };
    let status = wait_for(coordinator, name, done).await?;
    let took = Timestamp::now().duration_since(due).unsigned_abs();
    ensure!(status.failures == 0, "{name} failed {} times", status.failures);
    Ok(Swept { took, steps: status.runs - before.runs })
}

pub(crate) async fn sleep_until(at: Timestamp) {
    sleep(Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default()).await;
}

// ---- promotion ----

/// What one side of `promotion` saw.
struct Drained {
    jobs_per_second: f64,
    window: Duration,
    /// What was promoted, on the side where something was.
    promoted: Option<Swept>,
}

/// Measures a drain while very many jobs fall due, in turns with the same drain while they do not.
pub(crate) async fn promotion(server: &Server, request: &Request, progress: &Progress) -> Result<Vec<Row>> {
    let (scale, rounds) = (request.scale, request.rounds);
    let due = scale.of(DUE);
    let mut samples = Vec::new();
    // A drain is not equally fast at its beginning and at its end: both sides get the same time.
    let mut window = None;
    for round in 1..=rounds {
        let (with, without) = match window {
            // Whoever goes second may find the machine warmer: they take turns at that too.
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
    let bound = Target::Most((due.div_ceil(STEP) + FEW) as f64, "steps");
    let ratio = Spread::of(samples.iter().map(|(_, busy, quiet)| busy / quiet));
    let busy = Spread::of(samples.iter().map(|(_, busy, _)| *busy));
    let quiet = Spread::of(samples.iter().map(|(.., quiet)| *quiet));
    Ok(vec![
        Row {
            figure: "promotion".into(),
            ours: format!("{speed} jobs/s, {steps} steps"),
            ..Row::judged(bound, steps.median)
        },
        Row {
            figure: "promotion, drain meanwhile".into(),
            ours: format!("{busy} jobs/s"),
            limit: format!("{quiet} jobs/s"),
            ratio: ratio.with_decimals(2),
            ..Row::judged(Figure::Promotion.target(Backend::Postgres), ratio.median)
        },
    ])
}

/// Drains one queue for as long as jobs of another are being promoted, or for `quiet` while they wait for later.
async fn drained(server: &Server, scale: Scale, quiet: Option<Duration>, progress: &Progress) -> Result<Drained> {
    progress.step(if quiet.is_some() { "promotion, without" } else { "promotion" });
    let database = server.create_database().await?;
    server.checkpoint().await?;
    let store = backend::open(&database.url).await?;
    let clock = Instant::now();
    fill(&store, warm(BATCH) + scale.of(PENDING)).await?;
    let filling = clock.elapsed();
    drain(&store, BATCH, warm(BATCH)).await?;
    // Recording fewer jobs takes less time than that, so that none is due before the last is recorded.
    let wait = if quiet.is_some() { Duration::from_secs(3_600) } else { filling + Duration::from_secs(2) };
    let at = Timestamp::now() + wait;
    put_off(&store, scale.of(DUE), at).await?;
    ensure!(Timestamp::now() < at, "recording took longer than expected");
    // As on a node of its own.
    let coordinating = backend::open(&database.url).await?;
    let coordinator = started(&coordinating).await?;
    let before = service(&coordinator, "promote");

    let drained = if let Some(window) = quiet {
        let (jobs_per_second, window, ()) = drain_during(&store, async {
            sleep(window).await;
            Ok(())
        })
        .await?;
        Drained { jobs_per_second, window, promoted: None }
    } else {
        sleep_until(at).await;
        let sweep = swept(&coordinator, "promote", &before, scale.of(DUE), at);
        let (jobs_per_second, window, promoted) = drain_during(&store, sweep).await?;
        Drained { jobs_per_second, window, promoted: Some(promoted) }
    };
    coordinator.shutdown().await;
    server.drop_database(database).await?;
    progress.done();
    Ok(drained)
}

/// Records jobs of a queue of their own that all may start at one moment.
async fn put_off(store: &Arc<dyn Store>, count: usize, at: Timestamp) -> Result<()> {
    let later = |n| NewJob { queue: Queue::trusted("later"), start: Start::At(at), ..job(n) };
    for from in (0..count).step_by(5_000) {
        store.enqueue_jobs((from..count.min(from + 5_000)).map(later).collect()).await?;
    }
    Ok(())
}

/// Claims and completes jobs of the default queue until `meanwhile` is over or none is left; how many a second until then.
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
                let items =
                    claimed.iter().map(|job| OutcomeReport { token: job.token, outcome: Outcome::DONE }).collect();
                for answer in store.finish_attempts(items).await? {
                    answer?;
                }
                done.fetch_add(claimed.len(), Ordering::Relaxed);
            }
            anyhow::Ok(())
        });
    }
    let mut meanwhile = pin!(meanwhile);
    let early = tokio::select! {
        answer = &mut meanwhile => Some(answer),
        // The first that finds nothing: from here on it would be no drain any more.
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

/// Measures how late a worker gets jobs that were put off: in the coordinator's own store, and in another that asks and
/// hears through the database.
pub(crate) async fn punctuality(server: &Server, scale: Scale, progress: &Progress) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for name in ["punctuality, same store", "punctuality, other store"] {
        progress.step(name);
        let database = server.create_database().await?;
        let coordinating = backend::open(&database.url).await?;
        let store = if rows.is_empty() { Arc::clone(&coordinating) } else { backend::open(&database.url).await? };
        let coordinator = started(&coordinating).await?;
        let mut late = lateness(&store, scale.of(PUT_OFF)).await?;
        coordinator.shutdown().await;
        server.drop_database(database).await?;
        late.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| late[((late.len() - 1) as f64 * share) as usize];
        let shown = format!("p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms", at(0.5), at(0.99), at(1.0));
        progress.note(&format!("{name}: {shown}"));
        progress.done();
        let target = Figure::Punctuality.target(Backend::Postgres);
        rows.push(Row { figure: name.into(), ours: shown, ..Row::judged(target, at(0.99)) });
    }
    Ok(rows)
}

/// In milliseconds: from the time that each job was put off to until the claim that returned it.
async fn lateness(store: &Arc<dyn Store>, jobs: usize) -> Result<Vec<f64>> {
    const WARM: usize = 10;
    let (sender, mut claimed) = mpsc::channel(1_024);
    let worker = tokio::spawn(work(Arc::clone(store), sender));
    for n in 0..jobs + WARM {
        store.enqueue_job(NewJob { start: Start::After(DELAY), ..job(n) }).await?;
        // Uneven, so that they do not keep step with anything that is done at regular times.
        sleep(Duration::from_millis(70 + (n as u64 * 37) % 60)).await;
    }
    let mut late = Vec::with_capacity(jobs + WARM);
    while late.len() < jobs + WARM {
        late.push(claimed.recv().await.context("the worker has stopped")?);
    }
    worker.abort();
    // The first few open connections and make plans.
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
            let _ = tokio::time::timeout(POLL, wakeups.next()).await;
        }
    }
}

// ---- idle ----

/// Measures what three nodes with nothing to do ask of the database and of the processor.
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
    Ok(Row { figure: name.into(), ours: shown, ..Row::judged(Figure::Idle.target(Backend::Postgres), 0.0) })
}

/// What a process, or `self`, has taken of the processor so far.
pub(crate) fn cpu_time(process: &str) -> Result<Duration> {
    /// What the kernel counts in, on every architecture.
    const TICK: Duration = Duration::from_millis(10);
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))
        .context("times are read from /proc, which only Linux has")?;
    // The second field is the program's name, in parentheses, and may hold anything. The third comes next.
    let (_, fields) = stat.rsplit_once(')').context("/proc names no program")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u32>);
    Ok(TICK * ticks.sum::<Result<u32, _>>()?)
}

// ---- reaping ----

/// Measures how soon the jobs of a worker that died with very many leases can be claimed again.
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
        ..Row::judged(Figure::Reaping.target(Backend::Postgres), 0.0)
    })
}

async fn reaped(database: &Database, leases: usize) -> Result<Swept> {
    let store = backend::open(&database.url).await?;
    let leased = |n| NewJob { lease: LEASE, ..job(n) };
    store.enqueue_jobs((0..leases).map(leased).collect()).await?;
    let claim = async |worker| {
        let claimed = store.claim_jobs(&ClaimRequest::any(WorkerName::trusted(worker), leases)).await?;
        ensure!(claimed.len() == leases, "{worker} was given {} of {leases} jobs", claimed.len());
        Ok(claimed[0].lease_expires_at)
    };
    let expiry = claim("dead").await?;
    let coordinator = started(&store).await?;
    let before = service(&coordinator, "reap");
    sleep_until(expiry).await;
    let reaped = swept(&coordinator, "reap", &before, leases, expiry).await?;
    // They are not only counted, they can be claimed.
    claim("heir").await?;
    coordinator.shutdown().await;
    Ok(reaped)
}
