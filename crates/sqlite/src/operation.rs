//! Bulk operations: one action on many jobs, carried out by the leader step by step.

use orchestrix_core::{JobId, OperationId, Priority, Tenant};
use orchestrix_store::{
    BulkAction, JobFilter, NewOperation, Operation, OperationEnd, OperationStep, PageRequest, StoreError, TenantScope,
};
use rusqlite::{Row, params};
use uuid::Uuid;

use crate::{
    columns::{Columns, columns},
    error::{Error, Result, corrupt},
    row::{JobRow, micros},
    session::{Session, Transaction},
    statement::{
        ABORT_OPERATION, ADVANCE_OPERATION, BEGIN_OPERATION, COUNT_RUNNING_OPERATIONS, FIND_OPERATION,
        LATEST_OPERATION, LIST_OPERATIONS, LIST_TENANT_OPERATIONS, OPEN_OPERATIONS,
    },
};

columns! {
    mod count of COUNT_RUNNING_OPERATIONS { running, of_tenant }
}

impl Transaction<'_> {
    pub(crate) fn begin_operation(&mut self, operation: NewOperation) -> Result<Operation> {
        let counts = |row: &Row<'_>| Ok((Columns(row).get(count::running)?, Columns(row).get(count::of_tenant)?));
        let tenant = operation.tenant.as_ref().map(Tenant::as_str);
        let (running, of_tenant) = self.first(COUNT_RUNNING_OPERATIONS, [tenant], counts)?.unwrap_or_default();
        NewOperation::check_open(running, of_tenant)?;
        let latest = self.first(LATEST_OPERATION, [], read_id)?;
        let operation = operation.begin(OperationId::after(latest, self.now, rand::random()), self.now);
        self.write_one(
            BEGIN_OPERATION,
            params![
                operation.id.as_uuid(),
                operation.action.as_str(),
                operation.action.priority().map(Priority::get),
                operation.filter.to_json(),
                operation.dry_run,
                micros(operation.created_at),
                operation.actor,
                operation.tenant.as_ref().map(Tenant::as_str),
            ],
        )?;
        Ok(operation)
    }

    pub(crate) fn abort_operation(&mut self, id: OperationId) -> Result<Operation> {
        let now = micros(self.now);
        self.write(ABORT_OPERATION, params![id.as_uuid(), now])?;
        require(self, id)
    }

    pub(crate) fn advance_operation(&mut self, id: OperationId, step: &OperationStep) -> Result<Operation> {
        let operation = require(self, id)?;
        if !operation.is_at(step.from_cursor) {
            return Ok(operation);
        }
        let (changed, refused) = if operation.dry_run { (0, 0) } else { self.apply_action(&operation, &step.jobs)? };
        let now = micros(self.now);
        self.write_one(
            ADVANCE_OPERATION,
            params![
                id.as_uuid(),
                step.from_cursor.map(|id| id.as_uuid()),
                step.cursor.map(|id| id.as_uuid()),
                step.jobs.len(),
                changed,
                refused,
                step.end.as_ref().map(|end| end.state().as_str()),
                step.end.as_ref().and_then(OperationEnd::error),
                now,
            ],
        )?;
        require(self, id)
    }

    // Returns how many jobs changed and how many were refused.
    fn apply_action(&mut self, operation: &Operation, jobs: &[JobId]) -> Result<(usize, usize)> {
        let mut changed = 0;
        for id in jobs {
            if !JobRow::find(self, *id)?.is_some_and(|job| operation.applies_to(job.lifecycle.state)) {
                continue;
            }
            match operation.action {
                BulkAction::Retry => self.retry_job(*id)?,
                BulkAction::Cancel => self.cancel_without_dependents(*id)?,
                BulkAction::Priority(priority) => self.reprioritize_job(*id, priority)?,
            };
            changed += 1;
        }
        self.resolve_pending_dependents()?;
        Ok((changed, jobs.len() - changed))
    }
}

fn require(session: &Session<'_>, id: OperationId) -> Result<Operation> {
    find(session, id)?.ok_or_else(|| StoreError::OperationNotFound(id).into())
}

pub(crate) fn find(session: &Session<'_>, id: OperationId) -> Result<Option<Operation>> {
    session.first(FIND_OPERATION, [id.as_uuid()], read)
}

/// An operation of a list. This program may be unable to read it.
pub(crate) type ListedOperation = (OperationId, Result<Operation, StoreError>);

pub(crate) fn list(
    session: &Session<'_>,
    scope: TenantScope<'_>,
    page: &PageRequest<OperationId>,
) -> Result<(Vec<ListedOperation>, Option<OperationId>)> {
    let (before, limit) = (page.cursor.map_or(Uuid::max(), |id| id.as_uuid()), page.limit + 1);
    let mut listed = match scope {
        Some(tenant) => session.all(LIST_TENANT_OPERATIONS, params![before, limit, tenant.as_str()], read_listed)?,
        None => session.all(LIST_OPERATIONS, params![before, limit], read_listed)?,
    };
    let more = listed.len() > page.limit;
    listed.truncate(page.limit);
    let next = listed.last().map(|(id, _)| *id).filter(|_| more);
    Ok((listed, next))
}

/// All running operations. The caller applies its limit to those that can be read.
pub(crate) fn open(session: &Session<'_>) -> Result<Vec<ListedOperation>> {
    session.all(OPEN_OPERATIONS, [NewOperation::MAX_OPEN], read_listed)
}

columns! {
    mod operation_columns of FIND_OPERATION, OPEN_OPERATIONS, LIST_OPERATIONS, LIST_TENANT_OPERATIONS {
        id, action, priority, filter, dry_run, state, cursor, matched, changed, refused, created_at, updated_at,
        finished_at, error, actor, tenant,
    }
}

fn read_listed(row: &Row<'_>) -> Result<ListedOperation> {
    match read(row) {
        Ok(operation) => Ok((operation.id, Ok(operation))),
        Err(Error::Store(error @ StoreError::Backend(_))) => Ok((read_id(row)?, Err(error))),
        Err(error) => Err(error),
    }
}

fn read_id(row: &Row<'_>) -> Result<OperationId> {
    Ok(OperationId::from_uuid(Columns(row).get(operation_columns::id)?))
}

fn read(row: &Row<'_>) -> Result<Operation> {
    let row = Columns(row);
    let priority = row.get::<Option<i64>>(operation_columns::priority)?.map(Priority::new).transpose();
    let action = priority
        .and_then(|priority| BulkAction::parse(row.text(operation_columns::action).unwrap_or_default(), priority));
    Ok(Operation {
        id: OperationId::from_uuid(row.get(operation_columns::id)?),
        action: action.map_err(|error| corrupt("action", error))?,
        filter: JobFilter::from_json(row.text(operation_columns::filter)?).map_err(|error| corrupt("filter", error))?,
        dry_run: row.get(operation_columns::dry_run)?,
        state: row.text(operation_columns::state)?.parse().map_err(|error| corrupt("state", error))?,
        cursor: row.get::<Option<Uuid>>(operation_columns::cursor)?.map(JobId::from_uuid),
        matched: row.get(operation_columns::matched)?,
        changed: row.get(operation_columns::changed)?,
        refused: row.get(operation_columns::refused)?,
        created_at: row.time(operation_columns::created_at)?,
        updated_at: row.time(operation_columns::updated_at)?,
        finished_at: row.time_or_null(operation_columns::finished_at)?,
        error: row.get(operation_columns::error)?,
        actor: row.get(operation_columns::actor)?,
        tenant: row.text_or_null(operation_columns::tenant)?.map(Tenant::trusted),
    })
}
