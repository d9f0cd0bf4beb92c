//! Registered workers.

use std::{collections::BTreeMap, ops::Bound, time::Duration};

use orchestrix_core::{Instance, Timestamp, WorkerName};

use orchestrix_store::{
    Directive, Page, PageRequest, Presence, Result, WorkerInfo, WorkerStatus,
    clock::{earlier, until},
    housekeeping::{MAX_SWEEP, check_limit},
};

/// Workers, by name.
#[derive(Debug, Default)]
pub(crate) struct Workers(BTreeMap<WorkerName, WorkerStatus>);

impl Workers {
    pub(crate) fn register(&mut self, info: &WorkerInfo, now: Timestamp) -> Directive {
        let before = self.0.get(&info.name).map(|worker| at(worker, now)).filter(|worker| match &info.instance {
            Some(instance) => worker.info.instance.as_ref() == Some(instance),
            None => worker.is_live(),
        });
        let status = match before {
            // An update without an instance id does not replace what a named instance registered.
            Some(before) if info.instance.is_none() && before.info.instance.is_some() => {
                WorkerStatus { last_seen_at: now, ..before }
            }
            Some(before) => WorkerStatus {
                info: WorkerInfo {
                    instance: before.info.instance,
                    dead_after: info.silence().or(before.info.dead_after),
                    ..info.clone()
                },
                last_seen_at: now,
                ..before
            },
            None => WorkerStatus {
                info: WorkerInfo { dead_after: info.silence().or(Some(WorkerInfo::DEAD_AFTER)), ..info.clone() },
                directive: Directive::Run,
                free_slots: info.concurrency,
                started_at: now,
                last_seen_at: now,
                seen_ago: Duration::ZERO,
            },
        };
        let directive = status.directive;
        self.0.insert(info.name.clone(), status);
        directive
    }

    pub(crate) fn heartbeat(&mut self, name: &WorkerName, presence: &Presence, now: Timestamp) -> Option<Directive> {
        let worker = self.0.get_mut(name).filter(|worker| at(worker, now).is_live())?;
        if !worker.info.is_instance(presence.instance.as_ref()) {
            return Some(Directive::Run);
        }
        worker.free_slots = presence.free_slots.unwrap_or(worker.free_slots);
        worker.last_seen_at = now;
        if presence.draining && worker.directive == Directive::Run {
            worker.directive = Directive::Drain;
        }
        Some(worker.directive)
    }

    pub(crate) fn direct(&mut self, name: &WorkerName, directive: Directive) -> bool {
        let worker = self.0.get_mut(name);
        worker.map(|worker| worker.directive = directive).is_some()
    }

    pub(crate) fn remove(&mut self, name: &WorkerName, instance: Option<&Instance>) -> bool {
        let is_same = self.0.get(name).is_some_and(|worker| worker.info.is_instance(instance));
        is_same && self.0.remove(name).is_some()
    }

    pub(crate) fn forget(&mut self, silence: Duration, limit: usize, now: Timestamp) -> Result<usize> {
        check_limit(limit, MAX_SWEEP)?;
        let since = earlier(now, silence);
        // Workers are few: a scan is cheaper than an index that every heartbeat updates.
        let silent = self
            .0
            .values()
            .filter(|worker| worker.last_seen_at <= since && worker.last_seen_at <= earlier(now, worker.dead_after()));
        let mut silent: Vec<_> = silent.map(|worker| (worker.last_seen_at, worker.info.name.clone())).collect();
        silent.sort_unstable();
        silent.truncate(limit);
        for (_, name) in &silent {
            self.0.remove(name);
        }
        Ok(silent.len())
    }

    pub(crate) fn page(
        &self,
        page: &PageRequest<WorkerName>,
        now: Timestamp,
    ) -> Result<Page<WorkerStatus, WorkerName>> {
        page.validate()?;
        let from = page.cursor.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut workers = self.0.range::<WorkerName, _>((from, Bound::Unbounded)).map(|(_, worker)| worker);
        let items: Vec<WorkerStatus> = workers.by_ref().take(page.limit).map(|worker| at(worker, now)).collect();
        let next = workers.next().and_then(|_| items.last()).map(|worker| worker.info.name.clone());
        Ok(Page { items, next })
    }
}

// The worker as of `now`.
fn at(worker: &WorkerStatus, now: Timestamp) -> WorkerStatus {
    WorkerStatus { seen_ago: until(worker.last_seen_at, now), ..worker.clone() }
}
