//! Deep and wide graphs: the call that finishes a job resolves a bounded part, the background task the rest, and the
//! sweep what a dead process left behind.

use std::thread;

use orchestrix_core::{DependsOn, JobId, JobState, NewJob, OnDependencyFailure};
use orchestrix_postgres::PostgresStore;
use orchestrix_store::{ClaimedJob, Fence, Outcome, OutcomeReport, SweepResult, prelude::*};
use orchestrix_testkit::TestDatabase;
use tokio::sync::oneshot;
use tokio_postgres::Client;

use crate::{
    invariants,
    jobs::*,
    locks::{LIMIT, LockHolder, until, until_waiting},
    support,
};

/// More than the call that finishes a parent may resolve. `INLINE` in `dependents.rs` is the exact number.
const INLINE: i64 = 100;

const MET: &str = "SELECT count(*) FROM orchestrix.dependency WHERE met";
const BLOCKED: &str = "SELECT count(*) FROM orchestrix.job WHERE state = 'blocked'";
const UNFINISHED: &str = "SELECT count(*) FROM orchestrix.job";
const SETTLED: &str = "SELECT count(*) FROM orchestrix.settled";

struct Scene {
    database: TestDatabase,
    store: PostgresStore,
    client: Client,
}

impl Scene {
    async fn new() -> Self {
        let database = support::database();
        let store = open(database.url()).await;
        let client = support::connect(database.url()).await;
        Self { database, store, client }
    }

    /// A parent that runs, and `n` children.
    async fn start_wide(&self, n: usize) -> (ClaimedJob, Vec<JobId>) {
        let parent = NewJob { reference: Some("parent".into()), ..job("parent") };
        let child = NewJob { depends_on: vec![DependsOn::Reference("parent".into())], ..job("child") };
        let jobs = std::iter::once(parent).chain(vec![child; n]).collect();
        let children = self.store.enqueue_jobs(jobs).await.unwrap().into_iter().skip(1).map(|job| job.id).collect();
        (claim(&self.store, 1).await.remove(0), children)
    }

    /// `n` jobs, each of which depends on the one before.
    async fn enqueue_chain(&self, n: usize) -> Vec<JobId> {
        let reference = |i: usize| format!("job{i}");
        let jobs = (0..n).map(|i| NewJob {
            reference: Some(reference(i)),
            depends_on: i.checked_sub(1).map(|i| DependsOn::Reference(reference(i))).into_iter().collect(),
            ..job("link")
        });
        let enqueued = self.store.enqueue_jobs(jobs.collect()).await.unwrap();
        enqueued.into_iter().map(|job| job.id).collect()
    }

    async fn number(&self, sql: &str) -> i64 {
        self.client.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// A transaction that has locked the row of a job.
    async fn lock(&self, id: JobId) -> LockHolder {
        let sql = format!("SELECT FROM orchestrix.job WHERE id = '{id}' FOR UPDATE");
        LockHolder::with(self.database.url(), &sql).await
    }

    /// Runs the sweep until nothing is left.
    async fn sweep(&self) {
        while self.store.unblock_jobs(Fence::NONE, 1_000).await.unwrap() != SweepResult::default() {}
    }

    async fn assert_all_cancelled(&self, n: usize) {
        let sql = "SELECT count(*) FROM orchestrix.history WHERE state = 'cancelled' AND reason = 'dependency_failed'";
        assert_eq!(self.number(sql).await, n as i64 - 1, "all but the head");
        assert_eq!((self.number(UNFINISHED).await, self.number(SETTLED).await), (0, 0));
        invariants::assert_consistent(&self.client).await;
    }

    async fn assert_all_pending(&self, n: usize) {
        let sql = "SELECT count(*) FROM orchestrix.job WHERE state = 'pending'";
        assert_eq!(self.number(sql).await, n as i64);
        assert_eq!((self.number(UNFINISHED).await, self.number(SETTLED).await), (n as i64, 0));
        invariants::assert_consistent(&self.client).await;
    }
}

/// Stands in for a process: a runtime with a store of its own. Both end when this is dropped, with all tasks.
struct Process {
    end: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Process {
    /// Starts a process and returns once `call` has returned. Without `runs_on`, the process ends at that moment: the
    /// call was the last thing that it ran.
    async fn start<F>(url: &str, runs_on: bool, call: impl FnOnce(PostgresStore) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()>,
    {
        let url = url.to_owned();
        let (end, ended) = oneshot::channel();
        let (returns, returned) = oneshot::channel();
        let thread = thread::spawn(move || {
            // With one thread, a task that the call spawns runs only while another one waits.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let store = runtime.block_on(async move {
                let store = open(&url).await;
                call(store.clone()).await;
                store
            });
            returns.send(()).unwrap();
            if runs_on {
                // An error means that the sender was dropped, which ends the process too.
                let _ = runtime.block_on(ended);
            }
            runtime.shutdown_background();
            drop(store);
        });
        returned.await.unwrap();
        Self { end: Some(end), thread: Some(thread) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.end.take());
        let joined = self.thread.take().expect("the thread is present until drop").join();
        assert!(joined.is_ok() || thread::panicking());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_call_that_finishes_a_wide_parent_does_not_wait_for_all_children() {
    let scene = Scene::new().await;
    let (parent, children) = scene.start_wide(9_999).await;
    let neighbour = start(&scene.store, job("neighbour")).await;
    let holder = scene.lock(*children.iter().max().unwrap()).await;
    let reports = vec![
        OutcomeReport { token: parent.token, outcome: Outcome::DONE },
        OutcomeReport { token: neighbour.token, outcome: fatal() },
    ];
    let answers = tokio::time::timeout(LIMIT, scene.store.finish_attempts(reports)).await;
    let answers = answers.expect("the call should not wait for a child that is locked").unwrap();
    assert_eq!(answers, [Ok(JobState::Completed), Ok(JobState::Dead)]);
    until_waiting(&scene.client, 1).await;
    holder.rollback().await;
    until(&scene.client, "no child is blocked", |n| n == 0, BLOCKED).await;
    scene.assert_all_pending(9_999).await;
}

#[tokio::test]
async fn the_sweep_unblocks_the_children_of_a_process_that_ended_after_its_call() {
    let scene = Scene::new().await;
    let (parent, _) = scene.start_wide(9_999).await;
    let finishing = move |store: PostgresStore| async move {
        assert_eq!(finish(&store, parent.token, Outcome::DONE).await, Ok(JobState::Completed));
    };
    drop(Process::start(scene.database.url(), false, finishing).await);
    let met = scene.number(MET).await;
    assert_eq!(met, INLINE, "the call should resolve a bounded number of dependencies");
    assert_eq!(scene.number(BLOCKED).await, 9_999 - met);
    scene.sweep().await;
    scene.assert_all_pending(9_999).await;
}

#[tokio::test]
async fn the_sweep_unblocks_the_children_of_a_process_that_ended_in_the_middle() {
    let scene = Scene::new().await;
    let (parent, children) = scene.start_wide(9_999).await;
    let holder = scene.lock(*children.iter().max().unwrap()).await;
    let finishing = move |store: PostgresStore| async move {
        assert_eq!(finish(&store, parent.token, Outcome::DONE).await, Ok(JobState::Completed));
    };
    let process = Process::start(scene.database.url(), true, finishing).await;
    until_waiting(&scene.client, 1).await;
    drop(process);
    let met = scene.number(MET).await;
    assert!(met > INLINE && met < 9_999, "the background task should be in the middle, not at {met}");
    holder.rollback().await;
    scene.sweep().await;
    scene.assert_all_pending(9_999).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_the_head_of_a_deep_chain_cancels_all_of_it() {
    let scene = Scene::new().await;
    let chain = scene.enqueue_chain(3_500).await;
    assert_eq!(scene.store.cancel_job(chain[0]).await.unwrap(), JobState::Cancelled);
    until(&scene.client, "no job is unfinished", |n| n == 0, UNFINISHED).await;
    scene.assert_all_cancelled(3_500).await;
}

#[tokio::test]
async fn the_sweep_cancels_the_chain_of_a_process_that_ended_after_its_call() {
    let scene = Scene::new().await;
    let chain = scene.enqueue_chain(3_500).await;
    let head = chain[0];
    let cancelling = move |store: PostgresStore| async move {
        assert_eq!(store.cancel_job(head).await.unwrap(), JobState::Cancelled);
    };
    drop(Process::start(scene.database.url(), false, cancelling).await);
    assert_eq!(scene.number(MET).await, INLINE, "the call should resolve a bounded number of dependencies");
    assert_eq!(scene.number(UNFINISHED).await, 3_499 - INLINE);
    let mut steps = 0;
    while scene.store.unblock_jobs(Fence::NONE, 1_000).await.unwrap() != SweepResult::default() {
        steps += 1;
    }
    assert_eq!(steps, 4, "a step should cancel a thousand levels");
    scene.assert_all_cancelled(3_500).await;
}

#[tokio::test]
async fn the_sweep_cancels_the_chain_of_a_process_that_ended_in_the_middle() {
    let scene = Scene::new().await;
    let chain = scene.enqueue_chain(3_500).await;
    let holder = scene.lock(chain[2_000]).await;
    let head = chain[0];
    let cancelling = move |store: PostgresStore| async move {
        assert_eq!(store.cancel_job(head).await.unwrap(), JobState::Cancelled);
    };
    let process = Process::start(scene.database.url(), true, cancelling).await;
    until_waiting(&scene.client, 1).await;
    drop(process);
    // A job is cancelled together with its dependency or not at all.
    let unfinished = scene.number(UNFINISHED).await;
    assert!((1_500..3_400).contains(&unfinished), "the background task should be in the middle, not at {unfinished}");
    assert_eq!(scene.number("SELECT count(*) FROM orchestrix.dependency WHERE NOT met").await, unfinished);
    holder.rollback().await;
    scene.sweep().await;
    scene.assert_all_cancelled(3_500).await;
}

#[tokio::test]
async fn a_job_that_leaves_the_chain_before_it_is_locked_protects_the_jobs_behind_it() {
    let scene = Scene::new().await;
    let chain = scene.enqueue_chain(5).await;
    // The cancel has read the chain and waits for this job, which then stops waiting for its parent.
    let holder = scene.lock(chain[2]).await;
    let (store, head) = (scene.store.clone(), chain[0]);
    let cancel = tokio::spawn(async move { store.cancel_job(head).await.unwrap() });
    until_waiting(&scene.client, 1).await;
    let sql = format!(
        "UPDATE orchestrix.job SET state = 'pending', waits_for = 0 WHERE id = '{}';
         UPDATE orchestrix.dependency SET met = true WHERE child = '{0}';
         INSERT INTO orchestrix.ready (rank, eligible_at, first_id, queue, job_type, tenant, ring, ids)
         SELECT rank, eligible_at, id, queue, job_type, tenant, orchestrix.ring_position(tenant), ARRAY[id] FROM orchestrix.job WHERE id = '{0}';
         INSERT INTO orchestrix.depth_delta VALUES ('blocked', '{{default}}', '{{-1}}'), ('pending', '{{default}}', '{{1}}')",
        chain[2]
    );
    holder.client().batch_execute(&sql).await.unwrap();
    holder.commit().await;
    assert_eq!(cancel.await.unwrap(), JobState::Cancelled);
    scene.sweep().await;
    let mut states = Vec::new();
    for id in chain {
        states.push(state(&scene.store, id).await);
    }
    let expected = [JobState::Cancelled, JobState::Cancelled, JobState::Pending, JobState::Blocked, JobState::Blocked];
    assert_eq!(states, expected);
    invariants::assert_consistent(&scene.client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parent_that_runs_again_cancels_no_child_that_was_not_resolved_yet() {
    let scene = Scene::new().await;
    let (parent, children) = scene.start_wide(300).await;
    let id = parent.id();
    let failing = move |store: PostgresStore| async move {
        assert_eq!(finish(&store, parent.token, fatal()).await, Ok(JobState::Dead));
    };
    drop(Process::start(scene.database.url(), false, failing).await);
    assert_eq!(scene.store.retry_job(id).await.unwrap(), JobState::Pending);
    scene.sweep().await;
    assert_eq!(scene.number(BLOCKED).await, children.len() as i64 - INLINE);
    invariants::assert_consistent(&scene.client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_background_task_the_sweep_and_concurrent_calls_resolve_a_mixed_graph_once() {
    let scene = Scene::new().await;
    let other = open(scene.database.url()).await;
    let parents = start_many(&scene.store, &job("parent"), 6).await;
    let ids: Vec<JobId> = parents.iter().map(|token| token.job).collect();
    let policies = [OnDependencyFailure::Run, OnDependencyFailure::Cancel, OnDependencyFailure::Hold];
    // Every child has two parents: the failed ones are the last three.
    let children: Vec<NewJob> = (0..1_200)
        .map(|i| NewJob {
            on_dependency_failure: policies[i % 3],
            ..child_of(&[ids[i % 6], ids[(i / 6 + i + 1 + i % 2) % 6]])
        })
        .collect();
    scene.store.enqueue_jobs(children).await.unwrap();
    let ends = parents.into_iter().enumerate().map(|(i, token)| {
        let store = if i % 2 == 0 { scene.store.clone() } else { other.clone() };
        async move { finish(&store, token, if i < 3 { Outcome::DONE } else { fatal() }).await.map(drop) }
    });
    let ended = together(ends);
    let swept = async { scene.sweep().await };
    let (ended, ()) = tokio::join!(ended, swept);
    assert!(ended.iter().all(Result::is_ok));
    let open = "SELECT count(*) FROM orchestrix.dependency WHERE NOT met";
    until(&scene.client, "every dependency is met", |n| n == 0, open).await;
    scene.sweep().await;
    assert_eq!((scene.number(BLOCKED).await, scene.number(SETTLED).await), (0, 0));
    invariants::assert_consistent(&scene.client).await;
}
