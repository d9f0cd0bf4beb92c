//! The looks at the store for all who follow jobs, and who hears what they show.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use orchestrix_core::{JobId, Timestamp};
use orchestrix_store::{ChangesQuery, Result, Store};
use tokio::{
    sync::{Notify, broadcast},
    time::Instant,
};

use super::{
    listener::Listener,
    memory::Picture,
    sight::{News, Sight},
};
use crate::auth::caller::Caller;

/// The most jobs that the store is asked about in one call.
const CALL: usize = 1_000;
/// The most news of one batch: what a slow listener leaves behind is counted in batches.
const BATCH: usize = 500;
/// How long those who begin to follow jobs are waited for, to look at their jobs together.
const GATHER: Duration = Duration::from_millis(10);

/// What one look showed, or a part of it.
#[derive(Debug)]
pub(super) struct Batch {
    /// Rises with every batch.
    pub(super) number: u64,
    pub(super) news: Vec<News>,
    /// There was more than the look could show.
    pub(super) missed: bool,
    /// The moment of the look, where anybody follows queues or all jobs.
    pub(super) at: Option<Timestamp>,
}

#[derive(Debug)]
pub(super) struct Shared {
    sight: Mutex<Told>,
    pub(super) batches: broadcast::Sender<Arc<Batch>>,
    /// Told when somebody begins to follow.
    somebody: Notify,
}

/// What was seen, and the number of the last batch that tells of it: both change under one lock, so that whoever begins to follow knows
/// which batches are older than what he was told.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) sight: Sight,
    pub(super) number: u64,
    /// How things stood after the batch of this number: many fall behind at once.
    picture: Option<(u64, Picture)>,
}

impl Told {
    /// How things stand, for whoever fell behind.
    pub(super) fn picture(&mut self) -> &Picture {
        let Self { sight, number, picture } = self;
        let kept = picture.take().filter(|(of, _)| of == number);
        &picture.insert(kept.unwrap_or_else(|| (*number, sight.picture()))).1
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Told> {
        self.sight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls for a look.
    pub(super) fn call(&self) {
        self.somebody.notify_one();
    }

    pub(super) fn publish<R>(&self, take: impl FnOnce(&mut Sight) -> (Vec<News>, R)) -> R {
        let mut told = self.lock();
        let (mut news, answer) = take(&mut told.sight);
        while !news.is_empty() {
            let rest = news.split_off(news.len().min(BATCH));
            self.send(&mut told, news, false);
            news = rest;
        }
        answer
    }

    // To nobody, if nobody listens any more.
    fn send(&self, told: &mut Told, news: Vec<News>, missed: bool) {
        told.number += 1;
        told.picture = None;
        let at = told.sight.looked_at();
        let _ = self.batches.send(Arc::new(Batch { number: told.number, news, missed, at }));
    }
}

/// Looks for whoever follows jobs.
pub(crate) struct Feed(pub(super) Arc<Shared>);

impl Feed {
    /// Ends when it is dropped. So many batches are kept for a listener that is slow.
    pub(crate) fn new(store: Arc<dyn Store>, interval: Duration, buffer: usize) -> Self {
        let shared = Arc::new(Shared {
            sight: Mutex::default(),
            batches: broadcast::Sender::new(buffer.max(1)),
            somebody: Notify::new(),
        });
        tokio::spawn(look_on(store, Arc::downgrade(&shared), interval));
        Self(shared)
    }

    /// One who follows nothing yet. Bound to a tenant he hears of its jobs alone.
    pub(crate) fn listen(&self, caller: &Caller) -> Listener {
        Listener::new(Arc::clone(&self.0), caller.tenant().cloned(), caller.key().cloned())
    }
}

async fn look_on(store: Arc<dyn Store>, shared: Weak<Shared>, interval: Duration) {
    let mut next = Instant::now();
    loop {
        let Some(shared) = shared.upgrade() else { return };
        let (idle, fresh) = {
            let mut told = shared.lock();
            (told.sight.is_idle(), told.sight.take_fresh())
        };
        if idle {
            // A server that is gone is noticed within a second.
            let _ = tokio::time::timeout(Duration::from_secs(1), shared.somebody.notified()).await;
            continue;
        }
        let looked = match next <= Instant::now() {
            true => {
                let begun = Instant::now();
                let looked = look(&*store, &shared, fresh).await;
                // A store that is slow is left alone for as long as it took.
                next = (begun + interval).max(Instant::now() + begun.elapsed());
                looked
            }
            false => look_up(&*store, &shared, fresh).await,
        };
        if let Err(error) = looked {
            tracing::debug!(%error, "jobs that somebody follows could not be looked at");
            next = Instant::now() + interval;
        }
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            () = shared.somebody.notified() => tokio::time::sleep(GATHER).await,
        }
    }
}

async fn look(store: &dyn Store, shared: &Shared, mut ids: Vec<JobId>) -> Result<()> {
    if shared.lock().sight.lacks_time() {
        let recent =
            store.recent_changes(&ChangesQuery::leased(1)).await.inspect_err(|_| shared.lock().sight.put_back(&ids))?;
        shared.lock().sight.set_time(recent.now);
    }
    let (lately, asked) = {
        let sight = &mut shared.lock().sight;
        (sight.begin(), sight.asked())
    };
    if let Some(lately) = lately {
        let recent = store.recent_changes(&lately).await.inspect_err(|_| shared.lock().sight.put_back(&ids))?;
        ids.extend(shared.publish(|sight| sight.take_recent(&lately, recent)));
    }
    for some in asked.chunks(CALL) {
        let states = store.job_states(some).await.inspect_err(|_| shared.lock().sight.put_back(&ids))?;
        ids.extend(shared.publish(|sight| sight.take_states(some, &states)));
    }
    look_up(store, shared, ids).await?;
    let mut told = shared.lock();
    told.sight.tidy();
    let missed = told.sight.take_missed();
    if told.sight.takes_note() || missed {
        shared.send(&mut told, Vec::new(), missed);
    }
    Ok(())
}

// Whatever could not be looked up is looked up next time.
async fn look_up(store: &dyn Store, shared: &Shared, mut ids: Vec<JobId>) -> Result<()> {
    ids.sort_unstable();
    ids.dedup();
    for (n, some) in ids.chunks(CALL).enumerate() {
        let found = store.job_summaries(some).await.inspect_err(|_| shared.lock().sight.put_back(&ids[n * CALL..]))?;
        shared.publish(|sight| (sight.take_found(some, found), ()));
    }
    Ok(())
}
