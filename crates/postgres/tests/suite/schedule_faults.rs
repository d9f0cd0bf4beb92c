//! Schedules that cannot be fired or read: they do not delay others, and each can be repaired.

use std::time::Duration;

use orchestrix_conformance::TestClock;
use orchestrix_core::{Cadence, JobState, Misfire, NewSchedule, NodeName, Overlap, ScheduleName, Timestamp};
use orchestrix_postgres::{PostgresStore, test_clock::DatabaseClock};
use orchestrix_store::{
    Epoch, Fence, Leadership, Occurrence, Outcome, PageRequest, PutResult, Schedule, StoreError, prelude::*,
};
use orchestrix_testkit::TestDatabase;
use tokio_postgres::Client;

use crate::{
    invariants,
    jobs::*,
    locks::{LockHolder, until_waiting},
    support,
};

const MINUTE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

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
    /// A scene with these schedules.
    async fn with(schedules: impl IntoIterator<Item = NewSchedule>) -> Self {
        // Migrated by this clock, for partitions of its days.
        let database = support::empty_database();
        let start: Timestamp = "2026-01-01T00:00:30Z".parse().unwrap();
        let (clock, url) = DatabaseClock::install(database.url(), Some(start)).await.unwrap();
        let client = support::connect(&url).await;
        let store = open(&url).await;
        for schedule in schedules {
            store.put_schedule(None, schedule).await.unwrap();
        }
        Self { _database: database, clock, url, client, store }
    }

    async fn sql(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap();
    }

    async fn schedule(&self, text: &str) -> Schedule {
        self.store.schedule(None, &name(text)).await.unwrap().unwrap()
    }

    async fn occurrences(&self, text: &str) -> Vec<Occurrence> {
        self.store.list_occurrences(None, &name(text), &PageRequest::first(1_000)).await.unwrap().items
    }

    async fn fired(&self, text: &str) -> usize {
        self.occurrences(text).await.iter().filter(|occurrence| occurrence.job.is_some()).count()
    }

    async fn number(&self, sql: &str) -> i64 {
        self.client.query_one(sql, &[]).await.unwrap().get(0)
    }

    async fn fire(&self) -> usize {
        self.store.fire_schedules(Fence::NONE, 500).await.unwrap().count
    }

    /// Whether the schedule is postponed by this delay.
    async fn is_postponed(&self, text: &str, wait: Duration) -> bool {
        let sql = format!("SELECT next_fire_at FROM orchestrix.schedule WHERE name = '{text}'");
        let next: Timestamp = self.client.query_one(&sql, &[]).await.unwrap().get(0);
        next == self.clock.now().await + wait
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schedule_with_an_invalid_job_does_not_delay_others() {
    let scene = Scene::with(["bad", "good"].map(minutely)).await;
    let spoil = "UPDATE orchestrix.schedule SET definition = jsonb_set(definition::jsonb, '{job,max_attempts}', '0')::json WHERE name = 'bad'";
    scene.sql(spoil).await;
    scene.clock.advance(MINUTE).await;
    assert_eq!(scene.fire().await, 2);
    assert_eq!((scene.fired("good").await, scene.fired("bad").await), (1, 0));
    assert!(scene.is_postponed("bad", MINUTE).await);
    assert_eq!(scene.fire().await, 0);
    // Repaired, it fires again.
    assert_eq!(scene.store.put_schedule(None, minutely("bad")).await.unwrap(), PutResult::Updated);
    assert_eq!(scene.fire().await, 1);
    assert_eq!(scene.fired("bad").await, 1);
    invariants::assert_consistent(&scene.client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_of_one_schedule_does_not_prevent_the_others_from_firing() {
    let scene = Scene::with(["a", "bad", "c"].map(minutely)).await;
    let refuse = "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF NEW.schedule = 'bad' THEN RAISE EXCEPTION 'no'; END IF; RETURN NEW; END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON orchestrix.occurrence FOR EACH ROW EXECUTE FUNCTION public.refuse()";
    scene.sql(refuse).await;
    scene.clock.advance(MINUTE).await;
    assert_eq!(scene.fire().await, 3);
    assert_eq!((scene.fired("a").await, scene.fired("bad").await, scene.fired("c").await), (1, 0, 1));
    assert_eq!(scene.number("SELECT count(*) FROM orchestrix.job").await, 2, "no job without its occurrence");
    assert!(scene.is_postponed("bad", MINUTE).await);
    scene.sql("DROP TRIGGER refuse ON orchestrix.occurrence").await;
    scene.clock.advance(MINUTE).await;
    assert_eq!(scene.fire().await, 3);
    assert_eq!(scene.fired("bad").await, 1, "only the latest time fires");
    invariants::assert_consistent(&scene.client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreadable_occurrence_does_not_delay_other_schedules() {
    let scene = Scene::with(["bad", "good"].map(minutely)).await;
    scene.clock.advance(MINUTE / 2).await;
    scene
        .sql(
            "ALTER TABLE orchestrix.occurrence DROP CONSTRAINT outcome_shape;
             INSERT INTO orchestrix.occurrence SELECT 'bad', next_nominal, next_nominal, 1, 'strange', NULL, NULL, next_nominal
             FROM orchestrix.schedule WHERE name = 'bad'",
        )
        .await;
    assert_eq!(scene.fire().await, 2);
    assert_eq!(scene.fired("good").await, 1);
    assert!(scene.is_postponed("bad", MINUTE).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_job_postpones_only_its_own_schedule() {
    for overlap in [Overlap::BufferOne, Overlap::CancelRunning] {
        let scene = Scene::with([NewSchedule { overlap, ..minutely("held") }, minutely("good")]).await;
        scene.clock.advance(MINUTE / 2).await;
        assert_eq!(scene.fire().await, 2);
        let earlier = scene.occurrences("held").await[0].job.unwrap();
        for claimed in claim_all(&scene.store).await {
            if claimed.id() != earlier {
                finish(&scene.store, claimed.token, Outcome::DONE).await.unwrap();
            }
        }
        // As a handler does that completes its job in its own transaction.
        let holder =
            LockHolder::with(&scene.url, &format!("SELECT FROM orchestrix.job WHERE id = '{earlier}' FOR UPDATE"))
                .await;
        scene.clock.advance(MINUTE).await;
        assert_eq!(scene.fire().await, 2, "firing does not wait for the lock");
        assert_eq!((scene.fired("good").await, scene.fired("held").await), (2, 1));
        assert!(scene.is_postponed("held", SECOND).await);
        holder.rollback().await;
        scene.clock.advance(SECOND).await;
        assert_eq!(scene.fire().await, 1);
        let occurrences = scene.occurrences("held").await;
        assert_eq!((occurrences.len(), occurrences[0].reason), (2, None), "{overlap}: still on time");
        let job = get(&scene.store, occurrences[0].job.unwrap()).await;
        match overlap {
            Overlap::BufferOne => assert_eq!((job.state, job.depends_on), (JobState::Blocked, vec![earlier])),
            _ => assert!(get(&scene.store, earlier).await.cancel_requested),
        }
        invariants::assert_consistent(&scene.client).await;
    }
}

async fn lead(store: &PostgresStore) -> Epoch {
    match store.campaign_for_leadership(&NodeName::new("a").unwrap(), Duration::from_secs(3600), None).await.unwrap() {
        Leadership::Leading(epoch) => epoch,
        following => panic!("{following:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_times_out_gets_smaller_until_it_succeeds() {
    let backlog = NewSchedule { misfire: Misfire::CatchUp, overlap: Overlap::Allow, ..minutely("backlog") };
    let once = Some("2026-01-01T00:12:00Z".parse().unwrap());
    let scene = Scene::with([backlog, NewSchedule { start_at: once, ..minutely("other") }]).await;
    let slow = "CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_sleep(0.2); RETURN NEW; END $$;
        CREATE TRIGGER slow BEFORE INSERT ON orchestrix.occurrence FOR EACH ROW EXECUTE FUNCTION public.slow()";
    scene.sql(slow).await;
    // Twelve occurrences of one schedule in one statement take more than two seconds.
    scene.clock.advance(MINUTE * 12).await;
    let fence = Fence::of(lead(&scene.store).await, Duration::from_secs(1));
    let mut steps = 0;
    while scene.fired("backlog").await < 12 || scene.occurrences("other").await.is_empty() {
        // A step may fail as a whole if it times out before it fires one by one.
        let _ = scene.store.fire_schedules(fence, 500).await;
        scene.clock.advance(SECOND).await;
        steps += 1;
        assert!(steps < 40, "only {} occurrences fired", scene.fired("backlog").await);
    }
    invariants::assert_consistent(&scene.client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_put_that_waited_for_a_lock_uses_the_time_after_the_wait() {
    let scene = Scene::with([minutely("s")]).await;
    let holder = LockHolder::with(&scene.url, "SELECT FROM orchestrix.schedule WHERE name = 's' FOR UPDATE").await;
    let store = scene.store.clone();
    let putting = tokio::spawn(async move {
        let edited = NewSchedule { jitter: Duration::from_millis(1), ..minutely("s") };
        store.put_schedule(None, edited).await
    });
    until_waiting(&scene.client, 1).await;
    scene.clock.advance(MINUTE * 10).await;
    holder.rollback().await;
    assert_eq!(putting.await.unwrap().unwrap(), PutResult::Updated);
    let now = scene.clock.now().await;
    let after = scene.schedule("s").await;
    assert_eq!((after.updated_at, after.counted_from), (now, now));
    assert_eq!(scene.occurrences("s").await[0].count, 10, "the times that passed during the wait");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreadable_schedule_is_left_out_of_lists_and_can_be_paused_replaced_and_deleted() {
    let scene = Scene::with(["a", "b", "c"].map(minutely)).await;
    scene.store.trigger_schedule(None, &name("b")).await.unwrap();
    let before = scene.schedule("b").await;
    let spoil = "UPDATE orchestrix.schedule SET definition = '{\"new\": 1}' WHERE name <> 'a'";
    scene.sql(spoil).await;
    let mut names = Vec::new();
    let mut page = PageRequest::first(1);
    for _ in 0..3 {
        let part = scene.store.list_schedules(None, &page).await.unwrap();
        names.extend(part.items.into_iter().map(|schedule| schedule.definition.name));
        let Some(next) = part.next else { break };
        page = PageRequest::after(next, 1);
    }
    assert_eq!(names, [name("a")]);
    assert!(matches!(scene.store.schedule(None, &name("b")).await, Err(StoreError::Backend(_))));
    assert_eq!(scene.occurrences("b").await.len(), 1);
    assert_eq!(scene.occurrences("c").await, [], "the schedule exists");

    assert!(scene.store.pause_schedule(None, &name("b"), Some("broken".into())).await.unwrap());
    assert!(!scene.store.pause_schedule(None, &name("b"), None).await.unwrap(), "it was paused already");
    let paused = "SELECT count(*) FROM orchestrix.schedule WHERE paused AND next_fire_at IS NULL AND name = 'b'";
    assert_eq!(scene.number(paused).await, 1);
    assert!(matches!(scene.store.resume_schedule(None, &name("b")).await, Err(StoreError::Backend(_))));

    scene.clock.advance(MINUTE).await;
    let now = scene.clock.now().await;
    assert_eq!(scene.store.put_schedule(None, minutely("b")).await.unwrap(), PutResult::Updated);
    let after = scene.schedule("b").await;
    assert_eq!(after.definition, NewSchedule { paused: true, ..minutely("b") }, "it stays paused");
    assert_eq!((after.created_at, after.updated_at, after.counted_from), (before.created_at, now, now));
    assert_eq!((after.open_jobs, after.last_fired_at), (before.open_jobs, before.last_fired_at));
    assert!(scene.store.resume_schedule(None, &name("b")).await.unwrap());

    assert_eq!(scene.store.put_schedule(None, minutely("c")).await.unwrap(), PutResult::Updated);
    assert!(scene.schedule("c").await.next_fire_at.is_some_and(|time| time > now), "it has a next time");
    scene.sql(spoil).await;
    assert!(scene.store.delete_schedule(None, &name("c")).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schedule_that_violates_a_newer_rule_can_be_paused() {
    let scene = Scene::with([minutely("s")]).await;
    let spoil =
        "UPDATE orchestrix.schedule SET definition = jsonb_set(definition::jsonb, '{job,max_attempts}', '0')::json";
    scene.sql(spoil).await;
    assert!(scene.store.pause_schedule(None, &name("s"), Some("broken".into())).await.unwrap());
    assert_eq!(scene.schedule("s").await.definition.note.as_deref(), Some("broken"));
}
