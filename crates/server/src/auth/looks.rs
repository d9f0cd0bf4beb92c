//! Looks at the store for keys: one for each id at a time, which all who ask for it share, and so many at once.
//!
//! There are three lines, and each moves by itself: keys that were good before, keys that nobody knows, and keys that nobody knows from an
//! address that many came from that are none. However many of those are made up, they keep a few connections of the store busy and no
//! more, and the first two lines do not wait for them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use orchestrix_api::Code;
use orchestrix_core::KeyId;
use orchestrix_store::{KeyRecord, Result, Store, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::memory::{FRESH, Known, Memory, lock};
use crate::refusal::Refusal;

/// How long a look takes at most, with the time that it waits for its turn, and so how long whoever asked for it waits.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Which line a look waits in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Line {
    /// The key was good before.
    Met,
    New,
    /// Its address is one that many keys came from that are none.
    Doubted,
}

impl Line {
    /// How many looks are under way at once, and how many more wait.
    pub(super) const fn width_and_length(self) -> (usize, usize) {
        match self {
            Self::Met | Self::New => (4, 1_000),
            Self::Doubted => (2, 100),
        }
    }
}

/// What a look has shown: nothing before it has ended, then the key if it is good, or what went wrong.
type Shown = Option<Result<Option<Arc<Known>>>>;

pub(super) struct Looks {
    store: Arc<dyn Store>,
    memory: Arc<Memory>,
    under_way: Mutex<HashMap<(KeyId, Line), UnderWay>>,
    lines: [Queue; 3],
}

struct UnderWay {
    begun: Instant,
    shown: watch::Receiver<Shown>,
}

struct Queue {
    turns: Semaphore,
    places: Arc<Semaphore>,
}

impl Looks {
    pub(super) fn new(store: Arc<dyn Store>, memory: Arc<Memory>) -> Arc<Self> {
        let lines = [Line::Met, Line::New, Line::Doubted].map(|line| {
            let (width, length) = line.width_and_length();
            Queue { turns: Semaphore::new(width), places: Arc::new(Semaphore::new(width + length)) }
        });
        Arc::new(Self { store, memory, under_way: Mutex::default(), lines })
    }

    /// The key, if it is good. Joins a look that is under way.
    pub(super) async fn look(
        self: &Arc<Self>,
        id: &KeyId,
        line: Line,
    ) -> std::result::Result<Option<Arc<Known>>, Refusal> {
        let ends = || Refusal::new(Code::Unavailable, "the server ends; try again");
        let mut shown = self.begin(id, line)?;
        // A look takes no longer than its patience, and one that is joined is under way already.
        let ended = shown.wait_for(Option::is_some).await.map_err(|_| ends())?;
        match ended.as_ref().ok_or_else(ends)? {
            Ok(known) => Ok(known.clone()),
            Err(error) => Err(error.replicate().into()),
        }
    }

    /// Begins a look that nobody need wait for, unless one is under way.
    pub(super) fn begin(
        self: &Arc<Self>,
        id: &KeyId,
        line: Line,
    ) -> std::result::Result<watch::Receiver<Shown>, Refusal> {
        let mut under_way = lock(&self.under_way);
        // What one that began earlier shows may be older than is promised.
        if let Some(look) = under_way.get(&(id.clone(), line)).filter(|look| look.begun.elapsed() < FRESH) {
            return Ok(look.shown.clone());
        }
        let place = Arc::clone(&self.lines[line as usize].places).try_acquire_owned();
        let place = place.map_err(|_| {
            Refusal::wait("more keys come that nobody knows than can be looked at; try again", Duration::from_secs(1))
        })?;
        let (tell, shown) = watch::channel(None);
        under_way.insert((id.clone(), line), UnderWay { begun: Instant::now(), shown: shown.clone() });
        tokio::spawn(Arc::clone(self).see(id.clone(), line, place, tell));
        Ok(shown)
    }

    // In a task of its own: whoever asked first may go away, and others wait for the same.
    async fn see(self: Arc<Self>, id: KeyId, line: Line, _place: OwnedSemaphorePermit, tell: watch::Sender<Shown>) {
        let over = Over { looks: &self, of: (id, line), shown: tell.subscribe() };
        let looked = tokio::time::timeout(PATIENCE, self.ask(&over.of.0, line)).await;
        let looked = looked.unwrap_or_else(|_| Err(StoreError::Unavailable("a key was looked for too long".into())));
        let kept = looked.map(|(record, asked_at)| self.memory.keep(&over.of.0, record, asked_at));
        drop(over);
        tell.send_replace(Some(kept));
    }

    async fn ask(&self, id: &KeyId, line: Line) -> Result<(Option<KeyRecord>, Instant)> {
        let closed = |_| StoreError::Unavailable("the server ends".into());
        let _turn = self.lines[line as usize].turns.acquire().await.map_err(closed)?;
        let asked_at = Instant::now();
        Ok((self.store.key(id).await?.filter(KeyRecord::valid), asked_at))
    }
}

/// Takes a look away however it ends, unless another has taken its place.
struct Over<'a> {
    looks: &'a Looks,
    of: (KeyId, Line),
    shown: watch::Receiver<Shown>,
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        let mut under_way = lock(&self.looks.under_way);
        if under_way.get(&self.of).is_some_and(|look| look.shown.same_channel(&self.shown)) {
            under_way.remove(&self.of);
        }
    }
}

#[cfg(test)]
impl Looks {
    /// Has every look of a line wait until what is returned is dropped.
    pub(super) async fn hold(&self, line: Line) -> tokio::sync::SemaphorePermit<'_> {
        let (width, _) = line.width_and_length();
        self.lines[line as usize].turns.acquire_many(width.try_into().unwrap()).await.unwrap()
    }

    /// As if a look had begun so long ago.
    pub(super) fn age(&self, id: &KeyId, line: Line, by: Duration) {
        lock(&self.under_way).get_mut(&(id.clone(), line)).unwrap().begun -= by;
    }

    /// How many are under way or wait: each has a place.
    pub(super) fn count(&self) -> usize {
        let places = [Line::Met, Line::New, Line::Doubted].map(|line| {
            let (width, length) = line.width_and_length();
            width + length - self.lines[line as usize].places.available_permits()
        });
        places.iter().sum()
    }
}
