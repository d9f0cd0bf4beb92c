//! Schedules: the cost of very many for the leader, and how soon very many fire at once.
//!
//! Times come from the store's clock, which is this machine's: the server is private and local.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use jiff::tz::TimeZone;
use orchestrix_core::{
    Timestamp,
    schedule::{Cadence, NewSchedule, ScheduleName},
};
use orchestrix_store::Store;
use tokio::task::JoinSet;

use crate::{
    arguments::Request,
    backend::{self, Backend},
    coordinator::{cpu_time, service, sleep_until, started, wait_for_sweep},
    figure::Figure,
    jobs::{job, unfinished},
    measure::DatabaseHost as _,
    postgres::Server,
    progress::Progress,
    report::Row,
    sample::Spread,
};

/// The number of schedules, and how many are due in each minute.
const SCHEDULES: usize = 100_000;
const PER_MINUTE: usize = 1_000;
/// How long the leader is observed.
const OBSERVED: Duration = Duration::from_secs(60);
/// The time before: statements are prepared, and autovacuum cleans up after the filling.
const SETTLING: Duration = Duration::from_secs(10);

/// Schedules that are due in one second.
const AT_ONCE: usize = 10_000;
/// How long creating them may take.
const CREATION_TIME: Duration = Duration::from_secs(20);

/// Concurrent callers that create schedules.
const CALLERS: usize = 16;

/// Creates schedules; `cron` returns the expression of each, in UTC.
async fn create_schedules(store: &Arc<dyn Store>, count: usize, cron: impl Fn(usize) -> String) -> Result<()> {
    let mut callers = JoinSet::new();
    let all: Vec<(usize, String)> = (0..count).map(|n| (n, cron(n))).collect();
    for some in all.chunks(count.div_ceil(CALLERS)) {
        let (store, some) = (Arc::clone(store), some.to_vec());
        callers.spawn(async move {
            for (n, cron) in some {
                let cadence = Cadence::cron(&cron, "UTC")?;
                store
                    .put_schedule(None, NewSchedule::new(ScheduleName::new(format!("bench-{n}"))?, cadence, job(n)))
                    .await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = callers.join_next().await {
        done??;
    }
    Ok(())
}

/// Measures the leader's CPU time while some of very many schedules become due.
pub(crate) async fn load(server: &Server, request: &Request, progress: &Progress) -> Result<Row> {
    let (name, scale) = (Figure::Load.name(), request.scale);
    let (count, per_minute) = (scale.of(SCHEDULES), scale.of(PER_MINUTE));
    progress.step(format!("{name}, creating {count} schedules"));
    let database = server.create_database().await?;
    let store = backend::open(&database.url).await?;
    // Hourly ones, evenly over the minutes; the others fire once a year, in six months.
    let later = Timestamp::now().to_zoned(TimeZone::UTC).date().checked_add(jiff::Span::new().months(6))?;
    let cron = |n: usize| match n {
        n if n < 60 * per_minute => format!("{} * * * *", n % 60),
        n => format!("{} {} {} {} *", n % 60, n / 60 % 24, later.day().min(28), later.month()),
    };
    create_schedules(&store, count, cron).await?;
    progress.step(format!("{name}, observing"));
    let coordinator = started(&store).await?;
    tokio::time::sleep(SETTLING).await;
    let (clock, before) = (Instant::now(), unfinished(&store).await?);
    let (cpu, backends) = (cpu_time("self")?, server.cpu_time(&database).await?);
    tokio::time::sleep(OBSERVED).await;
    let seconds = clock.elapsed().as_secs_f64();
    let percent = (cpu_time("self")? - cpu).as_secs_f64() / seconds * 100.0;
    let served = server.cpu_time(&database).await?.saturating_sub(backends).as_secs_f64() / seconds * 100.0;
    let status = service(&coordinator, "fire_schedules");
    ensure!(status.failures == 0, "firing failed {} times", status.failures);
    // Any 60 seconds contain the start of one minute.
    let fired = unfinished(&store).await? - before;
    ensure!(fired >= per_minute as u64, "{fired} of {per_minute} schedules were fired");
    coordinator.shutdown().await;
    server.drop_database(database).await?;
    let shown = format!("{percent:.2} % of a core, the server {served:.2} %; {fired} of {count} schedules fired");
    progress.note(&format!("{name}: {shown}"));
    progress.done();
    Ok(Row { figure: name.into(), ours: shown, ..Row::with_target(Figure::Load.target(Backend::Postgres), percent) })
}

/// Measures how soon very many schedules that are due in one second have all fired.
pub(crate) async fn burst(server: &Server, request: &Request, progress: &Progress) -> Result<Row> {
    let (name, count, rounds) = (Figure::Burst.name(), request.scale.of(AT_ONCE), request.rounds);
    let mut samples = Vec::new();
    for round in 1..=rounds {
        progress.step(format!("{name}, round {round} of {rounds}"));
        let database = server.create_database().await?;
        let store = backend::open(&database.url).await?;
        let due = Timestamp::now().checked_add(CREATION_TIME)?;
        let due = Timestamp::from_second(due.as_second())?;
        let at = due.to_zoned(TimeZone::UTC);
        let cron = format!("{} {} {} {} {} *", at.second(), at.minute(), at.hour(), at.day(), at.month());
        create_schedules(&store, count, |_| cron.clone()).await?;
        let coordinator = started(&store).await?;
        ensure!(Timestamp::now() < due, "creating them took longer than expected");
        let before = service(&coordinator, "fire_schedules");
        sleep_until(due).await;
        let fired = wait_for_sweep(&coordinator, "fire_schedules", &before, count, due).await?;
        let found = unfinished(&store).await.context("cannot count the jobs")?;
        ensure!(found == count as u64, "{found} jobs for {count} schedules");
        coordinator.shutdown().await;
        server.drop_database(database).await?;
        let seconds = fired.took.as_secs_f64();
        progress.note(&format!("{name} {round}/{rounds}: {count} in {seconds:.2} s, {} steps", fired.steps));
        progress.done();
        samples.push(seconds);
    }
    let seconds = Spread::of(samples.iter().copied());
    let speed = Spread::of(samples.iter().map(|seconds| count as f64 / seconds));
    Ok(Row {
        figure: name.into(),
        ours: format!("{speed} jobs/s, {} s", seconds.with_decimals(2)),
        ..Row::with_target(Figure::Burst.target(Backend::Postgres), seconds.median)
    })
}
