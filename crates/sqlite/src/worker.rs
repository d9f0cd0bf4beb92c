//! Workers: registration, heartbeats, directives.

use std::time::Duration;

use orchestrix_core::{Instance, JobType, Queue, WorkerName};
use orchestrix_store::{
    Directive, Page, PageRequest, Presence, Queues, WorkerInfo, WorkerStatus,
    clock::{earlier, until},
};
use rusqlite::params;

use crate::{
    columns::{Columns, columns},
    error::{Result, corrupt},
    row::{duration, micros, millis},
    session::{Session, Transaction},
    statement::{DIRECT_WORKER, FORGET_WORKERS, HEARTBEAT_WORKER, LIST_WORKERS, REGISTER_WORKER, REMOVE_WORKER},
};

impl Transaction<'_> {
    pub(crate) fn register_worker(&mut self, worker: &WorkerInfo) -> Result<Directive> {
        let list = |names: Vec<&str>| serde_json::to_string(&names).map_err(|error| corrupt("names", error));
        let queues = match &worker.queues {
            Queues::All => None,
            Queues::Named(names) => Some(list(names.iter().map(Queue::as_str).collect())?),
        };
        let types = worker.job_types.as_ref().map(|types| list(types.iter().map(JobType::as_str).collect()));
        let now = micros(self.now);
        let instance = worker.instance.as_ref().map(Instance::as_str);
        let (dead_after, default) = (worker.silence().map(millis), millis(WorkerInfo::DEAD_AFTER));
        let types = types.transpose()?;
        let params =
            params![worker.name.as_str(), queues, types, worker.concurrency, now, instance, dead_after, default];
        let directive = self.first(REGISTER_WORKER, params, |row| parse_directive(Columns(row).text(0)?))?;
        Ok(directive.unwrap_or_default())
    }

    pub(crate) fn heartbeat_worker(&mut self, name: &WorkerName, presence: &Presence) -> Result<Option<Directive>> {
        let instance = presence.instance.as_ref().map(Instance::as_str);
        let params = params![name.as_str(), presence.free_slots, micros(self.now), presence.draining, instance];
        self.first(HEARTBEAT_WORKER, params, |row| parse_directive(Columns(row).text(0)?))
    }

    pub(crate) fn direct_worker(&mut self, name: &WorkerName, directive: Directive) -> Result<bool> {
        Ok(self.write(DIRECT_WORKER, [name.as_str(), directive.as_str()])? > 0)
    }

    pub(crate) fn remove_worker(&mut self, name: &WorkerName, instance: Option<&Instance>) -> Result<bool> {
        Ok(self.write(REMOVE_WORKER, params![name.as_str(), instance.map(Instance::as_str)])? > 0)
    }

    pub(crate) fn forget_workers(&mut self, silence: Duration, limit: usize) -> Result<usize> {
        let since = micros(earlier(self.now, silence));
        self.write(FORGET_WORKERS, params![since, limit, micros(self.now)])
    }
}

fn parse_directive(text: &str) -> Result<Directive> {
    Ok(text.parse().map_err(|error| corrupt("directive", error))?)
}

fn parse_names(column: Option<&str>) -> Result<Option<Vec<String>>> {
    Ok(column.map(serde_json::from_str).transpose().map_err(|error| corrupt("names", error))?)
}

columns! {
    mod worker_columns of LIST_WORKERS {
        name, queues, job_types, concurrency, free_slots, directive, started_at, last_seen_at, instance, dead_after_ms,
    }
}

pub(crate) fn list(session: &Session<'_>, page: &PageRequest<WorkerName>) -> Result<Page<WorkerStatus, WorkerName>> {
    let after = page.cursor.as_ref().map_or("", WorkerName::as_str);
    let mut items = session.all(LIST_WORKERS, params![after, page.limit + 1], |row| {
        let row = Columns(row);
        let queues = parse_names(row.text_or_null(worker_columns::queues)?)?;
        let types = parse_names(row.text_or_null(worker_columns::job_types)?)?;
        let last_seen_at = row.time(worker_columns::last_seen_at)?;
        Ok(WorkerStatus {
            info: WorkerInfo {
                name: WorkerName::trusted(row.text(worker_columns::name)?),
                queues: queues.map_or(Queues::All, |names| {
                    Queues::Named(names.iter().map(|name| Queue::trusted(name)).collect())
                }),
                job_types: types.map(|names| names.iter().map(|name| JobType::trusted(name)).collect()),
                concurrency: row.get(worker_columns::concurrency)?,
                instance: row.text_or_null(worker_columns::instance)?.map(Instance::trusted),
                dead_after: Some(duration(row.get(worker_columns::dead_after_ms)?)),
            },
            free_slots: row.get(worker_columns::free_slots)?,
            directive: parse_directive(row.text(worker_columns::directive)?)?,
            started_at: row.time(worker_columns::started_at)?,
            last_seen_at,
            seen_ago: until(last_seen_at, session.now),
        })
    })?;
    let more = items.len() > page.limit;
    items.truncate(page.limit);
    let next = items.last().map(|worker| worker.info.name.clone()).filter(|_| more);
    Ok(Page { items, next })
}
