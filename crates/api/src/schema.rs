//! OpenAPI schemas shared by many fields: names, times and enumerations.
//!
//! Limits and values come from the types in `orchestrix_core` and `orchestrix_store` that enforce them.

use std::borrow::Cow;

use crate::admin::key;
use orchestrix_core::{
    IdempotencyKey, JobType, KeyId, LimitKey, NewJob, OnDependencyFailure, Queue, Resources, Role, Weight, WorkerName,
    schedule::{Cron, Misfire, NewSchedule, Overlap, Reason, ScheduleName},
};
use orchestrix_store::{Directive, LogLine, NewAuditEntry, NewKey, ProgressUpdate};
use serde_json::Value;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr, Schema,
        schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type},
    },
};

const PLAIN: &str = "^[A-Za-z0-9_.-]+$";
const WITH_COLON: &str = "^[A-Za-z0-9_.:-]+$";
// Excludes white space, control characters and invisible formatting characters.
const VISIBLE: &str = r"^[^\s\u0000-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]+$";
const ONE_LINE: &str = r"^[^\u0000-\u001f\u007f-\u009f]+$";
const NO_NUL: &str = r"^[^\u0000]*$";
const UUID: &str = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}";

macro_rules! schemas {
    ($($(#[doc = $doc:literal])+ $name:ident = $schema:expr;)+) => {
        $(
            $(#[doc = $doc])+
            #[derive(Debug)]
            pub struct $name;

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    let text = [$($doc),+].map(str::trim).join(" ");
                    let schema: ObjectBuilder = $schema;
                    schema.description(Some(text)).into()
                }
            }

            impl ToSchema for $name {
                fn name() -> Cow<'static, str> {
                    stringify!($name).into()
                }
            }
        )+
    };
}

schemas! {
    /// A name: letters, digits, `_`, `.` and `-`.
    Name = text(1, Queue::MAX, PLAIN);
    /// A job type or tag: letters, digits, `_`, `.`, `-` and `:`.
    TypeName = text(1, JobType::MAX, WITH_COLON);
    /// An idempotency key: visible characters.
    IdempotencyKeyText = text(1, IdempotencyKey::MAX, VISIBLE);
    /// The name of a worker: visible characters.
    WorkerId = text(1, WorkerName::MAX, VISIBLE);
    /// The name of a schedule.
    ScheduleId = text(1, ScheduleName::MAX, PLAIN);
    /// A single line of at most 255 bytes.
    SingleLine = text(1, 255, ONE_LINE);
    /// A note for people.
    Note = text(0, NewSchedule::MAX_NOTE, NO_NUL);
    /// A progress message of at most 1024 bytes.
    ProgressMessage = text(0, ProgressUpdate::MAX_MESSAGE, NO_NUL);
    /// A log message of at most 16384 bytes.
    LogMessage = text(0, LogLine::MAX_MESSAGE, NO_NUL);
    /// A cron expression of five fields, of six with seconds first, or a name such as `@daily`.
    CronExpression = text(1, Cron::MAX, "").format(Some(SchemaFormat::Custom("cron".into())));
    /// An IANA time zone.
    TimeZone = text(1, 255, "^[A-Za-z0-9_+/-]+$").format(Some(SchemaFormat::Custom("time-zone".into())));
    /// A dependency: a job id, or `ref:NAME` of a job in the same batch.
    Dependency = string().pattern(Some(format!("^({UUID}|ref:.+)$")));
    /// The name of a queue, or `*` for all queues.
    QueueOrAll = text(1, Queue::MAX, r"^([A-Za-z0-9_.-]+|\*)$");
    /// The name of an API key.
    KeyName = text(1, NewKey::MAX_NAME, ONE_LINE);
    /// The id of an API key.
    KeyIdText = text(KeyId::LENGTH, KeyId::LENGTH, "^[a-z0-9]+$");
    /// The role of an API key. `client`: jobs, and reading schedules. `worker`: the worker API.
    /// `operator`: everything except keys. `admin`: everything.
    KeyRole = one_of(Role::ALL.iter().map(|role| role.as_str()));
    /// A UUID.
    Id = string().format(Some(SchemaFormat::Custom("uuid".into())));
    /// A lease token: the opaque proof that a worker owns a job.
    Token = string();
    /// A time in RFC 3339 format.
    Time = time();
    /// A time in RFC 3339 format, from the year 2000 to 2199.
    TimeNearNow = time().pattern(Some("^2[01][0-9]{2}-"));
    /// Amounts of resources by name.
    ResourceAmounts = amounts();
    /// A number of seconds of at most ten years. Fractions are allowed.
    Delay = number(0.0, NewJob::MAX_DELAY.as_secs_f64());
    /// A number of seconds from 0.001 to ten years. Fractions are allowed.
    Lifetime = number(key::LIFETIME.start().as_secs_f64(), key::LIFETIME.end().as_secs_f64());
    /// The weight of a tenant.
    TenantWeight = integer(1, Weight::MAX.unsigned_abs());
    /// A number of job slots.
    Slots = integer(0, u64::from(u32::MAX));
    /// What happens to a job when a dependency fails.
    DependencyFailure = one_of(FAILURES.map(|policy| serde_json::to_value(policy).unwrap_or_default()));
    /// What happens when an occurrence is due while jobs of earlier occurrences are unfinished.
    OverlapPolicy = one_of(Overlap::ALL.iter().map(|policy| policy.as_str()));
    /// What happens to occurrences that did not fire in time.
    MisfirePolicy = one_of(Misfire::ALL.iter().map(|policy| policy.as_str()));
    /// The outcome of an occurrence.
    OccurrenceOutcome = one_of(orchestrix_core::schedule::OccurrenceOutcome::ALL.iter().map(|outcome| outcome.as_str()));
    /// The reason for the outcome of an occurrence. Absent if it fired on time.
    OccurrenceReason = one_of(Reason::ALL.iter().map(|reason| reason.as_str()));
    /// The state of a job. `created`: held until released. `blocked`: waiting for dependencies.
    /// `scheduled`: waiting for its start time. `pending`: claimable. `dispatched`: leased, not started.
    /// `running`: leased and started. `retrying`: waiting for its backoff to pass. `completed`: succeeded.
    /// `dead`: failed permanently. `cancelled`: cancelled.
    JobState = one_of(orchestrix_core::JobState::ALL.iter().map(|state| state.as_str()));
    /// The status of a job. `PENDING`: not running yet. `RUNNING`: a worker runs it. `COMPLETED`: succeeded.
    /// `FAILED`: failed permanently. `CANCELLED`: cancelled.
    JobStatus = one_of(STATUSES.map(|status| status.as_str()));
    /// Job states, separated by commas.
    JobStates = string().pattern(Some(states()));
    /// The severity of a log line.
    LogLevel = one_of(orchestrix_store::LogLevel::ALL.iter().map(|level| level.as_str()));
    /// The action of a bulk operation.
    BulkActionName = one_of(["retry", "cancel", "priority"]);
    /// The actor, action or target of an audit entry.
    AuditText = text(1, NewAuditEntry::MAX_TEXT, ONE_LINE);
    /// A directive to a worker. `run`: claim jobs. `drain`: claim no jobs and exit when the running jobs are done.
    /// `stop`: stop now.
    WorkerDirective = one_of([Directive::Run, Directive::Drain, Directive::Stop].map(Directive::as_str));
}

const STATUSES: [orchestrix_core::JobStatus; 5] = {
    use orchestrix_core::JobStatus::{Cancelled, Completed, Failed, Pending, Running};
    [Pending, Running, Completed, Failed, Cancelled]
};

const FAILURES: [OnDependencyFailure; 3] =
    [OnDependencyFailure::Cancel, OnDependencyFailure::Run, OnDependencyFailure::Hold];

fn states() -> String {
    let names: Vec<&str> = orchestrix_core::JobState::ALL.iter().map(|state| state.as_str()).collect();
    let state = format!("({})", names.join("|"));
    format!("^{state}(,{state})*$")
}

fn string() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn text(min_length: usize, max_length: usize, pattern: &str) -> ObjectBuilder {
    let schema = string().min_length((min_length > 0).then_some(min_length)).max_length(Some(max_length));
    schema.pattern((!pattern.is_empty()).then_some(pattern))
}

fn time() -> ObjectBuilder {
    string().format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
}

fn number(min: f64, max: f64) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Number).minimum(Some(min)).maximum(Some(max))
}

fn integer(min: u64, max: u64) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(min)).maximum(Some(max))
}

fn one_of<T: Into<Value>>(values: impl IntoIterator<Item = T>) -> ObjectBuilder {
    string().enum_values(Some(values.into_iter().map(Into::into)))
}

fn amounts() -> ObjectBuilder {
    let object = ObjectBuilder::new().schema_type(Type::Object).max_properties(Some(Resources::MAX_KINDS));
    let names: Schema = text(1, LimitKey::MAX, PLAIN).into();
    object.property_names(Some(names)).additional_properties(Some(Schema::from(number(0.0, 1e9))))
}
