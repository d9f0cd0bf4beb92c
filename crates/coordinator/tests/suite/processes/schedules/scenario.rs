//! A cluster with schedules, the faults that can be injected, and the report.

use std::time::{Duration, SystemTime};

use tokio_postgres::Client;

use super::{
    super::{
        cluster::{Cluster, Member, Report, connect},
        faults::{self, Fault},
    },
    checker::{self, Counts},
    plan::{self, PlannedSchedule},
};
use crate::support::wait_for;

pub(crate) struct Scenario {
    cluster: Cluster,
}

/// How far a leader has come when a fault hits it in the middle of firing.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FiringStage {
    /// The jobs are written.
    Jobs,
    /// The jobs and the occurrences are written, but not the schedules.
    Occurrences,
}

impl FiringStage {
    /// The table that the leader writes next. A share lock on it blocks writes, but neither reads nor row locks.
    fn next_table(self) -> &'static str {
        match self {
            Self::Jobs => "orchestrix.occurrence",
            Self::Occurrences => "orchestrix.schedule",
        }
    }
}

/// The result of a scenario.
#[derive(Debug, Default)]
pub(crate) struct ScenarioReport {
    pub(crate) counts: Vec<Counts>,
    pub(crate) takeovers: i64,
    /// The violations of schedules and of leaders.
    pub(crate) violations: Vec<String>,
}

impl Scenario {
    /// Puts the schedules and waits until they fire.
    pub(crate) async fn start(cluster: Cluster, planned: &[PlannedSchedule]) -> Self {
        checker::install(cluster.client()).await;
        plan::put(cluster.client(), &cluster.url(), planned).await;
        let scenario = Self { cluster };
        scenario.wait_for_occurrence(scenario.now().await, 0).await;
        scenario
    }

    /// Injects a fault at a random time of a second. Returns the time until the next occurrence is written: by another
    /// leader or, after a kill of the database, by any leader.
    pub(crate) async fn inject(&mut self, fault: Fault) -> Duration {
        tokio::time::sleep(Duration::from_millis(rand::random_range(0..1_000))).await;
        let (_, epoch) = self.cluster.leader().await;
        let outcome = fault.inject(&mut self.cluster).await;
        self.recovery(outcome.injected_at, if fault == Fault::DatabaseKilled { epoch } else { epoch + 1 }).await
    }

    /// Kills the leader in the middle of a transaction that fires schedules.
    pub(crate) async fn kill_while_firing(&mut self, stage: FiringStage) -> Duration {
        let (lock, leader, epoch) = self.block_firing(stage).await;
        let injected_at = SystemTime::now();
        self.cluster.members[leader].node.kill();
        lock.batch_execute("COMMIT").await.unwrap();
        self.cluster.leader_after(epoch).await;
        self.cluster.replace(leader);
        self.recovery(injected_at, epoch + 1).await
    }

    /// Suspends the leader in the middle of such a transaction until another node leads.
    pub(crate) async fn suspend_while_firing(&mut self, stage: FiringStage) -> Duration {
        let (lock, leader, epoch) = self.block_firing(stage).await;
        let injected_at = SystemTime::now();
        let node = &self.cluster.members[leader].node;
        node.signal("STOP");
        lock.batch_execute("COMMIT").await.unwrap();
        let (_, successor) = self.cluster.leader_after(epoch).await;
        node.signal("CONT");
        node.wait_for("the node follows", |now| !now.leading && now.epoch >= successor).await;
        self.recovery(injected_at, epoch + 1).await
    }

    /// Delays the leader's writes until another node leads, and suspends that node: the delayed writes arrive while
    /// schedules are due and no other leader fires them. Returns how many steps were fenced.
    pub(crate) async fn fire_after_takeover(&mut self) -> u64 {
        let (leader, epoch) = self.cluster.leader().await;
        let Member { node, proxy } = &self.cluster.members[leader];
        let before = node.state().refused;
        // The leader keeps trying for more than a second before its term ends.
        proxy.freeze();
        let (successor, later) = self.cluster.leader_after(epoch).await;
        let successor = &self.cluster.members[successor].node;
        successor.signal("STOP");
        let due = "SELECT FROM orchestrix.schedule WHERE next_fire_at < clock_timestamp() TIMEOUT 1";
        wait_for("a schedule is due", async || self.cluster.client().query_opt(due, &[]).await.unwrap()).await;
        proxy.restore();
        node.wait_for("the node follows", |now| !now.leading && now.epoch >= later).await;
        let refused = node.wait_for("a step is fenced", |now| now.refused > before);
        let refused = tokio::time::timeout(self.cluster.term, refused).await.map_or(0, |now| now.refused - before);
        successor.signal("CONT");
        self.wait_for_occurrence(self.now().await, later).await;
        refused
    }

    /// Waits until the leader has reached this stage and is blocked. Returns the lock, the leader and its epoch.
    async fn block_firing(&self, stage: FiringStage) -> (Client, usize, i64) {
        let lock = connect(&self.cluster.url()).await;
        let holder: i32 = lock.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        lock.batch_execute(&format!("BEGIN; LOCK TABLE {} IN SHARE MODE", stage.next_table())).await.unwrap();
        let (leader, epoch) = self.cluster.leader().await;
        // Other services may wait too. The one that fires has locked rows of schedules.
        let sql = "SELECT FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid AND l.granted
                   WHERE a.application_name = $1 AND a.wait_event_type = 'Lock' AND $2 = ANY (pg_blocking_pids(a.pid))
                   AND l.relation = 'orchestrix.schedule'::regclass AND l.mode = 'RowShareLock'";
        let (client, name) = (self.cluster.client(), &self.cluster.members[leader].node.name);
        let waits = async || client.query_opt(sql, &[name, &holder]).await.unwrap();
        wait_for("the leader waits in the middle of firing", waits).await;
        (lock, leader, epoch)
    }

    /// Kills the database and restarts it after `downtime`.
    pub(crate) async fn database_outage(&mut self, downtime: Duration) -> Duration {
        let (_, epoch) = self.cluster.leader().await;
        let outcome = faults::database_outage(&mut self.cluster, downtime).await;
        self.recovery(outcome.injected_at, epoch).await
    }

    async fn recovery(&self, injected_at: SystemTime, epoch: i64) -> Duration {
        self.wait_for_occurrence(injected_at, epoch).await.duration_since(injected_at).unwrap_or_default()
    }

    async fn now(&self) -> SystemTime {
        self.cluster.client().query_one("SELECT clock_timestamp()", &[]).await.unwrap().get(0)
    }

    /// Waits until an occurrence is written after this time, in this epoch or a later one.
    async fn wait_for_occurrence(&self, after: SystemTime, epoch: i64) -> SystemTime {
        let sql = "SELECT min(at) FROM audit.firing WHERE at > $1 AND epoch >= $2";
        wait_for("schedules fire", async || {
            self.cluster.client().query_one(sql, &[&after, &epoch]).await.unwrap().get(0)
        })
        .await
    }

    /// Waits until every schedule has advanced past now, and checks the occurrences.
    pub(crate) async fn finish(self) -> ScenarioReport {
        let closed = self.now().await;
        let client = self.cluster.client();
        let behind = "SELECT name FROM orchestrix.schedule WHERE next_nominal <= $1 TIMEOUT 1";
        let caught_up = async || client.query_opt(behind, &[&closed]).await.unwrap().is_none().then_some(());
        wait_for("every schedule has caught up", caught_up).await;
        // The tables are new and have no statistics for the planner.
        client.batch_execute("ANALYZE").await.unwrap();
        let mut violations = checker::violations(client, closed).await;
        let counts = checker::counts(client).await;
        // Delete the schedules, so that the traffic can finish.
        plan::delete(client).await;
        let Report { takeovers, violations: others, .. } = self.cluster.finish().await;
        violations.extend(others);
        ScenarioReport { counts, takeovers, violations }
    }
}
