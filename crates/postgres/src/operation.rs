//! Bulk operations, as rows.

use orchestrix_core::{JobId, OperationId, Priority, Tenant};
use orchestrix_store::{
    BulkAction, Fence, JobFilter, NewOperation, Operation, OperationEnd, OperationStep, Page, PageRequest, Result,
    StoreError, TenantScope, housekeeping::check_limit,
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    PostgresStore,
    bulk_step::{StepEffects, run_step},
    fenced_tx::FencedTx,
    inspect::read_time,
    row::corrupt,
    statement::{
        ABORT_OPERATION, ADVANCE_OPERATION, BEGIN_OPERATION, COUNT_RUNNING_OPERATIONS, CURRENT_TIME, FIND_OPERATION,
        LIST_OPERATIONS, LIST_TENANT_OPERATIONS, LOCK_OPERATION, LOCK_OPERATION_TABLE, OPEN_OPERATIONS,
    },
};

/// Begins an operation with an id greater than all others. Concurrent calls wait for each other, so that none exceeds
/// the limit of running operations.
pub(crate) async fn begin(store: &PostgresStore, operation: NewOperation) -> Result<Operation> {
    operation.validate()?;
    let tx = store.database().fenced_transaction(Fence::NONE).await?;
    let begun = insert(&tx, operation).await;
    tx.finish(begun).await
}

async fn insert(tx: &FencedTx<'_>, operation: NewOperation) -> Result<Operation> {
    tx.query(&LOCK_OPERATION_TABLE, &[]).await?;
    let tenant = operation.tenant.as_ref().map(Tenant::as_str);
    let rows = tx.query(&COUNT_RUNNING_OPERATIONS, &[&tenant]).await?;
    let counts =
        rows.first().ok_or_else(|| StoreError::Backend("count_running_operations.sql returned no row".into()))?;
    let count = |column: &str| usize::try_from(counts.get::<_, i64>(column)).unwrap_or(0);
    NewOperation::check_open(count("running"), count("of_tenant"))?;
    let latest = tx.query(&LIST_OPERATIONS, &[&Uuid::max(), &1i64]).await?;
    let latest = latest.first().map(id);
    let now = read_time(&tx.query(&CURRENT_TIME, &[]).await?)?;
    let operation = operation.begin(OperationId::after(latest, now, rand::random()), now);
    tx.query(
        &BEGIN_OPERATION,
        &[
            &operation.id.as_uuid(),
            &operation.action.as_str(),
            &operation.action.priority().map(Priority::get),
            &operation.filter.to_json(),
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

/// Runs one step. Its changes to jobs and the operation's new counts are one transaction, which locks the operation.
pub(crate) async fn advance(
    store: &PostgresStore,
    fence: Fence,
    id: OperationId,
    step: &OperationStep,
) -> Result<Operation> {
    step.validate()?;
    let tx = store.database().fenced_transaction(fence).await?;
    let advanced = advance_in(&tx, id, step).await;
    let (operation, step) = tx.finish(advanced).await?;
    store.publish(fence, step.effects).await;
    Ok(operation)
}

async fn advance_in(tx: &FencedTx<'_>, id: OperationId, step: &OperationStep) -> Result<(Operation, StepEffects)> {
    let rows = tx.query(&LOCK_OPERATION, &[&id.as_uuid()]).await?;
    let operation = rows.first().map_or(Err(StoreError::OperationNotFound(id)), read)?;
    if !operation.is_at(step.from_cursor) {
        return Ok((operation, StepEffects::default()));
    }
    let (jobs, done) = match operation.dry_run {
        true => (&step.jobs[..], StepEffects::default()),
        false => run_step(tx, &operation, &step.jobs).await?,
    };
    // A step that ended before a locked job is continued from there.
    let whole = jobs.len() == step.jobs.len();
    let cursor = if whole { step.cursor } else { jobs.last().copied() };
    let end = step.end.as_ref().filter(|_| whole);
    let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let refused = if operation.dry_run { 0 } else { jobs.len() - done.changed };
    let rows = tx
        .query(
            &ADVANCE_OPERATION,
            &[
                &id.as_uuid(),
                &step.from_cursor.map(|id| id.as_uuid()),
                &cursor.map(|id| id.as_uuid()),
                &number(jobs.len()),
                &number(done.changed),
                &number(refused),
                &end.map(|end| end.state().as_str()),
                &end.and_then(OperationEnd::error),
            ],
        )
        .await?;
    let operation = rows.first().map_or(Err(StoreError::OperationNotFound(id)), read)?;
    Ok((operation, done))
}

pub(crate) async fn find(store: &PostgresStore, id: OperationId) -> Result<Option<Operation>> {
    store.database().query(&FIND_OPERATION, &[&id.as_uuid()]).await?.first().map(read).transpose()
}

pub(crate) async fn list(
    store: &PostgresStore,
    scope: TenantScope<'_>,
    page: &PageRequest<OperationId>,
) -> Result<Page<Operation, OperationId>> {
    page.validate()?;
    let (before, limit) = (page.cursor.map_or(Uuid::max(), |id| id.as_uuid()), page.limit as i64 + 1);
    let mut rows = match scope {
        Some(tenant) => store.database().query(&LIST_TENANT_OPERATIONS, &[&before, &limit, &tenant.as_str()]).await?,
        None => store.database().query(&LIST_OPERATIONS, &[&before, &limit]).await?,
    };
    let more = rows.len() > page.limit;
    rows.truncate(page.limit);
    let next = rows.last().map(id).filter(|_| more);
    Ok(Page { items: readable(store, &rows), next })
}

pub(crate) async fn open(store: &PostgresStore, limit: usize) -> Result<Vec<Operation>> {
    check_limit(limit, NewOperation::MAX_OPEN)?;
    let rows = store.database().query(&OPEN_OPERATIONS, &[&(limit as i64)]).await?;
    let mut open = readable(store, &rows);
    if open.len() < rows.len() {
        // Unreadable operations took places of readable ones: read all.
        let rows = store.database().query(&OPEN_OPERATIONS, &[&(NewOperation::MAX_OPEN as i64)]).await?;
        open = readable(store, &rows);
        open.truncate(limit);
    }
    Ok(open)
}

// Leaves out operations that this version cannot read, so that they do not hide the others. Logs each once.
fn readable(store: &PostgresStore, rows: &[Row]) -> Vec<Operation> {
    let warn = |row: &Row, error: &StoreError| {
        if store.0.unreadable.is_new(id(row)) {
            tracing::warn!(operation = %id(row), %error, "left out an operation that cannot be read");
        }
    };
    rows.iter().filter_map(|row| read(row).inspect_err(|error| warn(row, error)).ok()).collect()
}

fn id(row: &Row) -> OperationId {
    OperationId::from_uuid(row.get("id"))
}

fn read(row: &Row) -> Result<Operation> {
    let priority = row.get::<_, Option<i16>>("priority").map(|n| Priority::new(n.into())).transpose();
    let action = priority.and_then(|priority| BulkAction::parse(row.get("action"), priority));
    let count = |column: &str| u64::try_from(row.get::<_, i64>(column)).unwrap_or(0);
    Ok(Operation {
        id: id(row),
        action: action.map_err(|error| corrupt("action", error))?,
        filter: JobFilter::from_json(row.get("filter")).map_err(|error| corrupt("filter", error))?,
        dry_run: row.get("dry_run"),
        state: row.get::<_, &str>("state").parse().map_err(|error| corrupt("state", error))?,
        cursor: row.get::<_, Option<Uuid>>("cursor").map(JobId::from_uuid),
        matched: count("matched"),
        changed: count("changed"),
        refused: count("refused"),
        created_at: row.get("created_at"),
        updated_at: row.get("updated_at"),
        finished_at: row.get("finished_at"),
        error: row.get("error"),
        actor: row.get("actor"),
        tenant: row.get::<_, Option<&str>>("tenant").map(Tenant::trusted),
    })
}
