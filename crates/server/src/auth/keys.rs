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
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::http::{HeaderMap, header};
use orchestrix_api::Code;
use orchestrix_core::KeyId;
use orchestrix_store::Store;

use super::{
    caller::Caller,
    looks::{Line, Looks},
    memory::{Belief, Memory},
    secret::Shown,
    wrong::Wrong,
};
use crate::refusal::Refusal;

/// How often the key of one who waits is looked at again.
const EVERY: Duration = Duration::from_secs(5);

const HOW: &str = "send a key as Authorization: Bearer KEY";
const NONE: &str = "this key is not known here, or has expired or been revoked";

/// What a request needs beside a key that is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    Store,
    /// It is about the server itself.
    Nothing,
}

pub(crate) struct Keys {
    memory: Arc<Memory>,
    looks: Arc<Looks>,
    wrong: Wrong,
}

impl Keys {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        let memory = Arc::<Memory>::default();
        Self { looks: Looks::new(store, Arc::clone(&memory)), memory, wrong: Wrong::default() }
    }

    /// Who shows a key with this request. What needs nothing of the store is answered while that is away, too: to those whose key was good
    /// within the last hour.
    pub(crate) async fn caller(
        &self,
        headers: &HeaderMap,
        from: Option<IpAddr>,
        needs: Needs,
    ) -> Result<Caller, Refusal> {
        if !headers.contains_key(header::AUTHORIZATION) {
            // There is nothing wrong with it yet.
            return Err(Refusal::new(Code::Unauthenticated, HOW));
        }
        let Some(key) = bearer(headers) else { return Err(self.refuse(from, HOW)) };
        let Some(shown) = Shown::read(key) else { return Err(self.refuse(from, NONE)) };
        let digest = shown.digest();
        let known = match self.believed(&shown.id) {
            Belief::Good(known) => Some(known),
            Belief::Nobodys => None,
            Belief::Unknown => match self.looks.look(&shown.id, self.line(&shown.id, from)).await {
                Err(refusal) if needs == Needs::Nothing && refusal.0.code == Code::Unavailable => {
                    let known = self.memory.remembered(&shown.id, Instant::now());
                    Some(known.filter(|known| known.is(&digest)).ok_or(refusal)?)
                }
                looked => looked?,
            },
        };
        match known.filter(|known| known.is(&digest)) {
            Some(known) => known.take(Instant::now()),
            None => Err(self.refuse(from, NONE)),
        }
    }

    /// Refuses a caller whose key is good no more, as far as was seen in the last moment and a half. Whoever came without one stays.
    pub(crate) async fn check(&self, caller: &Caller) -> Result<(), Refusal> {
        let Some(id) = caller.key() else { return Ok(()) };
        let good = match self.believed(id) {
            Belief::Good(_) => true,
            Belief::Nobodys => false,
            Belief::Unknown => self.looks.look(id, Line::Met).await?.is_some(),
        };
        match good {
            true => Ok(()),
            false => Err(none()),
        }
    }

    /// Whether the key of this caller was found to be good no more. While the store is away nobody loses anything.
    pub(crate) async fn is_over(&self, caller: &Caller) -> bool {
        match self.check(caller).await {
            Err(refusal) if refusal.0.code == Code::Unauthenticated => true,
            Err(refusal) => {
                tracing::debug!(problem = ?refusal.0, "the key of one who waits could not be looked at");
                false
            }
            Ok(()) => false,
        }
    }

    /// Waits until the key of this caller is good no more, for ever if it stays so, and says what they are told then.
    pub(crate) async fn ended(&self, caller: &Caller) -> Refusal {
        if caller.key().is_none() {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(EVERY).await;
            if self.is_over(caller).await {
                return none();
            }
        }
    }

    /// Believes no more what was seen of a key that was just taken back.
    pub(crate) fn forget(&self, id: &KeyId) {
        self.memory.forget(id);
    }

    // What is believed of an id. One in use is looked at again before nobody knows any more.
    fn believed(&self, id: &KeyId) -> Belief {
        let now = Instant::now();
        let belief = self.memory.of(id, now);
        if let Belief::Good(known) = &belief
            && known.again <= now
        {
            // Whatever comes of it, whoever comes when this is believed no more hears of it.
            let _ = self.looks.begin(id, Line::Met);
        }
        belief
    }

    fn line(&self, id: &KeyId, from: Option<IpAddr>) -> Line {
        match self.memory.has_met(id) {
            true => Line::Met,
            false if from.is_some_and(|from| self.wrong.is_doubted(from, Instant::now())) => Line::Doubted,
            false => Line::New,
        }
    }

    // What is told to whoever showed a key that is none.
    fn refuse(&self, from: Option<IpAddr>, why: &str) -> Refusal {
        match from.map_or(Ok(()), |from| self.wrong.count(from, Instant::now())) {
            Ok(()) => Refusal::new(Code::Unauthenticated, why),
            Err(wait) => Refusal::wait("too many wrong keys came from this address; try again later", wait),
        }
    }
}

fn none() -> Refusal {
    Refusal::new(Code::Unauthenticated, NONE)
}

// The one key that is shown, whatever is in it.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let text = values.next()?.to_str().ok()?;
    // Two of them would leave it open which one counts.
    if values.next().is_some() {
        return None;
    }
    let (scheme, key) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

#[cfg(test)]
mod tests;
