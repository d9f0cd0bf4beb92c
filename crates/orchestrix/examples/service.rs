//! A worker inside an axum service: one process that takes requests, records jobs and works on them.
//!
//! ```text
//! cargo run --example service            # serves until Ctrl-C
//! cargo run --example service -- --try   # asks itself once and ends
//! curl -X POST localhost:3000/greet/Ada
//! ```

use std::env;

use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    routing::{get, post},
};
use orchestrix::{Client, Context, Job, JobId, JobResult, Run, SqliteOptions, SqliteStore, Worker};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

#[derive(Serialize, Deserialize, Job)]
#[job(output = String)]
struct Greet {
    name: String,
}

impl Run for Greet {
    async fn run(self, _: Context) -> JobResult<String> {
        Ok(format!("Hello, {}!", self.name))
    }
}

type Answer = Result<(StatusCode, Json<serde_json::Value>), (StatusCode, String)>;

fn failed(error: impl std::fmt::Display) -> (StatusCode, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

async fn greet(State(client): State<Client>, Path(name): Path<String>) -> Answer {
    let job = client.enqueue(Greet { name }).await.map_err(failed)?;
    // The job is on the disk: whatever happens now, it will be done.
    Ok((StatusCode::ACCEPTED, Json(serde_json::json!({ "job": job.id() }))))
}

async fn greeting(State(client): State<Client>, Path(id): Path<JobId>) -> Answer {
    let Some(job) = client.job::<Greet>(id).await.map_err(failed)? else {
        return Err((StatusCode::NOT_FOUND, "no such job".into()));
    };
    Ok((StatusCode::OK, Json(serde_json::json!({ "greeting": job.wait().await.map_err(failed)? }))))
}

async fn ask(address: std::net::SocketAddr, request: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let alone = env::args().any(|argument| argument == "--try");
    let file = env::temp_dir().join(format!("orchestrix-service-{}.db", std::process::id()));
    let store = SqliteStore::open(SqliteOptions::new(&file)).await?;
    let client = Client::new(store.clone());
    let worker = Worker::builder(&client).job::<Greet>().start()?;
    let routes =
        Router::new().route("/greet/{name}", post(greet)).route("/greetings/{id}", get(greeting)).with_state(client);
    let listener = TcpListener::bind(("127.0.0.1", if alone { 0 } else { 3000 })).await?;
    let address = listener.local_addr()?;
    println!("listening on http://{address}");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = tokio::spawn(
        axum::serve(listener, routes)
            .with_graceful_shutdown(async move {
                let _ = stopped.await;
            })
            .into_future(),
    );
    if alone {
        let accepted: serde_json::Value = serde_json::from_str(&ask(address, "POST /greet/Ada").await?)?;
        let id = accepted["job"].as_str().unwrap_or_default();
        println!("{}", ask(address, &format!("GET /greetings/{id}")).await?);
    } else {
        tokio::signal::ctrl_c().await?;
    }
    // First no more requests, then the jobs that run.
    let _ = stop.send(());
    server.await??;
    let _ = worker.shutdown().await;
    store.close().await;
    Ok(())
}
