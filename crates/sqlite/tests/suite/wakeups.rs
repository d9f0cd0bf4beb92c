//! Wake-ups within one store, and polling between stores.

use std::{future::Future, time::Duration};

use orchestrix_core::{JobId, JobState, NewJob, Start};
use orchestrix_store::{Outcome, OutcomeReport, PollInterval, Wakeup, Wakeups, prelude::*};
use uuid::Uuid;

use crate::{
    jobs::*,
    support::{Folder, TIMEOUT, open},
};

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, future).await.expect("an event in time")
}

/// The wake-ups that have arrived by now.
async fn received(wakeups: &mut Wakeups) -> Vec<Wakeup> {
    let mut wakeups_received = Vec::new();
    while let Ok(wakeup) = tokio::time::timeout(Duration::ZERO, wakeups.next()).await {
        wakeups_received.push(wakeup);
    }
    wakeups_received
}

#[tokio::test]
async fn an_enqueue_wakes_every_subscriber_of_the_same_store() {
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
async fn a_wakeup_is_sent_exactly_when_a_job_becomes_claimable() {
    let folder = Folder::new();
    let store = open(&folder.file()).await;
    let mut wakeups = store.job_wakeups();
    let later = Start::After(Duration::from_secs(3600));
    let held = enqueue(&store, NewJob { hold: true, queue: queue("held"), ..job("t") }).await;
    let scheduled = enqueue(&store, NewJob { start: later, queue: queue("later"), ..job("t") }).await;
    store.enqueue_job(child_of(&[JobId::from_uuid(Uuid::nil())])).await.expect_err("an unknown parent");
    store.pause_queue(&queue("other")).await.unwrap();
    let q = queue("q");
    let id = enqueue(&store, NewJob { queue: q.clone(), ..job("t") }).await;
    assert_eq!(soon(wakeups.next()).await, Wakeup::Queue(q.clone()), "the first wake-up is for the first pending job");

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
    assert_eq!(received(&mut wakeups).await, []);
}

#[tokio::test]
async fn a_second_store_on_the_same_file_finds_the_job_by_polling() {
    let folder = Folder::new();
    let (writer, poller) = (open(&folder.file()).await, open(&folder.file()).await);
    let mut wakeups = poller.job_wakeups();
    let mut poll_interval = PollInterval::default();
    assert_eq!(claim(&poller, 1).await, [], "no job yet");
    let id = enqueue(&writer, job("t")).await;
    let found = async {
        loop {
            let wakeup = wakeups.next_or_poll(&mut poll_interval).await;
            assert_eq!(wakeup, Wakeup::Anything, "another store sends no wake-ups");
            if let [token] = claim(&poller, 10).await[..] {
                return token;
            }
        }
    };
    assert_eq!(soon(found).await.job, id);
}
