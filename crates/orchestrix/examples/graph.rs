//! Jobs that depend on each other: two extracts, a join of both, two reports. The batch is enqueued all or nothing.
//!
//! ```text
//! cargo run --example graph
//! ```

use orchestrix::{Client, Context, Job, JobResult, MemoryStore, OnDependencyFailure, Run, Worker};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(output = u64)]
struct Extract {
    table: String,
}

#[derive(Serialize, Deserialize, Job)]
#[job(output = u64)]
struct Join;

#[derive(Serialize, Deserialize, Job)]
#[job(output = String, max_attempts = 1)]
struct Report {
    name: String,
}

impl Run for Extract {
    async fn run(self, _: Context) -> JobResult<u64> {
        println!("extract {}", self.table);
        Ok(self.table.len() as u64 * 100)
    }
}

impl Run for Join {
    async fn run(self, ctx: Context) -> JobResult<u64> {
        // The results of the jobs that it depends on.
        let rows: Result<Vec<u64>, _> = ctx.dependency_results().iter().map(|(_, json)| json.to()).collect();
        let rows = rows?;
        println!("join    {rows:?}");
        Ok(rows.iter().sum())
    }
}

impl Run for Report {
    async fn run(self, ctx: Context) -> JobResult<String> {
        println!("report  {}", self.name);
        let rows: u64 = match ctx.dependency_results().first() {
            Some((_, json)) => json.to()?,
            None => return Err("there is nothing to report".into()),
        };
        Ok(format!("{}: {rows} rows", self.name))
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = Client::new(MemoryStore::new());
    let mut graph = client.batch();
    let orders = graph.add(Extract { table: "orders".into() });
    let users = graph.add(Extract { table: "users".into() });
    let join = graph.add(Join.request().depends_on(&orders).depends_on(&users));
    let daily = graph.add(Report { name: "daily".into() }.request().depends_on(&join));
    // Runs after the daily report and the join have finished, even if they failed.
    let ops = Report { name: "ops".into() }.request().depends_on(&daily).depends_on(&join);
    let ops = graph.add(ops.on_dependency_failure(OnDependencyFailure::Run));
    let enqueued = graph.enqueue().await?;

    let worker = Worker::builder(&client).job::<Extract>().job::<Join>().job::<Report>().start()?;
    println!("\n{}", enqueued.handle(&daily).wait().await?);
    println!("{}", enqueued.handle(&ops).wait().await.unwrap_or_else(|error| error.to_string()));
    let _ = worker.shutdown().await;
    Ok(())
}
