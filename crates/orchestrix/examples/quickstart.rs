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

use orchestrix::{
    ClaimRequest, Claimed, DependsOn, Fence, Finish, JobId, JobType, Json, NewJob, Priority, RetryPolicy,
    SqliteOptions, SqliteStore, Start, Store, Verdict, WorkerName,
};

fn job(job_type: &str, payload: &str) -> anyhow::Result<NewJob> {
    Ok(NewJob { payload: Json::of("payload", payload)?, ..NewJob::new(JobType::new(job_type)?) })
}

/// What a worker does. Real ones would send mails and resize pictures.
fn work(claimed: &Claimed) -> anyhow::Result<Verdict> {
    let payload: String = claimed.payload.to()?;
    let result = match claimed.job_type.as_str() {
        "charge" if claimed.attempt == 1 => return Ok(Verdict::fail("the bank did not answer")),
        "charge" => format!("charged {payload}"),
        "report" => {
            let results: Result<Vec<String>, _> =
                claimed.dependency_results.iter().map(|(_, json)| json.to()).collect();
            format!("today: {}", results?.join(", "))
        }
        "greet" => format!("Hello, {payload}!"),
        "resize" => format!("{payload} is smaller now"),
        other => format!("did {other} {payload}"),
    };
    Ok(Verdict::Complete { result: Some(Json::of("result", &result)?) })
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
    let start = Instant::now();
    let say = |what: &str, name: &str, more: &str| {
        println!("{:5.2}s  {what:<10} {name:<8} {more}", start.elapsed().as_secs_f32());
    };

    // Subscribe before the first look for jobs, so that no wake-up is missed.
    let mut wakeups = store.subscribe();

    println!("\nFive jobs, each safe on the disk before `enqueue` returns:\n");
    let soon = RetryPolicy { base: Duration::from_millis(600), ..RetryPolicy::default() };
    let resize = job("resize", "cat.png")?;
    let urgent = NewJob { priority: Priority::new(10)?, ..job("greet", "Ada")? };
    let later = NewJob { start: Start::After(Duration::from_millis(300)), ..job("remind", "Ada")? };
    let flaky = NewJob { retry: soon, ..job("charge", "9.99 EUR")? };
    let mut ids: Vec<JobId> = Vec::new();
    for request in [resize, urgent, later, flaky] {
        let name = request.job_type.clone();
        let enqueued = store.enqueue(request).await?;
        say("enqueued", name.as_str(), &format!("is {}", enqueued.state));
        ids.push(enqueued.id);
    }
    let parents = vec![DependsOn::Job(ids[0]), DependsOn::Job(ids[3])];
    let enqueued = store.enqueue(NewJob { depends_on: parents, ..job("report", "")? }).await?;
    say("enqueued", "report", &format!("is {}: it waits for resize and charge", enqueued.state));
    ids.push(enqueued.id);

    println!("\nA worker claims what is ready, most urgent first:\n");
    let request = ClaimRequest::any(WorkerName::new("worker-1")?, 10);
    while !store.depths().await?.is_empty() {
        // In production the coordinator promotes; here the worker does, and learns when the next job is due.
        let due = store.promote(Fence::NONE, 100).await?;
        let claimed = store.claim(&request).await?;
        if claimed.is_empty() {
            let nap = due.next_in.unwrap_or(Duration::from_secs(1));
            // Whichever comes first: a job's time, or a hint that something else became claimable.
            let _ = tokio::time::timeout(nap, wakeups.next()).await;
            continue;
        }
        for claimed in claimed {
            let name = claimed.job_type.as_str();
            say("running", name, &format!("attempt {} of {}", claimed.attempt, claimed.max_attempts));
            let verdict = work(&claimed)?;
            let told = match &verdict {
                Verdict::Complete { result: Some(json) } => json.to()?,
                Verdict::Fail { error, .. } => error.clone(),
                other => format!("{other:?}"),
            };
            let answers = store.finish(vec![Finish { token: claimed.token, verdict }]).await?;
            for state in answers {
                say(state?.as_str(), name, &told);
            }
        }
    }

    println!("\nWhat is kept of them:\n");
    for id in ids {
        let Some(job) = store.get(id).await? else { continue };
        let attempts = if job.attempts == 1 { "1 attempt".into() } else { format!("{} attempts", job.attempts) };
        println!("  {:<8} {} after {attempts}", job.job_type.as_str(), job.state);
        for attempt in job.attempt_log {
            let error = attempt.error.map(|error| format!(": {error}")).unwrap_or_default();
            println!("             {}. {}{error}", attempt.attempt, attempt.outcome);
        }
    }
    store.close().await;
    println!("\nThey are in {}.", path.display());
    Ok(())
}
