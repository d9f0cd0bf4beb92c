//! Heartbeats: they extend leases and return their status.

use orchestrix_core::{JobState, LeaseToken, NewJob};
use uuid::Uuid;

use super::{Harness, fixture::*};
use orchestrix_store::{ClaimedJob, LeaseStatus, Outcome};

async fn extend(h: &Harness, token: LeaseToken) -> LeaseStatus {
    let answers = h.store.extend_leases(&[token]).await.expect("a store that answers");
    assert_eq!(answers.len(), 1, "one token, one answer");
    answers[0]
}

fn forged(claimed: &ClaimedJob) -> LeaseToken {
    LeaseToken { secret: Uuid::from_u128(claimed.token.secret.as_u128() ^ 1), ..claimed.token }
}

pub(super) async fn a_heartbeat_extends_the_lease_by_its_own_length_from_now(h: &Harness) {
    let claimed = h.start(NewJob { lease: secs(45), ..job("t") }).await;
    let before = h.job(claimed.id()).await;
    h.advance(secs(20)).await;
    let until = h.now().await + secs(45);
    assert_eq!(extend(h, claimed.token).await, LeaseStatus::Held(until));
    let after = h.job(claimed.id()).await;
    assert_eq!(after.lease_expires_at, Some(until));
    assert_eq!(after.updated_at, before.updated_at, "its state did not change");
    h.advance(secs(44)).await;
    assert_eq!(h.reap().await.count, 0);
}

pub(super) async fn an_expired_lease_is_held_until_it_is_reaped(h: &Harness) {
    let claimed = h.start(job("t")).await;
    h.advance(secs(300)).await;
    assert_eq!(extend(h, claimed.token).await, LeaseStatus::Held(h.now().await + secs(30)));
    assert_eq!(h.reap().await.count, 0);
}

pub(super) async fn a_reaped_lease_is_lost(h: &Harness) {
    let first = h.start(job("t")).await;
    h.lose(&first).await;
    assert_eq!(extend(h, first.token).await, LeaseStatus::Lost);
    let second = h.claim_one().await;
    let before = h.job(first.id()).await;
    h.advance(secs(1)).await;
    assert_eq!(extend(h, first.token).await, LeaseStatus::Lost);
    assert_eq!(h.job(first.id()).await, before, "a heartbeat without the lease changes nothing");
    assert_eq!(extend(h, second.token).await, LeaseStatus::Held(h.now().await + secs(30)));
}

pub(super) async fn a_finished_attempt_has_no_lease(h: &Harness) {
    let claimed = h.start(job("t")).await;
    h.end(&claimed, Outcome::DONE).await;
    assert_eq!(extend(h, claimed.token).await, LeaseStatus::Lost);
}

pub(super) async fn a_token_needs_the_right_job_counter_and_secret(h: &Harness) {
    let claimed = h.start(job("t")).await;
    let before = h.job(claimed.id()).await;
    h.advance(secs(1)).await;
    let wrong_counter = LeaseToken { counter: claimed.token.counter + 1, ..claimed.token };
    let wrong_job = LeaseToken { job: unknown_id(), ..claimed.token };
    for token in [forged(&claimed), wrong_counter, wrong_job] {
        assert_eq!(extend(h, token).await, LeaseStatus::Lost);
    }
    assert_eq!(h.job(claimed.id()).await, before);
}

pub(super) async fn a_heartbeat_reports_a_cancel_request_and_extends_the_lease(h: &Harness) {
    let claimed = h.start(job("t")).await;
    h.store.cancel_job(claimed.id()).await.expect("a running job");
    h.advance(secs(10)).await;
    let until = h.now().await + secs(30);
    assert_eq!(extend(h, claimed.token).await, LeaseStatus::Cancel(until));
    let job = h.job(claimed.id()).await;
    assert_eq!((job.state, job.lease_expires_at), (JobState::Running, Some(until)));
}

pub(super) async fn statuses_are_in_the_order_of_the_tokens(h: &Harness) {
    let held = h.start(NewJob { lease: secs(40), ..job("held") }).await;
    let cancelling = h.start(NewJob { lease: secs(50), ..job("cancelling") }).await;
    h.store.cancel_job(cancelling.id()).await.expect("a running job");
    let now = h.now().await;
    let tokens = [cancelling.token, forged(&held), held.token, cancelling.token];
    let answers = h.store.extend_leases(&tokens).await.expect("a store that answers");
    let cancel = LeaseStatus::Cancel(now + secs(50));
    assert_eq!(answers, [cancel, LeaseStatus::Lost, LeaseStatus::Held(now + secs(40)), cancel]);
    assert_eq!(h.store.extend_leases(&[]).await.expect("a store that answers"), []);
}
