//! PostgreSQL: a private server, and the least work that it could do for the same jobs.

mod bare_drain;
mod copy;
mod insert;
mod server;

use std::time::Instant;

use anyhow::{Result, ensure};
use tokio_postgres::Client;

pub(crate) use self::server::{Server, connect};
use crate::{
    arguments::Request,
    backend::Backend,
    bulk, coordinator, dependencies, drain_scenarios,
    figure::Figure,
    http, latency,
    measure::{Comparison, Database, DatabaseHost, Workload},
    memory,
    progress::Progress,
    report::Row,
    sample::Sample,
    schedules, single, width, worker,
};

impl DatabaseHost for Server {
    const BACKEND: Backend = Backend::Postgres;

    async fn create_database(&self) -> Result<Database> {
        self.create().await
    }

    async fn drop_database(&self, database: Database) -> Result<()> {
        self.drop(&database).await
    }

    async fn sample(&self, side: &impl Workload) -> Result<Sample> {
        let database = self.create().await?;
        self.checkpoint().await?;
        side.prepare(&database.url).await?;
        // The transactions of opening connections are subtracted.
        let prepared = self.commits(&database).await?;
        drop(side.open(&database.url).await?);
        let opened = self.commits(&database).await?;
        let opening = opened - prepared;

        let mut session = side.open(&database.url).await?;
        let warmed = side.warm(&mut session).await?;
        let wal = self.wal_bytes().await?;
        let clock = Instant::now();
        let jobs = side.run(&mut session).await?;
        let took = clock.elapsed();
        let wal = self.wal_bytes().await? - wal;
        ensure!(jobs > 0, "no job was done");
        side.check_session(&session)?;
        drop(session);
        let transactions = (self.commits(&database).await? - opened).saturating_sub(opening);
        side.check_database(&database.url).await?;
        self.drop(&database).await?;
        Ok(Sample::new(jobs, took, wal, transactions, warmed + jobs))
    }

    async fn measure(&self, figure: Figure, request: &Request, progress: &Progress) -> Result<Vec<Row>> {
        let (on, scale) = (Self::BACKEND, request.scale);
        let comparison = Comparison { figure, host: self, rounds: request.rounds, progress };
        let empty = drain_scenarios::empty(on, scale);
        Ok(vec![match figure {
            Figure::Single => comparison.compare(&single::ours(scale), &insert::limit(scale)).await?,
            Figure::Bulk => comparison.compare(&bulk::ours(scale), &copy::limit(scale)).await?,
            Figure::Drain => comparison.compare(&empty, &bare_drain::limit(scale)).await?,
            Figure::Finished => comparison.compare(&drain_scenarios::finished(on, scale), &empty).await?,
            Figure::Pending => comparison.compare(&drain_scenarios::pending(on, scale), &empty).await?,
            Figure::Xmin => {
                comparison.compare(&drain_scenarios::held(scale), &drain_scenarios::not_held(scale)).await?
            }
            Figure::Memory => memory::measure(self, scale, progress).await?,
            Figure::Latency => {
                let same = latency::measure(self, false, scale, progress).await?;
                return Ok(vec![same, latency::measure(self, true, scale, progress).await?]);
            }
            Figure::Promotion => return coordinator::promotion(self, request, progress).await,
            Figure::Punctuality => return coordinator::punctuality(self, scale, progress).await,
            Figure::Idle => coordinator::idle(self, scale, progress).await?,
            Figure::Reaping => coordinator::reaping(self, request, progress).await?,
            Figure::Run => comparison.compare(&worker::ours(scale), &worker::limit(on, scale)).await?,
            Figure::Start => worker::start(self, scale, progress).await?,
            Figure::Load => schedules::load(self, request, progress).await?,
            Figure::Burst => schedules::burst(self, request, progress).await?,
            Figure::Health => http::health(&comparison, request).await?,
            Figure::Post => http::post(&comparison, request).await?,
            Figure::Get => http::get(&comparison, request).await?,
            Figure::Keys => return http::keys(&comparison, request).await,
            Figure::Overload => return http::overload(&comparison, request, progress).await,
            Figure::Growth => http::growth(self, request, progress).await?,
            Figure::Waits => http::waits(self, request, progress).await?,
            Figure::Footprint => worker::footprint(self, scale, progress).await?,
            Figure::Width(width) => width::compare(width, &comparison, request).await?,
            Figure::Chain => dependencies::chain(self, request, progress).await?,
            Figure::FanOut => return dependencies::fan_out(self, request, progress).await,
        }])
    }
}

/// Inserts completed jobs into history.
pub(crate) async fn fill_finished(url: &str, count: usize) -> Result<()> {
    let client = server::connect(url).await?;
    client.execute(include_str!("sql/fill_history.sql"), &[&(count as i64)]).await?;
    Ok(())
}

/// Turns autovacuum on or off.
pub(crate) async fn set_autovacuum(url: &str, on: bool) -> Result<()> {
    let client = server::connect(url).await?;
    client.batch_execute(&format!("ALTER SYSTEM SET autovacuum = {on}")).await?;
    Ok(client.batch_execute("SELECT pg_reload_conf()").await?)
}

/// Opens a snapshot that keeps vacuum from removing rows that die from now on, as long as the client lives.
pub(crate) async fn hold_snapshot(url: &str) -> Result<Client> {
    let client = server::connect(url).await?;
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM pg_class LIMIT 1").await?;
    Ok(client)
}
