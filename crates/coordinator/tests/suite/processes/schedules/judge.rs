//! The judge of schedules. It reads tables, counts seconds by itself, and shares nothing with the product.
//!
//! Every nominal time has one line of the ledger, one that fired has one job, and no job is without a line. A time is late when
//! it is found more than a grace after it: half the time to the next, but 5 s at least. What is on time fires. What is late
//! fires too with `catch_up`; with `fire_once` the latest of it does, unless something is on time; with `skip` nothing does.

use std::time::SystemTime;

use tokio_postgres::Client;

/// Violations that are listed; those beyond are counted.
const LISTED: usize = 30;

/// Sets up what the judge needs to see, beside the audit of leaders.
pub(crate) async fn watch(client: &Client) {
    client.batch_execute(include_str!("audit.sql")).await.unwrap();
}

/// Every broken promise, in words. All schedules must have come as far as `closed`.
pub(crate) async fn violations(client: &Client, closed: SystemTime) -> Vec<String> {
    // To compile the statement would take seconds, and to run it takes none.
    client.batch_execute("SET jit = off").await.unwrap();
    let rows = client.query(include_str!("violations.sql"), &[&closed]).await.unwrap();
    let mut found: Vec<String> = rows.iter().take(LISTED).map(|row| row.get(0)).collect();
    if rows.len() > LISTED {
        found.push(format!("and {} more", rows.len() - LISTED));
    }
    found
}

/// What became of the nominal times of all schedules with one rule for late ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) misfire: String,
    pub(crate) schedules: i64,
    pub(crate) times: i64,
    pub(crate) on_time: i64,
    /// Fired, and late.
    pub(crate) late: i64,
    pub(crate) missed: i64,
}

pub(crate) async fn counts(client: &Client) -> Vec<Counts> {
    let rows = client.query(include_str!("counts.sql"), &[]).await.unwrap();
    let counts = rows.iter().map(|row| Counts {
        misfire: row.get(0),
        schedules: row.get(1),
        times: row.get(2),
        on_time: row.get(3),
        late: row.get(4),
        missed: row.get(5),
    });
    counts.collect()
}
