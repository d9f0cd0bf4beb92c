//! Jobs and the application's rows in one PostgreSQL transaction.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use orchestrix::{
    Client, ClientError, CompleteIn, Context, EnqueueIn, Job, JobError, JobResult, JobState, MemoryStore,
    PostgresOptions, PostgresStore, Run, Worker,
    tokio_postgres::{self, NoTls},
};
use orchestrix_testkit::TestDatabase;
use serde::{Deserialize, Serialize};

async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) =
        tokio_postgres::connect(url, NoTls).await.expect("the test database accepts connections");
    tokio::spawn(connection);
    client
}

/// The application's database, and how many attempts are left until a handler commits.
#[derive(Clone)]
struct Shop {
    url: String,
    interruptions: Arc<Mutex<u32>>,
}

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(output = i64, retry(base = "10ms"))]
struct Pay {
    order: i64,
}

impl Run for Pay {
    async fn run(self, ctx: Context) -> JobResult<i64> {
        let shop = ctx.state::<Shop>()?.clone();
        let mut client = connect(&shop.url).await;
        let tx = client.transaction().await?;
        tx.execute("UPDATE shop SET paid = paid + 1 WHERE id = $1", &[&self.order]).await?;
        ctx.complete_in(&tx, &self.order).await?;
        let interrupted = {
            let mut left = shop.interruptions.lock().expect("no handler panics while it holds the lock");
            *left = left.saturating_sub(1);
            *left > 0
        };
        if interrupted {
            tx.rollback().await?;
            return Err(JobError::new("interrupted before the commit"));
        }
        tx.commit().await?;
        Ok(self.order)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_commits_its_writes_and_the_completion_together_or_not_at_all() {
    let metrics = metrics_exporter_prometheus::PrometheusBuilder::new().install_recorder().unwrap();
    let database = TestDatabase::create("complete_in").unwrap();
    let client = Client::new(PostgresStore::open(PostgresOptions::new(database.url())).await.unwrap());
    let mut own = connect(database.url()).await;
    own.batch_execute("CREATE TABLE shop (id bigint PRIMARY KEY, paid int)").await.unwrap();
    let shop = Shop { url: database.url().into(), interruptions: Arc::new(Mutex::new(3)) };
    let worker = Worker::builder(&client).poll_interval(Duration::from_millis(50)).state(shop).job::<Pay>();
    let worker = worker.start().unwrap();

    let tx = own.transaction().await.unwrap();
    tx.execute("INSERT INTO shop VALUES (7, 0)", &[]).await.unwrap();
    let dropped = client.enqueue_in(&tx, Pay { order: 7 }).await.unwrap();
    tx.rollback().await.unwrap();
    let tx = own.transaction().await.unwrap();
    tx.execute("INSERT INTO shop VALUES (8, 0)", &[]).await.unwrap();
    let job = client.enqueue_in(&tx, Pay { order: 8 }.request().idempotency_key("pay-8")).await.unwrap();
    let again = client.enqueue_in(&tx, Pay { order: 8 }.request().idempotency_key("pay-8")).await.unwrap();
    assert!(again.is_duplicate() && again.id() == job.id());
    tx.commit().await.unwrap();
    client.notify(&["default".parse().unwrap()]);

    assert_eq!(job.wait().await.unwrap(), 8);
    let ended = client.store().job(job.id()).await.unwrap().unwrap();
    assert_eq!(
        (ended.state, ended.attempts),
        (JobState::Completed, 3),
        "two attempts were interrupted and the third completed"
    );
    let rows = own.query("SELECT id, paid FROM shop", &[]).await.unwrap();
    let rows: Vec<(i64, i32)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(rows, [(8, 1)], "the committed order is paid once and the other does not exist");
    assert!(client.store().job_summary(dropped.id()).await.unwrap().is_none());
    let stats = worker.stats();
    let _ = worker.shutdown().await;
    assert_eq!(stats.stale_rejected, 0, "the worker's report repeats the committed completion, so it is not stale");
    let counted: Vec<String> = metrics.render().lines().map(str::to_owned).collect();
    let completed =
        format!(r#"orchestrix_jobs_finished_total{{queue="default",type="{}",outcome="completed"}} 1"#, Pay::TYPE);
    assert!(counted.contains(&completed), "the completion is counted once: {counted:#?}");
}

#[tokio::test]
async fn enqueueing_in_a_transaction_fails_if_the_store_is_not_on_postgresql() {
    let database = TestDatabase::create("elsewhere").unwrap();
    let mut own = connect(database.url()).await;
    let tx = own.transaction().await.unwrap();
    let client = Client::new(MemoryStore::new());
    let Err(ClientError::Store(error)) = client.enqueue_in(&tx, Pay { order: 1 }).await else {
        panic!("the in-memory store accepted a PostgreSQL transaction");
    };
    assert!(error.to_string().contains("only a store on PostgreSQL"), "{error}");
}
