//! Schedules and their occurrences.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    time::Duration,
};

use orchestrix_core::{JobId, NewSchedule, Overlap, ScheduleName, Timestamp, schedule::OccurrenceOutcome};

use crate::tables::Tables;
use orchestrix_store::{
    Backfill, Enqueued, Firing, Occurrence, Page, PageRequest, PutResult, Result, Schedule, StoreError, SweepResult,
    TenantScope,
    clock::until,
    in_scope,
    schedule::{check_owner, check_put},
};

/// Schedules, their ledgers, and an index of when each is due.
#[derive(Debug, Default)]
pub(crate) struct Schedules {
    rows: BTreeMap<ScheduleName, Schedule>,
    ledgers: BTreeMap<ScheduleName, Ledger>,
    due: BTreeSet<(Timestamp, ScheduleName)>,
}

/// The occurrences of one schedule, by nominal time.
type Ledger = BTreeMap<Timestamp, Occurrence>;

impl Schedules {
    pub(crate) fn find(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Option<&Schedule> {
        self.rows.get(name).filter(|schedule| is_visible(schedule, scope))
    }

    fn row(&self, scope: TenantScope<'_>, name: &ScheduleName) -> Result<&Schedule> {
        self.find(scope, name).ok_or_else(|| StoreError::ScheduleNotFound(name.clone()))
    }

    fn has_occurrence(&self, name: &ScheduleName, nominal: Timestamp) -> bool {
        self.ledgers.get(name).is_some_and(|ledger| ledger.contains_key(&nominal))
    }

    fn put(&mut self, schedule: Schedule) {
        let name = schedule.definition.name.clone();
        self.remove(&name);
        self.due.extend(schedule.next_fire_at.map(|time| (time, name.clone())));
        self.rows.insert(name, schedule);
    }

    fn remove(&mut self, name: &ScheduleName) -> Option<Schedule> {
        let schedule = self.rows.remove(name)?;
        if let Some(time) = schedule.next_fire_at {
            self.due.remove(&(time, name.clone()));
        }
        Some(schedule)
    }

    pub(crate) fn delete(&mut self, scope: TenantScope<'_>, name: &ScheduleName) -> bool {
        if self.row(scope, name).is_err() {
            return false;
        }
        self.ledgers.remove(name);
        self.remove(name).is_some()
    }

    pub(crate) fn pause(
        &mut self,
        scope: TenantScope<'_>,
        name: &ScheduleName,
        note: Option<String>,
        now: Timestamp,
    ) -> Result<bool> {
        let mut schedule = self.row(scope, name)?.clone();
        let was_active = schedule.pause(note, now)?;
        self.put(schedule);
        Ok(was_active)
    }

    /// How long until a schedule is due.
    pub(crate) fn next_in(&self, now: Timestamp) -> Option<Duration> {
        self.due.first().map(|(time, _)| until(now, *time))
    }

    pub(crate) fn page(
        &self,
        scope: TenantScope<'_>,
        page: &PageRequest<ScheduleName>,
    ) -> Result<Page<Schedule, ScheduleName>> {
        page.validate()?;
        let after = page.cursor.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let rows = self.rows.range::<ScheduleName, _>((after, Bound::Unbounded)).map(|(_, schedule)| schedule);
        let mut rows = rows.filter(|schedule| is_visible(schedule, scope));
        let items: Vec<Schedule> = rows.by_ref().take(page.limit).cloned().collect();
        let next = rows.next().and_then(|_| items.last()).map(|schedule| schedule.definition.name.clone());
        Ok(Page { items, next })
    }

    pub(crate) fn occurrences(
        &self,
        scope: TenantScope<'_>,
        name: &ScheduleName,
        page: &PageRequest<Timestamp>,
    ) -> Result<Page<Occurrence, Timestamp>> {
        page.validate()?;
        self.row(scope, name)?;
        let before = page.cursor.map_or(Bound::Unbounded, Bound::Excluded);
        let ledger = self.ledgers.get(name).into_iter();
        let mut lines = ledger.flat_map(|ledger| ledger.range((Bound::Unbounded, before)).rev()).map(|(_, line)| line);
        let items: Vec<Occurrence> = lines.by_ref().take(page.limit).cloned().collect();
        let next = lines.next().and_then(|_| items.last()).map(|line| line.nominal);
        Ok(Page { items, next })
    }

    // A nominal time has one occurrence, and the first is kept. From a new occurrence of several nominal times,
    // leading times that have one are removed.
    fn write(&mut self, schedule: &Schedule, line: Occurrence) {
        let ledger = self.ledgers.entry(schedule.definition.name.clone()).or_default();
        let mut left = Some(line);
        while let Some(line) = left {
            if let Some(known) = ledger.get(&line.nominal) {
                debug_assert!(line.job.is_none(), "a second job for {known:?}");
                left = line.without_first(schedule);
                continue;
            }
            ledger.insert(line.nominal, line);
            break;
        }
    }

    // The occurrence of a backfill replaces the one that says that nothing fired.
    fn overwrite(&mut self, schedule: &Schedule, line: Occurrence) {
        let ledger = self.ledgers.entry(schedule.definition.name.clone()).or_default();
        let passed = ledger.insert(line.nominal, line);
        if let Some(rest) = passed.and_then(|passed| passed.without_first(schedule)) {
            self.write(schedule, rest);
        }
    }

    /// Deletes up to `limit` occurrences whose last nominal time and time of writing are not after `oldest`. Returns
    /// how many.
    pub(crate) fn prune(&mut self, oldest: Timestamp, limit: usize) -> usize {
        let mut left = limit;
        for ledger in self.ledgers.values_mut() {
            let past: Vec<Timestamp> = past(ledger, oldest).take(left).collect();
            left -= past.len();
            for nominal in past {
                ledger.remove(&nominal);
            }
        }
        limit - left
    }

    pub(crate) fn has_any(&self, oldest: Timestamp) -> bool {
        self.ledgers.values().any(|ledger| past(ledger, oldest).next().is_some())
    }
}

fn is_visible(schedule: &Schedule, scope: TenantScope<'_>) -> bool {
    in_scope(Some(schedule.definition.job.tenant.as_str()), scope)
}

fn past(ledger: &Ledger, oldest: Timestamp) -> impl Iterator<Item = Timestamp> {
    let lines = ledger.range(..=oldest).filter(move |(_, line)| line.until.max(line.at) <= oldest);
    lines.map(|(nominal, _)| *nominal)
}

impl Tables {
    pub(crate) fn put_schedule(
        &mut self,
        scope: TenantScope<'_>,
        definition: NewSchedule,
        now: Timestamp,
    ) -> Result<PutResult> {
        check_put(scope, &definition)?;
        let (schedule, put) = match self.schedules.find(None, &definition.name).cloned() {
            None => (Schedule::new(definition, now), PutResult::Created),
            Some(old) if !is_visible(&old, scope) => return Err(StoreError::ScheduleNotFound(definition.name)),
            Some(old) => {
                check_owner(Some(old.definition.job.tenant.as_str()), &definition)?;
                let mut schedule = old.clone();
                let Some(passed) = schedule.edit(definition, now) else { return Ok(PutResult::Unchanged) };
                if let Some(line) = passed {
                    self.schedules.write(&old, line);
                }
                (schedule, PutResult::Updated)
            }
        };
        if schedule.next_fire_at.is_some() {
            self.effects.timer_set();
        }
        self.schedules.put(schedule);
        Ok(put)
    }

    pub(crate) fn resume_schedule(
        &mut self,
        scope: TenantScope<'_>,
        name: &ScheduleName,
        now: Timestamp,
    ) -> Result<bool> {
        let mut schedule = self.schedules.row(scope, name)?.clone();
        let Some(passed) = schedule.resume(now) else { return Ok(false) };
        if let Some(line) = passed {
            self.schedules.write(&schedule, line);
        }
        if schedule.next_fire_at.is_some() {
            self.effects.timer_set();
        }
        self.schedules.put(schedule);
        Ok(true)
    }

    pub(crate) fn trigger_schedule(
        &mut self,
        scope: TenantScope<'_>,
        name: &ScheduleName,
        now: Timestamp,
    ) -> Result<Enqueued> {
        let schedule = self.schedules.row(scope, name)?.clone();
        let mut nominal = schedule.off_schedule_time(now);
        while self.schedules.has_occurrence(name, nominal) {
            nominal = schedule.off_schedule_time(nominal + Duration::from_micros(1));
        }
        let unfinished = self.unfinished(&schedule, Overlap::Allow);
        let enqueued = self.write_firing(schedule.trigger(nominal, now), unfinished, Schedules::write, now)?;
        Ok(enqueued[0])
    }

    pub(crate) fn backfill_schedule(
        &mut self,
        scope: TenantScope<'_>,
        name: &ScheduleName,
        range: &Backfill,
        now: Timestamp,
    ) -> Result<usize> {
        let schedule = self.schedules.row(scope, name)?.clone();
        let range = range.until_now(now)?;
        let mut times = range.times(&schedule)?;
        if let Some(ledger) = self.schedules.ledgers.get(name) {
            times.retain(|time| ledger.get(time).is_none_or(|line| line.outcome != OccurrenceOutcome::Fired));
        }
        let overlap = range.overlap.unwrap_or(schedule.definition.overlap);
        let unfinished = self.unfinished(&schedule, overlap);
        let firing = schedule.backfill(&times, overlap, &unfinished, now);
        Ok(self.write_firing(firing, unfinished, Schedules::overwrite, now)?.len())
    }

    /// Never recomputes next times: a store in memory does not outlive the time zone database of its process.
    pub(crate) fn fire(&mut self, limit: usize, now: Timestamp) -> Result<SweepResult> {
        let due = self.schedules.due.iter().take_while(|(time, _)| *time <= now).take(limit);
        let due: Vec<ScheduleName> = due.map(|(_, name)| name.clone()).collect();
        for name in &due {
            let schedule = self.schedules.row(None, name)?;
            let unfinished = self.unfinished(schedule, schedule.definition.overlap);
            let known = |nominal| self.schedules.has_occurrence(name, nominal);
            let firing = schedule.fire_unless(known, &unfinished, now, Schedule::MAX_FIRED);
            self.write_firing(firing, unfinished, Schedules::write, now)?;
        }
        Ok(SweepResult { count: due.len(), next_in: self.schedules.next_in(now) })
    }

    fn unfinished(&self, schedule: &Schedule, overlap: Overlap) -> Vec<JobId> {
        let checked = !schedule.jobs_to_check(overlap).is_empty();
        let unfinished = |id: &JobId| !checked || self.find(*id).is_some_and(|row| !row.job.state.is_terminal());
        schedule.open_jobs.iter().copied().filter(unfinished).collect()
    }

    // Enqueues first: only that can be refused, and then nothing is written.
    fn write_firing(
        &mut self,
        firing: Firing,
        unfinished: Vec<JobId>,
        write: fn(&mut Schedules, &Schedule, Occurrence),
        now: Timestamp,
    ) -> Result<Vec<Enqueued>> {
        let Some(mut schedule) = firing.after else { return Ok(Vec::new()) };
        let enqueued = self.enqueue_many(firing.jobs, now)?;
        for id in firing.cancel {
            self.cancel(id, now)?;
        }
        let mut created = enqueued.iter().map(|job| job.id);
        schedule.set_open_jobs(unfinished, created.clone());
        for mut line in firing.lines {
            if line.outcome == OccurrenceOutcome::Fired {
                line.job = created.next();
            }
            self.effects.schedule_fired(&schedule.definition.name, line.outcome, line.count);
            write(&mut self.schedules, &schedule, line);
        }
        self.schedules.put(schedule);
        Ok(enqueued)
    }
}
