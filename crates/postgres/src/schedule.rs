//! The store's verbs on schedules.
//!
//! A verb that changes a schedule locks its row from the read to the commit. Firing locks it too, and skips rows that
//! are locked.

use async_trait::async_trait;
use orchestrix_core::{JobId, NewSchedule, ScheduleName, Tenant, Timestamp};
use orchestrix_store::{
    Backfill, Enqueued, Fence, Occurrence, Page, PageRequest, PutResult, Result, Schedule, ScheduleStore, StoreError,
    TenantScope, in_scope,
    schedule::{check_owner, check_put, read_definition, write_definition},
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    PostgresStore,
    database::Params,
    effects::Effects,
    fenced_tx::FencedTx,
    inspect::read_time,
    occurrences,
    row::corrupt,
    statement::{
        CREATE_SCHEDULE, CURRENT_TIME, DELETE_OCCURRENCES, DELETE_SCHEDULE, FIND_SCHEDULE, LIST_SCHEDULES,
        LIST_TENANT_SCHEDULES, LOCK_SCHEDULE, PAUSE_SCHEDULE, UPDATE_SCHEDULE,
    },
    trigger,
};

/// How often a put tries again because other clients create and delete the schedule meanwhile.
const ROUNDS: usize = 10;
/// Occurrences deleted in one transaction.
const DELETE_BATCH: i64 = 10_000;

#[async_trait]
impl ScheduleStore for PostgresStore {
    async fn put_schedule(&self, scope: TenantScope<'_>, definition: NewSchedule) -> Result<PutResult> {
        check_put(scope, &definition)?;
        let tx = self.database().fenced_transaction(Fence::NONE).await?;
        let put = put_in(&tx, scope, &definition).await;
        let (put, has_next_time) = tx.finish(put).await?;
        publish_timer(self, has_next_time).await;
        Ok(put)
    }

    /// Deletes the occurrences in batches, the last one together with the schedule: all at once could exceed a
    /// statement's time limit. A crash in between leaves the schedule with the remaining occurrences.
    async fn delete_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<bool> {
        loop {
            let tx = self.database().fenced_transaction(Fence::NONE).await?;
            let deleted = delete_in(&tx, scope, name).await;
            if let Some(existed) = tx.finish(deleted).await? {
                return Ok(existed);
            }
        }
    }

    async fn pause_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName, note: Option<String>) -> Result<bool> {
        let tx = self.database().fenced_transaction(Fence::NONE).await?;
        let paused = pause_in(&tx, scope, name, note).await;
        tx.finish(paused).await
    }

    async fn resume_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<bool> {
        let tx = self.database().fenced_transaction(Fence::NONE).await?;
        let resumed = resume_in(&tx, scope, name).await;
        let (was_paused, has_next_time) = tx.finish(resumed).await?;
        publish_timer(self, has_next_time).await;
        Ok(was_paused)
    }

    async fn trigger_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<Enqueued> {
        trigger::trigger_schedule(self, scope, name).await
    }

    async fn backfill_schedule(&self, scope: TenantScope<'_>, name: &ScheduleName, range: &Backfill) -> Result<usize> {
        trigger::backfill_schedule(self, scope, name, range).await
    }

    async fn schedule(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<Option<Schedule>> {
        find_row(self, scope, name).await?.as_ref().map(read).transpose()
    }

    async fn list_schedules(
        &self,
        scope: TenantScope<'_>,
        page: &PageRequest<ScheduleName>,
    ) -> Result<Page<Schedule, ScheduleName>> {
        page.validate()?;
        let after = page.cursor.as_ref().map_or("", ScheduleName::as_str);
        let limit = page.limit as i64 + 1;
        let rows = match scope {
            Some(tenant) => self.database().query(&LIST_TENANT_SCHEDULES, &[&after, &limit, &tenant.as_str()]).await?,
            None => self.database().query(&LIST_SCHEDULES, &[&after, &limit]).await?,
        };
        let found = rows.first().map_or(0, |row| usize::try_from(row.get::<_, i64>("found")).unwrap_or(0));
        let shown = &rows[..rows.len().min(page.limit)];
        let last = shown.last().map(|row| ScheduleName::trusted(row.get("name")));
        let next = last.filter(|_| found > shown.len());
        let readable = |row: &Row| {
            let warn = |error: &StoreError| {
                let schedule = row.get::<_, &str>("name");
                tracing::warn!(schedule, %error, "left a schedule that cannot be read out of a list");
            };
            read(row).inspect_err(warn).ok()
        };
        Ok(Page { items: shown.iter().filter_map(readable).collect(), next })
    }

    async fn list_occurrences(
        &self,
        scope: TenantScope<'_>,
        name: &ScheduleName,
        page: &PageRequest<Timestamp>,
    ) -> Result<Page<Occurrence, Timestamp>> {
        occurrences::list(self, scope, name, page).await
    }
}

/// Reads a row of any statement that selects schedules.
pub(crate) fn read(row: &Row) -> Result<Schedule> {
    let definition = read_definition(row.get("definition")).map_err(|error| corrupt("definition", error))?;
    Ok(with_definition(row, definition))
}

// The other columns of a schedule with this definition. The column `paused` counts: a version that cannot read a
// definition can still pause it.
fn with_definition(row: &Row, mut definition: NewSchedule) -> Schedule {
    let open_jobs: Vec<Uuid> = row.get("open_jobs");
    definition.paused |= row.get::<_, bool>("paused");
    Schedule {
        definition,
        created_at: row.get("created_at"),
        updated_at: row.get("updated_at"),
        counted_from: row.get("counted_from"),
        next_nominal: row.get("next_nominal"),
        next_fire_at: row.get("next_fire_at"),
        last_fired_at: row.get("last_fired_at"),
        open_jobs: open_jobs.into_iter().map(JobId::from_uuid).collect(),
        tzdb: row.get("tzdb"),
    }
}

async fn publish_timer(store: &PostgresStore, has_next_time: bool) {
    if has_next_time {
        let mut effects = Effects::default();
        effects.timer_set();
        store.publish(Fence::NONE, effects).await;
    }
}

// Locks a schedule and reads the time after that: times that a transaction before this one wrote must not lie ahead.
async fn lock(tx: &FencedTx<'_>, scope: TenantScope<'_>, name: &ScheduleName) -> Result<(Option<Row>, Timestamp)> {
    let row = tx.query(&LOCK_SCHEDULE, &[&name.as_str(), &scope.map(Tenant::as_str)]).await?.pop();
    Ok((row, read_time(&tx.query(&CURRENT_TIME, &[]).await?)?))
}

// Locks a schedule that must exist, readable or not.
async fn lock_row(tx: &FencedTx<'_>, scope: TenantScope<'_>, name: &ScheduleName) -> Result<(Row, Timestamp)> {
    let (row, now) = lock(tx, scope, name).await?;
    Ok((row.ok_or_else(|| not_found(name))?, now))
}

/// Locks a schedule that must exist; returns it and the time.
pub(crate) async fn lock_existing(
    tx: &FencedTx<'_>,
    scope: TenantScope<'_>,
    name: &ScheduleName,
) -> Result<(Schedule, Timestamp)> {
    let (row, now) = lock_row(tx, scope, name).await?;
    Ok((read(&row)?, now))
}

fn not_found(name: &ScheduleName) -> StoreError {
    StoreError::ScheduleNotFound(name.clone())
}

fn written(definition: &NewSchedule) -> Result<String> {
    write_definition(definition).map_err(|error| StoreError::Backend(error.into()))
}

async fn update(tx: &FencedTx<'_>, schedule: &Schedule) -> Result<()> {
    let Schedule { definition, .. } = schedule;
    let params: Params<'_> = &[
        &definition.name.as_str(),
        &written(definition)?,
        &definition.paused,
        &schedule.updated_at,
        &schedule.counted_from,
        &schedule.next_nominal,
        &schedule.next_fire_at,
        &schedule.tzdb,
    ];
    tx.query(&UPDATE_SCHEDULE, params).await.map(drop)
}

// Also returns whether the schedule has a next time.
async fn put_in(tx: &FencedTx<'_>, scope: TenantScope<'_>, definition: &NewSchedule) -> Result<(PutResult, bool)> {
    let name = definition.name.as_str();
    for _ in 0..ROUNDS {
        // Without a scope: a name that another tenant uses cannot be created either.
        let (existing, now) = lock(tx, None, &definition.name).await?;
        if let Some(row) = existing {
            if !in_scope(row.get("tenant"), scope) {
                return Err(not_found(&definition.name));
            }
            check_owner(row.get("tenant"), definition)?;
            let Some(schedule) = edited(tx, &row, definition, now).await? else {
                return Ok((PutResult::Unchanged, false));
            };
            update(tx, &schedule).await?;
            return Ok((PutResult::Updated, schedule.next_fire_at.is_some()));
        }
        let new = Schedule::new(definition.clone(), now);
        let text = written(definition)?;
        let params: Params<'_> =
            &[&name, &text, &definition.paused, &now, &new.next_nominal, &new.next_fire_at, &new.tzdb];
        if !tx.query(&CREATE_SCHEDULE, params).await?.is_empty() {
            return Ok((PutResult::Created, new.next_fire_at.is_some()));
        }
    }
    Err(StoreError::Unavailable(format!("other clients keep creating and deleting schedule {name}: try again")))
}

// `None` if nothing changed. Passed times of the old definition are written as an occurrence.
async fn edited(tx: &FencedTx<'_>, row: &Row, definition: &NewSchedule, now: Timestamp) -> Result<Option<Schedule>> {
    let old = match read(row) {
        Ok(old) => old,
        Err(error) => {
            tracing::warn!(schedule = %definition.name, %error, "replaced a schedule that cannot be read");
            return Ok(Some(Schedule::replacing_unreadable(with_definition(row, definition.clone()), now)));
        }
    };
    let mut schedule = old.clone();
    let Some(passed) = schedule.edit(definition.clone(), now) else { return Ok(None) };
    if let Some(passed) = passed {
        occurrences::insert_passed(tx, &old, passed).await?;
    }
    Ok(Some(schedule))
}

// `None` while there may be more occurrences. New ones need the row, which is locked, so their number only falls.
async fn delete_in(tx: &FencedTx<'_>, scope: TenantScope<'_>, name: &ScheduleName) -> Result<Option<bool>> {
    if lock(tx, scope, name).await?.0.is_none() {
        return Ok(Some(false));
    }
    let deleted = tx.query(&DELETE_OCCURRENCES, &[&name.as_str(), &DELETE_BATCH]).await?.len();
    if i64::try_from(deleted).is_ok_and(|deleted| deleted >= DELETE_BATCH) {
        return Ok(None);
    }
    tx.query(&DELETE_SCHEDULE, &[&name.as_str()]).await?;
    Ok(Some(true))
}

async fn pause_in(
    tx: &FencedTx<'_>,
    scope: TenantScope<'_>,
    name: &ScheduleName,
    note: Option<String>,
) -> Result<bool> {
    let (row, now) = lock_row(tx, scope, name).await?;
    match read(&row) {
        Ok(mut schedule) => {
            let was_running = schedule.pause(note, now)?;
            update(tx, &schedule).await?;
            Ok(was_running)
        }
        Err(error) => {
            note.as_deref().map_or(Ok(()), NewSchedule::check_note)?;
            tracing::warn!(schedule = %name, %error, note, "paused a schedule that cannot be read, without its note");
            tx.query(&PAUSE_SCHEDULE, &[&name.as_str(), &now]).await?;
            Ok(!row.get::<_, bool>("paused"))
        }
    }
}

// Whether it was paused, and whether it has a next time.
async fn resume_in(tx: &FencedTx<'_>, scope: TenantScope<'_>, name: &ScheduleName) -> Result<(bool, bool)> {
    let (mut schedule, now) = lock_existing(tx, scope, name).await?;
    let Some(passed) = schedule.resume(now) else { return Ok((false, false)) };
    if let Some(passed) = passed {
        occurrences::insert_passed(tx, &schedule, passed).await?;
    }
    update(tx, &schedule).await?;
    Ok((true, schedule.next_fire_at.is_some()))
}

async fn find_row(store: &PostgresStore, scope: TenantScope<'_>, name: &ScheduleName) -> Result<Option<Row>> {
    Ok(store.database().query(&FIND_SCHEDULE, &[&name.as_str(), &scope.map(Tenant::as_str)]).await?.pop())
}

/// Whether the schedule exists, readable or not.
pub(crate) async fn exists(store: &PostgresStore, scope: TenantScope<'_>, name: &ScheduleName) -> Result<bool> {
    Ok(find_row(store, scope, name).await?.is_some())
}
