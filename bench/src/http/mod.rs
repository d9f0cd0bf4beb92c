//! The HTTP server as a separate process, under load by wrk.

mod growth;
mod server;
mod waits;
mod workloads;
mod wrk;

use anyhow::Result;

pub(crate) use self::server::{HttpServer, allow_connections};
use self::workloads::{JobReads, SimpleRequests};
pub(crate) use self::{growth::growth, waits::waits};
use crate::{
    arguments::Request,
    figure::Figure,
    measure::{Comparison, DatabaseHost, Workload},
    postgres::Server,
    progress::Progress,
    report::Row,
    sample::thousands,
    single,
};

/// The default number of connections: the same as the callers on the library's side.
const CONNECTIONS: usize = single::CALLERS;
/// Where the peak is searched, and loads far beyond it.
const PEAK_SEARCH: [usize; 3] = [64, 128, 256];
const OVERLOADS: [usize; 2] = [1_000, 5_000];
/// Jobs on the library's side: about ten seconds of work.
const JOBS: usize = 100_000;

/// The number of progress steps of `overload`.
pub(crate) const fn overload_steps(rounds: usize) -> usize {
    PEAK_SEARCH.len() + 2 * OVERLOADS.len() * rounds
}

/// Compares `POST /jobs` with the store's enqueue, with as many callers.
pub(crate) async fn post(comparison: &Comparison<'_, Server>, request: &Request) -> Result<Row> {
    let library = single::of(request.scale.of(JOBS));
    comparison.compare(&SimpleRequests::post(CONNECTIONS, request.scale), &library).await
}

/// Compares `GET /jobs/{id}` with `POST /jobs`.
pub(crate) async fn get(comparison: &Comparison<'_, Server>, request: &Request) -> Result<Row> {
    let get = JobReads::new(CONNECTIONS, request.scale)?;
    comparison.compare(&get, &SimpleRequests::post(CONNECTIONS, request.scale)).await
}

/// Measures the cheapest request: an upper bound for all others on this machine.
pub(crate) async fn health(comparison: &Comparison<'_, Server>, request: &Request) -> Result<Row> {
    let mut row = comparison
        .compare(&SimpleRequests::health(CONNECTIONS, request.scale), &SimpleRequests::post(CONNECTIONS, request.scale))
        .await?;
    row.written.clear();
    Ok(row)
}

/// Measures the cost of authentication for a cheap and for an expensive request, compared with a server without auth.
pub(crate) async fn keys(comparison: &Comparison<'_, Server>, request: &Request) -> Result<Vec<Row>> {
    let get = || JobReads::new(CONNECTIONS, request.scale);
    let post = || SimpleRequests::post(CONNECTIONS, request.scale);
    let reads = comparison.compare(&get()?.with_key(), &get()?).await?;
    let posts = comparison.compare(&post().with_key(), &post()).await?;
    let named = |row: Row, what: &str| Row { figure: format!("{}, {what}", row.figure), ..row };
    Ok(vec![named(reads, "get"), named(posts, "post")])
}

/// Measures accepted jobs under overload, compared with the peak.
pub(crate) async fn overload(
    comparison: &Comparison<'_, Server>,
    request: &Request,
    progress: &Progress,
) -> Result<Vec<Row>> {
    allow_connections(OVERLOADS[OVERLOADS.len() - 1])?;
    let mut peak = (0.0, CONNECTIONS);
    for connections in PEAK_SEARCH {
        progress.step(format!("{}, peak at {connections} connections?", Figure::Overload.name()));
        let found = comparison.host.sample(&SimpleRequests::post(connections, request.scale)).await?.jobs_per_second;
        progress.note(&format!("{} connections: {} jobs/s", connections, thousands(found)));
        progress.done();
        if found > peak.0 {
            peak = (found, connections);
        }
    }
    let mut rows = Vec::new();
    for connections in OVERLOADS {
        let crowd = SimpleRequests::post(connections, request.scale);
        let row = comparison.compare(&crowd, &SimpleRequests::post(peak.1, request.scale)).await?;
        rows.push(Row { figure: format!("{}, {connections} against {}", row.figure, peak.1), ..row });
        progress.note(&format!("{connections} connections: {}", crowd.summary()));
    }
    Ok(rows)
}

/// A server on a filled database, for figures without a comparison.
struct FilledServer {
    database: crate::measure::Database,
    server: server::HttpServer,
}

impl FilledServer {
    async fn prepare(host: &Server, side: &impl Workload) -> Result<Self> {
        let database = host.create_database().await?;
        side.prepare(&database.url).await?;
        let server = server::HttpServer::start(&database.url).await?;
        Ok(Self { database, server })
    }

    async fn tear_down(self, host: &Server) -> Result<()> {
        drop(self.server);
        host.drop_database(self.database).await
    }
}
