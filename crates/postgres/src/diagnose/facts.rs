//! What an examination finds: plain data, without a judgement.

use std::time::Duration;

use orchestrix_core::Timestamp;

/// The server, and whose session it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Such as 150008.
    pub version_number: i32,
    /// Such as `15.8`.
    pub version: String,
    /// What its clock says.
    pub time: Timestamp,
    /// It follows another server, and takes no writes.
    pub in_recovery: bool,
    /// Whose session this is.
    pub role: String,
    /// Which database.
    pub database: String,
    /// How much of the disk that database takes.
    pub bytes: u64,
    /// Sessions of other roles can be seen.
    pub sees_all: bool,
}

/// A setting as sessions of this role begin with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value, in units.
    pub value: String,
    /// The unit, such as `8kB` or `ms`.
    pub unit: Option<String>,
}

/// A table of ours, as vacuum sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Rows, as far as the server has counted.
    pub live: u64,
    /// Rows that are gone and still in the way.
    pub dead: u64,
    /// When it was last vacuumed.
    pub vacuumed: Option<Duration>,
    /// Autovacuum may work on it.
    pub autovacuum: bool,
    /// At how many dead rows autovacuum begins.
    pub begins_at: f64,
}

/// What keeps vacuum from removing rows, or the server from removing its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HolderKind {
    /// A session in a transaction.
    Session,
    /// A transaction that was prepared, and neither committed nor rolled back since.
    Prepared,
    /// A standby that tells what it still reads.
    Standby,
    /// A replication slot.
    Slot,
}

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Holder {
    /// Which kind.
    pub kind: HolderKind,
    /// Its process, if it has one.
    pub pid: Option<i32>,
    /// What it calls itself.
    pub name: String,
    /// Whose it is.
    pub owner: String,
    /// What it does.
    pub state: String,
    /// How long it has been at it.
    pub age: Option<Duration>,
    /// How many transactions ago what it holds on to was the present; none if it holds on to no row.
    pub transactions: Option<i32>,
    /// How much of the log it holds back.
    pub retained: Option<u64>,
}

/// Connections to the whole server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    /// How many there may be.
    pub most: u64,
    /// How many of them are kept for others than ordinary roles.
    pub reserved: u64,
    /// How many are taken.
    pub taken: u64,
    /// How many of those call themselves orchestrix.
    pub ours: u64,
}

/// Whether hints from other processes come through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listening {
    /// They do, after so long.
    Hears(Duration),
    /// Two connections were served by one session: a pooler lends sessions by the transaction.
    Pooled,
    /// Nothing was heard in time.
    Deaf,
}

/// Something that this role may not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// `database`, `schema`, `table`, `sequence` or `function`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What is lacking, such as `INSERT` or `OWNER`.
    pub privileges: Vec<String>,
}

/// A table that is kept by days.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Days {
    /// Its name.
    pub table: String,
    /// There is a place for today.
    pub today: bool,
    /// There is a place for tomorrow.
    pub tomorrow: bool,
    /// Rows went where no day is.
    pub default_taken: bool,
}
