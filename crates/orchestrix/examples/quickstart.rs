//! Quick start: five jobs in an SQLite file, one worker, one second.
//!
//! ```text
//! cargo run --example quickstart
//! ```

use std::{
    env, fs, io,
    path::Path,
    time::{Duration, Instant},
};

use orchestrix::{Client, Context, Job, JobResult, RetryPolicy, Run, SqliteOptions, SqliteStore, Worker};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(output = String)]
struct Greet {
    name: String,
}

#[derive(Serialize, Deserialize, Job)]
#[job(output = String)]
struct Charge {
    cents: u32,
}

#[derive(Serialize, Deserialize, Job)]
#[job(output = String)]
struct Report;

/// Prints events with the time since the start. All handlers share it.
struct Console {
    started: Instant,
}

impl Console {
    fn print(&self, event: &str, job: &str, details: &str) {
        println!("{:5.2}s  {event:<10} {job:<8} {details}", self.started.elapsed().as_secs_f32());
    }
}

impl Run for Greet {
    async fn run(self, ctx: Context) -> JobResult<String> {
        ctx.state::<Console>()?.print("running", "Greet", &self.name);
        Ok(format!("Hello, {}!", self.name))
    }
}

impl Run for Charge {
    async fn run(self, ctx: Context) -> JobResult<String> {
        ctx.state::<Console>()?.print("running", "Charge", &format!("attempt {}", ctx.attempt()));
        if ctx.attempt() == 1 {
            // Any error is retried after the job's back-off.
            return Err("the bank did not answer".into());
        }
        Ok(format!("charged {}.{:02} EUR", self.cents / 100, self.cents % 100))
    }
}

impl Run for Report {
    async fn run(self, ctx: Context) -> JobResult<String> {
        ctx.state::<Console>()?.print("running", "Report", "with the results of its dependencies");
        let results: Result<Vec<String>, _> = ctx.dependency_results().iter().map(|(_, json)| json.to()).collect();
        Ok(results?.join(" "))
    }
}

/// Deletes the database of an earlier run. In write-ahead mode it is up to three files.
fn delete_database(path: &Path) -> io::Result<()> {
    for suffix in ["", "-wal", "-shm"] {
        match fs::remove_file(format!("{}{suffix}", path.display())) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let path = env::temp_dir().join("orchestrix-quickstart.db");
    delete_database(&path)?;
    let store = SqliteStore::open(SqliteOptions::new(&path)).await?;
    let client = Client::new(store.clone());
    let console = Console { started: Instant::now() };

    println!("\nFive jobs, each durable when `enqueue` returns:\n");
    let greet = client.enqueue(Greet { name: "Ada".into() }).await?;
    console.print("enqueued", "Greet", &format!("is {}", greet.initial_state()));
    let urgent = client.enqueue(Greet { name: "Grace, with priority".into() }.request().priority(10)).await?;
    console.print("enqueued", "Greet", &format!("is {}, with priority 10", urgent.initial_state()));
    let later = Greet { name: "Alan, later".into() }.request().delay(Duration::from_millis(300));
    let later = client.enqueue(later).await?;
    console.print("enqueued", "Greet", &format!("is {}", later.initial_state()));
    let soon = RetryPolicy { base: Duration::from_millis(600), ..RetryPolicy::default() };
    let charge = client.enqueue(Charge { cents: 999 }.request().retry(soon)).await?;
    console.print("enqueued", "Charge", &format!("is {}", charge.initial_state()));
    let report = client.enqueue(Report.request().depends_on(&greet).depends_on(&charge)).await?;
    console.print(
        "enqueued",
        "Report",
        &format!("is {}: it depends on Ada's greeting and the charge", report.initial_state()),
    );

    println!("\nA worker runs the claimable jobs, highest priority first:\n");
    let worker = Worker::builder(&client).state(console).job::<Greet>().job::<Charge>().job::<Report>().start()?;
    let result = report.wait().await?;

    println!("\nThe jobs and their attempts:\n");
    for id in [greet.id(), urgent.id(), later.id(), charge.id(), report.id()] {
        let Some(job) = client.store().job(id).await? else { continue };
        println!("  {:<8} {} after {} attempt(s)", job.job_type.as_str(), job.state, job.attempts);
        for attempt in job.attempt_log {
            let error = attempt.error.map(|error| format!(": {error}")).unwrap_or_default();
            println!("             {}. {}{error}", attempt.attempt, attempt.outcome);
        }
    }
    println!("\nThe report's result: {result}");
    let _ = worker.shutdown().await;
    store.close().await;
    println!("The jobs are stored in {}.", path.display());
    Ok(())
}
