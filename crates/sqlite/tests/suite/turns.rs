//! Turns of tenants: where they start, who shares them, and what they leave in the file.

use orchestrix_core::{JobId, NewJob, Tenant, turn::ring_position};
use orchestrix_sqlite::{SqliteOptions, SqliteStore};
use orchestrix_store::prelude::*;

use crate::{
    consistency::assert_lanes_consistent,
    jobs::*,
    support::{Folder, connect, number, open, options},
};

/// More tenants than a process remembers lanes of.
const TENANTS: usize = 100;

fn tenant(n: usize) -> Tenant {
    Tenant::new(format!("tenant-{n}")).unwrap()
}

fn of(tenant: &Tenant) -> NewJob {
    NewJob { tenant: tenant.clone(), ..job("t") }
}

async fn claim_one(store: &SqliteStore) -> JobId {
    claim(store, 1).await[0].job
}

#[tokio::test]
async fn the_first_turn_is_that_of_the_option() {
    for n in 0..4 {
        let folder = Folder::new();
        let first_turn = ring_position(&tenant(n));
        let store = SqliteStore::open(SqliteOptions { first_turn, ..options(&folder.file()) }).await.unwrap();
        let mut jobs = Vec::new();
        for n in 0..4 {
            jobs.push(enqueue(&store, of(&tenant(n))).await);
        }
        assert_eq!(claim_one(&store).await, jobs[n]);
    }
}

#[test]
fn the_first_turn_is_random_by_default() {
    assert_ne!(SqliteOptions::new("jobs.db").first_turn, SqliteOptions::new("jobs.db").first_turn);
}

#[tokio::test]
async fn clones_of_a_store_share_the_turns() {
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    let mut jobs = Vec::new();
    for _ in 0..3 {
        for n in 0..2 {
            jobs.push((enqueue(&store, of(&tenant(n))).await, n));
        }
    }
    let mut claimed = Vec::new();
    for _ in 0..3 {
        for store in [&store, &store.clone()] {
            let id = claim_one(store).await;
            claimed.push(jobs.iter().find(|(job, _)| *job == id).unwrap().1);
        }
    }
    assert!(claimed.windows(2).all(|pair| pair[0] != pair[1]), "{claimed:?}");
}

#[tokio::test]
async fn claims_leave_few_lanes_without_jobs() {
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    let connection = connect(&folder.file());
    let lanes = || number(&connection, "SELECT count(*) FROM lane");
    enqueue_all(&store).await;
    assert_eq!(lanes(), i64::try_from(TENANTS).unwrap());
    for _ in 0..TENANTS {
        claim_one(&store).await;
    }
    assert!(lanes() <= 64, "{} lanes are left", lanes());
    // Lanes that hold jobs again are kept.
    enqueue_all(&store).await;
    for _ in 0..TENANTS / 2 {
        claim_one(&store).await;
        assert_lanes_consistent(&connection);
    }
    assert_eq!(claim_all(&store).await.len(), TENANTS - TENANTS / 2);
    claim(&store, 1).await;
    assert_eq!(lanes(), 0, "a claim that finds no job deletes the lanes that it reads");
}

/// Enqueues a job of each tenant.
async fn enqueue_all(store: &SqliteStore) {
    store.enqueue_jobs((0..TENANTS).map(|n| of(&tenant(n))).collect()).await.unwrap();
}
