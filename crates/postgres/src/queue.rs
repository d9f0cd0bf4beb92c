//! The store's verbs on queues: pausing them, and how many jobs they hold.

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use orchestrix_core::{JobState, JobType, Queue};
use orchestrix_store::{
    Fence, Page, PageRequest, QueueDepth, QueueStore, Result, housekeeping::check_limit, inspect::MAX_LANES,
};
use tokio_postgres::Row;

use crate::{
    PostgresStore,
    effects::Effects,
    row::{state, sweep_limit},
    statement::{
        CLAIMABLE_LANES, FOLD_DEPTHS, OLDEST_CLAIMABLE, PAUSE_QUEUE, PAUSED_QUEUES, QUEUE_DEPTH, QUEUE_DEPTHS,
    },
    sweeps::unpark_batches,
};

/// The most lanes and ranks visited to find the oldest jobs of queues.
pub(crate) const MAX_HOPS: i64 = 10_000;
/// Parked ready batches that the call which resumes a queue returns.
const UNPARK_BATCH: i64 = 2_000;
/// Depth changes folded in one transaction, and how many transactions before depths are read.
const FOLD_BATCH: usize = 1_000;
const FOLD_ROUNDS: usize = 20;

#[async_trait]
impl QueueStore for PostgresStore {
    async fn pause_queue(&self, queue: &Queue) -> Result<()> {
        self.database().query(&PAUSE_QUEUE, &[&queue.as_str(), &true]).await.map(drop)
    }

    async fn resume_queue(&self, queue: &Queue) -> Result<()> {
        let mut effects = Effects::default();
        let tx = self.database().fenced_transaction(Fence::NONE).await?;
        tx.query(&PAUSE_QUEUE, &[&queue.as_str(), &false]).await?;
        // The leader returns the rest.
        unpark_batches(&tx, queue, UNPARK_BATCH, &mut effects).await?;
        tx.commit().await?;
        effects.queue_resumed(queue.clone());
        self.publish(Fence::NONE, effects).await;
        Ok(())
    }

    async fn paused_queues(&self) -> Result<Vec<Queue>> {
        let rows = self.database().query(&PAUSED_QUEUES, &[]).await?;
        Ok(rows.iter().map(|row| Queue::trusted(row.get("name"))).collect())
    }

    async fn queue_depths(&self, page: &PageRequest<Queue>) -> Result<Page<QueueDepth, Queue>> {
        page.validate()?;
        for _ in 0..FOLD_ROUNDS {
            if fold_depths(self, FOLD_BATCH).await? < FOLD_BATCH {
                break;
            }
        }
        let after = page.cursor.as_ref().map_or("", Queue::as_str);
        let rows = self.database().query(&QUEUE_DEPTHS, &[&after, &(page.limit as i64 + 1)]).await?;
        let mut depths = QueueDepths::read(&rows)?;
        let next = depths.truncate(page.limit);
        depths.read_ages(self).await?;
        Ok(Page { items: depths.into_vec(), next })
    }

    async fn queue_depth(&self, queue: &Queue) -> Result<Option<QueueDepth>> {
        let mut depths = QueueDepths::read(&self.database().query(&QUEUE_DEPTH, &[&queue.as_str()]).await?)?;
        depths.read_ages(self).await?;
        Ok(depths.into_vec().pop())
    }

    async fn claimable_lanes(&self, limit: usize) -> Result<Vec<(Queue, JobType)>> {
        check_limit(limit, MAX_LANES)?;
        let rows = self.database().query(&CLAIMABLE_LANES, &[&(limit as i64)]).await?;
        Ok(rows.iter().map(lane).collect())
    }
}

/// Folds up to `limit` depth changes and returns how many it folded.
pub(crate) async fn fold_depths(store: &PostgresStore, limit: usize) -> Result<usize> {
    let rows = store.database().query(&FOLD_DEPTHS, &[&sweep_limit(limit)?]).await?;
    Ok(rows.first().map_or(0, |row| usize::try_from(row.get::<_, i64>("folded")).unwrap_or(0)))
}

/// Reads a row of `claimable_lanes.sql`.
pub(crate) fn lane(row: &Row) -> (Queue, JobType) {
    (Queue::trusted(row.get("queue")), JobType::trusted(row.get("job_type")))
}

/// Depths by queue. A queue may turn out to be empty.
pub(crate) struct QueueDepths(BTreeMap<Queue, QueueDepth>);

impl QueueDepths {
    /// Reads rows of `queue_depths.sql` or `queue_depth.sql`.
    pub(crate) fn read(rows: &[Row]) -> Result<Self> {
        let mut queues: BTreeMap<Queue, QueueDepth> = BTreeMap::new();
        for row in rows {
            let queue = Queue::trusted(row.get("queue"));
            let depth = queues.entry(queue.clone()).or_insert_with(|| QueueDepth {
                queue,
                paused: false,
                counts: BTreeMap::<JobState, u64>::new(),
                oldest: None,
            });
            depth.paused |= row.get::<_, bool>("paused");
            if let Some(text) = row.get::<_, Option<&str>>("state") {
                depth.counts.insert(state(text)?, u64::try_from(row.get::<_, i64>("n")).unwrap_or(0));
            }
        }
        Ok(Self(queues))
    }

    // Keeps the first `limit` queues. Returns the last of them if there were more.
    fn truncate(&mut self, limit: usize) -> Option<Queue> {
        let beyond = self.0.keys().nth(limit)?.clone();
        self.0.split_off(&beyond);
        self.0.keys().next_back().cloned()
    }

    async fn read_ages(&mut self, store: &PostgresStore) -> Result<()> {
        if let Some([first, last]) = self.first_and_last() {
            self.set_ages(&store.database().query(&OLDEST_CLAIMABLE, &[&first, &last, &MAX_HOPS]).await?);
        }
        Ok(())
    }

    /// The first and the last queue.
    pub(crate) fn first_and_last(&self) -> Option<[String; 2]> {
        let (first, last) = (self.0.keys().next()?, self.0.keys().next_back()?);
        Some([first.to_string(), last.to_string()])
    }

    /// Adds rows of `oldest_claimable.sql`.
    pub(crate) fn set_ages(&mut self, rows: &[Row]) {
        for row in rows {
            if let Some(depth) = self.0.get_mut(row.get::<_, &str>("queue")) {
                depth.oldest = Some(Duration::from_secs_f64(row.get::<_, f64>("age_ms").max(0.0) / 1000.0));
            }
        }
    }

    /// The queues that hold jobs or are paused.
    pub(crate) fn into_vec(self) -> Vec<QueueDepth> {
        self.0.into_values().filter(|depth| depth.paused || !depth.counts.is_empty()).collect()
    }
}
