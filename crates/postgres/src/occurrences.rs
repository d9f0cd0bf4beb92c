//! Occurrences of schedules: which nominal times have one, and how new ones relate to those that exist.
//!
//! A writer holds the lock of the schedule's row, so what it reads here stays true until its commit. The primary key
//! refuses anything else.

use std::collections::{BTreeMap, HashSet};

use orchestrix_core::{JobId, ScheduleName, Tenant, Timestamp};
use orchestrix_store::{Occurrence, Page, PageRequest, Result, Schedule, StoreError, TenantScope};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    PostgresStore,
    fenced_tx::FencedTx,
    row::corrupt,
    schedule,
    statement::{DELETE_OCCURRENCES_AT, FIND_OCCURRENCES, INSERT_OCCURRENCES, LIST_OCCURRENCES},
};

/// Nominal times looked up in one query in search of the first without an occurrence.
const LOOKUP_BATCH: usize = 1_000;

fn read(row: &Row) -> Result<Occurrence> {
    let reason = row.get::<_, Option<&str>>("reason");
    Ok(Occurrence {
        nominal: row.get("nominal"),
        until: row.get("until"),
        count: u64::try_from(row.get::<_, i64>("count")).unwrap_or(1),
        outcome: row.get::<_, &str>("outcome").parse().map_err(|error| corrupt("outcome", error))?,
        reason: reason.map(|text| text.parse().map_err(|error| corrupt("reason", error))).transpose()?,
        job: row.get::<_, Option<Uuid>>("job").map(JobId::from_uuid),
        at: row.get("at"),
    })
}

pub(crate) async fn list(
    store: &PostgresStore,
    scope: TenantScope<'_>,
    name: &ScheduleName,
    page: &PageRequest<Timestamp>,
) -> Result<Page<Occurrence, Timestamp>> {
    page.validate()?;
    // The server cannot hold every time that a cursor can; no occurrence is older than this bound.
    let before = page.cursor.map(|time| time.max(Timestamp::UNIX_EPOCH));
    let (tenant, limit) = (scope.map(Tenant::as_str), page.limit as i64 + 1);
    let rows = store.database().query(&LIST_OCCURRENCES, &[&name.as_str(), &before, &limit, &tenant]).await?;
    if rows.is_empty() && !schedule::exists(store, scope, name).await? {
        return Err(StoreError::ScheduleNotFound(name.clone()));
    }
    let items: Vec<Occurrence> = rows.iter().take(page.limit).map(read).collect::<Result<_>>()?;
    let next = (rows.len() > page.limit).then(|| items.last().map(|occurrence| occurrence.nominal)).flatten();
    Ok(Page { items, next })
}

/// The occurrences that exist at these nominal times.
pub(crate) async fn find(
    tx: &FencedTx<'_>,
    times: &[(&ScheduleName, Timestamp)],
) -> Result<Vec<(ScheduleName, Occurrence)>> {
    if times.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<&str> = times.iter().map(|(name, _)| name.as_str()).collect();
    let nominals: Vec<Timestamp> = times.iter().map(|(_, nominal)| *nominal).collect();
    let rows = tx.query(&FIND_OCCURRENCES, &[&names, &nominals]).await?;
    rows.iter().map(|row| Ok((ScheduleName::trusted(row.get("schedule")), read(row)?))).collect()
}

/// Drops the first nominal times of an occurrence while they have an occurrence of their own. Returns `None` if all
/// have.
pub(crate) async fn skip_existing(
    tx: &FencedTx<'_>,
    schedule: &Schedule,
    occurrence: Occurrence,
) -> Result<Option<Occurrence>> {
    let Schedule { definition, .. } = schedule;
    let mut rest = Some(occurrence);
    while let Some(occurrence) = rest {
        let later = definition.cadence.after(occurrence.nominal).take_while(|time| *time <= occurrence.until);
        let times = std::iter::once(occurrence.nominal).chain(later).take(LOOKUP_BATCH);
        let times: Vec<_> = times.map(|time| (&definition.name, time)).collect();
        let existing: HashSet<Timestamp> =
            find(tx, &times).await?.into_iter().map(|(_, existing)| existing.nominal).collect();
        rest = Some(occurrence);
        for (_, time) in &times {
            match rest {
                Some(occurrence) if existing.contains(time) => rest = occurrence.without_first(schedule),
                rest => return Ok(rest),
            }
        }
    }
    Ok(None)
}

/// Inserts an occurrence over passed times, counted by `schedule`, without the first ones that have an occurrence.
pub(crate) async fn insert_passed(tx: &FencedTx<'_>, schedule: &Schedule, passed: Occurrence) -> Result<()> {
    match skip_existing(tx, schedule, passed).await? {
        Some(rest) => insert(tx, &[(&schedule.definition.name, rest)]).await,
        None => Ok(()),
    }
}

/// Deletes the existing occurrences that `new` replaces. Adds to `new` what is left of those that covered several
/// times.
pub(crate) async fn replace(
    tx: &FencedTx<'_>,
    schedule: &Schedule,
    new: &mut Vec<Occurrence>,
    existing: Vec<Occurrence>,
) -> Result<()> {
    let mut replaced: BTreeMap<Timestamp, Occurrence> =
        existing.into_iter().map(|occurrence| (occurrence.nominal, occurrence)).collect();
    let times: HashSet<Timestamp> = new.iter().map(|occurrence| occurrence.nominal).collect();
    replaced.retain(|nominal, _| times.contains(nominal));
    if replaced.is_empty() {
        return Ok(());
    }
    let deleted: Vec<Timestamp> = replaced.keys().copied().collect();
    tx.query(&DELETE_OCCURRENCES_AT, &[&schedule.definition.name.as_str(), &deleted]).await?;
    for passed in replaced.into_values() {
        // The new occurrences are not inserted yet, so their times are skipped here; existing ones by `skip_existing`.
        let mut rest = passed.without_first(schedule);
        while let Some(occurrence) = rest {
            if times.contains(&occurrence.nominal) {
                rest = occurrence.without_first(schedule);
                continue;
            }
            match skip_existing(tx, schedule, occurrence.clone()).await? {
                Some(free) if times.contains(&free.nominal) => rest = Some(free),
                free => {
                    new.extend(free);
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Inserts occurrences, each with its schedule's name.
pub(crate) async fn insert(tx: &FencedTx<'_>, new: &[(&ScheduleName, Occurrence)]) -> Result<()> {
    if new.is_empty() {
        return Ok(());
    }
    let schedules: Vec<&str> = new.iter().map(|(name, _)| name.as_str()).collect();
    let nominals: Vec<Timestamp> = new.iter().map(|(_, one)| one.nominal).collect();
    let untils: Vec<Timestamp> = new.iter().map(|(_, one)| one.until).collect();
    let counts: Vec<i64> = new.iter().map(|(_, one)| i64::try_from(one.count.max(1)).unwrap_or(i64::MAX)).collect();
    let outcomes: Vec<&str> = new.iter().map(|(_, one)| one.outcome.as_str()).collect();
    let reasons: Vec<Option<&str>> = new.iter().map(|(_, one)| one.reason.map(|reason| reason.as_str())).collect();
    let jobs: Vec<Option<Uuid>> = new.iter().map(|(_, one)| one.job.map(|id| id.as_uuid())).collect();
    let times: Vec<Timestamp> = new.iter().map(|(_, one)| one.at).collect();
    tx.query(&INSERT_OCCURRENCES, &[&schedules, &nominals, &untils, &counts, &outcomes, &reasons, &jobs, &times])
        .await?;
    Ok(())
}
