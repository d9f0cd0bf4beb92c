//! Bulk operations: limited in number, advanced in steps by the leader, each step applied once.

use std::{sync::Arc, time::Duration};

use orchestrix_core::{JobId, JobState, NewJob, NodeName, OperationId, Tag, Tenant, Timestamp};

use super::{Harness, fixture::*};
use orchestrix_store::{
    BulkAction, Fence, JobFilter, Leadership, NewOperation, Operation, OperationEnd, OperationState, OperationStep,
    Outcome, PageRequest, Result, Retention, StoreError,
};

fn new() -> NewOperation {
    NewOperation {
        action: BulkAction::Cancel,
        filter: JobFilter::default(),
        dry_run: false,
        actor: "ann".into(),
        tenant: None,
    }
}

async fn begin(h: &Harness) -> OperationId {
    h.store.begin_operation(new()).await.expect("a valid operation").id
}

async fn find(h: &Harness, id: OperationId) -> Operation {
    h.store.operation(id).await.expect("a store that answers").expect("an operation that exists")
}

async fn advance(h: &Harness, id: OperationId, step: OperationStep) -> Operation {
    h.store.advance_operation(Fence::NONE, id, step).await.expect("an operation that exists")
}

fn job_id(n: u8) -> JobId {
    JobId::new(Timestamp::UNIX_EPOCH, [n; 10])
}

// A step over ten unknown jobs.
fn step(from: Option<u8>, to: u8) -> OperationStep {
    let jobs = (0..10).map(|_| unknown_id()).collect();
    OperationStep { from_cursor: from.map(job_id), cursor: Some(job_id(to)), jobs, end: None }
}

// The first step, over these jobs.
fn on(jobs: &[JobId]) -> OperationStep {
    OperationStep { cursor: jobs.last().copied(), jobs: jobs.to_vec(), ..OperationStep::default() }
}

async fn begin_to(h: &Harness, action: BulkAction, filter: JobFilter) -> OperationId {
    h.store.begin_operation(NewOperation { action, filter, ..new() }).await.expect("a valid operation").id
}

fn counts(operation: &Operation) -> (u64, u64, u64) {
    (operation.matched, operation.changed, operation.refused)
}

// The fences of a deposed leader and of its successor.
async fn deposed_and_leading(h: &Harness) -> [Fence; 2] {
    let mut fences = Vec::new();
    for name in ["a", "b"] {
        let led =
            h.store.campaign_for_leadership(&NodeName::trusted(name), secs(10), None).await.expect("a valid term");
        let Leadership::Leading(epoch) = led else { panic!("{led:?}") };
        fences.push(Fence::of(epoch, secs(5)));
        h.advance(secs(10)).await;
    }
    [fences[0], fences[1]]
}

fn unknown() -> OperationId {
    OperationId::after(None, Timestamp::UNIX_EPOCH, rand::random())
}

fn not_there<T: std::fmt::Debug>(result: &Result<T>, id: OperationId) {
    assert!(matches!(result, Err(StoreError::OperationNotFound(unknown)) if *unknown == id), "{result:?}");
}

pub(super) async fn an_operation_is_stored_as_it_was_requested(h: &Harness) {
    let now = h.now().await;
    let from = now - secs(60);
    let filter = JobFilter {
        states: vec![JobState::Dead, JobState::Pending],
        queue: Some(queue("q")),
        job_type: Some(job_type("t:1")),
        tenant: Some(Tenant::trusted("acme")),
        tag: Some(Tag::trusted("x:y")),
        text: Some("so\0 “what”".into()),
        from: Some(from),
        to: Some(now),
    };
    let wanted = NewOperation {
        action: BulkAction::Priority(priority(-7)),
        filter: filter.clone(),
        dry_run: true,
        actor: "key:abc".into(),
        tenant: Some(Tenant::trusted("acme")),
    };
    let begun = h.store.begin_operation(wanted).await.expect("a valid operation");
    let expected = Operation {
        id: begun.id,
        action: BulkAction::Priority(priority(-7)),
        filter,
        dry_run: true,
        state: OperationState::Running,
        cursor: None,
        matched: 0,
        changed: 0,
        refused: 0,
        created_at: now,
        updated_at: now,
        finished_at: None,
        error: None,
        actor: "key:abc".into(),
        tenant: Some(Tenant::trusted("acme")),
    };
    assert_eq!(begun, expected);
    assert_eq!(find(h, begun.id).await, expected);
    assert_eq!(h.store.operation(unknown()).await.expect("a store that answers"), None);
}

pub(super) async fn jobs_enqueued_later_are_excluded(h: &Harness) {
    let before = h.enqueue(job("before")).await;
    let ahead = JobFilter { to: Some(h.now().await + secs(3600)), ..JobFilter::default() };
    let mut filters = Vec::new();
    for filter in [JobFilter::default(), ahead] {
        let begun = h.store.begin_operation(NewOperation { filter, ..new() }).await.expect("a valid operation");
        filters.push(begun.filter);
    }
    h.advance(Duration::from_micros(1)).await;
    h.enqueue(job("after")).await;
    for filter in filters {
        assert_eq!(h.listed(&filter).await, [before]);
    }
}

pub(super) async fn an_invalid_operation_is_refused(h: &Harness) {
    for actor in ["", "a\nb", &"x".repeat(NewOperation::MAX_ACTOR + 1)] {
        let bad = NewOperation { actor: actor.into(), ..new() };
        assert_eq!(bad_fields(h.store.begin_operation(bad).await), ["actor"]);
    }
    let text = Some("x".repeat(NewOperation::MAX_FILTER));
    let bad = NewOperation { filter: JobFilter { text, ..JobFilter::default() }, ..new() };
    assert_eq!(bad_fields(h.store.begin_operation(bad).await), ["filter"]);
    let id = begin(h).await;
    for error in ["x".repeat(OperationStep::MAX_ERROR + 1), "a\0b".into()] {
        let step = OperationStep { end: Some(OperationEnd::Failed(error)), ..OperationStep::default() };
        assert_eq!(bad_fields(h.store.advance_operation(Fence::NONE, id, step).await), ["error"]);
    }
    assert_eq!(find(h, id).await.state, OperationState::Running);
}

pub(super) async fn steps_add_up_until_the_last(h: &Harness) {
    let id = begin(h).await;
    h.advance(secs(1)).await;
    let first = advance(h, id, step(None, 1)).await;
    assert_eq!((first.cursor, first.matched, first.changed, first.refused), (Some(job_id(1)), 10, 0, 10));
    assert_eq!((first.state, first.updated_at, first.finished_at), (OperationState::Running, h.now().await, None));
    h.advance(secs(1)).await;
    let last = advance(h, id, OperationStep { end: Some(OperationEnd::Done), ..step(Some(1), 2) }).await;
    let now = h.now().await;
    assert_eq!((last.cursor, last.matched, last.changed, last.refused), (Some(job_id(2)), 20, 0, 20));
    assert_eq!((last.state, last.updated_at, last.finished_at), (OperationState::Done, now, Some(now)));
    assert_eq!(find(h, id).await, last);
}

pub(super) async fn a_step_is_applied_once(h: &Harness) {
    let id = begin(h).await;
    let first = advance(h, id, step(None, 1)).await;
    h.advance(secs(1)).await;
    assert_eq!(advance(h, id, step(None, 1)).await, first, "its start has already been passed");
    assert_eq!(advance(h, id, step(Some(2), 3)).await, first, "its start has not been reached");
    let done = OperationStep { end: Some(OperationEnd::Done), ..step(None, 1) };
    assert_eq!(advance(h, id, done).await, first, "nor does it end the operation");
    let second = advance(h, id, step(Some(1), 2)).await;
    assert_eq!((second.matched, second.cursor), (20, Some(job_id(2))));
    assert_eq!(find(h, id).await, second);
}

pub(super) async fn of_many_concurrent_equal_steps_one_is_applied(h: &Harness) {
    let id = begin(h).await;
    let steps = (0..8).map(|_| {
        let store = std::sync::Arc::clone(&h.store);
        tokio::spawn(async move { store.advance_operation(Fence::NONE, id, step(None, 1)).await })
    });
    for task in steps.collect::<Vec<_>>() {
        task.await.expect("no panic").expect("an operation that exists");
    }
    assert_eq!(find(h, id).await.matched, 10);
}

pub(super) async fn a_finished_operation_does_not_change(h: &Harness) {
    let [done, failed, aborted] = [begin(h).await, begin(h).await, begin(h).await];
    advance(h, done, OperationStep { end: Some(OperationEnd::Done), ..OperationStep::default() }).await;
    advance(h, failed, OperationStep { end: Some(OperationEnd::Failed("no use".into())), ..OperationStep::default() })
        .await;
    let stopped = h.store.abort_operation(aborted).await.expect("a running operation");
    let now = h.now().await;
    assert_eq!((stopped.state, stopped.finished_at), (OperationState::Aborted, Some(now)));
    assert_eq!(find(h, failed).await.error.as_deref(), Some("no use"));
    h.advance(secs(1)).await;
    for id in [done, failed, aborted] {
        let before = find(h, id).await;
        assert_eq!(advance(h, id, step(None, 1)).await, before);
        assert_eq!(h.store.abort_operation(id).await.expect("an operation that exists"), before);
        assert_eq!(find(h, id).await, before);
    }
    let id = unknown();
    not_there(&h.store.abort_operation(id).await, id);
    not_there(&h.store.advance_operation(Fence::NONE, id, step(None, 1)).await, id);
}

pub(super) async fn a_deposed_leader_cannot_advance_an_operation(h: &Harness) {
    let id = begin(h).await;
    let jobs = newest_first(h.enqueue_many(vec![job("t"); 3]).await);
    let [deposed, leading] = deposed_and_leading(h).await;
    let refused = h.store.advance_operation(deposed, id, on(&jobs)).await;
    assert!(matches!(refused, Err(StoreError::Deposed { .. })), "{refused:?}");
    assert_eq!(find(h, id).await.cursor, None);
    for id in &jobs {
        assert_eq!(h.state(*id).await, JobState::Pending, "the job is unchanged");
    }
    let moved = h.store.advance_operation(leading, id, on(&jobs)).await.expect("the leader's step");
    assert_eq!((moved.cursor, counts(&moved)), (Some(jobs[2]), (3, 3, 0)));
    for id in jobs {
        assert_eq!(h.state(id).await, JobState::Cancelled);
    }
}

pub(super) async fn a_step_applies_to_the_jobs_that_allow_it(h: &Harness) {
    let done = h.start(job("done")).await;
    h.end(&done, Outcome::DONE).await;
    let dead = h.dead(job("dead")).await;
    let running = h.start(job("running")).await.id();
    let waiting = h.enqueue(job("waiting")).await;
    let held = h.enqueue(NewJob { hold: true, ..job("held") }).await;
    let jobs = [held, waiting, running, dead, done.id(), unknown_id()];
    let states = async || {
        let mut states = Vec::new();
        for id in [held, waiting, running, dead, done.id()] {
            states.push(h.state(id).await);
        }
        states
    };
    use JobState::{Cancelled, Completed, Created, Dead, Pending, Running};

    let dry = NewOperation { dry_run: true, ..new() };
    let dry = h.store.begin_operation(dry).await.expect("a valid operation").id;
    assert_eq!(counts(&advance(h, dry, on(&jobs)).await), (6, 0, 0), "it only counts");
    assert_eq!(states().await, [Created, Pending, Running, Dead, Completed]);

    let urgent = begin_to(h, BulkAction::Priority(priority(7)), JobFilter::default()).await;
    assert_eq!(counts(&advance(h, urgent, on(&jobs)).await), (6, 3, 3));
    for id in [held, waiting, running] {
        assert_eq!(h.job(id).await.priority, priority(7));
    }
    assert_eq!(h.job(dead).await.priority, priority(0));

    let cancel = begin_to(h, BulkAction::Cancel, JobFilter::default()).await;
    assert_eq!(counts(&advance(h, cancel, on(&jobs)).await), (6, 3, 3));
    assert_eq!(states().await, [Cancelled, Cancelled, Running, Dead, Completed]);
    assert!(h.job(running).await.cancel_requested, "its owner has a cancel request");

    let retry = begin_to(h, BulkAction::Retry, JobFilter::default()).await;
    assert_eq!(counts(&advance(h, retry, on(&jobs)).await), (6, 3, 3));
    assert_eq!(states().await, [Pending, Pending, Running, Pending, Completed]);
    assert_eq!(h.claim_all().await.len(), 3);
}

pub(super) async fn a_job_that_left_the_states_of_the_filter_is_not_changed(h: &Harness) {
    let started = h.start(job("t")).await.id();
    let waiting = h.enqueue(job("t")).await;
    let cancelled = h.enqueue(job("t")).await;
    h.store.cancel_job(cancelled).await.expect("a waiting job");
    let states = |states: &[JobState]| JobFilter { states: states.to_vec(), ..JobFilter::default() };
    let cancel = begin_to(h, BulkAction::Cancel, states(&[JobState::Pending])).await;
    assert_eq!(counts(&advance(h, cancel, on(&[waiting, started])).await), (2, 1, 1));
    assert!(!h.job(started).await.cancel_requested);
    let retry = begin_to(h, BulkAction::Retry, states(&[JobState::Dead])).await;
    assert_eq!(counts(&advance(h, retry, on(&[cancelled])).await), (1, 0, 1));
    assert_eq!(h.state(cancelled).await, JobState::Cancelled);
}

pub(super) async fn a_step_settles_the_dependents_of_jobs_that_it_ends(h: &Harness) {
    let parents = newest_first(h.enqueue_many(vec![job("t"); 2]).await);
    let child = h.enqueue(child_of([parents[0], parents[1]])).await;
    let grandchild = h.enqueue(child_of([child])).await;
    let id = begin(h).await;
    assert_eq!(counts(&advance(h, id, on(&parents)).await), (2, 2, 0));
    for id in [child, grandchild] {
        assert_eq!(h.state(id).await, JobState::Cancelled);
    }
}

pub(super) async fn a_job_that_a_step_cancels_with_its_parent_is_counted_as_changed(h: &Harness) {
    let parent = h.enqueue(job("t")).await;
    let child = h.enqueue(child_of([parent])).await;
    let id = begin(h).await;
    assert_eq!(counts(&advance(h, id, on(&[parent, child])).await), (2, 2, 0));
    assert_eq!(h.state(child).await, JobState::Cancelled);
}

pub(super) async fn a_step_that_is_not_applied_changes_no_job(h: &Harness) {
    let jobs = newest_first(h.enqueue_many(vec![job("t"); 4]).await);
    let [stopped, moved] = [begin(h).await, begin(h).await];
    h.store.abort_operation(stopped).await.expect("a running operation");
    advance(h, moved, on(&jobs[..1])).await;
    for (id, late) in [(stopped, on(&jobs[1..])), (moved, on(&jobs[1..]))] {
        let before = find(h, id).await;
        assert_eq!(advance(h, id, late).await, before);
    }
    for id in &jobs[1..] {
        assert_eq!(h.state(*id).await, JobState::Pending);
    }
    let many = OperationStep { jobs: vec![unknown_id(); OperationStep::MAX_JOBS + 1], ..OperationStep::default() };
    assert_eq!(bad_fields(h.store.advance_operation(Fence::NONE, moved, many).await), ["jobs"]);
}

pub(super) async fn no_step_is_applied_after_an_abort_and_all_earlier_ones_are_counted(h: &Harness) {
    let jobs = newest_first(h.enqueue_many(vec![job("t"); 400]).await);
    let id = begin(h).await;
    // Concurrent leaders on the same jobs.
    let tasks: Vec<_> = (0..3)
        .map(|_| {
            let (store, jobs) = (Arc::clone(&h.store), jobs.clone());
            tokio::spawn(async move {
                for _ in 0..jobs.len() {
                    let now =
                        store.operation(id).await.expect("a store that answers").expect("an operation that exists");
                    let from =
                        now.cursor.map_or(0, |at| jobs.iter().position(|id| *id == at).expect("one of them") + 1);
                    let rest: Vec<JobId> = jobs[from..].iter().take(2).copied().collect();
                    if now.state != OperationState::Running || rest.is_empty() {
                        return;
                    }
                    let step = OperationStep { from_cursor: now.cursor, ..on(&rest) };
                    store.advance_operation(Fence::NONE, id, step).await.expect("an operation that exists");
                }
            })
        })
        .collect();
    while find(h, id).await.changed < 20 {
        tokio::task::yield_now().await;
    }
    let stopped = h.store.abort_operation(id).await.expect("an operation that exists");
    let cancelled = JobFilter { states: vec![JobState::Cancelled], ..JobFilter::default() };
    let done = h.listed(&cancelled).await.len();
    for task in tasks {
        task.await.expect("no panic");
    }
    assert_eq!(stopped.state, OperationState::Aborted);
    assert_eq!(find(h, id).await, stopped);
    assert_eq!((counts(&stopped), h.listed(&cancelled).await.len()), ((done as u64, done as u64, 0), done));
}

pub(super) async fn operations_are_listed_newest_first(h: &Harness) {
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(begin(h).await);
    }
    h.store.abort_operation(ids[1]).await.expect("a running operation");
    let mut listed = Vec::new();
    let mut page = PageRequest::first(2);
    loop {
        let part = h.store.list_operations(None, &page).await.expect("a valid page");
        assert!(part.items.len() <= 2);
        listed.extend(part.items.into_iter().map(|operation| operation.id));
        let Some(next) = part.next else { break };
        page = PageRequest::after(next, 2);
    }
    let newest_first: Vec<OperationId> = ids.iter().rev().copied().collect();
    assert_eq!(listed, newest_first);
}

pub(super) async fn running_operations_take_turns(h: &Harness) {
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(begin(h).await);
        h.advance(secs(1)).await;
    }
    h.store.abort_operation(ids[1]).await.expect("a running operation");
    let open = |limit| async move {
        let open = h.store.open_operations(limit).await.expect("a valid limit");
        open.into_iter().map(|operation| operation.id).collect::<Vec<_>>()
    };
    assert_eq!(open(100).await, [ids[0], ids[2], ids[3]], "least recently advanced first");
    assert_eq!(open(2).await, [ids[0], ids[2]]);
    advance(h, ids[0], step(None, 1)).await;
    assert_eq!(open(100).await, [ids[2], ids[3], ids[0]], "it was advanced");
    h.advance(secs(1)).await;
    advance(h, ids[2], step(Some(9), 1)).await;
    assert_eq!(open(1).await, [ids[2]], "a step that was not applied is no turn");
    advance(h, ids[2], OperationStep::default()).await;
    assert_eq!(open(100).await, [ids[3], ids[0], ids[2]], "a step that changes nothing is one");
    assert_eq!(bad_fields(h.store.open_operations(0).await), ["limit"]);
    assert_eq!(bad_fields(h.store.open_operations(101).await), ["limit"]);
}

// Begins operations concurrently. Returns how many were refused because `limit` were running.
async fn begin_at_once(h: &Harness, wanted: impl Iterator<Item = Option<Tenant>>, limit: usize) -> usize {
    let tasks = wanted.map(|tenant| {
        let store = std::sync::Arc::clone(&h.store);
        tokio::spawn(async move { store.begin_operation(NewOperation { tenant, ..new() }).await })
    });
    let mut refused = 0;
    for task in tasks.collect::<Vec<_>>() {
        match task.await.expect("no panic") {
            Ok(_) => {}
            Err(StoreError::TooManyOperations(open)) if open == limit => refused += 1,
            Err(error) => panic!("failed with another error: {error:?}"),
        }
    }
    refused
}

pub(super) async fn a_tenant_has_at_most_twenty_running_operations(h: &Harness) {
    let each = NewOperation::MAX_OPEN_EACH;
    // Actors bound to no tenant share one quota.
    for tenant in [Some(Tenant::trusted("acme")), None, Some(Tenant::trusted("other"))] {
        let first = h.store.begin_operation(NewOperation { tenant: tenant.clone(), ..new() }).await;
        let first = first.expect("operations of other tenants do not count").id;
        let more = std::iter::repeat_n(tenant.clone(), each + 3);
        assert_eq!(begin_at_once(h, more, each).await, 4, "{tenant:?}");
        h.store.abort_operation(first).await.expect("a running operation");
        h.store.begin_operation(NewOperation { tenant, ..new() }).await.expect("a free slot");
    }
}

pub(super) async fn at_most_a_hundred_operations_run(h: &Harness) {
    let first = begin(h).await;
    // None of the ten tenants reaches its own quota.
    let tenants = (0..NewOperation::MAX_OPEN + 3).map(|n| Some(Tenant::trusted(&format!("t{}", n % 10))));
    assert_eq!(begin_at_once(h, tenants, NewOperation::MAX_OPEN).await, 4);
    h.store.abort_operation(first).await.expect("a running operation");
    begin(h).await;
}

pub(super) async fn operations_are_pruned_after_their_retention(h: &Harness) {
    let retention = Retention { operations: secs(100), ..Retention::default() };
    let running = begin(h).await;
    let [first, second] = [begin(h).await, begin(h).await];
    h.advance(secs(1000)).await;
    for id in [second, first] {
        h.store.abort_operation(id).await.expect("a running operation");
        h.advance(secs(1)).await;
    }
    h.advance(secs(98)).await;
    let known = || async {
        while h.store.prune_history(Fence::NONE, &retention, 10).await.expect("a valid limit").more {}
        let page = h.store.list_operations(None, &PageRequest::first(10)).await.expect("a valid page");
        page.items.into_iter().map(|operation| operation.id).collect::<Vec<_>>()
    };
    assert_eq!(known().await, [first, running], "the one that finished a hundred seconds ago is gone");
    h.advance(secs(1)).await;
    assert_eq!(known().await, [running], "a running operation is never pruned");
}
