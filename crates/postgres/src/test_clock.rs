//! A clock that tests set, for suites on virtual time (feature `test-clock`).
//!
//! The store's statements read the time only by `now()` and, after a lock wait, by `statement_timestamp()`. So the
//! clock is a schema with its own functions of these names, which comes before `pg_catalog` in the search path. The
//! store itself does not know about it.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use orchestrix_conformance::TestClock;
use orchestrix_core::Timestamp;
use orchestrix_store::{Clock, ManualClock, Result};
use tokio_postgres::{Client, NoTls};

use crate::{IdSource, error::store_error};

/// A clock in the database that moves only by [`advance`](TestClock::advance). All connections with its URL share it.
#[derive(Debug)]
pub struct DatabaseClock {
    client: Client,
    /// The same time, for job ids.
    local: Arc<ManualClock>,
}

impl DatabaseClock {
    /// Installs the clock in the database at `url`, or resets an installed one: to `start`, or to the server's time.
    /// Returns it with the URL for connections that use it.
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
        let local = Arc::new(ManualClock::new(now));
        Ok((Self { client, local }, format!("{url}?options=-csearch_path%3Dtest_clock%2Cpg_catalog%2Cpublic")))
    }

    /// A source of job ids with the time of this clock, so that lists by time find the jobs.
    pub fn ids(&self) -> IdSource {
        IdSource::on(Arc::clone(&self.local) as Arc<dyn Clock>)
    }
}

#[async_trait]
impl TestClock for DatabaseClock {
    async fn advance(&self, by: Duration) {
        let micros = i64::try_from(by.as_micros()).expect("the duration fits into 64 bits of microseconds");
        // Seconds and microseconds apart: PostgreSQL multiplies intervals by doubles, which would round large values.
        let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
        let advance = "UPDATE test_clock.reading
                       SET at = at + $1::bigint * interval '1 second' + $2::bigint * interval '1 microsecond'";
        self.client.execute(advance, &[&seconds, &micros]).await.expect("advance the test clock");
        ManualClock::advance(&self.local, by);
    }

    async fn now(&self) -> Timestamp {
        self.client.query_one("SELECT at FROM test_clock.reading", &[]).await.expect("read the test clock").get(0)
    }
}
