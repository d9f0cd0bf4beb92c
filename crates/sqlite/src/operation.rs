//! Operations on many jobs, as rows.

use orchestrix_core::{JobId, OperationId, Priority, Tenant};
use orchestrix_store::{
    Advance, BulkAction, JobFilter, NewOperation, Operation, OperationEnd, Page, PageRequest, StoreError,
};
use rusqlite::{Row, params};
use uuid::Uuid;

use crate::{
    error::{Result, corrupt},
    row::{Columns, micros},
    session::{Session, Transaction},
    statement::{ABORT_OPERATION, ADVANCE_OPERATION, BEGIN_OPERATION, FIND_OPERATION, OPEN_OPERATIONS, OPERATIONS},
};

impl Transaction<'_> {
    pub(crate) fn begin_operation(&mut self, operation: NewOperation) -> Result<Operation> {
        let open = open(self, NewOperation::MAX_OPEN)?.len();
        if open >= NewOperation::MAX_OPEN {
            return Err(StoreError::TooManyOperations(open).into());
        }
        let latest = list(self, &PageRequest::first(1))?.items.pop().map(|operation| operation.id);
        let operation = operation.begun(OperationId::after(latest, self.now, rand::random()), self.now);
        self.write_one(
            BEGIN_OPERATION,
            params![
                operation.id.as_uuid(),
                operation.action.as_str(),
                operation.action.priority().map(Priority::get),
                operation.filter.written(),
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

    pub(crate) fn advance_operation(&mut self, id: OperationId, step: &Advance) -> Result<Operation> {
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let now = micros(self.now);
        self.write(
            ADVANCE_OPERATION,
            params![
                id.as_uuid(),
                step.from_cursor.map(|id| id.as_uuid()),
                step.cursor.map(|id| id.as_uuid()),
                number(step.matched),
                number(step.changed),
                number(step.refused),
                step.end.as_ref().map(|end| end.state().as_str()),
                step.end.as_ref().and_then(OperationEnd::error),
                now,
            ],
        )?;
        expect(self, id)
    }
}

fn expect(session: &Session<'_>, id: OperationId) -> Result<Operation> {
    find(session, id)?.ok_or_else(|| StoreError::OperationNotFound(id).into())
}

pub(crate) fn find(session: &Session<'_>, id: OperationId) -> Result<Option<Operation>> {
    session.first(FIND_OPERATION, [id.as_uuid()], read)
}

pub(crate) fn list(session: &Session<'_>, page: &PageRequest<OperationId>) -> Result<Page<Operation, OperationId>> {
    let before = page.cursor.map_or(Uuid::max(), |id| id.as_uuid());
    let mut items = session.all(OPERATIONS, params![before, page.limit + 1], read)?;
    let more = items.len() > page.limit;
    items.truncate(page.limit);
    let next = items.last().map(|operation| operation.id).filter(|_| more);
    Ok(Page { items, next })
}

pub(crate) fn open(session: &Session<'_>, limit: usize) -> Result<Vec<Operation>> {
    session.all(OPEN_OPERATIONS, [limit], read)
}

fn read(row: &Row<'_>) -> Result<Operation> {
    let row = Columns(row);
    let priority = row.get::<Option<i64>>(2)?.map(Priority::new).transpose();
    let action = priority.and_then(|priority| BulkAction::parse(row.text(1).unwrap_or_default(), priority));
    Ok(Operation {
        id: OperationId::from_uuid(row.get(0)?),
        action: action.map_err(|error| corrupt("action", error))?,
        filter: JobFilter::read(row.text(3)?).map_err(|error| corrupt("filter", error))?,
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
