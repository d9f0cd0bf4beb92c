//! The audit log: an entry is written before its action, gets its outcome afterwards, and is listed newest first.

use std::time::Duration;

use orchestrix_core::Tenant;

use super::{Harness, fixture::*};
use orchestrix_store::{AuditEntry, AuditFilter, Fence, NewAuditEntry, PageRequest, Retention};

fn new(actor: &str, action: &str) -> NewAuditEntry {
    NewAuditEntry { actor: actor.into(), action: action.into(), request_id: "r".into(), ..NewAuditEntry::default() }
}

async fn begin(h: &Harness, entry: NewAuditEntry) -> i64 {
    h.store.begin_audit_entry(entry).await.expect("a valid entry")
}

async fn end(h: &Harness, seq: i64, outcome: &str) -> bool {
    h.store.finish_audit_entry(seq, outcome).await.expect("a valid outcome")
}

async fn all(h: &Harness, filter: &AuditFilter) -> Vec<AuditEntry> {
    let mut all = Vec::new();
    let mut page = PageRequest::first(1_000);
    loop {
        let part = h.store.list_audit_entries(filter, &page).await.expect("a valid page");
        all.extend(part.items);
        let Some(next) = part.next else { return all };
        page = PageRequest::after(next, 1_000);
    }
}

async fn seqs(h: &Harness, filter: &AuditFilter) -> Vec<i64> {
    all(h, filter).await.into_iter().map(|entry| entry.seq).collect()
}

pub(super) async fn an_entry_is_stored_before_and_after_its_action(h: &Harness) {
    let entry = NewAuditEntry {
        actor: "key:abc".into(),
        tenant: Some(Tenant::trusted("acme")),
        action: "job.cancel".into(),
        target: Some("job/1".into()),
        detail: Some(r#"{ "why" : "so\u0000" }"#.into()),
        request_id: "req-1".into(),
    };
    let seq = begin(h, entry.clone()).await;
    let at = h.now().await;
    let NewAuditEntry { actor, tenant, action, target, detail, request_id } = entry;
    let recorded = AuditEntry { seq, at, actor, tenant, action, target, detail, request_id, outcome: None };
    assert_eq!(all(h, &AuditFilter::default()).await, std::slice::from_ref(&recorded));
    h.advance(secs(1)).await;
    assert!(end(h, seq, "202").await);
    assert!(!end(h, seq, "500").await, "the first outcome is kept");
    assert!(!end(h, seq + 1, "202").await, "there is no such entry");
    let ended = AuditEntry { outcome: Some("202".into()), ..recorded };
    assert_eq!(all(h, &AuditFilter::default()).await, [ended]);
}

pub(super) async fn entries_are_listed_newest_first_page_by_page(h: &Harness) {
    let mut begun = Vec::new();
    for _ in 0..5 {
        begun.push(begin(h, new("ann", "look")).await);
    }
    assert!(begun.is_sorted_by(|a, b| a < b), "sequence numbers increase: {begun:?}");
    let mut listed = Vec::new();
    let mut page = PageRequest::first(2);
    loop {
        let part = h.store.list_audit_entries(&AuditFilter::default(), &page).await.expect("a valid page");
        assert!(part.items.len() <= 2);
        listed.extend(part.items.into_iter().map(|entry| entry.seq));
        let Some(next) = part.next else { break };
        page = PageRequest::after(next, 2);
    }
    begun.reverse();
    assert_eq!(listed, begun);
    for limit in [0, 1_001] {
        let refused = h.store.list_audit_entries(&AuditFilter::default(), &PageRequest::first(limit)).await;
        assert_eq!(bad_fields(refused), ["limit"]);
    }
}

pub(super) async fn every_field_of_an_audit_filter_must_match(h: &Harness) {
    let start = h.now().await;
    let tenant = Some(Tenant::trusted("acme"));
    let first =
        begin(h, NewAuditEntry { target: Some("q".into()), tenant: tenant.clone(), ..new("ann", "pause") }).await;
    h.advance(secs(10)).await;
    let second = begin(h, NewAuditEntry { target: Some("q".into()), ..new("bob", "pause") }).await;
    h.advance(secs(10)).await;
    let third = begin(h, new("ann", "retry")).await;
    let any = AuditFilter::default;
    let text = |text: &str| Some(text.to_owned());
    for (filter, expected) in [
        (any(), vec![third, second, first]),
        (AuditFilter { actor: text("ann"), ..any() }, vec![third, first]),
        (AuditFilter { tenant, ..any() }, vec![first]),
        (AuditFilter { action: text("pause"), ..any() }, vec![second, first]),
        (AuditFilter { target: text("q"), ..any() }, vec![second, first]),
        (AuditFilter { actor: text("ann"), action: text("pause"), ..any() }, vec![first]),
        (AuditFilter { actor: text("an"), ..any() }, vec![]),
        (AuditFilter { actor: text("a\0"), ..any() }, vec![]),
        (AuditFilter { from: Some(start + secs(10)), ..any() }, vec![third, second]),
        (AuditFilter { to: Some(start + secs(10)), ..any() }, vec![first]),
        (AuditFilter { from: Some(start), to: Some(start + secs(20)), ..any() }, vec![second, first]),
    ] {
        assert_eq!(seqs(h, &filter).await, expected, "{filter:?}");
    }
}

pub(super) async fn a_range_of_time_is_read_page_by_page(h: &Harness) {
    let start = h.now().await;
    let mut begun = Vec::new();
    for n in 0..20 {
        begun.push(begin(h, new("ann", "look")).await);
        // Two entries per second.
        if n % 2 == 1 {
            h.advance(secs(1)).await;
        }
    }
    let filter = AuditFilter { from: Some(start + secs(3)), to: Some(start + secs(7)), ..AuditFilter::default() };
    let mut listed = Vec::new();
    let mut page = PageRequest::first(3);
    loop {
        let part = h.store.list_audit_entries(&filter, &page).await.expect("a valid page");
        assert!(part.items.len() == 3 || part.next.is_none(), "every page but the last is full");
        listed.extend(part.items.into_iter().map(|entry| entry.seq));
        let Some(next) = part.next else { break };
        page = PageRequest::after(next, 3);
    }
    let mut expected = begun[6..14].to_vec();
    expected.reverse();
    assert_eq!(listed, expected);
    let beyond = h
        .store
        .list_audit_entries(&AuditFilter::default(), &PageRequest::after(begun[0], 3))
        .await
        .expect("a valid page");
    assert_eq!((beyond.items, beyond.next), (vec![], None), "there is nothing before the first entry");
}

pub(super) async fn an_invalid_entry_is_refused(h: &Harness) {
    let long = "x".repeat(NewAuditEntry::MAX_TEXT + 1);
    let bad = NewAuditEntry {
        target: Some(long.clone()),
        detail: Some("x".repeat(NewAuditEntry::MAX_DETAIL + 1)),
        request_id: "a\nb".into(),
        ..new("", "")
    };
    assert_eq!(bad_fields(h.store.begin_audit_entry(bad).await), ["actor", "action", "target", "requestId", "detail"]);
    let seq = begin(h, new("ann", "look")).await;
    assert_eq!(bad_fields(h.store.finish_audit_entry(seq, &long).await), ["outcome"]);
    assert_eq!(bad_fields(h.store.finish_audit_entry(seq, "").await), ["outcome"]);
    assert_eq!(all(h, &AuditFilter::default()).await.len(), 1);
}

pub(super) async fn entries_are_pruned_by_age_oldest_first(h: &Harness) {
    let retention = Retention { audit: secs(100), ..Retention::default() };
    let old = [begin(h, new("ann", "a")).await, begin(h, new("ann", "b")).await, begin(h, new("ann", "c")).await];
    h.advance(secs(50)).await;
    let young = begin(h, new("ann", "d")).await;
    let prune = || async { h.store.prune_history(Fence::NONE, &retention, 2).await.expect("a valid limit") };
    h.advance(secs(50) - Duration::from_micros(1)).await;
    assert_eq!(prune().await.count, 0);
    h.advance(Duration::from_micros(1)).await;
    let pruned = prune().await;
    assert_eq!((pruned.count, pruned.more), (2, true));
    assert_eq!(seqs(h, &AuditFilter::default()).await, [young, old[2]]);
    assert_eq!(prune().await.count, 1);
    assert_eq!(seqs(h, &AuditFilter::default()).await, [young]);
    assert!(begin(h, new("ann", "e")).await > young, "sequence numbers are not reused");
}
