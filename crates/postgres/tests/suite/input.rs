//! Refused input leaves nothing behind, and accepted input comes back unchanged.

use std::time::Duration;

use orchestrix_core::{DependsOn, JobId, JobState, Json, LeaseToken, NewJob, RetryPolicy, Start, Timestamp};
use orchestrix_postgres::PostgresStore;
use orchestrix_store::{
    FinishError, LeaseStatus, LogLevel, LogLine, Outcome, OutcomeReport, ProgressUpdate, Result, StoreError, prelude::*,
};
use orchestrix_testkit::TestDatabase;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::{invariants, jobs::*, support};

async fn scene() -> (PostgresStore, TestDatabase, Client) {
    let (store, database) = support::store().await;
    let client = support::connect(database.url()).await;
    (store, database, client)
}

/// The number of rows in every table that a refused call could have written to.
async fn rows(client: &Client) -> i64 {
    let sql = "SELECT (SELECT count(*) FROM orchestrix.jobs) + (SELECT count(*) FROM orchestrix.payload)
        + (SELECT count(*) FROM orchestrix.idempotency) + (SELECT count(*) FROM orchestrix.dependency)
        + (SELECT count(*) FROM orchestrix.settled) + (SELECT count(*) FROM orchestrix.depth_delta)
        + (SELECT count(*) FROM orchestrix.depth) + (SELECT count(*) FROM orchestrix.log)";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

fn bad_fields<T: std::fmt::Debug>(answer: Result<T>) -> Vec<String> {
    match answer {
        Err(StoreError::Invalid(invalid)) => invalid.errors.into_iter().map(|error| error.field).collect(),
        other => panic!("expected an invalid-input error: {other:?}"),
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn unknown() -> JobId {
    JobId::new(Timestamp::now(), rand::random())
}

fn reference(name: &str) -> DependsOn {
    DependsOn::Reference(name.into())
}

#[tokio::test]
async fn a_job_with_invalid_fields_writes_nothing() {
    let (store, _database, client) = scene().await;
    let large = Json::trusted(&format!("\"{}\"", "x".repeat(Json::MAX_BYTES)));
    let cases: Vec<(&str, NewJob)> = vec![
        ("payload", NewJob { payload: large, ..job("t") }),
        ("maxAttempts", NewJob { max_attempts: 0, ..job("t") }),
        ("maxAttempts", NewJob { max_attempts: 10_001, ..job("t") }),
        ("leaseSeconds", NewJob { lease: Duration::from_millis(1), ..job("t") }),
        ("leaseSeconds", NewJob { lease: Duration::MAX, ..job("t") }),
        ("timeoutSeconds", NewJob { timeout: Some(Duration::ZERO), ..job("t") }),
        ("timeoutSeconds", NewJob { timeout: Some(Duration::MAX), ..job("t") }),
        ("delaySeconds", NewJob { start: Start::After(Duration::MAX), ..job("t") }),
        ("runAt", NewJob { start: Start::At(Timestamp::MAX), ..job("t") }),
        ("runAt", NewJob { start: Start::At(Timestamp::MIN), ..job("t") }),
        ("runAt", NewJob { start: Start::At(at("1970-01-20T00:00:00Z")), ..job("t") }),
        ("expiresAt", NewJob { expires_at: Some(Timestamp::MAX), ..job("t") }),
        ("correlationId", NewJob { correlation_id: Some("a\0b".into()), ..job("t") }),
        ("traceparent", NewJob { traceparent: Some("\u{1b}[0m".into()), ..job("t") }),
        ("retry.jitter", NewJob { retry: RetryPolicy { jitter: f64::NAN, ..RetryPolicy::default() }, ..job("t") }),
        ("dependsOn", NewJob { depends_on: vec![DependsOn::Job(unknown())], ..job("t") }),
        ("dependsOn", NewJob { depends_on: vec![reference("missing")], ..job("t") }),
    ];
    for (field, bad) in cases {
        assert_eq!(
            bad_fields(store.enqueue_job(NewJob { idempotency_key: keyed("k").idempotency_key, ..bad.clone() }).await),
            [field]
        );
        let batch = vec![keyed("a"), bad, keyed("b")];
        let named = bad_fields(store.enqueue_jobs(batch).await);
        assert!(named.len() == 1 && named[0].starts_with(&format!("jobs[1].{field}")), "{named:?}");
        assert_eq!(rows(&client).await, 0, "{field}");
    }
    assert_eq!(bad_fields(store.enqueue_jobs(vec![job("t"); NewJob::MAX_BATCH + 1]).await), ["jobs"]);
    assert_eq!(rows(&client).await, 0);
}

#[tokio::test]
async fn a_batch_with_a_cycle_or_an_unknown_parent_writes_nothing() {
    let (store, _database, client) = scene().await;
    let named = |name: &str, parents: Vec<DependsOn>| NewJob {
        reference: Some(name.into()),
        depends_on: parents,
        ..keyed(name)
    };
    let cycle =
        vec![named("a", vec![reference("c")]), named("b", vec![reference("a")]), named("c", vec![reference("b")])];
    assert_eq!(bad_fields(store.enqueue_jobs(cycle).await), ["jobs[0].dependsOn"]);
    let itself = vec![named("a", vec![reference("a")])];
    assert_eq!(bad_fields(store.enqueue_jobs(itself).await), ["jobs[0].dependsOn"]);
    let unknown_parent = vec![named("a", vec![]), named("b", vec![reference("a"), DependsOn::Job(unknown())])];
    assert_eq!(bad_fields(store.enqueue_jobs(unknown_parent).await), ["jobs[1].dependsOn"]);
    assert_eq!(rows(&client).await, 0);
}

#[tokio::test]
async fn a_reused_idempotency_key_with_another_request_fails_the_whole_batch() {
    let (store, _database, client) = scene().await;
    let first = enqueue(&store, keyed("k")).await;
    let before = rows(&client).await;
    let other = NewJob { priority: priority(1), ..keyed("k") };
    let refused = store.enqueue_jobs(vec![keyed("new"), other.clone(), job("t")]).await;
    assert!(matches!(refused, Err(StoreError::IdempotencyKeyReused { existing }) if existing == first), "{refused:?}");
    let refused = store.enqueue_job(other).await;
    assert!(matches!(refused, Err(StoreError::IdempotencyKeyReused { existing }) if existing == first), "{refused:?}");
    let clash = vec![keyed("twice"), NewJob { priority: priority(1), ..keyed("twice") }];
    assert!(matches!(store.enqueue_jobs(clash).await, Err(StoreError::IdempotencyKeyReused { .. })));
    assert_eq!(rows(&client).await, before);
}

/// Tokens of no lease, each with another wrong part.
fn foreign(token: LeaseToken) -> Vec<LeaseToken> {
    let nil = JobId::from_uuid(Uuid::nil());
    let mut tokens = vec![
        LeaseToken { job: unknown(), ..token },
        LeaseToken { counter: token.counter + 1, ..token },
        LeaseToken { counter: i32::MIN, ..token },
        LeaseToken { secret: Uuid::from_u128(rand::random()), ..token },
        LeaseToken { secret: Uuid::nil(), ..token },
        LeaseToken { job: nil, counter: 0, secret: Uuid::nil() },
        LeaseToken { job: JobId::from_uuid(Uuid::max()), counter: i32::MAX, secret: Uuid::max() },
    ];
    tokens.push(LeaseToken { secret: token.job.as_uuid(), ..token });
    tokens
}

#[tokio::test]
async fn every_verb_refuses_a_foreign_token_and_changes_nothing() {
    let (store, _database, client) = scene().await;
    let token = start(&store, job("t")).await.token;
    let waiting = enqueue(&store, job("t")).await;
    let everything = "SELECT jsonb_agg(j ORDER BY id)::text FROM orchestrix.job j";
    let before: String = client.query_one(everything, &[]).await.unwrap().get(0);
    let mut tokens = foreign(token);
    // A job that was never leased has no counter or secret that could match.
    tokens.extend([0, 1].map(|counter| LeaseToken { job: waiting, counter, secret: Uuid::nil() }));
    for token in &tokens {
        for outcome in [
            Outcome::DONE,
            Outcome::fail("x"),
            fatal(),
            Outcome::Release,
            Outcome::Cancelled,
            Outcome::Snooze(Duration::ZERO),
        ] {
            assert_eq!(finish(&store, *token, outcome).await, Err(FinishError::LeaseLost), "{token}");
        }
        let update = ProgressUpdate { progress: None, checkpoint: Some(Json::trusted("1")) };
        assert!(matches!(store.record_progress(*token, update).await, Err(StoreError::LeaseLost)));
        let line = LogLine { at: None, level: LogLevel::Info, message: "x".into() };
        assert!(matches!(store.append_logs(*token, vec![line]).await, Err(StoreError::LeaseLost)));
    }
    assert_eq!(store.extend_leases(&tokens).await.unwrap(), vec![LeaseStatus::Lost; tokens.len()]);
    let after: String = client.query_one(everything, &[]).await.unwrap().get(0);
    assert_eq!(after, before);
    let logs: i64 = client.query_one("SELECT count(*) FROM orchestrix.log", &[]).await.unwrap().get(0);
    assert_eq!(logs, 0);
    // In a batch with a valid token, they do not affect that one.
    let mut items: Vec<OutcomeReport> =
        tokens.iter().map(|token| OutcomeReport { token: *token, outcome: Outcome::DONE }).collect();
    items.insert(3, OutcomeReport { token, outcome: Outcome::DONE });
    let answers = store.finish_attempts(items).await.unwrap();
    for (i, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer, if i == 3 { Ok(JobState::Completed) } else { Err(FinishError::LeaseLost) });
    }
    invariants::assert_consistent(&client).await;
}

#[tokio::test]
async fn invalid_outcomes_progress_and_log_lines_change_nothing() {
    let (store, _database, client) = scene().await;
    let token = start(&store, job("t")).await.token;
    let everything = "SELECT jsonb_agg(j)::text FROM orchestrix.job j";
    let before: String = client.query_one(everything, &[]).await.unwrap().get(0);
    let late = Outcome::Fail { error: "x".into(), retryable: true, retry_after: Some(Duration::MAX) };
    for outcome in [Outcome::Snooze(Duration::MAX), late] {
        assert!(matches!(finish(&store, token, outcome).await, Err(FinishError::Invalid(_))));
    }
    let progress = |percent, message: &str| ProgressUpdate {
        progress: Some(orchestrix_core::Progress { percent, message: Some(message.into()) }),
        checkpoint: None,
    };
    for update in [
        progress(Some(f64::NAN), "x"),
        progress(Some(101.0), "x"),
        progress(None, "\0"),
        progress(None, &"x".repeat(1_025)),
    ] {
        assert!(matches!(store.record_progress(token, update).await, Err(StoreError::Invalid(_))));
    }
    let line = |message: String| LogLine { at: None, level: LogLevel::Info, message };
    for lines in
        [vec![line("a\0".into())], vec![line("x".repeat(LogLine::MAX_MESSAGE + 1))], vec![line("x".into()); 1_001]]
    {
        assert!(matches!(store.append_logs(token, lines).await, Err(StoreError::Invalid(_))));
    }
    let after: String = client.query_one(everything, &[]).await.unwrap().get(0);
    assert_eq!(after, before);
}

/// JSON texts that a database would change if it parsed them.
fn exact() -> Vec<String> {
    vec![
        "null".into(),
        "1e400".into(),
        "-0.0".into(),
        "1.10".into(),
        r#"{"b":1,"a":2,"b":3}"#.into(),
        r#"{ "spaced" :  [ 1 , 2 ] }"#.into(),
        r#""\u0000""#.into(),
        r#"{"\u0000":"\u0000\ud83d\ude00\/"}"#.into(),
        r#""\ud800""#.into(),
        "\"päyløad ✓ 日本語 😀 \u{202e}\"".into(),
        format!("\"{}\"", "x".repeat(510)),
        format!("\"{}\"", "x".repeat(511)),
        format!("\"{}\"", "é".repeat(300_000)),
        format!("[{}1]", "1,".repeat(300_000)),
        format!("\"{}\"", "x".repeat(Json::MAX_BYTES - 2)),
    ]
}

#[tokio::test]
async fn payloads_results_and_checkpoints_come_back_byte_for_byte() {
    let (store, _database, client) = scene().await;
    for (i, text) in exact().into_iter().enumerate() {
        let json = Json::parse("payload", &text).unwrap_or_else(|error| panic!("text {i}: {error}"));
        let shown: String = text.chars().take(40).collect();
        let claimed = start(&store, NewJob { payload: json.clone(), ..job("t") }).await;
        assert_eq!(claimed.payload.as_str(), text, "claimed: {shown}");
        store
            .record_progress(claimed.token, ProgressUpdate { progress: None, checkpoint: Some(json.clone()) })
            .await
            .unwrap();
        assert_eq!(finish(&store, claimed.token, Outcome::Release).await, Ok(JobState::Pending));
        let claimed = claim_soon(&store).await;
        assert_eq!(claimed.payload.as_str(), text, "claimed again: {shown}");
        assert_eq!(claimed.checkpoint.unwrap().as_str(), text, "checkpoint: {shown}");
        let done = Outcome::Complete { result: Some(json) };
        assert_eq!(finish(&store, claimed.token, done).await, Ok(JobState::Completed));
        let job = get(&store, claimed.token.job).await;
        assert_eq!(job.payload.as_str(), text, "in history: {shown}");
        assert_eq!(job.result.unwrap().as_str(), text, "result: {shown}");
    }
    invariants::assert_consistent(&client).await;
}

#[tokio::test]
async fn a_thousand_payloads_of_all_sizes_stay_with_their_jobs() {
    let (store, _database, _client) = scene().await;
    let payload = |i: usize| Json::parse("payload", &format!("{{\"i\":{i},\"x\":\"{}\"}}", "x".repeat(i))).unwrap();
    let jobs = (0..1_000).map(|i| NewJob { payload: payload(i), ..job("t") }).collect();
    let ids: Vec<JobId> = store.enqueue_jobs(jobs).await.unwrap().iter().map(|enqueued| enqueued.id).collect();
    let claimed = claim_all(&store).await;
    assert_eq!(claimed.len(), 1_000);
    for claimed in claimed {
        let i = ids.iter().position(|id| *id == claimed.id()).unwrap();
        assert_eq!(claimed.payload, payload(i));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_the_database_refuses_does_not_fail_the_others_of_its_batch() {
    let (store, _database, client) = scene().await;
    client
        .batch_execute("ALTER TABLE orchestrix.job ADD CONSTRAINT no_poison CHECK (job_type <> 'poison')")
        .await
        .unwrap();
    let answers = together((0..60).map(|i| {
        let store = store.clone();
        async move {
            let kind = if i % 20 == 7 { "poison" } else { "t" };
            (
                kind,
                store.enqueue_job(NewJob { idempotency_key: keyed(&i.to_string()).idempotency_key, ..job(kind) }).await,
            )
        }
    }));
    for (kind, answer) in answers.await {
        match (kind, answer) {
            ("t", answer) => drop(answer.expect("a valid job is enqueued")),
            (_, Err(error @ StoreError::Backend(_))) => {
                assert!(error.to_string().contains("no_poison"), "the reason is missing: {error}");
            }
            (_, other) => panic!("{other:?}"),
        }
    }
    assert_eq!(claim_all(&store).await.len(), 57);
    let keys: i64 = client.query_one("SELECT count(*) FROM orchestrix.idempotency", &[]).await.unwrap().get(0);
    assert_eq!(keys, 57, "a refused job must not keep its key");
    // A batch call is all or nothing.
    let refused = store.enqueue_jobs(vec![job("t"), job("poison"), job("t")]).await;
    let Err(error @ StoreError::Backend(_)) = refused else { panic!("{refused:?}") };
    assert!(error.to_string().contains("no_poison"), "the reason is missing: {error}");
    assert!(claim(&store, 10).await.is_empty());
    invariants::assert_consistent(&client).await;
}
