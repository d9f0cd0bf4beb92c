//! A clock that tests set, for whole suites on virtual time (feature `test-clock`).
//!
//! The store's statements say `now()`, or `statement_timestamp()` after they waited for a lock, and nothing else about time. A schema
//! with functions of its own by these names that comes before `pg_catalog` in the search path is therefore all it takes; the store
//! itself knows nothing of it.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use orchestrix_conformance::TestClock;
use orchestrix_core::Timestamp;
use orchestrix_store::{Clock, ManualClock, Result};
use tokio_postgres::{Client, NoTls};

use crate::{IdSource, error::store_error};

/// Stands still until it is told to move; shared by all who connect with its URL.
#[derive(Debug)]
pub struct DatabaseClock {
    client: Client,
    /// The same time, for ids.
    here: Arc<ManualClock>,
}

impl DatabaseClock {
    /// Puts the clock into the database at `url`, or sets the one that is there: to `start`, or to the server's time.
    /// Gives the URL whose connections go by it.
    pub async fn install(url: &str, start: Option<Timestamp>) -> Result<(Self, String)> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.map_err(store_error)?;
        tokio::spawn(connection);
        client
            .batch_execute(
                "CREATE SCHEMA IF NOT EXISTS test_clock;
                 CREATE TABLE IF NOT EXISTS test_clock.reading (at timestamptz NOT NULL);
                 CREATE OR REPLACE FUNCTION test_clock.now() RETURNS timestamptz LANGUAGE sql STABLE
                     AS 'SELECT at FROM test_clock.reading';
                 CREATE OR REPLACE FUNCTION test_clock.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
                     AS 'SELECT at FROM test_clock.reading';
                 DELETE FROM test_clock.reading;",
            )
            .await
            .map_err(store_error)?;
        let set = "INSERT INTO test_clock.reading
                   VALUES (coalesce($1::timestamptz, date_trunc('milliseconds', pg_catalog.now())))";
        let set = format!("{set} RETURNING at");
        let now: Timestamp = client.query_one(&set, &[&start]).await.map_err(store_error)?.get(0);
        let here = Arc::new(ManualClock::new(now));
        Ok((Self { client, here }, format!("{url}?options=-csearch_path%3Dtest_clock%2Cpg_catalog%2Cpublic")))
    }

    /// Ids of the time that it shows: whoever looks for jobs by time looks for such.
    pub fn ids(&self) -> IdSource {
        IdSource::on(Arc::clone(&self.here) as Arc<dyn Clock>)
    }
}

#[async_trait]
impl TestClock for DatabaseClock {
    async fn advance(&self, by: Duration) {
        let micros = i64::try_from(by.as_micros()).expect("a time that the database can hold");
        // By whole seconds and the rest: a double holds neither a century of microseconds nor a product of them exactly.
        let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
        let advance = "UPDATE test_clock.reading
                       SET at = at + $1::bigint * interval '1 second' + $2::bigint * interval '1 microsecond'";
        self.client.execute(advance, &[&seconds, &micros]).await.expect("the clock moves");
        ManualClock::advance(&self.here, by);
    }

    async fn now(&self) -> Timestamp {
        self.client.query_one("SELECT at FROM test_clock.reading", &[]).await.expect("the clock").get(0)
    }
}
