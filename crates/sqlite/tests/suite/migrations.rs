//! Schema migrations: a new file, an existing file, a failed migration, and that released migrations never change.

use std::{fs, path::Path};

use orchestrix_core::{JobId, NewJob, Priority, Tenant, turn::ring_position};
use orchestrix_sqlite::{SCHEMA_VERSION, SqliteOptions, SqliteStore};
use orchestrix_store::{PageRequest, prelude::*};
use rusqlite::Connection;
use sha2::{Digest, Sha256};

use crate::{
    consistency::assert_lanes_consistent,
    jobs::*,
    support::{Folder, close, connect, number, open, options},
};

/// Every released migration with the SHA-256 of its text. A schema change is a new file and a new line here. Existing
/// lines never change, because existing databases were created from that text.
const RELEASED: &[(&str, &str)] = &[
    ("0001_engine.sql", "849ddf3acc7661245e218d97a011134c16ae97c66dafc471609b478be5b6bba0"),
    ("0002_coordination.sql", "58db5c76aa0fd9343c2b84cd385bfe529d9faa4c55a362b8251a06c145fbae55"),
    ("0003_schedules.sql", "6bf20b0394eb9c62eab70dce3796f11585dadac5ec95de94876815a56aa8f9cd"),
    ("0004_kept_occurrences.sql", "30f7c6f09db6ed66a1f07e9755cda3e5a62287e085acbed2844710e32fd26328"),
    ("0005_operate.sql", "af131b4fc4b66acaa580586465a3e4acb591dcf61a668385c0a3c8396695f9b1"),
    ("0006_tenants.sql", "81da8633b4a17cd8b1c7d0718fa93f9102535fd73b41e472b197a5ff32206828"),
    ("0007_presence.sql", "b109b86bf992b5914a63fce27bf222a16771bf5a91907ecf306f7599bb417fce"),
    ("0008_revived.sql", "393821551302765b7174e9e708213da1dcacfeb9e247d87aeb2d3dc2df2443b7"),
    ("0009_lanes.sql", "14ecb3d0c87024ea554b0c310f80fec11fdcb204135e358956eb2394f8a5cff9"),
    ("0010_turns.sql", "9561c98afc553b7c927df503efb4bd594e1970621cc2ada779418df1401881c8"),
];

fn applied(connection: &Connection) -> Vec<(i32, String, i64)> {
    let mut statement = connection.prepare("SELECT version, name, applied_at FROM migration ORDER BY version").unwrap();
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    statement.query_map((), row).unwrap().collect::<Result<_, _>>().unwrap()
}

/// The SQL of every table and index in the file.
fn schema(connection: &Connection) -> Vec<String> {
    let mut statement = connection.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY sql").unwrap();
    statement.query_map((), |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn released_migrations_are_never_edited() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let mut files: Vec<String> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    let names: Vec<&str> = RELEASED.iter().map(|(name, _)| *name).collect();
    assert_eq!(files, names, "every migration is listed here");
    for (i, (name, expected)) in RELEASED.iter().enumerate() {
        assert!(name.starts_with(&format!("{:04}_", i + 1)), "{name} is out of order");
        let hash = Sha256::digest(fs::read(folder.join(name)).unwrap());
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, *expected, "{name} was edited: undo that and add a new migration instead");
    }
    assert_eq!(usize::try_from(SCHEMA_VERSION).unwrap(), RELEASED.len(), "every migration is applied");
}

#[tokio::test]
async fn a_missing_file_is_created_and_migrated_to_the_newest_version() {
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    let connection = connect(&folder.file());
    let applied = applied(&connection);
    let versions: Vec<i32> = applied.iter().map(|(version, ..)| *version).collect();
    assert_eq!(versions, (1..=SCHEMA_VERSION).collect::<Vec<_>>());
    for ((version, name, _), (file, _)) in applied.iter().zip(RELEASED) {
        assert_eq!(format!("{version:04}_{name}.sql"), *file);
    }
    // "Orcx", by which other programs, such as file(1), recognize the file.
    assert_eq!(number(&connection, "PRAGMA application_id"), 0x4f72_6378);
    enqueue(&store, job("t")).await;
}

#[tokio::test]
async fn an_empty_file_is_migrated_like_a_missing_one() {
    let folder = Folder::new();
    fs::write(folder.file(), "").unwrap();
    let store = open(&folder.file()).await;
    enqueue(&store, job("t")).await;
}

#[tokio::test]
async fn reopening_a_file_applies_no_migration() {
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    let id = enqueue(&store, job("t")).await;
    let before = (applied(&connect(&folder.file())), schema(&connect(&folder.file())));
    close(store, &folder.file()).await;
    let bytes = fs::read(folder.file()).unwrap();
    let store = open(&folder.file()).await;
    assert!(store.job(id).await.unwrap().is_some());
    assert_eq!((applied(&connect(&folder.file())), schema(&connect(&folder.file()))), before);
    close(store, &folder.file()).await;
    assert_eq!(fs::read(folder.file()).unwrap(), bytes, "opening and closing a file does not change it");
}

#[tokio::test]
async fn a_failed_migration_leaves_nothing_and_can_be_repeated() {
    let folder = Folder::new();
    let connection = connect(&folder.file());
    // The file is marked as ours but has no migration yet, and a table that a migration creates late exists already.
    connection.pragma_update(None, "application_id", 0x4f72_6378).unwrap();
    connection.execute_batch("CREATE TABLE worker (x)").unwrap();
    let failed = SqliteStore::open(options(&folder.file())).await;
    let error = failed.expect_err("a table exists already").to_string();
    assert!(error.contains("table worker already exists"), "{error}");
    assert_eq!(schema(&connection), ["CREATE TABLE worker (x)"], "a part of the schema was left");
    connection.execute_batch("DROP TABLE worker").unwrap();
    let store = open(&folder.file()).await;
    enqueue(&store, job("t")).await;
    assert_eq!(store.queue_depths(&PageRequest::first(10)).await.unwrap().items.len(), 1);
}

/// Turns a file into one of version 8 or 9 with the same jobs and queues.
fn downgrade(file: &Path, version: usize) {
    let connection = connect(file);
    let released = |n: usize| {
        let (name, _) = RELEASED[n - 1];
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(name)).unwrap()
    };
    let claim_index = "CREATE INDEX job_claim ON job (queue, job_type, rank, eligible_at, id) WHERE state = 'pending';";
    assert!(released(1).contains(claim_index));
    connection.execute_batch("DROP TABLE tenant; DROP TABLE lane; DROP INDEX job_claim").unwrap();
    connection.execute_batch(claim_index).unwrap();
    if version == 9 {
        connection.execute_batch(&released(9)).unwrap();
    }
    connection.execute("DELETE FROM migration WHERE version > ?1", [version]).unwrap();
}

#[tokio::test]
async fn jobs_that_were_enqueued_before_tenants_took_turns_are_claimed_in_turns() {
    for version in [8, 9] {
        let folder = Folder::new();
        let store = open(&folder.file()).await;
        let mut tenants = ["a", "b", "c"].map(|name| Tenant::new(name).unwrap());
        tenants.sort_by_key(ring_position);
        let [first, second, third] = &tenants;
        let of = |tenant: &Tenant, value| NewJob {
            tenant: tenant.clone(),
            priority: Priority::new(value).unwrap(),
            ..job("t")
        };
        let low = enqueue(&store, of(first, -1)).await;
        let mut expected = Vec::new();
        for tenant in [second, first] {
            expected.push([enqueue(&store, of(tenant, 0)).await, enqueue(&store, of(tenant, 0)).await]);
        }
        let high = enqueue(&store, of(third, 1)).await;
        let paused = enqueue(&store, NewJob { queue: queue("paused"), ..of(third, 2) }).await;
        store.pause_queue(&queue("paused")).await.unwrap();
        close(store, &folder.file()).await;
        downgrade(&folder.file(), version);

        let store = SqliteStore::open(SqliteOptions { first_turn: i64::MIN, ..options(&folder.file()) }).await.unwrap();
        assert_lanes_consistent(&connect(&folder.file()));
        let claimed: Vec<JobId> = claim(&store, 10).await.iter().map(|token| token.job).collect();
        let [of_second, of_first] = [expected[0], expected[1]];
        assert_eq!(claimed, [high, of_first[0], of_second[0], of_first[1], of_second[1], low], "from {version}");
        store.resume_queue(&queue("paused")).await.unwrap();
        assert_eq!(claim(&store, 10).await.iter().map(|token| token.job).collect::<Vec<_>>(), [paused]);
    }
}
