//! A private PgBouncer shares server connections, and is removed when dropped.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::net::TcpStream;

use orchestrix_testkit::{PgBouncer, psql, test_postgres};

#[test]
fn clients_of_a_pooler_share_one_connection() {
    let bouncer = PgBouncer::start(test_postgres().unwrap(), 1).unwrap();
    let url = bouncer.url("postgres");
    let address = url.split_once('@').unwrap().1.split_once('/').unwrap().0.to_owned();
    let first = psql(&url, "SELECT pg_backend_pid()").unwrap();
    assert_eq!(psql(&url, "SELECT pg_backend_pid()").unwrap(), first, "the second client gets the same connection");
    assert!(TcpStream::connect(&address).is_ok());
    drop(bouncer);
    assert!(TcpStream::connect(&address).is_err());
}
