//! Schedules: what very many of them cost the node that leads, and how soon very many at once are fired.
//!
//! Times are by the clock of the store, which here is this machine's own: the server is private and runs beside us.

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
use orchestrix_store::{PageRequest, Store};
use tokio::task::JoinSet;

use crate::{
    arguments::Request,
    backend::{self, Backend},
    coordinator::{cpu_time, service, sleep_until, started, swept},
    figure::Figure,
    jobs::job,
    measure::Place as _,
    postgres::Server,
    progress::Progress,
    report::Row,
    sample::Spread,
};

/// Schedules in all, and how many of them are due in each minute.
const SCHEDULES: usize = 100_000;
const EACH_MINUTE: usize = 1_000;
/// How long the leader is watched.
const WATCHED: Duration = Duration::from_secs(60);
/// What comes before: plans are made, and what the filling left behind is cleaned up.
const SETTLING: Duration = Duration::from_secs(10);

/// Schedules that are due in one second.
const AT_ONCE: usize = 10_000;
/// How long recording them may take.
const RECORDING: Duration = Duration::from_secs(20);

/// Callers that record schedules at once.
const CALLERS: usize = 16;

/// Records the schedules whose times `cron` names, in UTC.
async fn record(store: &Arc<dyn Store>, count: usize, cron: impl Fn(usize) -> String) -> Result<()> {
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

async fn jobs(store: &Arc<dyn Store>) -> Result<u64> {
    Ok(store.queue_depths(&PageRequest::first(1_000)).await?.items.iter().flat_map(|queue| queue.counts.values()).sum())
}

/// Measures what the leader takes of the processor while some of very many schedules fall due.
pub(crate) async fn load(server: &Server, request: &Request, progress: &Progress) -> Result<Row> {
    let (name, scale) = (Figure::Load.name(), request.scale);
    let (count, each_minute) = (scale.of(SCHEDULES), scale.of(EACH_MINUTE));
    progress.step(format!("{name}, recording {count} schedules"));
    let database = server.create_database().await?;
    let store = backend::open(&database.url).await?;
    // Hourly ones, so many for each minute; the others come once a year, half a year from now.
    let later = Timestamp::now().to_zoned(TimeZone::UTC).date().checked_add(jiff::Span::new().months(6))?;
    let cron = |n: usize| match n {
        n if n < 60 * each_minute => format!("{} * * * *", n % 60),
        n => format!("{} {} {} {} *", n % 60, n / 60 % 24, later.day().min(28), later.month()),
    };
    record(&store, count, cron).await?;
    progress.step(format!("{name}, watching"));
    let coordinator = started(&store).await?;
    tokio::time::sleep(SETTLING).await;
    let (clock, before) = (Instant::now(), jobs(&store).await?);
    let (cpu, backends) = (cpu_time("self")?, server.cpu_time(&database).await?);
    tokio::time::sleep(WATCHED).await;
    let seconds = clock.elapsed().as_secs_f64();
    let percent = (cpu_time("self")? - cpu).as_secs_f64() / seconds * 100.0;
    let served = server.cpu_time(&database).await?.saturating_sub(backends).as_secs_f64() / seconds * 100.0;
    let status = service(&coordinator, "fire");
    ensure!(status.failures == 0, "firing failed {} times", status.failures);
    // A minute, wherever it begins, has the beginning of one minute in it.
    let fired = jobs(&store).await? - before;
    ensure!(fired >= each_minute as u64, "{fired} of {each_minute} schedules were fired");
    coordinator.shutdown().await;
    server.drop_database(database).await?;
    let shown = format!("{percent:.2} % of a core, the server {served:.2} %; {fired} of {count} schedules fired");
    progress.note(&format!("{name}: {shown}"));
    progress.done();
    Ok(Row { figure: name.into(), ours: shown, ..Row::judged(Figure::Load.target(Backend::Postgres), percent) })
}

/// Measures how soon very many schedules that fall due in one second are all fired.
pub(crate) async fn burst(server: &Server, request: &Request, progress: &Progress) -> Result<Row> {
    let (name, count, rounds) = (Figure::Burst.name(), request.scale.of(AT_ONCE), request.rounds);
    let mut samples = Vec::new();
    for round in 1..=rounds {
        progress.step(format!("{name}, round {round} of {rounds}"));
        let database = server.create_database().await?;
        let store = backend::open(&database.url).await?;
        let due = Timestamp::now().checked_add(RECORDING)?;
        let due = Timestamp::from_second(due.as_second())?;
        let at = due.to_zoned(TimeZone::UTC);
        let cron = format!("{} {} {} {} {} *", at.second(), at.minute(), at.hour(), at.day(), at.month());
        record(&store, count, |_| cron.clone()).await?;
        let coordinator = started(&store).await?;
        ensure!(Timestamp::now() < due, "recording took longer than expected");
        let before = service(&coordinator, "fire");
        sleep_until(due).await;
        let fired = swept(&coordinator, "fire", &before, count, due).await?;
        let found = jobs(&store).await.context("the jobs")?;
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
        ..Row::judged(Figure::Burst.target(Backend::Postgres), seconds.median)
    })
}
