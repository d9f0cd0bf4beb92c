//! Measuring two sides in turns.
//!
//! Each measurement has a database of its own, fresh and behind a checkpoint. Filling it and a first part of the work,
//! in which connections are opened and plans are made, come before the clock starts.

use anyhow::Result;

use crate::{
    arguments::Request,
    backend::Backend,
    figure::Figure,
    progress::Progress,
    report::Row,
    sample::{Sample, Spread, thousands},
};

/// One of two ways to do the same work, in the database that a URL names.
pub(crate) trait Side {
    /// Connections, ready to work.
    type Session;

    /// Makes the tables and the rows that the work needs.
    async fn prepare(&self, url: &str) -> Result<()>;

    /// Connects.
    async fn open(&self, url: &str) -> Result<Self::Session>;

    /// Does the part of the work that is not timed; answers how many jobs that were.
    async fn warm(&self, session: &mut Self::Session) -> Result<u64>;

    /// Does the part that is timed; answers how many jobs that were.
    async fn run(&self, session: &mut Self::Session) -> Result<u64>;
}

/// A database of one measurement.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) name: String,
    pub(crate) url: String,
}

/// Where databases come from, and what can be seen of them while they are measured.
pub(crate) trait Place {
    const BACKEND: Backend;

    async fn create_database(&self) -> Result<Database>;

    async fn drop_database(&self, database: Database) -> Result<()>;

    /// Measures one side once, in a database of its own.
    async fn sample(&self, side: &impl Side) -> Result<Sample>;

    /// Measures a figure beside the limit that it has here.
    async fn measure(&self, figure: Figure, request: &Request, progress: &Progress) -> Result<Vec<Row>>;
}

/// A figure that compares two sides.
#[derive(Debug)]
pub(crate) struct Pair<'a, P> {
    pub(crate) figure: Figure,
    pub(crate) place: &'a P,
    pub(crate) rounds: usize,
    pub(crate) progress: &'a Progress,
}

impl<P: Place> Pair<'_, P> {
    pub(crate) async fn compare(&self, ours: &impl Side, limit: &impl Side) -> Result<Row> {
        let name = self.figure.name();
        let mut samples = Vec::new();
        for round in 1..=self.rounds {
            // Whoever goes second may find the machine warmer: they take turns at that too.
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

    async fn sample(&self, side: &impl Side, round: usize, called: &str) -> Result<Sample> {
        self.progress.step(format!("{}, round {round} of {}, {called}", self.figure.name(), self.rounds));
        let sample = self.place.sample(side).await?;
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
            ..Row::judged(self.figure.target(P::BACKEND), ratio.median)
        }
    }
}
