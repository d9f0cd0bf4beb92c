//! Schedules on real files: concurrent firing, kills while firing, and rows that a newer version wrote.

use std::{sync::Arc, time::Duration};

use orchestrix_core::{Cadence, Misfire, NewJob, NewSchedule, Overlap, ScheduleName, Tenant, Timestamp, tzdb_version};
use orchestrix_sqlite::{SqliteOptions, SqliteStore};
use orchestrix_store::{Fence, ManualClock, PageRequest, PutResult, StoreError, SweepResult, Wakeup, prelude::*};
use rusqlite::Connection;

use crate::{
    consistency,
    jobs::*,
    process::{self, report, start_concurrently},
    support::{Folder, TIMEOUT, connect, number, open, options},
};

const BODY: &str = "schedules::fire_all";
/// The number of due schedules, and of due times of each: more than one sweep fires.
const SCHEDULES: usize = 12;
const TIMES: u64 = 250;
const SECOND: Duration = Duration::from_secs(1);

/// Not a test: the body of the firing processes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs only as one of the processes that other tests start"]
async fn fire_all() {
    let Some((task, file)) = process::assignment() else { return };
    assert_eq!(task, "fire");
    let store = open(&file).await;
    process::ready();
    loop {
        let swept = store.fire_schedules(Fence::NONE, 1).await.unwrap();
        report(swept.count);
        if swept.next_in.is_none() {
            break;
        }
    }
}

fn name(name: &str) -> ScheduleName {
    ScheduleName::new(name).expect("a valid name")
}

// Not shortly before the hour: an hourly schedule must not become due within the minute of a postponement.
fn half_past() -> Timestamp {
    "2026-06-01T12:30:00Z".parse().unwrap()
}

fn every(seconds: u32, schedule: &str) -> NewSchedule {
    let cadence = Cadence::every(seconds * SECOND).expect("a valid interval");
    NewSchedule { overlap: Overlap::Allow, ..NewSchedule::new(name(schedule), cadence, job("tick")) }
}

async fn open_at(folder: &Folder, clock: &Arc<ManualClock>) -> SqliteStore {
    let clock = Arc::clone(clock);
    SqliteStore::open(SqliteOptions { clock, ..options(&folder.file()) }).await.expect("a store")
}

/// Puts schedules that are all overdue and have ended.
async fn overdue(folder: &Folder) {
    let now = Timestamp::now();
    let begin = now - Duration::from_secs(2 * TIMES);
    // Between two nominal times, so that none coincides with the end.
    let begin = Timestamp::from_second(begin.as_second()).unwrap() + Duration::from_millis(500);
    let store = open_at(folder, &Arc::new(ManualClock::new(begin))).await;
    for i in 0..SCHEDULES {
        let schedule = NewSchedule {
            misfire: Misfire::CatchUp,
            catch_up_limit: NewSchedule::MAX_CATCH_UP,
            end_at: Some(begin + Duration::from_secs(TIMES)),
            ..every(1, &format!("s{i}"))
        };
        assert_eq!(store.put_schedule(None, schedule).await.unwrap(), PutResult::Created);
    }
    store.close().await;
}

/// Fails unless occurrences and jobs match one to one, and every schedule continues after its last occurrence.
fn assert_one_job_each(connection: &Connection) {
    let none = |what: &str, sql: &str| assert_eq!(number(connection, sql), 0, "{what}");
    none(
        "an occurrence has no job",
        "SELECT count(*) FROM occurrence WHERE job IS NULL OR job NOT IN (SELECT id FROM job)",
    );
    none("a job has no occurrence", "SELECT count(*) FROM job WHERE id NOT IN (SELECT job FROM occurrence)");
    none("two occurrences share a job", "SELECT count(*) - count(DISTINCT job) FROM occurrence");
    none("two jobs share a nominal time", "SELECT count(*) - count(DISTINCT options ->> 'correlationId') FROM job");
    none(
        "a schedule does not continue after its last occurrence",
        "SELECT count(*) FROM schedule s JOIN (SELECT schedule, max(nominal) AS last FROM occurrence GROUP BY schedule) o
             ON o.schedule = s.name WHERE o.last <> s.counted_from",
    );
    consistency::assert_consistent(connection);
    consistency::assert_intact(connection);
}

fn assert_all_fired(connection: &Connection) {
    assert_one_job_each(connection);
    assert_eq!(number(connection, "SELECT count(*) FROM occurrence"), SCHEDULES as i64 * TIMES as i64);
    let gaps = "SELECT count(*) FROM occurrence o WHERE NOT EXISTS (SELECT 1 FROM occurrence p
                WHERE p.schedule = o.schedule AND p.nominal = o.nominal + 1000000)";
    assert_eq!(
        number(connection, gaps),
        SCHEDULES as i64,
        "only the last occurrence of each schedule has no successor"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn six_processes_that_fire_at_once_create_one_job_per_nominal_time() {
    let folder = Folder::new();
    overdue(&folder).await;
    let processes = start_concurrently(BODY, &["fire"; 6], &folder.file());
    let fired = processes.into_iter().map(|process| process.finish().iter().filter(|line| *line == "1").count());
    let fired: Vec<usize> = fired.collect();
    println!("sweeps per process: {fired:?}");
    assert!(fired.iter().filter(|steps| **steps > 0).count() > 1, "only one process fired");
    assert_eq!(fired.iter().sum::<usize>(), SCHEDULES * 3, "no sweep was repeated");
    assert_all_fired(&connect(&folder.file()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_stores_of_one_process_fire_every_nominal_time_once() {
    let folder = Folder::new();
    overdue(&folder).await;
    let stores = [open(&folder.file()).await, open(&folder.file()).await];
    let fire = |i: usize| {
        let store = stores[i % 2].clone();
        async move { while store.fire_schedules(Fence::NONE, 2).await.unwrap().next_in.is_some() {} }
    };
    run_concurrently((0..4).map(fire)).await;
    assert_all_fired(&connect(&folder.file()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_while_firing_leaves_no_occurrence_without_a_job_and_another_process_continues() {
    let folder = Folder::new();
    overdue(&folder).await;
    let connection = connect(&folder.file());
    let left = "SELECT count(*) FROM schedule WHERE next_fire_at IS NOT NULL";
    let mut kills = 0;
    while number(&connection, left) > SCHEDULES as i64 / 4 {
        let process = start_concurrently(BODY, &["fire"], &folder.file()).remove(0);
        for _ in 0..rand::random_range(1..4) {
            process.next().expect("a sweep");
        }
        process.kill();
        kills += 1;
        assert_one_job_each(&connection);
    }
    println!("{kills} kills");
    let store = open(&folder.file()).await;
    while store.fire_schedules(Fence::NONE, 100).await.unwrap().next_in.is_some() {}
    assert_all_fired(&connection);
}

#[tokio::test]
async fn a_next_time_from_another_time_zone_database_is_recomputed() {
    let folder = Folder::new();
    let clock = Arc::new(ManualClock::new(Timestamp::now()));
    let store = open_at(&folder, &clock).await;
    let connection = connect(&folder.file());
    for other in ["1999a", "9999z"] {
        store.put_schedule(None, every(3600, "s")).await.unwrap();
        store.put_schedule(None, NewSchedule { paused: true, ..every(3600, "paused") }).await.unwrap();
        let before = store.schedule(None, &name("s")).await.unwrap();
        // With the other database it would be due already.
        let stale = "UPDATE schedule SET tzdb = ?1, next_nominal = next_nominal - 7200000000, next_fire_at = next_fire_at - 7200000000";
        assert_eq!(connection.execute(stale, [other]).unwrap(), 2);
        assert_eq!(store.next_sweep_times().await.unwrap().fire, Some(Duration::ZERO));
        let swept = store.fire_schedules(Fence::NONE, 10).await.unwrap();
        assert_eq!(swept.count, 2);
        assert_eq!(
            (swept.next_in, Some(true)),
            (store.next_sweep_times().await.unwrap().fire, swept.next_in.map(|t| !t.is_zero()))
        );
        assert_eq!(store.schedule(None, &name("s")).await.unwrap(), before);
        let paused = store.schedule(None, &name("paused")).await.unwrap().unwrap();
        assert_eq!((paused.next_fire_at, paused.tzdb.as_str()), (None, tzdb_version()));
        assert_eq!(number(&connection, "SELECT count(*) FROM job"), 0);
        assert_eq!(store.fire_schedules(Fence::NONE, 10).await.unwrap().count, 0);
    }
}

#[tokio::test]
async fn a_schedule_that_cannot_be_fired_does_not_delay_others() {
    let folder = Folder::new();
    let clock = Arc::new(ManualClock::new(half_past()));
    let store = open_at(&folder, &clock).await;
    // One with an unreadable definition, and one with an invalid job.
    for schedule in ["a", "b", "c"] {
        store.put_schedule(None, every(3600, schedule)).await.unwrap();
    }
    let connection = connect(&folder.file());
    connection.execute_batch("CREATE TEMP TABLE kept AS SELECT name, definition FROM schedule").unwrap();
    let corrupt = "UPDATE schedule SET definition = '{\"new\":1}' WHERE name = 'a';
        UPDATE schedule SET definition = json_set(definition, '$.job.max_attempts', 0) WHERE name = 'b'";
    connection.execute_batch(corrupt).unwrap();
    clock.advance(3600 * SECOND);
    for _ in 0..3 {
        assert_eq!(store.fire_schedules(Fence::NONE, 1).await.unwrap().count, 1);
    }
    assert_eq!(number(&connection, "SELECT count(*) FROM occurrence WHERE schedule = 'c'"), 1);
    assert_eq!(
        store.fire_schedules(Fence::NONE, 1).await.unwrap(),
        SweepResult { count: 0, next_in: Some(60 * SECOND) }
    );
    store.schedule(None, &name("a")).await.expect_err("its definition is unreadable");
    // Once repaired, they fire a minute later.
    let repair = "UPDATE schedule SET definition = (SELECT k.definition FROM kept k WHERE k.name = schedule.name)";
    connection.execute(repair, ()).unwrap();
    clock.advance(60 * SECOND);
    assert_eq!(store.fire_schedules(Fence::NONE, 10).await.unwrap().count, 2);
    assert_one_job_each(&connection);
    assert_eq!(number(&connection, "SELECT count(*) FROM occurrence"), 3);
}

#[tokio::test]
async fn an_error_of_one_schedule_does_not_stop_the_others() {
    let folder = Folder::new();
    let clock = Arc::new(ManualClock::new(half_past()));
    let store = open_at(&folder, &clock).await;
    for schedule in ["a", "b", "c", "d"] {
        store.put_schedule(None, every(3600, schedule)).await.unwrap();
    }
    let connection = connect(&folder.file());
    // One with an unreadable occurrence, and one whose occurrence is refused after its job was written.
    let corrupt = "PRAGMA ignore_check_constraints = ON;
        INSERT INTO occurrence SELECT 'a', next_nominal, next_nominal, 1, 'strange', NULL, NULL, 0 FROM schedule WHERE name = 'a';
        CREATE TRIGGER refuse BEFORE INSERT ON occurrence WHEN NEW.schedule = 'b' BEGIN SELECT RAISE(ABORT, 'no'); END";
    connection.execute_batch(corrupt).unwrap();
    clock.advance(3600 * SECOND);
    assert_eq!(store.fire_schedules(Fence::NONE, 10).await.unwrap().count, 4);
    for (schedule, count) in [("b", 0), ("c", 1), ("d", 1)] {
        let sql = format!("SELECT count(*) FROM occurrence WHERE schedule = '{schedule}'");
        assert_eq!(number(&connection, &sql), count, "{schedule}");
    }
    assert_eq!(number(&connection, "SELECT count(*) FROM job"), 2, "no job without an occurrence");
    consistency::assert_consistent(&connection);
    connection.execute_batch("DROP TRIGGER refuse; DELETE FROM occurrence WHERE schedule = 'a'").unwrap();
    clock.advance(60 * SECOND);
    assert_eq!(store.fire_schedules(Fence::NONE, 10).await.unwrap().count, 2);
    assert_one_job_each(&connection);
}

#[tokio::test]
async fn an_unreadable_schedule_is_omitted_from_lists_and_can_be_paused_replaced_and_deleted() {
    let folder = Folder::new();
    let clock = Arc::new(ManualClock::new(Timestamp::now()));
    let store = open_at(&folder, &clock).await;
    for schedule in ["a", "b", "c"] {
        store.put_schedule(None, every(3600, schedule)).await.unwrap();
    }
    store.trigger_schedule(None, &name("b")).await.unwrap();
    let before = store.schedule(None, &name("b")).await.unwrap().unwrap();
    let connection = connect(&folder.file());
    let corrupt = "UPDATE schedule SET definition = '{\"new\":1}' WHERE name <> 'a'";
    connection.execute_batch(corrupt).unwrap();
    let first = store.list_schedules(None, &PageRequest::first(2)).await.unwrap();
    assert_eq!(first.items.iter().map(|it| it.definition.name.as_str()).collect::<Vec<_>>(), ["a"]);
    let next = first.next.expect("there are more");
    let rest = store.list_schedules(None, &PageRequest::after(next, 2)).await.unwrap();
    assert_eq!((rest.items, rest.next), (vec![], None));
    assert_eq!(store.list_occurrences(None, &name("c"), &PageRequest::first(1)).await.unwrap().items, [], "it exists");

    assert!(store.pause_schedule(None, &name("b"), Some("broken".into())).await.unwrap());
    assert!(!store.pause_schedule(None, &name("b"), None).await.unwrap(), "it did not run");
    store.resume_schedule(None, &name("b")).await.expect_err("its times are unreadable");

    clock.advance(60 * SECOND);
    assert_eq!(store.put_schedule(None, every(3600, "b")).await.unwrap(), PutResult::Updated);
    let after = store.schedule(None, &name("b")).await.unwrap().unwrap();
    assert_eq!(after.definition, NewSchedule { paused: true, ..every(3600, "b") }, "it stays paused");
    assert_eq!((after.created_at, after.open_jobs), (before.created_at, before.open_jobs));
    assert!(store.resume_schedule(None, &name("b")).await.unwrap());
    assert_eq!(store.put_schedule(None, every(3600, "c")).await.unwrap(), PutResult::Updated);
    assert!(store.schedule(None, &name("c")).await.unwrap().unwrap().next_fire_at.is_some());
    connection.execute_batch(corrupt).unwrap();
    assert!(store.delete_schedule(None, &name("c")).await.unwrap());
}

#[tokio::test]
async fn an_invalid_schedule_can_be_paused() {
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    store.put_schedule(None, every(3600, "s")).await.unwrap();
    let corrupt = "UPDATE schedule SET definition = json_set(definition, '$.job.max_attempts', 0)";
    connect(&folder.file()).execute_batch(corrupt).unwrap();
    assert!(store.pause_schedule(None, &name("s"), Some("broken".into())).await.unwrap());
}

#[tokio::test]
async fn deleting_a_schedule_deletes_all_of_its_occurrences_and_no_others() {
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    let connection = connect(&folder.file());
    for schedule in ["a", "b"] {
        store.put_schedule(None, every(3600, schedule)).await.unwrap();
    }
    let fill = "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
        INSERT INTO occurrence (schedule, nominal, until, count, outcome, reason, at) SELECT ?1, i, i, 1, 'missed', 'late', i FROM n";
    for (schedule, count) in [("a", 20_000), ("b", 5)] {
        connection.execute(fill, (schedule, count)).unwrap();
    }
    assert!(store.delete_schedule(None, &name("a")).await.unwrap());
    assert!(!store.delete_schedule(None, &name("a")).await.unwrap());
    assert_eq!(number(&connection, "SELECT count(*) FROM occurrence"), 5);
    assert_eq!(store.list_occurrences(None, &name("b"), &PageRequest::first(10)).await.unwrap().items.len(), 5);
}

#[tokio::test]
async fn a_schedule_that_gets_a_next_time_wakes_timers_and_its_jobs_wake_workers() {
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    let (mut timers, mut jobs) = (store.timer_wakeups(), store.job_wakeups());
    let schedule = every(3600, "s");
    store.put_schedule(None, NewSchedule { paused: true, ..schedule.clone() }).await.unwrap();
    assert!(tokio::time::timeout(Duration::ZERO, timers.next()).await.is_err(), "it is paused");
    store.resume_schedule(None, &name("s")).await.unwrap();
    tokio::time::timeout(TIMEOUT, timers.next()).await.expect("a wake-up for the resumed schedule");
    store.put_schedule(None, NewSchedule { misfire: Misfire::Skip, ..schedule }).await.unwrap();
    tokio::time::timeout(TIMEOUT, timers.next()).await.expect("a wake-up for the changed schedule");
    let queue = job("tick").queue;
    store.trigger_schedule(None, &name("s")).await.unwrap();
    let wakeup = tokio::time::timeout(TIMEOUT, jobs.next()).await.expect("a wake-up for the job");
    assert_eq!(wakeup, Wakeup::Queue(queue));
}

#[tokio::test]
async fn an_unreadable_schedule_of_another_tenant_is_not_found() {
    let folder = Folder::new();
    let store = open_at(&folder, &Arc::new(ManualClock::new(half_past()))).await;
    let (acme, other) = (Tenant::new("acme").unwrap(), Tenant::new("other").unwrap());
    let of = |owner: &Tenant| {
        let plain = every(3600, "s");
        NewSchedule { job: NewJob { tenant: owner.clone(), ..plain.job.clone() }, ..plain }
    };
    store.put_schedule(None, of(&acme)).await.unwrap();
    let corrupt = "UPDATE schedule SET definition = json_set(definition, '$.cadence', 'new')";
    connect(&folder.file()).execute_batch(corrupt).unwrap();
    assert_eq!(store.schedule(Some(&other), &name("s")).await.unwrap(), None);
    store.schedule(Some(&acme), &name("s")).await.expect_err("its definition is unreadable");
    // Its tenant is still known.
    let refused = store.put_schedule(None, of(&other)).await;
    assert!(
        matches!(&refused, Err(StoreError::Invalid(invalid)) if invalid.errors[0].field == "job.tenant"),
        "{refused:?}"
    );
    assert_eq!(store.put_schedule(None, of(&acme)).await.unwrap(), PutResult::Updated);
}
