//! Tests of the checker: it finds planted violations.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use orchestrix_testkit::TestDatabase;
use tokio_postgres::Client;

use super::{
    super::{cluster::connect, traffic::open},
    checker::{self, Counts},
};

/// 2026-01-01T00:00:10.5Z: every schedule of the valid case has advanced past it.
fn closed() -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(1_767_225_610_500)
}

async fn valid() -> (TestDatabase, Client) {
    let database = tokio::task::block_in_place(|| TestDatabase::create("judge").unwrap());
    // Creates the schema.
    drop(open(database.url()).await);
    let client = connect(database.url()).await;
    client.batch_execute(include_str!("../audit.sql")).await.unwrap();
    checker::install(&client).await;
    client.batch_execute(include_str!("valid.sql")).await.unwrap();
    (database, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_valid_history_has_no_violations() {
    let (_database, client) = valid().await;
    assert_eq!(checker::violations(&client, closed()).await, Vec::<String>::new());
    let counts = |misfire: &str, [times, on_time, late, missed]: [i64; 4]| Counts {
        misfire: misfire.into(),
        schedules: 1,
        times,
        on_time,
        late,
        missed,
    };
    let expected =
        [counts("catch_up", [10, 8, 2, 0]), counts("fire_once", [3, 1, 1, 1]), counts("skip", [10, 8, 0, 2])];
    assert_eq!(checker::counts(&client).await, expected);
}

/// Planted errors: the expected text of the violation, and the SQL that causes it.
const PLANTED: &[(&str, &str)] = &[
    // Missing and duplicate occurrences.
    ("all has 0 occurrences for", "DELETE FROM orchestrix.occurrence WHERE schedule = 'all' AND nominal = '2026-01-01 00:00:03Z'"),
    ("all has 0 occurrences for", "DELETE FROM orchestrix.occurrence WHERE schedule = 'all' AND nominal = '2026-01-01 00:00:01Z'"),
    ("all has 0 occurrences for", "DELETE FROM orchestrix.occurrence WHERE schedule = 'all' AND nominal = '2026-01-01 00:00:10Z'"),
    ("none has 0 occurrences for", "DELETE FROM orchestrix.occurrence WHERE schedule = 'none' AND outcome = 'missed'"),
    (
        "all has 2 occurrences for",
        "ALTER TABLE orchestrix.occurrence DROP CONSTRAINT occurrence_pkey;
         INSERT INTO orchestrix.occurrence SELECT * FROM orchestrix.occurrence WHERE schedule = 'all' AND nominal = '2026-01-01 00:00:03Z'",
    ),
    (
        "none has 2 occurrences for",
        "UPDATE orchestrix.occurrence SET until = until + interval '1 s', count = 3 WHERE schedule = 'none' AND outcome = 'missed'",
    ),
    ("counts 3 times", "UPDATE orchestrix.occurrence SET count = 3 WHERE schedule = 'none' AND outcome = 'missed'"),
    (
        "all has an occurrence for",
        "UPDATE orchestrix.occurrence SET nominal = nominal + interval '0.1 s', until = until + interval '0.1 s'
         WHERE schedule = 'all' AND nominal = '2026-01-01 00:00:03Z'",
    ),
    ("which is not planned", "UPDATE orchestrix.occurrence SET schedule = 'others' WHERE schedule = 'all'"),
    // The state of schedules.
    ("all has 0 occurrences for", "UPDATE orchestrix.schedule SET next_nominal = next_nominal + interval '1 s', next_fire_at = next_fire_at + interval '1 s' WHERE name = 'all'"),
    (
        "all has an occurrence for",
        "UPDATE orchestrix.schedule SET next_nominal = next_nominal - interval '1 s', next_fire_at = next_fire_at - interval '1 s'
         WHERE name = 'all'",
    ),
    (
        "all is behind",
        "UPDATE orchestrix.schedule SET next_nominal = next_nominal - interval '1 s', next_fire_at = next_fire_at - interval '1 s'
         WHERE name = 'all'",
    ),
    ("is next at", "UPDATE orchestrix.schedule SET next_nominal = next_nominal - interval '0.5 s' WHERE name = 'all'"),
    ("all is missing", "DELETE FROM orchestrix.schedule WHERE name = 'all'"),
    ("all is missing", "UPDATE orchestrix.schedule SET next_nominal = NULL, next_fire_at = NULL WHERE name = 'all'"),
    ("all was put between", "UPDATE orchestrix.schedule SET created_at = created_at + interval '1 s' WHERE name = 'all'"),
    // Missing, duplicate and foreign jobs.
    ("exists 0 times", "DELETE FROM orchestrix.job WHERE id = md5('all3')::uuid"),
    ("exists 0 times", "DELETE FROM orchestrix.history WHERE id = md5('all1')::uuid"),
    ("exists 0 times", "DELETE FROM orchestrix.dead WHERE id = md5('all2')::uuid"),
    ("exists 2 times", "INSERT INTO orchestrix.history SELECT * FROM audit.ended(md5('all3')::uuid, 'completed')"),
    (
        "has no occurrence",
        "CREATE TEMPORARY TABLE second AS SELECT * FROM orchestrix.job WHERE id = md5('all3')::uuid;
         UPDATE second SET id = gen_random_uuid();
         INSERT INTO orchestrix.job SELECT * FROM second",
    ),
    (
        "belongs to 2 occurrences",
        "UPDATE orchestrix.occurrence SET job = md5('all4')::uuid WHERE schedule = 'all' AND nominal = '2026-01-01 00:00:05Z'",
    ),
    (
        "its job is for",
        "UPDATE orchestrix.job SET options = '{\"correlationId\": \"all@2026-01-01T00:00:04Z\"}' WHERE id = md5('all3')::uuid",
    ),
    ("its job is for", "UPDATE orchestrix.job SET options = NULL WHERE id = md5('all3')::uuid"),
    ("its job is for", "UPDATE orchestrix.job SET job_type = 'none' WHERE id = md5('all3')::uuid"),
    ("and its job at", "UPDATE orchestrix.job SET created_at = created_at + interval '1 ms' WHERE id = md5('all3')::uuid"),
    // The misfire rules.
    ("all for", "UPDATE orchestrix.occurrence SET at = nominal - interval '1 ms' WHERE schedule = 'all' AND nominal = '2026-01-01 00:00:03Z'"),
    ("(no reason), by the rule catch_up", "UPDATE orchestrix.occurrence SET reason = NULL WHERE schedule = 'all' AND reason = 'catch_up'"),
    (
        "(catch_up), by the rule catch_up",
        "UPDATE orchestrix.occurrence SET reason = 'catch_up' WHERE schedule = 'all' AND nominal = '2026-01-01 00:00:03Z'",
    ),
    (
        "missed (late), by the rule catch_up",
        "UPDATE orchestrix.occurrence SET outcome = 'missed', reason = 'late', job = NULL WHERE schedule = 'all' AND reason = 'catch_up'",
    ),
    (
        "skipped (overlap), by the rule catch_up",
        "UPDATE orchestrix.occurrence SET outcome = 'skipped', reason = 'overlap', job = NULL
         WHERE schedule = 'all' AND nominal = '2026-01-01 00:00:03Z'",
    ),
    (
        "fired (catch_up), by the rule skip",
        "UPDATE orchestrix.occurrence SET reason = 'catch_up', at = nominal + interval '6 s'
         WHERE schedule = 'none' AND nominal = '2026-01-01 00:00:03Z'",
    ),
    (
        "missed (late), by the rule skip",
        "UPDATE orchestrix.occurrence SET at = until + interval '4 s' WHERE schedule = 'none' AND outcome = 'missed'",
    ),
    (
        "missed (late), by the rule fire_once",
        "UPDATE orchestrix.occurrence SET at = nominal + interval '5.9 s' WHERE schedule = 'once' AND outcome = 'missed'",
    ),
    (
        "although it was not the latest",
        "UPDATE orchestrix.occurrence SET at = '2026-01-01 00:00:48.1Z' WHERE schedule = 'once' AND reason IS NOT NULL",
    ),
    (
        "and no later one fired instead",
        "UPDATE orchestrix.occurrence SET outcome = 'missed', reason = 'late', job = NULL WHERE schedule = 'once' AND reason = 'catch_up'",
    ),
    (
        "only times up to",
        "UPDATE orchestrix.occurrence SET at = nominal + interval '2 s' WHERE schedule = 'none' AND nominal = '2026-01-01 00:00:03Z'",
    ),
    // The writing node.
    ("by node2, while node1 led", "UPDATE audit.firing SET node = 'node2' WHERE schedule = 'all'"),
    ("while no node led", "UPDATE audit.firing SET epoch = 7 WHERE schedule = 'all'"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_planted_error_is_reported() {
    let (_database, client) = valid().await;
    for (text, sql) in PLANTED {
        client.batch_execute(&format!("BEGIN; {sql}")).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let violations = checker::violations(&client, closed()).await;
        assert!(violations.iter().any(|violation| violation.contains(text)), "{sql}: no `{text}` in {violations:#?}");
        client.batch_execute("ROLLBACK").await.unwrap();
    }
    assert_eq!(checker::violations(&client, closed()).await, Vec::<String>::new());
}
