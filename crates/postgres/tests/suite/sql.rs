//! Enqueueing by the SQL function, in the caller's own transaction.

use orchestrix_core::{JobId, JobState, JobType, Json, Tenant};
use orchestrix_postgres::PostgresStore;
use orchestrix_store::{Fence, PageRequest, prelude::*};
use orchestrix_testkit::TestDatabase;
use tokio_postgres::{Client, error::SqlState};

use crate::{invariants, jobs::*, locks::LockHolder, support};

async fn scene() -> (PostgresStore, TestDatabase, Client) {
    let (store, database) = support::store().await;
    let client = support::connect(database.url()).await;
    (store, database, client)
}

/// Calls the function with these arguments.
async fn call(client: &Client, arguments: &str) -> Result<JobId, tokio_postgres::Error> {
    let row = client.query_one(&format!("SELECT orchestrix.enqueue({arguments})"), &[]).await?;
    Ok(JobId::from_uuid(row.get(0)))
}

#[tokio::test]
async fn a_job_with_every_default_equals_one_of_the_api() {
    let (store, _database, client) = scene().await;
    let by_sql = get(&store, call(&client, "'SEND_EMAIL'").await.unwrap()).await;
    let by_api =
        get(&store, enqueue(&store, orchestrix_core::NewJob::new(JobType::new("SEND_EMAIL").unwrap())).await).await;
    assert_eq!(by_sql.state, JobState::Pending);
    assert_eq!(by_sql.id.as_uuid().get_version_num(), 7);
    let same = orchestrix_core::Job {
        id: by_api.id,
        created_at: by_api.created_at,
        updated_at: by_api.updated_at,
        eligible_at: by_api.eligible_at,
        ..by_sql
    };
    assert_eq!(same, by_api);
    invariants::assert_consistent(&client).await;
}

#[tokio::test]
async fn a_job_exists_if_and_only_if_its_transaction_commits() {
    let (store, database, client) = scene().await;
    let rolled_back = LockHolder::begin(database.url()).await;
    let id = call(rolled_back.client(), "'t', idempotency_key => 'k'").await.unwrap();
    assert!(store.job(id).await.unwrap().is_none(), "visible before its commit");
    assert!(claim(&store, 10).await.is_empty());
    rolled_back.rollback().await;
    assert!(store.job(id).await.unwrap().is_none());
    assert!(store.queue_depths(&PageRequest::first(10)).await.unwrap().items.is_empty());
    for table in ["job", "payload", "idempotency", "depth_delta"] {
        let sql = format!("SELECT count(*) FROM orchestrix.{table}");
        assert_eq!(client.query_one(&sql, &[]).await.unwrap().get::<_, i64>(0), 0, "{table}");
    }
    let committed = LockHolder::begin(database.url()).await;
    let id = call(committed.client(), "'t', idempotency_key => 'k'").await.unwrap();
    committed.commit().await;
    assert_eq!(claim_soon(&store).await.id(), id);
    invariants::assert_consistent(&client).await;
}

#[tokio::test]
async fn every_argument_is_applied_and_the_highest_priority_is_claimed_first() {
    let (store, _database, client) = scene().await;
    let low = call(&client, "'t', priority => -5").await.unwrap();
    let high = call(&client, "'t', '{\"to\": \"you\"}', 'mail', 9, NULL, 'clé/§✓', 3, 'acme'").await.unwrap();
    let job = get(&store, high).await;
    assert_eq!((job.queue, job.priority, job.max_attempts), (queue("mail"), priority(9), 3));
    assert_eq!((job.tenant, job.idempotency_key.unwrap().as_str()), (Tenant::new("acme").unwrap(), "clé/§✓"));
    assert_eq!(claim(&store, 10).await.iter().map(|claimed| claimed.id()).collect::<Vec<_>>(), [high, low]);
    invariants::assert_consistent(&client).await;
}

#[tokio::test]
async fn a_job_for_later_is_scheduled_and_one_for_the_past_is_pending() {
    let (store, _database, client) = scene().await;
    let later = call(&client, "'t', run_at => now() + interval '1 hour'").await.unwrap();
    let past = call(&client, "'t', run_at => now() - interval '1 hour'").await.unwrap();
    assert_eq!(state(&store, later).await, JobState::Scheduled);
    let past = get(&store, past).await;
    assert_eq!(
        (past.state, past.eligible_at),
        (JobState::Pending, past.created_at),
        "a past time does not move it ahead"
    );
    client.execute("UPDATE orchestrix.job SET eligible_at = now() WHERE state = 'scheduled'", &[]).await.unwrap();
    assert_eq!(store.promote_jobs(Fence::NONE, 10).await.unwrap().count, 1);
    assert_eq!(claim(&store, 10).await.len(), 2);
    invariants::assert_consistent(&client).await;
}

#[tokio::test]
async fn an_idempotency_key_means_one_job_and_another_request_with_it_is_refused() {
    let (store, _database, client) = scene().await;
    let arguments = "'t', '{\"a\": 1, \"b\": 2}', idempotency_key => 'k'";
    let first = call(&client, arguments).await.unwrap();
    assert_eq!(call(&client, arguments).await.unwrap(), first);
    assert_eq!(call(&client, "'t', '{\"b\":2,\"a\":1}', idempotency_key => 'k'").await.unwrap(), first);
    let refused = call(&client, "'t', '{\"a\": 2}', idempotency_key => 'k'").await.unwrap_err();
    let refused = refused.as_db_error().unwrap();
    assert_eq!(refused.code(), &SqlState::UNIQUE_VIOLATION);
    assert_eq!(refused.message(), format!("the idempotency key was used for a different request, job {first}"));
    // A key belongs to a tenant and a type, and stays with its job after that ends.
    assert_ne!(call(&client, "'u', idempotency_key => 'k'").await.unwrap(), first);
    assert_ne!(call(&client, "'t', idempotency_key => 'k', tenant => 'x'").await.unwrap(), first);
    store.cancel_job(first).await.unwrap();
    assert_eq!(call(&client, arguments).await.unwrap(), first);
    invariants::assert_consistent(&client).await;
}

#[tokio::test]
async fn sql_and_api_share_idempotency_keys() {
    let (store, _database, client) = scene().await;
    let by_sql = call(&client, "'keyed', idempotency_key => 'a'").await.unwrap();
    let again = store.enqueue_job(keyed("a")).await.unwrap();
    assert_eq!((again.id, again.duplicate), (by_sql, true));
    let by_api = enqueue(&store, keyed("b")).await;
    assert_eq!(call(&client, "'keyed', idempotency_key => 'b'").await.unwrap(), by_api);
    assert_eq!(claim(&store, 10).await.len(), 2);
}

#[tokio::test]
async fn arguments_that_the_api_refuses_are_refused_and_write_nothing() {
    let (store, _database, client) = scene().await;
    let long = "x".repeat(129);
    let large = "x".repeat(Json::MAX_BYTES);
    for (field, arguments) in [
        ("jobType", "''".to_owned()),
        ("jobType", "NULL".into()),
        ("jobType", "'a b'".into()),
        ("jobType", format!("'{long}'")),
        ("jobType", r"E'a\nb'".into()),
        ("jobType", r"E'a\n'".into()),
        ("queue", "'t', queue => 'a:b'".into()),
        ("queue", "'t', queue => NULL".into()),
        ("tenant", "'t', tenant => 'é'".into()),
        ("priority", "'t', priority => 1001".into()),
        ("priority", "'t', priority => NULL".into()),
        ("maxAttempts", "'t', max_attempts => 0".into()),
        ("maxAttempts", "'t', max_attempts => 10001".into()),
        ("runAt", "'t', run_at => '9999-01-01Z'".into()),
        ("runAt", "'t', run_at => 'infinity'".into()),
        ("runAt", "'t', run_at => '1970-01-01Z'".into()),
        ("idempotencyKey", "'t', idempotency_key => ''".into()),
        ("idempotencyKey", "'t', idempotency_key => 'a b'".into()),
        ("idempotencyKey", "'t', idempotency_key => repeat('k', 256)".into()),
        ("idempotencyKey", r"'t', idempotency_key => E'a\u00a0b'".into()),
        ("idempotencyKey", r"'t', idempotency_key => E'a\u00adb'".into()),
        ("idempotencyKey", r"'t', idempotency_key => E'a\u200bb'".into()),
        ("idempotencyKey", r"'t', idempotency_key => E'a\u3000b'".into()),
        ("idempotencyKey", r"'t', idempotency_key => E'\ufeffb'".into()),
        ("payload", format!("'t', to_jsonb('{large}'::text)")),
    ] {
        let refused = call(&client, &arguments).await;
        let shown: String = arguments.chars().take(60).collect();
        let Err(refused) = refused else { panic!("accepted {shown}") };
        let refused = refused.as_db_error().unwrap();
        assert_eq!((refused.code(), refused.column()), (&SqlState::CHECK_VIOLATION, Some(field)), "{shown}");
        assert!(refused.message().starts_with(&format!("invalid request: {field}: ")), "{}", refused.message());
    }
    let left: i64 = client.query_one("SELECT count(*) FROM orchestrix.jobs", &[]).await.unwrap().get(0);
    assert_eq!(left, 0);
    let keys: i64 = client.query_one("SELECT count(*) FROM orchestrix.idempotency", &[]).await.unwrap().get(0);
    assert_eq!(keys, 0);
    assert!(store.queue_depths(&PageRequest::first(10)).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn payloads_short_and_long_reach_the_worker() {
    let (store, _database, client) = scene().await;
    for length in [0, 1, 500, 510, 511, 600, 100_000, Json::MAX_BYTES - 2] {
        let id = call(&client, &format!("'t', to_jsonb(repeat('é', {length} / 2) || repeat('x', {length} % 2))"))
            .await
            .unwrap();
        let claimed = claim_soon(&store).await;
        assert_eq!(claimed.id(), id);
        let text: String = claimed.payload.to().unwrap();
        assert_eq!(text.len(), length);
        assert_eq!(get(&store, id).await.payload, claimed.payload);
    }
    let mixed = r#"{"a": [1, 2.5, null, true], "b": "\"\\ ✓"}"#;
    call(&client, &format!("'t', '{mixed}'")).await.unwrap();
    assert_eq!(claim_soon(&store).await.payload.as_str(), mixed);
    call(&client, "'t', NULL").await.unwrap();
    assert_eq!(claim_soon(&store).await.payload, Json::null(), "a missing payload is null");
}

#[tokio::test]
async fn jobs_enqueued_by_sql_are_counted() {
    let (store, _database, client) = scene().await;
    client.execute("SELECT orchestrix.enqueue('t', queue => 'q') FROM generate_series(1, 25)", &[]).await.unwrap();
    call(&client, "'t', queue => 'q', run_at => now() + interval '1 day'").await.unwrap();
    let depths = store.queue_depths(&PageRequest::first(10)).await.unwrap().items;
    assert_eq!(depths.len(), 1);
    assert_eq!(depths[0].queue, queue("q"));
    assert_eq!(depths[0].counts, [(JobState::Scheduled, 1), (JobState::Pending, 25)].into());
    assert!(depths[0].oldest.is_some());
    invariants::assert_consistent(&client).await;
}
