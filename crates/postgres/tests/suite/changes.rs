//! Recent changes after many jobs finished at once.

use orchestrix_core::Timestamp;
use orchestrix_store::{ChangesQuery, prelude::*};

use crate::support;

/// Fills a few page ranges of the default partition.
const FILL: &str = "
    ALTER TABLE orchestrix.history_default SET (autovacuum_enabled = off);
    INSERT INTO orchestrix.history (
        id, created_at, finished_at, eligible_at, started_at, lease_secret, state, lease_counter, lease_ms, rank, attempts, max_attempts,
        losses, has_parents, has_dependents, payload_apart, queue, job_type, tenant, worker, payload)
    SELECT gen_random_uuid(), at, at, at, at, gen_random_uuid(), 'completed', 1, 30000, 0, 1, 10, 0, false, false, false, 'q', 't', 'default', 'w',
           repeat('x', 300)
    FROM (SELECT now() - interval '1 hour' AS at FROM generate_series(1, 10000)) AS n";

#[tokio::test]
async fn a_query_summarizes_the_index_although_autovacuum_never_runs() {
    let (store, database) = support::store().await;
    let client = support::connect(database.url()).await;
    client.batch_execute(FILL).await.expect("filled");
    let query = ChangesQuery { finished_since: Some(Timestamp::now()), ..ChangesQuery::leased(10) };
    assert_eq!(store.recent_changes(&query).await.expect("a page of changes").jobs, []);
    let sql = "SELECT brin_summarize_new_values(inhrelid) FROM pg_inherits WHERE inhparent = 'orchestrix.history_finished'::regclass";
    let left: Vec<i32> = client.query(sql, &[]).await.expect("ranges").iter().map(|row| row.get(0)).collect();
    assert!(!left.is_empty() && left.iter().all(|count| *count == 0), "{left:?}");
}
