//! One PostgreSQL transaction inserts an order and enqueues the job that confirms it. The handler's transaction marks
//! the order as confirmed and completes the job. Neither happens without the other.
//!
//! ```text
//! DATABASE_URL=postgres://localhost/shop cargo run --example orders --features postgres
//! ```

use std::env;

use anyhow::Context as _;
use orchestrix::{
    Client, CompleteIn, Context, EnqueueIn, Job, JobResult, PostgresOptions, PostgresStore, Run, Worker,
    tokio_postgres::{self, NoTls},
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(type = "confirm-order", queue = "orders")]
struct ConfirmOrder {
    order: i64,
}

/// The application's database. A real application would use a connection pool.
struct Shop {
    url: String,
}

async fn connect(url: &str) -> Result<tokio_postgres::Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

impl Run for ConfirmOrder {
    async fn run(self, ctx: Context) -> JobResult {
        let mut database = connect(&ctx.state::<Shop>()?.url).await?;
        let tx = database.transaction().await?;
        tx.execute("UPDATE shop_order SET confirmed = true WHERE id = $1", &[&self.order]).await?;
        // Fails if the lease is lost; the update is then rolled back too.
        ctx.complete_in(&tx, &()).await?;
        tx.commit().await?;
        Ok(())
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = env::var("DATABASE_URL").context("set DATABASE_URL to the URL of a PostgreSQL database")?;
    let client = Client::new(PostgresStore::open(PostgresOptions::new(&url)).await?);
    let mut database = connect(&url).await?;
    database
        .batch_execute(
            "DROP TABLE IF EXISTS shop_order; CREATE TABLE shop_order (id bigint PRIMARY KEY, confirmed bool)",
        )
        .await?;

    let worker = Worker::builder(&client).queue("orders").state(Shop { url }).job::<ConfirmOrder>().start()?;

    // A rollback: no order and no job.
    let tx = database.transaction().await?;
    tx.execute("INSERT INTO shop_order VALUES (1, false)", &[]).await?;
    client.enqueue_in(&tx, ConfirmOrder { order: 1 }).await?;
    tx.rollback().await?;

    // A commit: both.
    let tx = database.transaction().await?;
    tx.execute("INSERT INTO shop_order VALUES (2, false)", &[]).await?;
    let job = client.enqueue_in(&tx, ConfirmOrder { order: 2 }).await?;
    tx.commit().await?;
    // Wakes the workers now. Without it they find the job within a second.
    client.notify(&["orders".parse()?]);

    job.wait().await?;
    for row in database.query("SELECT id, confirmed FROM shop_order ORDER BY id", &[]).await? {
        println!("order {} confirmed: {}", row.get::<_, i64>(0), row.get::<_, bool>(1));
    }
    let _ = worker.shutdown().await;
    Ok(())
}
