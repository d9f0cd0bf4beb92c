//! Fills a database as if it had been in use for a week.
//!
//! All rows are inserted by SQL in chronological order; running that many jobs would take an hour.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use axum::http::{Method, StatusCode};
use orchestrix_server::InProcessApi;
use tokio::{sync::Mutex, task::JoinSet};
use tokio_postgres::Client;

use super::Request;
use crate::{postgres, progress::Progress};

/// Finished jobs per statement, and concurrent statements.
const BATCH: usize = 500_000;
const CONNECTIONS: usize = 2;

const IDS: &str = include_str!("ids.sql");
const FINISHED: &str = include_str!("finished_jobs.sql");
const OTHER_ROWS: &str = include_str!("other_rows.sql");
const SCHEDULE: &str = r#"{"cron": "0 9 * * 1-5", "timezone": "Europe/Berlin", "job": {"jobType": "type-1", "payload": {"report": "daily"}}}"#;
const OPERATION: &str = r#"{"action": "cancel", "filter": {"queue": "queue-3", "state": "pending"}, "dryRun": true}"#;

/// The number of steps of the progress bar.
pub(super) const fn steps(request: &Request) -> usize {
    request.finished.div_ceil(BATCH) + 2
}

/// Fills the database behind `local`.
pub(super) async fn fill(
    client: &Client,
    local: &InProcessApi,
    url: &str,
    request: &Request,
    progress: &Progress,
) -> Result<()> {
    let now: String = client.query_one("SELECT now()::text", &[]).await?.get(0);
    let written = |sql: &str| {
        let sql = sql.replace("{now}", &now).replace("{finished}", &request.finished.to_string());
        sql.replace("{pending}", &request.pending.to_string())
    };
    client.batch_execute(&written(IDS)).await?;
    progress.step("finished jobs");
    finish(url, &written(FINISHED), request.finished, progress).await?;
    progress.step("all other rows");
    // One of each is created over the API, so that it has the store's format; the SQL copies it.
    let (status, body) = local.call(Method::PUT, "/schedules/bench", Some(SCHEDULE.into())).await?;
    ensure!(status == StatusCode::CREATED, "{status}: {body:?}");
    let (status, body) = local.call(Method::POST, "/admin/jobs/bulk", Some(OPERATION.into())).await?;
    ensure!(status == StatusCode::ACCEPTED, "{status}: {body:?}");
    client.batch_execute(&written(OTHER_ROWS)).await.context("other_rows.sql")?;
    progress.done();
    progress.step("statistics");
    client.batch_execute("VACUUM ANALYZE").await?;
    progress.done();
    Ok(())
}

async fn finish(url: &str, sql: &str, count: usize, progress: &Progress) -> Result<()> {
    let parts = Arc::new(Mutex::new((1..=count).step_by(BATCH)));
    let mut tasks = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (parts, client, sql, progress) =
            (Arc::clone(&parts), postgres::connect(url).await?, sql.to_owned(), progress.clone());
        tasks.spawn(async move {
            while let Some(first) = { parts.lock().await.next() } {
                let last = count.min(first + BATCH - 1);
                let sql = sql.replace("{first}", &first.to_string()).replace("{last}", &last.to_string());
                client.batch_execute(&sql).await.context("finished_jobs.sql")?;
                progress.done();
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}
