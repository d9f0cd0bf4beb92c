//! A private PgBouncer lends a server's connections, and goes without a trace.

#![allow(clippy::unwrap_used, reason = "clippy sees the tests themselves, not what they share")]

use std::net::TcpStream;

use orchestrix_testkit::{PgBouncer, psql, test_postgres};

#[test]
fn clients_of_a_pooler_share_one_connection_until_it_is_gone() {
    let bouncer = PgBouncer::start(test_postgres().unwrap(), 1).unwrap();
    let url = bouncer.url("postgres");
    let address = url.split_once('@').unwrap().1.split_once('/').unwrap().0.to_owned();
    let first = psql(&url, "SELECT pg_backend_pid()").unwrap();
    assert_eq!(psql(&url, "SELECT pg_backend_pid()").unwrap(), first, "another client, the same connection");
    assert!(TcpStream::connect(&address).is_ok());
    drop(bouncer);
    assert!(TcpStream::connect(&address).is_err());
}
