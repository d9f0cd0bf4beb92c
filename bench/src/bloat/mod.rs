//! `bloat`: the size of tables that hold unfinished work, under a steady flow of jobs.
//!
//! Every job leaves dead rows behind. The tables must stay near the size of what is live, and under an old snapshot,
//! when vacuum can remove nothing, they must not grow faster and faster.

mod flow;
mod table;
mod table_sizes;

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use self::{
    flow::Flow,
    table::{Table, megabytes},
    table_sizes::{Sampler, TableHistory},
};
use crate::{
    arguments::HELP,
    backend,
    coordinator::started,
    measure::DatabaseHost as _,
    postgres::{self, Server},
    progress::Progress,
    sample::thousands,
};

/// The time between two samples.
const INTERVAL: Duration = Duration::from_secs(5);
/// How many tables a progress line shows.
const SHOWN: usize = 3;

/// The arguments of a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// How long jobs flow, and how many per second.
    pub(crate) seconds: usize,
    pub(crate) rate: usize,
    /// Whether a snapshot is open meanwhile, so that vacuum can remove no row that died since.
    pub(crate) snapshot: bool,
    pub(crate) strict: bool,
}

impl Request {
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut request = Self { seconds: 600, rate: 20_000, snapshot: false, strict: false };
        while let Some(argument) = arguments.next() {
            let mut number = || -> Result<usize> {
                let number = arguments.next().with_context(|| format!("{argument} needs a number"))?;
                number.parse().with_context(|| argument.clone())
            };
            match argument.as_str() {
                "--quick" => (request.seconds, request.rate) = (60, 2_000),
                "--minutes" => request.seconds = 60 * number()?,
                "--rate" => request.rate = number()?,
                "--snapshot" => request.snapshot = true,
                "--strict" => request.strict = true,
                other => bail!("`{other}` is not an option:\n\n{HELP}"),
            }
        }
        ensure!(request.seconds > 0 && request.rate > 0, "--minutes and --rate must be at least 1");
        Ok(request)
    }

    /// The time before the first sample: connections open, plans are final, and tables have their first rows.
    fn warm_up(&self) -> Duration {
        Duration::from_secs(self.seconds as u64 / 20).min(Duration::from_secs(30))
    }
}

/// What a run measured.
#[derive(Debug)]
pub(crate) struct Measured {
    /// Jobs completed per second.
    rate: f64,
    /// The mean and the highest number of unfinished jobs.
    unfinished: (f64, u64),
    tables: Vec<TableHistory>,
}

/// Lets jobs flow, samples the tables and prints their sizes.
pub(crate) async fn run(server: &Server, request: &Request) -> Result<ExitCode> {
    let progress = Progress::new(request.seconds / INTERVAL.as_secs() as usize);
    let database = server.create_database().await?;
    // Producers, workers and the leader have stores of their own, as in separate processes.
    let coordinator = started(&backend::open(&database.url).await?).await?;
    let (producing, working) = (backend::open(&database.url).await?, backend::open(&database.url).await?);
    progress.step("warm-up");
    // Workers leave no row to measure, so this comes before they start.
    let enqueued = flow::enqueue(&producing, 0).await?;
    let mut sampler = Sampler::connect(&database.url).await?;
    sampler.measure_rows().await?;
    let mut flow = Flow::start(&producing, &working, request.rate, enqueued);
    flow.run_for(request.warm_up()).await?;
    let snapshot = if request.snapshot { Some(postgres::hold_snapshot(&database.url).await?) } else { None };
    let measured = sample(&mut flow, &mut sampler, request, &progress).await?;
    progress.step("finishing the last jobs");
    flow.finish().await?;
    drop(snapshot);
    coordinator.shutdown().await;
    drop((producing, working));
    server.drop_database(database).await?;
    progress.finish();
    let table = Table::new(request, &measured);
    print!("{table}");
    Ok(if request.strict && table.missed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Samples the tables while jobs flow.
async fn sample(flow: &mut Flow, sampler: &mut Sampler, request: &Request, progress: &Progress) -> Result<Measured> {
    let (begun, duration) = (Instant::now(), Duration::from_secs(request.seconds as u64));
    let first = flow.finished();
    sampler.sample(Duration::ZERO).await?;
    let mut backlogs = Vec::new();
    let (mut finished, mut at) = (first, begun.elapsed());
    progress.step("sampling");
    while at < duration {
        flow.run_for(INTERVAL.min(duration - at)).await?;
        let (before, elapsed) = (at, begun.elapsed());
        sampler.sample(elapsed).await?;
        backlogs.push(flow.unfinished());
        let done = flow.finished();
        let rate = (done - finished) as f64 / (elapsed - before).as_secs_f64();
        (finished, at) = (done, elapsed);
        progress.note(&line(elapsed, rate, flow.unfinished(), sampler.tables()));
        progress.done();
    }
    ensure!(finished > first, "no job was done");
    Ok(Measured {
        rate: (finished - first) as f64 / at.as_secs_f64(),
        unfinished: (
            backlogs.iter().sum::<u64>() as f64 / backlogs.len() as f64,
            backlogs.iter().copied().max().unwrap_or_default(),
        ),
        tables: sampler.take_tables(),
    })
}

/// A progress line, with the largest tables.
fn line(elapsed: Duration, rate: f64, unfinished: u64, tables: &[TableHistory]) -> String {
    let seconds = elapsed.as_secs();
    let mut last: Vec<_> = tables.iter().map(|table| (table.name.as_str(), table.last())).collect();
    last.sort_by_key(|(_, size)| std::cmp::Reverse(size.total));
    let sizes = last.iter().take(SHOWN).map(|(name, size)| {
        format!("{name} {} ({} dead)", megabytes(size.total as f64), thousands(size.dead_rows as f64))
    });
    format!(
        "{:02}:{:02}  {} jobs/s, {} unfinished; {}",
        seconds / 60,
        seconds % 60,
        thousands(rate),
        thousands(unfinished as f64),
        sizes.collect::<Vec<_>>().join(", ")
    )
}
