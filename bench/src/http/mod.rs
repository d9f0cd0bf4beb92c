//! The HTTP server as a separate process, under load by wrk.

mod growth;
mod server;
mod sides;
mod waits;
mod wrk;

use anyhow::Result;

pub(crate) use self::server::{HttpServer, allow_connections};
use self::sides::{Get, Plain};
pub(crate) use self::{growth::growth, waits::waits};
use crate::{
    arguments::Request,
    figure::Figure,
    measure::{Pair, Place, Side},
    postgres::Server,
    progress::Progress,
    report::Row,
    sample::thousands,
    single,
};

/// The default number of connections: the same as the callers on the library's side.
const CONNECTIONS: usize = single::CALLERS;
/// Where the peak is searched, and loads far beyond it.
const LADDER: [usize; 3] = [64, 128, 256];
const TOO_MANY: [usize; 2] = [1_000, 5_000];
/// Jobs on the library's side: about ten seconds of work.
const JOBS: usize = 100_000;

/// The number of progress steps of `overload`.
pub(crate) const fn overload_steps(rounds: usize) -> usize {
    LADDER.len() + 2 * TOO_MANY.len() * rounds
}

/// Compares `POST /jobs` with the store's enqueue, with as many callers.
pub(crate) async fn post(pair: &Pair<'_, Server>, request: &Request) -> Result<Row> {
    let library = single::of(request.scale.of(JOBS));
    pair.compare(&Plain::post(CONNECTIONS, request.scale), &library).await
}

/// Compares `GET /jobs/{id}` with `POST /jobs`.
pub(crate) async fn get(pair: &Pair<'_, Server>, request: &Request) -> Result<Row> {
    let get = Get::new(CONNECTIONS, request.scale)?;
    pair.compare(&get, &Plain::post(CONNECTIONS, request.scale)).await
}

/// Measures the cheapest request: an upper bound for all others on this machine.
pub(crate) async fn health(pair: &Pair<'_, Server>, request: &Request) -> Result<Row> {
    let mut row =
        pair.compare(&Plain::health(CONNECTIONS, request.scale), &Plain::post(CONNECTIONS, request.scale)).await?;
    row.written.clear();
    Ok(row)
}

/// Measures the cost of authentication for a cheap and for an expensive request, compared with a server without auth.
pub(crate) async fn keys(pair: &Pair<'_, Server>, request: &Request) -> Result<Vec<Row>> {
    let get = || Get::new(CONNECTIONS, request.scale);
    let post = || Plain::post(CONNECTIONS, request.scale);
    let looks = pair.compare(&get()?.with_key(), &get()?).await?;
    let posts = pair.compare(&post().with_key(), &post()).await?;
    let named = |row: Row, what: &str| Row { figure: format!("{}, {what}", row.figure), ..row };
    Ok(vec![named(looks, "get"), named(posts, "post")])
}

/// Measures accepted jobs under overload, compared with the peak.
pub(crate) async fn overload(pair: &Pair<'_, Server>, request: &Request, progress: &Progress) -> Result<Vec<Row>> {
    allow_connections(TOO_MANY[TOO_MANY.len() - 1])?;
    let mut peak = (0.0, CONNECTIONS);
    for connections in LADDER {
        progress.step(format!("{}, peak at {connections} connections?", Figure::Overload.name()));
        let found = pair.place.sample(&Plain::post(connections, request.scale)).await?.jobs_per_second;
        progress.note(&format!("{} connections: {} jobs/s", connections, thousands(found)));
        progress.done();
        if found > peak.0 {
            peak = (found, connections);
        }
    }
    let mut rows = Vec::new();
    for connections in TOO_MANY {
        let crowd = Plain::post(connections, request.scale);
        let row = pair.compare(&crowd, &Plain::post(peak.1, request.scale)).await?;
        rows.push(Row { figure: format!("{}, {connections} against {}", row.figure, peak.1), ..row });
        progress.note(&format!("{connections} connections: {}", crowd.what_else()));
    }
    Ok(rows)
}

/// A server on a filled database, for figures without a comparison.
struct Ground {
    database: crate::measure::Database,
    server: server::HttpServer,
}

impl Ground {
    async fn prepare(place: &Server, side: &impl Side) -> Result<Self> {
        let database = place.create_database().await?;
        side.prepare(&database.url).await?;
        let server = server::HttpServer::start(&database.url).await?;
        Ok(Self { database, server })
    }

    async fn clear(self, place: &Server) -> Result<()> {
        drop(self.server);
        place.drop_database(self.database).await
    }
}
