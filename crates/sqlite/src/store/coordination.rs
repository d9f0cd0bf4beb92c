//! [`CoordinationStore`] on SQLite. Every sweep of the leader is fenced by its epoch.

use std::time::Duration;

use async_trait::async_trait;
use orchestrix_core::{NodeName, OperationId};
use orchestrix_store::{
    CoordinationStore, Epoch, Fence, Leadership, NodeInfo, NodeStatus, Operation, OperationStep, Page, PageRequest,
    Pruned, Result, Retention, SweepResult, SweepTimes,
    coordination::check_term,
    housekeeping::{MAX_SWEEP, check_limit},
};

use super::SqliteStore;
use crate::{coordination, error, session::Transaction};

impl SqliteStore {
    // Runs `work` unless the fence belongs to a deposed leader. Check and work share one transaction.
    async fn fenced<T: Send + 'static>(
        &self,
        fence: Fence,
        work: impl FnOnce(&mut Transaction<'_>) -> error::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.database()
            .write(move |transaction| {
                transaction.check_fence(fence)?;
                work(transaction)
            })
            .await
    }
}

#[async_trait]
impl CoordinationStore for SqliteStore {
    async fn campaign_for_leadership(
        &self,
        node: &NodeName,
        term: Duration,
        held: Option<Epoch>,
    ) -> Result<Leadership> {
        check_term(term)?;
        let node = node.clone();
        self.database().write(move |transaction| transaction.campaign_for_leadership(&node, term, held)).await
    }

    async fn resign_leadership(&self, node: &NodeName, epoch: Epoch) -> Result<bool> {
        let node = node.clone();
        self.database().write(move |transaction| transaction.resign_leadership(&node, epoch)).await
    }

    async fn leader(&self) -> Result<Option<NodeName>> {
        self.database().read(|session| coordination::leader(&session)).await
    }

    async fn heartbeat_node(&self, node: &NodeInfo) -> Result<()> {
        node.validate()?;
        let node = node.clone();
        self.database().write(move |transaction| transaction.heartbeat_node(&node)).await
    }

    async fn remove_node(&self, name: &NodeName) -> Result<bool> {
        let name = name.clone();
        self.database().write(move |transaction| transaction.remove_node(&name)).await
    }

    async fn list_nodes(&self, page: &PageRequest<NodeName>) -> Result<Page<NodeStatus, NodeName>> {
        page.validate()?;
        let page = page.clone();
        self.database().read(move |session| coordination::list_nodes(&session, &page)).await
    }

    async fn promote_jobs(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        check_limit(limit, MAX_SWEEP)?;
        self.fenced(fence, move |transaction| transaction.promote_jobs(limit)).await
    }

    async fn unblock_jobs(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        check_limit(limit, MAX_SWEEP)?;
        self.fenced(fence, move |transaction| transaction.unblock_jobs(limit)).await
    }

    async fn expire_jobs(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        check_limit(limit, MAX_SWEEP)?;
        self.fenced(fence, move |transaction| transaction.expire_jobs(limit)).await
    }

    async fn reap_leases(&self, fence: Fence, limit: usize, crash_loop: u16) -> Result<SweepResult> {
        check_limit(limit, MAX_SWEEP)?;
        self.fenced(fence, move |transaction| transaction.reap_leases(limit, crash_loop)).await
    }

    async fn time_out_attempts(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        check_limit(limit, MAX_SWEEP)?;
        self.fenced(fence, move |transaction| transaction.time_out_attempts(limit)).await
    }

    async fn fire_schedules(&self, fence: Fence, limit: usize) -> Result<SweepResult> {
        check_limit(limit, MAX_SWEEP)?;
        self.fenced(fence, move |transaction| transaction.fire_schedules(limit)).await
    }

    async fn advance_operation(&self, fence: Fence, id: OperationId, step: OperationStep) -> Result<Operation> {
        step.validate()?;
        self.fenced(fence, move |transaction| transaction.advance_operation(id, &step)).await
    }

    async fn forget_workers(&self, fence: Fence, silence: Duration, limit: usize) -> Result<usize> {
        check_limit(limit, MAX_SWEEP)?;
        self.fenced(fence, move |transaction| transaction.forget_workers(silence, limit)).await
    }

    async fn forget_nodes(&self, fence: Fence, silence: Duration, limit: usize) -> Result<usize> {
        check_limit(limit, MAX_SWEEP)?;
        self.fenced(fence, move |transaction| transaction.forget_nodes(silence, limit)).await
    }

    async fn prune_history(&self, fence: Fence, retention: &Retention, limit: usize) -> Result<Pruned> {
        check_limit(limit, MAX_SWEEP)?;
        let retention = *retention;
        self.fenced(fence, move |transaction| transaction.prune_history(&retention, limit)).await
    }

    // Depths are written with every commit: there are no deltas to fold.
    async fn fold_depths(&self, limit: usize) -> Result<usize> {
        check_limit(limit, MAX_SWEEP)?;
        Ok(0)
    }

    // SQLite reuses the space of deleted rows itself.
    async fn vacuum_tables(&self) -> Result<usize> {
        Ok(0)
    }

    async fn next_sweep_times(&self) -> Result<SweepTimes> {
        self.database().read(|session| coordination::next_sweep_times(&session)).await
    }
}
