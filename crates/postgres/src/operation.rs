//! Operations on many jobs, as rows.

use orchestrix_core::{JobId, OperationId, Priority, Tenant, Timestamp};
use orchestrix_store::{
    Advance, BulkAction, Fence, JobFilter, NewOperation, Operation, OperationEnd, Page, PageRequest, Result,
    StoreError, housekeeping::check_limit,
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    PostgresStore,
    row::corrupt,
    statement::{
        ABORT_OPERATION, ADVANCE_OPERATION, BEGIN_OPERATION, FIND_OPERATION, LOCK_OPERATIONS, OPEN_OPERATIONS,
        OPERATIONS, TIME,
    },
    work::Work,
};

/// Begins one, with an id after all others; others that begin one meanwhile wait, so that no two count the same ones.
pub(crate) async fn begin(store: &PostgresStore, operation: NewOperation) -> Result<Operation> {
    operation.validate()?;
    let work = store.database().transaction(Fence::NONE).await?;
    let begun = insert(&work, operation).await;
    work.conclude(begun).await
}

async fn insert(work: &Work<'_>, operation: NewOperation) -> Result<Operation> {
    work.query(&LOCK_OPERATIONS, &[]).await?;
    let open = work.query(&OPEN_OPERATIONS, &[&(NewOperation::MAX_OPEN as i64)]).await?.len();
    if open >= NewOperation::MAX_OPEN {
        return Err(StoreError::TooManyOperations(open));
    }
    let latest = work.query(&OPERATIONS, &[&Uuid::max(), &1i64]).await?;
    let latest = latest.first().map(|row| OperationId::from_uuid(row.get(0)));
    let rows = work.query(&TIME, &[]).await?;
    let time = rows.first().ok_or_else(|| StoreError::Backend("the server does not tell the time".into()))?;
    let now: Timestamp = time.get(0);
    let operation = operation.begun(OperationId::after(latest, now, rand::random()), now);
    work.query(
        &BEGIN_OPERATION,
        &[
            &operation.id.as_uuid(),
            &operation.action.as_str(),
            &operation.action.priority().map(Priority::get),
            &operation.filter.written(),
            &operation.dry_run,
            &operation.created_at,
            &operation.actor,
            &operation.tenant.as_ref().map(Tenant::as_str),
        ],
    )
    .await?;
    Ok(operation)
}

pub(crate) async fn abort(store: &PostgresStore, id: OperationId) -> Result<Operation> {
    let rows = store.database().query(&ABORT_OPERATION, &[&id.as_uuid()]).await?;
    match rows.first() {
        Some(row) => read(row),
        None => find(store, id).await?.ok_or(StoreError::OperationNotFound(id)),
    }
}

pub(crate) async fn advance(store: &PostgresStore, fence: Fence, id: OperationId, step: &Advance) -> Result<Operation> {
    step.validate()?;
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let work = store.database().work(fence).await?;
    let mut rows = work
        .query(
            &ADVANCE_OPERATION,
            &[
                &id.as_uuid(),
                &step.from_cursor.map(|id| id.as_uuid()),
                &step.cursor.map(|id| id.as_uuid()),
                &number(step.matched),
                &number(step.changed),
                &number(step.refused),
                &step.end.as_ref().map(|end| end.state().as_str()),
                &step.end.as_ref().and_then(OperationEnd::error),
            ],
        )
        .await?;
    if rows.is_empty() {
        rows = work.query(&FIND_OPERATION, &[&id.as_uuid()]).await?;
    }
    work.commit().await?;
    rows.first().map_or(Err(StoreError::OperationNotFound(id)), read)
}

pub(crate) async fn find(store: &PostgresStore, id: OperationId) -> Result<Option<Operation>> {
    store.database().query(&FIND_OPERATION, &[&id.as_uuid()]).await?.first().map(read).transpose()
}

pub(crate) async fn list(
    store: &PostgresStore,
    page: &PageRequest<OperationId>,
) -> Result<Page<Operation, OperationId>> {
    page.validate()?;
    let before = page.cursor.map_or(Uuid::max(), |id| id.as_uuid());
    let rows = store.database().query(&OPERATIONS, &[&before, &(page.limit as i64 + 1)]).await?;
    let items: Vec<Operation> = rows.iter().take(page.limit).map(read).collect::<Result<_>>()?;
    let next = (rows.len() > page.limit).then(|| items.last().map(|operation| operation.id)).flatten();
    Ok(Page { items, next })
}

pub(crate) async fn open(store: &PostgresStore, limit: usize) -> Result<Vec<Operation>> {
    check_limit(limit, NewOperation::MAX_OPEN)?;
    store.database().query(&OPEN_OPERATIONS, &[&(limit as i64)]).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<Operation> {
    let priority = row.get::<_, Option<i16>>(2).map(|n| Priority::new(n.into())).transpose();
    let action = priority.and_then(|priority| BulkAction::parse(row.get(1), priority));
    let count = |column: usize| u64::try_from(row.get::<_, i64>(column)).unwrap_or(0);
    Ok(Operation {
        id: OperationId::from_uuid(row.get(0)),
        action: action.map_err(|error| corrupt("action", error))?,
        filter: JobFilter::read(row.get(3)).map_err(|error| corrupt("filter", error))?,
        dry_run: row.get(4),
        state: row.get::<_, &str>(5).parse().map_err(|error| corrupt("state", error))?,
        cursor: row.get::<_, Option<Uuid>>(6).map(JobId::from_uuid),
        matched: count(7),
        changed: count(8),
        refused: count(9),
        created_at: row.get(10),
        updated_at: row.get(11),
        finished_at: row.get(12),
        error: row.get(13),
        actor: row.get(14),
        tenant: row.get::<_, Option<&str>>(15).map(Tenant::trusted),
    })
}
