//! E-mail with retries: a busy mail server, a full mailbox and an address that does not exist.
//!
//! ```text
//! cargo run --example email
//! ```

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use orchestrix::{Client, ClientError, Context, Job, JobError, JobResult, MemoryStore, ResultExt, Run, Worker};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize, Job)]
#[job(
    type = "send-email",
    queue = "mail",
    max_attempts = 5,
    timeout = "10s",
    retry(base = "100ms", multiplier = 3.0, max = "1m", jitter = 0.2)
)]
struct SendEmail {
    to: String,
    subject: String,
}

/// The application's mail client, shared by all handlers.
struct MailServer {
    calls: AtomicU32,
}

#[derive(Debug, thiserror::Error)]
enum MailError {
    #[error("451 try again later")]
    Busy,
    #[error("452 mailbox full")]
    Full,
    #[error("550 no such user: {0}")]
    NoSuchUser(String),
}

impl MailServer {
    async fn deliver(&self, mail: &SendEmail) -> Result<(), MailError> {
        match (self.calls.fetch_add(1, Ordering::Relaxed), mail.to.as_str()) {
            (0, _) => Err(MailError::Busy),
            (_, "full@example.com") => Err(MailError::Full),
            (_, to) if !to.contains('@') => Err(MailError::NoSuchUser(to.into())),
            _ => Ok(()),
        }
    }
}

impl Run for SendEmail {
    async fn run(self, ctx: Context) -> JobResult {
        let server = ctx.state::<MailServer>()?;
        ctx.info(format_args!("attempt {} of {}", ctx.attempt(), ctx.max_attempts()));
        match server.deliver(&self).await {
            // Retried after the job's back-off.
            Err(error @ MailError::Busy) => Err(error.into()),
            // Retried after our own delay, and cancelled after three attempts.
            Err(MailError::Full) if ctx.attempt() == 3 => Err(JobError::cancel()),
            Err(error @ MailError::Full) => Err(JobError::retry_after(Duration::from_millis(50), error)),
            // A retry would fail again: the job becomes dead.
            result => result.fatal(),
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = Client::new(MemoryStore::new());
    let worker = Worker::builder(&client)
        .queue("mail")
        .concurrency(1)
        .state(MailServer { calls: AtomicU32::new(0) })
        .job::<SendEmail>()
        .start()?;
    let mut jobs = Vec::new();
    for to in ["ada@example.com", "full@example.com", "no-address"] {
        // Enqueued once, however often the request is repeated.
        let request =
            SendEmail { to: to.into(), subject: "Hello".into() }.request().idempotency_key(format!("hello-{to}"));
        jobs.push((to, client.enqueue(request).await?));
    }
    for (to, job) in jobs {
        let outcome = match job.wait().await {
            Ok(()) => "delivered".to_owned(),
            Err(ClientError::Failed { error, .. }) => format!("failed: {error}"),
            Err(error) => error.to_string(),
        };
        println!("{to:<18} after {} attempt(s): {outcome}", job.status().await?.attempts);
    }
    let _ = worker.shutdown().await;
    Ok(())
}
