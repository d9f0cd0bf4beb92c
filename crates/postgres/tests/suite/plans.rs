//! The plans of the hot statements on a million jobs, with and without statistics.
//!
//! A queue is the planner's worst case: its table is empty at one moment and full at the next, and the statistics fit
//! neither. So every plan is checked with and without statistics, as a generic plan and as a custom plan for a
//! thousand arguments.

use orchestrix_store::prelude::*;
use std::{collections::BTreeMap, fmt::Write};

use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_testkit::TestDatabase;
use serde_json::Value;
use tokio_postgres::Client;

use crate::{
    support,
    wire::{Message, Recorder},
};

/// A hot statement of the store, with the types of its parameters and arguments in SQL. `{ids}` stands for a thousand
/// ids.
struct Hot {
    name: &'static str,
    sql: &'static str,
    types: &'static str,
    arguments: &'static str,
}

const CLAIM_TYPES: &str =
    "text[], text[], int2[], int8[], timestamptz[], uuid[], int4[], int8[], int8, int8, int8, text, uuid, text[],
    text[], int4, int2";
const CLAIM_ARGUMENTS: &str = "ARRAY['q1', 'q2'], ARRAY['t1', 't2'], ARRAY[0, 0]::int2[],
    ARRAY[orchestrix.ring_position('default'), orchestrix.ring_position('default')], ARRAY['epoch', now()::text]::timestamptz[],
    ARRAY[md5('')::uuid, md5('')::uuid], ARRAY[0, 0], ARRAY[0, 0]::int8[], 18, 63, 1000, 'w', md5('')::uuid, NULL, NULL, NULL, 3";

const SEARCH_TYPES: &str = "text[], text[], int2[], int8[], int8";
const SEARCH_ARGUMENTS: &str =
    "ARRAY['q1', 'q2'], ARRAY['t1', 't2'], ARRAY[-32768, 0]::int2[], ARRAY[0, 0]::int8[], 256";

/// A claim: its name, and the files that read ready batches and that pick jobs of them.
macro_rules! claim {
    ($name:literal, $batches:literal, $pick:literal) => {
        Hot {
            name: $name,
            sql: concat!(
                include_str!(concat!("../../queries/", $batches, ".sql")),
                include_str!("../../queries/claim_jobs.sql"),
                include_str!(concat!("../../queries/", $pick, ".sql")),
                include_str!("../../queries/claim_leases.sql"),
            ),
            types: CLAIM_TYPES,
            arguments: CLAIM_ARGUMENTS,
        }
    };
}

const HOT: [Hot; 23] = [
    Hot {
        name: "find_turns_of_any",
        sql: include_str!("../../queries/find_turns_of_any.sql"),
        types: SEARCH_TYPES,
        arguments: SEARCH_ARGUMENTS,
    },
    Hot {
        name: "find_turns_by_type",
        sql: include_str!("../../queries/find_turns_by_type.sql"),
        types: SEARCH_TYPES,
        arguments: SEARCH_ARGUMENTS,
    },
    Hot {
        name: "find_turns_by_queue",
        sql: include_str!("../../queries/find_turns_by_queue.sql"),
        types: SEARCH_TYPES,
        arguments: SEARCH_ARGUMENTS,
    },
    Hot {
        name: "find_turns_by_lane",
        sql: include_str!("../../queries/find_turns_by_lane.sql"),
        types: SEARCH_TYPES,
        arguments: SEARCH_ARGUMENTS,
    },
    claim!("claim_jobs_of_any", "claim_jobs_of_any", "claim_in_turns"),
    claim!("claim_jobs_by_type", "claim_jobs_by_type", "claim_in_turns"),
    claim!("claim_jobs_by_queue", "claim_jobs_by_queue", "claim_in_turns"),
    claim!("claim_jobs_by_lane", "claim_jobs_by_lane", "claim_in_turns"),
    claim!("claim_jobs_shared", "claim_jobs_shared", "claim_in_turns"),
    claim!("claim_turn_of_any", "claim_jobs_of_any", "claim_in_one_turn"),
    claim!("claim_turn_by_type", "claim_jobs_by_type", "claim_in_one_turn"),
    claim!("claim_turn_by_queue", "claim_jobs_by_queue", "claim_in_one_turn"),
    claim!("claim_turn_by_lane", "claim_jobs_by_lane", "claim_in_one_turn"),
    Hot {
        name: "complete_jobs",
        sql: include_str!("../../queries/complete_jobs.sql"),
        types: "uuid[], int4[], uuid[], text[]",
        arguments: "'{ids}', array_fill(1, ARRAY[1000]), '{ids}', array_fill(NULL::text, ARRAY[1000])",
    },
    Hot {
        name: "extend_leases",
        sql: include_str!("../../queries/extend_leases.sql"),
        types: "uuid[], int4[], uuid[]",
        arguments: "'{ids}', array_fill(1, ARRAY[1000]), '{ids}'",
    },
    Hot {
        name: "claimable_lanes",
        sql: include_str!("../../queries/claimable_lanes.sql"),
        types: "int8",
        arguments: "10000",
    },
    Hot {
        name: "promote_jobs",
        sql: include_str!("../../queries/promote_jobs.sql"),
        types: "int8",
        arguments: "1000",
    },
    Hot {
        name: "read_attempts",
        sql: include_str!("../../queries/read_attempts.sql"),
        types: "uuid[], int4[], uuid[]",
        arguments: "'{ids}', array_fill(1, ARRAY[1000]), '{ids}'",
    },
    Hot {
        name: "unblock_jobs",
        sql: include_str!("../../queries/unblock_jobs.sql"),
        types: "uuid[], uuid[], bool[]",
        arguments: "'{ids}', '{ids}', array_fill(false, ARRAY[1000])",
    },
    Hot {
        name: "settle_jobs",
        sql: include_str!("../../queries/settle_jobs.sql"),
        types: "uuid[], int4[], uuid[], text[], bool[], text[], text[], int8[], int2[], int2[], text[], text[], text[]",
        arguments: "'{ids}', array_fill(1, ARRAY[1000]), '{ids}', array_fill('running'::text, ARRAY[1000]), array_fill(false, ARRAY[1000]),
            array_fill('expired'::text, ARRAY[1000]), array_fill('pending'::text, ARRAY[1000]), array_fill(0::int8, ARRAY[1000]),
            array_fill(1::int2, ARRAY[1000]), array_fill(1::int2, ARRAY[1000]), array_fill(NULL::text, ARRAY[1000]),
            array_fill('lost'::text, ARRAY[1000]), array_fill(NULL::text, ARRAY[1000])",
    },
    Hot {
        name: "expired_leases",
        sql: include_str!("../../queries/expired_leases.sql"),
        types: "int8",
        arguments: "1000",
    },
    Hot {
        name: "overdue_attempts",
        sql: include_str!("../../queries/overdue_attempts.sql"),
        types: "int8",
        arguments: "1000",
    },
    Hot {
        name: "expired_jobs",
        sql: include_str!("../../queries/expired_jobs.sql"),
        types: "int8",
        arguments: "1000",
    },
];

/// Inserts pending jobs, as many finished ones, and a tenth as many for each sweep: due, with an expired lease and a
/// timed-out attempt, and expired. One in a hundred has an external payload.
async fn fill(client: &Client, jobs: i64) {
    // Ids of one millisecond.
    let id = "(left(orchestrix.id_floor(now())::text, 24) || lpad(to_hex(n), 12, '0'))::uuid";
    let tenth = jobs / 10;
    client
        .batch_execute(&format!(
            "INSERT INTO orchestrix.job (id, created_at, updated_at, eligible_at, state, rank, max_attempts, payload_apart, queue, job_type, tenant, payload)
             SELECT {id}, now(), now(), now() + n * interval '1 microsecond', 'pending', n % 3, 10, n % 100 = 0,
                    'q' || n % 4, 't' || n % 5, 'default', CASE WHEN n % 100 > 0 THEN '1' END
             FROM generate_series(1, {jobs}) AS n;
             INSERT INTO orchestrix.payload SELECT id, '2' FROM orchestrix.job WHERE payload_apart;
             INSERT INTO orchestrix.job (id, created_at, updated_at, eligible_at, state, rank, max_attempts, queue, job_type, tenant, payload)
             SELECT {id}, now(), now(), now() - n * interval '1 microsecond', 'scheduled', 0, 10, 'q1', 't1', 'default', '1'
             FROM generate_series({jobs} + 1, {jobs} + {tenth}) AS n;
             INSERT INTO orchestrix.job (id, created_at, updated_at, eligible_at, state, rank, max_attempts, queue, job_type, tenant, payload,
                 lease_counter, lease_secret, lease_expires_at, timeout_at, timeout_ms, worker, started_at)
             SELECT {id}, now(), now(), now(), 'running', 0, 10, 'q1', 't1', 'default', '1',
                 1, md5('')::uuid, now() - n * interval '1 microsecond', now() - n * interval '1 microsecond', 1, 'w', now()
             FROM generate_series(2 * {jobs} + 1, 2 * {jobs} + {tenth}) AS n;
             INSERT INTO orchestrix.job (id, created_at, updated_at, eligible_at, expires_at, state, rank, max_attempts, queue, job_type, tenant, payload)
             SELECT {id}, now(), now(), now(), now() - n * interval '1 microsecond', 'pending', 0, 10, 'q1', 't1', 'default', '1'
             FROM generate_series(3 * {jobs} + 1, 3 * {jobs} + {tenth}) AS n;
             INSERT INTO orchestrix.ready (rank, eligible_at, first_id, queue, job_type, tenant, ring, ids)
             SELECT rank, eligible_at, id, queue, job_type, tenant, orchestrix.ring_position(tenant), ARRAY[id] FROM orchestrix.job WHERE state = 'pending';
             INSERT INTO orchestrix.history (id, created_at, finished_at, eligible_at, started_at, lease_secret, state, lease_counter, lease_ms,
                 rank, attempts, max_attempts, losses, has_parents, has_dependents, payload_apart, queue, job_type, tenant, worker, payload)
             SELECT {id}, now(), now(), now(), now(), md5('')::uuid, 'completed', 1, 30000,
                 0, 1, 10, 0, false, false, false, 'q1', 't1', 'default', 'w', '1'
             FROM generate_series(4 * {jobs} + 1, 5 * {jobs}) AS n;"
        ))
        .await
        .unwrap();
}

/// The plan of a statement in this plan cache mode.
async fn explain(client: &Client, hot: &Hot, ids: &str, mode: &str) -> Value {
    let arguments = hot.arguments.replace("{ids}", ids);
    client.batch_execute(&format!("SET plan_cache_mode = {mode}")).await.unwrap();
    client.batch_execute(&format!("PREPARE hot ({}) AS {}", hot.types, hot.sql)).await.unwrap();
    let sql = format!("EXPLAIN (COSTS OFF, FORMAT JSON) EXECUTE hot ({arguments})");
    let plan = read_plan(client, &sql).await;
    client.batch_execute("DEALLOCATE hot").await.unwrap();
    plan
}

async fn read_plan(client: &Client, sql: &str) -> Value {
    let rows = client.simple_query(sql).await.unwrap();
    let text: String = rows
        .iter()
        .filter_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        })
        .collect();
    serde_json::from_str(&text).unwrap()
}

/// A connection with the store's settings.
pub(crate) async fn connect_like_a_store(database: &TestDatabase) -> Client {
    let server = orchestrix_testkit::test_postgres().unwrap().split_once('@').unwrap().1;
    let recorder = Recorder::start(server);
    let _store = PostgresStore::open(PostgresOptions::new(recorder.url(database.url()))).await.unwrap();
    let first = recorder.connections().remove(0).remove(0);
    let Message::Startup(parameters) = first else { panic!("{first:?}") };
    let name = parameters.iter().position(|name| name == "options").expect("the store has settings");
    let mut config: tokio_postgres::Config = database.url().parse().unwrap();
    let (client, connection) = config.options(&parameters[name + 1]).connect(tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Draws a plan as nodes, tables and indexes. A full index scan is marked, since it is as bad as a sequential scan.
/// Daily partitions look the same, and empty ones are left out.
fn draw(node: &Value, depth: usize, filled: &[String], drawing: &mut String) {
    let text = |key: &str| node[key].as_str().unwrap_or_default();
    let relation = text("Relation Name");
    let day = |name: &str| name.rsplit_once('_').is_some_and(|(_, day)| day.parse::<u32>().is_ok());
    let partition = relation.ends_with("_default") || day(relation);
    if partition && !filled.iter().any(|name| name == relation) {
        return;
    }
    let plain = |name: &str| {
        let parts = name.split('_').filter(|part| part.parse::<u32>().is_err());
        parts.collect::<Vec<_>>().join("_")
    };
    let mut line = match text("Node Type") {
        "ModifyTable" => text("Operation").to_owned(),
        "Index Scan" | "Index Only Scan" | "Bitmap Index Scan" => {
            let whole = if node["Index Cond"].is_null() { "Whole " } else { "" };
            format!("{whole}{} using {}", text("Node Type"), plain(text("Index Name")))
        }
        other => other.to_owned(),
    };
    for (key, name) in [("Relation Name", plain(relation)), ("CTE Name", text("CTE Name").into())] {
        if node[key].is_string() {
            write!(line, " on {name}").unwrap();
        }
    }
    let role = text("Subplan Name").split(" (").next().unwrap_or_default();
    if !role.is_empty() {
        line = format!("{}: {line}", if role.starts_with("CTE ") { role } else { "sub-plan" });
    }
    writeln!(drawing, "{}{line}", "  ".repeat(depth)).unwrap();
    for child in node["Plans"].as_array().into_iter().flatten() {
        // Array parameters.
        if child["Node Type"] != "Result" {
            draw(child, depth + 1, filled, drawing);
        }
    }
}

async fn filled_partitions(client: &Client) -> Vec<String> {
    let sql = "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE pg_relation_size(c.oid) > 0 AND c.relkind = 'r'";
    client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

mod heavy {
    use std::time::{Duration, Instant};

    use orchestrix_core::{JobId, LeaseToken, NewJob, Start, Timestamp};
    use orchestrix_store::{Fence, Outcome, OutcomeReport};
    use uuid::Uuid;

    use super::*;
    use crate::{jobs::*, locks::until};

    #[tokio::test]
    async fn the_hot_statements_search_their_indexes_among_a_million_jobs() {
        let database = support::database();
        let client = connect_like_a_store(&database).await;
        // A connection without the store's timeouts.
        let direct = support::connect(database.url()).await;
        support::disable_autovacuum(&direct).await;
        fill(&direct, 1_000_000).await;
        let ids: String = client
            .query_one(
                "SELECT array_agg(id ORDER BY id)::text FROM (SELECT id FROM orchestrix.job LIMIT 1000) AS j",
                &[],
            )
            .await
            .unwrap()
            .get(0);
        let filled = filled_partitions(&client).await;
        let mut plans: BTreeMap<&str, Vec<(String, Vec<String>)>> = BTreeMap::new();
        for statistics in ["without statistics", "with statistics"] {
            for (mode, arguments) in [("force_generic_plan", "any arguments"), ("force_custom_plan", "a thousand")] {
                for hot in &HOT {
                    let mut drawing = String::new();
                    draw(&explain(&client, hot, &ids, mode).await[0]["Plan"], 0, &filled, &mut drawing);
                    let variants = plans.entry(hot.name).or_default();
                    let variant = format!("{statistics}, for {arguments}");
                    match variants.iter_mut().find(|(known, _)| *known == drawing) {
                        Some((_, names)) => names.push(variant),
                        None => variants.push((drawing, vec![variant])),
                    }
                }
            }
            direct.batch_execute("ANALYZE").await.unwrap();
        }
        for (name, variants) in plans {
            let mut text = String::new();
            for (drawing, names) in variants {
                // A bitmap scan fetches all rows before it returns the first.
                let bad = |line: &&str| {
                    let large = ["job", "ready", "history", "payload", "dead"]
                        .iter()
                        .any(|table| line.ends_with(&format!(" on {table}")));
                    large && ["Seq Scan", "Bitmap Heap Scan", "Whole Index"].iter().any(|scan| line.contains(scan))
                };
                let found = drawing.lines().find(bad);
                assert_eq!(found, None, "{name} scans a whole table or index {}:\n{drawing}", names.join(" and "));
                writeln!(text, "{}\n\n{drawing}", names.join("\n")).unwrap();
            }
            insta::assert_snapshot!(name, text);
        }
    }

    const READ: &str = "SELECT coalesce(sum(seq_tup_read), 0)::bigint FROM pg_stat_user_tables
        WHERE relname ~ '^(job|ready|history|dead|payload|idempotency|dependency)'";
    const INDEXED: &str = "SELECT coalesce(sum(idx_tup_read), 0)::bigint FROM pg_stat_user_indexes WHERE relname ~ '^(job|ready|history|dead|payload)'";
    const SESSIONS: &str =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'orchestrix'";

    /// One round of the hot path over claimable jobs, with some foreign tokens.
    async fn round(store: &PostgresStore, n: usize) -> usize {
        let mut tokens: Vec<LeaseToken> = claim(store, n).await.iter().map(|claimed| claimed.token).collect();
        let claimed = tokens.len();
        let unknown = || JobId::new(Timestamp::now(), rand::random());
        tokens.extend((0..4).map(|_| LeaseToken { job: unknown(), counter: 1, secret: Uuid::nil() }));
        store.extend_leases(&tokens).await.unwrap();
        let outcome = |i: usize| if i.is_multiple_of(2) { Outcome::DONE } else { Outcome::fail("again") };
        let items =
            tokens.iter().enumerate().map(|(i, token)| OutcomeReport { token: *token, outcome: outcome(i) }).collect();
        assert_eq!(store.finish_attempts(items).await.unwrap().iter().filter(|answer| answer.is_ok()).count(), claimed);
        store.promote_jobs(Fence::NONE, 100).await.unwrap();
        store.reap_leases(Fence::NONE, 100, 3).await.unwrap();
        store.time_out_attempts(Fence::NONE, 100).await.unwrap();
        store.expire_jobs(Fence::NONE, 100).await.unwrap();
        store.unblock_jobs(Fence::NONE, 100).await.unwrap();
        store.claimable_lanes(100).await.unwrap();
        assert!(store.job(unknown()).await.unwrap().is_none());
        claimed
    }

    /// Lets a store plan its statements on almost empty tables, then works on 200,000 jobs with the same connection.
    async fn grow(drained: bool) {
        let database = support::database();
        let client = support::connect(database.url()).await;
        // One connection, so that every statement is prepared and planned where it is used later.
        let options = PostgresOptions { connections: 1, listen: false, ..PostgresOptions::new(database.url()) };
        let store = PostgresStore::open(options).await.unwrap();
        support::disable_autovacuum(&client).await;
        for i in 0..10 {
            let parent = enqueue(&store, NewJob { queue: queue("q1"), ..job("t1") }).await;
            store.enqueue_jobs(vec![keyed(&i.to_string()), child_of(&[parent])]).await.unwrap();
            enqueue(&store, NewJob { start: Start::After(Duration::from_millis(1)), ..job("t1") }).await;
            round(&store, 3).await;
        }
        if drained {
            // No rows, and statistics that say so.
            client
                .batch_execute(
                    "DELETE FROM orchestrix.job; DELETE FROM orchestrix.ready; DELETE FROM orchestrix.history",
                )
                .await
                .unwrap();
            // The table of jobs keeps its pages. The leader shrinks tables that are almost empty.
            client.batch_execute("VACUUM ANALYZE").await.unwrap();
            client.batch_execute("VACUUM (TRUNCATE) orchestrix.ready").await.unwrap();
            for _ in 0..10 {
                round(&store, 3).await;
            }
        }
        fill(&client, 200_000).await;
        // A session reports what it read up to a second later.
        client.batch_execute("SELECT pg_stat_force_next_flush()").await.unwrap();
        let before = (number(&client, READ).await, number(&client, INDEXED).await);
        let begun = Instant::now();
        let mut claimed = 0;
        for _ in 0..5 {
            claimed += round(&store, 100).await;
        }
        let took = begun.elapsed();
        // Sessions report their statistics when they end at the latest.
        drop(store);
        until(&client, "the store's sessions have ended", |n| n == 0, SESSIONS).await;
        let read = number(&client, READ).await - before.0;
        let indexed = number(&client, INDEXED).await - before.1;
        println!("{claimed} jobs in {took:?}: {read} rows by sequential scans, {indexed} index entries");
        assert!(claimed > 0);
        assert!(read < 50_000, "{read} rows by sequential scans: a whole table was read");
        assert!(indexed < 300_000, "{indexed} index entries: a whole index was read");
    }

    async fn number(client: &Client, sql: &str) -> i64 {
        client.query_one(sql, &[]).await.unwrap().get(0)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn plans_of_a_new_queue_serve_a_full_one() {
        grow(false).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn plans_of_a_drained_queue_serve_a_full_one() {
        grow(true).await;
    }
}
