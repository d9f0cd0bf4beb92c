//! What must add up in the file whatever has happened to it.

use rusqlite::Connection;

/// Fails unless the depths are what a count would find and nothing is half-written: every part of a job is there, and
/// no part is there without its job.
pub(crate) fn assert_balanced(connection: &Connection) {
    for (what, sql) in RULES {
        assert_none(connection, what, sql);
    }
}

/// Fails unless every page of the file is as it should be.
pub(crate) fn assert_sound(connection: &Connection) {
    let report: String = connection.query_row("PRAGMA integrity_check", (), |row| row.get(0)).unwrap();
    assert_eq!(report, "ok");
}

/// The same without comparing each index with its table.
pub(crate) fn assert_readable(connection: &Connection) {
    let report: String = connection.query_row("PRAGMA quick_check", (), |row| row.get(0)).unwrap();
    assert_eq!(report, "ok");
}

const RULES: [(&str, &str); 7] = [
    ("a depth differs from what is there", DEPTHS),
    ("a payload is missing", "SELECT hex(id) FROM job WHERE payload_apart AND id NOT IN (SELECT id FROM payload)"),
    ("a payload has no job", "SELECT hex(id) FROM payload WHERE id NOT IN (SELECT id FROM job WHERE payload_apart)"),
    (
        "a key stands for nothing",
        "SELECT key FROM idempotency WHERE last_state IS NULL AND job_id NOT IN (SELECT id FROM job)",
    ),
    (
        "a job miscounts the parents it waits for",
        "SELECT hex(id) FROM job WHERE waits_for <> (SELECT count(*) FROM dependency WHERE child = id AND NOT met)
             AND finished_at IS NULL",
    ),
    (
        "a job has fewer attempts on record than it had leases",
        "SELECT hex(id) FROM job WHERE lease_counter <> (SELECT count(*) FROM attempt WHERE job_id = id)
             + (state = 'running') + (state = 'completed' AND lease_counter = 1)",
    ),
    ("an attempt has no job", "SELECT hex(job_id) FROM attempt WHERE job_id NOT IN (SELECT id FROM job)"),
];

const DEPTHS: &str = "
    SELECT format('%s %s: %s, counted %s', queue, state, noted.n, counted.n)
    FROM depth AS noted
    FULL JOIN (SELECT queue, state, count(*) AS n FROM job WHERE finished_at IS NULL GROUP BY queue, state) AS counted
        USING (queue, state)
    WHERE noted.n IS NOT counted.n";

fn assert_none(connection: &Connection, what: &str, sql: &str) {
    let mut statement = connection.prepare(sql).unwrap();
    let found: Result<Vec<String>, _> = statement.query_map((), |row| row.get(0)).unwrap().collect();
    assert_eq!(found.unwrap(), [""; 0], "{what}");
}
