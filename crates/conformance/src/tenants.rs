//! Tenant scopes: what belongs to another tenant is in no list, in no cursor, and out of reach of every call.

use std::{collections::BTreeSet, sync::Arc};

use orchestrix_core::{JobId, NewJob, NewSchedule, OperationId, Overlap, ScheduleName, Tenant};

use super::{Harness, fixture::*};
use orchestrix_store::{
    AuditFilter, Backfill, BulkAction, JobFilter, NewAuditEntry, NewOperation, Outcome, PageRequest, PutResult, Result,
    StoreError, inspect::MAX_SCAN,
};

fn tenant(name: &str) -> Tenant {
    Tenant::new(name).expect("a valid name")
}

// A schedule of this tenant, every minute.
fn of(owner: &str, name: &str) -> NewSchedule {
    let job = NewJob { tenant: tenant(owner), ..job("tick") };
    NewSchedule { name: schedule_name(name), job, ..every(60) }
}

fn not_there<T: std::fmt::Debug>(result: &Result<T>) {
    assert!(matches!(result, Err(StoreError::ScheduleNotFound(name)) if name.as_str() == "s"), "{result:?}");
}

pub(super) async fn a_page_of_schedules_holds_only_those_of_the_tenant(h: &Harness) {
    // The cursor of a page that was filtered after the read would name another tenant's schedule.
    let mut own = Vec::new();
    for n in 0..30 {
        let owner = if n % 7 == 3 { "acme" } else { "other" };
        let schedule = of(owner, &format!("s{n:02}"));
        own.extend((owner == "acme").then(|| schedule.name.clone()));
        h.put(schedule).await;
    }
    let acme = tenant("acme");
    let mut listed = Vec::new();
    let mut page = PageRequest::<ScheduleName>::first(2);
    loop {
        let part = h.store.list_schedules(Some(&acme), &page).await.expect("a valid page");
        assert!(part.items.len() == 2 || part.next.is_none(), "every page but the last is full");
        listed.extend(part.items.into_iter().map(|schedule| schedule.definition.name));
        let Some(next) = part.next else { break };
        assert_eq!(Some(&next), listed.last(), "a cursor names one of the tenant's own");
        page = PageRequest::after(next, 2);
    }
    assert_eq!((own.len(), listed), (4, own));
    let none = h.store.list_schedules(Some(&tenant("unknown")), &PageRequest::first(10)).await.expect("a valid page");
    assert_eq!((none.items, none.next), (vec![], None));
}

pub(super) async fn a_cursor_does_not_reveal_a_job_of_another_tenant(h: &Harness) {
    let of = |owner: &str| NewJob { tenant: tenant(owner), ..job("any") };
    let own = h.enqueue(of("acme")).await;
    let mut others = BTreeSet::new();
    // More jobs than one page scans, enqueued in the same millisecond.
    for _ in 0..3 {
        others.extend(h.enqueue_many(vec![of("other"); MAX_SCAN / 2]).await);
    }
    let filter = JobFilter { tenant: Some(tenant("acme")), ..JobFilter::default() };
    let (mut page, mut listed, mut parts) = (PageRequest::first(10), Vec::new(), 0);
    loop {
        let part = h.store.list_jobs(&filter, &page).await.expect("a valid page");
        listed.extend(part.items.into_iter().map(|job| job.id));
        parts += 1;
        let Some(next) = part.next else { break };
        assert!(!others.contains(&next), "{next} belongs to another tenant");
        assert!(page.cursor.is_none_or(|before| next < before), "the cursor advances");
        page = PageRequest::after(next, 10);
    }
    assert_eq!((listed, parts), (vec![own], 2), "not on the first page, but on the second");
}

pub(super) async fn a_page_of_operations_holds_only_those_of_the_tenant(h: &Harness) {
    let mut own: Vec<OperationId> = Vec::new();
    for n in 0..18 {
        let owner = [Some(tenant("other")), Some(tenant("acme")), None][n % 3].clone();
        let (action, filter, actor) = (BulkAction::Cancel, JobFilter::default(), "ann".into());
        let wanted = NewOperation { action, filter, dry_run: true, actor, tenant: owner };
        let begun = h.store.begin_operation(wanted).await.expect("a valid operation");
        own.extend((n % 3 == 1).then_some(begun.id));
    }
    own.reverse();
    let acme = tenant("acme");
    let mut listed = Vec::new();
    let mut page = PageRequest::first(4);
    loop {
        let part = h.store.list_operations(Some(&acme), &page).await.expect("a valid page");
        assert!(part.items.len() == 4 || part.next.is_none(), "every page but the last is full");
        listed.extend(part.items.into_iter().map(|operation| operation.id));
        let Some(next) = part.next else { break };
        assert_eq!(Some(&next), listed.last(), "a cursor names one of the tenant's own");
        page = PageRequest::after(next, 4);
    }
    assert_eq!(listed, own);
}

pub(super) async fn a_page_of_audit_entries_holds_only_those_of_the_tenant(h: &Harness) {
    let mut own = Vec::new();
    for n in 0..12 {
        let owner = [Some(tenant("other")), Some(tenant("acme")), None][n % 3].clone();
        let (actor, action, request_id) = ("ann".into(), "look".into(), "r".into());
        let entry = NewAuditEntry { actor, action, request_id, tenant: owner, ..NewAuditEntry::default() };
        let seq = h.store.begin_audit_entry(entry).await.expect("a valid entry");
        own.extend((n % 3 == 1).then_some(seq));
        if n % 2 == 0 {
            h.advance(secs(1)).await;
        }
    }
    own.reverse();
    // By the index alone, and with a scan.
    for actor in [None, Some("ann".to_owned())] {
        let filter = AuditFilter { tenant: Some(tenant("acme")), actor, ..AuditFilter::default() };
        let mut listed = Vec::new();
        let mut page = PageRequest::first(1);
        loop {
            let part = h.store.list_audit_entries(&filter, &page).await.expect("a valid page");
            listed.extend(part.items.into_iter().map(|entry| entry.seq));
            let Some(next) = part.next else { break };
            assert!(own.contains(&next), "a cursor names one of the tenant's own");
            page = PageRequest::after(next, 1);
        }
        assert_eq!(listed, own);
    }
}

pub(super) async fn no_call_reaches_a_schedule_of_another_tenant(h: &Harness) {
    let (acme, other) = (tenant("acme"), tenant("other"));
    let first = h.begin(of("acme", "s")).await;
    h.fire_at(first + secs(600)).await;
    let (before, ledger) = (h.schedule().await, h.ledger().await);
    let jobs = h.listed(&JobFilter::default()).await.len();
    let name = schedule_name("s");
    let range = Backfill { from: first - secs(600), to: first, overlap: None };
    let page = PageRequest::first(10);

    let theirs = Some(&other);
    not_there(&h.store.put_schedule(theirs, NewSchedule { jitter: secs(7), ..of("other", "s") }).await);
    not_there(&h.store.pause_schedule(theirs, &name, Some("mine now".into())).await);
    not_there(&h.store.resume_schedule(theirs, &name).await);
    not_there(&h.store.trigger_schedule(theirs, &name).await);
    not_there(&h.store.backfill_schedule(theirs, &name, &range).await);
    not_there(&h.store.list_occurrences(theirs, &name, &page).await);
    assert_eq!(h.store.schedule(theirs, &name).await.expect("a store that answers"), None);
    assert!(!h.store.delete_schedule(theirs, &name).await.expect("a store that answers"));
    assert_eq!((h.schedule().await, h.ledger().await), (before, ledger));
    assert_eq!(h.listed(&JobFilter::default()).await.len(), jobs);

    let own = Some(&acme);
    let edited = NewSchedule { catch_up_limit: 7, ..of("acme", "s") };
    assert_eq!(h.store.put_schedule(own, edited).await.expect("a valid schedule"), PutResult::Updated);
    assert!(h.store.pause_schedule(own, &name, None).await.expect("a schedule of the tenant"));
    assert!(h.store.resume_schedule(own, &name).await.expect("a schedule of the tenant"));
    h.store.trigger_schedule(own, &name).await.expect("a schedule of the tenant");
    h.store.backfill_schedule(own, &name, &range).await.expect("a schedule of the tenant");
    assert_ne!(h.store.list_occurrences(own, &name, &page).await.expect("a schedule of the tenant").items, []);
    assert_eq!(h.store.schedule(own, &name).await.expect("a store that answers"), Some(h.schedule().await));
    assert!(h.store.delete_schedule(own, &name).await.expect("a store that answers"));
}

pub(super) async fn a_schedule_keeps_its_tenant_until_it_is_deleted(h: &Harness) {
    let (acme, other) = (tenant("acme"), tenant("other"));
    let foreign = h.store.put_schedule(Some(&acme), of("other", "s")).await;
    assert_eq!(bad_fields(foreign), ["job.tenant"]);
    assert_eq!(h.store.put_schedule(Some(&acme), of("acme", "s")).await.expect("a free name"), PutResult::Created);
    let before = h.schedule().await;
    // Not even an unscoped call can change the tenant.
    let given = h.store.put_schedule(None, of("other", "s")).await.expect_err("refused");
    let text = "invalid request: job.tenant: must stay `acme`: delete the schedule to change its tenant";
    assert_eq!(given.to_string(), text);
    not_there(&h.store.put_schedule(Some(&other), of("other", "s")).await);
    assert_eq!(h.schedule().await, before);
    assert!(h.store.delete_schedule(None, &schedule_name("s")).await.expect("a store that answers"));
    assert_eq!(h.store.put_schedule(Some(&other), of("other", "s")).await.expect("a free name"), PutResult::Created);
    not_there(&h.store.put_schedule(Some(&acme), of("acme", "s")).await);
}

pub(super) async fn a_reused_schedule_name_inherits_nothing_from_its_former_tenant(h: &Harness) {
    let cancelling = |owner| NewSchedule { overlap: Overlap::CancelRunning, ..of(owner, "s") };
    let first = h.begin(cancelling("acme")).await;
    h.fire_at(first).await;
    let running = h.claim_one().await;
    assert_eq!((h.ledger().await.len(), h.schedule().await.open_jobs), (1, vec![running.id()]));
    h.advance(secs(2)).await;
    assert!(h.store.delete_schedule(None, &schedule_name("s")).await.expect("a store that answers"));
    h.put(cancelling("other")).await;
    let taken = h.schedule().await;
    assert_eq!((h.ledger().await, taken.open_jobs, taken.last_fired_at), (vec![], vec![], None));
    // The nominal time that the first schedule fired is free, and its job keeps running.
    let range = Backfill { from: first, to: first + secs(1), overlap: None };
    let filled = h.store.backfill_schedule(Some(&tenant("other")), &schedule_name("s"), &range).await;
    assert_eq!(filled.expect("a valid range"), 1);
    assert_eq!(h.job_of(first).await.tenant, tenant("other"));
    assert!(!h.job(running.id()).await.cancel_requested, "it belongs to another tenant");
}

// A job of acme with these parents.
fn waiting<const N: usize>(parents: [JobId; N]) -> NewJob {
    NewJob { tenant: tenant("acme"), ..child_of(parents) }
}

fn refused<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.expect_err("a parent that is not there").to_string()
}

pub(super) async fn a_parent_of_another_tenant_is_refused_like_an_unknown_one(h: &Harness) {
    let theirs = || NewJob { tenant: tenant("other"), ..job("any") };
    let mut foreign = Vec::new();
    for end in [Outcome::DONE, fatal("no use")] {
        let started = h.start(theirs()).await;
        h.end(&started, end).await;
        foreign.push(started.id());
    }
    foreign.push(h.start(theirs()).await.id());
    foreign.push(h.enqueue(NewJob { hold: true, ..theirs() }).await);
    foreign.push(h.enqueue(theirs()).await);
    foreign.push(h.enqueue(theirs()).await);
    h.store.cancel_job(foreign[5]).await.expect("a waiting job");
    let own = h.enqueue(NewJob { tenant: tenant("acme"), ..job("any") }).await;
    let keyed = |job: NewJob| NewJob { idempotency_key: key("used"), ..job };
    let kept = h.enqueue(keyed(NewJob { tenant: tenant("acme"), ..job("child") })).await;
    let unknown = unknown_id();
    let mut before = Vec::new();
    for id in &foreign {
        before.push(h.job(*id).await);
    }
    let recorded = h.listed(&JobFilter::default()).await.len();
    for id in foreign.iter().copied() {
        let with_unknown_id = |text: String| text.replace(&id.to_string(), &unknown.to_string());
        let alone = refused(h.store.enqueue_job(waiting([id])).await);
        assert_eq!(alone, format!("invalid request: dependsOn: there is no job {id}"));
        let call = |parent| vec![waiting([own]), waiting([parent, own])];
        let together = refused(h.store.enqueue_jobs(call(id)).await);
        assert_eq!(with_unknown_id(together), refused(h.store.enqueue_jobs(call(unknown)).await));
        // Beside an unknown parent, both are named, in the order of their ids.
        let both = h.store.enqueue_job(waiting([id, own, unknown])).await;
        assert_eq!(bad_fields(both), ["dependsOn", "dependsOn"]);
        // A reused key is reported first, as always.
        let reused = h.store.enqueue_job(keyed(waiting([id]))).await;
        assert!(matches!(reused, Err(StoreError::IdempotencyKeyReused { existing }) if existing == kept), "{reused:?}");
    }
    assert_eq!(h.listed(&JobFilter::default()).await.len(), recorded);
    for (id, before) in foreign.iter().zip(before) {
        assert_eq!(h.job(*id).await, before);
    }
    h.enqueue(waiting([own])).await;
}

pub(super) async fn jobs_of_several_tenants_in_one_call_depend_only_on_their_own(h: &Harness) {
    let of = |owner: &str, job: NewJob| NewJob { tenant: tenant(owner), ..job };
    let (mine, theirs) = (h.enqueue(of("acme", job("any"))).await, h.enqueue(of("other", job("any"))).await);
    let call = |a, b| vec![of("acme", child_of([a])), of("other", child_of([b]))];
    let crossed = h.store.enqueue_jobs(call(theirs, mine)).await;
    assert_eq!(bad_fields(crossed), ["jobs[0].dependsOn", "jobs[1].dependsOn"]);
    // The same id is known to one tenant and not to the other, in either order.
    assert_eq!(bad_fields(h.store.enqueue_jobs(call(mine, mine)).await), ["jobs[1].dependsOn"]);
    assert_eq!(bad_fields(h.store.enqueue_jobs(call(theirs, theirs)).await), ["jobs[0].dependsOn"]);
    let named = |owner, name: &str| of(owner, NewJob { reference: Some(name.into()), ..job("any") });
    let after = |owner, name| of(owner, NewJob { depends_on: vec![reference(name)], ..job("any") });
    let by_name = vec![named("acme", "a"), after("acme", "a"), after("other", "a")];
    assert_eq!(bad_fields(h.store.enqueue_jobs(by_name).await), ["jobs[2].dependsOn[0]"]);
    assert_eq!(h.listed(&JobFilter::default()).await.len(), 2);
    let together = h.enqueue_many([call(mine, theirs), vec![named("acme", "a"), after("acme", "a")]].concat()).await;
    assert_eq!((h.job(together[0]).await.depends_on, h.job(together[1]).await.depends_on), (vec![mine], vec![theirs]));
}

pub(super) async fn of_tenants_that_create_one_name_concurrently_one_succeeds(h: &Harness) {
    let owners: Vec<String> = (0..8).map(|n| format!("t{n}")).collect();
    let tasks = owners.iter().cloned().map(|owner| {
        let store = Arc::clone(&h.store);
        tokio::spawn(async move {
            let put = store.put_schedule(Some(&tenant(&owner)), of(&owner, "s")).await;
            (owner, put)
        })
    });
    let mut has = BTreeSet::new();
    for task in tasks.collect::<Vec<_>>() {
        match task.await.expect("no panic") {
            (owner, Ok(put)) => {
                assert_eq!(put, PutResult::Created);
                has.insert(owner);
            }
            (_, refused) => not_there(&refused),
        }
    }
    let kept = h.schedule().await.definition.job.tenant;
    assert_eq!(has.into_iter().collect::<Vec<_>>(), [kept.as_str()]);
}
