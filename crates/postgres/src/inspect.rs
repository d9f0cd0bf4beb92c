//! Reading jobs, logs and depths.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use orchestrix_core::{Job, JobId, JobState, JobType, Queue, Timestamp};
use orchestrix_store::{
    JobFilter, JobSummary, LogEntry, Page, PageRequest, QueueDepth, Result, StoreError,
    housekeeping::check_limit,
    inspect::{MAX_LANES, MAX_SCAN},
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    PostgresStore,
    database::Params,
    row::{self, corrupt, count, state, sweep_limit},
    statement::{
        DEPTH, DEPTHS, FOLD, GET, LANES, LIST, LIST_LEASED, LIST_WAITING, LOGS, OLDEST, OPEN_STATES, OPEN_SUMMARIES,
        STATES, SUMMARIES, SUMMARY, Statement, TAILS, TIME,
    },
};

/// The lanes and ranks looked at for the age of queues.
pub(crate) const MAX_HOPS: i64 = 10_000;
/// Changes folded at once, and how often before depths are read.
const FOLD_BATCH: usize = 10_000;
const FOLD_ROUNDS: usize = 20;

/// The server's time.
pub(crate) async fn now(store: &PostgresStore) -> Result<Timestamp> {
    let rows = store.database().query(&TIME, &[]).await?;
    let time = rows.first().ok_or_else(|| StoreError::Backend("the server does not tell the time".into()))?;
    Ok(time.get(0))
}

pub(crate) async fn summaries(store: &PostgresStore, ids: &[JobId]) -> Result<Vec<JobSummary>> {
    let rows = match ids {
        // Of a single id the server looks into one day of history; of a list, into all of them.
        [id] => store.database().query(&SUMMARY, &[&id.as_uuid()]).await?,
        ids => find(store, &OPEN_SUMMARIES, &SUMMARIES, ids).await?,
    };
    rows.iter().map(row::summary).collect()
}

pub(crate) async fn states(store: &PostgresStore, ids: &[JobId]) -> Result<Vec<(JobId, JobState)>> {
    let rows = find(store, &OPEN_STATES, &STATES, ids).await?;
    rows.iter().map(|row| Ok((JobId::from_uuid(row.get(0)), state(row.get(1))?))).collect()
}

// Most jobs that are asked for are unfinished, and to look for each of them in every day of history costs more than all the rest. What is
// not there is looked for everywhere, there once more too: it may have been brought back meanwhile.
async fn find(store: &PostgresStore, open: &Statement, everywhere: &Statement, ids: &[JobId]) -> Result<Vec<Row>> {
    let mut ids: Vec<Uuid> = ids.iter().map(JobId::as_uuid).collect();
    let mut rows = store.database().query(open, &[&ids]).await?;
    if rows.len() < ids.len() {
        let found: HashSet<Uuid> = rows.iter().map(|row| row.get(0)).collect();
        ids.retain(|id| !found.contains(id));
        if !ids.is_empty() {
            rows.extend(store.database().query(everywhere, &[&ids]).await?);
        }
    }
    Ok(rows)
}

pub(crate) async fn get(store: &PostgresStore, id: JobId) -> Result<Option<Job>> {
    let rows = store.database().query(&GET, &[&id.as_uuid()]).await?;
    rows.first().map(row::job).transpose()
}

pub(crate) async fn list(
    store: &PostgresStore,
    filter: &JobFilter,
    page: &PageRequest<JobId>,
) -> Result<Page<JobSummary, JobId>> {
    page.validate()?;
    // No text in the database holds a NUL, and the server refuses to be asked about one.
    if filter.text.as_ref().is_some_and(|text| text.contains('\0')) {
        return Ok(Page { items: Vec::new(), next: None });
    }
    let span = filter.id_range(page.cursor);
    let (before, start) = (span.end.as_uuid(), span.start.as_uuid());
    let waits = only_wait(&filter.states);
    // Where every row that is looked at is one that is asked for, there is no need to look at more.
    let all = JobFilter { states: if waits { filter.states.clone() } else { Vec::new() }, ..JobFilter::default() };
    let scan = if *filter == all { page.limit + 1 } else { MAX_SCAN } as i64;
    let states: Option<Vec<&str>> =
        (!filter.states.is_empty()).then(|| filter.states.iter().map(|state| state.as_str()).collect());
    let queue = filter.queue.as_ref().map(AsRef::<str>::as_ref);
    let job_type = filter.job_type.as_ref().map(AsRef::<str>::as_ref);
    let tenant = filter.tenant.as_ref().map(AsRef::<str>::as_ref);
    let tag = filter.tag.as_ref().map(AsRef::<str>::as_ref);
    let (from, to) = (filter.from.map(bound), filter.to.map(bound));
    let (places, give) = (places(&filter.states), page.limit as i64 + 1);
    let rows = if is_leased(&filter.states) {
        let params: Params<'_> =
            &[&before, &states, &queue, &job_type, &tenant, &tag, &filter.text, &from, &to, &give, &start];
        store.database().query(&LIST_LEASED, params).await?
    } else if waits {
        let params: Params<'_> =
            &[&before, &scan, &states, &queue, &job_type, &tenant, &tag, &filter.text, &from, &to, &give, &start];
        store.database().query(&LIST_WAITING, params).await?
    } else {
        let params: Params<'_> = &[
            &before,
            &scan,
            &states,
            &queue,
            &job_type,
            &tenant,
            &tag,
            &filter.text,
            &from,
            &to,
            &give,
            &places,
            &start,
        ];
        store.database().query(&LIST, params).await?
    };
    let mut items = Vec::new();
    let mut ends: Vec<JobId> = Vec::new();
    for row in &rows {
        match row.get::<_, Option<Uuid>>(18) {
            Some(id) => ends.push(JobId::from_uuid(id)),
            None => items.push(row::summary(row)?),
        }
    }
    ends.sort_unstable();
    let next = if items.len() > page.limit {
        items.truncate(page.limit);
        items.last().map(|job| job.id)
    } else {
        match ends[..] {
            // Neither may be one of those that were asked for.
            [next, last] => Some(last.cursor_above(next)),
            _ => None,
        }
    };
    Ok(Page { items, next })
}

// A bound on times of whole microseconds that the server can hold: it knows nothing before 4713 BC, and nothing finer.
pub(crate) fn bound(time: Timestamp) -> Timestamp {
    let micros = time.as_nanosecond().div_euclid(1_000) + i128::from(time.as_nanosecond().rem_euclid(1_000) > 0);
    let micros = i64::try_from(micros).unwrap_or(i64::MAX);
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX).max(Timestamp::UNIX_EPOCH)
}

// Whether only jobs that somebody owns are in these states.
fn is_leased(states: &[JobState]) -> bool {
    !states.is_empty() && states.iter().all(|state| matches!(state, JobState::Dispatched | JobState::Running))
}

// Whether only jobs that wait for something besides their turn are in these states.
fn only_wait(states: &[JobState]) -> bool {
    use JobState::{Blocked, Created, Retrying, Scheduled};
    !states.is_empty() && states.iter().all(|state| matches!(state, Created | Blocked | Scheduled | Retrying))
}

// The tables that hold jobs of these states; a list of dead jobs must not look through millions of completed ones.
fn places(states: &[JobState]) -> Vec<&'static str> {
    let place = |state: &JobState| match state {
        JobState::Dead => "dead",
        JobState::Completed | JobState::Cancelled => "history",
        _ => "job",
    };
    let mut places: Vec<&str> = match states {
        [] => JobState::ALL.iter().map(place).collect(),
        some => some.iter().map(place).collect(),
    };
    places.sort_unstable();
    places.dedup();
    places
}

pub(crate) async fn logs(store: &PostgresStore, id: JobId, page: &PageRequest<i64>) -> Result<Page<LogEntry, i64>> {
    page.validate()?;
    let after = page.cursor.unwrap_or(0);
    let rows = store.database().query(&LOGS, &[&id.as_uuid(), &after, &(page.limit as i64 + 1)]).await?;
    if summaries(store, &[id]).await?.is_empty() {
        return Err(StoreError::JobNotFound(id));
    }
    let items = rows.iter().take(page.limit).map(line).collect::<Result<Vec<LogEntry>>>()?;
    let next = (rows.len() > page.limit).then(|| items.last().map(|line| line.seq)).flatten();
    Ok(Page { items, next })
}

pub(crate) async fn tails(
    store: &PostgresStore,
    places: &[(JobId, i64)],
    limit: usize,
) -> Result<Vec<((JobId, i64), LogEntry)>> {
    check_limit(limit, PageRequest::<i64>::MAX_LIMIT)?;
    let (ids, after): (Vec<Uuid>, Vec<i64>) = places.iter().map(|(id, after)| (id.as_uuid(), *after)).unzip();
    let rows = store.database().query(&TAILS, &[&ids, &after, &(limit as i64)]).await?;
    rows.iter().map(|row| Ok(((JobId::from_uuid(row.get(5)), row.get(6)), line(row)?))).collect()
}

fn line(row: &Row) -> Result<LogEntry> {
    Ok(LogEntry {
        seq: row.get(0),
        at: row.get(1),
        level: row.get::<_, &str>(2).parse().map_err(|error| corrupt("level", error))?,
        attempt: count(row.get(3)),
        message: row.get(4),
    })
}

/// Folds changes of depth; answers how many.
pub(crate) async fn fold(store: &PostgresStore, limit: usize) -> Result<usize> {
    let rows = store.database().query(&FOLD, &[&sweep_limit(limit)?]).await?;
    Ok(rows.first().map_or(0, |row| usize::try_from(row.get::<_, i64>(0)).unwrap_or(0)))
}

pub(crate) async fn depths(store: &PostgresStore, page: &PageRequest<Queue>) -> Result<Page<QueueDepth, Queue>> {
    page.validate()?;
    for _ in 0..FOLD_ROUNDS {
        if fold(store, FOLD_BATCH).await? < FOLD_BATCH {
            break;
        }
    }
    let after = page.cursor.as_ref().map_or("", Queue::as_str);
    let rows = store.database().query(&DEPTHS, &[&after, &(page.limit as i64 + 1)]).await?;
    let mut counted = Counted::read(&rows)?;
    let next = counted.cut(page.limit);
    if let Some([first, last]) = counted.ends() {
        counted.age(&store.database().query(&OLDEST, &[&first, &last, &MAX_HOPS]).await?);
    }
    Ok(Page { items: counted.queues(), next })
}

pub(crate) async fn depth(store: &PostgresStore, queue: &Queue) -> Result<Option<QueueDepth>> {
    let mut counted = Counted::read(&store.database().query(&DEPTH, &[&queue.as_str()]).await?)?;
    if let Some([first, last]) = counted.ends() {
        counted.age(&store.database().query(&OLDEST, &[&first, &last, &MAX_HOPS]).await?);
    }
    Ok(counted.queues().pop())
}

/// Queues that may hold something, by name, as they were counted.
pub(crate) struct Counted(BTreeMap<Queue, QueueDepth>);

impl Counted {
    /// Reads what `depths.sql` and `depth.sql` select.
    pub(crate) fn read(rows: &[Row]) -> Result<Self> {
        let mut queues: BTreeMap<Queue, QueueDepth> = BTreeMap::new();
        for row in rows {
            let queue = Queue::trusted(row.get(0));
            let depth = queues.entry(queue.clone()).or_insert_with(|| QueueDepth {
                queue,
                paused: false,
                counts: BTreeMap::<JobState, u64>::new(),
                oldest: None,
            });
            depth.paused |= row.get::<_, bool>(3);
            if let Some(text) = row.get::<_, Option<&str>>(1) {
                depth.counts.insert(state(text)?, u64::try_from(row.get::<_, i64>(2)).unwrap_or(0));
            }
        }
        Ok(Self(queues))
    }

    /// Leaves the first `limit` of them; the last of those if there were more.
    fn cut(&mut self, limit: usize) -> Option<Queue> {
        let beyond = self.0.keys().nth(limit)?.clone();
        self.0.split_off(&beyond);
        self.0.keys().next_back().cloned()
    }

    /// The first and the last of them.
    pub(crate) fn ends(&self) -> Option<[String; 2]> {
        let (first, last) = (self.0.keys().next()?, self.0.keys().next_back()?);
        Some([first.to_string(), last.to_string()])
    }

    /// Takes in what `oldest.sql` selects.
    pub(crate) fn age(&mut self, rows: &[Row]) {
        for row in rows {
            if let Some(depth) = self.0.get_mut(row.get::<_, &str>(0)) {
                depth.oldest = Some(Duration::from_secs_f64(row.get::<_, f64>(1).max(0.0) / 1000.0));
            }
        }
    }

    /// Those that hold something, or are paused.
    pub(crate) fn queues(self) -> Vec<QueueDepth> {
        self.0.into_values().filter(|depth| depth.paused || !depth.counts.is_empty()).collect()
    }
}

pub(crate) async fn lanes(store: &PostgresStore, limit: usize) -> Result<Vec<(Queue, JobType)>> {
    check_limit(limit, MAX_LANES)?;
    // With no lane known there is one gap, and the hops through it come in order.
    let none: &[&str] = &[];
    let rows = store.database().query(&LANES, &[&none, &none, &(limit as i64)]).await?;
    Ok(rows.iter().map(lane).collect())
}

/// A row of the lanes.
pub(crate) fn lane(row: &Row) -> (Queue, JobType) {
    (Queue::trusted(row.get(0)), JobType::trusted(row.get(1)))
}
