//! What a worker takes, and how much.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use orchestrix_client::Job;
use orchestrix_core::{JobState, NewJob};
use orchestrix_worker::Context;
use tokio::sync::Mutex;

use super::{Task, brisk, enqueue, gated, memory, record, until};

#[tokio::test]
async fn no_more_jobs_run_at_once_than_there_are_slots_and_none_are_hoarded() {
    let client = memory();
    let (worker, keeper) = gated(&client);
    client.enqueue_many((0..10).map(|n| Task { n })).await.unwrap();
    let worker = worker.concurrency(3).start().unwrap();
    for _ in 0..3 {
        keeper.next().await;
    }
    // Those that run do not end, so the pace is nought and nothing is held ready.
    assert_eq!((worker.running(), worker.stats().claimed), (3, 3));
    assert!(keeper.nobody().await);
    for _ in 3..10 {
        keeper.let_through(1);
        keeper.next().await;
        assert!(worker.running() <= 3);
    }
    keeper.let_through(3);
    until("all are done", async || {
        client.store().queue_depths(&orchestrix_store::PageRequest::first(10)).await.unwrap().items.is_empty()
    })
    .await;
    assert_eq!(worker.stats().reported, 10);
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn short_jobs_are_fetched_many_at_a_time() {
    let client = memory();
    client.enqueue_many((0..5_000).map(|n| Task { n })).await.unwrap();
    let claims = Arc::new(AtomicUsize::new(0));
    let source = counting::Counting::new(&client, Arc::clone(&claims));
    let worker = orchestrix_worker::Worker::over(Arc::new(source))
        .concurrency(4)
        .handler(|task: Task, _| async move { Ok(task.n) })
        .start()
        .unwrap();
    until("all are done", async || {
        client.store().queue_depths(&orchestrix_store::PageRequest::first(10)).await.unwrap().items.is_empty()
    })
    .await;
    let claims = claims.load(Ordering::SeqCst);
    assert!(claims < 500, "{claims} claims for 5,000 jobs of 4 slots");
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn only_types_that_are_known_and_queues_that_are_served_are_taken() {
    let client = memory();
    let unknown = client.store().enqueue_job(NewJob::new("stranger".parse().unwrap())).await.unwrap();
    let elsewhere = client.enqueue(Task { n: 1 }.request().queue("elsewhere")).await.unwrap();
    let worker = brisk(&client).queue("here").handler(|task: Task, _| async move { Ok(task.n) }).start().unwrap();
    let here = client.enqueue(Task { n: 2 }.request().queue("here")).await.unwrap();
    assert_eq!(here.wait().await.unwrap(), 2);
    for id in [unknown.id, elsewhere.id()] {
        assert_eq!(record(&client, id).await.state, JobState::Pending);
    }
    let page = client.store().list_workers(&orchestrix_store::PageRequest::first(10)).await.unwrap();
    assert_eq!(page.items[0].info.job_types.as_ref().unwrap()[0].as_str(), Task::TYPE);
    let _ = worker.shutdown().await;
    let page = client.store().list_workers(&orchestrix_store::PageRequest::first(10)).await.unwrap();
    assert!(page.items.is_empty(), "it took leave");
}

#[tokio::test]
async fn queues_get_shares_by_their_weights_while_all_have_jobs() {
    let client = memory();
    for queue in ["large", "small"] {
        client.enqueue_many((0..200).map(|n| Task { n }.request().queue(queue))).await.unwrap();
    }
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&order);
    let worker = brisk(&client)
        .weighted_queue("large", 3)
        .weighted_queue("small", 1)
        .concurrency(1)
        .prefetch(0)
        .handler(move |task: Task, ctx: Context| {
            let seen = Arc::clone(&seen);
            async move {
                seen.lock().await.push(ctx.queue().as_str().to_owned());
                Ok(task.n)
            }
        })
        .start()
        .unwrap();
    until("all are done", async || {
        client.store().queue_depths(&orchestrix_store::PageRequest::first(10)).await.unwrap().items.is_empty()
    })
    .await;
    let order = order.lock().await;
    let small = order[..100].iter().filter(|queue| *queue == "small").count();
    assert!((20..=30).contains(&small), "{small} of the first 100 from the queue with a quarter of the weight");
    assert_eq!(order.len(), 400, "and then the rest");
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn a_hint_is_enough_to_be_found_at_once() {
    let client = memory();
    let worker = brisk(&client)
        .poll_interval(Duration::from_secs(3600))
        .handler(|task: Task, _| async move { Ok(task.n) })
        .start()
        .unwrap();
    for n in 0..20 {
        let job = enqueue(&client, n).await;
        assert_eq!(tokio::time::timeout(super::PATIENCE, job.wait()).await.unwrap().unwrap(), n);
    }
    let _ = worker.shutdown().await;
}

mod counting {
    //! A source that counts its leases.

    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use async_trait::async_trait;
    use orchestrix_client::Client;
    use orchestrix_core::{JobState, LeaseToken, NewJob, WorkerName};
    use orchestrix_store::{
        ClaimRequest, ClaimedJob, Directive, Enqueued, FinishError, LeaseStatus, LogLine, OutcomeReport, Presence,
        ProgressUpdate, Result, Store, Wakeups, WorkerInfo,
    };
    use orchestrix_worker::{JobSource, StoreSource};

    pub(super) struct Counting(StoreSource, Arc<AtomicUsize>);

    impl Counting {
        pub(super) fn new(client: &Client, claims: Arc<AtomicUsize>) -> Self {
            Self(StoreSource::new(Arc::clone(client.store())), claims)
        }
    }

    #[async_trait]
    impl JobSource for Counting {
        async fn lease(&self, request: &ClaimRequest) -> Result<Vec<ClaimedJob>> {
            self.1.fetch_add(1, Ordering::SeqCst);
            self.0.lease(request).await
        }
        async fn extend(&self, tokens: &[LeaseToken]) -> Result<Vec<LeaseStatus>> {
            self.0.extend(tokens).await
        }
        async fn report(&self, items: Vec<OutcomeReport>) -> Result<Vec<Result<JobState, FinishError>>> {
            self.0.report(items).await
        }
        async fn progress(&self, token: LeaseToken, update: ProgressUpdate) -> Result<()> {
            self.0.progress(token, update).await
        }
        async fn append_logs(&self, token: LeaseToken, lines: Vec<LogLine>) -> Result<()> {
            self.0.append_logs(token, lines).await
        }
        async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
            self.0.enqueue(jobs).await
        }
        async fn register(&self, worker: &WorkerInfo) -> Result<()> {
            self.0.register(worker).await
        }
        async fn show(&self, worker: &WorkerName, presence: Presence) -> Result<Option<Directive>> {
            self.0.show(worker, presence).await
        }
        async fn leave(&self, worker: &WorkerInfo) -> Result<()> {
            self.0.leave(worker).await
        }
        fn wakeups(&self) -> Wakeups {
            self.0.wakeups()
        }
        fn apart(&self) -> Result<Arc<dyn JobSource>> {
            self.0.apart()
        }
        fn store(&self) -> Option<&Arc<dyn Store>> {
            self.0.store()
        }
    }
}
