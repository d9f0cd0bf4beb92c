//! One who follows jobs: what he wants, and what he was told.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use orchestrix_api::Code;
use orchestrix_core::{JobId, KeyId, Queue, Tenant, Timestamp};
use orchestrix_store::clock::earlier;
use tokio::sync::broadcast::{
    self,
    error::{RecvError, TryRecvError},
};

use super::{
    feed::{Batch, Shared},
    message::Wanted,
    sight::News,
};

/// The most that one may follow by name.
pub(super) const MOST_JOBS: usize = 1_000;
pub(super) const MOST_QUEUES: usize = 100;

/// How much further back one is told who comes back: by the times of what he heard nobody knows what else he did, and another server may have
/// seen things in another order.
const BEFORE: Duration = Duration::from_secs(15);

/// Why what he follows is to be told anew.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Behind {
    /// Something he did not hear in time.
    Lags,
    /// He comes back, and says since when.
    Returns,
}

/// How what one follows stands.
#[derive(Debug)]
pub(super) struct Standing {
    pub(super) news: Vec<News>,
    /// Up to when something happened that is not among it.
    pub(super) lacks: Option<Timestamp>,
}

/// One who follows jobs. With each thing that he follows stands the last batch that is older than what he was told of it.
#[derive(Debug)]
pub(crate) struct Listener {
    shared: Arc<Shared>,
    batches: broadcast::Receiver<Arc<Batch>>,
    jobs: HashMap<JobId, u64>,
    queues: HashMap<Queue, u64>,
    all: Option<u64>,
    tenant: Option<Tenant>,
    key: Option<KeyId>,
    /// Of queues or all jobs he has heard what the looks up to this moment showed.
    heard: Option<Timestamp>,
    /// Since when he is to be told what he missed.
    returns: Option<Timestamp>,
}

impl Listener {
    pub(super) fn new(shared: Arc<Shared>, tenant: Option<Tenant>, key: Option<KeyId>) -> Self {
        let batches = shared.batches.subscribe();
        let (jobs, queues) = (HashMap::new(), HashMap::new());
        Self { shared, batches, jobs, queues, all: None, tenant, key, heard: None, returns: None }
    }

    /// Why so much cannot be followed.
    pub(super) fn refuses(&self, wanted: &Wanted) -> Option<(Code, String)> {
        fn new<'a, T: Eq + std::hash::Hash>(now: &HashMap<T, u64>, more: &'a [T]) -> Vec<&'a T> {
            more.iter().filter(|one| !now.contains_key(one)).collect::<HashSet<_>>().into_iter().collect()
        }
        let (jobs, queues) = (new(&self.jobs, &wanted.jobs), new(&self.queues, &wanted.queues));
        if self.jobs.len() + jobs.len() > MOST_JOBS || self.queues.len() + queues.len() > MOST_QUEUES {
            let text =
                format!("one connection may follow {MOST_JOBS} jobs and {MOST_QUEUES} queues by name, and all jobs");
            return Some((Code::ValidationFailed, text));
        }
        (!self.shared.lock().sight.has_room(&jobs, self.key.as_ref())).then(|| {
            let text = "more jobs are followed by their ids than this server allows, or one key; try again later";
            (Code::RateLimited, text.into())
        })
    }

    /// Follows these too; what he has not heard yet of the others, and what is known of these by now. The rest is heard.
    pub(super) fn follow(&mut self, wanted: Wanted) -> Result<Vec<News>, Behind> {
        let shared = Arc::clone(&self.shared);
        let mut told = shared.lock();
        // It is older than what is known now, and must be told before it.
        let unheard = self.unheard();
        let number = told.number;
        let was_broad = self.is_broad();
        let mut known = Vec::new();
        let mut queues = HashSet::new();
        for queue in wanted.queues {
            if let Entry::Vacant(vacant) = self.queues.entry(queue) {
                queues.insert(vacant.key().clone());
                vacant.insert(number);
            }
        }
        let all = wanted.all && self.all.is_none();
        if all {
            self.all = Some(number);
        }
        if all || !queues.is_empty() {
            match wanted.since {
                Some(_) => self.returns = self.returns.into_iter().chain(wanted.since).min(),
                None => known = told.sight.running(|queue| all || queues.contains(queue)),
            }
        }
        if !was_broad && self.is_broad() {
            told.sight.widen();
            self.heard = told.sight.looked_at();
        }
        for id in wanted.jobs {
            if let Entry::Vacant(vacant) = self.jobs.entry(id) {
                known.extend(told.sight.watch(id, self.key.as_ref()));
                vacant.insert(number);
            }
        }
        drop(told);
        shared.call();
        let mut news = Vec::new();
        for batch in unheard? {
            news.extend(self.wanted(&batch));
        }
        // One that is wanted for several reasons is told once.
        let mut there = HashSet::new();
        known.retain(|news| there.insert(news.id()));
        news.extend(self.mine(known));
        Ok(news)
    }

    // The batches that were sent and not heard.
    fn unheard(&mut self) -> Result<Vec<Arc<Batch>>, Behind> {
        let mut batches = Vec::new();
        loop {
            match self.batches.try_recv() {
                Ok(batch) if batch.missed && self.is_broad() => return Err(Behind::Lags),
                Ok(batch) => batches.push(batch),
                Err(TryRecvError::Lagged(_)) => return Err(Behind::Lags),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return Ok(batches),
            }
        }
    }

    /// Follows these no longer.
    pub(super) fn leave(&mut self, wanted: &Wanted) {
        let mut told = self.shared.lock();
        let was_broad = self.is_broad();
        for id in &wanted.jobs {
            if self.jobs.remove(id).is_some() {
                told.sight.unwatch(*id);
            }
        }
        self.queues.retain(|queue, _| !wanted.queues.contains(queue));
        if wanted.all {
            self.all = None;
        }
        if was_broad && !self.is_broad() {
            told.sight.narrow();
            (self.heard, self.returns) = (None, None);
        }
    }

    /// What is heard next.
    pub(super) async fn hear(&mut self) -> Result<Arc<Batch>, Behind> {
        if self.returns.is_some() && self.shared.lock().sight.looked_at().is_some() {
            return Err(Behind::Returns);
        }
        match self.batches.recv().await {
            Ok(batch) if batch.missed && self.is_broad() => Err(Behind::Lags),
            Ok(batch) => Ok(batch),
            Err(RecvError::Lagged(_)) => Err(Behind::Lags),
            // The server ends, and whoever listens is told otherwise.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }

    /// Begins to hear anew: how what he follows stands now. Of a queue or of all jobs that is what runs, and whatever has changed since he heard
    /// the last of it; of those that he follows by their ids, all.
    pub(super) fn resync(&mut self) -> Standing {
        let shared = Arc::clone(&self.shared);
        let mut told = shared.lock();
        self.batches = self.batches.resubscribe();
        let (mut known, mut lacks) = (Vec::new(), None);
        if told.sight.looked_at().is_none() {
            // One who comes back is told when there was a look.
            lacks = self.returns;
        } else if self.is_broad() {
            let returns = self.returns.take().map(|since| earlier(since, BEFORE));
            // One who has heard nothing yet is told all that is known.
            let since = returns.into_iter().chain(self.heard).min().unwrap_or(Timestamp::MIN);
            let his = |news: &News| match news {
                News::Job(seen) => self.all.is_some() || self.queues.contains_key(&seen.job.queue),
                News::Unknown(_) => false,
            };
            let picture = told.picture().iter().filter(|(noted, runs, news)| (*runs || *noted >= since) && his(news));
            known = picture.map(|(.., news)| news.clone()).collect();
            lacks = told.sight.lacks(since);
            self.heard = told.sight.looked_at();
        }
        let numbers = self.queues.values_mut().chain(self.jobs.values_mut()).chain(&mut self.all);
        numbers.for_each(|number| *number = told.number);
        let there: HashSet<JobId> = known.iter().map(News::id).collect();
        let mut lost = Vec::new();
        for id in self.jobs.keys().filter(|id| !there.contains(id)) {
            match told.sight.known(*id) {
                Some(news) => known.push(news),
                // It is still to be looked up, or he did not hear that there is none.
                None => lost.push(*id),
            }
        }
        told.sight.put_back(&lost);
        drop(told);
        self.shared.call();
        Standing { news: self.mine(known), lacks }
    }

    /// What of a batch is his.
    pub(super) fn wanted(&mut self, batch: &Batch) -> Vec<News> {
        let newer = |number: Option<&u64>| number.is_some_and(|number| batch.number > *number);
        // One who comes back is soon told how all of that stands.
        let broad = self.returns.is_none();
        let his = |news: &&News| match news {
            News::Unknown(id) => newer(self.jobs.get(id)),
            News::Job(seen) => {
                (broad && (newer(self.all.as_ref()) || newer(self.queues.get(&seen.job.queue))))
                    || newer(self.jobs.get(&seen.job.id))
            }
        };
        let news = batch.news.iter().filter(his).cloned().collect();
        if broad {
            self.heard = batch.at.or(self.heard);
        }
        self.mine(news)
    }

    // Another tenant's job is not there, for whoever asked for it; others hear nothing of it.
    fn mine(&mut self, news: Vec<News>) -> Vec<News> {
        let mine = |news: News| {
            let id = news.id();
            match &news {
                News::Job(seen) if self.tenant.as_ref().is_none_or(|tenant| *tenant == seen.job.tenant) => Some(news),
                News::Job(_) | News::Unknown(_) => self.jobs.remove(&id).map(|_| {
                    self.shared.lock().sight.unwatch(id);
                    News::Unknown(id)
                }),
            }
        };
        news.into_iter().filter_map(mine).collect()
    }

    fn is_broad(&self) -> bool {
        self.all.is_some() || !self.queues.is_empty()
    }
}

impl News {
    fn id(&self) -> JobId {
        match self {
            Self::Job(seen) => seen.job.id,
            Self::Unknown(id) => *id,
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let jobs = self.jobs.keys().copied().collect();
        let queues = self.queues.keys().cloned().collect();
        self.leave(&Wanted { jobs, queues, all: true, since: None });
    }
}
