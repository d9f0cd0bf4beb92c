//! Recent changes.

use std::collections::BTreeMap;

use orchestrix_core::{JobId, JobState, NewJob, Tenant, Timestamp};

use uuid::Uuid;

use super::{Harness, fixture::*};
use orchestrix_store::{
    BulkAction, ChangesPage, ChangesQuery, Fence, JobChange, JobFilter, NewOperation, OperationStep, Outcome,
    PageRequest, Pruned, Retention,
    changes::{ENQUEUED_FACTOR, LeaseCursor, MAX_CHANGE_IDS, MAX_CHANGES, REDRIVEN_RETENTION},
};

async fn look(h: &Harness, query: ChangesQuery) -> ChangesPage {
    h.store.recent_changes(&query).await.expect("a valid limit")
}

async fn recent(h: &Harness, since: Option<Timestamp>, limit: usize) -> ChangesPage {
    look(h, ChangesQuery { enqueued_since: since, finished_since: since, ..ChangesQuery::leased(limit) }).await
}

/// The changed jobs, each once. A job that appears twice must be the same both times.
fn each(recent: ChangesPage) -> BTreeMap<JobId, JobChange> {
    let mut each: BTreeMap<JobId, JobChange> = BTreeMap::new();
    for job in recent.jobs {
        let first = each.entry(job.id).or_insert_with(|| job.clone());
        assert_eq!(*first, job);
    }
    each
}

fn states(recent: ChangesPage) -> BTreeMap<JobId, JobState> {
    each(recent).into_iter().map(|(id, job)| (id, job.state)).collect()
}

/// A time before every id: ids may come from another clock than the store's.
const EVER: Timestamp = Timestamp::UNIX_EPOCH;
const BEFORE_ALL: JobId = JobId::from_uuid(Uuid::nil());

pub(super) async fn an_empty_store_has_no_changes(h: &Harness) {
    for since in [None, Some(h.now().await)] {
        assert_eq!(recent(h, since, 10).await, ChangesPage::none(h.now().await));
        let query = ChangesQuery { redriven_since: since, ids_after: Some(BEFORE_ALL), ..ChangesQuery::leased(10) };
        assert_eq!(look(h, query).await, ChangesPage::none(h.now().await));
    }
}

pub(super) async fn without_a_time_only_leased_jobs_are_returned(h: &Harness) {
    let done = h.start(job("done")).await;
    h.end(&done, Outcome::DONE).await;
    let running = h.start(job("running")).await;
    h.enqueue(job("pending")).await;
    assert_eq!(states(recent(h, None, 10).await), [(running.id(), JobState::Running)].into());
}

pub(super) async fn jobs_enqueued_or_finished_since_are_returned_in_their_current_state(h: &Harness) {
    let completed = h.start(job("t")).await;
    h.end(&completed, Outcome::DONE).await;
    let dead = h.dead(job("t")).await;
    let cancelled = h.enqueue(job("t")).await;
    h.store.cancel_job(cancelled).await.expect("a waiting job");
    let tenant = Tenant::new("acme").expect("a valid tenant");
    let running = h.start(NewJob { queue: queue("q"), tenant: tenant.clone(), ..job("kind") }).await;
    let pending = h.enqueue(job("t")).await;
    let shown = each(recent(h, Some(EVER), 10).await);
    let states: BTreeMap<JobId, JobState> = shown.iter().map(|(id, job)| (*id, job.state)).collect();
    let expected = [
        (completed.id(), JobState::Completed),
        (dead, JobState::Dead),
        (cancelled, JobState::Cancelled),
        (running.id(), JobState::Running),
        (pending, JobState::Pending),
    ];
    assert_eq!(states, expected.into());
    let glimpse = JobChange {
        id: running.id(),
        job_type: job_type("kind"),
        queue: queue("q"),
        tenant,
        state: JobState::Running,
        at: h.job(running.id()).await.updated_at,
    };
    assert_eq!(shown[&running.id()], glimpse);
    assert_eq!(shown[&dead].at, h.job(dead).await.updated_at);
}

pub(super) async fn jobs_finished_before_are_not_returned(h: &Harness) {
    let early = h.start(job("t")).await;
    h.end(&early, Outcome::DONE).await;
    let dead = h.dead(job("t")).await;
    h.advance(secs(10)).await;
    let since = h.now().await;
    let late = h.start(job("t")).await;
    h.advance(secs(1)).await;
    h.end(&late, Outcome::DONE).await;
    let shown = states(recent(h, Some(since), 10).await);
    assert_eq!(shown.get(&late.id()), Some(&JobState::Completed), "{shown:?}");
    assert_eq!((shown.get(&early.id()), shown.get(&dead)), (None, None), "{shown:?}");
}

pub(super) async fn a_job_that_is_no_longer_leased_leaves_the_leased_pages(h: &Harness) {
    let claimed = h.start(job("t")).await;
    h.end(&claimed, Outcome::fail("not yet")).await;
    assert_eq!(states(recent(h, None, 10).await), BTreeMap::new());
    h.start_again(claimed.id()).await;
    assert_eq!(states(recent(h, None, 10).await), [(claimed.id(), JobState::Running)].into());
}

pub(super) async fn each_kind_is_limited_and_the_page_says_whether_there_is_more(h: &Harness) {
    const RECORDED: usize = 2 * ENQUEUED_FACTOR + 1;
    h.enqueue_many(vec![job("t"); RECORDED]).await;
    assert!(!recent(h, Some(EVER), 3).await.more);
    let shown = recent(h, Some(EVER), 2).await;
    assert!(shown.more && each(shown).len() == RECORDED - 1);
    let claimed = h.claim_all().await;
    for claimed in &claimed {
        h.end(claimed, Outcome::DONE).await;
    }
    assert!(!recent(h, Some(EVER), RECORDED).await.more);
    let shown = recent(h, Some(EVER), RECORDED - 1).await;
    assert!(shown.more && each(shown).len() >= RECORDED - 1);
}

pub(super) async fn leased_jobs_are_paged_each_once(h: &Harness) {
    // Some leases expire at the same time, some later.
    h.enqueue_many(vec![job("t"); 3]).await;
    let mut leased: Vec<JobId> = h.claim_all().await.iter().map(|claimed| claimed.id()).collect();
    h.advance(secs(1)).await;
    leased.push(h.start(job("late")).await.id());
    leased.sort_unstable();
    let all = recent(h, None, 4).await;
    assert_eq!(all.leased_next, None);
    // A query from there returns all of them, and a later one does not.
    let begins = all.leased_from.expect("a first lease");
    for (expires_at, shown) in [(begins, 4), (begins + secs(1), 1)] {
        let leased_after = Some(LeaseCursor { expires_at, id: JobId::from_uuid(Uuid::nil()) });
        let page = look(h, ChangesQuery { leased_after, ..ChangesQuery::leased(4) }).await;
        assert_eq!((page.jobs.len(), page.leased_from), (shown, Some(expires_at)));
    }
    for limit in 1..=3 {
        let mut query = ChangesQuery::leased(limit);
        let mut shown = Vec::new();
        loop {
            let page = look(h, query).await;
            assert!(page.jobs.len() <= limit && !page.more, "{page:?}");
            shown.extend(page.jobs.iter().map(|job| job.id));
            assert!(shown.len() <= leased.len(), "{shown:?}");
            match page.leased_next {
                Some(_) => query.leased_after = page.leased_next,
                None => break,
            }
        }
        shown.sort_unstable();
        assert_eq!(shown, leased, "{limit} per page");
    }
}

pub(super) async fn only_cancelled_jobs_are_returned_from_further_back(h: &Harness) {
    let completed = h.start(job("t")).await;
    h.end(&completed, Outcome::DONE).await;
    h.dead(job("t")).await;
    let before = h.enqueue(job("t")).await;
    h.store.cancel_job(before).await.expect("a waiting job");
    h.advance(secs(10)).await;
    let reach = h.now().await;
    let cancelled = h.enqueue(job("t")).await;
    h.store.cancel_job(cancelled).await.expect("a waiting job");
    let other = h.start(job("t")).await;
    h.end(&other, Outcome::DONE).await;
    h.advance(secs(10)).await;
    for since in [None, Some(h.now().await)] {
        let query = ChangesQuery {
            enqueued_since: since,
            finished_since: since,
            cancelled_since: Some(reach),
            ..ChangesQuery::leased(10)
        };
        let shown = states(look(h, query).await);
        assert_eq!(shown.get(&cancelled), Some(&JobState::Cancelled), "{shown:?}");
        assert!([before, completed.id(), other.id()].iter().all(|id| !shown.contains_key(id)), "{shown:?}");
    }
    let late = h.enqueue(job("t")).await;
    h.store.cancel_job(late).await.expect("a waiting job");
    let query = ChangesQuery { cancelled_since: Some(reach), ..ChangesQuery::leased(1) };
    let shown = look(h, query).await;
    assert!(shown.more && each(shown).len() == 1);
}

async fn redriven_since(h: &Harness, since: Timestamp, limit: usize) -> ChangesPage {
    look(h, ChangesQuery { redriven_since: Some(since), ..ChangesQuery::leased(limit) }).await
}

pub(super) async fn redriven_jobs_are_returned_until_they_finish_again(h: &Harness) {
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(h.dead(job("t")).await);
    }
    let cancelled = h.enqueue(job("t")).await;
    h.store.cancel_job(cancelled).await.expect("a waiting job");
    h.store.retry_job(ids[0]).await.expect("a dead job");
    h.advance(secs(100)).await;
    let since = h.now().await;
    assert_eq!(states(redriven_since(h, since, 10).await), BTreeMap::new(), "that redrive is too old");
    // By id, by filter, and by a bulk operation.
    h.store.retry_job(ids[1]).await.expect("a dead job");
    let filter = JobFilter { states: vec![JobState::Cancelled], ..JobFilter::default() };
    h.store.retry_jobs(&filter, &PageRequest::first(10)).await.expect("a valid page");
    let operation = NewOperation {
        action: BulkAction::Retry,
        filter: JobFilter::default(),
        dry_run: false,
        actor: "test".into(),
        tenant: None,
    };
    let operation = h.store.begin_operation(operation).await.expect("a valid operation").id;
    let step = OperationStep { jobs: vec![ids[2]], ..OperationStep::default() };
    h.store.advance_operation(Fence::NONE, operation, step).await.expect("an operation that runs");
    let expected = [ids[1], ids[2], cancelled].map(|id| (id, JobState::Pending));
    assert_eq!(states(redriven_since(h, since, 10).await), expected.into());
    let some = redriven_since(h, since, 2).await;
    assert!(some.more && each(some).len() == 2);
    h.store.cancel_job(cancelled).await.expect("a waiting job");
    h.store.cancel_job(ids[1]).await.expect("a waiting job");
    assert_eq!(states(redriven_since(h, since, 10).await), [(ids[2], JobState::Pending)].into());
    // Finished jobs count against the limit.
    assert!(!redriven_since(h, since, 3).await.more && redriven_since(h, since, 2).await.more);
    // Returned in its current state.
    h.store.retry_job(ids[1]).await.expect("a cancelled job");
    let running = h.claim_all().await.into_iter().find(|claimed| claimed.id() == ids[1]).expect("a claimable job");
    assert_eq!(each(redriven_since(h, since, 10).await)[&running.id()].state, JobState::Running);
}

pub(super) async fn redrives_are_pruned(h: &Harness) {
    let id = h.dead(job("t")).await;
    h.store.retry_job(id).await.expect("a dead job");
    let prune = async || h.store.prune_history(Fence::NONE, &Retention::default(), 10).await.expect("a valid limit");
    h.advance(REDRIVEN_RETENTION - secs(1)).await;
    prune().await;
    assert_eq!(redriven_since(h, EVER, 10).await.jobs.len(), 1);
    h.advance(secs(1)).await;
    assert_eq!(prune().await, Pruned { count: 1, more: false });
    assert_eq!(redriven_since(h, EVER, 10).await.jobs, []);
}

pub(super) async fn ids_of_unfinished_jobs_are_paged_in_order(h: &Harness) {
    let mut waiting = h.enqueue_many(vec![job("t"); MAX_CHANGE_IDS + 1]).await;
    waiting.sort_unstable();
    let page = async |after| {
        let page = look(h, ChangesQuery { ids_after: Some(after), ..ChangesQuery::leased(MAX_CHANGES) }).await;
        assert!(page.jobs.iter().all(|job| job.state.is_leased()) && !page.more, "{:?}", page.jobs);
        (page.ids, page.ids_next)
    };
    let (ids, next) = page(BEFORE_ALL).await;
    assert!(ids == waiting[..MAX_CHANGE_IDS] && next == Some(waiting[MAX_CHANGE_IDS - 1]), "{} {next:?}", ids.len());
    assert_eq!(page(waiting[MAX_CHANGE_IDS - 1]).await, (vec![waiting[MAX_CHANGE_IDS]], None));
    assert_eq!(page(waiting[MAX_CHANGE_IDS]).await, (vec![], None));
    // Finished jobs are not listed; leased ones are.
    h.store.cancel_job(waiting[MAX_CHANGE_IDS]).await.expect("a waiting job");
    let claimed = h.claim_all().await;
    let last = claimed.iter().find(|claimed| claimed.id() == waiting[MAX_CHANGE_IDS - 1]).expect("all were claimed");
    h.end(last, Outcome::DONE).await;
    let late = h.enqueue(job("t")).await;
    assert_eq!(page(waiting[MAX_CHANGE_IDS - 3]).await, (vec![waiting[MAX_CHANGE_IDS - 2], late], None));
}

pub(super) async fn limits_out_of_range_are_refused(h: &Harness) {
    for limit in [0, MAX_CHANGES + 1] {
        assert_eq!(bad_fields(h.store.recent_changes(&ChangesQuery::leased(limit)).await), ["limit"]);
    }
}
