//! SQLite: files on this machine's disk, and the least work that one connection could do for the same jobs.

mod bare_drain;
mod files;
mod insert;

use std::time::Instant;

use anyhow::{Result, bail, ensure};

pub(crate) use self::files::Files;
use crate::{
    arguments::Request,
    backend::Backend,
    bulk, dependencies, drain_scenarios,
    figure::Figure,
    latency,
    measure::{Comparison, Database, DatabaseHost, Workload},
    memory,
    progress::Progress,
    report::Row,
    sample::Sample,
    single, width, worker,
};

impl DatabaseHost for Files {
    const BACKEND: Backend = Backend::Sqlite;

    async fn create_database(&self) -> Result<Database> {
        Ok(self.create())
    }

    async fn drop_database(&self, database: Database) -> Result<()> {
        self.drop(&database);
        Ok(())
    }

    async fn sample(&self, side: &impl Workload) -> Result<Sample> {
        let database = self.create();
        side.prepare(&database.url).await?;
        self.wait_until_closed(&database).await?;
        let mut session = side.open(&database.url).await?;
        side.warm(&mut session).await?;
        self.checkpoint(&database)?;

        let (written, commits) = (files::written()?, self.commits(&database)?);
        let clock = Instant::now();
        let jobs = side.run(&mut session).await?;
        let took = clock.elapsed();
        let (written, commits) = (files::written()? - written, self.commits(&database)? - commits);
        ensure!(jobs > 0, "no job was done");
        side.check_session(&session)?;
        drop(session);
        self.wait_until_closed(&database).await?;
        side.check_database(&database.url).await?;
        self.wait_until_closed(&database).await?;
        self.drop(&database);
        Ok(Sample::new(jobs, took, written, commits.into(), jobs))
    }

    async fn measure(&self, figure: Figure, request: &Request, progress: &Progress) -> Result<Vec<Row>> {
        let (on, scale) = (Self::BACKEND, request.scale);
        let comparison = Comparison { figure, host: self, rounds: request.rounds, progress };
        let empty = drain_scenarios::empty(on, scale);
        Ok(vec![match figure {
            Figure::Single => comparison.compare(&single::ours(scale), &insert::one_by_one(scale)).await?,
            Figure::Bulk => comparison.compare(&bulk::ours(scale), &insert::batched(scale)).await?,
            Figure::Drain => comparison.compare(&empty, &bare_drain::limit(scale)).await?,
            Figure::Finished => comparison.compare(&drain_scenarios::finished(on, scale), &empty).await?,
            Figure::Pending => comparison.compare(&drain_scenarios::pending(on, scale), &empty).await?,
            Figure::Xmin
            | Figure::Promotion
            | Figure::Punctuality
            | Figure::Idle
            | Figure::Reaping
            | Figure::Load
            | Figure::Burst
            | Figure::Health
            | Figure::Post
            | Figure::Get
            | Figure::Keys
            | Figure::Overload
            | Figure::Growth
            | Figure::Waits => {
                bail!("this figure is not measured on SQLite")
            }
            Figure::Memory => memory::measure(self, scale, progress).await?,
            Figure::Latency => latency::measure(self, false, scale, progress).await?,
            Figure::Run => comparison.compare(&worker::ours(scale), &worker::limit(on, scale)).await?,
            Figure::Start => worker::start(self, scale, progress).await?,
            Figure::Footprint => worker::footprint(self, scale, progress).await?,
            Figure::Width(width) => width::compare(width, &comparison, request).await?,
            Figure::Chain => dependencies::chain(self, request, progress).await?,
            Figure::FanOut => return dependencies::fan_out(self, request, progress).await,
        }])
    }
}

/// Inserts completed jobs into the table of the store. Depths count unfinished jobs only, so they stay correct.
pub(crate) fn fill_finished(url: &str, count: usize) -> Result<()> {
    files::connect(url)?.execute(include_str!("sql/fill_finished.sql"), [count as i64])?;
    Ok(())
}
