//! A cluster with schedules, what happens to it, and the outcome.

use std::time::{Duration, SystemTime};

use tokio_postgres::Client;

use super::{
    super::{
        cluster::{Cluster, Member, Report, connect},
        faults::{self, Fault},
    },
    judge::{self, Counts},
    plan::{self, Planned},
};
use crate::support::until;

pub(crate) struct Trial {
    cluster: Cluster,
}

/// How far a leader that is struck in the middle of firing has come.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Written {
    /// Jobs, and no lines of the ledgers.
    Jobs,
    /// Jobs and lines, and the schedules are as they were.
    Lines,
}

impl Written {
    // What it writes next. Reading it and locking its rows goes on under a lock that keeps writers out.
    fn next(self) -> &'static str {
        match self {
            Self::Jobs => "orchestrix.occurrence",
            Self::Lines => "orchestrix.schedule",
        }
    }
}

/// What came of it all.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) counts: Vec<Counts>,
    pub(crate) takeovers: i64,
    /// Of schedules, and of what leaders do besides.
    pub(crate) violations: Vec<String>,
}

impl Trial {
    /// Puts the schedules and waits until they fire.
    pub(crate) async fn start(cluster: Cluster, planned: &[Planned]) -> Self {
        judge::watch(cluster.client()).await;
        plan::put(cluster.client(), &cluster.url(), planned).await;
        let trial = Self { cluster };
        trial.fired(trial.now().await, 0).await;
        trial
    }

    /// Lets a fault happen, at any moment of a second. Answers how long it took from the fault to the next line of a ledger:
    /// one that another leader wrote or, where the database was killed, whoever led after its restart.
    pub(crate) async fn strike(&mut self, fault: Fault) -> Duration {
        tokio::time::sleep(Duration::from_millis(rand::random_range(0..1_000))).await;
        let (_, epoch) = self.cluster.leader().await;
        let outcome = fault.strike(&mut self.cluster).await;
        self.recovery(outcome.struck, if fault == Fault::DatabaseKilled { epoch } else { epoch + 1 }).await
    }

    /// Kills the leader in the middle of a transaction that fires schedules.
    pub(crate) async fn kill_while_firing(&mut self, written: Written) -> Duration {
        let (lock, leader, epoch) = self.held_up(written).await;
        let struck = SystemTime::now();
        self.cluster.members[leader].node.kill();
        lock.batch_execute("COMMIT").await.unwrap();
        self.cluster.leader_after(epoch).await;
        self.cluster.replace(leader);
        self.recovery(struck, epoch + 1).await
    }

    /// Stops the leader there, until another leads; the server takes what was sent already.
    pub(crate) async fn stop_while_firing(&mut self, written: Written) -> Duration {
        let (lock, leader, epoch) = self.held_up(written).await;
        let struck = SystemTime::now();
        let node = &self.cluster.members[leader].node;
        node.signal("STOP");
        lock.batch_execute("COMMIT").await.unwrap();
        let (_, successor) = self.cluster.leader_after(epoch).await;
        node.signal("CONT");
        node.until("it follows", |now| !now.leading && now.epoch >= successor).await;
        self.recovery(struck, epoch + 1).await
    }

    /// Holds up what the leader is about to fire until another leads, which is stopped: when it arrives, schedules are due, and nobody else is
    /// there to fire them. Answers how much was refused.
    pub(crate) async fn fire_too_late(&mut self) -> u64 {
        let (leader, epoch) = self.cluster.leader().await;
        let Member { node, line } = &self.cluster.members[leader];
        let before = node.standing().refused;
        // For longer than a second before it knows that its term is over.
        line.freeze();
        let (successor, later) = self.cluster.leader_after(epoch).await;
        let successor = &self.cluster.members[successor].node;
        successor.signal("STOP");
        let due = "SELECT FROM orchestrix.schedule WHERE next_fire_at < clock_timestamp() LIMIT 1";
        until("a schedule is due", async || self.cluster.client().query_opt(due, &[]).await.unwrap()).await;
        line.restore();
        node.until("it follows", |now| !now.leading && now.epoch >= later).await;
        let refused = node.until("it is refused", |now| now.refused > before);
        let refused = tokio::time::timeout(self.cluster.term, refused).await.map_or(0, |now| now.refused - before);
        successor.signal("CONT");
        self.fired(self.now().await, later).await;
        refused
    }

    // Waits until the leader has written that much and waits to write on; the lock that it waits for, the leader and its epoch.
    async fn held_up(&self, written: Written) -> (Client, usize, i64) {
        let lock = connect(&self.cluster.url()).await;
        let holder: i32 = lock.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        lock.batch_execute(&format!("BEGIN; LOCK TABLE {} IN SHARE MODE", written.next())).await.unwrap();
        let (leader, epoch) = self.cluster.leader().await;
        // Others may want to write there too. Who fires has locked rows of schedules.
        let sql = "SELECT FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid AND l.granted
                   WHERE a.application_name = $1 AND a.wait_event_type = 'Lock' AND $2 = ANY (pg_blocking_pids(a.pid))
                   AND l.relation = 'orchestrix.schedule'::regclass AND l.mode = 'RowShareLock'";
        let (client, name) = (self.cluster.client(), &self.cluster.members[leader].node.name);
        let waits = async || client.query_opt(sql, &[name, &holder]).await.unwrap();
        until("the leader waits in the middle of firing", waits).await;
        (lock, leader, epoch)
    }

    /// The database is killed, and stays away for this long.
    pub(crate) async fn lose_database(&mut self, away: Duration) -> Duration {
        let (_, epoch) = self.cluster.leader().await;
        let outcome = faults::database_away(&mut self.cluster, away).await;
        self.recovery(outcome.struck, epoch).await
    }

    async fn recovery(&self, struck: SystemTime, epoch: i64) -> Duration {
        self.fired(struck, epoch).await.duration_since(struck).unwrap_or_default()
    }

    async fn now(&self) -> SystemTime {
        self.cluster.client().query_one("SELECT clock_timestamp()", &[]).await.unwrap().get(0)
    }

    // Waits until there is a line of a ledger that was written after this moment, in this epoch or a later one.
    async fn fired(&self, after: SystemTime, epoch: i64) -> SystemTime {
        let sql = "SELECT min(at) FROM audit.firing WHERE at > $1 AND epoch >= $2";
        until("schedules fire", async || self.cluster.client().query_one(sql, &[&after, &epoch]).await.unwrap().get(0))
            .await
    }

    /// Waits until every schedule has come to this moment, and judges.
    pub(crate) async fn finish(self) -> Outcome {
        let closed = self.now().await;
        let client = self.cluster.client();
        let behind = "SELECT name FROM orchestrix.schedule WHERE next_nominal <= $1 LIMIT 1";
        let caught_up = async || client.query_opt(behind, &[&closed]).await.unwrap().is_none().then_some(());
        until("every schedule has caught up", caught_up).await;
        // New tables, about which the planner knows nothing.
        client.batch_execute("ANALYZE").await.unwrap();
        let mut violations = judge::violations(client, closed).await;
        let counts = judge::counts(client).await;
        // No more of them, so that the traffic comes to its end.
        plan::forget(client).await;
        let Report { takeovers, violations: others, .. } = self.cluster.finish().await;
        violations.extend(others);
        Outcome { counts, takeovers, violations }
    }
}
