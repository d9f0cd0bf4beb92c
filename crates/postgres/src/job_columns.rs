//! New jobs as the columns of one INSERT.

use std::collections::HashMap;

use orchestrix_core::{Fingerprint, JobId, JobState, NewJob, Start, Tenant, enqueue::Links, turn::ring_position};
use orchestrix_store::{JobOptions, Result, clock::cut};
use serde_json::{Map, Value, json};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    database::Database,
    row::state,
    runner::{Param, Runner},
    statement::{ENQUEUE_JOBS, ENQUEUE_PLAIN_JOBS},
};

/// Jobs to insert, column by column.
#[derive(Default)]
pub(crate) struct Columns<'a> {
    ids: Vec<Uuid>,
    queues: Vec<&'a str>,
    job_types: Vec<&'a str>,
    tenants: Vec<&'a str>,
    ranks: Vec<i16>,
    max_attempts: Vec<i16>,
    payloads: Vec<Option<&'a str>>,
    bodies: Vec<Option<&'a str>>,
    specs: Vec<Option<String>>,
}

impl<'a> Columns<'a> {
    /// Adds one job. A payload longer than `inline_payload` bytes goes to a table of its own.
    pub(crate) fn push(&mut self, id: JobId, job: &'a NewJob, links: Links, inline_payload: usize) {
        let payload = job.payload.as_str();
        let external = payload.len() > inline_payload;
        self.ids.push(id.as_uuid());
        self.queues.push(job.queue.as_str());
        self.job_types.push(job.job_type.as_str());
        self.tenants.push(job.tenant.as_str());
        self.ranks.push(-job.priority.get());
        self.max_attempts.push(i16::try_from(job.max_attempts).unwrap_or(i16::MAX));
        self.payloads.push((!external).then_some(payload));
        self.bodies.push(external.then_some(payload));
        self.specs.push(spec(job, links));
    }

    /// Inserts the jobs in a transaction of their own and returns the states of those that were inserted: a job whose
    /// idempotency key is taken is left out. The inner error is the server's.
    pub(crate) async fn insert(
        &self,
        database: &Database,
    ) -> Result<Result<HashMap<Uuid, JobState>, tokio_postgres::Error>> {
        let rows = match self.is_plain() {
            true => {
                let batches = ReadyBatches::of(self);
                let params: Vec<Param<'_>> = self.params().into_iter().take(7).chain(batches.params()).collect();
                database.try_query(&ENQUEUE_PLAIN_JOBS, &Param::all(&params)).await?
            }
            false => database.try_query(&ENQUEUE_JOBS, &Param::all(&self.params())).await?,
        };
        rows.map(|rows| self.states(&rows)).map_or_else(|error| Ok(Err(error)), |states| states.map(Ok))
    }

    /// Inserts the jobs within the runner's transaction.
    pub(crate) async fn insert_in(&self, runner: &mut dyn Runner) -> Result<HashMap<Uuid, JobState>> {
        let rows = runner.run(&ENQUEUE_JOBS, &self.params()).await?;
        rows.iter().map(|row| Ok((row.get("id")?, state(&row.get::<String>("state")?)?))).collect()
    }

    fn is_plain(&self) -> bool {
        self.specs.iter().all(Option::is_none) && self.bodies.iter().all(Option::is_none)
    }

    // A plain job is always inserted, as pending, so its statement returns no rows.
    fn states(&self, rows: &[Row]) -> Result<HashMap<Uuid, JobState>> {
        match self.is_plain() {
            true => Ok(self.ids.iter().map(|id| (*id, JobState::Pending)).collect()),
            false => rows.iter().map(|row| Ok((row.get("id"), state(row.get("state"))?))).collect(),
        }
    }

    fn params(&self) -> [Param<'_>; 9] {
        [
            Param::Uuids(&self.ids),
            Param::Texts(&self.queues),
            Param::Texts(&self.job_types),
            Param::Texts(&self.tenants),
            Param::Int2s(&self.ranks),
            Param::Int2s(&self.max_attempts),
            Param::MaybeTexts(&self.payloads),
            Param::MaybeTexts(&self.bodies),
            Param::MaybeStrings(&self.specs),
        ]
    }
}

/// The most jobs in a ready batch, which the table's CHECK constraint and enqueue_jobs.sql repeat.
const MAX_READY_BATCH: usize = 64;

/// The ready batches of new jobs: jobs of one queue, type, rank and tenant together.
#[derive(Default)]
struct ReadyBatches<'a> {
    ids: Vec<Uuid>,
    first: Vec<i32>,
    last: Vec<i32>,
    queues: Vec<&'a str>,
    job_types: Vec<&'a str>,
    ranks: Vec<i16>,
    tenants: Vec<&'a str>,
    rings: Vec<i64>,
}

impl<'a> ReadyBatches<'a> {
    fn of(columns: &Columns<'a>) -> Self {
        let lane = |i: usize| (columns.queues[i], columns.job_types[i], columns.ranks[i], columns.tenants[i]);
        let mut order: Vec<usize> = (0..columns.ids.len()).collect();
        // Most calls have one lane and are in order already. Ids are not if the clock was set back meanwhile.
        if !columns.ids.is_sorted() || (1..order.len()).any(|i| lane(i) != lane(0)) {
            order.sort_unstable_by_key(|i| (lane(*i), columns.ids[*i]));
        }
        let mut batches = Self { ids: order.iter().map(|i| columns.ids[*i]).collect(), ..Self::default() };
        let mut position = 0;
        for jobs in
            order.chunk_by(|left, right| lane(*left) == lane(*right)).flat_map(|jobs| jobs.chunks(MAX_READY_BATCH))
        {
            let (queue, job_type, rank, tenant) = lane(jobs[0]);
            batches.first.push(position + 1);
            position += i32::try_from(jobs.len()).unwrap_or(0);
            batches.last.push(position);
            batches.queues.push(queue);
            batches.job_types.push(job_type);
            batches.ranks.push(rank);
            batches.rings.push(match batches.tenants.last() {
                Some(last) if *last == tenant => batches.rings[batches.rings.len() - 1],
                _ => ring_position(&Tenant::trusted(tenant)),
            });
            batches.tenants.push(tenant);
        }
        batches
    }

    fn params(&self) -> [Param<'_>; 8] {
        [
            Param::Uuids(&self.ids),
            Param::Int4s(&self.first),
            Param::Int4s(&self.last),
            Param::Texts(&self.queues),
            Param::Texts(&self.job_types),
            Param::Int2s(&self.ranks),
            Param::Texts(&self.tenants),
            Param::Int8s(&self.rings),
        ]
    }
}

// The options of a job that differ from the defaults, as enqueue_jobs.sql names them. `None` for a plain job.
fn spec(job: &NewJob, links: Links) -> Option<String> {
    let mut spec = Map::new();
    let mut put = |key: &str, value: Value| {
        spec.insert(key.into(), value);
    };
    // Times are truncated to microseconds. The server would round them, and could start a job too early.
    match job.start {
        Start::Now => {}
        Start::After(delay) => put("delayMs", json!(millis(delay))),
        Start::At(time) => put("runAt", json!(cut(time))),
    }
    if let Some(time) = job.expires_at {
        put("expiresAt", json!(cut(time)));
    }
    if let Some(timeout) = job.timeout {
        put("timeoutMs", json!(millis(timeout)));
    }
    if job.lease != NewJob::DEFAULT_LEASE {
        put("leaseMs", json!(millis(job.lease)));
    }
    if job.hold || links.held {
        put("hold", json!(true));
    }
    if links.waits_for > 0 {
        put("waitsFor", json!(links.waits_for));
    }
    if links.has_parents {
        put("hasParents", json!(true));
    }
    if links.has_dependents {
        put("hasDependents", json!(true));
    }
    if let Some(key) = &job.concurrency_key {
        put("concurrencyKey", json!(key));
    }
    if let Some(key) = &job.rate_limit_key {
        put("rateLimitKey", json!(key));
    }
    if let Some(key) = &job.idempotency_key {
        put("key", json!(key));
        put("fingerprint", json!(Uuid::from_u128(Fingerprint::of(job).0)));
    }
    if let Some(options) = JobOptions::of(job) {
        put("options", json!(options));
    }
    (!spec.is_empty()).then(|| Value::Object(spec).to_string())
}

/// A duration in whole milliseconds, capped at a thousand years so that the database can add it to any time.
pub(crate) fn millis(duration: std::time::Duration) -> i64 {
    const THOUSAND_YEARS: i64 = 1_000 * 365 * 24 * 3_600 * 1_000;
    i64::try_from(duration.as_millis()).map_or(THOUSAND_YEARS, |millis| millis.min(THOUSAND_YEARS))
}
