//! Setting schedules up, stopping them, letting them go on, and looking at them.
//!
//! What changes one holds its row from reading it to the commit, as firing does: they wait for each other, or firing passes it by.

use orchestrix_core::{JobId, NewSchedule, ScheduleName, Timestamp};
use orchestrix_store::{
    Fence, Page, PageRequest, PutResult, Result, Schedule, StoreError, TenantScope, in_scope,
    schedule::{check_owner, check_put, read_definition, write_definition},
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    PostgresStore, ledger,
    row::corrupt,
    statement::{
        CREATE_SCHEDULE, DELETE_LEDGER, DELETE_SCHEDULE, EDIT_SCHEDULE, FIND_SCHEDULE, LOCK_SCHEDULE, PAUSE_SCHEDULE,
        SCHEDULES, TENANT_SCHEDULES, TIME,
    },
    work::Work,
};

/// How often somebody else may set up and delete a schedule while it is being set up.
const ROUNDS: usize = 10;
/// Lines of a ledger that are deleted at once.
const LEDGER_BATCH: i64 = 10_000;

/// Reads what `find_schedule.sql` and its like select.
pub(crate) fn read(row: &Row) -> Result<Schedule> {
    let definition = read_definition(row.get(1)).map_err(|error| corrupt("definition", error))?;
    Ok(beside(row, definition))
}

// What the other columns say, beside a definition. Whether it is paused is theirs to say: whoever cannot read a definition can stop it.
fn beside(row: &Row, mut definition: NewSchedule) -> Schedule {
    let open: Vec<Uuid> = row.get(8);
    definition.paused |= row.get::<_, bool>(10);
    Schedule {
        definition,
        created_at: row.get(2),
        updated_at: row.get(3),
        counted_from: row.get(4),
        next_nominal: row.get(5),
        next_fire_at: row.get(6),
        last_fired_at: row.get(7),
        open_jobs: open.into_iter().map(JobId::from_uuid).collect(),
        tzdb: row.get(9),
    }
}

// Keeps a schedule from others; its row, and the time after others let go of it: their times must not seem to lie ahead.
async fn lock(work: &Work<'_>, name: &ScheduleName) -> Result<(Option<Row>, Timestamp)> {
    let row = work.query(&LOCK_SCHEDULE, &[&name.as_str()]).await?.pop();
    let rows = work.query(&TIME, &[]).await?;
    let time = rows.first().ok_or_else(|| StoreError::Backend("the server does not tell the time".into()))?;
    Ok((row, time.get(0)))
}

// The same for a schedule that must be there.
async fn lock_row(work: &Work<'_>, within: TenantScope<'_>, name: &ScheduleName) -> Result<(Row, Timestamp)> {
    let (row, now) = lock(work, name).await?;
    Ok((row.filter(|row| is_row_within(row, within)).ok_or_else(|| unknown(name))?, now))
}

/// Keeps a schedule from others that must be there; what it is, and the time.
pub(crate) async fn lock_known(
    work: &Work<'_>,
    within: TenantScope<'_>,
    name: &ScheduleName,
) -> Result<(Schedule, Timestamp)> {
    let (row, now) = lock_row(work, within, name).await?;
    Ok((read(&row)?, now))
}

// By its column, which is there for definitions too that this program cannot read.
fn is_row_within(row: &Row, within: TenantScope<'_>) -> bool {
    in_scope(row.get(11), within)
}

fn unknown(name: &ScheduleName) -> StoreError {
    StoreError::ScheduleNotFound(name.clone())
}

fn written(definition: &NewSchedule) -> Result<String> {
    write_definition(definition).map_err(|error| StoreError::Backend(error.into()))
}

async fn edit(work: &Work<'_>, schedule: &Schedule) -> Result<()> {
    let Schedule { definition, .. } = schedule;
    let params: [&(dyn tokio_postgres::types::ToSql + Sync); 8] = [
        &definition.name.as_str(),
        &written(definition)?,
        &definition.paused,
        &schedule.updated_at,
        &schedule.counted_from,
        &schedule.next_nominal,
        &schedule.next_fire_at,
        &schedule.tzdb,
    ];
    work.query(&EDIT_SCHEDULE, &params).await.map(drop)
}

pub(crate) async fn put(store: &PostgresStore, within: TenantScope<'_>, definition: NewSchedule) -> Result<PutResult> {
    check_put(within, &definition)?;
    let work = store.database().transaction(Fence::NONE).await?;
    let answer = put_in(&work, within, &definition).await;
    let (put, timed) = work.conclude(answer).await?;
    if timed {
        store.wake_timers();
    }
    Ok(put)
}

async fn put_in(work: &Work<'_>, within: TenantScope<'_>, definition: &NewSchedule) -> Result<(PutResult, bool)> {
    let name = definition.name.as_str();
    for _ in 0..ROUNDS {
        let (known, now) = lock(work, &definition.name).await?;
        if let Some(row) = known {
            if !is_row_within(&row, within) {
                return Err(unknown(&definition.name));
            }
            check_owner(row.get(11), definition)?;
            let Some(schedule) = edited(work, &row, definition, now).await? else {
                return Ok((PutResult::Unchanged, false));
            };
            edit(work, &schedule).await?;
            return Ok((PutResult::Updated, schedule.next_fire_at.is_some()));
        }
        let new = Schedule::new(definition.clone(), now);
        let text = written(definition)?;
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 7] =
            [&name, &text, &definition.paused, &now, &new.next_nominal, &new.next_fire_at, &new.tzdb];
        if !work.query(&CREATE_SCHEDULE, &params).await?.is_empty() {
            return Ok((PutResult::Created, new.next_fire_at.is_some()));
        }
    }
    Err(StoreError::Unavailable(format!("schedule {name} keeps coming and going: try again")))
}

// `None` if it is the same. What had passed of its old times is written into its ledger.
async fn edited(work: &Work<'_>, row: &Row, definition: &NewSchedule, now: Timestamp) -> Result<Option<Schedule>> {
    let old = match read(row) {
        Ok(old) => old,
        Err(error) => {
            tracing::warn!(schedule = %definition.name, %error, "replaced: this program cannot read it");
            return Ok(Some(Schedule::replacing_unreadable(beside(row, definition.clone()), now)));
        }
    };
    let mut schedule = old.clone();
    let Some(passed) = schedule.edit(definition.clone(), now) else { return Ok(None) };
    if let Some(line) = passed {
        ledger::record_passed(work, &old, line).await?;
    }
    Ok(Some(schedule))
}

/// The ledger goes in parts, the last of it with the schedule: a long one must not be too much for one statement. A crash in between
/// leaves the schedule with what is left of it.
pub(crate) async fn delete(store: &PostgresStore, within: TenantScope<'_>, name: &ScheduleName) -> Result<bool> {
    loop {
        let work = store.database().transaction(Fence::NONE).await?;
        let answer = delete_in(&work, within, name).await;
        if let Some(there) = work.conclude(answer).await? {
            return Ok(there);
        }
    }
}

// `None` while there may be more of its ledger. Whoever adds to it needs the row, which is locked: it only gets shorter.
async fn delete_in(work: &Work<'_>, within: TenantScope<'_>, name: &ScheduleName) -> Result<Option<bool>> {
    let (row, _) = lock(work, name).await?;
    if !row.is_some_and(|row| is_row_within(&row, within)) {
        return Ok(Some(false));
    }
    if delete_lines(work, name).await? {
        return Ok(None);
    }
    work.query(&DELETE_SCHEDULE, &[&name.as_str()]).await?;
    Ok(Some(true))
}

// Whether there may be more.
async fn delete_lines(work: &Work<'_>, name: &ScheduleName) -> Result<bool> {
    let deleted = work.query(&DELETE_LEDGER, &[&name.as_str(), &LEDGER_BATCH]).await?.len();
    Ok(i64::try_from(deleted).is_ok_and(|deleted| deleted >= LEDGER_BATCH))
}

pub(crate) async fn pause(
    store: &PostgresStore,
    within: TenantScope<'_>,
    name: &ScheduleName,
    note: Option<String>,
) -> Result<bool> {
    let work = store.database().transaction(Fence::NONE).await?;
    let answer = async {
        let (row, now) = lock_row(&work, within, name).await?;
        match read(&row) {
            Ok(mut schedule) => {
                let ran = schedule.pause(note, now)?;
                edit(&work, &schedule).await?;
                Ok(ran)
            }
            Err(error) => {
                note.as_deref().map_or(Ok(()), NewSchedule::check_note)?;
                tracing::warn!(schedule = %name, %error, note, "paused without its note: this program cannot read it");
                work.query(&PAUSE_SCHEDULE, &[&name.as_str(), &now]).await?;
                Ok(!row.get::<_, bool>(10))
            }
        }
    };
    let answer = answer.await;
    work.conclude(answer).await
}

pub(crate) async fn resume(store: &PostgresStore, within: TenantScope<'_>, name: &ScheduleName) -> Result<bool> {
    let work = store.database().transaction(Fence::NONE).await?;
    let answer = async {
        let (mut schedule, now) = lock_known(&work, within, name).await?;
        let Some(passed) = schedule.resume(now) else { return Ok((false, false)) };
        if let Some(line) = passed {
            ledger::record_passed(&work, &schedule, line).await?;
        }
        edit(&work, &schedule).await?;
        Ok((true, schedule.next_fire_at.is_some()))
    };
    let answer = answer.await;
    let (was_paused, timed) = work.conclude(answer).await?;
    if timed {
        store.wake_timers();
    }
    Ok(was_paused)
}

// The row of a schedule that may not be readable.
async fn find_row(store: &PostgresStore, within: TenantScope<'_>, name: &ScheduleName) -> Result<Option<Row>> {
    let row = store.database().query(&FIND_SCHEDULE, &[&name.as_str()]).await?.pop();
    Ok(row.filter(|row| is_row_within(row, within)))
}

/// Whether there is one, readable or not.
pub(crate) async fn is_there(store: &PostgresStore, within: TenantScope<'_>, name: &ScheduleName) -> Result<bool> {
    Ok(find_row(store, within, name).await?.is_some())
}

// Another's is not there, readable or not.
pub(crate) async fn find(
    store: &PostgresStore,
    within: TenantScope<'_>,
    name: &ScheduleName,
) -> Result<Option<Schedule>> {
    find_row(store, within, name).await?.as_ref().map(read).transpose()
}

pub(crate) async fn list(
    store: &PostgresStore,
    within: TenantScope<'_>,
    page: &PageRequest<ScheduleName>,
) -> Result<Page<Schedule, ScheduleName>> {
    page.validate()?;
    let after = page.cursor.as_ref().map_or("", ScheduleName::as_str);
    let limit = page.limit as i64 + 1;
    let rows = match within {
        Some(own) => store.database().query(&TENANT_SCHEDULES, &[&after, &limit, &own.as_str()]).await?,
        None => store.database().query(&SCHEDULES, &[&after, &limit]).await?,
    };
    let found = rows.first().map_or(0, |row| usize::try_from(row.get::<_, i64>(11)).unwrap_or(0));
    let shown = &rows[..rows.len().min(page.limit)];
    let next = (found > shown.len()).then(|| shown.last().map(|row| ScheduleName::trusted(row.get(0)))).flatten();
    let readable = |row: &Row| {
        let warn = |error: &StoreError| {
            tracing::warn!(schedule = row.get::<_, &str>(0), %error, "left out of a list: this program cannot read it");
        };
        read(row).inspect_err(warn).ok()
    };
    Ok(Page { items: shown.iter().filter_map(readable).collect(), next })
}
