//! Firing schedules: because they are due, because somebody asked for it now, or for a past range.
//!
//! One transaction reads schedules and keeps them from others, lets the store's rules decide, and writes down what
//! comes of it: all of it or nothing.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use orchestrix_core::{FieldError, JobId, ScheduleName, Timestamp, schedule::Outcome, tzdb_version};
use orchestrix_store::{Backfill, Enqueued, Fence, Occurrence, Result, Schedule, StoreError, Swept};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    PostgresStore,
    enqueue::MAX_CALL_BYTES,
    firing::{Decided, Done, write_down},
    ledger,
    row::sweep_limit,
    schedule::{lock_known, read},
    statement::{DUE_SCHEDULES, NEXT_FIRE, POSTPONE_SCHEDULES, UNFINISHED},
    work::Work,
};

/// Jobs and bytes of payload after which a step takes no further schedule: a leader's transaction is short.
const STEP_JOBS: usize = 5_000;
const STEP_BYTES: usize = 32 * 1024 * 1024;
/// How long a schedule that this program cannot read is left alone.
const POSTPONED_MS: i64 = 60_000;

pub(crate) async fn fire(store: &PostgresStore, fence: Fence, limit: usize) -> Result<Swept> {
    let limit = sweep_limit(limit)?;
    let work = store.database().transaction(fence).await?;
    let inline_payload = store.database().options.inline_payload;
    let answer = async {
        let (count, done) = step(&work, inline_payload, limit).await?;
        let rows = work.query(&NEXT_FIRE, &[&tzdb_version()]).await?;
        let next = rows.first().and_then(|row| row.get::<_, Option<f64>>(0));
        let next_in = next.map(|millis| Duration::from_secs_f64(millis.max(0.0) / 1000.0));
        Ok((Swept { count, next_in }, done))
    };
    let answer = answer.await;
    let (swept, done) = work.conclude(answer).await?;
    done.tell(store, fence).await;
    Ok(swept)
}

async fn step(work: &Work<'_>, inline_payload: usize, limit: i64) -> Result<(usize, Done)> {
    let rows = work.query(&DUE_SCHEDULES, &[&limit, &tzdb_version()]).await?;
    let Some(now) = rows.first().map(|row| row.get::<_, Timestamp>(10)) else { return Ok((0, Done::default())) };
    let (schedules, postponed) = readable(work, &rows).await?;
    let unfinished = unfinished(work, &schedules).await?;
    let decide = |schedule: &Schedule, known: &HashSet<Timestamp>| {
        let open = still_open(schedule, &unfinished);
        if schedule.next_fire_at.is_none_or(|time| time > now) {
            return Decided::nothing(schedule.clone(), open);
        }
        let most = (STEP_BYTES / schedule.definition.job.payload.as_str().len().max(1)).clamp(1, Schedule::MAX_FIRED);
        let firing = schedule.fire_unless(|time| known.contains(&time), &open, now, most);
        Decided::new(schedule, firing, open)
    };
    let mut decided = Vec::new();
    let (mut jobs, mut bytes) = (0, 0);
    for schedule in &schedules {
        if jobs >= STEP_JOBS || bytes >= STEP_BYTES {
            break;
        }
        let one = decide(schedule, &HashSet::new());
        jobs += one.jobs.len();
        bytes += one.payload_bytes();
        decided.push(one);
    }
    // A line that is there already gets no job: then it is decided again without it.
    for (name, known) in known_times(work, &decided).await? {
        let Some(at) = decided.iter().position(|one| *one.name() == name) else { continue };
        decided[at] = decide(&schedules[at], &known);
        let mut lines = Vec::new();
        for line in std::mem::take(&mut decided[at].lines) {
            match known.contains(&line.nominal) {
                true => lines.extend(ledger::without_known(work, &schedules[at], line).await?),
                false => lines.push(line),
            }
        }
        decided[at].lines = lines;
    }
    let count = decided.len() + postponed;
    Ok((count, write_down(work, inline_payload, decided).await?))
}

// Each once, with next times by this program's time-zone database; and how many were put off because this program cannot read them: a
// newer one may have written them, and they must not keep the others waiting.
async fn readable(work: &Work<'_>, rows: &[Row]) -> Result<(Vec<Schedule>, usize)> {
    let mut schedules = Vec::with_capacity(rows.len());
    let mut unreadable = Vec::new();
    let mut seen = HashSet::new();
    for row in rows {
        let name = row.get::<_, &str>(0);
        if !seen.insert(name) {
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
                tracing::error!(schedule = name, %error, "cannot be fired by this program; left for a minute");
                unreadable.push(name);
            }
        }
    }
    if !unreadable.is_empty() {
        work.query(&POSTPONE_SCHEDULES, &[&unreadable, &POSTPONED_MS, &tzdb_version()]).await?;
    }
    Ok((schedules, unreadable.len()))
}

async fn unfinished(work: &Work<'_>, schedules: &[Schedule]) -> Result<HashSet<JobId>> {
    let ids: Vec<Uuid> = schedules.iter().flat_map(|schedule| &schedule.open_jobs).map(JobId::as_uuid).collect();
    if ids.is_empty() {
        return Ok(HashSet::new());
    }
    let rows = work.query(&UNFINISHED, &[&ids]).await?;
    Ok(rows.iter().map(|row| JobId::from_uuid(row.get(0))).collect())
}

fn still_open(schedule: &Schedule, unfinished: &HashSet<JobId>) -> Vec<JobId> {
    schedule.open_jobs.iter().copied().filter(|id| unfinished.contains(id)).collect()
}

// The nominal times of lines to come that have one already.
async fn known_times(work: &Work<'_>, decided: &[Decided]) -> Result<HashMap<ScheduleName, HashSet<Timestamp>>> {
    let times: Vec<_> =
        decided.iter().flat_map(|one| one.lines.iter().map(|line| (one.name(), line.nominal))).collect();
    let mut known: HashMap<ScheduleName, HashSet<Timestamp>> = HashMap::new();
    for (name, line) in ledger::known(work, &times).await? {
        known.entry(name).or_default().insert(line.nominal);
    }
    Ok(known)
}

pub(crate) async fn trigger(store: &PostgresStore, name: &ScheduleName) -> Result<Enqueued> {
    let work = store.database().transaction(Fence::NONE).await?;
    let answer = trigger_in(&work, store.database().options.inline_payload, name).await;
    let done = work.conclude(answer).await?;
    done.tell(store, Fence::NONE).await;
    done.recorded.first().copied().ok_or_else(|| StoreError::Backend("a job was not recorded".into()))
}

async fn trigger_in(work: &Work<'_>, inline_payload: usize, name: &ScheduleName) -> Result<Done> {
    let (schedule, now) = lock_known(work, name).await?;
    let mut nominal = now;
    while !ledger::known(work, &[(name, nominal)]).await?.is_empty() {
        nominal += Duration::from_micros(1);
    }
    let schedules = [schedule];
    let open = still_open(&schedules[0], &unfinished(work, &schedules).await?);
    let decided = Decided::new(&schedules[0], schedules[0].trigger(nominal), open);
    write_down(work, inline_payload, vec![decided]).await
}

pub(crate) async fn backfill(store: &PostgresStore, name: &ScheduleName, range: &Backfill) -> Result<usize> {
    let work = store.database().transaction(Fence::NONE).await?;
    let answer = backfill_in(&work, store.database().options.inline_payload, name, range).await;
    let done = work.conclude(answer).await?;
    done.tell(store, Fence::NONE).await;
    Ok(done.recorded.len())
}

async fn backfill_in(work: &Work<'_>, inline_payload: usize, name: &ScheduleName, range: &Backfill) -> Result<Done> {
    let (schedule, now) = lock_known(work, name).await?;
    let times = range.times(&schedule)?;
    let asked: Vec<_> = times.iter().map(|time| (name, *time)).collect();
    let known: Vec<Occurrence> = ledger::known(work, &asked).await?.into_iter().map(|(_, line)| line).collect();
    let fired: HashSet<Timestamp> =
        known.iter().filter(|line| line.outcome == Outcome::Fired).map(|line| line.nominal).collect();
    let times: Vec<Timestamp> = times.into_iter().filter(|time| !fired.contains(time)).collect();
    if times.len().saturating_mul(schedule.definition.job.payload.as_str().len()) > MAX_CALL_BYTES {
        return Err(
            FieldError::new("to", format!("the jobs would hold more than {MAX_CALL_BYTES} bytes of payload")).into()
        );
    }
    let schedules = [schedule];
    let schedule = &schedules[0];
    let open = still_open(schedule, &unfinished(work, &schedules).await?);
    let overlap = range.overlap.unwrap_or(schedule.definition.overlap);
    let mut decided = Decided::new(schedule, schedule.backfill(&times, overlap, &open, now), open);
    ledger::replace(work, schedule, &mut decided.lines, known).await?;
    write_down(work, inline_payload, vec![decided]).await
}
