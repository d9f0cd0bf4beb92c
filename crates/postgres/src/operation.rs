//! Operations on many jobs, as rows.

use orchestrix_core::{JobId, OperationId, Priority, Tenant, Timestamp};
use orchestrix_store::{
    BulkAction, Fence, JobFilter, NewOperation, Operation, OperationEnd, OperationStep, Page, PageRequest, Result,
    StoreError, TenantScope, housekeeping::check_limit,
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    PostgresStore,
    act::{Deeds, act},
    row::corrupt,
    statement::{
        ABORT_OPERATION, ADVANCE_OPERATION, BEGIN_OPERATION, COUNT_OPERATIONS, FIND_OPERATION, LOCK_OPERATION,
        LOCK_OPERATIONS, OPEN_OPERATIONS, OPERATIONS, TENANT_OPERATIONS, TIME,
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
    let tenant = operation.tenant.as_ref().map(Tenant::as_str);
    let open = work.query(&COUNT_OPERATIONS, &[&tenant]).await?;
    let open = open.first().ok_or_else(|| StoreError::Backend("the server does not count".into()))?;
    let count = |column: usize| usize::try_from(open.get::<_, i64>(column)).unwrap_or(0);
    NewOperation::check_open(count(0), count(1))?;
    let latest = work.query(&OPERATIONS, &[&Uuid::max(), &1i64]).await?;
    let latest = latest.first().map(|row| OperationId::from_uuid(row.get(0)));
    let rows = work.query(&TIME, &[]).await?;
    let time = rows.first().ok_or_else(|| StoreError::Backend("the server does not tell the time".into()))?;
    let now: Timestamp = time.get(0);
    let operation = operation.begin(OperationId::after(latest, now, rand::random()), now);
    work.query(
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

/// Takes a step: what it does to jobs and what is counted of it are one transaction, in which nobody stops the operation.
pub(crate) async fn advance(
    store: &PostgresStore,
    fence: Fence,
    id: OperationId,
    step: &OperationStep,
) -> Result<Operation> {
    step.validate()?;
    let work = store.database().transaction(fence).await?;
    let taken = take_step(&work, id, step).await;
    let (operation, deeds) = work.conclude(taken).await?;
    deeds.tell(store, fence).await;
    Ok(operation)
}

async fn take_step(work: &Work<'_>, id: OperationId, step: &OperationStep) -> Result<(Operation, Deeds)> {
    let rows = work.query(&LOCK_OPERATION, &[&id.as_uuid()]).await?;
    let operation = rows.first().map_or(Err(StoreError::OperationNotFound(id)), read)?;
    if !operation.is_at(step.from_cursor) {
        return Ok((operation, Deeds::default()));
    }
    let (jobs, deeds) = match operation.dry_run {
        true => (&step.jobs[..], Deeds::default()),
        false => act(work, &operation, &step.jobs).await?,
    };
    // Where somebody has a job, it ends before that one.
    let whole = jobs.len() == step.jobs.len();
    let cursor = if whole { step.cursor } else { jobs.last().copied() };
    let end = step.end.as_ref().filter(|_| whole);
    let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let refused = if operation.dry_run { 0 } else { jobs.len() - deeds.changed() };
    let rows = work
        .query(
            &ADVANCE_OPERATION,
            &[
                &id.as_uuid(),
                &step.from_cursor.map(|id| id.as_uuid()),
                &cursor.map(|id| id.as_uuid()),
                &number(jobs.len()),
                &number(deeds.changed()),
                &number(refused),
                &end.map(|end| end.state().as_str()),
                &end.and_then(OperationEnd::error),
            ],
        )
        .await?;
    let operation = rows.first().map_or(Err(StoreError::OperationNotFound(id)), read)?;
    Ok((operation, deeds))
}

pub(crate) async fn find(store: &PostgresStore, id: OperationId) -> Result<Option<Operation>> {
    store.database().query(&FIND_OPERATION, &[&id.as_uuid()]).await?.first().map(read).transpose()
}

pub(crate) async fn list(
    store: &PostgresStore,
    within: TenantScope<'_>,
    page: &PageRequest<OperationId>,
) -> Result<Page<Operation, OperationId>> {
    page.validate()?;
    let (before, limit) = (page.cursor.map_or(Uuid::max(), |id| id.as_uuid()), page.limit as i64 + 1);
    let mut rows = match within {
        Some(own) => store.database().query(&TENANT_OPERATIONS, &[&before, &limit, &own.as_str()]).await?,
        None => store.database().query(&OPERATIONS, &[&before, &limit]).await?,
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
        // Those behind the ones that were left out.
        let rows = store.database().query(&OPEN_OPERATIONS, &[&(NewOperation::MAX_OPEN as i64)]).await?;
        open = readable(store, &rows);
        open.truncate(limit);
    }
    Ok(open)
}

// None keeps others from being seen.
fn readable(store: &PostgresStore, rows: &[Row]) -> Vec<Operation> {
    let warn = |row: &Row, error: &StoreError| {
        if store.unreadable().is_new(id(row)) {
            tracing::warn!(operation = %id(row), %error, "left out: this program cannot read it");
        }
    };
    rows.iter().filter_map(|row| read(row).inspect_err(|error| warn(row, error)).ok()).collect()
}

fn id(row: &Row) -> OperationId {
    OperationId::from_uuid(row.get(0))
}

fn read(row: &Row) -> Result<Operation> {
    let priority = row.get::<_, Option<i16>>(2).map(|n| Priority::new(n.into())).transpose();
    let action = priority.and_then(|priority| BulkAction::parse(row.get(1), priority));
    let count = |column: usize| u64::try_from(row.get::<_, i64>(column)).unwrap_or(0);
    Ok(Operation {
        id: id(row),
        action: action.map_err(|error| corrupt("action", error))?,
        filter: JobFilter::from_json(row.get(3)).map_err(|error| corrupt("filter", error))?,
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
