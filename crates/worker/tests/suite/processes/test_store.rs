//! The store of a fleet, read with plain SQL instead of the code under test.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    path::PathBuf,
};

use orchestrix_testkit::{Durability, PostgresServer, TestDatabase};
use rusqlite::Connection;
use serde_json::Value;
use tokio_postgres::{NoTls, Row as SqlRow};

use super::{TIMEOUT, journal::Time};

#[derive(Debug)]
pub(crate) enum TestStore {
    /// A database on the server that all tests share.
    Shared(TestDatabase),
    /// A separate server, which can be killed.
    Own(PostgresServer),
    /// An SQLite file.
    File(PathBuf),
}

/// One lease of a job and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) counter: i32,
    pub(crate) outcome: String,
    pub(crate) worker: String,
    pub(crate) from: Time,
    pub(crate) until: Time,
}

/// A job as the database stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// In hexadecimal.
    pub(crate) job: String,
    pub(crate) state: String,
    pub(crate) attempts: i32,
    pub(crate) max_attempts: i32,
    /// The counter of the last lease.
    pub(crate) counter: i32,
    pub(crate) finished: Option<Time>,
    /// The counter of the lease that stored the result.
    pub(crate) done_by: Option<i32>,
    pub(crate) leases: Vec<Lease>,
}

const JOBS: &str = "
    SELECT replace(id::text, '-', ''), state::text, attempts::integer, max_attempts::integer, lease_counter, worker,
           (extract(epoch FROM started_at) * 1000000)::bigint, (extract(epoch FROM finished_at) * 1000000)::bigint, result
    FROM orchestrix.jobs ORDER BY id";
const LEASES: &str = "
    SELECT replace(id::text, '-', ''), (a ->> 'lease')::integer, a ->> 'outcome', a ->> 'worker',
           (extract(epoch FROM (a ->> 'startedAt')::timestamptz) * 1000000)::bigint,
           (extract(epoch FROM (a ->> 'endedAt')::timestamptz) * 1000000)::bigint
    FROM orchestrix.jobs CROSS JOIN LATERAL jsonb_array_elements(attempt_log) AS a WHERE attempt_log IS NOT NULL";
const JOBS_IN_FILE: &str = "
    SELECT lower(hex(id)), state, attempts, max_attempts, lease_counter, worker, started_at, finished_at, result
    FROM job ORDER BY id";
const LEASES_IN_FILE: &str = "SELECT lower(hex(job_id)), lease, outcome, worker, started_at, ended_at FROM attempt";

type JobTuple = (String, String, i32, i32, i32, Option<String>, Option<Time>, Option<Time>, Option<String>);
type LeaseTuple = (String, i32, String, String, Time, Time);

impl TestStore {
    pub(crate) fn shared() -> Self {
        Self::Shared(tokio::task::block_in_place(|| TestDatabase::create("workers").unwrap()))
    }

    pub(crate) fn own(durability: Durability) -> Self {
        let server = PostgresServer::builder().durability(durability);
        Self::Own(tokio::task::block_in_place(|| server.start().unwrap()))
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Shared(database) => database.url().to_owned(),
            Self::Own(server) => server.url("postgres"),
            Self::File(path) => format!("sqlite:{}", path.display()),
        }
    }

    /// The server's address and the database's name.
    pub(crate) fn address(&self) -> (SocketAddr, String) {
        let url = self.url();
        let (server, database) = url.rsplit_once('/').unwrap();
        let address = server.rsplit_once('@').unwrap().1.to_socket_addrs().unwrap().next().unwrap();
        (address, database.to_owned())
    }

    /// The number of unfinished jobs.
    pub(crate) async fn unfinished(&self) -> i64 {
        match self {
            Self::File(_) => {
                let sql = "SELECT count(*) FROM job WHERE state NOT IN ('completed', 'dead', 'cancelled')";
                self.file().query_row(sql, (), |row| row.get(0)).unwrap()
            }
            _ => self.connect().await.query_one("SELECT count(*) FROM orchestrix.job", &[]).await.unwrap().get(0),
        }
    }

    /// Every job.
    pub(crate) async fn rows(&self) -> Vec<Row> {
        let (jobs, leases) = match self {
            Self::File(_) => self.read_file(),
            _ => self.read_server().await,
        };
        rows(jobs, leases)
    }

    async fn read_server(&self) -> (Vec<JobTuple>, Vec<LeaseTuple>) {
        let client = self.connect().await;
        // One snapshot for both queries.
        client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
        let jobs = client.query(JOBS, &[]).await.unwrap();
        let leases = client.query(LEASES, &[]).await.unwrap();
        let job = |row: &SqlRow| {
            let (id, state, worker, result) = (row.get(0), row.get(1), row.get(5), row.get(8));
            (id, state, row.get(2), row.get(3), row.get(4), worker, row.get(6), row.get(7), result)
        };
        let lease = |row: &SqlRow| (row.get(0), row.get(1), row.get(2), row.get(3), row.get(4), row.get(5));
        (jobs.iter().map(job).collect(), leases.iter().map(lease).collect())
    }

    fn read_file(&self) -> (Vec<JobTuple>, Vec<LeaseTuple>) {
        let mut file = self.file();
        let snapshot = file.transaction().unwrap();
        let mut jobs = snapshot.prepare(JOBS_IN_FILE).unwrap();
        let jobs = jobs.query_map((), |row| row.try_into()).unwrap().collect::<Result<_, _>>().unwrap();
        let mut leases = snapshot.prepare(LEASES_IN_FILE).unwrap();
        let leases = leases.query_map((), |row| row.try_into()).unwrap().collect::<Result<_, _>>().unwrap();
        (jobs, leases)
    }

    /// A plain connection, separate from the store's.
    pub(crate) async fn connect(&self) -> tokio_postgres::Client {
        let (client, connection) = tokio_postgres::connect(&self.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    fn file(&self) -> Connection {
        let Self::File(path) = self else { panic!("not a file: {self:?}") };
        let file = Connection::open(path).unwrap();
        file.busy_timeout(TIMEOUT).unwrap();
        file
    }
}

fn rows(jobs: Vec<JobTuple>, leases: Vec<LeaseTuple>) -> Vec<Row> {
    let mut leases_by_job = std::collections::HashMap::<String, Vec<Lease>>::new();
    for (job, counter, outcome, worker, from, until) in leases {
        leases_by_job.entry(job).or_default().push(Lease { counter, outcome, worker, from, until });
    }
    let row = |(job, state, attempts, max_attempts, counter, worker, started, finished, result): JobTuple| {
        let mut leases = leases_by_job.remove(&job).unwrap_or_default();
        leases.sort_by_key(|lease| lease.counter);
        // A job that succeeds in its first attempt has no attempt record.
        if state == "completed" && leases.iter().all(|lease| lease.counter != counter) {
            let (worker, from, until) = (worker.unwrap(), started.unwrap(), finished.unwrap());
            leases.push(Lease { counter, outcome: state.clone(), worker, from, until });
        }
        let result: Option<Value> = result.map(|text| serde_json::from_str(&text).unwrap());
        let done_by = result.and_then(|result| i32::try_from(result["lease"].as_i64()?).ok());
        Row { job, state, attempts, max_attempts, counter, finished, done_by, leases }
    };
    jobs.into_iter().map(row).collect()
}
