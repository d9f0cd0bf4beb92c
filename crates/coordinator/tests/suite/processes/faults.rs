//! What may happen to a leader, and what must come of it: a successor in time, and a predecessor that follows.

use std::time::{Duration, Instant, SystemTime};

use orchestrix_core::{LeaseToken, NewJob, Queue, WorkerName};
use orchestrix_store::{ClaimRequest, Outcome, OutcomeReport, Queues, prelude::*};
use tokio_postgres::Client;

use super::{
    cluster::{Cluster, connect},
    traffic::{open, patient},
};
use crate::support::{LIMIT, until};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// SIGKILL.
    Killed,
    /// SIGTERM.
    Terminated,
    /// SIGSTOP until another leads, then SIGCONT.
    Stopped,
    /// The same with a transaction on its way to the database.
    StoppedBeforeWriting,
    /// The same in the middle of a transaction that has written already.
    StoppedWhileWriting,
    /// Its line to the database is cut until another leads.
    Cut,
    /// Its line to the database passes nothing on until another leads.
    Frozen,
    /// The database is killed, and started again after a while.
    DatabaseKilled,
}

/// What came of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FaultOutcome {
    /// When the fault came; of the database's, its restart.
    pub(crate) struck: SystemTime,
    /// From the fault until another led, by its own word and the database's. Of the database's: from its restart until
    /// somebody did a leader's work.
    pub(crate) took: Duration,
    /// What the one who was struck then tried, and was refused.
    pub(crate) refused: u64,
}

impl FaultOutcome {
    fn since(begun: Instant, took: Duration, refused: u64) -> Self {
        Self { struck: SystemTime::now() - begun.elapsed(), took, refused }
    }
}

impl Fault {
    pub(crate) const ALL: [Self; 8] = [
        Self::Killed,
        Self::Terminated,
        Self::Stopped,
        Self::StoppedBeforeWriting,
        Self::StoppedWhileWriting,
        Self::Cut,
        Self::Frozen,
        Self::DatabaseKilled,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Killed => "killed",
            Self::Terminated => "terminated",
            Self::Stopped => "stopped",
            Self::StoppedBeforeWriting => "stopped before writing",
            Self::StoppedWhileWriting => "stopped while writing",
            Self::Cut => "cut off",
            Self::Frozen => "line frozen",
            Self::DatabaseKilled => "database killed",
        }
    }

    /// How soon another leads.
    pub(crate) fn promise(self, term: Duration) -> Duration {
        match self {
            Self::Terminated => Duration::from_secs(1),
            _ => term + Duration::from_secs(2),
        }
    }

    /// Lets it happen to whoever leads, and waits until all is as before.
    pub(crate) async fn strike(self, cluster: &mut Cluster) -> FaultOutcome {
        match self {
            Self::Killed => killed(cluster).await,
            Self::Terminated => terminated(cluster).await,
            Self::Stopped => stopped(cluster).await,
            Self::StoppedBeforeWriting => frozen(cluster, true).await,
            Self::StoppedWhileWriting => stopped_while_writing(cluster).await,
            Self::Cut => cut(cluster).await,
            Self::Frozen => frozen(cluster, false).await,
            Self::DatabaseKilled => database_killed(cluster).await,
        }
    }
}

async fn killed(cluster: &mut Cluster) -> FaultOutcome {
    let (leader, epoch) = cluster.leader().await;
    let begun = Instant::now();
    cluster.members[leader].node.kill();
    cluster.leader_after(epoch).await;
    let took = begun.elapsed();
    cluster.replace(leader);
    FaultOutcome::since(begun, took, 0)
}

async fn terminated(cluster: &mut Cluster) -> FaultOutcome {
    let (leader, epoch) = cluster.leader().await;
    let begun = Instant::now();
    cluster.members[leader].node.signal("TERM");
    cluster.leader_after(epoch).await;
    let took = begun.elapsed();
    cluster.members[leader].node.ended().await;
    cluster.replace(leader);
    FaultOutcome::since(begun, took, 0)
}

async fn stopped(cluster: &mut Cluster) -> FaultOutcome {
    let (leader, epoch) = cluster.leader().await;
    let before = cluster.members[leader].node.standing().refused;
    let begun = Instant::now();
    cluster.members[leader].node.signal("STOP");
    let (_, successor) = cluster.leader_after(epoch).await;
    let took = begun.elapsed();
    cluster.members[leader].node.signal("CONT");
    let refused = follows(cluster, leader, successor).await - before;
    FaultOutcome::since(begun, took, refused)
}

/// Waits until a node that led knows that it does no longer; answers how many of its steps were refused in all.
async fn follows(cluster: &Cluster, node: usize, epoch: i64) -> u64 {
    let node = &cluster.members[node].node;
    node.until("it follows", |now| !now.leading && now.epoch >= epoch).await.refused
}

async fn cut(cluster: &mut Cluster) -> FaultOutcome {
    let (leader, epoch) = cluster.leader().await;
    let before = cluster.members[leader].node.standing().refused;
    let begun = Instant::now();
    cluster.members[leader].line.cut();
    let (_, successor) = cluster.leader_after(epoch).await;
    let took = begun.elapsed();
    // Nobody can tell it; it must know by its own clock.
    cluster.members[leader].node.until("it leads no longer", |now| !now.leading).await;
    cluster.members[leader].line.restore();
    let refused = follows(cluster, leader, successor).await - before;
    FaultOutcome::since(begun, took, refused)
}

/// Until then, by a wide margin, a leader has begun a step: there is always a job about to become due.
const STEP: Duration = Duration::from_millis(300);

async fn frozen(cluster: &mut Cluster, stopped: bool) -> FaultOutcome {
    let (leader, epoch) = cluster.leader().await;
    let before = cluster.members[leader].node.standing().refused;
    let begun = Instant::now();
    cluster.members[leader].line.freeze();
    if stopped {
        tokio::time::sleep(STEP).await;
        cluster.members[leader].node.signal("STOP");
    }
    let (_, successor) = cluster.leader_after(epoch).await;
    let took = begun.elapsed();
    cluster.members[leader].line.restore();
    if stopped {
        cluster.members[leader].node.signal("CONT");
    }
    follows(cluster, leader, successor).await;
    // What was on its way arrives now, and is too late. There is nothing if the line froze in the middle of a
    // transaction of every service that had anything to do: the server has ended those.
    let refused = async || Some(cluster.members[leader].node.standing().refused - before).filter(|n| *n > 0);
    let refused = tokio::time::timeout(cluster.term, until("it is refused", refused)).await.unwrap_or(0);
    FaultOutcome::since(begun, took, refused)
}

async fn database_killed(cluster: &mut Cluster) -> FaultOutcome {
    let away = cluster.term.mul_f64(rand::random_range(0.0..1.5));
    database_away(cluster, away).await
}

/// Kills the database, starts it again after so long, and waits until somebody leads.
pub(crate) async fn database_away(cluster: &mut Cluster, away: Duration) -> FaultOutcome {
    let server = cluster.server().expect("a server of its own");
    tokio::task::block_in_place(|| {
        server.kill().unwrap();
        std::thread::sleep(away);
        server.restart().unwrap();
    });
    let begun = Instant::now();
    cluster.reconnect().await;
    // The leader may be the one from before, if its term has not run out meanwhile.
    cluster.led().await;
    FaultOutcome::since(begun, begun.elapsed(), 0)
}

async fn stopped_while_writing(cluster: &mut Cluster) -> FaultOutcome {
    let held = Held::new(cluster).await;
    let (leader, epoch, begun) = held.stop_who_takes_it_back(cluster).await;
    let before = cluster.members[leader].node.standing().refused;
    let (_, successor) = cluster.leader_after(epoch).await;
    let took = begun.elapsed();
    cluster.members[leader].node.signal("CONT");
    let refused = follows(cluster, leader, successor).await - before;
    let taken_back = held.taken_back(cluster).await;
    if taken_back.epoch <= epoch {
        let violation = format!("what {} had begun in epoch {epoch} lasted", cluster.members[leader].node.name);
        cluster.violated(violation);
    }
    held.finish(cluster).await;
    FaultOutcome::since(begun, took, refused)
}

/// A lease that ran out, in a queue that nobody else serves: whoever takes it back can be made to wait for it.
pub(crate) struct Held(LeaseToken);

/// By whom and when a lease was taken back.
pub(crate) struct TakenBack {
    pub(crate) node: String,
    pub(crate) epoch: i64,
}

impl Held {
    pub(crate) async fn new(cluster: &Cluster) -> Self {
        let store = open(&cluster.url()).await;
        store.enqueue_job(NewJob { queue: Self::queue(), ..patient() }).await.unwrap();
        let claimed =
            until("it can be claimed", async || store.claim_jobs(&Self::request()).await.unwrap().pop()).await;
        Self(claimed.token)
    }

    fn queue() -> Queue {
        Queue::trusted("held")
    }

    fn request() -> ClaimRequest {
        let queues = Queues::Named(vec![Self::queue()]);
        ClaimRequest { queues, ..ClaimRequest::any(WorkerName::trusted("holder"), 1) }
    }

    /// A transaction that makes whoever wants to take the lease back wait, and its process.
    pub(crate) async fn lock(&self, cluster: &Cluster) -> (Client, i32) {
        let client = connect(&cluster.url()).await;
        let sql = format!("BEGIN; SELECT FROM orchestrix.job WHERE id = '{}' FOR UPDATE", self.0.job);
        client.batch_execute(&sql).await.unwrap();
        let pid = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        (client, pid)
    }

    /// Waits until the node of this name waits for `lock`; answers with the process that does.
    pub(crate) async fn waits(cluster: &Cluster, node: &str, lock: i32) -> i32 {
        let sql = "SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'
                   AND $2 = ANY (pg_blocking_pids(pid))";
        let found = async || cluster.client().query_opt(sql, &[&node, &lock]).await.unwrap().map(|row| row.get(0));
        until("the leader waits for the lock", found).await
    }

    /// Stops the leader in the middle of the transaction that takes the lease back: written, not yet committed. Answers
    /// with the leader, its epoch, and when it was stopped.
    async fn stop_who_takes_it_back(&self, cluster: &Cluster) -> (usize, i64, Instant) {
        let began = Instant::now();
        let (mut lock, mut holder) = self.lock(cluster).await;
        loop {
            assert!(began.elapsed() < LIMIT, "the leader was never stopped in time");
            let (leader, epoch) = cluster.leader().await;
            let node = &cluster.members[leader].node;
            let backend = Self::waits(cluster, &node.name, holder).await;
            node.signal("STOP");
            let stopped = Instant::now();
            lock.batch_execute("COMMIT").await.unwrap();
            // The statement goes through, and its answer finds nobody who would commit. If the server had given up on the
            // lock already, it is tried again.
            let state = async || {
                let sql = "SELECT state FROM pg_stat_activity WHERE pid = $1";
                let row = cluster.client().query_opt(sql, &[&backend]).await.unwrap();
                Some(row.map_or(String::new(), |row| row.get(0))).filter(|state| state != "active")
            };
            if until("the statement has ended", state).await == "idle in transaction" {
                return (leader, epoch, stopped);
            }
            (lock, holder) = self.lock(cluster).await;
            node.signal("CONT");
        }
    }

    /// Waits until it was taken back.
    pub(crate) async fn taken_back(&self, cluster: &Cluster) -> TakenBack {
        let sql = format!(
            "SELECT node, epoch FROM audit.line WHERE kind = 'reaped' AND job = '{}' AND counter = {}",
            self.0.job, self.0.counter
        );
        let row = until("the lease is taken back", async || cluster.client().query_opt(&sql, &[]).await.unwrap()).await;
        TakenBack { node: row.get(0), epoch: row.get(1) }
    }

    /// Ends the job.
    pub(crate) async fn finish(self, cluster: &Cluster) {
        let store = open(&cluster.url()).await;
        let claimed =
            until("it can be claimed", async || store.claim_jobs(&Self::request()).await.unwrap().pop()).await;
        let answers =
            store.finish_attempts(vec![OutcomeReport { token: claimed.token, outcome: Outcome::DONE }]).await.unwrap();
        assert!(answers.iter().all(|answer| answer.is_ok()), "{answers:?}");
    }
}
