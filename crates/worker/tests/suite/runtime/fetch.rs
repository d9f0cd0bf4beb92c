//! Which jobs a worker claims, and how many.

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

use super::{Task, enqueue, fast_worker, gated_worker, job_record, memory_client, wait_until};

#[tokio::test]
async fn at_most_concurrency_jobs_run_and_long_jobs_are_not_prefetched() {
    let client = memory_client();
    let (worker, gate) = gated_worker(&client);
    client.enqueue_many((0..10).map(|n| Task { n })).await.unwrap();
    let worker = worker.concurrency(3).start().unwrap();
    for _ in 0..3 {
        gate.next_started().await;
    }
    // The running jobs do not finish, so the finish rate is zero and nothing is prefetched.
    assert_eq!((worker.running(), worker.stats().claimed), (3, 3));
    assert!(gate.none_started().await);
    for _ in 3..10 {
        gate.let_pass(1);
        gate.next_started().await;
        assert!(worker.running() <= 3);
    }
    gate.let_pass(3);
    wait_until("all are done", async || {
        client.store().queue_depths(&orchestrix_store::PageRequest::first(10)).await.unwrap().items.is_empty()
    })
    .await;
    assert_eq!(worker.stats().reported, 10);
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn short_jobs_are_claimed_in_large_batches() {
    let client = memory_client();
    client.enqueue_many((0..5_000).map(|n| Task { n })).await.unwrap();
    let claims = Arc::new(AtomicUsize::new(0));
    let source = counting::Counting::new(&client, Arc::clone(&claims));
    let worker = orchestrix_worker::Worker::with_source(Arc::new(source))
        .concurrency(4)
        .handler(|task: Task, _| async move { Ok(task.n) })
        .start()
        .unwrap();
    wait_until("all are done", async || {
        client.store().queue_depths(&orchestrix_store::PageRequest::first(10)).await.unwrap().items.is_empty()
    })
    .await;
    let claims = claims.load(Ordering::SeqCst);
    assert!((1..500).contains(&claims), "{claims} claims for 5,000 jobs in 4 slots");
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn only_job_types_with_a_handler_and_served_queues_are_claimed() {
    let client = memory_client();
    let without_handler = client.store().enqueue_job(NewJob::new("stranger".parse().unwrap())).await.unwrap();
    let elsewhere = client.enqueue(Task { n: 1 }.request().queue("elsewhere")).await.unwrap();
    let worker = fast_worker(&client).queue("here").handler(|task: Task, _| async move { Ok(task.n) }).start().unwrap();
    let here = client.enqueue(Task { n: 2 }.request().queue("here")).await.unwrap();
    assert_eq!(here.wait().await.unwrap(), 2);
    for id in [without_handler.id, elsewhere.id()] {
        assert_eq!(job_record(&client, id).await.state, JobState::Pending);
    }
    let page = client.store().list_workers(&orchestrix_store::PageRequest::first(10)).await.unwrap();
    assert_eq!(page.items[0].info.job_types.as_ref().unwrap()[0].as_str(), Task::TYPE);
    let _ = worker.shutdown().await;
    let page = client.store().list_workers(&orchestrix_store::PageRequest::first(10)).await.unwrap();
    assert!(page.items.is_empty(), "the worker removed its registration");
}

#[tokio::test]
async fn weighted_queues_share_the_slots_while_all_have_jobs() {
    let client = memory_client();
    for queue in ["large", "small"] {
        client.enqueue_many((0..200).map(|n| Task { n }.request().queue(queue))).await.unwrap();
    }
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&order);
    let worker = fast_worker(&client)
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
    wait_until("all are done", async || {
        client.store().queue_depths(&orchestrix_store::PageRequest::first(10)).await.unwrap().items.is_empty()
    })
    .await;
    let order = order.lock().await;
    let small = order[..100].iter().filter(|queue| *queue == "small").count();
    assert!((20..=30).contains(&small), "{small} of the first 100 from the queue with a quarter of the weight");
    assert_eq!(order.len(), 400, "all jobs ran");
    let _ = worker.shutdown().await;
}

#[tokio::test]
async fn a_wakeup_makes_the_worker_claim_at_once() {
    let client = memory_client();
    let worker = fast_worker(&client)
        .poll_interval(Duration::from_secs(3600))
        .handler(|task: Task, _| async move { Ok(task.n) })
        .start()
        .unwrap();
    for n in 0..20 {
        let job = enqueue(&client, n).await;
        assert_eq!(tokio::time::timeout(super::TIMEOUT, job.wait()).await.unwrap().unwrap(), n);
    }
    let _ = worker.shutdown().await;
}

mod counting {
    //! A source that counts claims.

    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use async_trait::async_trait;
    use orchestrix_client::Client;
    use orchestrix_core::{JobState, LeaseToken, NewJob, WorkerName};
    use orchestrix_store::{
        ClaimRequest, ClaimedJob, Directive, Enqueued, FinishError, LeaseStatus, LogLine, OutcomeReport, Presence,
        ProgressUpdate, Result, Wakeups, WorkerInfo,
    };
    use orchestrix_worker::{JobSource, StoreSource};

    pub(super) struct Counting(Arc<dyn JobSource>, Arc<AtomicUsize>);

    impl Counting {
        pub(super) fn new(client: &Client, claims: Arc<AtomicUsize>) -> Self {
            Self(Arc::new(StoreSource::new(Arc::clone(client.store()))), claims)
        }
    }

    #[async_trait]
    impl JobSource for Counting {
        async fn claim_jobs(&self, request: &ClaimRequest) -> Result<Vec<ClaimedJob>> {
            self.1.fetch_add(1, Ordering::SeqCst);
            self.0.claim_jobs(request).await
        }
        async fn extend_leases(&self, tokens: &[LeaseToken]) -> Result<Vec<LeaseStatus>> {
            self.0.extend_leases(tokens).await
        }
        async fn finish_attempts(&self, items: Vec<OutcomeReport>) -> Result<Vec<Result<JobState, FinishError>>> {
            self.0.finish_attempts(items).await
        }
        async fn record_progress(&self, token: LeaseToken, update: ProgressUpdate) -> Result<()> {
            self.0.record_progress(token, update).await
        }
        async fn append_logs(&self, token: LeaseToken, lines: Vec<LogLine>) -> Result<()> {
            self.0.append_logs(token, lines).await
        }
        async fn enqueue_jobs(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>> {
            self.0.enqueue_jobs(jobs).await
        }
        async fn register_worker(&self, worker: &WorkerInfo) -> Result<()> {
            self.0.register_worker(worker).await
        }
        async fn heartbeat_worker(&self, worker: &WorkerName, presence: Presence) -> Result<Option<Directive>> {
            self.0.heartbeat_worker(worker, presence).await
        }
        async fn remove_worker(&self, worker: &WorkerInfo) -> Result<()> {
            self.0.remove_worker(worker).await
        }
        fn job_wakeups(&self) -> Wakeups {
            self.0.job_wakeups()
        }
        fn dedicated_handle(&self) -> Result<Arc<dyn JobSource>> {
            Ok(Arc::new(Self(self.0.dedicated_handle()?, Arc::clone(&self.1))))
        }
    }
}
