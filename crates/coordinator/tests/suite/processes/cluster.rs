//! Three nodes on one PostgreSQL, each on a line of its own, with traffic and an audit of all that leaders do.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    time::Duration,
};

use orchestrix_core::LeaseToken;
use orchestrix_testkit::{Durability, FaultProxy, PostgresServer, TestDatabase};
use tokio_postgres::{Client, NoTls};

use super::{node::Node, traffic::Traffic};
use crate::support::until;

const NODES: usize = 3;

/// Where a cluster's database is.
#[derive(Debug)]
enum Ground {
    Shared(TestDatabase),
    Own(PostgresServer),
}

/// A node and its line to the database.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) node: Node,
    pub(crate) line: FaultProxy,
}

pub(crate) struct Cluster {
    pub(crate) members: Vec<Member>,
    pub(crate) term: Duration,
    traffic: Traffic,
    client: Client,
    started: usize,
    violations: Vec<String>,
    ground: Ground,
}

/// What came of it all.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) takeovers: i64,
    pub(crate) promoted: i64,
    pub(crate) reaped: i64,
    pub(crate) violations: Vec<String>,
}

impl Cluster {
    /// On a database of its own, of the server that all tests share.
    pub(crate) async fn start(term: Duration) -> Self {
        let database = tokio::task::block_in_place(|| TestDatabase::create("nodes").unwrap());
        Self::start_on(Ground::Shared(database), term).await
    }

    /// On a server of its own, which can be killed.
    pub(crate) async fn start_apart(durability: Durability, term: Duration) -> Self {
        let server = PostgresServer::builder().durability(durability);
        let server = tokio::task::block_in_place(|| server.start().unwrap());
        Self::start_on(Ground::Own(server), term).await
    }

    async fn start_on(ground: Ground, term: Duration) -> Self {
        let url = ground.url();
        // Makes the schema.
        drop(super::traffic::open(&url).await);
        let client = connect(&url).await;
        client.batch_execute(include_str!("audit.sql")).await.unwrap();
        let traffic = Traffic::start(&url).await;
        let (members, violations) = (Vec::new(), Vec::new());
        let mut cluster = Self { members, term, traffic, client, started: 0, violations, ground };
        for _ in 0..NODES {
            cluster.add();
        }
        cluster.leader().await;
        // Some jobs have become due, and some holders have fallen silent.
        until("there is traffic", async || (cluster.traffic.abandoned() >= 5).then_some(())).await;
        cluster
    }

    /// The database's URL, on a line that nobody cuts.
    pub(crate) fn url(&self) -> String {
        self.ground.url()
    }

    /// A connection on that line.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The server, if it is the cluster's own.
    pub(crate) fn server(&mut self) -> Option<&mut PostgresServer> {
        match &mut self.ground {
            Ground::Own(server) => Some(server),
            Ground::Shared(_) => None,
        }
    }

    pub(crate) async fn reconnect(&mut self) {
        self.client = connect(&self.url()).await;
    }

    /// Starts one more node, under a name of its own.
    fn add(&mut self) {
        self.started += 1;
        let name = format!("node{}", self.started);
        let (address, database) = self.ground.place();
        let line = FaultProxy::start(address).unwrap();
        let url = format!("postgres://postgres@{}/{database}?application_name={name}", line.address());
        self.members.push(Member { node: Node::start(&name, &url, self.term), line });
    }

    /// Puts a new node in the place of one that is gone.
    pub(crate) fn replace(&mut self, gone: usize) {
        self.members.remove(gone);
        self.add();
    }

    /// Waits until one leads, by its own word and by the database's; answers which, and in which epoch.
    pub(crate) async fn leader(&self) -> (usize, i64) {
        self.leader_after(0).await
    }

    /// Waits until one leads in a later epoch.
    pub(crate) async fn leader_after(&self, epoch: i64) -> (usize, i64) {
        let sql = "SELECT node, epoch FROM orchestrix.leader_term WHERE ends_at > now() AND epoch > $1";
        until("one leads", async || {
            let row = self.client.query_opt(sql, &[&epoch]).await.unwrap()?;
            let (name, epoch) = (row.get::<_, &str>(0), row.get::<_, i64>(1));
            let leads = |member: &Member| {
                let standing = member.node.standing();
                member.node.name == name && standing.leading && standing.epoch == epoch
            };
            Some((self.members.iter().position(leads)?, epoch))
        })
        .await
    }

    /// Waits until a leader does its work, from now on.
    pub(crate) async fn led(&self) {
        let now = "SELECT clock_timestamp()::text";
        let now: String = self.client.query_one(now, &[]).await.unwrap().get(0);
        let sql = format!("SELECT FROM audit.line WHERE kind = 'promoted' AND at > '{now}' LIMIT 1");
        until("jobs are promoted", async || self.client.query_opt(&sql, &[]).await.unwrap()).await;
    }

    /// Takes note of a broken promise.
    pub(crate) fn violated(&mut self, what: String) {
        eprintln!("violated: {what}");
        self.violations.push(what);
    }

    /// Lets the traffic come to its end and reads the audit.
    pub(crate) async fn finish(mut self) -> Report {
        let left = tokio::time::timeout(crate::support::LIMIT, self.traffic.finish()).await;
        match left {
            Ok(abandoned) => self.violations.extend(not_taken_back(&self.client, &abandoned).await),
            Err(_) => self.violations.push("not every job came to its end".into()),
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

// Leases whose holders fell silent must each have been taken back once.
async fn not_taken_back(client: &Client, abandoned: &[LeaseToken]) -> Vec<String> {
    let jobs: Vec<String> = abandoned.iter().map(|token| token.job.to_string()).collect();
    let counters: Vec<i32> = abandoned.iter().map(|token| token.counter).collect();
    let sql = "SELECT format('lease %s of %s was abandoned and taken back %s times', a.counter, a.job, count(l.job))
               FROM unnest($1::text[]::uuid[], $2::integer[]) AS a (job, counter)
               LEFT JOIN audit.line l ON l.kind = 'reaped' AND l.job = a.job AND l.counter = a.counter
               GROUP BY a.job, a.counter HAVING count(l.job) <> 1";
    client.query(sql, &[&jobs, &counters]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

impl Ground {
    fn url(&self) -> String {
        match self {
            Self::Shared(database) => database.url().to_owned(),
            Self::Own(server) => server.url("postgres"),
        }
    }

    // The server's address and the database's name.
    fn place(&self) -> (SocketAddr, String) {
        let url = self.url();
        let (server, database) = url.rsplit_once('/').unwrap();
        let address = server.rsplit_once('@').unwrap().1.to_socket_addrs().unwrap().next().unwrap();
        (address, database.to_owned())
    }
}

/// A plain connection beside the stores'.
pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
