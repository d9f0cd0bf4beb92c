//! A long import that reports progress and resumes from a checkpoint after a failure.
//!
//! ```text
//! cargo run --example import
//! ```

use std::time::Duration;

use orchestrix::{Client, Context, Job, JobResult, LogLevel, MemoryStore, PageRequest, Run, Worker};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Job)]
#[job(type = "import", timeout = "1h", lease = "10s", retry(base = "50ms"), output = Summary)]
struct Import {
    rows: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Summary {
    rows: u64,
    attempts: u16,
}

/// The checkpoint that a failed attempt leaves for the next.
#[derive(Serialize, Deserialize)]
struct Checkpoint {
    rows: u64,
}

impl Run for Import {
    async fn run(self, ctx: Context) -> JobResult<Summary> {
        let mut done = ctx.checkpoint::<Checkpoint>()?.map_or(0, |checkpoint| checkpoint.rows);
        ctx.info(format_args!("starting at row {done}"));
        while done < self.rows {
            if ctx.is_cancelled() {
                // The job was cancelled, or the worker shuts down. The checkpoint is kept.
                return Err("interrupted".into());
            }
            // Stands for writing a batch of rows.
            tokio::time::sleep(Duration::from_millis(2)).await;
            done += 100;
            ctx.save_checkpoint(&Checkpoint { rows: done }).await?;
            ctx.progress_with(100.0 * done as f64 / self.rows as f64, format_args!("{done} of {} rows", self.rows));
            if done == self.rows / 2 && ctx.attempt() == 1 {
                ctx.log_with(LogLevel::Warn, "the disk is full", &serde_json::json!({ "row": done }));
                return Err("the disk is full".into());
            }
        }
        Ok(Summary { rows: done, attempts: ctx.attempt() })
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = Client::new(MemoryStore::new());
    let worker = Worker::builder(&client).job::<Import>().start()?;
    let job = client.enqueue(Import { rows: 20_000 }).await?;
    let summary = loop {
        tokio::select! {
            summary = job.wait() => break summary?,
            () = tokio::time::sleep(Duration::from_millis(200)) => {
                if let Some(progress) = job.status().await?.progress {
                    println!("{:5.1} %  {}", progress.percent.unwrap_or(0.0), progress.message.unwrap_or_default());
                }
            }
        }
    };
    println!("done: {summary:?}\n\nlog:");
    for line in client.store().job_logs(job.id(), &PageRequest::first(100)).await?.items {
        println!("  attempt {}  {:<5} {}", line.attempt, line.level, line.message);
    }
    let _ = worker.shutdown().await;
    Ok(())
}
