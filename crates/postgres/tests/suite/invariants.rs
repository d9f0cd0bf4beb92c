//! Invariants of the database, which hold whatever happened to it.

use tokio_postgres::Client;

/// Asserts that the depths equal a count, every job is in one table, every job waits for as many parents as it has
/// unmet dependencies, every pending job is in a ready batch, and no transaction was left open.
pub(crate) async fn assert_consistent(client: &Client) {
    assert_none(client, "a depth differs from the count of jobs", DEPTHS).await;
    assert_none(
        client,
        "a job is in two tables",
        "SELECT id::text FROM orchestrix.jobs GROUP BY id HAVING count(*) > 1",
    )
    .await;
    assert_none(client, "waits_for differs from the unmet dependencies", WAITS).await;
    assert_none(client, "a pending job is in no ready batch", NOT_READY).await;
    assert_none(client, "a transaction was left open", OPEN).await;
}

const DEPTHS: &str = "
    SELECT format('%s %s: %s, counted %s', queue, state, noted.n, counted.n)
    FROM (SELECT queue, state, sum(n) AS n
          FROM (SELECT queue, state, n FROM orchestrix.depth
                UNION ALL SELECT c.queue, d.state, c.n FROM orchestrix.depth_delta d CROSS JOIN unnest(d.queues, d.counts) AS c (queue, n)) AS d
          GROUP BY queue, state HAVING sum(n) <> 0) AS noted
    FULL JOIN (SELECT queue, state, count(*) AS n FROM orchestrix.job GROUP BY queue, state) AS counted USING (queue, state)
    WHERE noted.n IS DISTINCT FROM counted.n";

const WAITS: &str = "
    SELECT j.id::text FROM orchestrix.job j
    WHERE j.waits_for <> (SELECT count(*) FROM orchestrix.dependency d WHERE d.child = j.id AND NOT d.met)";

const NOT_READY: &str = "
    SELECT j.id::text FROM orchestrix.job j
    WHERE j.state = 'pending' AND NOT EXISTS (
        SELECT FROM orchestrix.ready r
        WHERE r.queue = j.queue AND r.job_type = j.job_type AND r.rank = j.rank AND r.eligible_at = j.eligible_at
          AND j.id = ANY (r.ids) AND (NOT r.parked OR EXISTS (SELECT FROM orchestrix.queue q WHERE q.name = j.queue AND (q.paused OR q.resuming))))";

const OPEN: &str = "
    SELECT format('%s: %s', state, query) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'";

async fn assert_none(client: &Client, what: &str, sql: &str) {
    let rows = client.query(sql, &[]).await.unwrap();
    let found: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert!(found.is_empty(), "{what}: {found:?}");
}
