//! Tenant scopes: lists use the tenant's index, and verbs check the tenant under the row lock.

use std::time::Duration;

use orchestrix_core::{Cadence, DependsOn, NewJob, NewSchedule, ScheduleName, Tenant, Timestamp};
use orchestrix_postgres::PostgresStore;
use orchestrix_store::{Backfill, PageRequest, PutResult, Result, StoreError, prelude::*};

use crate::{
    jobs::job,
    locks::{LockHolder, until_waiting},
    plans::connect_like_a_store,
    support,
};

/// Statements with the types of their parameters, arguments in SQL, and the index that each relies on.
const LISTS: [(&str, &str, &str, &str); 5] = [
    (include_str!("../../queries/list_tenant_schedules.sql"), "text, int8, text", "'', 101, 'acme'", "schedule_tenant"),
    (
        include_str!("../../queries/list_tenant_operations.sql"),
        "uuid, int8, text",
        "'ffffffff-ffff-ffff-ffff-ffffffffffff', 101, 'acme'",
        "operation_tenant",
    ),
    (include_str!("../../queries/open_operations.sql"), "int8", "1", "operation_turn"),
    (
        include_str!("../../queries/list_audit_entries.sql"),
        "timestamptz, int8, timestamptz, int8, text, text, text, int8",
        "now() - interval '5 hours', 7, now() - interval '6 hours', 101, NULL, NULL, NULL, 101",
        "audit_at",
    ),
    (
        include_str!("../../queries/list_tenant_audit_entries.sql"),
        "timestamptz, int8, timestamptz, int8, text, text, text, int8, text",
        "now() - interval '5 hours', 7, now() - interval '6 hours', 101, NULL, NULL, NULL, 101, 'acme'",
        "audit_tenant",
    ),
];

const FILL: &str = "
    INSERT INTO orchestrix.schedule (name, definition, paused, created_at, updated_at, counted_from, open_jobs, tzdb)
    SELECT 's' || n, json_build_object('job', json_build_object('tenant', CASE WHEN n % 1000 = 0 THEN 'acme' ELSE 'other' END)), true,
           now(), now(), now(), '{}', ''
    FROM generate_series(1, 20000) AS n;
    INSERT INTO orchestrix.operation (id, action, filter, dry_run, state, created_at, updated_at, finished_at, actor, tenant)
    SELECT gen_random_uuid(), 'cancel', '{}', false, CASE WHEN n % 1000 = 0 THEN 'running' ELSE 'done' END, now(), now(),
           CASE WHEN n % 1000 = 0 THEN NULL ELSE now() END, 'ann', CASE WHEN n % 1000 = 1 THEN 'acme' ELSE 'other' END
    FROM generate_series(1, 20000) AS n;
    INSERT INTO orchestrix.audit (at, actor, tenant, action, request_id)
    SELECT now() - n * interval '1 second', 'ann', CASE WHEN n % 1000 = 0 THEN 'acme' ELSE 'other' END, 'look', 'r'
    FROM generate_series(1, 50000) AS n";

#[tokio::test]
async fn lists_by_tenant_or_time_use_their_index() {
    let database = support::database();
    let client = connect_like_a_store(&database).await;
    client.batch_execute(FILL).await.unwrap();
    for statistics in ["without statistics", "with statistics"] {
        for mode in ["force_generic_plan", "force_custom_plan"] {
            client.batch_execute(&format!("SET plan_cache_mode = {mode}")).await.unwrap();
            for (sql, types, arguments, index) in LISTS {
                client.batch_execute(&format!("PREPARE list ({types}) AS {sql}")).await.unwrap();
                let rows = client.query(&format!("EXPLAIN (COSTS OFF) EXECUTE list ({arguments})"), &[]).await.unwrap();
                let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
                let plan = plan.join("\n");
                let ordered = plan.contains(&format!("using {index} on")) && !plan.contains("Seq Scan");
                assert!(ordered, "{mode}, {statistics}, not by {index}:\n{plan}");
                client.batch_execute("DEALLOCATE list").await.unwrap();
            }
        }
        client.batch_execute("ANALYZE").await.unwrap();
    }
}

fn name() -> ScheduleName {
    ScheduleName::new("s").unwrap()
}

fn of(owner: &Tenant) -> NewSchedule {
    let cadence = Cadence::every(Duration::from_secs(3600)).unwrap();
    NewSchedule::new(name(), cadence, NewJob { tenant: owner.clone(), ..job("t") })
}

/// Calls a verb in the scope of `acme` on its schedule, which moves to another tenant while the verb waits for the
/// row.
async fn while_moved_to_another_tenant<T>(verb: impl AsyncFnOnce(PostgresStore, Tenant) -> Result<T>) -> Result<T> {
    let (store, database) = support::store().await;
    let client = support::connect(database.url()).await;
    let acme = Tenant::new("acme").unwrap();
    assert_eq!(store.put_schedule(None, of(&acme)).await.unwrap(), PutResult::Created);
    let move_tenant =
        "UPDATE orchestrix.schedule SET definition = jsonb_set(definition::jsonb, '{job,tenant}', '\"other\"')::json";
    let holder = LockHolder::with(database.url(), move_tenant).await;
    let call = verb(store.clone(), acme);
    let (answer, ()) = tokio::join!(call, async {
        until_waiting(&client, 1).await;
        holder.commit().await;
    });
    let after = store.schedule(None, &name()).await.unwrap().expect("the schedule exists");
    assert_eq!((after.definition.job.tenant.as_str(), after.definition.paused), ("other", false));
    assert_eq!(store.list_occurrences(None, &name(), &PageRequest::first(10)).await.unwrap().items, []);
    answer
}

fn assert_not_found<T: std::fmt::Debug>(answer: &Result<T>) {
    assert!(matches!(answer, Err(StoreError::ScheduleNotFound(_))), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schedule_that_moves_to_another_tenant_during_a_lock_wait_is_not_changed() {
    assert_not_found(
        &while_moved_to_another_tenant(async |store, acme| store.put_schedule(Some(&acme), of(&acme)).await).await,
    );
    assert_not_found(
        &while_moved_to_another_tenant(async |store, acme| store.pause_schedule(Some(&acme), &name(), None).await)
            .await,
    );
    assert_not_found(
        &while_moved_to_another_tenant(async |store, acme| store.resume_schedule(Some(&acme), &name()).await).await,
    );
    assert_not_found(
        &while_moved_to_another_tenant(async |store, acme| store.trigger_schedule(Some(&acme), &name()).await).await,
    );
    let to = Timestamp::now();
    let range = Backfill { from: to - Duration::from_secs(7200), to, overlap: None };
    assert_not_found(
        &while_moved_to_another_tenant(async move |store, acme| {
            store.backfill_schedule(Some(&acme), &name(), &range).await
        })
        .await,
    );
    assert!(
        !while_moved_to_another_tenant(async |store, acme| store.delete_schedule(Some(&acme), &name()).await)
            .await
            .unwrap()
    );
    // A caller without a scope cannot change the tenant either.
    let refused = while_moved_to_another_tenant(async |store, acme| store.put_schedule(None, of(&acme)).await).await;
    assert!(
        matches!(&refused, Err(StoreError::Invalid(invalid)) if invalid.errors[0].field == "job.tenant"),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreadable_schedule_of_another_tenant_is_not_found() {
    let (store, database) = support::store().await;
    let (acme, other) = (Tenant::new("acme").unwrap(), Tenant::new("other").unwrap());
    store.put_schedule(None, of(&acme)).await.unwrap();
    let spoil =
        "UPDATE orchestrix.schedule SET definition = jsonb_set(definition::jsonb, '{cadence}', '\"new\"')::json";
    support::connect(database.url()).await.batch_execute(spoil).await.unwrap();
    assert_eq!(store.schedule(Some(&other), &name()).await.unwrap(), None);
    assert!(matches!(store.schedule(Some(&acme), &name()).await, Err(StoreError::Backend(_))));
    // The tenant of an unreadable schedule is known.
    let refused = store.put_schedule(None, of(&other)).await;
    assert!(
        matches!(&refused, Err(StoreError::Invalid(invalid)) if invalid.errors[0].field == "job.tenant"),
        "{refused:?}"
    );
    assert_eq!(store.put_schedule(None, of(&acme)).await.unwrap(), PutResult::Updated);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_enqueue_does_not_wait_for_a_locked_parent_of_another_tenant() {
    let (store, database) = support::store().await;
    let of_other = NewJob { tenant: Tenant::new("other").unwrap(), ..job("t") };
    let parent = store.enqueue_job(of_other.clone()).await.unwrap().id;
    let holder = LockHolder::with(database.url(), "SELECT FROM orchestrix.job FOR UPDATE").await;
    let depends_on = vec![DependsOn::Job(parent)];
    let child = NewJob { depends_on: depends_on.clone(), ..job("t") };
    let refused =
        tokio::time::timeout(Duration::from_secs(20), store.enqueue_job(child)).await.expect("an answer at once");
    assert!(matches!(&refused, Err(StoreError::Invalid(_))), "{refused:?}");
    // A job of the same tenant waits for the lock.
    let (own, ()) = tokio::join!(store.enqueue_job(NewJob { depends_on, ..of_other }), async {
        until_waiting(&support::connect(database.url()).await, 1).await;
        holder.rollback().await;
    });
    own.unwrap();
}
