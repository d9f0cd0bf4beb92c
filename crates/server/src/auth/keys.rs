//! Who shows a key. What was seen of one is believed for a second and a half, so one that is taken back is refused soon, and a key that
//! is used all the time is looked at once a second by nobody who waits for it.
//!
//! A secret has 256 random bits and ids are random too, so there is nothing to guess, and no limit here is against guessing: it is against
//! load. What costs something is a look at the store for an id that nobody knows, and `looks` bounds how many of those there are at once. A
//! bucket for each address counts keys that are none, and nothing else, and decides two things: whether those are told to wait, and in which
//! line a key from there is looked at that nobody knows. It is asked only after a key was found to be none: one that is good is never refused
//! for others' wrong ones. (Only where so many made-up ids come from its own address at once that their line is full, which a client sees
//! as "try again", does a new one have to.)

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::http::{HeaderMap, header};
use orchestrix_api::Code;
use orchestrix_core::{KeyId, RateLimit};
use orchestrix_store::Store;

use super::{
    bucket::Bucket,
    caller::Caller,
    looks::{Line, Looks},
    memory::{Belief, MOST, Memory, lock},
    secret::Shown,
};
use crate::refusal::Refusal;

/// Keys that are none, from one address: so many at once, and so many a minute.
const WRONG: (u32, u32) = (20, 60);

pub(crate) struct Keys {
    memory: Arc<Memory>,
    looks: Arc<Looks>,
    wrong: Mutex<HashMap<IpAddr, Bucket>>,
}

impl Keys {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        let memory = Arc::<Memory>::default();
        Self { looks: Looks::new(store, Arc::clone(&memory)), memory, wrong: Mutex::default() }
    }

    /// Who shows a key with this request.
    pub(crate) async fn caller(&self, headers: &HeaderMap, from: Option<IpAddr>) -> Result<Caller, Refusal> {
        let Some(shown) = shown(headers) else {
            return Err(match headers.contains_key(header::AUTHORIZATION) {
                true => self.none(from),
                // There is nothing wrong with it yet.
                false => Refusal::new(Code::Unauthenticated, "send a key: Authorization: Bearer KEY"),
            });
        };
        let digest = shown.digest();
        let now = Instant::now();
        let known = match self.memory.of(&shown.id, now) {
            Belief::Good(known) => {
                if known.again <= now {
                    // Whatever comes of it, whoever comes when this is believed no more hears of it.
                    let _ = self.looks.begin(&shown.id, Line::Met);
                }
                Some(known)
            }
            Belief::Nobodys => None,
            Belief::Unknown => self.looks.look(&shown.id, self.line(&shown.id, from)).await?,
        };
        match known.filter(|known| known.is(&digest)) {
            Some(known) => known.take(now),
            None => Err(self.none(from)),
        }
    }

    fn line(&self, id: &KeyId, from: Option<IpAddr>) -> Line {
        let doubted = || {
            let mut wrong = lock(&self.wrong);
            from.and_then(|from| wrong.get_mut(&from)).is_some_and(|bucket| bucket.wait(Instant::now()).is_err())
        };
        match self.memory.has_met(id) {
            true => Line::Met,
            false if doubted() => Line::Doubted,
            false => Line::New,
        }
    }

    // What is told to whoever showed a key that is none.
    fn none(&self, from: Option<IpAddr>) -> Refusal {
        let now = Instant::now();
        let spent = from.map_or(Ok(()), |from| {
            let mut wrong = lock(&self.wrong);
            if wrong.len() >= MOST {
                wrong.retain(|_, bucket| !bucket.is_full(now));
                if wrong.len() >= MOST {
                    wrong.clear();
                }
            }
            wrong.entry(from).or_insert_with(|| Bucket::new(wrong_keys(), now)).take(now)
        });
        match spent {
            Ok(()) => Refusal::new(Code::Unauthenticated, "the key is none, or not any more"),
            Err(wait) => Refusal::wait("too many keys that are none came from this address", wait),
        }
    }
}

fn wrong_keys() -> RateLimit {
    RateLimit::new(WRONG.1, Duration::from_secs(60), WRONG.0).expect("the limit is within what may be set")
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
mod tests;
