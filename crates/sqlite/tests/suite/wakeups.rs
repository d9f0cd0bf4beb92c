//! Hints within a store, and doing without them between stores.

use std::{future::Future, time::Duration};

use orchestrix_core::{JobId, JobState, NewJob, Start};
use orchestrix_store::{Outcome, OutcomeReport, PollInterval, Wakeup, Wakeups, prelude::*};
use uuid::Uuid;

use crate::{
    jobs::*,
    support::{Folder, LIMIT, open},
};

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.expect("something to happen")
}

/// The hints that have come by now.
async fn so_far(wakeups: &mut Wakeups) -> Vec<Wakeup> {
    let mut hints = Vec::new();
    while let Ok(hint) = tokio::time::timeout(Duration::ZERO, wakeups.next()).await {
        hints.push(hint);
    }
    hints
}

#[tokio::test]
async fn an_enqueue_wakes_the_subscribers_of_the_same_store_who_find_the_job() {
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    let mut wakeups = [store.job_wakeups(), store.clone().job_wakeups()];
    let id = enqueue(&store, NewJob { queue: queue("mail"), ..job("t") }).await;
    for wakeups in &mut wakeups {
        assert_eq!(soon(wakeups.next()).await, Wakeup::Queue(queue("mail")));
    }
    let claimed = claim(&store, 10).await;
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].job, id);
}

#[tokio::test]
async fn whatever_makes_a_job_claimable_wakes_and_whatever_does_not_stays_silent() {
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    let mut wakeups = store.job_wakeups();
    let later = Start::After(Duration::from_secs(3600));
    let held = enqueue(&store, NewJob { hold: true, queue: queue("held"), ..job("t") }).await;
    let scheduled = enqueue(&store, NewJob { start: later, queue: queue("later"), ..job("t") }).await;
    store.enqueue_job(child_of(&[JobId::from_uuid(Uuid::nil())])).await.expect_err("a job that waits for nobody");
    store.pause_queue(&queue("other")).await.unwrap();
    let q = queue("q");
    let id = enqueue(&store, NewJob { queue: q.clone(), ..job("t") }).await;
    assert_eq!(soon(wakeups.next()).await, Wakeup::Queue(q.clone()), "the first hint is that of the first pending job");

    store.release_held_job(held).await.unwrap();
    assert_eq!(soon(wakeups.next()).await, Wakeup::Queue(queue("held")));
    let token = claim(&store, 10).await.into_iter().find(|token| token.job == id).unwrap();
    let released = OutcomeReport { token, outcome: Outcome::Release };
    assert_eq!(store.finish_attempts(vec![released]).await.unwrap(), [Ok(JobState::Pending)]);
    assert_eq!(soon(wakeups.next()).await, Wakeup::Queue(q));
    store.cancel_job(scheduled).await.unwrap();
    store.retry_job(scheduled).await.unwrap();
    assert_eq!(soon(wakeups.next()).await, Wakeup::Queue(queue("later")));
    store.resume_queue(&queue("other")).await.unwrap();
    assert_eq!(soon(wakeups.next()).await, Wakeup::Queue(queue("other")));
    assert_eq!(so_far(&mut wakeups).await, []);
}

#[tokio::test]
async fn a_second_store_on_the_same_file_finds_the_job_by_polling() {
    let folder = Folder::new();
    let (telling, deaf) = (open(&folder.file()).await, open(&folder.file()).await);
    let mut wakeups = deaf.job_wakeups();
    let mut polling = PollInterval::default();
    assert_eq!(claim(&deaf, 1).await, [], "there is nothing yet");
    let id = enqueue(&telling, job("t")).await;
    let found = async {
        loop {
            let hint = wakeups.next_or_poll(&mut polling).await;
            assert_eq!(hint, Wakeup::Anything, "nobody could have told it");
            if let [token] = claim(&deaf, 10).await[..] {
                return token;
            }
        }
    };
    assert_eq!(soon(found).await.job, id);
}
