//! Who runs a statement: the pool, a connection of ours in the middle of a transaction, or somebody else's transaction.
//!
//! Recording and ending jobs is written once, against this. Parameters and cells are few and plain, so that drivers other
//! than our own can carry them.

use async_trait::async_trait;
use orchestrix_store::Result;
use tokio_postgres::{
    Row,
    types::{FromSqlOwned, ToSql},
};
use uuid::Uuid;

use crate::{
    database::{Connection, Database},
    row::corrupt,
    statement::Statement,
};

/// One parameter of a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Param<'a> {
    Int8(i64),
    Text(&'a str),
    Bools(&'a [bool]),
    Int2s(&'a [i16]),
    Int4s(&'a [i32]),
    Int8s(&'a [i64]),
    Uuids(&'a [Uuid]),
    MaybeUuids(&'a [Option<Uuid>]),
    Texts(&'a [&'a str]),
    MaybeTexts(&'a [Option<&'a str>]),
    MaybeStrings(&'a [Option<String>]),
}

impl Param<'_> {
    /// As our own driver takes it.
    pub(crate) fn sql(&self) -> &(dyn ToSql + Sync) {
        match self {
            Self::Int8(value) => value,
            Self::Text(value) => value,
            Self::Bools(values) => values,
            Self::Int2s(values) => values,
            Self::Int4s(values) => values,
            Self::Int8s(values) => values,
            Self::Uuids(values) => values,
            Self::MaybeUuids(values) => values,
            Self::Texts(values) => values,
            Self::MaybeTexts(values) => values,
            Self::MaybeStrings(values) => values,
        }
    }

    /// All of them, as our own driver takes them.
    pub(crate) fn all<'p>(params: &'p [Param<'_>]) -> Vec<&'p (dyn ToSql + Sync)> {
        params.iter().map(Param::sql).collect()
    }
}

/// What every driver can read from a column.
#[cfg(not(feature = "sqlx"))]
pub(crate) trait Cell: FromSqlOwned {}
#[cfg(not(feature = "sqlx"))]
impl<T: FromSqlOwned> Cell for T {}

/// What every driver can read from a column.
#[cfg(feature = "sqlx")]
pub(crate) trait Cell:
    FromSqlOwned + for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>
{
}
#[cfg(feature = "sqlx")]
impl<T: FromSqlOwned + for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>> Cell for T {}

/// One row of an answer.
pub(crate) enum Record {
    Ours(Row),
    #[cfg(feature = "sqlx")]
    Sqlx(sqlx::postgres::PgRow),
}

impl Record {
    pub(crate) fn get<T: Cell>(&self, column: usize) -> Result<T> {
        match self {
            Self::Ours(row) => row.try_get(column).map_err(|error| corrupt("an answer", error)),
            #[cfg(feature = "sqlx")]
            Self::Sqlx(row) => sqlx::Row::try_get(row, column).map_err(|error| corrupt("an answer", error)),
        }
    }
}

/// Runs statements one after the other.
#[async_trait]
pub(crate) trait Runner: Send {
    async fn run(&mut self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<Record>>;
}

/// Each statement is a transaction by itself.
#[async_trait]
impl Runner for &Database {
    async fn run(&mut self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<Record>> {
        Ok(self.query(statement, &Param::all(params)).await?.into_iter().map(Record::Ours).collect())
    }
}

#[async_trait]
impl Runner for &Connection<'_> {
    async fn run(&mut self, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<Record>> {
        Ok(self.query(statement, &Param::all(params)).await?.into_iter().map(Record::Ours).collect())
    }
}

/// As sqlx takes them.
#[cfg(feature = "sqlx")]
pub(crate) fn sqlx_arguments(params: &[Param<'_>]) -> Result<sqlx::postgres::PgArguments> {
    use sqlx::Arguments;
    let mut arguments = sqlx::postgres::PgArguments::default();
    for param in params {
        match *param {
            Param::Int8(value) => arguments.add(value),
            Param::Text(value) => arguments.add(value),
            Param::Bools(values) => arguments.add(values),
            Param::Int2s(values) => arguments.add(values),
            Param::Int4s(values) => arguments.add(values),
            Param::Int8s(values) => arguments.add(values),
            Param::Uuids(values) => arguments.add(values),
            Param::MaybeUuids(values) => arguments.add(values),
            Param::Texts(values) => arguments.add(values),
            Param::MaybeTexts(values) => arguments.add(values),
            Param::MaybeStrings(values) => arguments.add(values),
        }
        .map_err(orchestrix_store::StoreError::Backend)?;
    }
    Ok(arguments)
}
