//! Ids and times of rows in the database, by name.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use tokio_postgres::Client;

/// Placeholders in paths, and the statements that find their values.
const STATEMENTS: &[(&str, &str)] = &[
    ("pending", "SELECT id::text FROM orchestrix.job WHERE state = 'pending' ORDER BY id DESC LIMIT 1"),
    // No worker takes this type.
    ("unserved", "SELECT id::text FROM orchestrix.job WHERE state = 'pending' AND job_type = 'type-7' LIMIT 1"),
    ("scheduled", "SELECT id::text FROM orchestrix.job WHERE state = 'scheduled' LIMIT 1"),
    ("retrying", "SELECT id::text FROM orchestrix.job WHERE state = 'retrying' LIMIT 1"),
    // With a thousand parents.
    ("blocked", "SELECT id::text FROM orchestrix.job WHERE state = 'blocked' ORDER BY id LIMIT 1"),
    ("running", "SELECT id::text FROM orchestrix.job WHERE state = 'running' ORDER BY id LIMIT 1"),
    ("completed", "SELECT id::text FROM orchestrix.history WHERE state = 'completed' ORDER BY id DESC LIMIT 1"),
    ("logged", "SELECT job_id::text FROM orchestrix.log ORDER BY job_id LIMIT 1"),
    // With a hundred thousand log lines.
    ("dead", "SELECT id::text FROM orchestrix.dead ORDER BY id DESC LIMIT 1"),
    ("line", "SELECT (max(seq) - 5000)::text FROM orchestrix.log"),
    (
        "operation",
        "SELECT id::text FROM orchestrix.operation WHERE state = 'done' ORDER BY id DESC OFFSET 5000 LIMIT 1",
    ),
    ("entry", "SELECT (max(seq) / 2)::text FROM orchestrix.audit"),
    ("unknown", "SELECT bench_id(now() - interval '3 days', 0)::text"),
    // Before all pending jobs; in the middle of the finished ones; and the last page.
    ("waiting", "SELECT orchestrix.id_floor(now() - interval '5 hours')::text"),
    ("middle", "SELECT orchestrix.id_floor(now() - interval '84 hours')::text"),
    ("last", "SELECT id::text FROM orchestrix.history ORDER BY id OFFSET 500 LIMIT 1"),
    ("hour", "SELECT to_char(now() AT TIME ZONE 'UTC' - interval '1 hour', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"),
    ("days", "SELECT to_char(now() AT TIME ZONE 'UTC' - interval '3 days', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"),
    ("year", "SELECT to_char(now() AT TIME ZONE 'UTC' - interval '1 year', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"),
];

/// Placeholders and their values.
#[derive(Debug)]
pub(super) struct Placeholders(BTreeMap<&'static str, String>);

impl Placeholders {
    pub(super) async fn find(client: &Client) -> Result<Self> {
        let mut found = BTreeMap::new();
        for (name, sql) in STATEMENTS {
            found.insert(*name, client.query_one(*sql, &[]).await.with_context(|| (*name).to_owned())?.get(0));
        }
        Ok(Self(found))
    }

    /// The path with all placeholders replaced.
    pub(super) fn fill(&self, path: &str) -> String {
        self.0.iter().fold(path.to_owned(), |path, (name, text)| path.replace(&format!("{{{name}}}"), text))
    }
}
