//! Firing due schedules.
//!
//! One transaction locks due schedules, lets the shared rules decide, and writes the result: all of it or nothing. It
//! handles many schedules at once. If that fails, it fires them one by one and postpones those that fail, so that no
//! schedule delays another.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use orchestrix_core::{JobId, Overlap, ScheduleName, Timestamp, tzdb_version};
use orchestrix_store::{Fence, Result, Schedule, StoreError, SweepResult};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    PostgresOptions, PostgresStore,
    batch_size::{BatchLimits, BatchSizer},
    fenced_tx::FencedTx,
    job_columns::millis,
    occurrences,
    planned_firing::{FiringResult, PlannedFiring, lock_required_jobs, write},
    row::sweep_limit,
    schedule::read,
    statement::{LOCK_DUE_SCHEDULES, LOCK_JOBS_SKIP_LOCKED, NEXT_FIRING, POSTPONE_SCHEDULES, UNFINISHED_JOBS},
};

/// How long a schedule is postponed that this version cannot fire.
const POSTPONE: Duration = Duration::from_secs(60);
/// How long a schedule is postponed that could not fire just now: a job of it is locked, or the server was too slow.
const POSTPONE_SHORTLY: Duration = Duration::from_secs(1);
/// How long schedules are fired one by one where the fence sets no limit.
const ONE_BY_ONE: Duration = Duration::from_secs(5);

/// One step of firing.
struct Step<'a> {
    tx: &'a FencedTx<'a>,
    sizer: &'a BatchSizer,
    limits: BatchLimits,
    options: &'a PostgresOptions,
    time_limit: Duration,
}

pub(crate) async fn fire_schedules(store: &PostgresStore, fence: Fence, limit: usize) -> Result<SweepResult> {
    let limit = sweep_limit(limit)?;
    let tx = store.database().fenced_transaction(fence).await?;
    let sizer = &store.0.batch_sizer;
    let step = Step {
        tx: &tx,
        sizer,
        limits: sizer.limits(),
        options: &store.database().options,
        time_limit: fence.patience().unwrap_or(ONE_BY_ONE),
    };
    let fired = step.run(limit).await;
    if let Err(error) = &fired {
        step.note_timeout(error);
    }
    let (swept, fired) = tx.finish(fired).await?;
    store.publish(fence, fired.effects).await;
    Ok(swept)
}

impl Step<'_> {
    async fn run(&self, limit: i64) -> Result<(SweepResult, FiringResult)> {
        let (count, fired) = self.fire_due(limit).await?;
        let rows = self.tx.query(&NEXT_FIRING, &[&tzdb_version()]).await?;
        let next = rows.first().and_then(|row| row.get::<_, Option<f64>>("in_ms"));
        let next_in = next.map(|millis| Duration::from_secs_f64(millis.max(0.0) / 1000.0));
        Ok((SweepResult { count, next_in }, fired))
    }

    async fn fire_due(&self, limit: i64) -> Result<(usize, FiringResult)> {
        let bytes = i64::try_from(self.limits.bytes()).unwrap_or(i64::MAX);
        let params = (self.limits.schedules(limit), tzdb_version());
        let rows = self.tx.query(&LOCK_DUE_SCHEDULES, &[&params.0, &params.1, &bytes]).await?;
        let Some(now) = rows.first().map(|row| row.get::<_, Timestamp>("now")) else {
            return Ok((0, FiringResult::default()));
        };
        let (schedules, unreadable) = read_or_postpone(self.tx, &rows).await?;
        self.tx.set_savepoint().await?;
        match self.fire_together(&schedules, now).await {
            Ok((count, fired)) => {
                self.sizer.succeeded();
                Ok((count + unreadable, fired))
            }
            Err(error) => {
                // If the rollback fails too, the connection is lost and the server undoes everything.
                if self.tx.rollback_to_savepoint().await.is_err() {
                    return Err(error);
                }
                self.note_timeout(&error);
                tracing::warn!(%error, schedules = schedules.len(), "firing step failed; firing one by one");
                let (count, fired) = self.fire_one_by_one(&schedules, now).await?;
                Ok((count + unreadable, fired))
            }
        }
    }

    fn note_timeout(&self, error: &StoreError) {
        if let StoreError::Unavailable(_) = error {
            self.sizer.timed_out();
        }
    }

    // Fires at least one schedule, and more until the time limit. Postpones those that fail.
    async fn fire_one_by_one(&self, schedules: &[Schedule], now: Timestamp) -> Result<(usize, FiringResult)> {
        let begun = Instant::now();
        let (mut count, mut all) = (0, FiringResult::default());
        for schedule in schedules {
            if count > 0 && begun.elapsed() >= self.time_limit {
                break;
            }
            count += 1;
            self.tx.set_savepoint().await?;
            match self.fire_together(std::slice::from_ref(schedule), now).await {
                Ok((_, fired)) => {
                    self.tx.release_savepoint().await?;
                    all.merge(fired);
                }
                Err(error) => {
                    if self.tx.rollback_to_savepoint().await.is_err() {
                        return Err(error);
                    }
                    self.note_timeout(&error);
                    self.postpone_failed(&[&schedule.definition.name], &error).await?;
                }
            }
        }
        Ok((count, all))
    }

    async fn postpone_failed(&self, names: &[&ScheduleName], error: &StoreError) -> Result<()> {
        let delay = if matches!(error, StoreError::Unavailable(_)) { POSTPONE_SHORTLY } else { POSTPONE };
        for name in names {
            tracing::warn!(schedule = %name, %error, delay = ?delay, "postponed a schedule that could not fire");
        }
        let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        postpone(self.tx, &names, delay).await
    }

    // Fires a first part of the schedules, as the limits allow. Returns how many it handled.
    async fn fire_together(&self, schedules: &[Schedule], now: Timestamp) -> Result<(usize, FiringResult)> {
        let unfinished = unfinished_jobs(self.tx, schedules, |schedule| schedule.definition.overlap).await?;
        let plan = |schedule: &Schedule, existing: &HashSet<Timestamp>| {
            let open = still_open(schedule, schedule.definition.overlap, &unfinished);
            if schedule.next_fire_at.is_none_or(|time| time > now) {
                return PlannedFiring::nothing(schedule.clone(), open);
            }
            let most = self.limits.occurrences(schedule.definition.job.payload.as_str().len());
            let firing = schedule.fire_unless(|time| existing.contains(&time), &open, now, most);
            PlannedFiring::new(schedule, firing, open)
        };
        let mut planned = Vec::new();
        let (mut jobs, mut bytes) = (0, 0);
        for schedule in schedules {
            if jobs >= self.limits.jobs() || bytes >= self.limits.bytes() {
                break;
            }
            let one = plan(schedule, &HashSet::new());
            jobs += one.jobs.len();
            bytes += one.payload_bytes();
            planned.push(one);
        }
        // An occurrence that exists gets no second job: its schedule is planned again without it.
        for (name, existing) in existing_times(self.tx, &planned).await? {
            let Some(at) = planned.iter().position(|one| *one.name() == name) else { continue };
            planned[at] = plan(&schedules[at], &existing);
            let mut new = Vec::new();
            for occurrence in std::mem::take(&mut planned[at].occurrences) {
                match existing.contains(&occurrence.nominal) {
                    true => new.extend(occurrences::skip_existing(self.tx, &schedules[at], occurrence).await?),
                    false => new.push(occurrence),
                }
            }
            planned[at].occurrences = new;
        }
        let count = planned.len();
        let planned = self.valid(planned).await?;
        let (planned, locked) = self.unlocked(planned).await?;
        Ok((count, write(self.tx, self.options, planned, &locked).await?))
    }

    // Keeps the firings whose jobs are valid and postpones the other schedules.
    async fn valid(&self, planned: Vec<PlannedFiring>) -> Result<Vec<PlannedFiring>> {
        let mut valid = Vec::with_capacity(planned.len());
        for one in planned {
            match one.check() {
                Ok(_) => valid.push(one),
                Err(error) => self.postpone_failed(&[one.name()], &error).await?,
            }
        }
        Ok(valid)
    }

    // Locks the jobs that the firings require. Postpones schedules whose jobs another transaction has locked: it may
    // hold them for long, for example a caller's transaction that completes one.
    async fn unlocked(&self, planned: Vec<PlannedFiring>) -> Result<(Vec<PlannedFiring>, Vec<Row>)> {
        let rows = lock_required_jobs(self.tx, &planned, &LOCK_JOBS_SKIP_LOCKED).await?;
        let locked_here: HashSet<Uuid> = rows.iter().map(|row| row.get("id")).collect();
        let required = planned.iter().flat_map(PlannedFiring::required_jobs).map(|id| id.as_uuid());
        let missing: Vec<Uuid> = required.filter(|id| !locked_here.contains(id)).collect();
        if missing.is_empty() {
            return Ok((planned, rows));
        }
        // Jobs that have finished since they were read are missing too, and delay nothing.
        let unfinished = self.tx.query(&UNFINISHED_JOBS, &[&missing]).await?;
        let locked: HashSet<JobId> = unfinished.iter().map(|row| JobId::from_uuid(row.get("id"))).collect();
        let (blocked, free): (Vec<_>, Vec<_>) =
            planned.into_iter().partition(|one| one.required_jobs().any(|id| locked.contains(&id)));
        if !blocked.is_empty() {
            let names: Vec<&ScheduleName> = blocked.iter().map(PlannedFiring::name).collect();
            let error = "a job that the schedule must wait for or cancel is locked by another transaction";
            self.postpone_failed(&names, &StoreError::Unavailable(error.into())).await?;
        }
        Ok((free, rows))
    }
}

async fn postpone(tx: &FencedTx<'_>, names: &[&str], delay: Duration) -> Result<()> {
    tx.query(&POSTPONE_SCHEDULES, &[&names, &millis(delay), &tzdb_version()]).await.map(drop)
}

// Reads each schedule once, with next times by this program's time-zone database. Postpones schedules that this
// version cannot read, since a newer one may have written them, and returns how many.
async fn read_or_postpone(tx: &FencedTx<'_>, rows: &[Row]) -> Result<(Vec<Schedule>, usize)> {
    let mut schedules = Vec::with_capacity(rows.len());
    let mut unreadable = Vec::new();
    let mut names = HashSet::new();
    for row in rows {
        let name = row.get::<_, &str>("name");
        if !names.insert(name) {
            continue;
        }
        match read(row) {
            Ok(mut schedule) => {
                if schedule.tzdb != tzdb_version() {
                    schedule.recompute();
                }
                schedules.push(schedule);
            }
            Err(error) => {
                tracing::error!(schedule = name, %error, delay = ?POSTPONE, "postponed a schedule that cannot be read");
                unreadable.push(name);
            }
        }
    }
    if !unreadable.is_empty() {
        postpone(tx, &unreadable, POSTPONE).await?;
    }
    Ok((schedules, unreadable.len()))
}

/// The unfinished jobs among the schedules' earlier jobs, as far as the overlap policy needs them.
pub(crate) async fn unfinished_jobs(
    tx: &FencedTx<'_>,
    schedules: &[Schedule],
    overlap: impl Fn(&Schedule) -> Overlap,
) -> Result<HashSet<JobId>> {
    let earlier = schedules.iter().flat_map(|schedule| schedule.jobs_to_check(overlap(schedule)));
    let ids: Vec<Uuid> = earlier.map(JobId::as_uuid).collect();
    if ids.is_empty() {
        return Ok(HashSet::new());
    }
    let rows = tx.query(&UNFINISHED_JOBS, &[&ids]).await?;
    Ok(rows.iter().map(|row| JobId::from_uuid(row.get("id"))).collect())
}

/// The earlier jobs of a schedule that count as unfinished.
pub(crate) fn still_open(schedule: &Schedule, overlap: Overlap, unfinished: &HashSet<JobId>) -> Vec<JobId> {
    let checked = !schedule.jobs_to_check(overlap).is_empty();
    schedule.open_jobs.iter().copied().filter(|id| !checked || unfinished.contains(id)).collect()
}

// The nominal times of planned occurrences that exist already.
async fn existing_times(
    tx: &FencedTx<'_>,
    planned: &[PlannedFiring],
) -> Result<HashMap<ScheduleName, HashSet<Timestamp>>> {
    let times = planned.iter().flat_map(|one| one.occurrences.iter().map(|new| (one.name(), new.nominal)));
    let times: Vec<_> = times.collect();
    let mut existing: HashMap<ScheduleName, HashSet<Timestamp>> = HashMap::new();
    for (name, occurrence) in occurrences::find(tx, &times).await? {
        existing.entry(name).or_default().insert(occurrence.nominal);
    }
    Ok(existing)
}
