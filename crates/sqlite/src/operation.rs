//! Operations on many jobs, as rows.

use orchestrix_core::{JobId, OperationId, Priority, Tenant};
use orchestrix_store::{
    BulkAction, JobFilter, NewOperation, Operation, OperationEnd, OperationStep, PageRequest, StoreError, TenantScope,
};
use rusqlite::{Row, params};
use uuid::Uuid;

use crate::{
    error::{Fault, Result, corrupt},
    row::{self, Columns, micros},
    session::{Session, Transaction},
    statement::{
        ABORT_OPERATION, ADVANCE_OPERATION, BEGIN_OPERATION, COUNT_OPERATIONS, FIND_OPERATION, LATEST_OPERATION,
        OPEN_OPERATIONS, OPERATIONS, TENANT_OPERATIONS,
    },
};

impl Transaction<'_> {
    pub(crate) fn begin_operation(&mut self, operation: NewOperation) -> Result<Operation> {
        let counts = |row: &Row<'_>| Ok((Columns(row).get(0)?, Columns(row).get(1)?));
        let tenant = operation.tenant.as_ref().map(Tenant::as_str);
        let (all, own) = self.first(COUNT_OPERATIONS, [tenant], counts)?.unwrap_or_default();
        NewOperation::check_open(all, own)?;
        let latest = self.first(LATEST_OPERATION, [], id)?;
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
        expect(self, id)
    }

    pub(crate) fn advance_operation(&mut self, id: OperationId, step: &OperationStep) -> Result<Operation> {
        let operation = expect(self, id)?;
        if !operation.is_at(step.from_cursor) {
            return Ok(operation);
        }
        let (changed, refused) = if operation.dry_run { (0, 0) } else { self.act(&operation, &step.jobs)? };
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
        expect(self, id)
    }

    // How many took it, and how many did not.
    fn act(&mut self, operation: &Operation, jobs: &[JobId]) -> Result<(usize, usize)> {
        let mut changed = 0;
        for id in jobs {
            if !row::Found::read(self, *id)?.is_some_and(|job| operation.applies_to(job.lifecycle.state)) {
                continue;
            }
            match operation.action {
                BulkAction::Retry => self.retry(*id)?,
                BulkAction::Cancel => self.cancel_untold(*id)?,
                BulkAction::Priority(priority) => self.reprioritize(*id, priority)?,
            };
            changed += 1;
        }
        self.tell_now()?;
        Ok((changed, jobs.len() - changed))
    }
}

fn expect(session: &Session<'_>, id: OperationId) -> Result<Operation> {
    find(session, id)?.ok_or_else(|| StoreError::OperationNotFound(id).into())
}

pub(crate) fn find(session: &Session<'_>, id: OperationId) -> Result<Option<Operation>> {
    session.first(FIND_OPERATION, [id.as_uuid()], read)
}

/// An operation that this program may not be able to read.
pub(crate) type Found = (OperationId, Result<Operation, StoreError>);

pub(crate) fn list(
    session: &Session<'_>,
    within: TenantScope<'_>,
    page: &PageRequest<OperationId>,
) -> Result<(Vec<Found>, Option<OperationId>)> {
    let (before, limit) = (page.cursor.map_or(Uuid::max(), |id| id.as_uuid()), page.limit + 1);
    let mut found = match within {
        Some(own) => session.all(TENANT_OPERATIONS, params![before, limit, own.as_str()], attempt)?,
        None => session.all(OPERATIONS, params![before, limit], attempt)?,
    };
    let more = found.len() > page.limit;
    found.truncate(page.limit);
    let next = found.last().map(|(id, _)| *id).filter(|_| more);
    Ok((found, next))
}

/// All that run: of those behind the ones that cannot be read as many may be wanted.
pub(crate) fn open(session: &Session<'_>) -> Result<Vec<Found>> {
    session.all(OPEN_OPERATIONS, [NewOperation::MAX_OPEN], attempt)
}

fn attempt(row: &Row<'_>) -> Result<Found> {
    match read(row) {
        Ok(operation) => Ok((operation.id, Ok(operation))),
        Err(Fault::Store(error @ StoreError::Backend(_))) => Ok((id(row)?, Err(error))),
        Err(fault) => Err(fault),
    }
}

fn id(row: &Row<'_>) -> Result<OperationId> {
    Ok(OperationId::from_uuid(Columns(row).get(0)?))
}

fn read(row: &Row<'_>) -> Result<Operation> {
    let row = Columns(row);
    let priority = row.get::<Option<i64>>(2)?.map(Priority::new).transpose();
    let action = priority.and_then(|priority| BulkAction::parse(row.text(1).unwrap_or_default(), priority));
    Ok(Operation {
        id: OperationId::from_uuid(row.get(0)?),
        action: action.map_err(|error| corrupt("action", error))?,
        filter: JobFilter::from_json(row.text(3)?).map_err(|error| corrupt("filter", error))?,
        dry_run: row.get(4)?,
        state: row.text(5)?.parse().map_err(|error| corrupt("state", error))?,
        cursor: row.get::<Option<Uuid>>(6)?.map(JobId::from_uuid),
        matched: row.get(7)?,
        changed: row.get(8)?,
        refused: row.get(9)?,
        created_at: row.time(10)?,
        updated_at: row.time(11)?,
        finished_at: row.time_or_null(12)?,
        error: row.get(13)?,
        actor: row.get(14)?,
        tenant: row.text_or_null(15)?.map(Tenant::trusted),
    })
}
