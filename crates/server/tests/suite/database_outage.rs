//! Responses while the database is unavailable.

use std::{sync::Arc, time::Duration};

use axum::http::StatusCode;
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_testkit::{FaultProxy, TestDatabase};
use serde_json::json;

use crate::test_server::TestServer;

#[tokio::test(flavor = "multi_thread")]
async fn only_metrics_are_served_while_the_database_is_unavailable() {
    let database = TestDatabase::create("outage").unwrap();
    let port = database.url().rsplit_once('/').and_then(|(server, _)| server.rsplit_once(':')).unwrap().1;
    let proxy = FaultProxy::start(([127, 0, 0, 1], port.parse().unwrap()).into()).unwrap();
    let through = database.url().replace(&format!(":{port}/"), &format!(":{}/", proxy.address().port()));
    let server = TestServer::with_store(Arc::new(PostgresStore::open(PostgresOptions::new(&through)).await.unwrap()));
    let [operator, client, uncached] = [
        server.create_key("operator", None).await,
        server.create_key("client", None).await,
        server.create_key("operator", None).await,
    ];
    let status = async |request: &str, key: &str| server.request(request, Some(key), &json!({})).await.0;
    assert_eq!(status("GET /metrics", &operator).await, StatusCode::OK);
    assert_eq!(status("GET /metrics", &client).await, StatusCode::FORBIDDEN);
    proxy.cut();
    // A recently used key stays in the key cache for a while.
    while status("GET /admin/keys", &operator).await == StatusCode::FORBIDDEN {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(status("GET /metrics", &operator).await, StatusCode::OK);
    assert_eq!(status("GET /metrics", &client).await, StatusCode::FORBIDDEN);
    assert_eq!(status("GET /metrics", &uncached).await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(status("GET /admin/stats", &operator).await, StatusCode::SERVICE_UNAVAILABLE);
    proxy.restore();
}
