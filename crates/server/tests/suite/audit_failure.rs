//! An operator's action must not happen when its audit entry cannot be written.

use std::sync::Arc;

use axum::http::{Method, StatusCode};
use orchestrix_core::{JobState, NewJob, Priority};
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_server::InProcessApi;
use orchestrix_store::Store;
use orchestrix_testkit::{TestDatabase, psql};

#[tokio::test(flavor = "multi_thread")]
async fn an_action_whose_audit_entry_cannot_be_written_fails_and_changes_nothing() {
    let database = TestDatabase::create("audit_failure").unwrap();
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(PostgresOptions::new(database.url())).await.unwrap());
    let api = InProcessApi::new(Arc::clone(&store), "operator");
    let id = store.enqueue_job(NewJob::new("t".parse().unwrap())).await.unwrap().id;
    let before = store.job(id).await.unwrap().unwrap();
    let actions = [
        (format!("/admin/jobs/{id}/priority"), r#"{"priority": 5}"#, StatusCode::OK),
        (format!("/admin/jobs/{id}/cancel"), "{}", StatusCode::ACCEPTED),
    ];
    let act = async |path: &str, body: &str| {
        let (status, body) = api.call(Method::POST, path, Some(body.to_owned())).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    };

    psql(database.url(), "ALTER TABLE orchestrix.audit ADD CONSTRAINT read_only CHECK (false) NOT VALID").unwrap();
    for (path, body, _) in &actions {
        let (status, answer) = act(path, body).await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR, "{path}: {answer}");
        let job = store.job(id).await.unwrap().unwrap();
        assert_eq!((job.state, job.priority), (JobState::Pending, before.priority), "{path} changed the job");
    }

    // With a writable audit log the same requests succeed.
    psql(database.url(), "ALTER TABLE orchestrix.audit DROP CONSTRAINT read_only").unwrap();
    for (path, body, expected) in &actions {
        let (status, answer) = act(path, body).await;
        assert_eq!(status, *expected, "{path}: {answer}");
    }
    let job = store.job(id).await.unwrap().unwrap();
    assert_eq!((job.state, job.priority), (JobState::Cancelled, Priority::new(5).unwrap()));
}
