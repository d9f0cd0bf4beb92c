//! Concurrent, fenced and killed firings: every nominal time gets one occurrence and one job, or neither.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use orchestrix_conformance::TestClock;
use orchestrix_core::{Cadence, NewSchedule, NodeName, Overlap, ScheduleName, Timestamp};
use orchestrix_postgres::{PostgresStore, test_clock::DatabaseClock};
use orchestrix_store::{
    Backfill, Enqueued, Epoch, Fence, Leadership, Occurrence, PageRequest, Schedule, StoreError, SweepResult,
    prelude::*,
};
use orchestrix_testkit::TestDatabase;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use crate::{
    invariants,
    jobs::*,
    locks::{LIMIT, LockHolder, until_waiting},
    support,
};

const MINUTE: Duration = Duration::from_secs(60);
const TERM: Duration = Duration::from_secs(10);

fn name(text: &str) -> ScheduleName {
    ScheduleName::new(text).unwrap()
}

/// A schedule that fires every minute.
fn minutely(text: &str) -> NewSchedule {
    NewSchedule::new(name(text), Cadence::every(MINUTE).unwrap(), job("t"))
}

/// A database whose clock is at half a minute.
struct Scene {
    _database: TestDatabase,
    clock: DatabaseClock,
    url: String,
    client: Client,
    store: PostgresStore,
}

impl Scene {
    async fn new() -> Self {
        // Migrated by this clock, for partitions of its days.
        let database = support::empty_database();
        let start: Timestamp = "2026-01-01T00:00:30Z".parse().unwrap();
        let (clock, url) = DatabaseClock::install(database.url(), Some(start)).await.unwrap();
        let client = support::connect(&url).await;
        let store = open(&url).await;
        Self { _database: database, clock, url, client, store }
    }

    /// A scene with one schedule that has just become due.
    async fn with(schedule: NewSchedule) -> Self {
        let scene = Self::new().await;
        scene.store.put_schedule(None, schedule).await.unwrap();
        scene.clock.advance(MINUTE / 2).await;
        scene
    }

    async fn number(&self, sql: &str) -> i64 {
        self.client.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// The numbers of occurrences and unfinished jobs. Asserts that every occurrence has its own job.
    async fn counts(&self) -> (i64, i64) {
        let occurrences =
            self.number("SELECT count(DISTINCT job) FROM orchestrix.occurrence WHERE outcome = 'fired'").await;
        assert_eq!(occurrences, self.number("SELECT count(*) FROM orchestrix.occurrence").await);
        (occurrences, self.number("SELECT count(*) FROM orchestrix.job").await)
    }

    async fn job_count(&self) -> i64 {
        self.number("SELECT count(*) FROM orchestrix.job").await
    }

    async fn schedule(&self, text: &str) -> Schedule {
        self.store.schedule(None, &name(text)).await.unwrap().unwrap()
    }

    async fn occurrences(&self, text: &str) -> Vec<Occurrence> {
        self.store.list_occurrences(None, &name(text), &PageRequest::first(1_000)).await.unwrap().items
    }

    /// Begins to fire and stops at the insert of the occurrence, until the holder ends.
    async fn blocked_firing(&self, fence: Fence) -> (LockHolder, JoinHandle<Result<SweepResult, StoreError>>) {
        let nominal = self.clock.now().await;
        let sql = format!(
            "INSERT INTO orchestrix.occurrence VALUES ('s', '{nominal}', '{nominal}', 1, 'missed', 'late', NULL, '{nominal}')"
        );
        let holder = LockHolder::with(&self.url, &sql).await;
        let store = self.store.clone();
        let firing = tokio::spawn(async move { store.fire_schedules(fence, 10).await });
        until_waiting(&self.client, 1).await;
        (holder, firing)
    }
}

async fn lead(store: &PostgresStore, node: &str) -> Epoch {
    let node = NodeName::new(node).unwrap();
    match store.campaign_for_leadership(&node, TERM, None).await.unwrap() {
        Leadership::Leading(epoch) => epoch,
        following => panic!("{following:?}"),
    }
}

async fn fire(store: &PostgresStore) -> usize {
    store.fire_schedules(Fence::NONE, 1_000).await.unwrap().count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_concurrent_firings_one_fires_each_schedule() {
    const SCHEDULES: usize = 40;
    let scene = Scene::new().await;
    for i in 0..SCHEDULES {
        scene.store.put_schedule(None, minutely(&format!("s{i}"))).await.unwrap();
    }
    let stores: [PostgresStore; 4] = open_many(&scene.url).await;
    for round in 1..=10 {
        scene.clock.advance(MINUTE).await;
        let fired = together(stores.clone().map(|store| async move {
            let mut fired = 0;
            // As a leader does, until nothing is due. A schedule that another store is firing is due until its commit.
            loop {
                let swept = store.fire_schedules(Fence::NONE, 7).await.unwrap();
                fired += swept.count;
                if swept.next_in.is_none_or(|wait| !wait.is_zero()) {
                    return fired;
                }
            }
        }));
        assert_eq!(fired.await.iter().sum::<usize>(), SCHEDULES);
        for claimed in claim_all(&scene.store).await {
            finish(&scene.store, claimed.token, orchestrix_store::Outcome::DONE).await.unwrap();
        }
        assert_eq!(scene.counts().await, ((round * SCHEDULES) as i64, 0));
    }
    let jobs = scene.number("SELECT count(*) FROM orchestrix.jobs").await;
    assert_eq!(jobs, 10 * SCHEDULES as i64);
    invariants::assert_consistent(&scene.client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schedule_that_is_being_fired_is_skipped() {
    let scene = Scene::with(minutely("s")).await;
    let (holder, firing) = scene.blocked_firing(Fence::NONE).await;
    let other = open(&scene.url).await;
    assert_eq!(fire(&other).await, 0);
    holder.rollback().await;
    assert_eq!(firing.await.unwrap().unwrap().count, 1);
    assert_eq!(scene.counts().await, (1, 1));
    assert_eq!(fire(&other).await, 0);
    assert_eq!(scene.counts().await, (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_occurrence_inserted_meanwhile_leaves_no_job() {
    let scene = Scene::with(minutely("s")).await;
    let (holder, firing) = scene.blocked_firing(Fence::NONE).await;
    holder.commit().await;
    assert_eq!(firing.await.unwrap().unwrap().count, 1, "it finds the occurrence and advances the schedule");
    assert_eq!(scene.job_count().await, 0);
    assert_eq!(fire(&scene.store).await, 0);
    assert_eq!(scene.job_count().await, 0);
    assert_eq!(scene.occurrences("s").await.len(), 1);
    assert!(scene.schedule("s").await.next_fire_at.unwrap() > scene.clock.now().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deposed_leader_is_refused_and_writes_nothing() {
    let scene = Scene::with(minutely("s")).await;
    let before = scene.schedule("s").await;
    let epoch = lead(&scene.store, "a").await;
    scene.clock.advance(TERM + Duration::from_millis(1)).await;
    let next = lead(&scene.store, "b").await;
    let refused = scene.store.fire_schedules(Fence::of(epoch, MINUTE), 10).await;
    assert!(matches!(refused, Err(StoreError::Deposed { current, .. }) if current == next), "{refused:?}");
    assert_eq!(scene.counts().await, (0, 0));
    assert_eq!(scene.schedule("s").await, before);
    assert_eq!(scene.store.fire_schedules(Fence::of(next, MINUTE), 10).await.unwrap().count, 1);
    assert_eq!(scene.counts().await, (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_takeover_waits_for_an_open_firing_and_finds_it_done() {
    let scene = Scene::with(minutely("s")).await;
    let epoch = lead(&scene.store, "a").await;
    let (holder, firing) = scene.blocked_firing(Fence::of(epoch, MINUTE)).await;
    scene.clock.advance(TERM + Duration::from_millis(1)).await;
    let other = open(&scene.url).await;
    let taking_over = tokio::spawn(async move {
        let epoch = lead(&other, "b").await;
        other.fire_schedules(Fence::of(epoch, MINUTE), 10).await
    });
    until_waiting(&scene.client, 2).await;
    holder.rollback().await;
    assert_eq!(firing.await.unwrap().unwrap().count, 1);
    assert_eq!(taking_over.await.unwrap().unwrap().count, 0);
    assert_eq!(scene.counts().await, (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_firing_killed_between_jobs_and_occurrences_leaves_neither() {
    let scene = Scene::new().await;
    scene.store.put_schedule(None, NewSchedule { overlap: Overlap::CancelRunning, ..minutely("s") }).await.unwrap();
    let Enqueued { id: running, .. } = scene.store.trigger_schedule(None, &name("s")).await.unwrap();
    assert_eq!(claim_soon(&scene.store).await.id(), running);
    let Enqueued { id: waiting, .. } = scene.store.trigger_schedule(None, &name("s")).await.unwrap();
    scene.clock.advance(MINUTE / 2).await;
    let before = scene.schedule("s").await;
    assert_eq!(before.open_jobs, [running, waiting]);

    let (holder, firing) = scene.blocked_firing(Fence::NONE).await;
    let sql = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let pid: i32 = scene.client.query_one(sql, &[]).await.unwrap().get(0);
    scene.client.execute("SELECT pg_terminate_backend($1, 60000)", &[&pid]).await.unwrap();
    assert!(matches!(firing.await.unwrap(), Err(StoreError::Unavailable(_))));
    holder.rollback().await;
    assert_eq!(scene.counts().await, (2, 2), "only the triggered jobs");
    assert_eq!(scene.schedule("s").await, before);
    assert!(!get(&scene.store, running).await.cancel_requested);
    assert_eq!(state(&scene.store, waiting).await, orchestrix_core::JobState::Pending);

    assert_eq!(fire(&scene.store).await, 1);
    assert_eq!(scene.counts().await, (3, 2));
    assert!(get(&scene.store, running).await.cancel_requested);
    assert_eq!(state(&scene.store, waiting).await, orchestrix_core::JobState::Cancelled);
    invariants::assert_consistent(&scene.client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_puts_of_one_schedule_create_it_once() {
    let scene = Scene::new().await;
    let stores: [PostgresStore; 4] = open_many(&scene.url).await;
    for round in 0..10 {
        let text = format!("s{round}");
        let puts = together(stores.clone().map(|store| {
            let schedule = minutely(&text);
            async move { store.put_schedule(None, schedule).await.unwrap() }
        }));
        let created = puts.await.into_iter().filter(|put| *put == orchestrix_store::PutResult::Created).count();
        assert_eq!(created, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn buffered_jobs_depend_on_jobs_of_their_own_schedule() {
    let scene = Scene::new().await;
    for text in ["a", "b", "c"] {
        let catch_up = orchestrix_core::Misfire::CatchUp;
        let schedule = NewSchedule { overlap: Overlap::BufferOne, misfire: catch_up, ..minutely(text) };
        scene.store.put_schedule(None, schedule).await.unwrap();
    }
    scene.clock.advance(MINUTE * 2).await;
    assert_eq!(fire(&scene.store).await, 3);
    let jobs = |text| {
        let occurrences = scene.occurrences(text);
        async move { occurrences.await.into_iter().rev().filter_map(|occurrence| occurrence.job).collect::<Vec<_>>() }
    };
    for text in ["a", "b", "c"] {
        let jobs = jobs(text).await;
        assert_eq!(jobs.len(), 2);
        assert_eq!(get(&scene.store, jobs[1]).await.depends_on, [jobs[0]]);
        assert_eq!(state(&scene.store, jobs[1]).await, orchestrix_core::JobState::Blocked);
        assert_eq!(scene.schedule(text).await.open_jobs, jobs);
    }
    invariants::assert_consistent(&scene.client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backfill_splits_an_occurrence_that_covers_many_times() {
    let scene = Scene::new().await;
    let schedule = NewSchedule { overlap: Overlap::Allow, paused: true, ..minutely("s") };
    scene.store.put_schedule(None, schedule).await.unwrap();
    scene.clock.advance(MINUTE * 10).await;
    assert!(scene.store.resume_schedule(None, &name("s")).await.unwrap());
    let time = |minute: u32| format!("2026-01-01T00:{minute:02}:00Z").parse::<Timestamp>().unwrap();
    let shapes = || async {
        let occurrences = scene.occurrences("s").await;
        occurrences.iter().rev().map(|one| (one.nominal, one.until, one.count, one.job.is_some())).collect::<Vec<_>>()
    };
    assert_eq!(shapes().await, [(time(1), time(10), 10, false)]);
    let fill = |from, to| {
        let range = Backfill { from: time(from), to: time(to), overlap: None };
        let store = &scene.store;
        async move { store.backfill_schedule(None, &name("s"), &range).await.unwrap() }
    };
    assert_eq!(fill(3, 5).await, 2);
    let one = |minute| (time(minute), time(minute), 1, true);
    assert_eq!(shapes().await, [(time(1), time(10), 10, false), one(3), one(4)]);
    assert_eq!(fill(1, 3).await, 2);
    assert_eq!(shapes().await, [one(1), one(2), one(3), one(4), (time(5), time(10), 6, false)]);
    assert_eq!(fill(1, 7).await, 2);
    assert_eq!(fill(1, 7).await, 0);
    assert_eq!(scene.job_count().await, 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreadable_schedule_does_not_delay_others() {
    let scene = Scene::with(minutely("bad")).await;
    scene.store.put_schedule(None, minutely("good")).await.unwrap();
    scene.store.put_schedule(None, NewSchedule { paused: true, ..minutely("paused") }).await.unwrap();
    scene.clock.advance(MINUTE).await;
    let spoil = "UPDATE orchestrix.schedule SET definition = '{}', tzdb = '1999a' WHERE name <> 'good'";
    scene.client.batch_execute(spoil).await.unwrap();
    for step in 0..3 {
        scene.store.fire_schedules(Fence::NONE, 1).await.unwrap();
        if step == 0 {
            assert_eq!(scene.counts().await, (0, 0), "the unreadable one was due first");
        }
    }
    assert_eq!(scene.counts().await, (1, 1));
    let swept = scene.store.fire_schedules(Fence::NONE, 1).await.unwrap();
    assert_eq!(swept.count, 0);
    assert!(swept.next_in.is_some_and(|wait| !wait.is_zero()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn next_times_of_another_time_zone_database_are_recomputed() {
    let scene = Scene::new().await;
    for text in ["older", "newer", "paused", "same"] {
        scene.store.put_schedule(None, NewSchedule { paused: text == "paused", ..minutely(text) }).await.unwrap();
    }
    let before = scene.schedule("older").await;
    let sql = "UPDATE orchestrix.schedule SET tzdb = CASE name WHEN 'newer' THEN '9999z' ELSE '1999a' END,
        next_nominal = next_nominal + interval '1 hour', next_fire_at = next_fire_at + interval '1 hour' WHERE name <> 'same'";
    scene.client.batch_execute(sql).await.unwrap();
    assert_eq!(scene.store.next_sweep_times().await.unwrap().fire, Some(Duration::ZERO));
    let steps = [2, 1, 0];
    for count in steps {
        assert_eq!(scene.store.fire_schedules(Fence::NONE, 2).await.unwrap().count, count);
    }
    assert_eq!(scene.schedule("older").await, before);
    assert_eq!(scene.schedule("newer").await.next_fire_at, before.next_fire_at);
    assert_eq!(scene.schedule("paused").await.next_fire_at, None);
    assert_eq!(scene.counts().await, (0, 0));
    assert_eq!(scene.store.next_sweep_times().await.unwrap().fire, Some(MINUTE / 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_payloads_shorten_pages_and_steps_without_losing_schedules() {
    const SCHEDULES: usize = 45;
    let scene = Scene::new().await;
    let text = format!("\"{}\"", "x".repeat(1_000_000));
    let payload = orchestrix_core::Json::trusted(&text);
    for i in 0..SCHEDULES {
        let job = orchestrix_core::NewJob { payload: payload.clone(), ..job("t") };
        scene.store.put_schedule(None, NewSchedule { job, ..minutely(&format!("s{i:02}")) }).await.unwrap();
    }
    let first = scene.store.list_schedules(None, &PageRequest::first(100)).await.unwrap();
    assert!(first.items.len() < SCHEDULES, "the page or step should be cut");
    let rest = scene.store.list_schedules(None, &PageRequest { cursor: first.next, limit: 100 }).await.unwrap();
    assert_eq!((first.items.len() + rest.items.len(), rest.next), (SCHEDULES, None));
    scene.clock.advance(MINUTE).await;
    let first = scene.store.fire_schedules(Fence::NONE, 100).await.unwrap();
    assert!(first.count < SCHEDULES, "the page or step should be cut");
    assert_eq!(first.next_in, Some(Duration::ZERO));
    assert_eq!(first.count + fire(&scene.store).await, SCHEDULES);
    assert_eq!(scene.counts().await, (SCHEDULES as i64, SCHEDULES as i64));
}

/// SQL that inserts occurrences, one for each second.
fn insert_occurrences(text: &str, count: usize) -> String {
    format!(
        "INSERT INTO orchestrix.occurrence
         SELECT '{text}', t, t, 1, 'missed', 'late', NULL, t
         FROM generate_series(1, {count}) AS n, LATERAL (SELECT timestamptz '2000-01-01' + n * interval '1 second') AS l (t)"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleting_a_schedule_deletes_all_its_occurrences_and_no_others() {
    let scene = Scene::with(minutely("s")).await;
    scene.client.batch_execute(&insert_occurrences("s", 25_000)).await.unwrap();
    scene.client.batch_execute(&insert_occurrences("t", 10)).await.unwrap();
    assert!(scene.store.delete_schedule(None, &name("s")).await.unwrap());
    assert_eq!(scene.number("SELECT count(*) FROM orchestrix.occurrence").await, 10);
    assert!(!scene.store.delete_schedule(None, &name("s")).await.unwrap());
    assert_eq!(fire(&scene.store).await, 0);
}

/// The generic and the custom plan of a statement, as text.
async fn plans(client: &Client, types: &str, sql: &str, arguments: &str) -> String {
    let mut text = String::new();
    for mode in ["force_generic_plan", "force_custom_plan"] {
        client.batch_execute(&format!("SET plan_cache_mode = {mode}; PREPARE hot ({types}) AS {sql}")).await.unwrap();
        let rows = client.simple_query(&format!("EXPLAIN (COSTS OFF) EXECUTE hot ({arguments})")).await.unwrap();
        client.batch_execute("DEALLOCATE hot").await.unwrap();
        for row in rows {
            if let tokio_postgres::SimpleQueryMessage::Row(row) = row {
                text.push_str(row.get(0).unwrap());
                text.push('\n');
            }
        }
    }
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn due_schedules_are_found_by_index_among_a_hundred_thousand() {
    let (_store, database) = support::store().await;
    let client = support::connect(database.url()).await;
    let fill = "INSERT INTO orchestrix.schedule
        SELECT 's' || n, '{}', false, now(), now(), now(), t, t, NULL, '{}', '2026a'
        FROM generate_series(1, 100000) AS n, LATERAL (SELECT now() + (n - 5) * interval '1 minute') AS l (t)";
    client.batch_execute("ALTER TABLE orchestrix.schedule SET (autovacuum_enabled = false)").await.unwrap();
    client.batch_execute(fill).await.unwrap();
    client.batch_execute(&insert_occurrences("s1", 100_000)).await.unwrap();
    client.batch_execute("SET enable_seqscan = off; SET jit = off").await.unwrap();
    let statements = [
        (
            include_str!("../../queries/lock_due_schedules.sql"),
            "int8, text, int8",
            "500, '2026a', 33554432",
            vec!["schedule_due", "schedule_tzdb"],
        ),
        (include_str!("../../queries/next_firing.sql"), "text", "'2026a'", vec!["schedule_due", "schedule_tzdb"]),
        (
            include_str!("../../queries/find_occurrences.sql"),
            "text[], timestamptz[]",
            "ARRAY['s1'], ARRAY[now()]",
            vec!["occurrence_pkey"],
        ),
        (
            include_str!("../../queries/advance_schedules.sql"),
            "text[], timestamptz[], timestamptz[], timestamptz[], timestamptz[], text[], text[]",
            "ARRAY['s1'], ARRAY[now()], ARRAY[now()], ARRAY[now()], ARRAY[now()], ARRAY['{}'], ARRAY['2026a']",
            vec!["schedule_pkey"],
        ),
        (include_str!("../../queries/prune_occurrences.sql"), "int8, int8", "1000, 500", vec!["occurrence_kept"]),
    ];
    for statistics in ["without", "with"] {
        for (sql, types, arguments, indexes) in &statements {
            let text = plans(&client, types, sql, arguments).await;
            for index in indexes {
                assert!(text.contains(&format!("using {index} on")), "{statistics} statistics:\n{sql}\n{text}");
            }
            assert!(!text.contains("Seq Scan") && !text.contains("Bitmap"), "{statistics} statistics:\n{sql}\n{text}");
        }
        client.batch_execute("ANALYZE orchestrix.schedule, orchestrix.occurrence").await.unwrap();
    }
}

mod heavy {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn ten_thousand_due_schedules_fire_in_seconds() {
        const SCHEDULES: usize = 10_000;
        let scene = Scene::new().await;
        let store = Arc::new(scene.store.clone());
        let putting = together((0..4).map(|part| {
            let store = Arc::clone(&store);
            async move {
                for i in (part..SCHEDULES).step_by(4) {
                    store.put_schedule(None, minutely(&format!("s{i}"))).await.unwrap();
                }
            }
        }));
        putting.await;
        for round in 1..=2 {
            scene.clock.advance(MINUTE).await;
            let begun = Instant::now();
            while scene.store.fire_schedules(Fence::NONE, 500).await.unwrap().count > 0 {}
            println!("{SCHEDULES} fired in {:?}, with {} jobs of each open", begun.elapsed(), round - 1);
            assert!(begun.elapsed() < LIMIT);
        }
        // The second round was skipped, since the jobs of the first are unfinished.
        let fired = scene.number("SELECT count(*) FROM orchestrix.occurrence WHERE outcome = 'fired'").await;
        assert_eq!(fired, SCHEDULES as i64);
        assert_eq!(scene.number("SELECT count(*) FROM orchestrix.occurrence").await, 2 * SCHEDULES as i64);
        assert_eq!(scene.job_count().await, SCHEDULES as i64);
    }
}
