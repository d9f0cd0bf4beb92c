//! What is answered while the database is away.

use std::{sync::Arc, time::Duration};

use axum::http::StatusCode;
use orchestrix_postgres::{PostgresOptions, PostgresStore};
use orchestrix_testkit::{FaultProxy, TestDatabase};
use serde_json::json;

use crate::place::Place;

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_told_while_the_database_is_away_and_nothing_else_is() {
    let database = TestDatabase::create("outage").unwrap();
    let port = database.url().rsplit_once('/').and_then(|(server, _)| server.rsplit_once(':')).unwrap().1;
    let proxy = FaultProxy::start(([127, 0, 0, 1], port.parse().unwrap()).into()).unwrap();
    let through = database.url().replace(&format!(":{port}/"), &format!(":{}/", proxy.address().port()));
    let place = Place::on(Arc::new(PostgresStore::open(PostgresOptions::new(&through)).await.unwrap()));
    let [operator, client, unseen] =
        [place.key("operator", None).await, place.key("client", None).await, place.key("operator", None).await];
    let ask = async |what: &str, key: &str| place.ask(what, Some(key), &json!({})).await.0;
    assert_eq!(ask("GET /metrics", &operator).await, StatusCode::OK);
    assert_eq!(ask("GET /metrics", &client).await, StatusCode::FORBIDDEN);
    proxy.cut();
    // What was just seen of a key is believed for a while in any case.
    while ask("GET /admin/keys", &operator).await == StatusCode::FORBIDDEN {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(ask("GET /metrics", &operator).await, StatusCode::OK);
    assert_eq!(ask("GET /metrics", &client).await, StatusCode::FORBIDDEN);
    assert_eq!(ask("GET /metrics", &unseen).await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(ask("GET /admin/stats", &operator).await, StatusCode::SERVICE_UNAVAILABLE);
    proxy.restore();
}
