//! The store's verbs for coordinators: leadership, nodes, and the leader's sweeps.

use std::time::Duration;

use async_trait::async_trait;
use orchestrix_core::{NodeName, OperationId, tzdb_version};
use orchestrix_store::{
    CoordinationStore, Epoch, Fence, Leadership, NodeInfo, NodeStatus, Operation, OperationStep, Page, PageRequest,
    Pruned, Result, Retention, StoreError, SweepResult, SweepTimes, coordination::check_term,
};
use tokio_postgres::Row;

use crate::{
    PostgresStore, dependents, fire,
    job_columns::millis,
    operation, prune, queue,
    row::sweep_limit,
    statement::{
        FORGET_NODES, HEARTBEAT_NODE, LEADER_TERM, LIST_NODES, NEXT_SWEEP_TIMES, REMOVE_NODE, RENEW_TERM,
        RESIGN_LEADERSHIP, TAKE_OVER_LEADERSHIP,
    },
    sweeps, vacuum, worker,
};

#[async_trait]
impl CoordinationStore for PostgresStore {
    async fn campaign_for_leadership(
        &self,
        node: &NodeName,
        term: Duration,
        held: Option<Epoch>,
    ) -> Result<Leadership> {
        check_term(term)?;
        let (database, name, term) = (self.database(), node.as_str(), millis(term));
        let leading = |rows: Vec<Row>| rows.first().map(|row| Leadership::Leading(Epoch(row.get("epoch"))));
        if let Some(epoch) = held
            && let Some(leading) = leading(database.query(&RENEW_TERM, &[&name, &epoch.0, &term]).await?)
        {
            return Ok(leading);
        }
        // Most candidates find a running term and need not write.
        let (following, ended) = current_term(self).await?;
        if ended && let Some(leading) = leading(database.query(&TAKE_OVER_LEADERSHIP, &[&name, &term]).await?) {
            return Ok(leading);
        }
        Ok(if ended { current_term(self).await?.0 } else { following })
    }

    async fn resign_leadership(&self, node: &NodeName, epoch: Epoch) -> Result<bool> {
        Ok(!self.database().query(&RESIGN_LEADERSHIP, &[&node.as_str(), &epoch.0]).await?.is_empty())
    }

    async fn leader(&self) -> Result<Option<NodeName>> {
        Ok(match current_term(self).await? {
            (Leadership::Following { leader, .. }, false) => leader,
            _ => None,
        })
    }

    async fn heartbeat_node(&self, node: &NodeInfo) -> Result<()> {
        node.validate()?;
        self.database().query(&HEARTBEAT_NODE, &[&node.name.as_str(), &node.address, &node.roles]).await?;
        Ok(())
    }

    async fn remove_node(&self, name: &NodeName) -> Result<bool> {
        Ok(!self.database().query(&REMOVE_NODE, &[&name.as_str()]).await?.is_empty())
    }

    async fn list_nodes(&self, page: &PageRequest<NodeName>) -> Result<Page<NodeStatus, NodeName>> {
        page.validate()?;
        let after = page.cursor.as_ref().map_or("", NodeName::as_str);
        let rows = self.database().query(&LIST_NODES, &[&after, &(page.limit as i64 + 1)]).await?;
        let items: Vec<NodeStatus> = rows.iter().take(page.limit).map(node_status).collect();
        let next = (rows.len() > page.limit).then(|| items.last().map(|node| node.info.name.clone())).flatten();
        Ok(Page { items, next })
    }

    async fn promote_jobs(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        sweeps::promote_jobs(self, fence, limit).await
    }

    async fn unblock_jobs(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        dependents::unblock_jobs(self, fence, limit).await
    }

    async fn expire_jobs(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        sweeps::expire_jobs(self, fence, limit).await
    }

    async fn reap_leases(&self, fence: Fence, limit: usize, crash_loop: u16) -> Result<SweepResult> {
        sweeps::reap_leases(self, fence, limit, crash_loop).await
    }

    async fn time_out_attempts(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        sweeps::time_out_attempts(self, fence, limit).await
    }

    async fn fire_schedules(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        fire::fire_schedules(self, fence, limit).await
    }

    async fn advance_operation(&self, fence: Fence, id: OperationId, step: OperationStep) -> Result<Operation> {
        operation::advance(self, fence, id, &step).await
    }

    async fn forget_workers(&self, fence: Fence, silence: Duration, limit: usize) -> Result<usize> {
        worker::forget_workers(self, fence, silence, limit).await
    }

    async fn forget_nodes(&self, fence: Fence, silence: Duration, limit: usize) -> Result<usize> {
        let limit = sweep_limit(limit)?;
        let tx = self.database().fenced(fence).await?;
        let forgotten = tx.query(&FORGET_NODES, &[&millis(silence), &limit]).await?.len();
        tx.commit().await?;
        Ok(forgotten)
    }

    async fn prune_history(&self, fence: Fence, retention: &Retention, limit: usize) -> Result<Pruned> {
        prune::prune_history(self, fence, retention, limit).await
    }

    async fn fold_depths(&self, limit: usize) -> Result<usize> {
        queue::fold_depths(self, limit).await
    }

    async fn vacuum_tables(&self) -> Result<usize> {
        vacuum::vacuum_tables(self).await
    }

    async fn next_sweep_times(&self) -> Result<SweepTimes> {
        let rows = self.database().query(&NEXT_SWEEP_TIMES, &[&tzdb_version()]).await?;
        let row = rows.first().ok_or_else(|| StoreError::Backend("next_sweep_times.sql returned no row".into()))?;
        let next = |column: &str| row.get::<_, Option<f64>>(column).map(duration);
        Ok(SweepTimes {
            promote: next("promote_ms"),
            expire: next("expire_ms"),
            reap: next("reap_ms"),
            time_out: next("time_out_ms"),
            unblock: row.get::<_, bool>("unblock").then_some(Duration::ZERO),
            fire: next("fire_ms"),
            up: next("up_ms"),
        })
    }
}

// The current term as a follower sees it, and whether it has ended.
async fn current_term(store: &PostgresStore) -> Result<(Leadership, bool)> {
    let rows = store.database().query(&LEADER_TERM, &[]).await?;
    let row = rows.first().ok_or_else(|| StoreError::Backend("the table `leader_term` has no row".into()))?;
    let ends_in = duration(row.get("ends_in_ms"));
    let leader = row.get::<_, Option<&str>>("node").map(NodeName::trusted);
    Ok((Leadership::Following { leader, epoch: Epoch(row.get("epoch")), ends_in }, ends_in.is_zero()))
}

fn duration(millis: f64) -> Duration {
    Duration::from_secs_f64(millis.max(0.0) / 1000.0)
}

/// Reads a row of `list_nodes.sql`.
pub(crate) fn node_status(row: &Row) -> NodeStatus {
    NodeStatus {
        info: NodeInfo {
            name: NodeName::trusted(row.get("name")),
            address: row.get("address"),
            roles: row.get("roles"),
        },
        started_at: row.get("started_at"),
        last_seen_at: row.get("last_seen_at"),
        leads: row.get("leads"),
    }
}
