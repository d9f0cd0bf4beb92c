//! The conformance suite, on a clock that the tests set.

use std::sync::Arc;

use orchestrix_conformance::Harness;
use orchestrix_postgres::{PostgresOptions, PostgresStore, test_clock::DatabaseClock};

use crate::support::database_with_clock;

async fn harness() -> Harness {
    let database = database_with_clock();
    let (clock, url) = DatabaseClock::install(database.url(), None).await.expect("a clock");
    let options = PostgresOptions { connections: 6, ids: clock.ids(), first_turn: 0, ..PostgresOptions::new(url) };
    let store = PostgresStore::open(options).await.expect("a store");
    Harness { store: Arc::new(store), clock: Box::new(clock), guard: Box::new(database) }
}

orchestrix_conformance::conformance_suite!(harness);
