//! A worker inside an axum service: one process serves requests, enqueues jobs and runs them.
//!
//! ```text
//! cargo run --example service            # serves until Ctrl-C
//! cargo run --example service -- --try   # sends itself one request and ends
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

type HandlerResponse = Result<(StatusCode, Json<serde_json::Value>), (StatusCode, String)>;

fn internal_error(error: impl std::fmt::Display) -> (StatusCode, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

async fn greet(State(client): State<Client>, Path(name): Path<String>) -> HandlerResponse {
    let job = client.enqueue(Greet { name }).await.map_err(internal_error)?;
    // The job is durable: it will run even if this process crashes now.
    Ok((StatusCode::ACCEPTED, Json(serde_json::json!({ "job": job.id() }))))
}

async fn greeting(State(client): State<Client>, Path(id): Path<JobId>) -> HandlerResponse {
    let Some(job) = client.job::<Greet>(id).await.map_err(internal_error)? else {
        return Err((StatusCode::NOT_FOUND, "no such job".into()));
    };
    Ok((StatusCode::OK, Json(serde_json::json!({ "greeting": job.wait().await.map_err(internal_error)? }))))
}

async fn send(address: std::net::SocketAddr, request: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    Ok(response.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let try_once = env::args().any(|argument| argument == "--try");
    let file = env::temp_dir().join(format!("orchestrix-service-{}.db", std::process::id()));
    let store = SqliteStore::open(SqliteOptions::new(&file)).await?;
    let client = Client::new(store.clone());
    let worker = Worker::builder(&client).job::<Greet>().start()?;
    let routes =
        Router::new().route("/greet/{name}", post(greet)).route("/greetings/{id}", get(greeting)).with_state(client);
    let listener = TcpListener::bind(("127.0.0.1", if try_once { 0 } else { 3000 })).await?;
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
    if try_once {
        let accepted: serde_json::Value = serde_json::from_str(&send(address, "POST /greet/Ada").await?)?;
        let id = accepted["job"].as_str().unwrap_or_default();
        println!("{}", send(address, &format!("GET /greetings/{id}")).await?);
    } else {
        tokio::signal::ctrl_c().await?;
    }
    // Stop serving requests first, then shut the worker down.
    let _ = stop.send(());
    server.await??;
    let _ = worker.shutdown().await;
    store.close().await;
    Ok(())
}
