//! Regression tests of fixed bugs.

use std::time::Duration;

use orchestrix_core::{
    DependsOn, IdempotencyKey, JobId, JobState, JobType, Json, NewJob, OnDependencyFailure, Priority, Start, Timestamp,
    WorkerName,
};
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_store::{
    ClaimRequest, ClaimedJob, Fence, JobFilter, Outcome, OutcomeReport, PageRequest, Retention, prelude::*,
};
use uuid::Uuid;

use crate::support::{connect, database, store};

fn job(name: &str) -> NewJob {
    NewJob::new(JobType::new(name).unwrap())
}

async fn claim(store: &PostgresStore, limit: usize) -> Vec<ClaimedJob> {
    store.claim_jobs(&ClaimRequest::any(WorkerName::new("w").unwrap(), limit)).await.unwrap()
}

async fn finish(store: &PostgresStore, claimed: &ClaimedJob, outcome: Outcome) -> JobState {
    let answers = store.finish_attempts(vec![OutcomeReport { token: claimed.token, outcome }]).await.unwrap();
    answers[0].clone().unwrap()
}

fn fatal() -> Outcome {
    Outcome::Fail { error: "no use".into(), retryable: false, retry_after: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_finishes_while_its_day_is_being_dropped_prevents_the_drop() {
    let (store, database) = store().await;
    let mut client = connect(database.url()).await;
    client.batch_execute("SELECT orchestrix.make_partitions(current_date - 20, current_date - 20)").await.unwrap();
    let row = client
        .query_one(
            "SELECT orchestrix.id_floor(now() - interval '20 days'), to_char(now() - interval '20 days', 'YYYYMMDD')",
            &[],
        )
        .await
        .unwrap();
    let (id, day): (Uuid, String) = (row.get(0), row.get(1));
    let finishing = client.transaction().await.unwrap();
    finishing
        .execute(
            "INSERT INTO orchestrix.history (id, created_at, finished_at, eligible_at, state, lease_counter, lease_ms, rank, attempts,
                 max_attempts, losses, has_parents, has_dependents, payload_apart, queue, job_type, tenant, payload)
             VALUES ($1, now(), now(), now(), 'completed', 1, 30000, 0, 1, 10, 0, false, false, false, 'q', 't', 'default', '1')",
            &[&id],
        )
        .await
        .unwrap();
    let pruning = tokio::spawn({
        let store = store.clone();
        async move { store.prune_history(Fence::NONE, &Retention::default(), 100).await }
    });
    // The prune has checked the day, found nothing to retain, and waits for the writer. Now the writer commits.
    let watch = connect(database.url()).await;
    let waiting = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND relation = ('orchestrix.history_' || $1::text)::regclass";
    while !pruning.is_finished() && !watch.query_one(waiting, &[&day]).await.unwrap().get::<_, bool>(0) {}
    finishing.commit().await.unwrap();
    pruning.await.unwrap().unwrap();
    store.prune_history(Fence::NONE, &Retention::default(), 100).await.unwrap();
    let left = watch.query_one("SELECT count(*) FROM orchestrix.jobs WHERE id = $1", &[&id]).await.unwrap();
    assert_eq!(left.get::<_, i64>(0), 1, "a job that just finished was dropped with its day");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_outlives_its_day_with_an_unfinished_job() {
    let (store, database) = store().await;
    let client = connect(database.url()).await;
    client.batch_execute("SELECT orchestrix.make_partitions(current_date - 20, current_date - 20)").await.unwrap();
    let payload = format!("\"{}\"", "x".repeat(2_000));
    client
        .execute(
            "WITH p AS (INSERT INTO orchestrix.payload SELECT orchestrix.id_floor(now() - interval '20 days'), $1 RETURNING id)
             INSERT INTO orchestrix.job (id, created_at, updated_at, eligible_at, state, rank, max_attempts, payload_apart, queue, job_type, tenant)
             SELECT id, now(), now(), now(), 'pending', 0, 10, true, 'default', 't', 'default' FROM p",
            &[&payload],
        )
        .await
        .unwrap();
    // Also adds the ready batch of the job.
    store.prune_history(Fence::NONE, &Retention::default(), 100).await.unwrap();
    let days = client.query_one("SELECT count(*) FROM pg_class WHERE relname LIKE 'payload_2%' AND relname < 'payload_' || to_char(now() - interval '10 days', 'YYYYMMDD') AND relkind = 'r'", &[]).await.unwrap();
    assert_eq!(days.get::<_, i64>(0), 0, "the day should be dropped");
    assert_eq!(claim(&store, 1).await[0].payload.as_str(), payload);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retried_parent_is_unfinished_although_its_dependents_were_never_resolved() {
    let (store, database) = store().await;
    let parent = store.enqueue_job(job("parent")).await.unwrap().id;
    finish(&store, &claim(&store, 1).await[0], fatal()).await;
    // The state after a crash between the end of a job and the resolution of its dependents.
    let client = connect(database.url()).await;
    client.execute("INSERT INTO orchestrix.settled VALUES ($1, true)", &[&parent.as_uuid()]).await.unwrap();
    store.retry_job(parent).await.unwrap();
    let child = NewJob {
        depends_on: vec![DependsOn::Job(parent)],
        on_dependency_failure: OnDependencyFailure::Run,
        ..job("child")
    };
    let child = store.enqueue_job(child).await.unwrap().id;
    store.unblock_jobs(Fence::NONE, 100).await.unwrap();
    assert_eq!(store.job_summary(child).await.unwrap().unwrap().state, JobState::Blocked);
    let parent = claim(&store, 1).await;
    finish(&store, &parent[0], Outcome::DONE).await;
    assert_eq!(store.job_summary(child).await.unwrap().unwrap().state, JobState::Pending);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_without_its_payload_does_not_affect_the_others_of_its_claim() {
    let (store, database) = store().await;
    let large = Json::parse("payload", &format!("\"{}\"", "x".repeat(5_000))).unwrap();
    let broken = store.enqueue_job(NewJob { payload: large, ..job("t") }).await.unwrap().id;
    for _ in 0..3 {
        store.enqueue_job(job("t")).await.unwrap();
    }
    let client = connect(database.url()).await;
    client.execute("DELETE FROM orchestrix.payload", &[]).await.unwrap();
    assert_eq!(claim(&store, 10).await.len(), 3);
    assert_eq!(store.job_summary(broken).await.unwrap().unwrap().state, JobState::Dead);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_held_by_another_transaction_blocks_no_other_enqueue() {
    let (store, database) = store().await;
    let mut client = connect(database.url()).await;
    let holding = client.transaction().await.unwrap();
    holding.execute("SELECT orchestrix.enqueue('t', idempotency_key => 'k')", &[]).await.unwrap();
    let keyed = |key: &str| NewJob { idempotency_key: Some(IdempotencyKey::new(key).unwrap()), ..job("t") };
    // The held key comes last, in a batch with most of the others.
    let waiting = tokio::spawn({
        let store = store.clone();
        let jobs: Vec<_> = (0..20).map(|i| keyed(&format!("beside-{i}"))).chain([keyed("k")]).collect();
        async move { futures_util::future::join_all(jobs.into_iter().map(|job| store.enqueue_job(job))).await }
    });
    let watch = connect(database.url()).await;
    let blocked = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'";
    while !watch.query_one(blocked, &[]).await.unwrap().get::<_, bool>(0) {
        assert!(!waiting.is_finished(), "it should wait for the transaction that holds the key");
    }
    let others = async {
        for _ in 0..20 {
            store.enqueue_job(job("t")).await.unwrap();
        }
        store.enqueue_job(keyed("another")).await.unwrap();
    };
    tokio::time::timeout(Duration::from_secs(8), others).await.expect("no other enqueue waits for the held key");
    assert!(!waiting.is_finished());
    holding.commit().await.unwrap();
    let mut answers = waiting.await.unwrap();
    assert!(answers.pop().unwrap().unwrap().duplicate);
    assert!(answers.into_iter().all(|answer| !answer.unwrap().duplicate));
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_jobs_before_their_sweep_take_no_quota_from_another_lane() {
    let (store, database) = store().await;
    let soon = Timestamp::now() + Duration::from_secs(3600);
    let urgent = Priority::new(5).unwrap();
    let stale = NewJob { expires_at: Some(soon), priority: urgent, ..job("stale") };
    store.enqueue_jobs(vec![stale; 100]).await.unwrap();
    let client = connect(database.url()).await;
    client.execute("UPDATE orchestrix.job SET expires_at = now() - interval '1 minute'", &[]).await.unwrap();
    store.enqueue_job(job("good")).await.unwrap();
    let claimed = claim(&store, 10).await;
    assert_eq!(claimed.iter().map(|job| job.job_type.as_str()).collect::<Vec<_>>(), ["good"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_jobs_are_listed_below_any_number_of_completed_ones() {
    let (store, database) = store().await;
    let id = store.enqueue_job(job("t")).await.unwrap().id;
    finish(&store, &claim(&store, 1).await[0], fatal()).await;
    let client = connect(database.url()).await;
    client
        .execute(
            "INSERT INTO orchestrix.history (id, created_at, finished_at, eligible_at, state, lease_counter, lease_ms, rank, attempts,
                 max_attempts, losses, has_parents, has_dependents, payload_apart, queue, job_type, tenant, payload)
             SELECT orchestrix.new_id(), now(), now(), now(), 'completed', 1, 30000, 0, 1, 10, 0, false, false, false, 'q', 't', 'default', '1'
             FROM generate_series(1, 12000)",
            &[],
        )
        .await
        .unwrap();
    let dead = JobFilter { states: vec![JobState::Dead], ..JobFilter::default() };
    let page = store.list_jobs(&dead, &PageRequest::first(10)).await.unwrap();
    assert_eq!(page.items.iter().map(|job| job.id).collect::<Vec<_>>(), [id]);
    assert_eq!(page.next, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_of_a_small_table_search_the_key_after_it_has_grown() {
    let database = database();
    let options = PostgresOptions { connections: 1, listen: false, ..PostgresOptions::new(database.url()) };
    let store = PostgresStore::open(options).await.unwrap();
    let client = connect(database.url()).await;
    client.batch_execute("ALTER TABLE orchestrix.job SET (autovacuum_enabled = off)").await.unwrap();
    let delayed = NewJob { start: orchestrix_core::Start::After(Duration::from_secs(3600)), ..job("t") };
    store.enqueue_jobs(vec![delayed; 5]).await.unwrap();
    let whole_round = async |n: usize| {
        store.enqueue_jobs(vec![job("t"); n]).await.unwrap();
        let claimed = claim(&store, n).await;
        assert_eq!(claimed.len(), n);
        let tokens: Vec<_> = claimed.iter().map(|job| job.token).collect();
        store.extend_leases(&tokens).await.unwrap();
        finish(&store, &claimed[0], Outcome::Release).await;
        let again = claim(&store, n).await;
        let all =
            claimed[1..].iter().chain(&again).map(|job| OutcomeReport { token: job.token, outcome: Outcome::DONE });
        assert!(store.finish_attempts(all.collect()).await.unwrap().iter().all(Result::is_ok));
        store.promote_jobs(Fence::NONE, 10).await.unwrap();
        store.reap_leases(Fence::NONE, 10, 3).await.unwrap();
    };
    store.enqueue_jobs(vec![job("other"); 10]).await.unwrap();
    client.batch_execute("ANALYZE orchestrix.job").await.unwrap();
    // The first five executions get custom plans; from the sixth on the plan is generic.
    for _ in 0..8 {
        whole_round(2).await;
    }
    client
        .batch_execute(
            "INSERT INTO orchestrix.job (id, created_at, updated_at, eligible_at, state, rank, max_attempts, queue, job_type, tenant, payload)
             SELECT orchestrix.new_id(), now(), now(), now(), 'created', 0, 10, 'default', 't', 'default', '1' FROM generate_series(1, 50000)",
        )
        .await
        .unwrap();
    // Rows scanned in the table and its key. A session reports its statistics with the first statement after a
    // second, and the store has one session.
    let rows_scanned = async || {
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        store.paused_queues().await.unwrap();
        let read = "SELECT sum(pg_stat_get_tuples_returned(r))::bigint
                    FROM unnest(ARRAY['orchestrix.job', 'orchestrix.job_pkey']::regclass[]) AS r";
        client.query_one(read, &[]).await.unwrap().get::<_, i64>(0)
    };
    let before = rows_scanned().await;
    whole_round(20).await;
    assert!(rows_scanned().await - before < 50_000, "the whole table was scanned");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_jobs_are_on_the_first_page_below_many_pending_ones() {
    let (store, _database) = store().await;
    let later = Timestamp::now() + Duration::from_secs(3_600);
    let mut waiting = Vec::new();
    for name in ["early", "late"] {
        let timed = NewJob { start: Start::At(later), ..job(name) };
        let held = NewJob { hold: true, ..job(name) };
        for new in [timed, held] {
            waiting.push(store.enqueue_job(new).await.unwrap().id);
        }
    }
    // More than one page scans.
    for _ in 0..3 {
        store.enqueue_jobs((0..5_000).map(|_| job("pending")).collect()).await.unwrap();
    }
    let list = async |states: &[JobState], name: Option<&str>, page: PageRequest<JobId>| {
        let job_type = name.map(|name| JobType::new(name).unwrap());
        let filter = JobFilter { states: states.to_vec(), job_type, ..JobFilter::default() };
        let found = store.list_jobs(&filter, &page).await.unwrap();
        (found.items.into_iter().map(|job| job.id).collect::<Vec<_>>(), found.next)
    };
    let (scheduled, created) = (JobState::Scheduled, JobState::Created);
    let all = || PageRequest::first(10);
    assert_eq!(list(&[scheduled], None, all()).await, (vec![waiting[2], waiting[0]], None));
    assert_eq!(list(&[created], Some("early"), all()).await, (vec![waiting[1]], None));
    // Several states, one of them twice, in one order and page by page.
    let both = [created, scheduled, created];
    let newest_first: Vec<JobId> = waiting.iter().rev().copied().collect();
    assert_eq!(list(&both, None, all()).await, (newest_first.clone(), None));
    let (first, next) = list(&both, None, PageRequest::first(3)).await;
    assert_eq!((&first[..], next), (&newest_first[..3], Some(newest_first[2])));
    let (rest, next) = list(&both, None, PageRequest::after(newest_first[2], 3)).await;
    assert_eq!((&rest[..], next), (&newest_first[3..], None));
    assert_eq!(list(&[JobState::Retrying], None, all()).await, (vec![], None));
}
