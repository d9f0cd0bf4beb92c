//! The checker of schedules. It reads tables with plain SQL and shares no code with the product.
//!
//! Every nominal time has one occurrence. A fired occurrence has one job, and every job has an occurrence. An
//! occurrence is late if it is processed more than a grace period after its nominal time: half the period, but at least
//! 5 s. An occurrence on time fires. A late one fires with `catch_up`; with `fire_once` only the latest fires, unless
//! one is on time; with `skip` none does.

use std::time::SystemTime;

use tokio_postgres::Client;

/// The maximum number of listed violations. Further ones are counted.
const MAX_LISTED: usize = 30;

/// Creates the audit tables of the checker.
pub(crate) async fn install(client: &Client) {
    client.batch_execute(include_str!("audit.sql")).await.unwrap();
}

/// Lists every violation. All schedules must have advanced past `closed`.
pub(crate) async fn violations(client: &Client, closed: SystemTime) -> Vec<String> {
    // JIT compilation would take seconds; the statement itself takes none.
    client.batch_execute("SET jit = off").await.unwrap();
    let rows = client.query(include_str!("violations.sql"), &[&closed]).await.unwrap();
    let mut violations: Vec<String> = rows.iter().take(MAX_LISTED).map(|row| row.get(0)).collect();
    if rows.len() > MAX_LISTED {
        violations.push(format!("and {} more", rows.len() - MAX_LISTED));
    }
    violations
}

/// The occurrences of all schedules with one misfire rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) misfire: String,
    pub(crate) schedules: i64,
    pub(crate) times: i64,
    pub(crate) on_time: i64,
    /// Fired late.
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
