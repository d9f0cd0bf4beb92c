//! Consistency checks of a file, by plain SQL.

use orchestrix_core::{Tenant, turn::ring_position};
use rusqlite::Connection;

/// Fails unless the stored depths and lanes match the jobs, every part of a job exists, and no part exists without
/// its job.
pub(crate) fn assert_consistent(connection: &Connection) {
    for (what, sql) in RULES {
        assert_none(connection, what, sql);
    }
    assert_lanes_consistent(connection);
}

/// Fails unless a claim finds every claimable job by its lane.
pub(crate) fn assert_lanes_consistent(connection: &Connection) {
    for (what, sql) in LANE_RULES {
        assert_none(connection, what, sql);
    }
    let mut lanes = connection.prepare("SELECT tenant, ring FROM lane").unwrap();
    let lanes = lanes.query_map((), |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))).unwrap();
    for (tenant, ring) in lanes.map(Result::unwrap) {
        assert_eq!(ring_position(&Tenant::trusted(&tenant)), ring, "the ring position of {tenant}");
    }
}

/// Fails unless the file passes SQLite's full integrity check.
pub(crate) fn assert_intact(connection: &Connection) {
    let report: String = connection.query_row("PRAGMA integrity_check", (), |row| row.get(0)).unwrap();
    assert_eq!(report, "ok");
}

/// Fails unless the file passes SQLite's quick check, which does not compare indexes with their tables.
pub(crate) fn assert_pages_intact(connection: &Connection) {
    let report: String = connection.query_row("PRAGMA quick_check", (), |row| row.get(0)).unwrap();
    assert_eq!(report, "ok");
}

const RULES: [(&str, &str); 7] = [
    ("a stored depth differs from the count", DEPTHS),
    ("a payload is missing", "SELECT hex(id) FROM job WHERE payload_apart AND id NOT IN (SELECT id FROM payload)"),
    ("a payload has no job", "SELECT hex(id) FROM payload WHERE id NOT IN (SELECT id FROM job WHERE payload_apart)"),
    (
        "an idempotency key has no job",
        "SELECT key FROM idempotency WHERE last_state IS NULL AND job_id NOT IN (SELECT id FROM job)",
    ),
    (
        "a job has a wrong count of unfinished parents",
        "SELECT hex(id) FROM job WHERE waits_for <> (SELECT count(*) FROM dependency WHERE child = id AND NOT met)
             AND finished_at IS NULL",
    ),
    (
        "a job has fewer attempt records than leases",
        "SELECT hex(id) FROM job WHERE lease_counter <> (SELECT count(*) FROM attempt WHERE job_id = id)
             + (state = 'running') + (state = 'completed' AND lease_counter = 1)",
    ),
    ("an attempt has no job", "SELECT hex(job_id) FROM attempt WHERE job_id NOT IN (SELECT id FROM job)"),
];

const LANE_RULES: [(&str, &str); 2] = [
    ("a claimable job precedes the key of its lane, or has no lane", LANES),
    (
        "a lane is paused and its queue is not, or the other way round",
        "SELECT queue FROM lane WHERE paused <> EXISTS (SELECT 1 FROM queue WHERE name = lane.queue AND paused)",
    ),
];

const LANES: &str = "
    SELECT hex(job.id) FROM job LEFT JOIN lane USING (queue, job_type, tenant, rank)
    WHERE state = 'pending'
        AND (lane.id IS NULL OR (lane.eligible_at, lane.id) > (job.eligible_at, job.id))";

const DEPTHS: &str = "
    SELECT format('%s %s: %s, counted %s', queue, state, stored.n, counted.n)
    FROM depth AS stored
    FULL JOIN (SELECT queue, state, count(*) AS n FROM job WHERE finished_at IS NULL GROUP BY queue, state) AS counted
        USING (queue, state)
    WHERE stored.n IS NOT counted.n";

fn assert_none(connection: &Connection, what: &str, sql: &str) {
    let mut statement = connection.prepare(sql).unwrap();
    let found: Result<Vec<String>, _> = statement.query_map((), |row| row.get(0)).unwrap().collect();
    assert_eq!(found.unwrap(), [""; 0], "{what}");
}
