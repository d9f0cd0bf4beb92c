//! A first look: five jobs in an SQLite file, one worker, one second.
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

/// What handlers share: when the show began.
struct Clock(Instant);

impl Clock {
    fn say(&self, what: &str, name: &str, more: &str) {
        println!("{:5.2}s  {what:<10} {name:<8} {more}", self.0.elapsed().as_secs_f32());
    }
}

impl Run for Greet {
    async fn run(self, ctx: Context) -> JobResult<String> {
        ctx.state::<Clock>()?.say("running", "Greet", &self.name);
        Ok(format!("Hello, {}!", self.name))
    }
}

impl Run for Charge {
    async fn run(self, ctx: Context) -> JobResult<String> {
        ctx.state::<Clock>()?.say("running", "Charge", &format!("attempt {}", ctx.attempt()));
        if ctx.attempt() == 1 {
            // Any error is tried again, after the job's own back-off.
            return Err("the bank did not answer".into());
        }
        Ok(format!("charged {}.{:02} EUR", self.cents / 100, self.cents % 100))
    }
}

impl Run for Report {
    async fn run(self, ctx: Context) -> JobResult<String> {
        ctx.state::<Clock>()?.say("running", "Report", "with the results of those it waited for");
        let results: Result<Vec<String>, _> = ctx.dependency_results().iter().map(|(_, json)| json.to()).collect();
        Ok(results?.join(" "))
    }
}

/// Forgets the jobs of an earlier look. A database in write-ahead mode is up to three files.
fn begin_anew(path: &Path) -> io::Result<()> {
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
    begin_anew(&path)?;
    let store = SqliteStore::open(SqliteOptions::new(&path)).await?;
    let client = Client::new(store.clone());
    let begun = Instant::now();
    let clock = Clock(begun);

    println!("\nFive jobs, each safe on the disk before `enqueue` returns:\n");
    let greet = client.enqueue(Greet { name: "Ada".into() }).await?;
    clock.say("enqueued", "Greet", &format!("is {}", greet.recorded_as()));
    let urgent = client.enqueue(Greet { name: "Grace, first of all".into() }.request().priority(10)).await?;
    clock.say("enqueued", "Greet", &format!("is {}, and urgent", urgent.recorded_as()));
    let later = Greet { name: "Alan, later".into() }.request().delay(Duration::from_millis(300));
    let later = client.enqueue(later).await?;
    clock.say("enqueued", "Greet", &format!("is {}", later.recorded_as()));
    let soon = RetryPolicy { base: Duration::from_millis(600), ..RetryPolicy::default() };
    let charge = client.enqueue(Charge { cents: 999 }.request().retry(soon)).await?;
    clock.say("enqueued", "Charge", &format!("is {}", charge.recorded_as()));
    let report = client.enqueue(Report.request().depends_on(&greet).depends_on(&charge)).await?;
    clock.say(
        "enqueued",
        "Report",
        &format!("is {}: it waits for Ada's greeting and the charge", report.recorded_as()),
    );

    println!("\nA worker runs what is ready, most urgent first:\n");
    let worker = Worker::builder(&client).state(clock).job::<Greet>().job::<Charge>().job::<Report>().start()?;
    let said = report.wait().await?;

    println!("\nWhat became of them:\n");
    for id in [greet.id(), urgent.id(), later.id(), charge.id(), report.id()] {
        let Some(job) = client.store().job(id).await? else { continue };
        println!("  {:<8} {} after {} attempt(s)", job.job_type.as_str(), job.state, job.attempts);
        for attempt in job.attempt_log {
            let error = attempt.error.map(|error| format!(": {error}")).unwrap_or_default();
            println!("             {}. {}{error}", attempt.attempt, attempt.outcome);
        }
    }
    println!("\nThe report says: {said}");
    let _ = worker.shutdown().await;
    store.close().await;
    println!("The jobs are in {}.", path.display());
    Ok(())
}
