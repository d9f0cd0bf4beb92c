//! Parents that finish while a dependent is enqueued, and parents that finish concurrently.

use orchestrix_core::{IdempotencyKey, JobId, JobState, LeaseToken, NewJob, OnDependencyFailure};
use orchestrix_postgres::PostgresStore;
use orchestrix_store::{Fence, Outcome, prelude::*};
use orchestrix_testkit::TestDatabase;
use tokio_postgres::Client;

use crate::{
    invariants,
    jobs::*,
    locks::{LockHolder, until_waiting},
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
        tokio::spawn(async move { finish(&store, token, outcome).await.expect("the token is current") })
    }

    fn enqueueing(&self, job: NewJob) -> tokio::task::JoinHandle<JobId> {
        let store = self.store.clone();
        tokio::spawn(async move { enqueue(&store, job).await })
    }

    async fn assert_resolved(&self, child: JobId, expected: JobState) {
        assert_eq!(state(&self.store, child).await, expected);
        let sql = "SELECT waits_for FROM orchestrix.job WHERE id = $1";
        let waits_for = self.client.query_opt(sql, &[&child.as_uuid()]).await.unwrap();
        assert_eq!(waits_for.map_or(0, |row| row.get::<_, i32>(0)), 0);
        assert_eq!(
            self.store.unblock_jobs(Fence::NONE, 100).await.unwrap().count,
            0,
            "nothing should be left for the sweep"
        );
        invariants::assert_consistent(&self.client).await;
    }
}

/// Outcomes of a parent, policies of its child, and the states that the child ends in.
fn ends() -> [(Outcome, OnDependencyFailure, JobState); 4] {
    [
        (Outcome::DONE, OnDependencyFailure::Cancel, JobState::Pending),
        (fatal(), OnDependencyFailure::Cancel, JobState::Cancelled),
        (fatal(), OnDependencyFailure::Run, JobState::Pending),
        (fatal(), OnDependencyFailure::Hold, JobState::Created),
    ]
}

#[tokio::test]
async fn a_parent_that_waited_for_the_enqueue_of_its_child_resolves_it() {
    for (i, (outcome, on_dependency_failure, expected)) in ends().into_iter().enumerate() {
        let scene = Scene::new().await;
        let parent = start(&scene.store, job("parent")).await.token;
        // The child has locked its parent and waits for its key, which another transaction inserts and rolls back.
        let key = format!("k{i}");
        let taking = LockHolder::with(
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
        scene.assert_resolved(child, expected).await;
    }
}

#[tokio::test]
async fn a_child_that_waited_for_the_end_of_its_parent_is_resolved() {
    for (outcome, on_dependency_failure, expected) in ends() {
        let scene = Scene::new().await;
        let parent = start(&scene.store, job("parent")).await.token;
        // The end of the parent has locked its row and waits at the insert.
        let holder = match outcome {
            Outcome::DONE => LockHolder::with_history_of(scene.database.url(), parent.job).await,
            _ => LockHolder::with_dead(scene.database.url(), parent.job).await,
        };
        let end = scene.finishing(parent, outcome);
        until_waiting(&scene.client, 1).await;
        let child = scene.enqueueing(NewJob { on_dependency_failure, ..child_of(&[parent.job]) });
        until_waiting(&scene.client, 2).await;
        holder.rollback().await;
        end.await.unwrap();
        let child = child.await.unwrap();
        scene.assert_resolved(child, expected).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_enqueued_while_its_parents_finish_is_always_resolved() {
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
        scene.assert_resolved(child, JobState::Pending).await;
        assert_eq!(claim_soon(&scene.store).await.id(), child);
    }
}

/// Two parents end concurrently; the child's row is locked until both are about to resolve it.
async fn two_parents_end(outcomes: [Outcome; 2], on_dependency_failure: OnDependencyFailure, expected: JobState) {
    let scene = Scene::new().await;
    let other = open(scene.database.url()).await;
    let parents = start_many(&scene.store, &job("parent"), 2).await;
    let ids = [parents[0].job, parents[1].job];
    let child = enqueue(&scene.store, NewJob { on_dependency_failure, ..child_of(&ids) }).await;
    assert_eq!(state(&scene.store, child).await, JobState::Blocked);

    let lock = format!("SELECT FROM orchestrix.job WHERE id = '{child}' FOR UPDATE");
    let holder = LockHolder::with(scene.database.url(), &lock).await;
    let [first, second] = outcomes;
    let one = scene.finishing(parents[0], first);
    until_waiting(&scene.client, 1).await;
    let token = parents[1];
    let two = tokio::spawn(async move { finish(&other, token, second).await.expect("the token is current") });
    until_waiting(&scene.client, 2).await;
    holder.rollback().await;
    one.await.unwrap();
    two.await.unwrap();
    scene.assert_resolved(child, expected).await;
}

#[tokio::test]
async fn the_last_two_parents_finishing_concurrently_unblock_their_child_once() {
    two_parents_end([Outcome::DONE, Outcome::DONE], OnDependencyFailure::Cancel, JobState::Pending).await;
}

#[tokio::test]
async fn of_two_parents_ending_concurrently_the_failed_one_applies_the_childs_policy() {
    for outcomes in [[Outcome::DONE, fatal()], [fatal(), Outcome::DONE]] {
        two_parents_end(outcomes.clone(), OnDependencyFailure::Cancel, JobState::Cancelled).await;
        two_parents_end(outcomes.clone(), OnDependencyFailure::Run, JobState::Pending).await;
        two_parents_end(outcomes, OnDependencyFailure::Hold, JobState::Created).await;
    }
}

#[tokio::test]
async fn a_finished_parent_that_two_sweeps_find_counts_once() {
    let scene = Scene::new().await;
    let other = open(scene.database.url()).await;
    let parents = start_many(&scene.store, &job("parent"), 3).await;
    let ids: Vec<JobId> = parents.iter().map(|token| token.job).collect();
    let child = enqueue(&scene.store, child_of(&ids)).await;
    // The first has found the dependency and waits for the child; the second finds the same one.
    let lock = format!("SELECT FROM orchestrix.job WHERE id = '{child}' FOR UPDATE");
    let holder = LockHolder::with(scene.database.url(), &lock).await;
    let end = scene.finishing(parents[0], Outcome::DONE);
    until_waiting(&scene.client, 1).await;
    let sweep = tokio::spawn(async move { other.unblock_jobs(Fence::NONE, 100).await });
    until_waiting(&scene.client, 2).await;
    holder.rollback().await;
    end.await.unwrap();
    sweep.await.unwrap().unwrap();
    assert_eq!(state(&scene.store, child).await, JobState::Blocked);
    invariants::assert_consistent(&scene.client).await;
    assert_eq!(finish(&scene.store, parents[1], Outcome::DONE).await, Ok(JobState::Completed));
    assert_eq!(state(&scene.store, child).await, JobState::Blocked, "a parent is unfinished");
    assert_eq!(finish(&scene.store, parents[2], Outcome::DONE).await, Ok(JobState::Completed));
    scene.assert_resolved(child, JobState::Pending).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parents_finishing_concurrently_over_many_rounds_resolve_every_child_once() {
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
        scene.assert_resolved(child, expected).await;
        if expected == JobState::Pending {
            // Either store may have unblocked the child; both find it.
            assert_eq!(claim_soon(&scene.store).await.id(), child);
        }
        assert!(claim(&scene.store, 10).await.is_empty(), "the child should be claimable once");
    }
}
