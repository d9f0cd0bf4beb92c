//! The HTTP server, as a process of its own, under wrk: what it makes of the store beneath it, and what that costs.

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

/// Connections, unless a figure says otherwise: as many as the library's side has callers.
const CONNECTIONS: usize = single::CALLERS;
/// Where the peak is looked for, and what comes at ten times its load, and at far more.
const LADDER: [usize; 3] = [64, 128, 256];
const TOO_MANY: [usize; 2] = [1_000, 5_000];
/// Jobs of the library's side: some ten seconds' worth.
const JOBS: usize = 100_000;

/// How many steps of the progress bar `overload` takes.
pub(crate) const fn overload_steps(rounds: usize) -> usize {
    LADDER.len() + 2 * TOO_MANY.len() * rounds
}

/// Measures `POST /jobs` beside the store's own enqueue, from as many callers.
pub(crate) async fn post(pair: &Pair<'_, Server>, request: &Request) -> Result<Row> {
    let library = single::of(request.scale.of(JOBS));
    pair.compare(&Plain::post(CONNECTIONS, request.scale), &library).await
}

/// Measures `GET /jobs/{id}` beside `POST /jobs`.
pub(crate) async fn get(pair: &Pair<'_, Server>, request: &Request) -> Result<Row> {
    let get = Get::new(CONNECTIONS, request.scale)?;
    pair.compare(&get, &Plain::post(CONNECTIONS, request.scale)).await
}

/// Measures what a request costs that asks for nothing: no other can be answered faster, by this server on this machine.
pub(crate) async fn health(pair: &Pair<'_, Server>, request: &Request) -> Result<Row> {
    let mut row =
        pair.compare(&Plain::health(CONNECTIONS, request.scale), &Plain::post(CONNECTIONS, request.scale)).await?;
    row.written.clear();
    Ok(row)
}

/// Measures what asking for a key costs, of the least and of the most that a request does: the same requests to a server that asks for none.
pub(crate) async fn keys(pair: &Pair<'_, Server>, request: &Request) -> Result<Vec<Row>> {
    let get = || Get::new(CONNECTIONS, request.scale);
    let post = || Plain::post(CONNECTIONS, request.scale);
    let looks = pair.compare(&get()?.with_key(), &get()?).await?;
    let posts = pair.compare(&post().with_key(), &post()).await?;
    let named = |row: Row, what: &str| Row { figure: format!("{}, {what}", row.figure), ..row };
    Ok(vec![named(looks, "get"), named(posts, "post")])
}

/// Measures how many jobs are accepted when far more clients come than can be served, beside the most that ever are.
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

/// A server with jobs in its database, for figures that are not compared.
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
