//! Coordination: nodes, leadership, and the sweeps that the leader runs.

use std::time::Duration;

use async_trait::async_trait;
use orchestrix_core::{NodeName, OperationId};

use crate::{
    Epoch, Fence, Leadership, NodeInfo, NodeStatus, Operation, OperationStep, Page, PageRequest, Pruned, Result,
    Retention, SweepResult, SweepTimes,
};

/// Elects a leader among nodes and runs its sweeps.
///
/// A sweep takes a bounded step and carries the leader's [`Fence`], which the store checks in the transaction that
/// writes.
#[async_trait]
pub trait CoordinationStore: Send + Sync {
    /// Campaigns for leadership, for a term from now by the store's clock.
    ///
    /// A running term is renewed for its holder, the node that passes the term's epoch in `held`.
    /// After a term has ended, the first node to call begins a new epoch.
    async fn campaign_for_leadership(&self, node: &NodeName, term: Duration, held: Option<Epoch>)
    -> Result<Leadership>;

    /// Ends the caller's own term, so that another node can lead at once. Returns whether the term was the caller's.
    async fn resign_leadership(&self, node: &NodeName, epoch: Epoch) -> Result<bool>;

    /// Returns the node whose term runs, if any.
    async fn leader(&self) -> Result<Option<NodeName>>;

    /// Registers a node or records that it is alive.
    async fn heartbeat_node(&self, node: &NodeInfo) -> Result<()>;

    /// Removes a node that shuts down.
    async fn remove_node(&self, name: &NodeName) -> Result<bool>;

    /// Lists nodes by name.
    async fn list_nodes(&self, page: &PageRequest<NodeName>) -> Result<Page<NodeStatus, NodeName>>;

    /// Promotes up to `limit` scheduled and retrying jobs that are due to pending.
    async fn promote_jobs(&self, fence: Fence, limit: usize) -> Result<SweepResult>;

    /// Unblocks up to `limit` jobs whose dependencies have finished.
    ///
    /// `finish_attempts` and `cancel_job` unblock dependents themselves; this finds what a crash left behind.
    async fn unblock_jobs(&self, fence: Fence, limit: usize) -> Result<SweepResult>;

    /// Cancels up to `limit` jobs that did not start before they expired.
    async fn expire_jobs(&self, fence: Fence, limit: usize) -> Result<SweepResult>;

    /// Reaps up to `limit` expired leases. A job that lost `crash_loop` leases in a row dies.
    async fn reap_leases(&self, fence: Fence, limit: usize, crash_loop: u16) -> Result<SweepResult>;

    /// Ends up to `limit` attempts that exceeded their job's timeout.
    async fn time_out_attempts(&self, fence: Fence, limit: usize) -> Result<SweepResult>;

    /// Fires up to `limit` due schedules. The jobs, occurrences and next time of one schedule are one transaction.
    ///
    /// Also recomputes next times that an older time-zone database produced.
    /// A schedule that cannot fire is postponed and delays no other.
    async fn fire_schedules(&self, fence: Fence, limit: usize) -> Result<SweepResult>;

    /// Applies one step of a bulk operation, if the operation runs and its cursor is where the step begins.
    ///
    /// Changes to jobs and the operation's counts commit together. The step may end early before a locked job.
    async fn advance_operation(&self, fence: Fence, id: OperationId, step: OperationStep) -> Result<Operation>;

    /// Deletes up to `limit` workers that have been silent for `silence`, and for as long as each may be by its own
    /// heartbeat interval.
    async fn forget_workers(&self, fence: Fence, silence: Duration, limit: usize) -> Result<usize>;

    /// Deletes up to `limit` nodes that have been silent for `silence`.
    async fn forget_nodes(&self, fence: Fence, silence: Duration, limit: usize) -> Result<usize>;

    /// Deletes finished jobs, logs and records past their retention, up to about `limit` rows. A dropped partition
    /// counts as one row.
    async fn prune_history(&self, fence: Fence, retention: &Retention, limit: usize) -> Result<Pruned>;

    /// Folds up to `limit` appended depth changes into totals. Returns how many. Stores that count in place return
    /// zero.
    ///
    /// Needs no fence: any process may call it at any time.
    async fn fold_depths(&self, limit: usize) -> Result<usize>;

    /// Frees the space of removed rows in tables that churn, where that is due. Returns how many tables it cleaned.
    /// Stores that reuse such space at once return zero.
    ///
    /// Needs no fence: any process may call it at any time.
    async fn vacuum_tables(&self) -> Result<usize>;

    /// Returns how long until each sweep has work.
    async fn next_sweep_times(&self) -> Result<SweepTimes>;
}
