use futures_util::future::join_all;
use orchestrix_core::{RateLimit, Role, Timestamp};
use orchestrix_memory::MemoryStore;
use orchestrix_store::NewKey;

use super::*;
use crate::auth::{
    failed_attempts::BURST,
    key_cache::{OUTAGE_TTL, lock},
    key_lookup::LOOKUP_TIMEOUT,
};

const HERE: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

fn headers(key: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, format!("Bearer {key}").parse().unwrap());
    headers
}

fn setup() -> (Arc<dyn Store>, Authenticator) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    (Arc::clone(&store), Authenticator::new(store))
}

async fn create_key(store: &Arc<dyn Store>, rate_limit: Option<RateLimit>) -> BearerKey {
    create_key_until(store, rate_limit, None).await
}

async fn create_key_until(
    store: &Arc<dyn Store>,
    rate_limit: Option<RateLimit>,
    expires_at: Option<Timestamp>,
) -> BearerKey {
    let key = BearerKey::generate();
    let new = NewKey {
        id: key.id.clone(),
        digest: key.digest(),
        name: "n".into(),
        role: Role::Client,
        tenant: None,
        rate_limit,
        expires_at,
    };
    store.create_key(new).await.unwrap();
    key
}

impl Authenticator {
    /// The code of the error that a request with this key gets; `None` if it is authenticated.
    async fn error(&self, key: &str) -> Option<Code> {
        self.authenticate(&headers(key), HERE, StoreUse::Required).await.err().map(|error| error.problem.code)
    }

    /// As `error`, for a request that does not use the store.
    async fn error_without_store(&self, key: &str) -> Option<Code> {
        self.authenticate(&headers(key), HERE, StoreUse::None).await.err().map(|error| error.problem.code)
    }

    /// Makes the cache entry of a key older.
    fn age(&self, key: &BearerKey, by: Duration) {
        let mut valid = lock(&self.cache.valid);
        let cached = Arc::get_mut(valid.get_mut(&key.id).unwrap()).unwrap();
        cached.refresh_at -= by;
        cached.expires_at -= by;
        cached.outage_expires_at -= by;
    }
}

/// The key's id with another secret.
fn wrong_secret(key: &BearerKey) -> String {
    let text = key.reveal();
    format!("{}{}", &text[..text.len() - 64], "0".repeat(64))
}

/// Longer than a cache entry is valid.
const BEYOND_TTL: Duration = Duration::from_secs(2);
const INVALID: Option<Code> = Some(Code::Unauthenticated);
const LIMITED: Option<Code> = Some(Code::RateLimited);

#[tokio::test]
async fn a_revoked_key_is_rejected_once_its_cache_entry_has_expired() {
    let (store, auth) = setup();
    let key = create_key(&store, None).await;
    assert_eq!(auth.error(&key.reveal()).await, None);
    store.revoke_key(&key.id).await.unwrap();
    auth.age(&key, BEYOND_TTL);
    assert_eq!(auth.error(&key.reveal()).await, INVALID);
    assert!(!auth.cache.was_valid(&key.id), "the key is no longer cached");
    let error = auth.authenticate(&HeaderMap::new(), HERE, StoreUse::Required).await.unwrap_err();
    assert_eq!(error.problem.code, Code::Unauthenticated);
}

#[tokio::test]
async fn invalid_keys_are_rate_limited_and_block_no_valid_key_from_the_same_address() {
    let (store, auth) = setup();
    let (key, unseen) = (create_key(&store, None).await, create_key(&store, None).await);
    assert_eq!(auth.error(&key.reveal()).await, None);
    // A wrong secret of an existing id counts like any other failure.
    for _ in 0..BURST / 2 {
        assert_eq!(auth.error(&wrong_secret(&key)).await, INVALID);
        assert_eq!(auth.error(&BearerKey::generate().reveal()).await, INVALID);
    }
    let unknown = BearerKey::generate().reveal();
    for invalid in [&wrong_secret(&key), &wrong_secret(&unseen), &unknown, &unknown, "nonsense"] {
        assert_eq!(auth.error(invalid).await, LIMITED);
    }
    // Valid keys pass, cached or not.
    assert_eq!(auth.error(&key.reveal()).await, None);
    assert_eq!(auth.error(&unseen.reveal()).await, None);
    let other = create_key(&store, None).await;
    assert_eq!(auth.error(&other.reveal()).await, None);
    auth.age(&other, BEYOND_TTL);
    assert_eq!(auth.error(&other.reveal()).await, None, "a valid key passes after its cache entry has expired");
    // Another address has its own limit.
    let other_address = Some("10.0.0.7".parse().unwrap());
    let error = auth.authenticate(&headers(&unknown), other_address, StoreUse::Required).await.unwrap_err();
    assert_eq!(error.problem.code, INVALID.unwrap());
}

#[tokio::test]
async fn concurrent_invalid_keys_are_limited_like_sequential_ones() {
    let (_store, auth) = setup();
    let unknown: Vec<String> = (0..3 * BURST).map(|_| BearerKey::generate().reveal()).collect();
    let errors = join_all(unknown.iter().map(|key| auth.error(key))).await;
    let count = |code| errors.iter().filter(|error| **error == code).count();
    assert_eq!((count(INVALID), count(LIMITED)), (BURST as usize, 2 * BURST as usize));
}

#[tokio::test]
async fn a_refresh_does_not_reset_the_rate_limit_of_a_key() {
    let (store, auth) = setup();
    let limit = RateLimit::new(1, Duration::from_secs(3_600), 2).unwrap();
    let key = create_key(&store, Some(limit)).await;
    assert_eq!(auth.error(&key.reveal()).await, None);
    auth.age(&key, BEYOND_TTL);
    assert_eq!(auth.error(&key.reveal()).await, None);
    assert_eq!(auth.error(&key.reveal()).await, LIMITED);
    // Nor does a request with a wrong secret.
    auth.age(&key, BEYOND_TTL);
    assert_eq!(auth.error(&wrong_secret(&key)).await, INVALID);
    assert_eq!(auth.error(&key.reveal()).await, LIMITED);
}

#[tokio::test]
async fn concurrent_requests_with_one_key_share_one_lookup() {
    let (store, auth) = setup();
    let (new, known) = (create_key(&store, None).await, create_key(&store, None).await);
    assert_eq!(auth.error(&known.reveal()).await, None);
    auth.age(&known, BEYOND_TTL);
    for (key, class) in [(&new, LookupClass::New), (&known, LookupClass::Known)] {
        let blocked = auth.lookup.block(class).await;
        let (right, wrong) = (key.reveal(), wrong_secret(key));
        let requests = async {
            let right = join_all((0..20).map(|_| auth.error(&right)));
            futures_util::join!(right, auth.error(&wrong))
        };
        let release = async {
            // `join!` polls the requests first, so all of them have begun.
            assert_eq!(auth.lookup.count(), 1);
            drop(blocked);
        };
        let ((right, wrong), ()) = futures_util::join!(requests, release);
        assert!(right.iter().all(Option::is_none), "{right:?}");
        assert_eq!(wrong, INVALID);
        assert_eq!(auth.lookup.count(), 0);
    }
}

#[tokio::test]
async fn a_key_in_use_is_refreshed_in_the_background() {
    let (store, auth) = setup();
    let key = create_key(&store, None).await;
    assert_eq!(auth.error(&key.reveal()).await, None);
    let soon = Duration::from_millis(1_100);
    auth.age(&key, soon);
    let blocked = auth.lookup.block(LookupClass::Known).await;
    for _ in 0..10 {
        assert_eq!(auth.error(&key.reveal()).await, None);
    }
    assert_eq!(auth.lookup.count(), 1);
    drop(blocked);
    // Joins the running lookup.
    auth.lookup.lookup(&key.id, LookupClass::Known).await.unwrap().unwrap();
    let CacheEntry::Valid(cached) = auth.cache.get(&key.id, Instant::now()) else { panic!("the key is not cached") };
    assert!(cached.refresh_at > Instant::now(), "the entry was refreshed");
    drop(cached);
    // The background refresh finds a revoked key invalid, though the key is in use.
    store.revoke_key(&key.id).await.unwrap();
    auth.age(&key, soon);
    assert_eq!(auth.error(&key.reveal()).await, None);
    let _ = auth.lookup.lookup(&key.id, LookupClass::Known).await;
    assert_eq!(auth.error(&key.reveal()).await, INVALID);
}

#[tokio::test]
async fn a_lookup_older_than_the_cache_ttl_is_not_joined() {
    let (store, auth) = setup();
    let key = create_key(&store, None).await;
    let _blocked = auth.lookup.block(LookupClass::New).await;
    let first = auth.lookup.start(&key.id, LookupClass::New).unwrap();
    assert!(auth.lookup.start(&key.id, LookupClass::New).unwrap().same_channel(&first));
    auth.lookup.age(&key.id, LookupClass::New, BEYOND_TTL);
    assert!(!auth.lookup.start(&key.id, LookupClass::New).unwrap().same_channel(&first));
}

#[tokio::test(start_paused = true)]
async fn a_lookup_times_out_and_its_queue_is_bounded() {
    let (store, auth) = setup();
    let [valid, other] = [create_key(&store, None).await, create_key(&store, None).await];
    // Exceeds the limit, so that this address is suspicious.
    for _ in 0..BURST {
        assert_eq!(auth.error("nonsense").await, INVALID);
    }
    let blocked = auth.lookup.block(LookupClass::Suspicious).await;
    let start = tokio::time::Instant::now();
    assert_eq!(auth.error(&valid.reveal()).await, Some(Code::Unavailable));
    assert_eq!(start.elapsed(), LOOKUP_TIMEOUT);
    while auth.lookup.count() > 0 {
        tokio::task::yield_now().await;
    }
    let (concurrency, backlog) = LookupClass::Suspicious.limits();
    let waiting: Vec<_> = (0..concurrency + backlog)
        .map(|_| auth.lookup.start(&BearerKey::generate().id, LookupClass::Suspicious).unwrap())
        .collect();
    assert_eq!(auth.error(&valid.reveal()).await, LIMITED);
    // Lookups of other classes do not wait.
    let other_address = Some("10.0.0.7".parse().unwrap());
    assert!(auth.authenticate(&headers(&other.reveal()), other_address, StoreUse::Required).await.is_ok());
    assert_eq!(start.elapsed(), LOOKUP_TIMEOUT);
    for mut lookup in waiting {
        lookup.wait_for(|result| matches!(result, Some(Err(_)))).await.unwrap();
    }
    assert_eq!(start.elapsed(), 2 * LOOKUP_TIMEOUT);
    drop(blocked);
    assert_eq!(auth.error(&valid.reveal()).await, None, "the queue has room again");
}

#[tokio::test]
async fn waiting_requests_notice_a_revoked_key_and_share_one_lookup() {
    let (store, auth) = setup();
    let key = create_key(&store, None).await;
    let caller = auth.authenticate(&headers(&key.reveal()), HERE, StoreUse::Required).await.unwrap();
    assert_eq!(caller.key(), Some(&key.id));
    store.revoke_key(&key.id).await.unwrap();
    assert!(!auth.is_revoked(&caller).await, "the cache entry is still valid");
    auth.age(&key, BEYOND_TTL);
    let blocked = auth.lookup.block(LookupClass::Known).await;
    let all = join_all((0..20).map(|_| auth.is_revoked(&caller)));
    let release = async {
        assert_eq!(auth.lookup.count(), 1);
        drop(blocked);
    };
    let (all, ()) = futures_util::join!(all, release);
    assert_eq!(all, [true; 20]);
    assert_eq!(auth.recheck(&caller).await.unwrap_err().problem.code, Code::Unauthenticated);
    // A caller without a key always passes.
    assert!(auth.recheck(&Principal::unrestricted("anybody".into())).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn waiting_requests_are_not_ended_while_the_store_is_unavailable() {
    let (store, auth) = setup();
    let key = create_key(&store, None).await;
    let caller = auth.authenticate(&headers(&key.reveal()), HERE, StoreUse::Required).await.unwrap();
    store.revoke_key(&key.id).await.unwrap();
    auth.age(&key, BEYOND_TTL);
    let blocked = auth.lookup.block(LookupClass::Known).await;
    assert_eq!(
        auth.recheck(&caller).await.unwrap_err().problem.code,
        Code::Unavailable,
        "the key is not confirmed either"
    );
    assert!(!auth.is_revoked(&caller).await);
    drop(blocked);
    assert!(auth.is_revoked(&caller).await);
}

const UNAVAILABLE: Option<Code> = Some(Code::Unavailable);

#[tokio::test(start_paused = true)]
async fn during_an_outage_recently_valid_keys_authenticate_requests_that_do_not_use_the_store() {
    let (store, auth) = setup();
    let [valid, old, other] =
        [create_key(&store, None).await, create_key(&store, None).await, create_key(&store, None).await];
    for key in [&valid, &old, &other] {
        assert_eq!(auth.error(&key.reveal()).await, None);
        auth.age(key, BEYOND_TTL);
    }
    let blocked = [auth.lookup.block(LookupClass::Known).await, auth.lookup.block(LookupClass::New).await];
    assert_eq!(auth.error_without_store(&valid.reveal()).await, None);
    assert_eq!(auth.error(&valid.reveal()).await, UNAVAILABLE, "a request that uses the store");
    assert_eq!(auth.error_without_store(&wrong_secret(&valid)).await, UNAVAILABLE, "a wrong secret");
    assert_eq!(
        auth.error_without_store(&create_key(&store, None).await.reveal()).await,
        UNAVAILABLE,
        "a key that was never cached"
    );
    auth.age(&old, OUTAGE_TTL - 2 * BEYOND_TTL);
    assert_eq!(auth.error_without_store(&old.reveal()).await, None);
    auth.age(&old, BEYOND_TTL);
    assert_eq!(auth.error_without_store(&old.reveal()).await, UNAVAILABLE, "a key that was valid too long ago");
    drop(blocked);
    assert_eq!(auth.error_without_store(&old.reveal()).await, None, "the store is available again");
}

#[tokio::test(start_paused = true)]
async fn during_an_outage_revoked_and_expired_keys_are_rejected() {
    let (store, auth) = setup();
    let soon = Timestamp::now() + Duration::from_secs(60);
    let [revoked, revoked_here, expiring] = [
        create_key(&store, None).await,
        create_key(&store, None).await,
        create_key_until(&store, None, Some(soon)).await,
    ];
    for key in [&revoked, &revoked_here, &expiring] {
        assert_eq!(auth.error(&key.reveal()).await, None);
        auth.age(key, BEYOND_TTL);
    }
    // One key is revoked elsewhere and found invalid by a lookup; one is revoked on this server.
    store.revoke_key(&revoked.id).await.unwrap();
    assert_eq!(auth.error(&revoked.reveal()).await, INVALID);
    store.revoke_key(&revoked_here.id).await.unwrap();
    auth.forget(&revoked_here.id);
    assert_eq!(auth.error_without_store(&revoked_here.reveal()).await, INVALID);
    let _blocked = [auth.lookup.block(LookupClass::Known).await, auth.lookup.block(LookupClass::New).await];
    assert_eq!(auth.error_without_store(&expiring.reveal()).await, None);
    auth.age(&expiring, Duration::from_secs(60));
    // The entries of the invalid ids expire.
    auth.cache.age_invalid(BEYOND_TTL);
    for key in [&revoked, &revoked_here, &expiring] {
        assert_eq!(auth.error_without_store(&key.reveal()).await, UNAVAILABLE);
    }
}

#[tokio::test]
async fn a_lookup_that_began_before_a_revocation_does_not_restore_the_key() {
    let (store, auth) = setup();
    let key = create_key(&store, None).await;
    let started_at = Instant::now();
    let record = store.key(&key.id).await.unwrap();
    store.revoke_key(&key.id).await.unwrap();
    auth.forget(&key.id);
    assert!(auth.cache.insert(&key.id, record, started_at).is_none());
    assert!(!auth.cache.was_valid(&key.id));
    assert_eq!(auth.error(&key.reveal()).await, INVALID);
}

#[tokio::test]
async fn the_error_explains_a_malformed_header_and_an_invalid_key() {
    let (_store, auth) = setup();
    let detail = async |header: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, header.parse().unwrap());
        let problem = auth.authenticate(&headers, HERE, StoreUse::Required).await.unwrap_err().problem;
        assert_eq!(problem.code, Code::Unauthenticated);
        problem.detail
    };
    let key = BearerKey::generate().reveal();
    for header in ["Basic dTpw", "Bearer", &key] {
        assert_eq!(detail(header).await, MISSING_KEY, "{header}");
    }
    for header in ["Bearer nonsense", &format!("bearer {key}")] {
        assert_eq!(detail(header).await, INVALID_KEY, "{header}");
    }
    let mut twice = headers(&key);
    twice.append(header::AUTHORIZATION, "Bearer x".parse().unwrap());
    let error = auth.authenticate(&twice, HERE, StoreUse::Required).await.unwrap_err();
    assert_eq!(error.problem.detail, MISSING_KEY);
}
