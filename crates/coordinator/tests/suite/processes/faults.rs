//! Faults of a leader. Each must lead to a timely successor and an old leader that follows.

use std::time::{Duration, Instant, SystemTime};

use orchestrix_core::{LeaseToken, NewJob, Queue, WorkerName};
use orchestrix_store::{ClaimRequest, Outcome, OutcomeReport, Queues, prelude::*};
use tokio_postgres::Client;

use super::{
    cluster::{Cluster, connect},
    traffic::{open, retrying_job},
};
use crate::support::{TIMEOUT, wait_for};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// SIGKILL.
    Killed,
    /// SIGTERM.
    Terminated,
    /// SIGSTOP until another node leads, then SIGCONT.
    Suspended,
    /// SIGSTOP with a write in flight to the database.
    SuspendedBeforeWriting,
    /// SIGSTOP in the middle of a transaction that has written.
    SuspendedWhileWriting,
    /// Its connections to the database are cut until another node leads.
    Disconnected,
    /// Its connections to the database pass no data until another node leads.
    NetworkFrozen,
    /// The database is killed and restarted after a random time.
    DatabaseKilled,
}

/// The result of a fault.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FaultOutcome {
    /// When the fault was injected. For the database, when it restarted.
    pub(crate) injected_at: SystemTime,
    /// The time from the fault until another node led, according to itself and the database. For the database: from its
    /// restart until a leader did its work.
    pub(crate) took: Duration,
    /// How many steps of the old leader were fenced.
    pub(crate) refused: u64,
}

impl FaultOutcome {
    fn since(started: Instant, took: Duration, refused: u64) -> Self {
        Self { injected_at: SystemTime::now() - started.elapsed(), took, refused }
    }
}

impl Fault {
    pub(crate) const ALL: [Self; 8] = [
        Self::Killed,
        Self::Terminated,
        Self::Suspended,
        Self::SuspendedBeforeWriting,
        Self::SuspendedWhileWriting,
        Self::Disconnected,
        Self::NetworkFrozen,
        Self::DatabaseKilled,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Killed => "killed",
            Self::Terminated => "terminated",
            Self::Suspended => "suspended",
            Self::SuspendedBeforeWriting => "suspended before writing",
            Self::SuspendedWhileWriting => "suspended while writing",
            Self::Disconnected => "disconnected",
            Self::NetworkFrozen => "network frozen",
            Self::DatabaseKilled => "database killed",
        }
    }

    /// The time limit until another node leads.
    pub(crate) fn recovery_limit(self, term: Duration) -> Duration {
        match self {
            Self::Terminated => Duration::from_secs(1),
            _ => term + Duration::from_secs(2),
        }
    }

    /// Injects the fault into the leader and waits until the cluster has recovered.
    pub(crate) async fn inject(self, cluster: &mut Cluster) -> FaultOutcome {
        match self {
            Self::Killed => killed(cluster).await,
            Self::Terminated => terminated(cluster).await,
            Self::Suspended => suspended(cluster).await,
            Self::SuspendedBeforeWriting => frozen(cluster, true).await,
            Self::SuspendedWhileWriting => suspended_while_writing(cluster).await,
            Self::Disconnected => disconnected(cluster).await,
            Self::NetworkFrozen => frozen(cluster, false).await,
            Self::DatabaseKilled => database_killed(cluster).await,
        }
    }
}

async fn killed(cluster: &mut Cluster) -> FaultOutcome {
    let (leader, epoch) = cluster.leader().await;
    let started = Instant::now();
    cluster.members[leader].node.kill();
    cluster.leader_after(epoch).await;
    let took = started.elapsed();
    cluster.replace(leader);
    FaultOutcome::since(started, took, 0)
}

async fn terminated(cluster: &mut Cluster) -> FaultOutcome {
    let (leader, epoch) = cluster.leader().await;
    let started = Instant::now();
    cluster.members[leader].node.signal("TERM");
    cluster.leader_after(epoch).await;
    let took = started.elapsed();
    cluster.members[leader].node.wait_for_exit().await;
    cluster.replace(leader);
    FaultOutcome::since(started, took, 0)
}

async fn suspended(cluster: &mut Cluster) -> FaultOutcome {
    let (leader, epoch) = cluster.leader().await;
    let before = cluster.members[leader].node.state().refused;
    let started = Instant::now();
    cluster.members[leader].node.signal("STOP");
    let (_, successor) = cluster.leader_after(epoch).await;
    let took = started.elapsed();
    cluster.members[leader].node.signal("CONT");
    let refused = wait_until_follows(cluster, leader, successor).await - before;
    FaultOutcome::since(started, took, refused)
}

/// Waits until a former leader follows. Returns how many of its steps were fenced in total.
async fn wait_until_follows(cluster: &Cluster, node: usize, epoch: i64) -> u64 {
    let node = &cluster.members[node].node;
    node.wait_for("the node follows", |now| !now.leading && now.epoch >= epoch).await.refused
}

async fn disconnected(cluster: &mut Cluster) -> FaultOutcome {
    let (leader, epoch) = cluster.leader().await;
    let before = cluster.members[leader].node.state().refused;
    let started = Instant::now();
    cluster.members[leader].proxy.cut();
    let (_, successor) = cluster.leader_after(epoch).await;
    let took = started.elapsed();
    // It is disconnected, so it must stop by its own clock.
    cluster.members[leader].node.wait_for("the node no longer leads", |now| !now.leading).await;
    cluster.members[leader].proxy.restore();
    let refused = wait_until_follows(cluster, leader, successor).await - before;
    FaultOutcome::since(started, took, refused)
}

/// Long enough for a leader to start a step: a job becomes due all the time.
const STEP: Duration = Duration::from_millis(300);

async fn frozen(cluster: &mut Cluster, suspend: bool) -> FaultOutcome {
    let (leader, epoch) = cluster.leader().await;
    let before = cluster.members[leader].node.state().refused;
    let started = Instant::now();
    cluster.members[leader].proxy.freeze();
    if suspend {
        tokio::time::sleep(STEP).await;
        cluster.members[leader].node.signal("STOP");
    }
    let (_, successor) = cluster.leader_after(epoch).await;
    let took = started.elapsed();
    cluster.members[leader].proxy.restore();
    if suspend {
        cluster.members[leader].node.signal("CONT");
    }
    wait_until_follows(cluster, leader, successor).await;
    // The delayed writes arrive now. There are none if the network froze in the middle of a transaction of every active
    // service: the server has ended those.
    let refused = async || Some(cluster.members[leader].node.state().refused - before).filter(|n| *n > 0);
    let refused = tokio::time::timeout(cluster.term, wait_for("a step is fenced", refused)).await.unwrap_or(0);
    FaultOutcome::since(started, took, refused)
}

async fn database_killed(cluster: &mut Cluster) -> FaultOutcome {
    let downtime = cluster.term.mul_f64(rand::random_range(0.0..1.5));
    database_outage(cluster, downtime).await
}

/// Kills the database, restarts it after `downtime`, and waits until a leader does its work.
pub(crate) async fn database_outage(cluster: &mut Cluster, downtime: Duration) -> FaultOutcome {
    let server = cluster.server().expect("the cluster has its own server");
    tokio::task::block_in_place(|| {
        server.kill().unwrap();
        std::thread::sleep(downtime);
        server.restart().unwrap();
    });
    let started = Instant::now();
    cluster.reconnect().await;
    // The leader may be the same as before, if its term has not expired.
    cluster.wait_for_leader_work().await;
    FaultOutcome::since(started, started.elapsed(), 0)
}

async fn suspended_while_writing(cluster: &mut Cluster) -> FaultOutcome {
    let held = HeldLease::new(cluster).await;
    let (leader, epoch, started) = held.suspend_reaping_leader(cluster).await;
    let before = cluster.members[leader].node.state().refused;
    let (_, successor) = cluster.leader_after(epoch).await;
    let took = started.elapsed();
    cluster.members[leader].node.signal("CONT");
    let refused = wait_until_follows(cluster, leader, successor).await - before;
    let reaped = held.wait_until_reaped(cluster).await;
    if reaped.epoch <= epoch {
        let violation =
            format!("a write that {} began in epoch {epoch} was committed", cluster.members[leader].node.name);
        cluster.record_violation(violation);
    }
    held.finish(cluster).await;
    FaultOutcome::since(started, took, refused)
}

/// An expired lease in a queue that no other worker serves. A lock on its row makes the reaping leader wait.
pub(crate) struct HeldLease(LeaseToken);

/// The node and the epoch that reaped a lease.
pub(crate) struct ReapedBy {
    pub(crate) node: String,
    pub(crate) epoch: i64,
}

impl HeldLease {
    pub(crate) async fn new(cluster: &Cluster) -> Self {
        let store = open(&cluster.url()).await;
        store.enqueue_job(NewJob { queue: Self::queue(), ..retrying_job() }).await.unwrap();
        let claimed =
            wait_for("the job is claimable", async || store.claim_jobs(&Self::request()).await.unwrap().pop()).await;
        Self(claimed.token)
    }

    fn queue() -> Queue {
        Queue::trusted("held")
    }

    fn request() -> ClaimRequest {
        let queues = Queues::Named(vec![Self::queue()]);
        ClaimRequest { queues, ..ClaimRequest::any(WorkerName::trusted("holder"), 1) }
    }

    /// Locks the job's row. Returns the connection and its backend process.
    pub(crate) async fn lock(&self, cluster: &Cluster) -> (Client, i32) {
        let client = connect(&cluster.url()).await;
        let sql = format!("BEGIN; SELECT FROM orchestrix.job WHERE id = '{}' FOR UPDATE", self.0.job);
        client.batch_execute(&sql).await.unwrap();
        let pid = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        (client, pid)
    }

    /// Waits until the node waits for `lock`. Returns its backend process.
    pub(crate) async fn wait_for_blocked_node(cluster: &Cluster, node: &str, lock: i32) -> i32 {
        let sql = "SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'
                   AND $2 = ANY (pg_blocking_pids(pid))";
        let blocked = async || cluster.client().query_opt(sql, &[&node, &lock]).await.unwrap().map(|row| row.get(0));
        wait_for("the leader waits for the lock", blocked).await
    }

    /// Suspends the leader in the middle of the transaction that reaps the lease: written, not yet committed. Returns
    /// the leader, its epoch, and when it was suspended.
    async fn suspend_reaping_leader(&self, cluster: &Cluster) -> (usize, i64, Instant) {
        let started = Instant::now();
        let (mut lock, mut holder) = self.lock(cluster).await;
        loop {
            assert!(started.elapsed() < TIMEOUT, "the leader was not suspended in time");
            let (leader, epoch) = cluster.leader().await;
            let node = &cluster.members[leader].node;
            let backend = Self::wait_for_blocked_node(cluster, &node.name, holder).await;
            node.signal("STOP");
            let stopped = Instant::now();
            lock.batch_execute("COMMIT").await.unwrap();
            // The statement succeeds, and the suspended leader cannot commit. If the lock timed out before, try again.
            let state = async || {
                let sql = "SELECT state FROM pg_stat_activity WHERE pid = $1";
                let row = cluster.client().query_opt(sql, &[&backend]).await.unwrap();
                Some(row.map_or(String::new(), |row| row.get(0))).filter(|state| state != "active")
            };
            if wait_for("the statement has ended", state).await == "idle in transaction" {
                return (leader, epoch, stopped);
            }
            (lock, holder) = self.lock(cluster).await;
            node.signal("CONT");
        }
    }

    /// Waits until the lease is reaped.
    pub(crate) async fn wait_until_reaped(&self, cluster: &Cluster) -> ReapedBy {
        let sql = format!(
            "SELECT node, epoch FROM audit.line WHERE kind = 'reaped' AND job = '{}' AND counter = {}",
            self.0.job, self.0.counter
        );
        let row = wait_for("the lease is reaped", async || cluster.client().query_opt(&sql, &[]).await.unwrap()).await;
        ReapedBy { node: row.get(0), epoch: row.get(1) }
    }

    /// Completes the job.
    pub(crate) async fn finish(self, cluster: &Cluster) {
        let store = open(&cluster.url()).await;
        let claimed =
            wait_for("the job is claimable", async || store.claim_jobs(&Self::request()).await.unwrap().pop()).await;
        let results =
            store.finish_attempts(vec![OutcomeReport { token: claimed.token, outcome: Outcome::DONE }]).await.unwrap();
        assert!(results.iter().all(|result| result.is_ok()), "{results:?}");
    }
}
