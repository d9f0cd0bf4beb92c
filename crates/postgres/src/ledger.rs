//! The ledgers of schedules: which nominal times have a line, and what a new line does to those that are there.
//!
//! Whoever writes holds the row of the schedule, so what was read here is true until the commit; the key refuses whatever is not.

use std::collections::{BTreeMap, HashSet};

use orchestrix_core::{JobId, ScheduleName, Tenant, Timestamp};
use orchestrix_store::{Occurrence, Page, PageRequest, Result, Schedule, StoreError, TenantScope};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    PostgresStore,
    row::corrupt,
    schedule,
    statement::{KNOWN_OCCURRENCES, OCCURRENCES, RECORD_OCCURRENCES, REPLACE_OCCURRENCES},
    work::Work,
};

/// Nominal times that are looked up at once for the first that has no line.
const STRETCH: usize = 1_000;

fn read(row: &Row) -> Result<Occurrence> {
    Ok(Occurrence {
        nominal: row.get(1),
        until: row.get(2),
        count: u64::try_from(row.get::<_, i64>(3)).unwrap_or(1),
        outcome: row.get::<_, &str>(4).parse().map_err(|error| corrupt("outcome", error))?,
        reason: row
            .get::<_, Option<&str>>(5)
            .map(|text| text.parse().map_err(|error| corrupt("reason", error)))
            .transpose()?,
        job: row.get::<_, Option<Uuid>>(6).map(JobId::from_uuid),
        at: row.get(7),
    })
}

pub(crate) async fn list(
    store: &PostgresStore,
    within: TenantScope<'_>,
    name: &ScheduleName,
    page: &PageRequest<Timestamp>,
) -> Result<Page<Occurrence, Timestamp>> {
    page.validate()?;
    // No line is older than what the server can hold.
    let before = page.cursor.map(|time| time.max(Timestamp::UNIX_EPOCH));
    let (tenant, limit) = (within.map(Tenant::as_str), page.limit as i64 + 1);
    let rows = store.database().query(&OCCURRENCES, &[&name.as_str(), &before, &limit, &tenant]).await?;
    if rows.is_empty() && !schedule::is_there(store, within, name).await? {
        return Err(StoreError::ScheduleNotFound(name.clone()));
    }
    let items: Vec<Occurrence> = rows.iter().take(page.limit).map(read).collect::<Result<_>>()?;
    let next = (rows.len() > page.limit).then(|| items.last().map(|line| line.nominal)).flatten();
    Ok(Page { items, next })
}

/// Which of these nominal times of schedules have a line, and which.
pub(crate) async fn known(
    work: &Work<'_>,
    times: &[(&ScheduleName, Timestamp)],
) -> Result<Vec<(ScheduleName, Occurrence)>> {
    if times.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<&str> = times.iter().map(|(name, _)| name.as_str()).collect();
    let nominals: Vec<Timestamp> = times.iter().map(|(_, nominal)| *nominal).collect();
    let rows = work.query(&KNOWN_OCCURRENCES, &[&names, &nominals]).await?;
    rows.iter().map(|row| Ok((ScheduleName::trusted(row.get(0)), read(row)?))).collect()
}

/// A line over several times without those at its head that have a line of their own; `None` if all have.
pub(crate) async fn without_known(
    work: &Work<'_>,
    schedule: &Schedule,
    line: Occurrence,
) -> Result<Option<Occurrence>> {
    let Schedule { definition, .. } = schedule;
    let mut left = Some(line);
    while let Some(line) = left {
        let further = definition.cadence.after(line.nominal).take_while(|time| *time <= line.until);
        let stretch: Vec<_> =
            std::iter::once(line.nominal).chain(further).take(STRETCH).map(|time| (&definition.name, time)).collect();
        let known: HashSet<Timestamp> =
            known(work, &stretch).await?.into_iter().map(|(_, line)| line.nominal).collect();
        left = Some(line);
        for (_, time) in &stretch {
            match left {
                Some(line) if known.contains(time) => left = line.without_first(schedule),
                free => return Ok(free),
            }
        }
    }
    Ok(None)
}

/// Writes a line over times that were passed over, counted by `schedule`, without those that have a line of their own.
pub(crate) async fn record_passed(work: &Work<'_>, schedule: &Schedule, line: Occurrence) -> Result<()> {
    match without_known(work, schedule, line).await? {
        Some(line) => record(work, &[(&schedule.definition.name, line)]).await,
        None => Ok(()),
    }
}

/// Takes out the lines that `lines` replace, and adds what is left of those that stood for several times.
pub(crate) async fn replace(
    work: &Work<'_>,
    schedule: &Schedule,
    lines: &mut Vec<Occurrence>,
    known: Vec<Occurrence>,
) -> Result<()> {
    let mut there: BTreeMap<Timestamp, Occurrence> = known.into_iter().map(|line| (line.nominal, line)).collect();
    let new: HashSet<Timestamp> = lines.iter().map(|line| line.nominal).collect();
    there.retain(|nominal, _| new.contains(nominal));
    if there.is_empty() {
        return Ok(());
    }
    let gone: Vec<Timestamp> = there.keys().copied().collect();
    work.query(&REPLACE_OCCURRENCES, &[&schedule.definition.name.as_str(), &gone]).await?;
    for passed in there.into_values() {
        // The new lines are not written yet, so they are passed over here, and those that were written before in the ledger.
        let mut rest = passed.without_first(schedule);
        while let Some(line) = rest {
            if new.contains(&line.nominal) {
                rest = line.without_first(schedule);
                continue;
            }
            match without_known(work, schedule, line.clone()).await? {
                Some(free) if new.contains(&free.nominal) => rest = Some(free),
                free => {
                    lines.extend(free);
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Writes lines, each with its schedule's name.
pub(crate) async fn record(work: &Work<'_>, lines: &[(&ScheduleName, Occurrence)]) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let schedules: Vec<&str> = lines.iter().map(|(name, _)| name.as_str()).collect();
    let nominals: Vec<Timestamp> = lines.iter().map(|(_, line)| line.nominal).collect();
    let untils: Vec<Timestamp> = lines.iter().map(|(_, line)| line.until).collect();
    let counts: Vec<i64> = lines.iter().map(|(_, line)| i64::try_from(line.count.max(1)).unwrap_or(i64::MAX)).collect();
    let outcomes: Vec<&str> = lines.iter().map(|(_, line)| line.outcome.as_str()).collect();
    let reasons: Vec<Option<&str>> = lines.iter().map(|(_, line)| line.reason.map(|reason| reason.as_str())).collect();
    let jobs: Vec<Option<Uuid>> = lines.iter().map(|(_, line)| line.job.map(|id| id.as_uuid())).collect();
    let times: Vec<Timestamp> = lines.iter().map(|(_, line)| line.at).collect();
    work.query(&RECORD_OCCURRENCES, &[&schedules, &nominals, &untils, &counts, &outcomes, &reasons, &jobs, &times])
        .await?;
    Ok(())
}
