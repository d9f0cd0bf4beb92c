//! Measuring two sides in turns.
//!
//! Each measurement has a database of its own, fresh and behind a checkpoint. Filling it and a first part of the work,
//! in which connections are opened and plans are made, come before the clock starts.

use std::time::Instant;

use anyhow::{Result, ensure};

use crate::{
    figure::Figure,
    progress::Progress,
    report::Row,
    sample::{Sample, Spread, thousands},
    server::Server,
};

/// One of two ways to do the same work.
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

/// A figure that compares two sides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair<'a> {
    pub(crate) figure: Figure,
    pub(crate) server: &'a Server,
    pub(crate) rounds: usize,
    pub(crate) progress: &'a Progress,
}

impl Pair<'_> {
    pub(crate) async fn compare(self, ours: &impl Side, limit: &impl Side) -> Result<Row> {
        let name = self.figure.name();
        let mut samples = Vec::new();
        for round in 1..=self.rounds {
            let doing = |side: &str| self.progress.step(format!("{name}, round {round} of {}, {side}", self.rounds));
            // Whoever goes second may find the machine warmer: they take turns at that too.
            let sample = if round % 2 == 1 {
                doing("ours");
                let ours = self.sample(ours).await?;
                doing("limit");
                (ours, self.sample(limit).await?)
            } else {
                doing("limit");
                let limit = self.sample(limit).await?;
                doing("ours");
                (self.sample(ours).await?, limit)
            };
            let (o, l) = (sample.0.jobs_per_second, sample.1.jobs_per_second);
            let line =
                format!("{name} {round}/{}: {} of {} jobs/s, {:.2}", self.rounds, thousands(o), thousands(l), o / l);
            self.progress.note(&line);
            samples.push(sample);
        }
        Ok(self.row(&samples))
    }

    fn row(self, samples: &[(Sample, Sample)]) -> Row {
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
            wal: both(|sample| sample.wal_per_job, 0),
            transactions: both(|sample| sample.transactions_per_job, 4),
            ..Row::judged(self.figure.target(), ratio.median)
        }
    }

    async fn sample<S: Side>(self, side: &S) -> Result<Sample> {
        let Self { server, progress, .. } = self;
        let database = server.create_database().await?;
        server.checkpoint().await?;
        side.prepare(&database.url).await?;
        // What opening alone costs, to be left out.
        let prepared = server.commits(&database).await?;
        drop(side.open(&database.url).await?);
        let opened = server.commits(&database).await?;
        let opening = opened - prepared;

        let mut session = side.open(&database.url).await?;
        let warmed = side.warm(&mut session).await?;
        let wal = server.wal().await?;
        let clock = Instant::now();
        let jobs = side.run(&mut session).await?;
        let took = clock.elapsed();
        let wal = server.wal().await? - wal;
        ensure!(jobs > 0, "no job was done");
        drop(session);
        let transactions = (server.commits(&database).await? - opened).saturating_sub(opening);
        server.drop_database(database).await?;
        progress.done();
        Ok(Sample::new(jobs, took, wal, transactions, warmed + jobs))
    }
}
