//! An order and the job that confirms it, in one PostgreSQL transaction; and a handler that completes its job in the
//! transaction that marks the order as confirmed. There is never one without the other.
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

/// Where handlers find their own database; a real one would be a pool.
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
        // Refused if another worker owns the job by now; then the update is rolled back too.
        ctx.complete_in(&tx, &()).await?;
        tx.commit().await?;
        Ok(())
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = env::var("DATABASE_URL").context("DATABASE_URL names the PostgreSQL database to use")?;
    let client = Client::new(PostgresStore::open(PostgresOptions::new(&url)).await?);
    let mut database = connect(&url).await?;
    database
        .batch_execute(
            "DROP TABLE IF EXISTS shop_order; CREATE TABLE shop_order (id bigint PRIMARY KEY, confirmed bool)",
        )
        .await?;

    let worker = Worker::builder(&client).queue("orders").state(Shop { url }).job::<ConfirmOrder>().start()?;

    // A customer who changes her mind: no order, no job.
    let tx = database.transaction().await?;
    tx.execute("INSERT INTO shop_order VALUES (1, false)", &[]).await?;
    client.enqueue_in(&tx, ConfirmOrder { order: 1 }).await?;
    tx.rollback().await?;

    // One who does not: both.
    let tx = database.transaction().await?;
    tx.execute("INSERT INTO shop_order VALUES (2, false)", &[]).await?;
    let job = client.enqueue_in(&tx, ConfirmOrder { order: 2 }).await?;
    tx.commit().await?;
    // Found within a second anyway; now at once.
    client.notify(&["orders".parse()?]);

    job.wait().await?;
    for row in database.query("SELECT id, confirmed FROM shop_order ORDER BY id", &[]).await? {
        println!("order {} confirmed: {}", row.get::<_, i64>(0), row.get::<_, bool>(1));
    }
    let _ = worker.shutdown().await;
    Ok(())
}
