//! Enqueues jobs over HTTP at a steady rate.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    sync::mpsc,
    task::JoinSet,
};

/// Connections for enqueueing.
const CONNECTIONS: usize = 16;

/// A load of jobs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) rate: usize,
    pub(super) seconds: usize,
    /// Round-robin over this many queues.
    pub(super) queues: usize,
}

/// An enqueued job.
#[derive(Debug, Clone)]
pub(super) struct EnqueuedJob {
    pub(super) id: String,
    /// Its number, and the number of its queue.
    pub(super) n: usize,
    pub(super) queue: usize,
}

impl Load {
    /// Enqueues all jobs at the given rate, and calls back with each accepted job.
    pub(super) async fn send(
        self,
        address: &str,
        accepted: impl Fn(&EnqueuedJob) + Send + Sync + 'static,
    ) -> Result<usize> {
        let (count, accepted) = (self.rate * self.seconds, Arc::new(accepted));
        let mut connections = JoinSet::new();
        let (request, requests) = mpsc::channel::<usize>(count.max(1));
        let requests = Arc::new(tokio::sync::Mutex::new(requests));
        for _ in 0..CONNECTIONS {
            let (address, requests, accepted) = (address.to_owned(), Arc::clone(&requests), Arc::clone(&accepted));
            connections.spawn(async move {
                let mut stream = BufReader::new(TcpStream::connect(&address).await?);
                stream.get_ref().set_nodelay(true)?;
                loop {
                    let next = requests.lock().await.recv().await;
                    let Some(n) = next else { return Ok::<_, anyhow::Error>(()) };
                    let id = enqueue(&mut stream, &address, n, n % self.queues).await?;
                    accepted(&EnqueuedJob { id, n, queue: n % self.queues });
                }
            });
        }
        let begun = Instant::now();
        for n in 0..count {
            let due = begun + Duration::from_secs_f64(n as f64 / self.rate as f64);
            tokio::time::sleep_until(due.into()).await;
            request.send(n).await?;
        }
        drop(request);
        while let Some(done) = connections.join_next().await {
            done??;
        }
        Ok(count)
    }
}

pub(super) fn queue(n: usize) -> String {
    format!("q-{n}")
}

// Jobs run from 0 to 0.7 s: some end before the next poll of the server, some run for several.
async fn enqueue(stream: &mut BufReader<TcpStream>, address: &str, n: usize, of: usize) -> Result<String> {
    let seconds = (n % 8) as f64 / 10.0;
    let body = json!({"jobType": "orchestrix.sleep", "payload": {"seconds": seconds}, "queue": queue(of)}).to_string();
    let head = format!(
        "POST /jobs HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.get_mut().write_all(format!("{head}{body}").as_bytes()).await?;
    let (mut line, mut length) = (String::new(), 0);
    stream.read_line(&mut line).await?;
    ensure!(line.starts_with("HTTP/1.1 202"), "the enqueue was refused: {line}");
    while line != "\r\n" {
        line.clear();
        ensure!(stream.read_line(&mut line).await? > 0, "the connection ended");
        if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = text.trim().parse()?;
        }
    }
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer).await?;
    let answer: Value = serde_json::from_slice(&answer)?;
    Ok(answer["jobId"].as_str().context("the response has no jobId")?.to_owned())
}
