//! Lists over more jobs than one page scans.

use std::{sync::Arc, time::Duration};

use orchestrix_core::{JobId, JobState, JobType, NewJob, Timestamp};
use orchestrix_postgres::{IdSource, PostgresOptions, PostgresStore};
use orchestrix_store::{
    ClaimRequest, JobFilter, ManualClock, PageRequest,
    inspect::{MAX_SCAN, MAX_SKEW},
    prelude::*,
};

use crate::{
    jobs::{job, worker},
    support,
};

/// Two matching jobs, and enough newer ones that the scan of the first page ends at the second.
async fn enqueue_below_others(store: &PostgresStore) -> [JobId; 2] {
    let old = store.enqueue_job(job("wanted")).await.expect("enqueued").id;
    let edge = store.enqueue_job(job("wanted")).await.expect("enqueued").id;
    let others: Vec<NewJob> = vec![job("other"); MAX_SCAN - 1];
    store.enqueue_jobs(others).await.expect("enqueued");
    [old, edge]
}

#[tokio::test]
async fn a_page_ends_at_its_scan_limit_and_the_next_page_continues_there() {
    let (store, _database) = support::store().await;
    let [old, edge] = enqueue_below_others(&store).await;
    let filter = JobFilter { job_type: Some(JobType::trusted("wanted")), ..JobFilter::default() };
    let first = store.list_jobs(&filter, &PageRequest::first(10)).await.expect("a page");
    let ids = |page: &[orchestrix_store::JobSummary]| page.iter().map(|job| job.id).collect::<Vec<_>>();
    assert_eq!((ids(&first.items), first.next), (vec![edge], Some(edge.cursor_above(old))));
    let second = store.list_jobs(&filter, &PageRequest::after(first.next.unwrap(), 10)).await.expect("a page");
    assert_eq!((ids(&second.items), second.next), (vec![old], None));
    let full = store.list_jobs(&filter, &PageRequest::first(1)).await.expect("a page");
    assert_eq!((ids(&full.items), full.next), (vec![edge], Some(edge.cursor_above(old))));
}

#[tokio::test]
async fn running_jobs_are_on_the_first_page_however_many_are_pending() {
    let (store, _database) = support::store().await;
    let ids = enqueue_below_others(&store).await;
    let request =
        ClaimRequest { job_types: Some(vec![JobType::trusted("wanted")]), ..ClaimRequest::any(worker("w"), 10) };
    assert_eq!(store.claim_jobs(&request).await.expect("a claim").len(), 2);
    let filter = JobFilter { states: vec![JobState::Running, JobState::Dispatched], ..JobFilter::default() };
    let page = store.list_jobs(&filter, &PageRequest::first(10)).await.expect("a page");
    let mut found: Vec<JobId> = page.items.iter().map(|job| job.id).collect();
    found.reverse();
    assert_eq!((found, page.next), (ids.to_vec(), None));
    let page = store.list_jobs(&filter, &PageRequest::first(1)).await.expect("a page");
    assert_eq!((page.items[0].id, page.next), (ids[1], Some(ids[1])));
    let page = store.list_jobs(&filter, &PageRequest::after(ids[1], 1)).await.expect("a page");
    assert_eq!((page.items[0].id, page.next), (ids[0], None));
}

#[tokio::test]
async fn a_job_is_found_by_time_although_the_clock_of_its_producer_is_off() {
    let database = support::database();
    let now = Timestamp::now();
    let skew = MAX_SKEW - Duration::from_secs(60);
    for clock in [now + skew, now - skew] {
        let ids = IdSource::on(Arc::new(ManualClock::new(clock)));
        let options = PostgresOptions { ids, listen: false, ..PostgresOptions::new(database.url()) };
        let store = PostgresStore::open(options).await.expect("a store");
        let id = store.enqueue_job(job("t")).await.expect("enqueued").id;
        let created = store.job(id).await.expect("the store answers").expect("the job exists").created_at;
        for (from, to) in [(created, None), (created, Some(created + Duration::from_micros(1)))] {
            let filter = JobFilter { from: Some(from), to, ..JobFilter::default() };
            let page = store.list_jobs(&filter, &PageRequest::first(10)).await.expect("a page");
            assert_eq!(
                (page.items.iter().map(|job| job.id).collect::<Vec<_>>(), page.next),
                (vec![id], None),
                "{clock}"
            );
        }
    }
}
