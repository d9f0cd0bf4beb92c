//! New jobs as the columns of one statement.

use std::collections::HashMap;

use orchestrix_core::{Fingerprint, JobId, JobState, NewJob, Start};
use orchestrix_store::{JobOptions, Result, clock::cut};
use serde_json::{Map, Value, json};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    database::Database,
    row::state,
    runner::{Param, Runner},
    statement::{RECORD, RECORD_PLAIN},
};

/// What the row of a new job says about dependencies.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Links {
    /// Parents that have not finished.
    pub(crate) waits_for: usize,
    /// Whether it has parents at all.
    pub(crate) has_parents: bool,
    /// Whether jobs of the same call wait for it.
    pub(crate) has_dependents: bool,
    /// A parent failed already and the job is to be held.
    pub(crate) held: bool,
}

/// Jobs to be recorded, column by column.
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
    pub(crate) fn push(&mut self, id: JobId, job: &'a NewJob, links: Links, inline_payload: usize) {
        let payload = job.payload.as_str();
        let apart = payload.len() > inline_payload;
        self.ids.push(id.as_uuid());
        self.queues.push(job.queue.as_str());
        self.job_types.push(job.job_type.as_str());
        self.tenants.push(job.tenant.as_str());
        self.ranks.push(-job.priority.get());
        self.max_attempts.push(i16::try_from(job.max_attempts).unwrap_or(i16::MAX));
        self.payloads.push((!apart).then_some(payload));
        self.bodies.push(apart.then_some(payload));
        self.specs.push(spec(job, links));
    }

    /// Records them as a transaction of their own, and gives the states of those that were. The inner error is the
    /// server's.
    pub(crate) async fn record(
        &self,
        database: &Database,
    ) -> Result<Result<HashMap<Uuid, JobState>, tokio_postgres::Error>> {
        let answer = match self.is_plain() {
            true => database.try_query(&RECORD_PLAIN, &Param::all(&self.params()[..7])).await?,
            false => database.try_query(&RECORD, &Param::all(&self.params())).await?,
        };
        answer.map(|rows| self.states(&rows)).map_or_else(|error| Ok(Err(error)), |states| states.map(Ok))
    }

    /// The same within a transaction.
    pub(crate) async fn record_in(&self, runner: &mut dyn Runner) -> Result<HashMap<Uuid, JobState>> {
        let rows = runner.run(&RECORD, &self.params()).await?;
        rows.iter().map(|row| Ok((row.get(0)?, state(&row.get::<String>(1)?)?))).collect()
    }

    fn is_plain(&self) -> bool {
        self.specs.iter().all(Option::is_none) && self.bodies.iter().all(Option::is_none)
    }

    // A plain job is pending as soon as it is recorded, and nothing leaves it out.
    fn states(&self, rows: &[Row]) -> Result<HashMap<Uuid, JobState>> {
        match self.is_plain() {
            true => Ok(self.ids.iter().map(|id| (*id, JobState::Pending)).collect()),
            false => rows.iter().map(|row| Ok((row.get(0), state(row.get(1))?))).collect(),
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

// Whatever is not the default, in the words of record.sql; nothing for a plain job.
fn spec(job: &NewJob, links: Links) -> Option<String> {
    let mut spec = Map::new();
    let mut put = |key: &str, value: Value| {
        spec.insert(key.into(), value);
    };
    // The server would round to the microsecond, and so start a job before the time it was given: times are cut.
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

/// Whole milliseconds, for the database's arithmetic: whoever says "for ever" gets as much as it can take from a time.
pub(crate) fn millis(duration: std::time::Duration) -> i64 {
    const THOUSAND_YEARS: i64 = 1_000 * 365 * 24 * 3_600 * 1_000;
    i64::try_from(duration.as_millis()).map_or(THOUSAND_YEARS, |millis| millis.min(THOUSAND_YEARS))
}
