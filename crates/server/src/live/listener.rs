//! One who follows jobs: what he wants, and what he was told.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
};

use orchestrix_core::{JobId, Queue, Tenant};
use tokio::sync::broadcast::{self, error::RecvError};

use super::{
    feed::{Batch, Shared},
    message::Wanted,
    sight::News,
};

/// The most that one may follow by name.
pub(super) const MOST_JOBS: usize = 1_000;
pub(super) const MOST_QUEUES: usize = 100;

/// What a listener hears.
#[derive(Debug)]
pub(super) enum Heard {
    Batch(Arc<Batch>),
    /// Some of it he did not hear in time; what he follows is to be told anew.
    Lagged,
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
}

impl Listener {
    pub(super) fn new(shared: Arc<Shared>, tenant: Option<Tenant>) -> Self {
        let batches = shared.batches.subscribe();
        Self { shared, batches, jobs: HashMap::new(), queues: HashMap::new(), all: None, tenant }
    }

    /// Why so much cannot be followed.
    pub(super) fn refuses(&self, wanted: &Wanted) -> Option<String> {
        fn all<T: Eq + std::hash::Hash>(now: &HashMap<T, u64>, more: &[T]) -> usize {
            now.len() + more.iter().filter(|one| !now.contains_key(one)).collect::<HashSet<_>>().len()
        }
        let (jobs, queues) = (all(&self.jobs, &wanted.jobs), all(&self.queues, &wanted.queues));
        (jobs > MOST_JOBS || queues > MOST_QUEUES).then(|| {
            format!("one connection may follow {MOST_JOBS} jobs and {MOST_QUEUES} queues by name, and all jobs")
        })
    }

    /// Follows these too; what is known of them by now. The rest is heard.
    pub(super) fn follow(&mut self, wanted: Wanted) -> Vec<News> {
        let mut told = self.shared.lock();
        let number = told.number;
        let was_broad = self.is_broad();
        let mut known = Vec::new();
        for queue in wanted.queues {
            if let Entry::Vacant(vacant) = self.queues.entry(queue) {
                known.extend(told.sight.picture(Some(vacant.key()), false));
                vacant.insert(number);
            }
        }
        if wanted.all && self.all.is_none() {
            known.extend(told.sight.picture(None, false));
            self.all = Some(number);
        }
        if !was_broad && self.is_broad() {
            told.sight.widen();
        }
        for id in wanted.jobs {
            if let Entry::Vacant(vacant) = self.jobs.entry(id) {
                known.extend(told.sight.watch(id));
                vacant.insert(number);
            }
        }
        drop(told);
        self.shared.call();
        // One that is wanted for several reasons is told once.
        let mut there = HashSet::new();
        known.retain(|news| there.insert(news.id()));
        self.mine(known)
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
        }
    }

    /// What is heard next.
    pub(super) async fn hear(&mut self) -> Heard {
        match self.batches.recv().await {
            Ok(batch) if batch.missed && self.is_broad() => Heard::Lagged,
            Ok(batch) => Heard::Batch(batch),
            Err(RecvError::Lagged(_)) => Heard::Lagged,
            // The server ends, and whoever listens is told otherwise.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }

    /// Begins to hear anew: all that is known now of what he follows, what ended lately included.
    pub(super) fn resync(&mut self) -> Vec<News> {
        let mut told = self.shared.lock();
        self.batches = self.batches.resubscribe();
        let mut known = Vec::new();
        match &mut self.all {
            Some(number) => {
                *number = told.number;
                known.extend(told.sight.picture(None, true));
            }
            None => known.extend(self.queues.keys().flat_map(|queue| told.sight.picture(Some(queue), true))),
        }
        self.queues.values_mut().chain(self.jobs.values_mut()).for_each(|number| *number = told.number);
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
        self.mine(known)
    }

    /// What of a batch is his.
    pub(super) fn wanted(&mut self, batch: &Batch) -> Vec<News> {
        let newer = |number: Option<&u64>| number.is_some_and(|number| batch.number > *number);
        let his = |news: &&News| match news {
            News::Unknown(id) => newer(self.jobs.get(id)),
            News::Job(seen) => {
                newer(self.all.as_ref())
                    || newer(self.queues.get(&seen.job.queue))
                    || newer(self.jobs.get(&seen.job.id))
            }
        };
        let news = batch.news.iter().filter(his).cloned().collect();
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
        self.leave(&Wanted { jobs, queues, all: true });
    }
}
