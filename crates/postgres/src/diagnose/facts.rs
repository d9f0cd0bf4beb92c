//! What the diagnostics report: plain data without a judgement.

use std::time::Duration;

use orchestrix_core::Timestamp;

/// The server and the role of this session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The version as a number, such as 150008.
    pub version_number: i32,
    /// The version, such as `15.8`.
    pub version: String,
    /// The time of the server's clock.
    pub time: Timestamp,
    /// Whether the server is a standby, which accepts no writes.
    pub in_recovery: bool,
    /// The role of this session.
    pub role: String,
    /// The name of the database.
    pub database: String,
    /// The size of the database on disk.
    pub bytes: u64,
    /// Whether this role sees sessions of other roles.
    pub sees_all: bool,
}

/// A setting as new sessions of this role get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The name.
    pub name: String,
    /// The value, in units.
    pub value: String,
    /// The unit, such as `8kB` or `ms`.
    pub unit: Option<String>,
}

/// The state of a table of Orchestrix with regard to vacuum.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The name.
    pub name: String,
    /// Live rows, as the server estimates.
    pub live: u64,
    /// Dead rows that vacuum has not removed yet.
    pub dead: u64,
    /// The time since the last vacuum.
    pub vacuumed: Option<Duration>,
    /// Whether autovacuum is enabled for the table.
    pub autovacuum: bool,
    /// The number of dead rows at which autovacuum starts.
    pub vacuum_threshold: f64,
}

/// What keeps vacuum from removing rows, or the server from removing WAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockerKind {
    /// A session in a transaction.
    Session,
    /// A prepared transaction that was neither committed nor rolled back.
    Prepared,
    /// A standby that reports what it still reads.
    Standby,
    /// A replication slot.
    Slot,
}

/// A session, transaction, standby or slot that blocks vacuum or retains WAL.
#[derive(Debug, Clone, PartialEq)]
pub struct VacuumBlocker {
    /// The kind.
    pub kind: BlockerKind,
    /// The process id, if there is a process.
    pub pid: Option<i32>,
    /// The name: the application, the prepared transaction, or the slot.
    pub name: String,
    /// The role or plugin that owns it.
    pub owner: String,
    /// The state, such as `idle in transaction`.
    pub state: String,
    /// How long its transaction has been open.
    pub age: Option<Duration>,
    /// How many transactions old its snapshot is; `None` if it holds back no rows.
    pub transactions: Option<i32>,
    /// How many bytes of WAL it retains.
    pub retained: Option<u64>,
}

/// Connections to the whole server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    /// The server's limit.
    pub max: u64,
    /// How many of them are reserved for superusers and special roles.
    pub reserved: u64,
    /// How many are in use.
    pub used: u64,
    /// How many of those belong to Orchestrix.
    pub orchestrix: u64,
}

/// Whether notifications of other processes are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotifyCheck {
    /// A notification was delivered after this time.
    Delivered(Duration),
    /// A pooler in transaction mode lends sessions, so LISTEN cannot work.
    Pooled,
    /// No notification was delivered in time.
    TimedOut,
}

/// Privileges that this role lacks on an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPrivileges {
    /// The kind of the object: `database`, `schema`, `table`, `sequence` or `function`.
    pub kind: String,
    /// The name of the object.
    pub name: String,
    /// The missing privileges, such as `INSERT` or `OWNER`.
    pub privileges: Vec<String>,
}

/// The partitions of a table that is partitioned by day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partitions {
    /// The name of the table.
    pub table: String,
    /// Whether today's partition exists.
    pub today: bool,
    /// Whether tomorrow's partition exists.
    pub tomorrow: bool,
    /// Whether the default partition holds rows.
    pub default_used: bool,
}
