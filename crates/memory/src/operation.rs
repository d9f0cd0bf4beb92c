//! Bulk operations.

use std::{collections::BTreeMap, ops::Bound};

use orchestrix_core::{JobId, OperationId, Tenant, Timestamp};

use crate::tables::Tables;
use orchestrix_store::{
    BulkAction, NewOperation, Operation, OperationEnd, OperationState, OperationStep, Page, PageRequest, Result,
    StoreError, TenantScope, housekeeping::check_limit, in_scope,
};

impl Tables {
    pub(crate) fn advance_operation(
        &mut self,
        id: OperationId,
        step: &OperationStep,
        now: Timestamp,
    ) -> Result<Operation> {
        let operation = self.operations.expect(id)?.clone();
        if !operation.is_at(step.from_cursor) {
            return Ok(operation);
        }
        let applicable = |job: &JobId| self.find(*job).is_some_and(|row| operation.applies_to(row.job.state));
        let changed: Vec<JobId> = step.jobs.iter().filter(|_| !operation.dry_run).copied().filter(applicable).collect();
        for job in &changed {
            match operation.action {
                BulkAction::Retry => self.retry(*job, now)?,
                // Succeeds also if the job was cancelled with its parent earlier in this step.
                BulkAction::Cancel => self.cancel(*job, now)?,
                BulkAction::Priority(priority) => self.reprioritize(*job, priority)?,
            };
        }
        self.operations.advance(id, step, changed.len(), now)
    }
}

/// Operations by id, which is the order in which they began.
#[derive(Debug, Default)]
pub(crate) struct Operations(BTreeMap<OperationId, Operation>);

impl Operations {
    pub(crate) fn begin(&mut self, operation: NewOperation, now: Timestamp) -> Result<Operation> {
        operation.validate()?;
        let own = self.running().filter(|open| open.tenant == operation.tenant).count();
        NewOperation::check_open(self.running().count(), own)?;
        let last = self.0.last_key_value().map(|(id, _)| *id);
        let operation = operation.begin(OperationId::after(last, now, rand::random()), now);
        self.0.insert(operation.id, operation.clone());
        Ok(operation)
    }

    pub(crate) fn abort(&mut self, id: OperationId, now: Timestamp) -> Result<Operation> {
        let operation = self.expect(id)?;
        if operation.state == OperationState::Running {
            operation.state = OperationState::Aborted;
            operation.updated_at = now;
            operation.finished_at = Some(now);
        }
        Ok(operation.clone())
    }

    // Records a step that changed this many jobs.
    fn advance(&mut self, id: OperationId, step: &OperationStep, changed: usize, now: Timestamp) -> Result<Operation> {
        let operation = self.expect(id)?;
        let matched = step.jobs.len();
        operation.cursor = step.cursor;
        operation.matched += matched as u64;
        if !operation.dry_run {
            operation.changed += changed as u64;
            operation.refused += (matched - changed) as u64;
        }
        operation.updated_at = now;
        if let Some(end) = &step.end {
            operation.state = end.state();
            operation.error = OperationEnd::error(end).map(str::to_owned);
            operation.finished_at = Some(now);
        }
        Ok(operation.clone())
    }

    pub(crate) fn find(&self, id: OperationId) -> Option<Operation> {
        self.0.get(&id).cloned()
    }

    pub(crate) fn page(
        &self,
        scope: TenantScope<'_>,
        page: &PageRequest<OperationId>,
    ) -> Result<Page<Operation, OperationId>> {
        page.validate()?;
        let before = page.cursor.map_or(Bound::Unbounded, Bound::Excluded);
        let operations = self.0.range((Bound::Unbounded, before)).rev().map(|(_, operation)| operation);
        let mut operations = operations.filter(|one| in_scope(one.tenant.as_ref().map(Tenant::as_str), scope));
        let items: Vec<Operation> = operations.by_ref().take(page.limit).cloned().collect();
        let next = operations.next().and_then(|_| items.last()).map(|operation| operation.id);
        Ok(Page { items, next })
    }

    pub(crate) fn open(&self, limit: usize) -> Result<Vec<Operation>> {
        check_limit(limit, NewOperation::MAX_OPEN)?;
        let mut open: Vec<&Operation> = self.running().collect();
        open.sort_by_key(|operation| (operation.updated_at, operation.id));
        Ok(open.into_iter().take(limit).cloned().collect())
    }

    /// Deletes up to `limit` operations that finished up to and including `until`. Returns how many.
    pub(crate) fn prune(&mut self, until: Timestamp, limit: usize) -> usize {
        let past: Vec<OperationId> = self.past(until).take(limit).collect();
        for id in &past {
            self.0.remove(id);
        }
        past.len()
    }

    /// Whether operations finished up to and including `until`.
    pub(crate) fn has_any(&self, until: Timestamp) -> bool {
        self.past(until).next().is_some()
    }

    fn past(&self, until: Timestamp) -> impl Iterator<Item = OperationId> {
        let finished = move |operation: &&Operation| operation.finished_at.is_some_and(|time| time <= until);
        self.0.values().filter(finished).map(|operation| operation.id)
    }

    fn running(&self) -> impl Iterator<Item = &Operation> {
        self.0.values().filter(|operation| operation.state == OperationState::Running)
    }

    fn expect(&mut self, id: OperationId) -> Result<&mut Operation> {
        self.0.get_mut(&id).ok_or(StoreError::OperationNotFound(id))
    }
}
