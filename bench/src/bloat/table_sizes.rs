//! Samples of the tables that hold unfinished work.

use std::time::Duration;

use anyhow::Result;
use tokio_postgres::{Client, Statement};

use crate::postgres;

/// The size of a table at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TableSize {
    /// The time since the first sample.
    pub(super) at: Duration,
    pub(super) heap: u64,
    pub(super) indexes: u64,
    /// Heap, indexes, TOAST and maps.
    pub(super) total: u64,
    /// As autovacuum counts them.
    pub(super) live_rows: u64,
    pub(super) dead_rows: u64,
    /// Inserted since the table exists.
    pub(super) inserted_rows: u64,
}

/// All samples of one table.
#[derive(Debug)]
pub(super) struct TableHistory {
    pub(super) name: String,
    /// The average size of a row, once the table had one.
    pub(super) row_bytes: Option<f64>,
    pub(super) sizes: Vec<TableSize>,
}

impl TableHistory {
    /// The latest sample.
    pub(super) fn last(&self) -> TableSize {
        self.sizes.last().copied().unwrap_or_default()
    }

    /// The highest value of all samples.
    pub(super) fn peak(&self, value: impl Fn(&TableSize) -> u64) -> u64 {
        self.sizes.iter().map(value).max().unwrap_or_default()
    }

    /// The rows of `jobs` unfinished jobs: as many as the table gets per job, and at least those that are always there.
    pub(super) fn live_rows(&self, jobs: f64, jobs_per_second: f64) -> f64 {
        let (first, last) = (self.sizes.first().copied().unwrap_or_default(), self.last());
        let seconds = (last.at - first.at).as_secs_f64().max(1.0);
        let inserted = last.inserted_rows.saturating_sub(first.inserted_rows) as f64 / seconds;
        let always = self.sizes.iter().map(|size| size.live_rows).min().unwrap_or_default();
        (inserted / jobs_per_second * jobs).max(always as f64)
    }

    /// The growth in bytes per minute between two shares of the time, from the samples nearest to them.
    pub(super) fn growth_per_minute(&self, from: f64, to: f64) -> f64 {
        let end = self.last().at.as_secs_f64();
        let nearest = |share: f64| {
            let distance = |size: &TableSize| (size.at.as_secs_f64() - share * end).abs();
            self.sizes.iter().min_by(|a, b| distance(a).total_cmp(&distance(b))).copied().unwrap_or_default()
        };
        let (from, to) = (nearest(from), nearest(to));
        let minutes = to.at.saturating_sub(from.at).as_secs_f64() / 60.0;
        if minutes > 0.0 { (to.total as f64 - from.total as f64) / minutes } else { 0.0 }
    }
}

/// Reads sizes over a connection of its own.
pub(super) struct Sampler {
    client: Client,
    sizes: Statement,
    tables: Vec<TableHistory>,
}

impl Sampler {
    pub(super) async fn connect(url: &str) -> Result<Self> {
        let client = postgres::connect(url).await?;
        let sizes = client.prepare(include_str!("table_sizes.sql")).await?;
        Ok(Self { client, sizes, tables: Vec::new() })
    }

    /// Measures the rows of the tables that have some, and keeps no sample.
    pub(super) async fn measure_rows(&mut self) -> Result<()> {
        self.sample(Duration::ZERO).await?;
        for table in &mut self.tables {
            table.sizes.clear();
        }
        Ok(())
    }

    /// Adds a sample of every table.
    pub(super) async fn sample(&mut self, at: Duration) -> Result<()> {
        for row in self.client.query(&self.sizes, &[]).await? {
            let number = |column: &str| u64::try_from(row.get::<_, i64>(column));
            let size = TableSize {
                at,
                heap: number("heap")?,
                indexes: number("indexes")?,
                total: number("total")?,
                live_rows: number("live_rows")?,
                dead_rows: number("dead_rows")?,
                inserted_rows: number("inserted_rows")?,
            };
            let name: String = row.get("name");
            let known = self.tables.iter().position(|table| table.name == name);
            let index = known.unwrap_or_else(|| {
                self.tables.push(TableHistory { name: name.clone(), row_bytes: None, sizes: Vec::new() });
                self.tables.len() - 1
            });
            self.tables[index].sizes.push(size);
            if self.tables[index].row_bytes.is_none() && size.heap > 0 {
                self.tables[index].row_bytes = self.row_bytes(&name).await?;
            }
        }
        Ok(())
    }

    /// The average size of some rows with their headers.
    async fn row_bytes(&self, table: &str) -> Result<Option<f64>> {
        let rows = format!("(SELECT * FROM orchestrix.\"{table}\" LIMIT 1000)");
        let sql = format!("SELECT avg(pg_column_size(rows.*))::float8 FROM {rows} AS rows");
        Ok(self.client.query_one(&sql, &[]).await?.get(0))
    }

    pub(super) fn tables(&self) -> &[TableHistory] {
        &self.tables
    }

    /// Hands over all samples.
    pub(super) fn take_tables(&mut self) -> Vec<TableHistory> {
        std::mem::take(&mut self.tables)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A table with a sample per minute.
    pub(crate) fn table(totals: &[u64], inserted_per_minute: u64) -> TableHistory {
        let size = |(minute, total): (usize, &u64)| TableSize {
            at: Duration::from_secs(60 * minute as u64),
            total: *total,
            live_rows: 10,
            inserted_rows: minute as u64 * inserted_per_minute,
            ..TableSize::default()
        };
        let sizes = totals.iter().enumerate().map(size).collect();
        TableHistory { name: "job".into(), row_bytes: Some(100.0), sizes }
    }

    #[test]
    fn growth_is_per_minute_between_two_samples() {
        let table = table(&[0, 10, 20, 20, 20, 60, 100], 0);
        assert_eq!(table.growth_per_minute(0.0, 1.0 / 3.0), 10.0);
        assert_eq!(table.growth_per_minute(0.5, 1.0), 80.0 / 3.0);
        assert_eq!(table.growth_per_minute(0.5, 0.5), 0.0);
        assert_eq!(table.peak(|size| size.total), 100);
    }

    #[test]
    fn live_rows_follow_from_the_rows_per_job() {
        // 100 rows per second at 50 jobs per second are two per job.
        assert_eq!(table(&[0, 0, 0], 6_000).live_rows(1_000.0, 50.0), 2_000.0);
        // A table without inserts has the rows that are always there.
        assert_eq!(table(&[0, 0, 0], 0).live_rows(1_000.0, 50.0), 10.0);
    }
}
