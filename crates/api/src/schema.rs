//! Schemas that many fields share: names, times, words. Their limits are those of the types that keep the rules.

use std::borrow::Cow;

use crate::admin::key;
use orchestrix_core::{
    IdempotencyKey, JobState, JobType, KeyId, LimitKey, NewJob, OnDependencyFailure, Queue, Resources, Role,
    WorkerName,
    schedule::{Cron, Misfire, NewSchedule, Overlap, Reason, ScheduleName},
};
use orchestrix_store::{Directive, LogLevel, LogLine, NewAuditEntry, NewKey, ProgressUpdate};
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
// No white space, no control characters, and none of the marks that cannot be seen.
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
    /// A name that may have colons: of a job's type, or a tag.
    TypeName = text(1, JobType::MAX, WITH_COLON);
    /// Makes a repeat of the same request the same job: visible characters.
    Key = text(1, IdempotencyKey::MAX, VISIBLE);
    /// What a worker calls itself: visible characters.
    WorkerId = text(1, WorkerName::MAX, VISIBLE);
    /// What a schedule is called.
    ScheduleId = text(1, ScheduleName::MAX, PLAIN);
    /// A text of one line, of at most 255 bytes.
    Line = text(1, 255, ONE_LINE);
    /// A remark for people.
    Note = text(0, NewSchedule::MAX_NOTE, NO_NUL);
    /// How far a job has come, in words; at most 1024 bytes.
    Message = text(0, ProgressUpdate::MAX_MESSAGE, NO_NUL);
    /// What a line of a log says; at most 16384 bytes.
    LogText = text(0, LogLine::MAX_MESSAGE, NO_NUL);
    /// An expression of five fields, of six with seconds first, or a name such as `@daily`.
    CronText = text(1, Cron::MAX, "").format(Some(SchemaFormat::Custom("cron".into())));
    /// An IANA time zone.
    Zone = text(1, 255, "^[A-Za-z0-9_+/-]+$").format(Some(SchemaFormat::Custom("time-zone".into())));
    /// A job to wait for: its id, or `ref:NAME` of one in the same batch.
    Parent = string().pattern(Some(format!("^({UUID}|ref:.+)$")));
    /// One queue, or `*` for all of them.
    QueueOrAll = text(1, Queue::MAX, r"^([A-Za-z0-9_.-]+|\*)$");
    /// What people call an API key.
    KeyName = text(1, NewKey::MAX_NAME, ONE_LINE);
    /// The id of an API key.
    KeyText = text(KeyId::LENGTH, KeyId::LENGTH, "^[a-z0-9]+$");
    /// What an API key allows: jobs and reading schedules; working; all but keys; everything.
    KeyRole = words(Role::ALL.iter().map(|it| it.as_str()));
    /// A job's id.
    Id = string().format(Some(SchemaFormat::Custom("uuid".into())));
    /// Proof that a worker owns a job. What is in it is nobody's business but the server's.
    Token = string();
    /// A time, RFC 3339.
    Time = time();
    /// A time from the year 2000 on and before 2200, RFC 3339.
    TimeNearNow = time().pattern(Some("^2[01][0-9]{2}-"));
    /// What a job needs of its worker, by name.
    Amounts = amounts();
    /// Seconds, fractions allowed; ten years at most.
    Delay = number(0.0, NewJob::MAX_DELAY.as_secs_f64());
    /// Seconds, fractions allowed; from a millisecond to ten years.
    Lifetime = number(key::LIFETIME.start().as_secs_f64(), key::LIFETIME.end().as_secs_f64());
    /// A number of jobs.
    Slots = integer(0, u64::from(u32::MAX));
    /// What becomes of a job when one that it waits for failed.
    DependencyFailure = words(FAILURES.map(|it| serde_json::to_value(it).unwrap_or_default()));
    /// What happens when an occurrence is due while jobs of earlier ones are unfinished.
    OverlapPolicy = words(Overlap::ALL.iter().map(|it| it.as_str()));
    /// What happens to occurrences that nobody fired in time.
    MisfirePolicy = words(Misfire::ALL.iter().map(|it| it.as_str()));
    /// What became of an occurrence.
    OccurrenceOutcome = words(orchestrix_core::schedule::OccurrenceOutcome::ALL.iter().map(|it| it.as_str()));
    /// Why; one that fired on time has no reason.
    OccurrenceReason = words(Reason::ALL.iter().map(|it| it.as_str()));
    /// States of jobs, separated by commas.
    States = string().pattern(Some(states()));
    /// How serious a line is.
    Level = words(LogLevel::ALL.iter().map(|it| it.as_str()));
    /// What an operation does to jobs.
    ActionWord = words(["retry", "cancel", "priority"]);
    /// Who, what or to what, as it stands in the audit.
    AuditText = text(1, NewAuditEntry::MAX_TEXT, ONE_LINE);
    /// What a worker should do.
    WorkerDirective = words([Directive::Run, Directive::Drain, Directive::Stop].map(Directive::as_str));
}

const FAILURES: [OnDependencyFailure; 3] =
    [OnDependencyFailure::Cancel, OnDependencyFailure::Run, OnDependencyFailure::Hold];

fn states() -> String {
    let words: Vec<&str> = JobState::ALL.iter().map(|state| state.as_str()).collect();
    let word = format!("({})", words.join("|"));
    format!("^{word}(,{word})*$")
}

fn string() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn text(shortest: usize, longest: usize, pattern: &str) -> ObjectBuilder {
    let schema = string().min_length((shortest > 0).then_some(shortest)).max_length(Some(longest));
    schema.pattern((!pattern.is_empty()).then_some(pattern))
}

fn time() -> ObjectBuilder {
    string().format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
}

fn number(least: f64, most: f64) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Number).minimum(Some(least)).maximum(Some(most))
}

fn integer(least: u64, most: u64) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(least)).maximum(Some(most))
}

fn words<T: Into<Value>>(words: impl IntoIterator<Item = T>) -> ObjectBuilder {
    string().enum_values(Some(words.into_iter().map(Into::into)))
}

fn amounts() -> ObjectBuilder {
    let object = ObjectBuilder::new().schema_type(Type::Object).max_properties(Some(Resources::MAX_KINDS));
    let names: Schema = text(1, LimitKey::MAX, PLAIN).into();
    object.property_names(Some(names)).additional_properties(Some(Schema::from(number(0.0, 1e9))))
}
