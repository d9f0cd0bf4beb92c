//! API keys: valid until they expire or are revoked.

use orchestrix_core::{KeyId, RateLimit, Role, Tenant, Timestamp};

use super::{Harness, fixture::*};
use orchestrix_store::{ApiKey, KeyDigest, KeyRecord, NewKey, PageRequest, StoreError};

fn id(text: &str) -> KeyId {
    KeyId::new(text).expect("a valid id")
}

fn new(text: &str) -> NewKey {
    NewKey {
        id: id(text),
        digest: KeyDigest([7; 32]),
        name: "for tests".into(),
        role: Role::Client,
        tenant: None,
        rate_limit: None,
        expires_at: None,
    }
}

async fn find(h: &Harness, text: &str) -> Option<KeyRecord> {
    h.store.key(&id(text)).await.expect("a store that answers")
}

async fn revoke(h: &Harness, text: &str) -> bool {
    h.store.revoke_key(&id(text)).await.expect("a store that answers")
}

pub(super) async fn a_key_is_stored_as_it_was_created(h: &Harness) {
    let now = h.now().await;
    let plain = h.store.create_key(new("aaaaaaaaaaaa")).await.expect("a new key");
    let bound = NewKey {
        digest: KeyDigest(std::array::from_fn(|i| i as u8)),
        name: "Ann's “key” №1".into(),
        role: Role::Operator,
        tenant: Some(Tenant::trusted("acme")),
        rate_limit: Some(RateLimit::new(10, secs(60), 1_000_000_000).expect("a valid rate")),
        expires_at: Some(now + secs(3600)),
        ..new("bbbbbbbbbbbb")
    };
    h.store.create_key(bound.clone()).await.expect("a new key");
    let expected = ApiKey {
        id: id("aaaaaaaaaaaa"),
        name: "for tests".into(),
        role: Role::Client,
        tenant: None,
        rate_limit: None,
        created_at: now,
        expires_at: None,
        revoked_at: None,
    };
    assert_eq!(plain, expected);
    let record = KeyRecord { key: expected, digest: KeyDigest([7; 32]), expires_in: None };
    assert_eq!(find(h, "aaaaaaaaaaaa").await, Some(record));
    let digest = bound.digest;
    let record = KeyRecord { key: ApiKey::of(bound, now), digest, expires_in: Some(secs(3600)) };
    assert_eq!(find(h, "bbbbbbbbbbbb").await, Some(record));
    assert_eq!(find(h, "cccccccccccc").await, None);
}

pub(super) async fn an_id_belongs_to_one_key(h: &Harness) {
    h.store.create_key(new("aaaaaaaaaaaa")).await.expect("a new key");
    let other = NewKey { digest: KeyDigest([8; 32]), role: Role::Admin, ..new("aaaaaaaaaaaa") };
    let refused = h.store.create_key(other).await;
    assert!(matches!(&refused, Err(StoreError::KeyExists(taken)) if *taken == id("aaaaaaaaaaaa")), "{refused:?}");
    let kept = find(h, "aaaaaaaaaaaa").await.expect("a key that exists");
    assert_eq!((kept.digest, kept.key.role), (KeyDigest([7; 32]), Role::Client));
}

pub(super) async fn an_invalid_key_is_refused(h: &Harness) {
    for name in ["", &"x".repeat(129), "a\nb", "a\0b"] {
        let key = NewKey { name: name.into(), ..new("aaaaaaaaaaaa") };
        assert_eq!(bad_fields(h.store.create_key(key).await), ["name"]);
    }
    let key = NewKey { expires_at: Some(Timestamp::MIN), ..new("aaaaaaaaaaaa") };
    assert_eq!(bad_fields(h.store.create_key(key).await), ["expiresAt"]);
    assert_eq!(find(h, "aaaaaaaaaaaa").await, None);
}

pub(super) async fn a_key_expires_by_the_clock_of_the_store(h: &Harness) {
    let expires_at = Some(h.now().await + secs(60));
    h.store.create_key(NewKey { expires_at, ..new("aaaaaaaaaaaa") }).await.expect("a new key");
    h.advance(secs(60) - std::time::Duration::from_micros(1)).await;
    let record = find(h, "aaaaaaaaaaaa").await.expect("a key that exists");
    assert!(!record.expired() && record.valid());
    h.advance(std::time::Duration::from_micros(1)).await;
    let record = find(h, "aaaaaaaaaaaa").await.expect("a key that exists");
    assert!(record.expired() && !record.valid());
    assert_eq!(record.expires_in, Some(secs(0)));
}

pub(super) async fn a_revoked_key_keeps_the_time_of_its_first_revocation(h: &Harness) {
    h.store.create_key(new("aaaaaaaaaaaa")).await.expect("a new key");
    h.store.create_key(new("bbbbbbbbbbbb")).await.expect("a new key");
    assert!(find(h, "aaaaaaaaaaaa").await.expect("a key that exists").valid());
    h.advance(secs(1)).await;
    let first = h.now().await;
    assert!(revoke(h, "aaaaaaaaaaaa").await);
    h.advance(secs(1)).await;
    assert!(revoke(h, "aaaaaaaaaaaa").await, "revoking again succeeds");
    let record = find(h, "aaaaaaaaaaaa").await.expect("a revoked key still exists");
    assert_eq!((record.key.revoked_at, record.valid()), (Some(first), false));
    assert!(find(h, "bbbbbbbbbbbb").await.expect("a key that exists").valid(), "other keys are not affected");
    assert!(!revoke(h, "cccccccccccc").await);
}

pub(super) async fn keys_are_listed_by_id_page_by_page(h: &Harness) {
    for name in ["cccccccccccc", "aaaaaaaaaaaa", "bbbbbbbbbbbb", "000000000000", "zzzzzzzzzzzz"] {
        h.store.create_key(new(name)).await.expect("a new key");
    }
    revoke(h, "bbbbbbbbbbbb").await;
    let mut listed = Vec::new();
    let mut page = PageRequest::first(2);
    loop {
        let part = h.store.list_keys(&page).await.expect("a valid page");
        assert!(part.items.len() <= 2);
        listed.extend(part.items.into_iter().map(|key| (key.id.to_string(), key.revoked_at.is_some())));
        let Some(next) = part.next else { break };
        page = PageRequest::after(next, 2);
    }
    let plain = |name: &str| (name.to_owned(), false);
    let expected = [
        plain("000000000000"),
        plain("aaaaaaaaaaaa"),
        ("bbbbbbbbbbbb".to_owned(), true),
        plain("cccccccccccc"),
        plain("zzzzzzzzzzzz"),
    ];
    assert_eq!(listed, expected);
    for limit in [0, 1_001] {
        assert_eq!(bad_fields(h.store.list_keys(&PageRequest::first(limit)).await), ["limit"]);
    }
}
