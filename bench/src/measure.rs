//! Alternating measurements of two workloads.
//!
//! Each measurement has a fresh database after a checkpoint. Filling it, and a first part of the work that opens
//! connections and prepares plans, come before the clock starts.

use anyhow::Result;

use crate::{
    arguments::Request,
    backend::Backend,
    figure::Figure,
    progress::Progress,
    report::Row,
    sample::{Sample, Spread, thousands},
};

/// One of two ways to do the same work, in the database at a URL.
pub(crate) trait Workload {
    /// Open connections.
    type Session;

    /// Creates the tables and rows.
    async fn prepare(&self, url: &str) -> Result<()>;

    /// Connects.
    async fn open(&self, url: &str) -> Result<Self::Session>;

    /// Does the untimed part of the work; returns the number of jobs.
    async fn warm(&self, session: &mut Self::Session) -> Result<u64>;

    /// Does the timed part of the work; returns the number of jobs.
    async fn run(&self, session: &mut Self::Session) -> Result<u64>;

    /// Checks what the session did, after the clock has stopped. The default checks nothing.
    fn check_session(&self, _session: &Self::Session) -> Result<()> {
        Ok(())
    }

    /// Checks what the work left in the database, after the counters were read. The default checks nothing.
    async fn check_database(&self, _url: &str) -> Result<()> {
        Ok(())
    }
}

/// The database of one measurement.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) name: String,
    pub(crate) url: String,
}

/// Creates databases, and counts what happens in them.
pub(crate) trait DatabaseHost {
    const BACKEND: Backend;

    async fn create_database(&self) -> Result<Database>;

    async fn drop_database(&self, database: Database) -> Result<()>;

    /// Measures one workload once, in a database of its own.
    async fn sample(&self, side: &impl Workload) -> Result<Sample>;

    /// Measures a figure, compared with its limit.
    async fn measure(&self, figure: Figure, request: &Request, progress: &Progress) -> Result<Vec<Row>>;
}

/// A figure that compares two workloads.
#[derive(Debug)]
pub(crate) struct Comparison<'a, P> {
    pub(crate) figure: Figure,
    pub(crate) host: &'a P,
    pub(crate) rounds: usize,
    pub(crate) progress: &'a Progress,
}

impl<P: DatabaseHost> Comparison<'_, P> {
    pub(crate) async fn compare(&self, ours: &impl Workload, limit: &impl Workload) -> Result<Row> {
        let name = self.figure.name();
        let mut samples = Vec::new();
        for round in 1..=self.rounds {
            // The second one may profit from a warm machine, so the order alternates.
            let sample = if round % 2 == 1 {
                let ours = self.sample(ours, round, "ours").await?;
                (ours, self.sample(limit, round, "limit").await?)
            } else {
                let limit = self.sample(limit, round, "limit").await?;
                (self.sample(ours, round, "ours").await?, limit)
            };
            let (o, l) = (sample.0.jobs_per_second, sample.1.jobs_per_second);
            let line =
                format!("{name} {round}/{}: {} of {} jobs/s, {:.2}", self.rounds, thousands(o), thousands(l), o / l);
            self.progress.note(&line);
            samples.push(sample);
        }
        Ok(self.row(&samples))
    }

    async fn sample(&self, side: &impl Workload, round: usize, called: &str) -> Result<Sample> {
        self.progress.step(format!("{}, round {round} of {}, {called}", self.figure.name(), self.rounds));
        let sample = self.host.sample(side).await?;
        self.progress.done();
        Ok(sample)
    }

    fn row(&self, samples: &[(Sample, Sample)]) -> Row {
        let both = |value: fn(&Sample) -> f64, decimals: usize| {
            let ours = Spread::median_of(samples.iter().map(|(ours, _)| value(ours)));
            let limit = Spread::median_of(samples.iter().map(|(_, limit)| value(limit)));
            format!("{ours:.decimals$} / {limit:.decimals$}")
        };
        let ratio = Spread::of(samples.iter().map(|(ours, limit)| ours.jobs_per_second / limit.jobs_per_second));
        Row {
            figure: self.figure.name().into(),
            ours: Spread::of(samples.iter().map(|(ours, _)| ours.jobs_per_second)).to_string(),
            limit: Spread::of(samples.iter().map(|(_, limit)| limit.jobs_per_second)).to_string(),
            ratio: ratio.with_decimals(2),
            written: both(|sample| sample.written_per_job, 0),
            transactions: both(|sample| sample.transactions_per_job, 4),
            ..Row::with_target(self.figure.target(P::BACKEND), ratio.median)
        }
    }
}
