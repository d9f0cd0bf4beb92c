//! Keys that were shown lately. The store is asked about each every second and a half, so that one that is taken back is refused
//! soon, and a key that is used all the time costs nothing.
//!
//! Whoever shows keys that are none is not answered for a while, by address. What is known to be good passes all the same: others behind the
//! same address go on.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use axum::http::{HeaderMap, header};
use orchestrix_api::Code;
use orchestrix_core::{KeyId, RateLimit};
use orchestrix_store::{KeyDigest, KeyRecord, Store};

use super::{bucket::Bucket, caller::Caller, secret::Shown};
use crate::refusal::Refusal;

/// How long what was seen of a key is believed.
const FRESH: Duration = Duration::from_millis(1_500);
/// How long somebody waits whose key nobody knows yet.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most keys and addresses that are remembered; with more, those that matter least are forgotten.
const MOST: usize = 10_000;
/// Keys that are none, from one address: so many at once, and so many a minute.
const WRONG: (u32, u32) = (20, 60);

pub(crate) struct Keys {
    store: Arc<dyn Store>,
    known: Mutex<HashMap<KeyId, Known>>,
    wrong: Mutex<HashMap<IpAddr, Bucket>>,
    looking: tokio::sync::Mutex<()>,
}

/// A key that was good when it was looked at.
struct Known {
    until: Instant,
    digest: KeyDigest,
    caller: Caller,
    bucket: Option<Bucket>,
}

impl Keys {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, known: Mutex::default(), wrong: Mutex::default(), looking: tokio::sync::Mutex::default() }
    }

    /// Who shows a key with this request.
    pub(crate) async fn caller(&self, headers: &HeaderMap, from: Option<IpAddr>) -> Result<Caller, Refusal> {
        let shown = shown(headers).ok_or_else(|| self.refuse(headers.contains_key(header::AUTHORIZATION), from))?;
        if let Some(answer) = self.remembered(&shown) {
            return answer;
        }
        // Keys that nobody knows are looked at one after the other: many guesses at once would all be let in before the first is
        // found out. Those who bring the same new key at the same time wait for one look.
        let mut _alone = None;
        if !self.was_good(&shown) {
            self.not_guessing(from)?;
            let looking = tokio::time::timeout(PATIENCE, self.looking.lock()).await;
            _alone = Some(
                looking.map_err(|_| Refusal::new(Code::Unavailable, "keys cannot be looked at in time; try again"))?,
            );
            if let Some(answer) = self.remembered(&shown) {
                return answer;
            }
            self.not_guessing(from)?;
        }
        let asked_at = Instant::now();
        match self.store.key(&shown.id).await?.filter(KeyRecord::valid) {
            Some(record) if shown.is(Some(&record.digest)) => self.remember(&shown, record, asked_at),
            record => {
                // As long as with a key that is known.
                let _ = record.is_none() && shown.is(None);
                self.forget(&shown);
                Err(self.refuse(true, from))
            }
        }
    }

    // What is still believed of the key, if it is this one.
    fn remembered(&self, shown: &Shown) -> Option<Result<Caller, Refusal>> {
        let now = Instant::now();
        let mut known = lock(&self.known);
        let key = known.get_mut(&shown.id).filter(|key| key.until > now && shown.is(Some(&key.digest)))?;
        Some(key.take(now))
    }

    // Refuses an address that too many keys came from that are none.
    fn not_guessing(&self, from: Option<IpAddr>) -> Result<(), Refusal> {
        match from.and_then(|from| lock(&self.wrong).get_mut(&from).map(|bucket| bucket.wait(Instant::now()))) {
            Some(Err(wait)) => Err(Refusal::wait("too many keys that are none came from this address", wait)),
            _ => Ok(()),
        }
    }

    // Whether it was good when it was last looked at, however long ago: whoever shows it does not guess.
    fn was_good(&self, shown: &Shown) -> bool {
        lock(&self.known).get(&shown.id).is_some_and(|key| shown.is(Some(&key.digest)))
    }

    // What is known of a key is not lost to whoever guesses at its secret.
    fn forget(&self, shown: &Shown) {
        let mut known = lock(&self.known);
        if known.get(&shown.id).is_some_and(|key| shown.is(Some(&key.digest))) {
            known.remove(&shown.id);
        }
    }

    fn remember(&self, shown: &Shown, record: KeyRecord, asked_at: Instant) -> Result<Caller, Refusal> {
        let believed = record.expires_in.map_or(FRESH, |left| left.min(FRESH));
        let KeyRecord { key, digest, .. } = record;
        let mut known = lock(&self.known);
        let before = known.remove(&shown.id).and_then(|before| before.bucket);
        let bucket = key.rate_limit.map(|limit| match before {
            // It goes on from where it stood.
            Some(bucket) if bucket.limit() == limit => bucket,
            _ => Bucket::new(limit, asked_at),
        });
        if known.len() >= MOST {
            let now = Instant::now();
            known.retain(|_, key| key.until > now);
            if known.len() >= MOST {
                known.clear();
            }
        }
        let caller = Caller::of(format!("key:{}", key.id), key.role, key.tenant);
        let key = Known { until: asked_at + believed, digest, caller, bucket };
        known.entry(shown.id.clone()).insert_entry(key).get_mut().take(asked_at)
    }

    // Without a key there was nothing to guess.
    fn refuse(&self, guessed: bool, from: Option<IpAddr>) -> Refusal {
        if let Some(from) = from.filter(|_| guessed) {
            let now = Instant::now();
            let mut wrong = lock(&self.wrong);
            if wrong.len() >= MOST {
                wrong.retain(|_, bucket| !bucket.is_full(now));
                if wrong.len() >= MOST {
                    wrong.clear();
                }
            }
            let _ = wrong.entry(from).or_insert_with(|| Bucket::new(wrong_keys(), now)).take(now);
        }
        let text = match guessed {
            true => "the key is none, or not any more",
            false => "send a key: Authorization: Bearer KEY",
        };
        Refusal::new(Code::Unauthenticated, text)
    }
}

impl Known {
    fn take(&mut self, now: Instant) -> Result<Caller, Refusal> {
        match self.bucket.as_mut().map_or(Ok(()), |bucket| bucket.take(now)) {
            Ok(()) => Ok(self.caller.clone()),
            Err(wait) => Err(Refusal::wait("the key is used more often than it may be", wait)),
        }
    }
}

fn wrong_keys() -> RateLimit {
    RateLimit::new(WRONG.1, Duration::from_secs(60), WRONG.0).expect("the limit is within what may be set")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn shown(headers: &HeaderMap) -> Option<Shown> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let text = values.next()?.to_str().ok()?;
    // Two of them would leave it open which one counts.
    if values.next().is_some() {
        return None;
    }
    let (scheme, key) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| Shown::read(key.trim()))?
}

#[cfg(test)]
mod tests {
    use orchestrix_core::Role;
    use orchestrix_store::{MemoryStore, NewKey};

    use super::*;

    const HERE: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

    fn with(key: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, format!("Bearer {key}").parse().unwrap());
        headers
    }

    async fn make(store: &Arc<dyn Store>, rate_limit: Option<RateLimit>) -> Shown {
        let shown = Shown::fresh();
        let key = NewKey {
            id: shown.id.clone(),
            digest: shown.digest(),
            name: "n".into(),
            role: Role::Client,
            tenant: None,
            rate_limit,
            expires_at: None,
        };
        store.create_key(key).await.unwrap();
        shown
    }

    fn code(answer: Result<Caller, Refusal>) -> Option<Code> {
        answer.err().map(|refusal| refusal.0.code)
    }

    #[tokio::test]
    async fn a_key_is_good_until_it_is_taken_back_and_no_longer_than_a_moment_after() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let keys = Keys::new(Arc::clone(&store));
        let shown = make(&store, None).await;
        assert_eq!(code(keys.caller(&with(&shown.text()), HERE).await), None);
        store.revoke_key(&shown.id).await.unwrap();
        lock(&keys.known).get_mut(&shown.id).unwrap().until = Instant::now();
        assert_eq!(code(keys.caller(&with(&shown.text()), HERE).await), Some(Code::Unauthenticated));
        assert!(lock(&keys.known).is_empty(), "nothing is believed any more");
        assert_eq!(code(keys.caller(&HeaderMap::new(), HERE).await), Some(Code::Unauthenticated));
    }

    #[tokio::test]
    async fn guessing_is_slowed_down_by_address_and_holds_up_nobody_who_is_known() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let keys = Keys::new(Arc::clone(&store));
        let shown = make(&store, None).await;
        assert_eq!(code(keys.caller(&with(&shown.text()), HERE).await), None);
        // A wrong secret to a right id is a guess like any other.
        let guess = shown.text().replace(&shown.text()[20..30], "0123456789");
        for _ in 0..WRONG.0 {
            assert_eq!(code(keys.caller(&with(&guess), HERE).await), Some(Code::Unauthenticated));
        }
        let fresh = make(&store, None).await;
        assert_eq!(code(keys.caller(&with(&fresh.text()), HERE).await), Some(Code::RateLimited));
        let elsewhere = Some("10.0.0.7".parse().unwrap());
        assert_eq!(code(keys.caller(&with(&fresh.text()), elsewhere).await), None);
        assert_eq!(code(keys.caller(&with(&fresh.text()), HERE).await), None, "it is known now");
        // Nor whoever was known, and comes again after a while.
        for key in [&shown, &fresh] {
            lock(&keys.known).get_mut(&key.id).unwrap().until = Instant::now();
            assert_eq!(code(keys.caller(&with(&key.text()), HERE).await), None);
        }
        store.revoke_key(&fresh.id).await.unwrap();
        lock(&keys.known).get_mut(&fresh.id).unwrap().until = Instant::now();
        assert_eq!(code(keys.caller(&with(&fresh.text()), HERE).await), Some(Code::Unauthenticated));
        assert_eq!(code(keys.caller(&with(&fresh.text()), HERE).await), Some(Code::RateLimited), "known no more");
    }

    #[tokio::test]
    async fn many_guesses_at_once_are_as_many_as_one_after_the_other() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let keys = Keys::new(Arc::clone(&store));
        let guesses: Vec<HeaderMap> = (0..3 * WRONG.0).map(|_| with(&Shown::fresh().text())).collect();
        let answers = futures_util::future::join_all(guesses.iter().map(|guess| keys.caller(guess, HERE))).await;
        let answers: Vec<_> = answers.into_iter().map(code).collect();
        let refused = answers.iter().filter(|code| **code == Some(Code::Unauthenticated)).count();
        let turned_away = answers.iter().filter(|code| **code == Some(Code::RateLimited)).count();
        assert_eq!((refused, turned_away), (WRONG.0 as usize, 2 * WRONG.0 as usize));
    }

    #[tokio::test]
    async fn a_key_is_used_as_often_as_it_may_be_also_when_it_is_looked_at_again() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let keys = Keys::new(Arc::clone(&store));
        let limit = RateLimit::new(1, Duration::from_secs(3_600), 2).unwrap();
        let shown = make(&store, Some(limit)).await;
        assert_eq!(code(keys.caller(&with(&shown.text()), HERE).await), None);
        lock(&keys.known).get_mut(&shown.id).unwrap().until = Instant::now();
        assert_eq!(code(keys.caller(&with(&shown.text()), HERE).await), None);
        assert_eq!(code(keys.caller(&with(&shown.text()), HERE).await), Some(Code::RateLimited));
        // A wrong secret does not make it anew.
        let guess = shown.text().replace(&shown.text()[20..30], "0123456789");
        assert_eq!(code(keys.caller(&with(&guess), HERE).await), Some(Code::Unauthenticated));
        assert_eq!(code(keys.caller(&with(&shown.text()), HERE).await), Some(Code::RateLimited));
    }
}
