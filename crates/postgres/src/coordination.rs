//! Who leads, and who is there.

use std::time::Duration;

use orchestrix_core::{NodeName, tzdb_version};
use orchestrix_store::{
    Epoch, Fence, Leadership, NodeInfo, NodeStatus, Page, PageRequest, Result, StoreError, SweepTimes,
    coordination::check_term,
};
use tokio_postgres::Row;

use crate::{
    PostgresStore,
    record::millis,
    row::sweep_limit,
    statement::{AGENDA, FORGET_NODES, HEARTBEAT_NODE, NODES, REMOVE_NODE, RENEW_TERM, RESIGN, TAKE_OVER, TERM},
};

pub(crate) async fn campaign(
    store: &PostgresStore,
    node: &NodeName,
    term: Duration,
    held: Option<Epoch>,
) -> Result<Leadership> {
    check_term(term)?;
    let (database, name, term) = (store.database(), node.as_str(), millis(term));
    let leads = |rows: Vec<Row>| rows.first().map(|row| Leadership::Leading(Epoch(row.get(0))));
    if let Some(epoch) = held
        && let Some(leading) = leads(database.query(&RENEW_TERM, &[&name, &epoch.0, &term]).await?)
    {
        return Ok(leading);
    }
    // Most candidates find a term that runs, and need not try.
    let (following, over) = standing(store).await?;
    if over && let Some(leading) = leads(database.query(&TAKE_OVER, &[&name, &term]).await?) {
        return Ok(leading);
    }
    Ok(if over { standing(store).await?.0 } else { following })
}

// Whose term it is, and whether it is over.
async fn standing(store: &PostgresStore) -> Result<(Leadership, bool)> {
    let rows = store.database().query(&TERM, &[]).await?;
    let row = rows.first().ok_or_else(|| StoreError::Backend("the row of the term is gone".into()))?;
    let ends_in = duration(row.get(2));
    let leader = row.get::<_, Option<&str>>(1).map(NodeName::trusted);
    Ok((Leadership::Following { leader, epoch: Epoch(row.get(0)), ends_in }, ends_in.is_zero()))
}

/// The node whose term runs.
pub(crate) async fn leader(store: &PostgresStore) -> Result<Option<NodeName>> {
    Ok(match standing(store).await? {
        (Leadership::Following { leader, .. }, false) => leader,
        _ => None,
    })
}

pub(crate) async fn resign(store: &PostgresStore, node: &NodeName, epoch: Epoch) -> Result<bool> {
    Ok(!store.database().query(&RESIGN, &[&node.as_str(), &epoch.0]).await?.is_empty())
}

pub(crate) async fn agenda(store: &PostgresStore) -> Result<SweepTimes> {
    let rows = store.database().query(&AGENDA, &[&tzdb_version()]).await?;
    let row = rows.first().ok_or_else(|| StoreError::Backend("the agenda has no row".into()))?;
    let next = |column: usize| row.get::<_, Option<f64>>(column).map(duration);
    Ok(SweepTimes {
        promote: next(0),
        expire: next(1),
        reap: next(2),
        time_out: next(3),
        unblock: row.get::<_, bool>(4).then_some(Duration::ZERO),
        fire: next(5),
        up: next(6),
    })
}

fn duration(millis: f64) -> Duration {
    Duration::from_secs_f64(millis.max(0.0) / 1000.0)
}

pub(crate) async fn heartbeat_node(store: &PostgresStore, node: &NodeInfo) -> Result<()> {
    node.validate()?;
    store.database().query(&HEARTBEAT_NODE, &[&node.name.as_str(), &node.address, &node.roles]).await?;
    Ok(())
}

pub(crate) async fn remove_node(store: &PostgresStore, name: &NodeName) -> Result<bool> {
    Ok(!store.database().query(&REMOVE_NODE, &[&name.as_str()]).await?.is_empty())
}

pub(crate) async fn forget_nodes(
    store: &PostgresStore,
    fence: Fence,
    silence: Duration,
    limit: usize,
) -> Result<usize> {
    let limit = sweep_limit(limit)?;
    let work = store.database().work(fence).await?;
    let forgotten = work.query(&FORGET_NODES, &[&millis(silence), &limit]).await?.len();
    work.commit().await?;
    Ok(forgotten)
}

pub(crate) async fn nodes(store: &PostgresStore, page: &PageRequest<NodeName>) -> Result<Page<NodeStatus, NodeName>> {
    page.validate()?;
    let after = page.cursor.as_ref().map_or("", NodeName::as_str);
    let rows = store.database().query(&NODES, &[&after, &(page.limit as i64 + 1)]).await?;
    let items: Vec<NodeStatus> = rows.iter().take(page.limit).map(status).collect();
    let next = (rows.len() > page.limit).then(|| items.last().map(|node| node.info.name.clone())).flatten();
    Ok(Page { items, next })
}

/// A row of the list.
pub(crate) fn status(row: &Row) -> NodeStatus {
    NodeStatus {
        info: NodeInfo { name: NodeName::trusted(row.get(0)), address: row.get(1), roles: row.get(2) },
        started_at: row.get(3),
        last_seen_at: row.get(4),
        leads: row.get(5),
    }
}
