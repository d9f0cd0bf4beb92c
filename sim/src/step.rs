//! What can be done to a store, as plain data.
//!
//! A step names jobs and leases by how long ago they appeared, never by id: any part of a sequence is a sequence again,
//! and it means the same on every store.

use std::{fmt, time::Duration};

use orchestrix_core::{JobState, OnDependencyFailure, Overlap};
use orchestrix_store::{Directive, LogLevel};

pub use crate::schedule::{Series, Turns};

/// One call of a store, or one move of the clock.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Records one job.
    Enqueue(Request),
    /// Records all or none.
    EnqueueMany(Vec<Request>),
    /// Lets a held job go.
    ReleaseHold(Which),
    /// Cancels a job or asks its owner to stop.
    Cancel(Which),
    /// Leases jobs; `None` for any queue or type.
    Claim {
        /// Who asks.
        worker: &'static str,
        /// From where.
        queues: Option<Vec<&'static str>>,
        /// Of which types.
        types: Option<Vec<&'static str>>,
        /// How many at most.
        limit: usize,
    },
    /// Extends leases.
    Heartbeat(Vec<Token>),
    /// Ends attempts.
    OutcomeReport(Vec<(Token, Ending)>),
    /// Says how far an attempt has come.
    Progress(Token, Option<f64>, Option<&'static str>),
    /// Leaves something for the next attempt.
    Checkpoint(Token, &'static str),
    /// Writes lines to a job's log, some with a time of their own.
    AppendLogs(Token, Vec<(LogLevel, Option<Time>, &'static str)>),
    /// Makes a worker known: what it serves, its slots, which start of it this is, how long it may be silent.
    RegisterWorker(&'static str, Option<Vec<&'static str>>, u32, Option<&'static str>, Option<Duration>),
    /// Shows that it lives, how many slots it has free, and whether it drains.
    HeartbeatWorker(&'static str, Option<u32>, bool),
    /// Says what it should do.
    DirectWorker(&'static str, Directive),
    /// Forgets it.
    RemoveWorker(&'static str),
    /// Gives a job another chance.
    Retry(Which),
    /// Gives many one, up to a limit.
    RetryMany(Filter, usize),
    /// Changes how urgent a job is.
    Reprioritize(Which, i64),
    /// Stops claims from a queue.
    Pause(&'static str),
    /// Lets them go on.
    Resume(&'static str),
    /// Makes due jobs claimable.
    Promote(usize),
    /// Tells dependents that nobody told yet.
    Unblock(usize),
    /// Cancels what came too late.
    Expire(usize),
    /// Takes leases back; so many losses in a row kill.
    Reap(usize, u16),
    /// Ends attempts over their time.
    TimeOut(usize),
    /// Forgets workers that were silent for so long.
    ForgetWorkers(Duration, usize),
    /// Lets every retention pass, and forgets all that is finished.
    Prune,
    /// Prunes with nothing to be forgotten, ever.
    KeepForever(usize),
    /// Reads one job.
    Get(Which),
    /// Reads one job in short.
    Summary(Which),
    /// Reads jobs that match, in pages of this size.
    List(Filter, usize),
    /// Reads a job's log from after a number, in pages of this size.
    Logs(Which, Option<i64>, usize),
    /// Counts what queues hold.
    Depths,
    /// Names the queues that are paused.
    PausedQueues,
    /// Names the lanes that hold claimable jobs, so many at most.
    Lanes(usize),
    /// Reads workers in pages of this size.
    Workers(usize),
    /// Stands for leadership for so long; as whoever last led, if told to say so.
    Campaign(&'static str, Duration, bool),
    /// Ends a node's term, if it is its own.
    Resign(&'static str),
    /// Makes due jobs claimable in the name of the latest leader, or of one so many epochs away.
    PromoteAs(i64, usize),
    /// Shows that a node lives.
    HeartbeatNode(&'static str),
    /// Forgets a node that stops.
    RemoveNode(&'static str),
    /// Forgets nodes that were silent for so long.
    ForgetNodes(Duration, usize),
    /// Reads who leads, and nodes.
    Nodes,
    /// Reads what is next.
    SweepTimes,
    /// Sets a schedule up, or changes it.
    PutSchedule(Series),
    /// Forgets a schedule.
    DeleteSchedule(&'static str),
    /// Stops a schedule, perhaps with a note.
    PauseSchedule(&'static str, Option<&'static str>),
    /// Lets a schedule go on.
    ResumeSchedule(&'static str),
    /// Creates a job of a schedule now.
    TriggerSchedule(&'static str),
    /// Fills a range of a schedule, perhaps with a rule of its own about overlaps.
    BackfillSchedule(&'static str, Time, Time, Option<Overlap>),
    /// Fires schedules that are due.
    Fire(usize),
    /// Fires them in the name of the latest leader, or of one so many epochs away.
    FireAs(i64, usize),
    /// Reads one schedule.
    Schedule(&'static str),
    /// Reads schedules in pages of this size.
    Schedules(usize),
    /// Reads a schedule's ledger in pages of this size.
    Occurrences(&'static str, usize),
    /// Moves every clock.
    Advance(Duration),
}

/// A job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// So many before the newest, counted round and round.
    Back(usize),
    /// One that nobody recorded.
    Unknown(u8),
}

/// A lease: so many before the newest, counted round and round, and perhaps forged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// How many leases ago it was given.
    pub back: usize,
    /// What is wrong with it.
    pub forged: Option<Forged>,
}

/// The part of a token that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forged {
    /// Another secret.
    Secret,
    /// The counter of the lease to come.
    Counter,
    /// The id of a job that nobody recorded.
    Job,
}

/// A time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// So long after the start of the run.
    After(Duration),
    /// The first that there is.
    First,
    /// The last that there is.
    Last,
}

/// A worker's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Done, with this result.
    Complete(Option<&'static str>),
    /// Failed, perhaps for good, perhaps with a wait of its own.
    Fail(&'static str, bool, Option<Duration>),
    /// Wants it again later.
    Snooze(Duration),
    /// Handed back.
    Release,
    /// Stopped.
    Cancelled,
    /// Stopped for being over its time.
    TimedOut,
}

/// A job to record.
#[derive(Clone, PartialEq)]
pub struct Request {
    /// What kind of work.
    pub job_type: &'static str,
    /// Where it waits.
    pub queue: &'static str,
    /// Whose it is.
    pub tenant: &'static str,
    /// How urgent it is.
    pub priority: i64,
    /// What the worker is handed.
    pub payload: Payload,
    /// The client's name for the request.
    pub key: Option<&'static str>,
    /// When it may start.
    pub start: Start,
    /// How often it may be tried.
    pub max_attempts: u16,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// How long a silent worker keeps it.
    pub lease: Duration,
    /// The first wait between attempts, and the longest.
    pub back_off: (Duration, Duration),
    /// Its name within the call.
    pub reference: Option<&'static str>,
    /// Jobs that it waits for.
    pub parents: Vec<Which>,
    /// Jobs of the same call that it waits for.
    pub inside: Vec<&'static str>,
    /// What to do when one of them failed.
    pub on_failure: OnDependencyFailure,
    /// A word to find it by.
    pub tag: Option<&'static str>,
    /// The caller's id for the larger whole.
    pub correlation: Option<&'static str>,
    /// When it is too late to start.
    pub expires: Option<Time>,
    /// Whether it is held.
    pub hold: bool,
}

impl Request {
    /// A request with every default.
    pub fn new(job_type: &'static str) -> Self {
        Self {
            job_type,
            queue: "a",
            tenant: "default",
            priority: 0,
            payload: Payload::Json("null"),
            key: None,
            start: Start::Now,
            max_attempts: 2,
            timeout: None,
            lease: Duration::from_secs(5),
            back_off: (Duration::from_secs(1), Duration::from_secs(5)),
            reference: None,
            parents: Vec::new(),
            inside: Vec::new(),
            on_failure: OnDependencyFailure::Cancel,
            tag: None,
            correlation: None,
            expires: None,
            hold: false,
        }
    }
}

// Calls `$with` with every field that is not its default.
macro_rules! unusual {
    ($request:expr, $with:expr; $($field:ident),+) => {{
        let usual = Request::new($request.job_type);
        $(if $request.$field != usual.$field {
            $with(stringify!($field), &$request.$field, &|plainer: &mut Request| plainer.$field = usual.$field.clone());
        })+
    }};
    ($request:expr, $with:expr) => {
        unusual!($request, $with; queue, tenant, priority, payload, key, start, max_attempts, timeout, lease, back_off,
            reference, parents, inside, on_failure, tag, correlation, expires, hold)
    };
}

impl fmt::Debug for Request {
    /// Shows what is not the default.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Request");
        shown.field("job_type", &self.job_type);
        unusual!(self, |name, value: &dyn fmt::Debug, _: &dyn Fn(&mut Self)| {
            shown.field(name, value);
        });
        shown.finish()
    }
}

impl Request {
    /// The same with one field more at its default, for every field that is not.
    fn plainer(&self) -> Vec<Self> {
        let mut all = Vec::new();
        unusual!(self, |_, _: &dyn fmt::Debug, make_usual: &dyn Fn(&mut Self)| {
            let mut plainer = self.clone();
            make_usual(&mut plainer);
            all.push(plainer);
        });
        all
    }
}

impl Step {
    /// Steps like this one that do a little less, for cutting down what is shown.
    pub fn plainer(&self) -> Vec<Self> {
        match self {
            Self::Enqueue(request) => request.plainer().into_iter().map(Self::Enqueue).collect(),
            Self::EnqueueMany(requests) => {
                let mut all: Vec<Self> = fewer(requests).map(Self::EnqueueMany).collect();
                for (i, request) in requests.iter().enumerate() {
                    for plainer in request.plainer() {
                        let mut requests = requests.clone();
                        requests[i] = plainer;
                        all.push(Self::EnqueueMany(requests));
                    }
                }
                all
            }
            Self::OutcomeReport(items) => fewer(items).map(Self::OutcomeReport).collect(),
            Self::Heartbeat(tokens) => fewer(tokens).map(Self::Heartbeat).collect(),
            Self::AppendLogs(token, lines) => fewer(lines).map(|lines| Self::AppendLogs(*token, lines)).collect(),
            _ => Vec::new(),
        }
    }
}

/// The list without one of its items, for each.
fn fewer<T: Clone>(items: &[T]) -> impl Iterator<Item = Vec<T>> {
    (0..items.len()).map(|left_out| [&items[..left_out], &items[left_out + 1..]].concat())
}

/// What a worker is handed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// This JSON.
    Json(&'static str),
    /// So much of it that stores may keep it elsewhere.
    Long,
}

/// When a job may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At once.
    Now,
    /// So long from when it is recorded.
    After(Duration),
    /// At a time.
    At(Time),
}

/// Which jobs; every part that is set must match.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// In any of these states.
    pub states: Vec<JobState>,
    /// In this queue.
    pub queue: Option<&'static str>,
    /// Of this type.
    pub job_type: Option<&'static str>,
    /// Of this tenant.
    pub tenant: Option<&'static str>,
    /// With this tag.
    pub tag: Option<&'static str>,
    /// With this text somewhere.
    pub text: Option<&'static str>,
    /// Recorded from then on.
    pub from: Option<Time>,
    /// Recorded before then.
    pub to: Option<Time>,
}
