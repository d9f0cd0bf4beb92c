//! Parents that finish while somebody begins to wait for them, and parents that finish together.

use orchestrix_core::{IdempotencyKey, JobId, JobState, LeaseToken, NewJob, OnDependencyFailure};
use orchestrix_postgres::PostgresStore;
use orchestrix_store::{Fence, Outcome, prelude::*};
use orchestrix_testkit::TestDatabase;
use tokio_postgres::Client;

use crate::{
    books,
    jobs::*,
    locks::{Holder, until_waiting},
    support,
};

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

    fn finishing(&self, token: LeaseToken, outcome: Outcome) -> tokio::task::JoinHandle<JobState> {
        let store = self.store.clone();
        tokio::spawn(async move { finish(&store, token, outcome).await.expect("a current token") })
    }

    fn enqueueing(&self, job: NewJob) -> tokio::task::JoinHandle<JobId> {
        let store = self.store.clone();
        tokio::spawn(async move { enqueue(&store, job).await })
    }

    async fn assert_ends(&self, child: JobId, expected: JobState) {
        assert_eq!(state(&self.store, child).await, expected);
        let sql = "SELECT waits_for FROM orchestrix.job WHERE id = $1";
        let waits_for = self.client.query_opt(sql, &[&child.as_uuid()]).await.unwrap();
        assert_eq!(waits_for.map_or(0, |row| row.get::<_, i32>(0)), 0);
        assert_eq!(self.store.unblock_jobs(Fence::NONE, 100).await.unwrap().count, 0, "nothing was left for the sweep");
        books::assert_balanced(&self.client).await;
    }
}

/// How a parent may end, what its child is to do then, and where that leaves the child.
fn ends() -> [(Outcome, OnDependencyFailure, JobState); 4] {
    [
        (Outcome::DONE, OnDependencyFailure::Cancel, JobState::Pending),
        (fatal(), OnDependencyFailure::Cancel, JobState::Cancelled),
        (fatal(), OnDependencyFailure::Run, JobState::Pending),
        (fatal(), OnDependencyFailure::Hold, JobState::Created),
    ]
}

#[tokio::test]
async fn a_parent_that_waited_for_its_child_to_be_recorded_tells_it() {
    for (i, (outcome, on_dependency_failure, expected)) in ends().into_iter().enumerate() {
        let scene = Scene::new().await;
        let parent = start(&scene.store, job("parent")).await.token;
        // The child has locked its parent and waits for its key, which somebody else is taking and will give up.
        let key = format!("k{i}");
        let taking = Holder::with(
            scene.database.url(),
            &format!("SELECT orchestrix.enqueue('child', idempotency_key => '{key}')"),
        )
        .await;
        let idempotency_key = Some(IdempotencyKey::new(&key).unwrap());
        let child = scene.enqueueing(NewJob { idempotency_key, on_dependency_failure, ..child_of(&[parent.job]) });
        until_waiting(&scene.client, 1).await;
        let end = scene.finishing(parent, outcome);
        until_waiting(&scene.client, 2).await;
        taking.rollback().await;
        let child = child.await.unwrap();
        end.await.unwrap();
        scene.assert_ends(child, expected).await;
    }
}

#[tokio::test]
async fn a_child_that_waited_for_its_parent_to_finish_knows_that_it_has() {
    for (outcome, on_dependency_failure, expected) in ends() {
        let scene = Scene::new().await;
        let parent = start(&scene.store, job("parent")).await.token;
        // The parent's end has locked its row and waits to record itself.
        let holder = match outcome {
            Outcome::DONE => Holder::with_history_of(scene.database.url(), parent.job).await,
            _ => Holder::with_dead(scene.database.url(), parent.job).await,
        };
        let end = scene.finishing(parent, outcome);
        until_waiting(&scene.client, 1).await;
        let child = scene.enqueueing(NewJob { on_dependency_failure, ..child_of(&[parent.job]) });
        until_waiting(&scene.client, 2).await;
        holder.rollback().await;
        end.await.unwrap();
        let child = child.await.unwrap();
        scene.assert_ends(child, expected).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_is_recorded_while_its_parents_finish_is_never_forgotten() {
    let scene = Scene::new().await;
    let other = open(scene.database.url()).await;
    for _ in 0..20 {
        let parents = start_many(&scene.store, &job("parent"), 4).await;
        let ids: Vec<JobId> = parents.iter().map(|token| token.job).collect();
        let mut ends = Vec::new();
        for token in parents {
            ends.push(scene.finishing(token, Outcome::DONE));
        }
        let child = enqueue(&other, child_of(&ids)).await;
        for end in ends {
            end.await.unwrap();
        }
        scene.assert_ends(child, JobState::Pending).await;
        assert_eq!(claim_soon(&scene.store).await.id(), child);
    }
}

/// Two parents end together, the child's own row being locked until both are about to tell it.
async fn two_parents_meet(outcomes: [Outcome; 2], on_dependency_failure: OnDependencyFailure, expected: JobState) {
    let scene = Scene::new().await;
    let other = open(scene.database.url()).await;
    let parents = start_many(&scene.store, &job("parent"), 2).await;
    let ids = [parents[0].job, parents[1].job];
    let child = enqueue(&scene.store, NewJob { on_dependency_failure, ..child_of(&ids) }).await;
    assert_eq!(state(&scene.store, child).await, JobState::Blocked);

    let lock = format!("SELECT FROM orchestrix.job WHERE id = '{child}' FOR UPDATE");
    let holder = Holder::with(scene.database.url(), &lock).await;
    let [first, second] = outcomes;
    let one = scene.finishing(parents[0], first);
    until_waiting(&scene.client, 1).await;
    let token = parents[1];
    let two = tokio::spawn(async move { finish(&other, token, second).await.expect("a current token") });
    until_waiting(&scene.client, 2).await;
    holder.rollback().await;
    one.await.unwrap();
    two.await.unwrap();
    scene.assert_ends(child, expected).await;
}

#[tokio::test]
async fn the_last_two_parents_that_finish_together_let_their_child_go_once() {
    two_parents_meet([Outcome::DONE, Outcome::DONE], OnDependencyFailure::Cancel, JobState::Pending).await;
}

#[tokio::test]
async fn of_two_parents_that_end_together_the_failed_one_decides_by_the_childs_policy() {
    for outcomes in [[Outcome::DONE, fatal()], [fatal(), Outcome::DONE]] {
        two_parents_meet(outcomes.clone(), OnDependencyFailure::Cancel, JobState::Cancelled).await;
        two_parents_meet(outcomes.clone(), OnDependencyFailure::Run, JobState::Pending).await;
        two_parents_meet(outcomes, OnDependencyFailure::Hold, JobState::Created).await;
    }
}

#[tokio::test]
async fn a_finished_parent_that_two_sweeps_find_is_counted_once() {
    let scene = Scene::new().await;
    let other = open(scene.database.url()).await;
    let parents = start_many(&scene.store, &job("parent"), 3).await;
    let ids: Vec<JobId> = parents.iter().map(|token| token.job).collect();
    let child = enqueue(&scene.store, child_of(&ids)).await;
    // The first has found what to tell, and waits for the child; the second finds the same.
    let lock = format!("SELECT FROM orchestrix.job WHERE id = '{child}' FOR UPDATE");
    let holder = Holder::with(scene.database.url(), &lock).await;
    let end = scene.finishing(parents[0], Outcome::DONE);
    until_waiting(&scene.client, 1).await;
    let sweep = tokio::spawn(async move { other.unblock_jobs(Fence::NONE, 100).await });
    until_waiting(&scene.client, 2).await;
    holder.rollback().await;
    end.await.unwrap();
    sweep.await.unwrap().unwrap();
    assert_eq!(state(&scene.store, child).await, JobState::Blocked);
    books::assert_balanced(&scene.client).await;
    assert_eq!(finish(&scene.store, parents[1], Outcome::DONE).await, Ok(JobState::Completed));
    assert_eq!(state(&scene.store, child).await, JobState::Blocked, "it began before its last parent finished");
    assert_eq!(finish(&scene.store, parents[2], Outcome::DONE).await, Ok(JobState::Completed));
    scene.assert_ends(child, JobState::Pending).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parents_that_finish_together_over_many_rounds_let_every_child_go_once() {
    let scene = Scene::new().await;
    let other = open(scene.database.url()).await;
    let policies = [
        (fatal(), OnDependencyFailure::Run, JobState::Pending),
        (Outcome::DONE, OnDependencyFailure::Cancel, JobState::Pending),
        (fatal(), OnDependencyFailure::Hold, JobState::Created),
        (fatal(), OnDependencyFailure::Cancel, JobState::Cancelled),
    ];
    for round in 0..24 {
        let (second, on_dependency_failure, expected) = policies[round % 4].clone();
        let parents = start_many(&scene.store, &job("parent"), 2).await;
        let child =
            enqueue(&scene.store, NewJob { on_dependency_failure, ..child_of(&[parents[0].job, parents[1].job]) })
                .await;
        let stores = [(scene.store.clone(), Outcome::DONE), (other.clone(), second)];
        let ends = together(
            stores
                .into_iter()
                .zip(parents)
                .map(|((store, outcome), token)| async move { finish(&store, token, outcome).await }),
        );
        assert!(ends.await.iter().all(Result::is_ok));
        scene.assert_ends(child, expected).await;
        if expected == JobState::Pending {
            // Whichever store told the child, both come to know of it.
            assert_eq!(claim_soon(&scene.store).await.id(), child);
        }
        assert!(claim(&scene.store, 10).await.is_empty(), "it was let go once");
    }
}
