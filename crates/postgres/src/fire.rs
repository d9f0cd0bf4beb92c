//! Firing schedules that are due.
//!
//! One transaction reads schedules and keeps them from others, lets the store's rules decide, and writes down what
//! comes of it: all of it or nothing. It does so for many schedules at once; if that fails they are fired one by one, and
//! those at fault are put off: none keeps another waiting.

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
    firing::{Done, PlannedFiring, hold, write_down},
    ledger,
    pace::{Pace, Share},
    record::millis,
    row::sweep_limit,
    schedule::read,
    statement::{DUE_SCHEDULES, HOLD_FREE_JOBS, NEXT_FIRE, POSTPONE_SCHEDULES, UNFINISHED},
    work::Work,
};

/// How long a schedule that this program cannot fire is left alone.
const POSTPONED: Duration = Duration::from_secs(60);
/// How long one is that could not be fired just now, because somebody holds a job of it, or the server was too slow.
const DEFERRED: Duration = Duration::from_secs(1);
/// How long schedules are fired one by one where no leader's patience says so.
const ONE_BY_ONE: Duration = Duration::from_secs(5);

/// What steps of firing have in common.
struct Step<'a> {
    work: &'a Work<'a>,
    pace: &'a Pace,
    share: Share,
    options: &'a PostgresOptions,
    patience: Duration,
}

pub(crate) async fn fire(store: &PostgresStore, fence: Fence, limit: usize) -> Result<SweepResult> {
    let limit = sweep_limit(limit)?;
    let work = store.database().transaction(fence).await?;
    let pace = store.pace();
    let step = Step {
        work: &work,
        pace,
        share: pace.share(),
        options: &store.database().options,
        patience: fence.patience().unwrap_or(ONE_BY_ONE),
    };
    let answer = step.run(limit).await;
    if let Err(StoreError::Unavailable(_)) = answer {
        pace.failed();
    }
    let (swept, mut done) = work.conclude(answer).await?;
    done.tell(store, fence).await;
    Ok(swept)
}

impl Step<'_> {
    async fn run(&self, limit: i64) -> Result<(SweepResult, Done)> {
        let (count, done) = self.due(limit).await?;
        let rows = self.work.query(&NEXT_FIRE, &[&tzdb_version()]).await?;
        let next = rows.first().and_then(|row| row.get::<_, Option<f64>>(0));
        let next_in = next.map(|millis| Duration::from_secs_f64(millis.max(0.0) / 1000.0));
        Ok((SweepResult { count, next_in }, done))
    }

    async fn due(&self, limit: i64) -> Result<(usize, Done)> {
        let bytes = i64::try_from(self.share.bytes()).unwrap_or(i64::MAX);
        let rows = self.work.query(&DUE_SCHEDULES, &[&self.share.schedules(limit), &tzdb_version(), &bytes]).await?;
        let Some(now) = rows.first().map(|row| row.get::<_, Timestamp>(11)) else { return Ok((0, Done::default())) };
        let (schedules, unreadable) = readable(self.work, &rows).await?;
        self.work.mark().await?;
        match self.together(&schedules, now).await {
            Ok((count, done)) => {
                self.pace.succeeded();
                Ok((count + unreadable, done))
            }
            Err(error) => {
                // Where this fails too the connection is lost, and nothing that was done will last.
                if self.work.take_back().await.is_err() {
                    return Err(error);
                }
                self.note_slowness(&error);
                tracing::warn!(%error, schedules = schedules.len(), "a step failed; its schedules are fired one by one");
                let (count, done) = self.one_by_one(&schedules, now).await?;
                Ok((count + unreadable, done))
            }
        }
    }

    fn note_slowness(&self, error: &StoreError) {
        if let StoreError::Unavailable(_) = error {
            self.pace.failed();
        }
    }

    // As many of them as patience allows, and one at least. Those that fail are put off.
    async fn one_by_one(&self, schedules: &[Schedule], now: Timestamp) -> Result<(usize, Done)> {
        let begun = Instant::now();
        let (mut count, mut all) = (0, Done::default());
        for schedule in schedules {
            if count > 0 && begun.elapsed() >= self.patience {
                break;
            }
            count += 1;
            self.work.mark().await?;
            match self.together(std::slice::from_ref(schedule), now).await {
                Ok((_, done)) => {
                    self.work.unmark().await?;
                    all.add(done);
                }
                Err(error) => {
                    if self.work.take_back().await.is_err() {
                        return Err(error);
                    }
                    self.note_slowness(&error);
                    self.put_off(&[&schedule.definition.name], &error).await?;
                }
            }
        }
        Ok((count, all))
    }

    async fn put_off(&self, names: &[&ScheduleName], error: &StoreError) -> Result<()> {
        let wait = if matches!(error, StoreError::Unavailable(_)) { DEFERRED } else { POSTPONED };
        for name in names {
            tracing::warn!(schedule = %name, %error, wait = ?wait, "could not be fired; put off");
        }
        let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        postpone(self.work, &names, wait).await
    }

    // Answers how many schedules it has dealt with: the first of them.
    async fn together(&self, schedules: &[Schedule], now: Timestamp) -> Result<(usize, Done)> {
        let unfinished = unfinished(self.work, schedules, |schedule| schedule.definition.overlap).await?;
        let decide = |schedule: &Schedule, known: &HashSet<Timestamp>| {
            let open = still_open(schedule, schedule.definition.overlap, &unfinished);
            if schedule.next_fire_at.is_none_or(|time| time > now) {
                return PlannedFiring::nothing(schedule.clone(), open);
            }
            let most = self.share.occurrences(schedule.definition.job.payload.as_str().len());
            let firing = schedule.fire_unless(|time| known.contains(&time), &open, now, most);
            PlannedFiring::new(schedule, firing, open)
        };
        let mut planned = Vec::new();
        let (mut jobs, mut bytes) = (0, 0);
        for schedule in schedules {
            if jobs >= self.share.jobs() || bytes >= self.share.bytes() {
                break;
            }
            let one = decide(schedule, &HashSet::new());
            jobs += one.jobs.len();
            bytes += one.payload_bytes();
            planned.push(one);
        }
        // A line that is there already gets no job: then it is planned again without it.
        for (name, known) in known_times(self.work, &planned).await? {
            let Some(at) = planned.iter().position(|one| *one.name() == name) else { continue };
            planned[at] = decide(&schedules[at], &known);
            let mut lines = Vec::new();
            for line in std::mem::take(&mut planned[at].lines) {
                match known.contains(&line.nominal) {
                    true => lines.extend(ledger::without_known(self.work, &schedules[at], line).await?),
                    false => lines.push(line),
                }
            }
            planned[at].lines = lines;
        }
        let count = planned.len();
        let planned = self.sound(planned).await?;
        let (planned, held) = self.free(planned).await?;
        Ok((count, write_down(self.work, self.options, planned, &held).await?))
    }

    // Those whose jobs keep all rules; the others are put off.
    async fn sound(&self, planned: Vec<PlannedFiring>) -> Result<Vec<PlannedFiring>> {
        let mut sound = Vec::with_capacity(planned.len());
        for one in planned {
            match one.check() {
                Ok(_) => sound.push(one),
                Err(error) => self.put_off(&[one.name()], &error).await?,
            }
        }
        Ok(sound)
    }

    // Those that need no job which somebody else holds, and the jobs that they need, held; the others are put off. Somebody may hold a
    // job for long: whoever completes it in a transaction of his own, say.
    async fn free(&self, planned: Vec<PlannedFiring>) -> Result<(Vec<PlannedFiring>, Vec<Row>)> {
        let held = hold(self.work, &planned, &HOLD_FREE_JOBS).await?;
        let free: HashSet<Uuid> = held.iter().map(|row| row.get(0)).collect();
        let missing =
            planned.iter().flat_map(PlannedFiring::needs).map(|id| id.as_uuid()).filter(|id| !free.contains(id));
        let missing: Vec<Uuid> = missing.collect();
        if missing.is_empty() {
            return Ok((planned, held));
        }
        // Those that have finished since they were looked at hold up nobody.
        let rows = self.work.query(&UNFINISHED, &[&missing]).await?;
        let locked: HashSet<JobId> = rows.iter().map(|row| JobId::from_uuid(row.get(0))).collect();
        let (waiting, free): (Vec<_>, Vec<_>) =
            planned.into_iter().partition(|one| one.needs().any(|id| locked.contains(&id)));
        if !waiting.is_empty() {
            let names: Vec<&ScheduleName> = waiting.iter().map(PlannedFiring::name).collect();
            let error = StoreError::Unavailable("a job that it has to wait for, or to cancel, is locked".into());
            self.put_off(&names, &error).await?;
        }
        Ok((free, held))
    }
}

async fn postpone(work: &Work<'_>, names: &[&str], wait: Duration) -> Result<()> {
    work.query(&POSTPONE_SCHEDULES, &[&names, &millis(wait), &tzdb_version()]).await.map(drop)
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
        postpone(work, &unreadable, POSTPONED).await?;
    }
    Ok((schedules, unreadable.len()))
}

/// Which of the schedules' earlier jobs are not finished, as far as the rule about overlaps has to know.
pub(crate) async fn unfinished(
    work: &Work<'_>,
    schedules: &[Schedule],
    overlap: impl Fn(&Schedule) -> Overlap,
) -> Result<HashSet<JobId>> {
    let asked = schedules.iter().flat_map(|schedule| schedule.jobs_to_check(overlap(schedule)));
    let ids: Vec<Uuid> = asked.map(JobId::as_uuid).collect();
    if ids.is_empty() {
        return Ok(HashSet::new());
    }
    let rows = work.query(&UNFINISHED, &[&ids]).await?;
    Ok(rows.iter().map(|row| JobId::from_uuid(row.get(0))).collect())
}

/// Those of a schedule's earlier jobs that count as unfinished.
pub(crate) fn still_open(schedule: &Schedule, overlap: Overlap, unfinished: &HashSet<JobId>) -> Vec<JobId> {
    let asked = !schedule.jobs_to_check(overlap).is_empty();
    schedule.open_jobs.iter().copied().filter(|id| !asked || unfinished.contains(id)).collect()
}

// The nominal times of lines to come that have one already.
async fn known_times(work: &Work<'_>, planned: &[PlannedFiring]) -> Result<HashMap<ScheduleName, HashSet<Timestamp>>> {
    let times: Vec<_> =
        planned.iter().flat_map(|one| one.lines.iter().map(|line| (one.name(), line.nominal))).collect();
    let mut known: HashMap<ScheduleName, HashSet<Timestamp>> = HashMap::new();
    for (name, line) in ledger::known(work, &times).await? {
        known.entry(name).or_default().insert(line.nominal);
    }
    Ok(known)
}
