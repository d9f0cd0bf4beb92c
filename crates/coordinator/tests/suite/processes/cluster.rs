//! Three nodes on one PostgreSQL server, each behind its own proxy, with traffic and an audit of everything that
//! leaders write.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    time::Duration,
};

use orchestrix_core::LeaseToken;
use orchestrix_testkit::{Durability, FaultProxy, PostgresServer, TestDatabase};
use tokio_postgres::{Client, NoTls};

use super::{node::Node, traffic::Traffic};
use crate::support::wait_for;

const NODES: usize = 3;

/// The database of a cluster.
#[derive(Debug)]
enum ClusterDatabase {
    Shared(TestDatabase),
    Own(PostgresServer),
}

/// A node and its proxy to the database.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) node: Node,
    pub(crate) proxy: FaultProxy,
}

pub(crate) struct Cluster {
    pub(crate) members: Vec<Member>,
    pub(crate) term: Duration,
    traffic: Traffic,
    client: Client,
    started: usize,
    violations: Vec<String>,
    database: ClusterDatabase,
}

/// The result of a cluster's run.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) takeovers: i64,
    pub(crate) promoted: i64,
    pub(crate) reaped: i64,
    pub(crate) violations: Vec<String>,
}

impl Cluster {
    /// Starts on a database of the server that all tests share.
    pub(crate) async fn start(term: Duration) -> Self {
        let database = tokio::task::block_in_place(|| TestDatabase::create("nodes").unwrap());
        Self::start_on(ClusterDatabase::Shared(database), term).await
    }

    /// Starts on a separate server, which can be killed.
    pub(crate) async fn start_with_own_server(durability: Durability, term: Duration) -> Self {
        let server = PostgresServer::builder().durability(durability);
        let server = tokio::task::block_in_place(|| server.start().unwrap());
        Self::start_on(ClusterDatabase::Own(server), term).await
    }

    async fn start_on(database: ClusterDatabase, term: Duration) -> Self {
        let url = database.url();
        // Creates the schema.
        drop(super::traffic::open(&url).await);
        let client = connect(&url).await;
        client.batch_execute(include_str!("audit.sql")).await.unwrap();
        let traffic = Traffic::start(&url).await;
        let (members, violations) = (Vec::new(), Vec::new());
        let mut cluster = Self { members, term, traffic, client, started: 0, violations, database };
        for _ in 0..NODES {
            cluster.add();
        }
        cluster.leader().await;
        // Some jobs have become due and some leases have been abandoned.
        wait_for("there is traffic", async || (cluster.traffic.abandoned() >= 5).then_some(())).await;
        cluster
    }

    /// The database's URL, without a proxy.
    pub(crate) fn url(&self) -> String {
        self.database.url()
    }

    /// A connection without a proxy.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The server, if the cluster has its own.
    pub(crate) fn server(&mut self) -> Option<&mut PostgresServer> {
        match &mut self.database {
            ClusterDatabase::Own(server) => Some(server),
            ClusterDatabase::Shared(_) => None,
        }
    }

    pub(crate) async fn reconnect(&mut self) {
        self.client = connect(&self.url()).await;
    }

    /// Starts one more node with a unique name.
    fn add(&mut self) {
        self.started += 1;
        let name = format!("node{}", self.started);
        let (address, database) = self.database.address();
        let proxy = FaultProxy::start(address).unwrap();
        let url = format!("postgres://postgres@{}/{database}?application_name={name}", proxy.address());
        self.members.push(Member { node: Node::start(&name, &url, self.term), proxy });
    }

    /// Replaces a node that has ended.
    pub(crate) fn replace(&mut self, gone: usize) {
        self.members.remove(gone);
        self.add();
    }

    /// Waits until a node leads, according to itself and the database. Returns its index and its epoch.
    pub(crate) async fn leader(&self) -> (usize, i64) {
        self.leader_after(0).await
    }

    /// Waits until a node leads in a later epoch.
    pub(crate) async fn leader_after(&self, epoch: i64) -> (usize, i64) {
        let sql = "SELECT node, epoch FROM orchestrix.leader_term WHERE ends_at > now() AND epoch > $1";
        wait_for("a node leads", async || {
            let row = self.client.query_opt(sql, &[&epoch]).await.unwrap()?;
            let (name, epoch) = (row.get::<_, &str>(0), row.get::<_, i64>(1));
            let leads = |member: &Member| {
                let state = member.node.state();
                member.node.name == name && state.leading && state.epoch == epoch
            };
            Some((self.members.iter().position(leads)?, epoch))
        })
        .await
    }

    /// Waits until a leader promotes a job.
    pub(crate) async fn wait_for_leader_work(&self) {
        let now = "SELECT clock_timestamp()::text";
        let now: String = self.client.query_one(now, &[]).await.unwrap().get(0);
        let sql = format!("SELECT FROM audit.line WHERE kind = 'promoted' AND at > '{now}' TIMEOUT 1");
        wait_for("jobs are promoted", async || self.client.query_opt(&sql, &[]).await.unwrap()).await;
    }

    pub(crate) fn record_violation(&mut self, what: String) {
        eprintln!("violation: {what}");
        self.violations.push(what);
    }

    /// Finishes the traffic and reads the audit.
    pub(crate) async fn finish(mut self) -> Report {
        let finished = tokio::time::timeout(crate::support::TIMEOUT, self.traffic.finish()).await;
        match finished {
            Ok(abandoned) => self.violations.extend(not_reaped_once(&self.client, &abandoned).await),
            Err(_) => self.violations.push("not every job finished".into()),
        }
        for row in self.client.query(include_str!("violations.sql"), &[]).await.unwrap() {
            self.violations.push(row.get(0));
        }
        let sql = "SELECT (SELECT count(*) FROM audit.takeover), count(*) FILTER (WHERE kind = 'promoted'),
                          count(*) FILTER (WHERE kind = 'reaped') FROM audit.line";
        let row = self.client.query_one(sql, &[]).await.unwrap();
        Report { takeovers: row.get(0), promoted: row.get(1), reaped: row.get(2), violations: self.violations }
    }
}

/// Every abandoned lease must have been reaped exactly once.
async fn not_reaped_once(client: &Client, abandoned: &[LeaseToken]) -> Vec<String> {
    let jobs: Vec<String> = abandoned.iter().map(|token| token.job.to_string()).collect();
    let counters: Vec<i32> = abandoned.iter().map(|token| token.counter).collect();
    let sql = "SELECT format('lease %s of %s was abandoned and reaped %s times', a.counter, a.job, count(l.job))
               FROM unnest($1::text[]::uuid[], $2::integer[]) AS a (job, counter)
               LEFT JOIN audit.line l ON l.kind = 'reaped' AND l.job = a.job AND l.counter = a.counter
               GROUP BY a.job, a.counter HAVING count(l.job) <> 1";
    client.query(sql, &[&jobs, &counters]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

impl ClusterDatabase {
    fn url(&self) -> String {
        match self {
            Self::Shared(database) => database.url().to_owned(),
            Self::Own(server) => server.url("postgres"),
        }
    }

    /// The server's address and the database's name.
    fn address(&self) -> (SocketAddr, String) {
        let url = self.url();
        let (server, database) = url.rsplit_once('/').unwrap();
        let address = server.rsplit_once('@').unwrap().1.to_socket_addrs().unwrap().next().unwrap();
        (address, database.to_owned())
    }
}

/// A plain connection, separate from the store's.
pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
